//! Operations at a rate, through the whole program: as many calls as were due, and a rate that
//! nobody keeps.

use pagewise_model::Outcome;

use crate::support::until::{each_has_or_cannot, expect_honest, take_words, valid};
use crate::support::{Place, is_honest, kinds, load};

const COMMON: [&str; 5] = ["--trial-rounds=4", "--seed=7", "--no-ceilings", "--json", "--out=run.jsonl"];

/// Words of reads of 4 KiB of 16 MiB.
fn reads<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let reads = ["run", "read", "--workload=random-read", "--file-size=16MiB", "--read-size=4KiB"];
    [&reads[..], &["--reads-per-op=1", "--sample=100ms"], &COMMON, more].concat()
}

#[test]
fn as_many_operations_are_done_as_are_due() {
    let place = Place::new();
    let more = ["--methods=mmap,pread,pread:direct", "--threads=1,2", "--cache=warm", "--rate=2k"];
    let taken = take_words(&place, &reads(&more), |run| each_has_or_cannot(run, 1));
    let seen = valid(&taken.run, |_| true);
    assert!(!seen.is_empty());
    for (measurement, evidence) in seen {
        // 200 in 100 ms. A machine that others use may have kept some from being done.
        assert_eq!(measurement.due_operations, 200);
        assert!(measurement.operations <= 200 && measurement.measured_ns >= 100_000_000);
        assert_eq!(measurement.latency_counts.iter().sum::<u64>(), 200);
        assert_eq!(evidence.requested_bytes, measurement.operations * 4096);
        assert_eq!((measurement.latency_phase_operations, measurement.stalls), (0, 0));
    }
}

#[test]
fn records_are_committed_as_they_are_due() {
    let place = Place::new();
    let append = ["run", "append", "--sync=commit", "--file-size=16MiB", "--rate=500", "--sample=100ms"];
    let words = [&append[..], &["--methods=pwrite,mmap", "--threads=1,2"], &COMMON].concat();
    let taken = take_words(&place, &words, |run| each_has_or_cannot(run, 1));
    let seen = valid(&taken.run, |_| true);
    assert!(!seen.is_empty());
    for (measurement, _) in seen {
        assert_eq!((measurement.due_operations, measurement.latency_counts.iter().sum::<u64>()), (50, 50));
        assert!(measurement.operations <= 50);
        assert!(measurement.sync_duration_counts.iter().sum::<u64>() <= measurement.operations);
    }
    expect_honest(&taken.run);
}

#[test]
fn updates_are_all_done_however_late() {
    let place = Place::new();
    let update =
        ["run", "update", "--file-size=8MiB", "--updates=200", "--sync=every:64KiB", "--rate=2k,1000k"];
    let more = ["--methods=pwrite,mmap", "--cache=warm-small", "--reads-per-update=2"];
    let words = [&update[..], &more, &COMMON].concat();
    let taken = take_words(&place, &words, |run| each_has_or_cannot(run, 1));
    for is_fast in [false, true] {
        let has_rate = |cell: &pagewise_model::Cell| {
            cell.conditions.rate.is_some_and(|rate| (rate.per_second() > 2000) == is_fast)
        };
        let seen = valid(&taken.run, has_rate);
        assert!(!seen.is_empty());
        for (measurement, _) in seen {
            assert_eq!((measurement.operations, measurement.latency_counts.iter().sum::<u64>()), (200, 200));
            // One sync for each 16, and one of the rest.
            assert_eq!(measurement.sync_duration_counts.iter().sum::<u64>(), 13);
            match is_fast {
                false => assert!(measurement.measured_ns >= 100_000_000, "{measurement:?}"),
                // An update and its reads are three calls, which take longer than 1 us.
                true => assert!(measurement.due_operations > 200, "{measurement:?}"),
            }
        }
    }
    expect_honest(&taken.run);
}

#[test]
fn a_rate_that_cannot_be_kept_is_an_answer() {
    let place = Place::new();
    let rate = "--rate=100000k";
    let finished = place.run(&reads(&["--methods=pread,mmap", "--cache=warm", rate]));
    let run = load(&place.file("run.jsonl"));
    for sample in &run.samples {
        assert!(is_honest(sample), "{}: {:?}", sample.cell, kinds(sample));
        let Outcome::Taken { measurement, .. } = &sample.outcome else { continue };
        // A call takes longer than 10 ns.
        assert!(measurement.operations < measurement.due_operations, "{measurement:?}");
        assert_eq!(measurement.latency_counts.iter().sum::<u64>(), measurement.due_operations);
    }
    let judged = finished.expect_code_for(&run).judged();
    let cells = judged["cells"].as_array().expect("cells");
    assert!(
        cells
            .iter()
            .all(|cell| cell["usual_latency_ns"].is_null() && cell["parameters"]["rate"] == 100_000_000)
    );
}
