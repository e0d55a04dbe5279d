//! One constructed case for each bound, and cases that must not be mistaken for one.

mod one_shot;

use super::activity::{TimeShares, requests, time_shares};
use super::*;
use crate::judge::tests::words::limit;
use crate::proof::honest;
use pagewise_model::CacheState::{AsIs, Cold, Warm};
use pagewise_model::{Bytes, Evidence, GroupCounters, SyncCall, Work, Workload};
use proptest::prelude::*;

const KIB: f64 = 1024.0;

/// A deep or shallow queue of direct reads that was made to find the maximum.
fn device(depth: u32, kib: u64, requests_per_second: f64) -> DeviceCeiling {
    let issued_bytes = kib as f64 * KIB;
    DeviceCeiling {
        reached_by: format!("uring:direct+depth={depth}"),
        dedicated: true,
        sets_depth: true,
        threads: 2,
        file_bytes: Bytes::mib(256),
        workload: Workload::RandomRead,
        device_cap: None,
        cpus: None,
        depth,
        read_bytes: Some(Bytes::kib(kib)),
        issued_bytes,
        requests_per_second: Extent::exactly(requests_per_second),
        bytes_per_second: Extent::exactly(requests_per_second * issued_bytes),
        samples: 3,
    }
}

/// The same rates, reached by a method.
fn reached(method: &str, kib: u64, requests_per_second: f64) -> DeviceCeiling {
    DeviceCeiling {
        reached_by: method.to_string(),
        dedicated: false,
        sets_depth: false,
        ..device(1, kib, requests_per_second)
    }
}

fn copying(method: &str, bytes_per_second: f64) -> CopyCeiling {
    CopyCeiling {
        reached_by: method.to_string(),
        dedicated: method == "anonymous",
        conditions: honest::cell("anonymous", Cold).conditions,
        threads: 2,
        read_bytes: Some(Bytes::kib(16)),
        bytes_per_second: Extent::exactly(bytes_per_second),
        samples: 3,
    }
}

fn ceilings() -> Ceilings {
    Ceilings {
        device: vec![device(32, 4, 100_000.0), device(1, 4, 8_000.0), device(32, 1024, 1_000.0)],
        copy: vec![copying("anonymous", 8e9)],
        flushes: Vec::new(),
    }
}

/// Use of the time by threads that have a CPU whenever they want one.
fn time(cpu: f64) -> Option<TimeShares> {
    Some(TimeShares { cpu: Extent::exactly(cpu), wait: Extent::exactly(1.0 - cpu), ..TimeShares::default() })
}

/// A cell whose device did `requests` per second of `kib` each, all of them requested bytes.
fn active(requests: f64, kib: f64) -> Activity {
    Activity {
        requested_bytes_per_second: Extent::exactly(requests * kib * KIB),
        device_bytes_per_second: Some(Extent::exactly(requests * kib * KIB)),
        device_requests_per_second: Some(Extent::exactly(requests)),
        cpu_share: Some(0.1),
        ..Activity::default()
    }
}

fn in_memory(bytes_per_second: f64, cpu_share: f64) -> Activity {
    Activity {
        requested_bytes_per_second: Extent::exactly(bytes_per_second),
        device_bytes_per_second: Some(Extent::exactly(0.0)),
        device_requests_per_second: Some(Extent::exactly(0.0)),
        flushes_per_second: None,
        cpu_share: Some(cpu_share),
        time: time(cpu_share),
        knows_run_queue: true,
        writes_device: false,
    }
}

/// Name of a bound if it has one, with the share.
fn named(found: &Bound) -> (BoundName, Option<f64>) {
    let share = found.of_ceiling.map(|share| (share * 1000.0).round() / 1000.0);
    match (found.bound, found.bound_certainty) {
        (Some(name), Some(Certainty::Named)) => (name, share),
        _ => (BoundName::Unknown, None),
    }
}

fn bound(method: &str, activity: Activity) -> (BoundName, Option<f64>) {
    named(&ceilings().bound(&honest::cell(method, Warm), &activity))
}

fn text(method: &str, activity: Activity) -> String {
    limit::text(&ceilings().bound(&honest::cell(method, Warm), &activity)).expect("a bound")
}

#[test]
fn syncs_are_a_share_of_the_flushes_only_if_they_flush() {
    let synced = |call: SyncCall| {
        let mut cell = honest::synced(honest::append("pwrite", Warm), "commit");
        if let Work::Append(append) = &mut cell.conditions.work {
            append.sync_call = Some(call);
        }
        cell
    };
    // 9,000 syncs of a record of 100 B, where the device flushes 10,000 blocks.
    let activity =
        Activity { flushes_per_second: Some(Extent::exactly(9_000.0)), ..in_memory(900_000.0, 0.1) };
    let made_for_it = FlushCeiling {
        reached_by: "pwrite:direct+buffer=4KiB".to_string(),
        dedicated: true,
        file_bytes: synced(SyncCall::Fdatasync).conditions.file_bytes,
        device_cap: None,
        bytes_per_sync: 4096.0,
        per_second: Extent::exactly(10_000.0),
        samples: 3,
    };
    let ceilings = Ceilings { flushes: vec![made_for_it], ..ceilings() };
    let found = |call: SyncCall| named(&ceilings.bound(&synced(call), &activity)).0;
    assert_eq!(found(SyncCall::Fdatasync), BoundName::DeviceFlush);
    assert_eq!(found(SyncCall::ODsync), BoundName::DeviceFlush);
    assert_ne!(found(SyncCall::SyncFileRange), BoundName::DeviceFlush);
}

#[test]
fn requests_of_the_device_are_the_bound() {
    assert_eq!(bound("uring", active(90_000.0, 4.0)), (BoundName::DeviceIops, Some(0.9)));
}

#[test]
fn the_ceiling_lies_between_measured_sizes() {
    // 64 KiB lies half-way between 4 KiB and 1 MiB on a logarithmic scale: the root of 100,000 x
    // 1,000.
    assert_eq!(bound("uring", active(9_000.0, 64.0)), (BoundName::DeviceIops, Some(0.9)));
    assert_eq!(bound("uring", active(90_000.0, 2.0)), (BoundName::DeviceIops, Some(0.9)));
}

#[test]
fn bytes_of_the_device_are_the_bound() {
    assert_eq!(bound("mmap", active(950.0, 1024.0)), (BoundName::DeviceBandwidth, Some(0.95)));
    // Readahead: the device is busy with bytes that nobody requested.
    let readahead = Activity { requested_bytes_per_second: Extent::exactly(3e6), ..active(950.0, 1024.0) };
    assert_eq!(bound("mmap", readahead).0, BoundName::DeviceBandwidth);
}

#[test]
fn no_device_does_more_than_its_bandwidth() {
    let mut ceilings = ceilings();
    assert_eq!(ceilings.device_bytes_per_second(), Some(1_000.0 * 1024.0 * KIB));
    ceilings.add(device(32, 64, 20_000.0));
    assert_eq!(ceilings.device_bytes_per_second(), Some(20_000.0 * 64.0 * KIB));
    ceilings.device.retain(|ceiling| ceiling.read_bytes != Some(Bytes::mib(1)));
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
    assert_eq!(bound("pread:direct", active(8_400.0, 4.0)), (BoundName::QueueDepth, Some(1.0)));
    assert_eq!(bound("uring:direct+depth=4", active(30_000.0, 4.0)), (BoundName::QueueDepth, Some(0.938)));
}

#[test]
fn copying_is_the_bound() {
    assert_eq!(bound("pread", in_memory(7.6e9, 1.0)), (BoundName::MemoryCopy, Some(0.95)));
    assert_eq!(bound("mmap:in-place", in_memory(7.6e9, 1.0)).0, BoundName::Cpu, "nothing is copied");
}

#[test]
fn the_cpu_is_the_bound() {
    assert_eq!(bound("pread", in_memory(4e9, 0.97)), (BoundName::Cpu, Some(0.97)));
}

#[test]
fn what_is_waited_for_has_a_name() {
    let waiting = |activity: Activity| Activity { time: time(0.1), knows_run_queue: true, ..activity };
    let slow = || waiting(active(300.0, 64.0));
    assert_eq!(bound("mmap", in_memory(4e9, 0.2)), (BoundName::Waiting, Some(0.8)));
    assert_eq!(bound("pread", slow()), (BoundName::Readahead, Some(0.9)));
    assert_eq!(bound("mmap:prefetch", slow()).0, BoundName::Readahead);
    assert_eq!(bound("mmap:random", slow()).0, BoundName::QueueDepth, "one fault at a time");
    assert_eq!(bound("pread:direct", slow()).0, BoundName::QueueDepth);
    assert_eq!(bound("uring:direct+depth=32", slow()).0, BoundName::DeviceWait);
    assert_eq!(bound("mine/get", slow()).0, BoundName::DeviceWait);
    let without_a_cpu =
        TimeShares { cpu: Extent::exactly(0.1), run_queue: Extent::exactly(0.9), ..TimeShares::default() };
    let queued = Activity { time: Some(without_a_cpu), ..in_memory(4e9, 0.1) };
    assert_eq!(bound("mmap", queued), (BoundName::RunQueue, Some(0.9)));
}

#[test]
fn what_one_resource_does_not_explain_lies_between_two() {
    assert_eq!(text("mmap", in_memory(4e9, 0.4)), "between waiting 60 % and cpu 40 %");
    let reading = Activity { time: time(0.45), knows_run_queue: true, ..active(30_000.0, 4.0) };
    assert_eq!(text("pread", reading), "between readahead 55 % and cpu 45 %");
    let parts = TimeShares {
        cpu: Extent::exactly(0.3),
        run_queue: Extent::exactly(0.5),
        wait: Extent::exactly(0.2),
        ..TimeShares::default()
    };
    let reading = Activity { time: Some(parts), ..reading };
    assert_eq!(text("pread", reading), "between run-queue 50 % and cpu 30 %");
}

#[test]
fn a_share_whose_lower_end_is_low_is_about_that() {
    let cpu = |low: f64| TimeShares {
        cpu: Extent { low, median: 0.9, high: 1.0 },
        wait: Extent::exactly(0.1),
        ..TimeShares::default()
    };
    let with = |low| Activity { time: Some(cpu(low)), ..in_memory(4e9, 0.9) };
    assert_eq!(text("pread", with(0.76)), "cpu 90 %");
    assert_eq!(text("pread", with(0.75)), "about cpu 90 %");
    let found = ceilings().bound(&honest::cell("pread", Warm), &with(0.75));
    assert_eq!((found.of_ceiling_low, found.of_ceiling_high), (Some(0.75), Some(1.0)));
    assert_eq!(text("pread", in_memory(7.99e9, 0.9)), "memory-copy, at its ceiling");
}

#[test]
fn what_nothing_explains_is_unknown() {
    assert_eq!(text("pread", active(30_000.0, 4.0)), "unknown");
    let nothing = Activity { requested_bytes_per_second: Extent::exactly(1e9), ..Activity::default() };
    assert_eq!(text("pread", nothing), "unknown");
    // Neither runnable time nor the device's bytes are known.
    let idle = in_memory(4e9, 0.1);
    assert_eq!(text("pread", Activity { knows_run_queue: false, ..idle }), "unknown");
    assert_eq!(text("pread", Activity { device_bytes_per_second: None, ..idle }), "unknown");
    let busy = Activity { knows_run_queue: false, ..in_memory(4e9, 0.9) };
    assert_eq!(text("pread", busy), "cpu 90 %");
}

#[test]
fn ceilings_of_other_threads_say_nothing() {
    let mut cell = honest::cell("uring", Warm);
    cell.conditions.threads = 1;
    assert_eq!(ceilings().bound(&cell, &active(90_000.0, 4.0)).bound, Some(BoundName::Unknown));
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
    let (name, share) = named(&bound);
    (name, share.expect("a share"))
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
    assert_eq!(beneath_the_free_one.bound, Some(BoundName::Unknown), "another cap is another device");
    let not_measured = ceilings.bound(&capped("pread:direct", "io2-20k"), &active(1_960.0, 16.0));
    assert_eq!(not_measured.bound, Some(BoundName::Unknown));
}

#[test]
fn a_cap_of_bytes_is_the_ceiling_of_its_cells() {
    let ceilings = capped_ceilings();
    let cell = capped("mmap", "read-bandwidth=50MiB/s");
    // 49 MiB per second in requests of 1 MiB, for 2 MiB per second requested.
    let readahead =
        Activity { requested_bytes_per_second: Extent::exactly(2.0 * 1024.0 * KIB), ..active(49.0, 1024.0) };
    assert_eq!(share(ceilings.bound(&cell, &readahead)), (BoundName::DeviceBandwidth, 0.98));
}

#[test]
fn a_memory_limit_is_nothing_to_a_device_and_cpus_are() {
    let mut limited = honest::limited("pread:random", Warm, 128);
    let bound = ceilings().bound(&limited, &active(90_000.0, 4.0));
    assert_eq!(share(bound), (BoundName::DeviceIops, 0.9));
    limited.conditions.host_settings.cpus = Some("0".parse().expect("a CPU"));
    assert_eq!(ceilings().bound(&limited, &active(90_000.0, 4.0)).bound, Some(BoundName::Unknown));
}

#[test]
fn copying_is_alike_wherever_the_data_lie_in_the_file() {
    let bound = |change: &dyn Fn(&mut Conditions), rate: f64| {
        let mut cell = honest::cell("pread", Warm);
        change(&mut cell.conditions);
        named(&ceilings().bound(&cell, &in_memory(rate, 1.0))).0
    };
    let under_a_limit = |conditions: &mut Conditions| {
        conditions.host_settings.memory_limit_bytes = Some(Bytes::mib(320));
        conditions.span_bytes = Bytes::mib(64);
        conditions.work.reads_mut().expect("reads").skew = "zipf:0.99".parse().expect("a skew");
    };
    assert_eq!(bound(&under_a_limit, 7.6e9), BoundName::MemoryCopy);
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
fn a_method_that_reached_more_is_the_ceiling() {
    let mut ceilings = ceilings();
    ceilings.add(reached("mmap", 1024, 1_220.0));
    let bound = |method: &str, requests| {
        let found = ceilings.bound(&honest::cell(method, Warm), &active(requests, 1024.0));
        (named(&found).1, found.ceiling_reached_by)
    };
    assert_eq!(bound("mmap", 1_220.0), (Some(1.0), Some("mmap".to_string())));
    assert_eq!(bound("read", 1_000.0), (Some(0.82), Some("mmap".to_string())));
    assert_eq!(ceilings.device_bytes_per_second(), Some(1_220.0 * 1024.0 * KIB));
    let (shown, _, _) = ceilings.clone().shown();
    assert_eq!(shown.iter().filter(|ceiling| !ceiling.dedicated).count(), 1);
    // As many requests of 4 KiB can be done as of 64 KiB.
    ceilings.add(reached("pread", 64, 200_000.0));
    let top = ceilings.iops(&honest::cell("uring:direct", Warm).conditions, 4.0 * KIB).expect("known");
    assert_eq!((top.low, top.reached_by, top.is_found), (200_000.0, "pread", false));
}

#[test]
fn large_requests_are_a_matter_of_bandwidth() {
    let mut ceilings = ceilings();
    let of = |ceilings: &Ceilings, kib: f64| {
        ceilings.iops(&honest::cell("mmap", Warm).conditions, kib * KIB).is_some()
    };
    assert_eq!([64.0, 255.0, 256.0, 700.0].map(|kib| of(&ceilings, kib)), [true, true, false, false]);
    // Where no large read was measured, requests are all that is known.
    ceilings.device.retain(|ceiling| ceiling.read_bytes != Some(Bytes::mib(1)));
    assert!(of(&ceilings, 700.0));
}

#[test]
fn a_maximum_far_above_what_was_found_is_a_share_and_no_bound() {
    let mut ceilings = ceilings();
    ceilings.add(reached("mmap", 1024, 1_400.0));
    let cell = honest::cell("mmap", Warm);
    let activity = Activity { time: time(0.1), knows_run_queue: true, ..active(1_400.0, 1024.0) };
    let share = ceilings.share_of_bandwidth(&cell.conditions, &activity).map(|share| share.median);
    assert_eq!((share, named(&ceilings.bound(&cell, &activity)).0), (Some(1.0), BoundName::Readahead));
}

#[test]
fn a_scattered_ceiling_does_not_make_everything_reach_it() {
    let mut ceilings = ceilings();
    ceilings.copy[0].bytes_per_second = Extent { low: 0.5e9, median: 8e9, high: 9e9 };
    let slow = Activity {
        requested_bytes_per_second: Extent { low: 0.4e9, median: 1e9, high: 2e9 },
        ..in_memory(1e9, 0.9)
    };
    assert_eq!(named(&ceilings.bound(&honest::cell("mmap", Warm), &slow)).0, BoundName::Cpu);
}

#[test]
fn without_a_cell_made_for_it_no_method_is_its_own_ceiling() {
    let alone = Ceilings {
        device: vec![reached("mmap", 1024, 1_220.0)],
        copy: vec![copying("mmap", 8e9)],
        flushes: Vec::new(),
    };
    let cell = honest::cell("mmap", Warm);
    assert_eq!(alone.bound(&cell, &active(1_220.0, 1024.0)).bound, Some(BoundName::Unknown));
    assert_eq!(alone.share_of_bandwidth(&cell.conditions, &active(1_220.0, 1024.0)), None);
    assert_eq!(named(&alone.bound(&cell, &in_memory(8e9, 1.0))).0, BoundName::Cpu);
    assert_eq!((alone.device_iops(), alone.copy_bytes_per_second()), (None, None));
}

#[test]
fn a_copy_that_was_faster_is_the_ceiling_of_the_same_data() {
    let mut ceilings = ceilings();
    ceilings.copy.push(copying("mmap", 10e9));
    let share = |ceilings: &Ceilings, rate| {
        named(&ceilings.bound(&honest::cell("mmap", Warm), &in_memory(rate, 1.0)))
    };
    assert_eq!(share(&ceilings, 8e9), (BoundName::MemoryCopy, Some(0.8)));
    assert_eq!(share(&ceilings, 10e9), (BoundName::MemoryCopy, Some(1.0)));
    // Data that are copied faster than those of the ceiling, which are others, are in a cache of
    // the CPU.
    for copy in &mut ceilings.copy {
        let part = if copy.dedicated { 256 } else { 64 };
        copy.conditions.span_bytes = Bytes::mib(part);
    }
    let mut small = honest::cell("mmap", Warm);
    small.conditions.span_bytes = Bytes::mib(64);
    assert_eq!(named(&ceilings.bound(&small, &in_memory(10e9, 1.0))).0, BoundName::Cpu);
    ceilings.copy[1].bytes_per_second = Extent::exactly(7e9);
    assert_eq!(named(&ceilings.bound(&small, &in_memory(7e9, 1.0))), (BoundName::MemoryCopy, Some(0.875)));
}

#[test]
fn too_few_rounds_end_at_their_smallest_and_largest() {
    assert_eq!(Extent::of(&[3.0, 1.0, 2.0]), Some(Extent { low: 1.0, median: 2.0, high: 3.0 }));
    assert_eq!(Extent::of(&[7.0]), Some(Extent::exactly(7.0)));
    assert_eq!(Extent::of(&[]), None);
    let many = Extent::of(&(0..20).map(f64::from).collect::<Vec<_>>()).expect("values");
    assert!(many.low > 0.0 && many.high < 19.0);
}

#[test]
fn how_deep_an_unknown_way_queues_is_not_said() {
    // The rate of two threads with one read in flight each.
    let alone = active(8_000.0, 4.0);
    assert_eq!(bound("pread", alone).0, BoundName::QueueDepth);
    assert_eq!(bound("mine/lsm-get", alone).0, BoundName::Unknown);
    assert_eq!(bound("mine/lsm-get", active(95_000.0, 4.0)).0, BoundName::DeviceIops);
    assert_eq!(bound("mine/lsm-get", in_memory(7.6e9, 0.9)).0, BoundName::MemoryCopy);
}

/// 0.038 times 1.842 over 1.842 is more than 0.038 in floating point.
#[test]
fn no_part_of_the_time_is_less_than_nothing() {
    let evidence =
        Evidence { wall_ns: 1000, cpu_ns: Some(962), run_queue_ns: Some(1842), ..Evidence::default() };
    let shares = time_shares(&honest::cell("pread", Warm), 1, &honest::measurement(), &evidence);
    assert!(shares.expect("counters").iter().all(|share| *share >= 0.0), "{shares:?}");
}

#[test]
fn heartbeats_are_no_waits() {
    let switches = |heartbeats| Evidence { voluntary_switches: Some(900), heartbeats, ..Evidence::default() };
    assert_eq!(own_waits(&switches(Vec::new())), Some(900));
    assert_eq!(own_waits(&switches(vec![pagewise_model::Heartbeat::default()])), None);
}

/// Rates of a cell over its rounds.
fn rates() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(1.0f64..1e6, 1..12)
}

proptest! {
    #[test]
    fn no_cell_exceeds_its_ceiling(cells in prop::collection::vec((rates(), 2u32..11, 0usize..6), 1..8)) {
        const METHODS: [&str; 6] =
            ["mmap", "mmap:random", "pread:direct", "uring:direct+depth=4", "pread", "uring:direct"];
        let found: Vec<(Cell, Activity)> = cells
            .iter()
            .map(|(rates, size, method)| {
                let kib = f64::from(1u32 << size);
                let requests = Extent::of(rates);
                let bytes = Extent::of(&rates.iter().map(|rate| rate * kib * KIB).collect::<Vec<_>>());
                let activity = Activity {
                    requested_bytes_per_second: bytes.expect("rates"),
                    device_bytes_per_second: bytes,
                    device_requests_per_second: requests,
                    ..Activity::default()
                };
                (honest::cell(METHODS[*method], Cold), activity)
            })
            .collect();
        let mut ceilings = ceilings();
        for (cell, activity) in &found {
            let ceiling = ceilings::DeviceCeiling::reached_by_cell(cell, activity, 3);
            ceiling.into_iter().for_each(|ceiling| ceilings.add(ceiling));
        }
        for (cell, activity) in &found {
            let share = ceilings.share_of_bandwidth(&cell.conditions, activity).expect("large reads are known");
            prop_assert!(share.low <= share.median && share.median <= share.high && share.high <= 1.0);
            let bandwidth = ceilings.bandwidth(&cell.conditions).expect("known");
            let bytes = activity.device_bytes_per_second.expect("bytes");
            prop_assert!(bytes.low <= bandwidth.low && bytes.median <= bandwidth.median);
            let iops = ceilings.iops(&cell.conditions, activity.issued_bytes().expect("a size"));
            let requests = activity.device_requests_per_second.expect("requests");
            prop_assert!(iops.is_none_or(|iops| requests.low <= iops.low && requests.median <= iops.median));
            let bound = ceilings.bound(cell, activity);
            prop_assert!(bound.of_ceiling.is_none_or(|share| (0.0..=1.0).contains(&share)));
        }
    }
}
