//! Checks of a replayed trace, each with a sample that it notices.

use crate::proof::honest::{kinds, replay, replay_by_three};
use pagewise_model::Evidence;
use pagewise_model::FailureKind::{
    InconsistentCounts, MethodContradicted, MissingReads, NotCold, NotInForce, WrongChecksum,
};

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
