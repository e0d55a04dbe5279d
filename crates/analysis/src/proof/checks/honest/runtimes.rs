//! Honest and cheating samples of workers with a runtime of their own.

use super::super::*;
use super::{append, cell, fill, kinds, limited, scan, set};
use pagewise_model::{CacheState, FailureKind, Method, WorkerWarmup, Workload};

/// Reads by the table, in every language.
const READS: &[&str] = &[
    "jvm/mmap",
    "jvm/mmap:random",
    "jvm/mmap:random+prefetch",
    "jvm/mmap:in-place",
    "jvm/pread",
    "jvm/pread:direct",
    "jvm/filechannel:direct-buffer",
    "jvm/filechannel:heap-buffer",
    "go/mmap",
    "go/mmap:random",
    "go/mmap:sequential",
    "go/pread",
    "python/mmap",
    "python/pread",
    "python/readinto",
    "python/numpy-memmap",
    "mine/pread",
    "mine/lsm-get",
];

const SCANS: [&str; 9] = [
    "jvm/mapped-byte-buffer",
    "jvm/mmap",
    "jvm/mmap:in-place",
    "jvm/buffered-reader",
    "go/bufio:buffer=4KiB",
    "go/pread",
    "python/readinto",
    "python/numpy-memmap",
    "mine/count",
];

const WRITES: &[&str] = &[
    "jvm/mmap",
    "jvm/mmap:buffer=4KiB",
    "jvm/filechannel:direct-buffer",
    "jvm/filechannel:heap-buffer+buffer=4KiB",
    "go/mmap",
    "go/mmap:buffer=1MiB",
    "go/pwrite:buffer=4KiB",
    "go/write",
    "go/bufio:buffer=64KiB",
    "python/mmap",
    "python/write",
    "python/pwrite:buffer=4KiB",
    "python/buffered-writer",
    "mine/log",
];

/// Activity of a JVM on its own account: it loads late classes from the device, takes faults on
/// them, reads files of its own, collects on another CPU and answers a little late.
fn busy_runtime(_: &mut Measurement, evidence: &mut Evidence) {
    let late_pages = 40;
    evidence.device_read_bytes = evidence.device_read_bytes.map(|bytes| bytes + late_pages * 4096);
    evidence.major_faults = evidence.major_faults.map(|faults| faults + late_pages);
    evidence.minor_faults = evidence.minor_faults.map(|faults| faults + 1500);
    evidence.read_calls = evidence.read_calls.map(|calls| calls + 300);
    evidence.read_call_bytes = evidence.read_call_bytes.map(|bytes| bytes + (3 << 20));
    evidence.cpu_ns = Some(evidence.wall_ns * 5 / 2);
    evidence.wall_ns += 13_000_000;
    evidence.mappings_left = Some(0);
    evidence.setup_device_read_bytes = evidence.setup_device_read_bytes.map(|bytes| bytes + (2 << 20));
    evidence.worker_warmup =
        Some(WorkerWarmup { rates: vec![90, 100, 100], elapsed_ns: 1_400_000_000, steady: true });
}

fn is_for(method: &str, workload: Workload) -> bool {
    method.parse::<Method>().expect(method).unsuited(workload).is_none()
}

#[test]
fn honest_samples_of_a_busy_runtime_pass() {
    for method in READS {
        assert!(is_for(method, Workload::RandomRead), "{method}");
        for &cache in CacheState::ALL {
            for cell in [cell(method, cache), limited(method, cache, 320), set(method, cache)] {
                assert_eq!(kinds(&cell, |_, _| {}), [], "{}", cell.id());
                assert_eq!(kinds(&cell, busy_runtime), [], "{}", cell.id());
            }
        }
    }
    let caches = [CacheState::Cold, CacheState::Warm, CacheState::AsIs];
    for cache in caches {
        let scans = SCANS.iter().map(|method| scan(method, cache));
        let writes = WRITES.iter().flat_map(|method| [append(method, cache), fill(method, cache)]);
        for cell in
            scans.chain(writes.filter(|cell| is_for(&cell.method.to_string(), cell.conditions.workload())))
        {
            assert_eq!(kinds(&cell, |_, _| {}), [], "{}", cell.id());
            assert_eq!(kinds(&cell, busy_runtime), [], "{}", cell.id());
        }
    }
}

#[test]
fn the_same_of_a_native_worker_is_noticed() {
    for method in ["mmap", "pread"] {
        assert!(!kinds(&cell(method, CacheState::Warm), busy_runtime).is_empty(), "{method}");
    }
}

#[test]
fn half_of_the_time_kept_quiet_is_noticed_in_every_language() {
    for method in READS {
        let halved = |measurement: &mut Measurement, _: &mut Evidence| {
            measurement.measured_ns /= 2;
            measurement.latency_phase_ns /= 2;
            measurement.latency_counts = vec![40];
            measurement.latency_ns = vec![1_000];
        };
        let cell = cell(method, CacheState::Warm);
        let found = kinds(&cell, halved);
        assert!(!found.is_empty() && found.iter().all(|kind| *kind == FailureKind::FalseTime), "{method}");
        let late = |late_ns: u64| kinds(&cell, move |_, evidence| evidence.wall_ns += late_ns);
        // 10 ms and 5 % are allowed for all, 5 ms more for a runtime.
        assert_eq!((late(20_000_000), late(23_000_000)), (vec![], vec![FailureKind::FalseTime]), "{method}");
    }
    let cold_start = cell("jvm/pread", CacheState::ColdStart);
    let halved = |measurement: &mut Measurement, evidence: &mut Evidence| {
        measurement.measured_ns /= 2;
        evidence.windows.iter_mut().for_each(|window| window.elapsed_ns /= 2);
    };
    assert_eq!(kinds(&cold_start, halved), [FailureKind::FalseTime]);
}

#[test]
fn another_way_than_the_named_one_is_noticed() {
    use FailureKind::{MethodContradicted, MissingReads, NotDirect, NotInForce};
    // Reads of a mapping under the name of a call, in each language that has calls.
    for method in ["jvm/pread", "jvm/filechannel:heap-buffer", "go/pread", "python/readinto", "mine/pread"] {
        let none = |_: &mut Measurement, evidence: &mut Evidence| {
            evidence.read_calls = Some(300);
            evidence.read_call_bytes = Some(3 << 20);
        };
        assert_eq!(kinds(&cell(method, CacheState::Warm), none), [MissingReads], "{method}");
        let faulting = |_: &mut Measurement, evidence: &mut Evidence| evidence.major_faults = Some(10_240);
        assert_eq!(kinds(&cell(method, CacheState::Cold), faulting), [MethodContradicted], "{method}");
    }
    let plain =
        |_: &mut Measurement, evidence: &mut Evidence| evidence.mapping_flags = Some("rd sh mr".into());
    assert_eq!(kinds(&cell("jvm/mmap:random", CacheState::Warm), plain), [NotInForce]);
    let readahead = |_: &mut Measurement, evidence: &mut Evidence| evidence.major_faults = Some(160);
    assert_eq!(kinds(&cell("jvm/mmap:random", CacheState::Cold), readahead), [MethodContradicted]);
    let cached = |_: &mut Measurement, evidence: &mut Evidence| evidence.descriptor_direct = Some(false);
    assert_eq!(kinds(&cell("jvm/pread:direct", CacheState::Cold), cached), [NotDirect]);
    let calls = |_: &mut Measurement, evidence: &mut Evidence| evidence.write_call_bytes = Some(10 << 20);
    assert_eq!(kinds(&append("jvm/mmap", CacheState::Cold), calls), [MethodContradicted]);
    let no_calls = |_: &mut Measurement, evidence: &mut Evidence| evidence.write_call_bytes = Some(500);
    assert_eq!(
        kinds(&append("go/bufio:buffer=64KiB", CacheState::Cold), no_calls),
        [FailureKind::MissingWrites]
    );
    // All bytes came through calls, but not each record by one of its own.
    for method in ["go/write", "go/pwrite", "jvm/filechannel:direct-buffer", "python/write"] {
        let fewer = |_: &mut Measurement, evidence: &mut Evidence| evidence.write_calls = Some(100);
        assert_eq!(kinds(&append(method, CacheState::Cold), fewer), [FailureKind::MissingWrites], "{method}");
    }
}

#[test]
fn a_way_that_nobody_knows_is_held_to_what_all_have_in_common() {
    use FailureKind::{FalseTime, NotCold, NotWarm, WrongChecksum};
    let (warm, cold) = (cell("mine/lsm-get", CacheState::Warm), cell("mine/lsm-get", CacheState::Cold));
    assert_eq!(kinds(&warm, |_, evidence| evidence.checksum += 1), [WrongChecksum]);
    assert_eq!(kinds(&warm, |_, evidence| evidence.resident_before_bytes = Some(0)), [NotWarm]);
    assert_eq!(kinds(&cold, |_, evidence| evidence.device_read_bytes = Some(0)), [NotCold]);
    assert_eq!(kinds(&cold, |measurement, _| measurement.measured_ns *= 2), [FalseTime]);
    // The reads of a third-party method are unknown.
    let faulting = |_: &mut Measurement, evidence: &mut Evidence| evidence.major_faults = Some(10_240);
    assert_eq!(kinds(&cold, faulting), []);
}

#[test]
fn a_mapping_that_is_left_is_noticed() {
    for method in ["jvm/mmap", "python/numpy-memmap", "go/mmap", "mine/lsm-get", "mmap"] {
        let left =
            |count| kinds(&cell(method, CacheState::Warm), move |_, evidence| evidence.mappings_left = count);
        assert_eq!((left(Some(0)), left(None)), (vec![], vec![]), "{method}");
        assert_eq!(left(Some(1)), [FailureKind::NotReleased], "{method}");
    }
}

#[test]
fn code_that_still_gets_faster_is_not_measured() {
    let cell = cell("jvm/mmap", CacheState::Warm);
    let practised = |steady| {
        kinds(&cell, move |_, evidence| {
            evidence.worker_warmup =
                Some(WorkerWarmup { rates: vec![10, 20, 30], elapsed_ns: 8_000_000_000, steady });
        })
    };
    assert_eq!((practised(true), practised(false)), (vec![], vec![FailureKind::NotSettled]));
    let (measurement, mut seen) = (super::measurement_of(&cell), super::evidence(&cell));
    seen.worker_warmup = Some(WorkerWarmup { rates: vec![10; 80], elapsed_ns: 8_000_000_000, steady: false });
    let detail = &failures(&cell, &measurement, &seen, &super::CONTEXT)[0].detail;
    assert_eq!(detail, "jvm was still getting faster after 8.0 s of warm-up, in 80 intervals");
}

#[test]
fn more_than_a_runtime_needs_is_noticed() {
    use FailureKind::{FalseTime, NotWarm};
    let warm = cell("jvm/mmap", CacheState::Warm);
    assert_eq!(kinds(&warm, |_, evidence| evidence.device_read_bytes = Some(9 << 20)), [NotWarm]);
    assert_eq!(kinds(&warm, |_, evidence| evidence.major_faults = Some(65)), [NotWarm]);
    assert_eq!(kinds(&warm, |_, evidence| evidence.cpu_ns = Some(700_000_000)), [FalseTime], "of four CPUs");
}
