//! The exact amount is done, every stall is found, and the gaps follow from the seed.

use std::time::Duration;

use super::*;
use crate::sampling::empty_latencies;

/// Records its calls, and sleeps in some operations.
#[derive(Default)]
struct Fake {
    asked: Vec<u64>,
    done: u64,
    finished: u64,
    /// Slow operations.
    slow: Vec<u64>,
    sleep: Duration,
}

impl Operations for Fake {
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        assert_eq!(position, self.done, "operations are done in order");
        let operations = wanted.min(end - position);
        self.asked.push(wanted);
        self.done += operations;
        let slow = self.slow.iter().filter(|slow| (position..position + operations).contains(slow));
        slow.for_each(|_| std::thread::sleep(self.sleep));
        Ok(Done { operations, checksum: 1000 * operations })
    }

    fn finish(&mut self) -> Result<u64, CallFailure> {
        self.finished += 1;
        Ok(7)
    }

    fn bytes(&self) -> u64 {
        self.done * 10
    }
}

/// Bounded by operations alone: a test does not depend on a time.
fn run(work: &mut Fake, first: u64, operations: u64) -> ThreadSample {
    work.done = first;
    let amount = Amount { operations, gap_seed: 5 };
    sample(work, first, amount, u64::MAX, empty_latencies()).expect("no call fails")
}

#[test]
fn exactly_the_amount_is_done_and_finished() {
    for (first, operations) in [(0, 0), (0, 1), (0, 2), (3, 3), (0, 17), (1000, 100_000)] {
        let mut work = Fake::default();
        let sample = run(&mut work, first, operations);
        assert_eq!((sample.operations, work.done, work.finished), (operations, first + operations, 1));
        assert_eq!(sample.checksum, 1000 * operations + 7, "with what was in flight");
        assert_eq!(sample.bytes, operations * 10);
        assert_eq!((sample.latency_operations, sample.latency_span_ns), (0, (0, 0)));
        assert!(sample.latencies.len() <= operations);
        assert!(sample.ended_ns >= sample.started_ns);
    }
}

#[test]
fn slow_operations_are_all_timed() {
    let mut work = Fake { slow: (0..20).collect(), sleep: Duration::from_micros(300), ..Fake::default() };
    let sample = run(&mut work, 0, 20);
    assert!(work.asked.iter().all(|wanted| *wanted == 1), "{:?}", work.asked);
    assert_eq!(sample.latencies.len(), 20);
}

#[test]
fn time_that_is_up_ends_the_work_early() {
    let mut work = Fake::default();
    let amount = Amount { operations: 1000, gap_seed: 5 };
    let sample = sample(&mut work, 0, amount, 0, empty_latencies()).expect("no call fails");
    assert_eq!((sample.operations, work.finished), (0, 1));
}

#[test]
fn every_single_operation_between_batches_is_timed() {
    let mut work = Fake::default();
    let sample = run(&mut work, 0, 1_000_000);
    let single = work.asked.iter().filter(|wanted| **wanted == 1).count() as u64;
    assert!((1..=single).contains(&sample.latencies.len()), "those while the mean gap grew are left out");
    assert!(single < 1_000_000, "batches have more than one operation");
    let batches = work.asked.len() as u64 - single;
    assert!(single >= batches, "{batches} batches, {single} operations by themselves");
}

#[test]
fn the_first_operation_does_not_weigh_more_than_others() {
    let mut work = Fake { slow: vec![0], sleep: Duration::from_millis(300), ..Fake::default() };
    let sample = run(&mut work, 0, 1_000_000);
    assert!(sample.stalls.count >= 1 && sample.stalls.longest_ns >= 300_000_000, "it is a stall");
    assert!(sample.latencies.max() < 300_000_000, "it was timed because the mean gap was still 1");
}

#[test]
fn gaps_are_drawn_from_the_seed_and_repeat() {
    let draw = |seed| {
        let mut gaps = Gaps { mean: 100, ..Gaps::new(seed) };
        (0..1000).map(|_| gaps.draw()).collect::<Vec<_>>()
    };
    let gaps = draw(9);
    assert_eq!(gaps, draw(9));
    assert_ne!(gaps, draw(10));
    assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&199)));
    let mean = gaps.iter().sum::<u64>() / 1000;
    assert!((95..=105).contains(&mean), "{mean}");
    assert_eq!(Gaps::new(3).draw(), 1, "the first operation is timed");
}

#[test]
fn the_mean_gap_takes_40_us_and_short_gaps_are_no_measure() {
    let mut gaps = Gaps::new(1);
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
        let mut work = Fake { slow: vec![slow], sleep: Duration::from_millis(30), ..Fake::default() };
        let sample = run(&mut work, 0, 100_000);
        assert!(sample.stalls.count >= 1, "operation {slow}");
        assert!(
            sample.stalls.longest_ns >= 29_000_000,
            "{} ns for operation {slow}",
            sample.stalls.longest_ns
        );
    }
}
