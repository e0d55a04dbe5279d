//! The exact amount is done, every stall is found, and the gaps follow from the seed.

use pagewise_protocol::Go;

use super::*;
use crate::sampling::fake::{FakeWork, Time};
use crate::sampling::{Phases, empty_latencies};

/// Work with this many operations, or as many as are done within `sample_ns`.
fn sampled(work: &mut FakeWork<'_>, (first, operations): (u64, u64), sample_ns: u64) -> ThreadSample {
    let amount = Amount { operations, gap_seed: 5, policy: SamplingPolicy::default() };
    let (go, phases) = (Go { first_operation: first, sample_ns, ..Go::default() }, Phases::of(1));
    let turn = Turn { thread: 0, go: &go, phases: &phases, latencies: empty_latencies() };
    let clock = work.time.clock();
    amount.sample(work, turn, clock).expect("no call fails")
}

/// Work with this many operations, all of it, from `first` on.
fn run(work: &mut FakeWork<'_>, first: u64, operations: u64) -> ThreadSample {
    work.done = first;
    sampled(work, (first, operations), u64::MAX)
}

#[test]
fn exactly_the_amount_is_done_and_finished() {
    for (first, operations) in [(0, 0), (0, 1), (0, 2), (3, 3), (0, 17), (1000, 100_000)] {
        let time = Time::default();
        let mut work = FakeWork::new(&time);
        let sample = run(&mut work, first, operations);
        assert_eq!((sample.operations, work.done, work.finished), (operations, first + operations, 1));
        assert_eq!(sample.checksum, 1000 * operations + 7, "with what was in flight");
        assert_eq!(sample.bytes, operations * 10);
        assert_eq!((sample.latency_operations, sample.latency_span_ns), (0, (0, 0)));
        assert!(sample.latencies.len() <= operations);
        assert_eq!(sample.ended_ns - sample.started_ns, operations);
    }
}

#[test]
fn slow_operations_are_all_timed() {
    let time = Time::default();
    let mut work = FakeWork { op_ns: 300_000, ..FakeWork::new(&time) };
    let sample = run(&mut work, 0, 20);
    assert_eq!(work.asked, [1; 20]);
    assert_eq!(sample.latencies.len(), 20);
}

#[test]
fn time_that_is_up_ends_the_work_early() {
    let time = Time::default();
    for (sample_ns, done) in [(0, 0), (1, 2), (999_999, 20), (u64::MAX, 1000)] {
        let mut work = FakeWork { op_ns: 50_000, ..FakeWork::new(&time) };
        let sample = sampled(&mut work, (0, 1000), sample_ns);
        // A single operation after a gap of one: the time is looked at after both.
        assert_eq!((sample.operations, work.finished), (done, 1), "{sample_ns}");
    }
}

#[test]
fn every_single_operation_between_batches_is_timed() {
    let time = Time::default();
    let mut work = FakeWork { op_ns: 10, ..FakeWork::new(&time) };
    let sample = run(&mut work, 0, 1_000_000);
    let single = work.asked.iter().filter(|wanted| **wanted == 1).count() as u64;
    assert!((1..=single).contains(&sample.latencies.len()), "those while the mean gap grew are left out");
    // 40 us of 10 ns: a mean of 4,096.
    let batches = work.asked.len() as u64 - single;
    assert!((200..300).contains(&batches), "{batches} batches, {single} operations by themselves");
    assert!(single >= batches, "{batches} batches, {single} operations by themselves");
}

#[test]
fn the_first_operation_does_not_weigh_more_than_others() {
    let time = Time::default();
    let mut work = FakeWork { slow: vec![(0, 300_000_000)], ..FakeWork::new(&time) };
    let sample = run(&mut work, 0, 1_000_000);
    assert_eq!((sample.stalls.count, sample.stalls.longest_ns), (1, 300_000_001), "it is a stall");
    assert_eq!(sample.latencies.max(), 1, "it was timed because the mean gap was still 1");
}

fn gaps_of(seed: u64) -> Gaps {
    Gaps::new(seed, SamplingPolicy::default())
}

#[test]
fn gaps_are_drawn_from_the_seed_and_repeat() {
    let draw = |seed| {
        let mut gaps = Gaps { mean: 100, ..gaps_of(seed) };
        (0..1000).map(|_| gaps.draw()).collect::<Vec<_>>()
    };
    let gaps = draw(9);
    assert_eq!(gaps, draw(9));
    assert_ne!(gaps, draw(10));
    assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&199)));
    let mean = gaps.iter().sum::<u64>() / 1000;
    assert!((95..=105).contains(&mean), "{mean}");
    assert_eq!(gaps_of(3).draw(), 1, "the first operation is timed");
}

#[test]
fn the_mean_gap_takes_40_us_and_short_gaps_are_no_measure() {
    let mut gaps = gaps_of(1);
    // 10 ns an operation.
    while gaps.mean < 4096 {
        let before = gaps.mean;
        assert!(gaps.adapt(before, before * 10), "it grows");
        assert_eq!(gaps.mean, before * 2);
    }
    for (gap, took_ns) in [(4096, 40_960), (8000, 80_000), (5, 1_000_000)] {
        assert!(!gaps.adapt(gap, took_ns));
    }
    assert_eq!(gaps.mean, 4096);
    assert!(!gaps.adapt(8000, 1_000_000));
    assert_eq!(gaps.mean, 2048);
    assert!(gaps.is_found());
    assert!(!gaps.adapt(2048, 2048), "it was found before");
    assert_eq!(gaps.mean, 4096);
    gaps.mean = 1;
    gaps.adapt(1, u64::MAX);
    assert_eq!(gaps.mean, 1);
}

#[test]
fn a_stalled_operation_is_seen_wherever_it_falls() {
    for slow in [0, 1, 2, 63, 50_000, 99_999] {
        let time = Time::default();
        let mut work = FakeWork { slow: vec![(slow, 30_000_000)], ..FakeWork::new(&time) };
        let sample = run(&mut work, 0, 100_000);
        assert_eq!(sample.stalls.count, 1, "operation {slow}");
        assert!((30_000_000..30_000_010).contains(&sample.stalls.longest_ns), "operation {slow}");
    }
}
