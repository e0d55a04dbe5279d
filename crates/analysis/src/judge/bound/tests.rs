//! One constructed case for each bound, and cases that must not be mistaken for one.

mod one_shot;

use super::*;
use crate::proof::honest;
use pagewise_model::CacheState::{AsIs, Cold, Warm};
use pagewise_model::GroupCounters;

const KIB: f64 = 1024.0;

fn device(depth: u32, kib: u64, requests_per_second: f64) -> DeviceCeiling {
    let issued_bytes = kib as f64 * KIB;
    DeviceCeiling {
        threads: 2,
        file_bytes: Bytes::mib(256),
        workload: Workload::RandomRead,
        device_cap: None,
        cpus: None,
        depth,
        read_bytes: Bytes::kib(kib),
        issued_bytes,
        requests_per_second,
        bytes_per_second: requests_per_second * issued_bytes,
    }
}

fn ceilings() -> Ceilings {
    Ceilings {
        device: vec![device(32, 4, 100_000.0), device(1, 4, 8_000.0), device(32, 1024, 1_000.0)],
        copy: vec![CopyCeiling {
            conditions: honest::cell("anonymous", Cold).conditions,
            threads: 2,
            read_bytes: Some(Bytes::kib(16)),
            bytes_per_second: 8e9,
        }],
        outrun: Vec::new(),
    }
}

/// A cell whose device did `requests` per second of `kib` each, all of them requested bytes.
fn active(requests: f64, kib: f64) -> Activity {
    Activity {
        requested_bytes_per_second: requests * kib * KIB,
        device_bytes_per_second: Some(requests * kib * KIB),
        device_requests_per_second: Some(requests),
        cpu_share: Some(0.1),
        waits_per_second: Some(5000.0),
        stalled_share: None,
    }
}

fn in_memory(bytes_per_second: f64, cpu_share: f64, waits: f64) -> Activity {
    Activity {
        requested_bytes_per_second: bytes_per_second,
        device_bytes_per_second: Some(0.0),
        device_requests_per_second: Some(0.0),
        cpu_share: Some(cpu_share),
        waits_per_second: Some(waits),
        stalled_share: None,
    }
}

fn bound(method: &str, activity: Activity) -> (BoundName, Option<f64>) {
    let found = ceilings().bound(&honest::cell(method, Warm), &activity);
    (found.name, found.of_ceiling.map(|share| (share * 1000.0).round() / 1000.0))
}

#[test]
fn requests_of_the_device_are_the_bound() {
    assert_eq!(bound("uring", active(90_000.0, 4.0)), (BoundName::DeviceIops, Some(0.9)));
}

#[test]
fn the_ceiling_lies_between_measured_sizes() {
    // 64 KiB lies half-way between 4 KiB and 1 MiB on a logarithmic scale: the root of 100,000 x 1,000.
    assert_eq!(bound("uring", active(9_000.0, 64.0)), (BoundName::DeviceIops, Some(0.9)));
    assert_eq!(bound("uring", active(90_000.0, 2.0)), (BoundName::DeviceIops, Some(0.9)));
}

#[test]
fn bytes_of_the_device_are_the_bound() {
    assert_eq!(bound("mmap", active(950.0, 1024.0)), (BoundName::DeviceBandwidth, Some(0.95)));
    // Readahead: the device is busy with bytes that nobody requested.
    let readahead = Activity { requested_bytes_per_second: 3e6, ..active(950.0, 1024.0) };
    assert_eq!(bound("mmap", readahead).0, BoundName::DeviceBandwidth);
}

#[test]
fn no_device_does_more_than_its_bandwidth() {
    let mut ceilings = ceilings();
    assert_eq!(ceilings.device_bytes_per_second(), Some(1_000.0 * 1024.0 * KIB));
    ceilings.add(device(32, 64, 20_000.0));
    assert_eq!(ceilings.device_bytes_per_second(), Some(20_000.0 * 64.0 * KIB));
    ceilings.device.retain(|ceiling| ceiling.read_bytes.0 < 1 << 20);
    assert_eq!(ceilings.device_bytes_per_second(), None, "no large read was measured");
}

#[test]
fn the_faster_of_two_equal_ceilings_counts() {
    let mut ceilings = ceilings();
    ceilings.add(device(32, 4, 99_000.0));
    ceilings.add(device(32, 4, 101_000.0));
    assert_eq!((ceilings.device.len(), ceilings.device_iops()), (3, Some(101_000.0)));
}

#[test]
fn reads_in_flight_are_the_bound() {
    // Two threads did 8,000 requests with one in flight each.
    assert_eq!(bound("pread:direct", active(8_400.0, 4.0)), (BoundName::QueueDepth, Some(1.05)));
    assert_eq!(bound("uring:direct+depth=4", active(30_000.0, 4.0)), (BoundName::QueueDepth, Some(0.938)));
}

#[test]
fn copying_is_the_bound() {
    assert_eq!(bound("pread", in_memory(7.6e9, 1.0, 0.0)), (BoundName::MemoryCopy, Some(0.95)));
    assert_eq!(bound("mmap:in-place", in_memory(7.6e9, 1.0, 0.0)).0, BoundName::Cpu, "nothing is copied");
}

#[test]
fn the_cpu_is_the_bound() {
    assert_eq!(bound("pread", in_memory(4e9, 0.97, 0.0)), (BoundName::Cpu, Some(0.97)));
}

#[test]
fn something_else_is_waited_for() {
    assert_eq!(bound("mmap", in_memory(4e9, 0.4, 9000.0)), (BoundName::Waiting, None));
}

#[test]
fn what_nothing_explains_is_unknown() {
    assert_eq!(bound("mmap", in_memory(4e9, 0.4, 1.0)), (BoundName::Unknown, None));
    assert_eq!(bound("pread", active(30_000.0, 4.0)), (BoundName::Unknown, None));
    let nothing = Activity { requested_bytes_per_second: 1e9, ..Activity::default() };
    assert_eq!(bound("pread", nothing), (BoundName::Unknown, None));
}

#[test]
fn ceilings_of_other_threads_say_nothing() {
    let mut cell = honest::cell("uring", Warm);
    cell.conditions.threads = 1;
    assert_eq!(ceilings().bound(&cell, &active(90_000.0, 4.0)).name, BoundName::Unknown);
}

#[test]
fn requests_of_others_are_not_counted() {
    let cell = honest::cell("uring:direct", Warm);
    let (measurement, mut evidence) = (honest::measurement(), honest::evidence(&cell));
    evidence.device_read_requests = Some(9999);
    assert_eq!(requests(&cell, &measurement, &evidence), Some(9999));
    evidence.device_other_bytes = Some(evidence.requested_bytes);
    assert_eq!(requests(&cell, &measurement, &evidence), Some(160 * 16), "one for each direct read");
    assert_eq!(requests(&honest::cell("pread", Cold), &measurement, &evidence), None);
    evidence.group = Some(GroupCounters { device_read_requests: Some(7), ..GroupCounters::default() });
    assert_eq!(requests(&honest::cell("pread", Cold), &measurement, &evidence), Some(7), "the group's own");
}

const CAP: &str = "read-iops=2000";

/// A cell under `cap`.
fn capped(method: &str, cap: &str) -> Cell {
    let mut cell = honest::cell(method, AsIs);
    cell.conditions.host_settings.device_cap = Some(cap.parse().expect("a cap"));
    cell
}

/// The same device without a cap and under one of 2,000 reads or 50 MiB per second.
fn capped_ceilings() -> Ceilings {
    let mut ceilings = ceilings();
    let under = |cap: &str, ceiling: DeviceCeiling| DeviceCeiling {
        device_cap: Some(cap.parse().expect("a cap")),
        ..ceiling
    };
    for (depth, kib) in [(32, 16), (32, 4), (32, 1024)] {
        ceilings.add(under(CAP, device(depth, kib, 2_000.0)));
    }
    ceilings.add(under(CAP, device(1, 16, 1_990.0)));
    for (depth, kib, requests) in [(32, 16, 3_200.0), (32, 4, 12_800.0), (32, 1024, 50.0)] {
        ceilings.add(under("read-bandwidth=50MiB/s", device(depth, kib, requests)));
    }
    ceilings
}

fn share(bound: Bound) -> (BoundName, f64) {
    (bound.name, (bound.of_ceiling.expect("a share") * 1000.0).round() / 1000.0)
}

#[test]
fn a_cap_of_requests_is_the_ceiling_of_its_cells() {
    let ceilings = capped_ceilings();
    let direct = ceilings.bound(&capped("pread:direct", CAP), &active(1_960.0, 16.0));
    assert_eq!(share(direct), (BoundName::DeviceIops, 0.98));
    // 500 operations per second, of four faults of a page each.
    let faults = ceilings.bound(&capped("mmap:random", CAP), &active(500.0 * 4.0, 4.0));
    assert_eq!(share(faults), (BoundName::DeviceIops, 1.0));
    let free = ceilings.bound(&honest::cell("uring:direct", AsIs), &active(90_000.0, 4.0));
    assert_eq!(share(free), (BoundName::DeviceIops, 0.9));
    let beneath_the_free_one = ceilings.bound(&honest::cell("pread:direct", AsIs), &active(1_960.0, 16.0));
    assert_eq!(beneath_the_free_one.name, BoundName::Unknown, "another cap is another device");
    let not_measured = ceilings.bound(&capped("pread:direct", "io2-20k"), &active(1_960.0, 16.0));
    assert_eq!(not_measured.name, BoundName::Unknown);
}

#[test]
fn a_cap_of_bytes_is_the_ceiling_of_its_cells() {
    let ceilings = capped_ceilings();
    let cell = capped("mmap", "read-bandwidth=50MiB/s");
    // 49 MiB per second in requests of 1 MiB, for 2 MiB per second requested.
    let readahead = Activity { requested_bytes_per_second: 2.0 * 1024.0 * KIB, ..active(49.0, 1024.0) };
    assert_eq!(share(ceilings.bound(&cell, &readahead)), (BoundName::DeviceBandwidth, 0.98));
}

#[test]
fn a_memory_limit_is_nothing_to_a_device_and_cpus_are() {
    let mut limited = honest::limited("pread:random", Warm, 128);
    let bound = ceilings().bound(&limited, &active(90_000.0, 4.0));
    assert_eq!(share(bound), (BoundName::DeviceIops, 0.9));
    limited.conditions.host_settings.cpus = Some("0".parse().expect("a CPU"));
    assert_eq!(ceilings().bound(&limited, &active(90_000.0, 4.0)).name, BoundName::Unknown);
}

#[test]
fn copying_is_alike_wherever_the_data_lie_in_the_file() {
    let bound = |change: &dyn Fn(&mut Conditions), rate: f64| {
        let mut cell = honest::cell("pread", Warm);
        change(&mut cell.conditions);
        ceilings().bound(&cell, &in_memory(rate, 1.0, 0.0)).name
    };
    let under_a_limit = |conditions: &mut Conditions| {
        conditions.host_settings.memory_limit_bytes = Some(Bytes::mib(320));
        conditions.span_bytes = Bytes::mib(64);
        conditions.work.reads_mut().expect("reads").skew = "zipf:0.99".parse().expect("a skew");
    };
    assert_eq!(bound(&under_a_limit, 7.6e9), BoundName::MemoryCopy);
    assert_eq!(bound(&under_a_limit, 12e9), BoundName::Cpu, "so fast it is only in a cache of the CPU");
    let smaller = |conditions: &mut Conditions| {
        conditions.work.reads_mut().expect("reads").read_bytes = Bytes::kib(4);
    };
    let closer = |conditions: &mut Conditions| {
        conditions.work.reads_mut().expect("reads").align_bytes = Bytes::kib(4);
    };
    assert_eq!(bound(&smaller, 7.6e9), BoundName::Cpu);
    assert_eq!(bound(&closer, 7.6e9), BoundName::Cpu);
    let elsewhere = |conditions: &mut Conditions| {
        conditions.host_settings.numa = Some(pagewise_model::Numa::Other);
    };
    assert_eq!(bound(&elsewhere, 7.6e9), BoundName::Cpu);
}

#[test]
fn a_host_that_waits_for_memory_explains_a_cell() {
    let stalled = Activity { stalled_share: Some(0.6), ..in_memory(4e9, 0.4, 1.0) };
    assert_eq!(bound("mmap", stalled), (BoundName::Waiting, None));
    let busy = Activity { stalled_share: Some(0.6), ..in_memory(4e9, 0.95, 1.0) };
    assert_eq!(bound("mmap", busy).0, BoundName::Cpu);
    let little = Activity { stalled_share: Some(0.1), ..in_memory(4e9, 0.4, 1.0) };
    assert_eq!(bound("mmap", little), (BoundName::Unknown, None));
}

#[test]
fn a_device_that_did_far_more_was_not_limited_by_its_ceiling() {
    assert_eq!(bound("uring", active(124_000.0, 4.0)), (BoundName::DeviceIops, Some(1.24)));
    assert_eq!(bound("uring", active(126_000.0, 4.0)).0, BoundName::Unknown);
    assert_eq!(bound("uring", active(1_240.0, 1024.0)), (BoundName::DeviceBandwidth, Some(1.24)));
    assert_eq!(bound("uring", active(1_260.0, 1024.0)).0, BoundName::Unknown);
}

#[test]
fn how_deep_an_unknown_way_queues_is_not_told() {
    // The rate of two threads with one read in flight each.
    let alone = active(8_000.0, 4.0);
    assert_eq!(bound("pread", alone).0, BoundName::QueueDepth);
    assert_eq!(bound("mine/lsm-get", alone).0, BoundName::Unknown);
    assert_eq!(bound("mine/lsm-get", active(95_000.0, 4.0)).0, BoundName::DeviceIops);
    assert_eq!(bound("mine/lsm-get", in_memory(7.6e9, 0.9, 0.0)).0, BoundName::MemoryCopy);
}

#[test]
fn heartbeats_are_no_waits() {
    let switches = |heartbeats| Evidence { voluntary_switches: Some(900), heartbeats, ..Evidence::default() };
    assert_eq!(own_waits(&switches(Vec::new())), Some(900));
    assert_eq!(own_waits(&switches(vec![pagewise_model::Heartbeat::default()])), None);
}
