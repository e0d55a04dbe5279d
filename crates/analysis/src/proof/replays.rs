//! Checks of a replayed trace, each with a sample that it notices.

use crate::proof::honest::{kinds, replay, replay_by_three};
use pagewise_model::FailureKind::{
    InconsistentCounts, MethodContradicted, MissingReads, NotAsRecorded, NotCold, NotInForce, NotWarm,
    WrongChecksum,
};
use pagewise_model::sample::OutsideActivity;
use pagewise_model::{CacheState, Evidence};

const MIB: u64 = 1 << 20;

#[test]
fn an_honest_replay_is_valid_although_it_reads_blocks_twice() {
    let methods = ["pread", "mmap", "mmap:random", "pread:random", "pread:direct"];
    for method in methods.into_iter().chain(["uring:depth=4", "uring:direct+depth=32"]) {
        assert_eq!(kinds(&replay(method), |_, _| ()), [], "{method}");
    }
    // Of what is read again, less comes from the device than is asked for.
    let few = |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(30 * MIB);
    assert_eq!(kinds(&replay("pread"), few), []);
}

#[test]
fn a_replay_that_did_not_begin_cold_is_noticed() {
    let resident = |bytes| move |_: &mut _, evidence: &mut Evidence| evidence.resident_before_bytes = bytes;
    assert_eq!(kinds(&replay("pread"), resident(Some(4096))), [NotCold]);
    assert_eq!(kinds(&replay("mmap:random"), resident(None)), [NotCold], "nothing else proves it");
    assert_eq!(kinds(&replay("pread:direct"), resident(Some(4096))), []);
}

#[test]
fn a_replay_that_did_not_begin_as_it_was_recorded_is_noticed() {
    let recorded = |method| {
        let mut cell = replay(method);
        cell.conditions.cache = CacheState::Recorded;
        cell
    };
    let unlike = |missing, added| {
        move |_: &mut _, evidence: &mut Evidence| {
            (evidence.recorded_missing_bytes, evidence.recorded_added_bytes) = (missing, added);
        }
    };
    for method in ["pread", "mmap", "mmap:random", "pread:direct", "uring:depth=4"] {
        assert_eq!(kinds(&recorded(method), |_, _| ()), [], "{method}");
    }
    assert_eq!(kinds(&recorded("pread"), unlike(Some(4096), Some(0))), [NotAsRecorded]);
    assert_eq!(kinds(&recorded("mmap"), unlike(Some(0), Some(4096))), [NotAsRecorded]);
    assert_eq!(kinds(&recorded("pread"), unlike(None, None)), [NotAsRecorded], "nothing else proves it");
    assert_eq!(kinds(&recorded("pread:direct"), unlike(Some(4096), Some(4096))), []);
    // Its set-up may bring in more, if that comes from the device, and nothing can be missing.
    let in_setup = |missing, added| {
        move |_: &mut _, evidence: &mut Evidence| {
            evidence.setup_device_read_bytes = Some(9 * MIB);
            (evidence.recorded_missing_bytes, evidence.recorded_added_bytes) = (Some(missing), Some(added));
        }
    };
    assert_eq!(kinds(&recorded("mmap:populate"), in_setup(0, 9 * MIB)), []);
    assert_eq!(kinds(&recorded("mmap:populate"), in_setup(0, 10 * MIB)), [NotAsRecorded]);
    assert_eq!(kinds(&recorded("mmap:populate"), in_setup(4096, 0)), [NotAsRecorded]);
    let before_go = |_: &mut _, evidence: &mut Evidence| {
        evidence.before_ready =
            Some(OutsideActivity { device_read_bytes: Some(9 * MIB), ..OutsideActivity::default() });
    };
    assert_eq!(kinds(&recorded("pread"), before_go), [NotAsRecorded], "into memory of the worker");
}

#[test]
fn a_replay_whose_set_up_found_another_cache_is_noticed() {
    let in_setup =
        |bytes| move |_: &mut _, evidence: &mut Evidence| evidence.setup_device_read_bytes = Some(bytes);
    assert_eq!(kinds(&replay("mmap:populate"), in_setup(64 * MIB)), []);
    assert_eq!(kinds(&replay("mmap:populate"), in_setup(32 * MIB)), [NotCold], "half of it was cached");
    let warm = |method| {
        let mut cell = replay(method);
        cell.conditions.cache = CacheState::Warm;
        cell
    };
    for method in ["pread", "mmap", "mmap:populate", "pread:direct"] {
        assert_eq!(kinds(&warm(method), |_, _| ()), [], "{method}");
    }
    assert_eq!(kinds(&warm("mmap:populate"), in_setup(MIB)), [NotWarm]);
    let short = |_: &mut _, evidence: &mut Evidence| evidence.resident_before_bytes = Some(63 * MIB);
    assert_eq!(kinds(&warm("pread"), short), [NotWarm]);
}

#[test]
fn reads_that_were_not_made_are_noticed() {
    for method in ["pread", "pread:direct"] {
        let calls = |_: &mut _, evidence: &mut Evidence| evidence.read_calls = Some(19_000);
        assert_eq!(kinds(&replay(method), calls), [MissingReads], "{method}");
    }
    for method in ["pread", "mmap"] {
        let other = |_: &mut _, evidence: &mut Evidence| evidence.checksum += 1;
        assert_eq!(kinds(&replay(method), other), [WrongChecksum], "{method}");
        let fewer = |_: &mut _, evidence: &mut Evidence| evidence.requested_bytes -= 1;
        assert!(kinds(&replay(method), fewer).contains(&InconsistentCounts), "{method}");
    }
    let by_calls =
        |_: &mut _, evidence: &mut Evidence| evidence.read_call_bytes = Some(evidence.requested_bytes);
    assert_eq!(kinds(&replay("mmap"), by_calls), [NotInForce]);
}

#[test]
fn threads_that_do_the_reads_of_others_are_noticed() {
    for method in ["pread", "mmap", "mmap:random", "pread:direct", "uring:depth=4"] {
        assert_eq!(kinds(&replay_by_three(method), |_, _| ()), [], "{method}");
        let unseen = |_: &mut _, evidence: &mut Evidence| evidence.threads.clear();
        assert_eq!(kinds(&replay_by_three(method), unseen), [], "{method}");
    }
    let calls = |calls: [u64; 4]| {
        let of_threads = move |_: &mut _, evidence: &mut Evidence| {
            for (thread, calls) in evidence.threads.iter_mut().zip(calls) {
                thread.read_calls = Some(calls);
            }
        };
        kinds(&replay_by_three("pread"), of_threads)
    };
    assert_eq!(calls([1, 10_020, 1_000, 9_000]), [], "whichever thread it is");
    for odd in [[20_000, 0, 0, 1], [9_999, 9_001, 1_000, 1], [6_667, 6_667, 6_666, 1], [10_000, 10_000, 0, 1]]
    {
        assert_eq!(calls(odd), [MissingReads], "{odd:?}");
    }
    // Offsets in a mapping are not reported, only whether a thread ran at all.
    let idle = |_: &mut _, evidence: &mut Evidence| {
        evidence.threads.iter_mut().skip(2).for_each(|thread| thread.cpu_ns = Some(0));
    };
    assert_eq!(kinds(&replay_by_three("mmap"), idle), [MissingReads]);
}

#[test]
fn an_operation_is_the_reads_of_a_thread() {
    let fewer = |measurement: &mut pagewise_model::sample::Measurement, _: &mut Evidence| {
        measurement.thread_operations = vec![3, 0, 0];
    };
    assert_eq!(kinds(&replay_by_three("mmap"), fewer), [], "their checksum is unknown to the supervisor");
    let more = |measurement: &mut pagewise_model::sample::Measurement, _: &mut Evidence| {
        (measurement.operations, measurement.thread_operations) = (4, vec![2, 1, 1]);
    };
    assert_eq!(kinds(&replay_by_three("mmap"), more), [InconsistentCounts]);
}

#[test]
fn direct_reads_are_widened_and_no_more() {
    // 20,000 reads, each of which may begin and end within a page.
    let read =
        |mib: u64| move |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(mib * MIB);
    assert_eq!(kinds(&replay("pread:direct"), read(250)), []);
    assert_eq!(kinds(&replay("pread:direct"), read(300)), [MethodContradicted]);
}
