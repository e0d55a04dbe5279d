//! Bounds of one-shot work.

use super::*;

/// The device's sequential maximum in large requests, for one thread: 1,600 MiB per second.
fn in_order() -> DeviceCeiling {
    DeviceCeiling {
        threads: 1,
        file_bytes: Bytes::mib(64),
        workload: Workload::SequentialRead,
        ..device(8, 1024, 1_600.0)
    }
}

fn scan(method: &str, activity: Activity) -> (Bound, Option<f64>) {
    let mut ceilings = ceilings();
    ceilings.add(in_order());
    let cell = honest::scan(method, Cold);
    (ceilings.bound(&cell, &activity), ceilings.share_of_bandwidth(&cell.conditions, &activity))
}

#[test]
fn a_scan_is_held_against_what_the_device_does_in_order() {
    let (bound, of_device) = scan("read", active(1_550.0, 1024.0));
    assert_eq!(share(bound), (BoundName::DeviceBandwidth, 0.969));
    assert_eq!(of_device.map(|share| (share * 1000.0).round()), Some(969.0));
    // Half of it, in requests of 128 KiB, and the CPU is not busy: it waits for each request.
    let (bound, of_device) = scan("mmap", active(6_400.0, 128.0));
    assert_eq!((bound.name, of_device), (BoundName::Unknown, Some(0.5)));
    let counting = Activity { cpu_share: Some(0.95), ..active(6_400.0, 128.0) };
    assert_eq!(scan("mmap", counting).0.name, BoundName::Cpu);
    let (bound, of_device) = scan("mmap:in-place", in_memory(4e9, 0.99, 0.0));
    assert_eq!((bound.name, of_device), (BoundName::Cpu, None));
}

#[test]
fn what_the_device_does_in_order_is_nothing_to_reads_at_random() {
    let mut ceilings = Ceilings { device: vec![in_order()], ..Ceilings::default() };
    let mut cell = honest::cell("uring:direct", AsIs);
    (cell.conditions.threads, cell.conditions.file_bytes) = (1, Bytes::mib(64));
    assert_eq!(ceilings.bound(&cell, &active(1_550.0, 1024.0)).name, BoundName::Unknown);
    assert_eq!(ceilings.device_iops(), None);
    assert_eq!(ceilings.device_bytes_per_second(), Some(1_600.0 * 1024.0 * KIB));
    ceilings.device[0].workload = Workload::RandomRead;
    assert_eq!(ceilings.bound(&cell, &active(1_550.0, 1024.0)).name, BoundName::DeviceBandwidth);
}

/// The bound of a fill whose stores run at 8 GB/s in memory.
fn written(cell: &Cell, activity: Activity) -> BoundName {
    let memory = CopyCeiling {
        conditions: honest::fill("anonymous", Cold).conditions,
        threads: 1,
        read_bytes: None,
        bytes_per_second: 8e9,
    };
    Ceilings { copy: vec![memory], ..ceilings() }.bound(cell, &activity).name
}

#[test]
fn stores_are_held_against_the_same_stores_in_memory() {
    let fill = honest::fill("mmap:populate-write", Cold);
    assert_eq!(written(&fill, in_memory(7.6e9, 1.0, 0.0)), BoundName::MemoryCopy);
    assert_eq!(written(&fill, in_memory(3e9, 0.98, 0.0)), BoundName::Cpu, "page faults");
    assert_eq!(written(&fill, in_memory(3e9, 0.4, 900.0)), BoundName::Waiting, "writeback");
    assert_eq!(written(&fill, in_memory(3e9, 0.4, 1.0)), BoundName::Unknown);
    let synced = honest::synced(honest::fill("mmap", Warm), "end");
    assert_eq!(written(&synced, in_memory(7.6e9, 1.0, 0.0)), BoundName::MemoryCopy);
    let append = honest::append("mmap", Cold);
    assert_eq!(written(&append, in_memory(7.6e9, 1.0, 0.0)), BoundName::Cpu, "other records");
    let direct = honest::fill("pwrite:direct+buffer=64KiB", Cold);
    assert_eq!(written(&direct, in_memory(7.6e9, 1.0, 0.0)), BoundName::Cpu, "the CPU copies nothing");
}

#[test]
fn only_reads_by_the_table_are_ceilings_of_a_device() {
    let cell = honest::scan("uring:direct+depth=8", AsIs);
    assert_eq!(device_ceiling(&cell, &active(100.0, 64.0)), None);
}

/// Scans of a cold file, each with the activity of its device, compared with ceilings that `read` may have exceeded.
fn held(read: Activity, other: Activity) -> [(BoundName, Option<f64>); 2] {
    let mut ceilings = ceilings();
    ceilings.add(in_order());
    let cell = honest::scan("read", Cold);
    ceilings.outrun =
        ceilings.times_beyond(&cell.conditions, &read).map(|_| cell.conditions).into_iter().collect();
    [("read", read), ("mmap", other)].map(|(method, activity)| {
        let cell = honest::scan(method, Cold);
        let share = ceilings.share_of_bandwidth(&cell.conditions, &activity);
        (ceilings.bound(&cell, &activity).name, share.map(|share| (share * 1000.0).round() / 1000.0))
    })
}

#[test]
fn a_device_ceiling_that_a_scan_outruns_explains_no_scan() {
    let other = active(1_550.0, 1024.0);
    let [read, mmap] = held(active(1_999.0, 1024.0), other);
    assert_eq!(read, (BoundName::DeviceBandwidth, Some(1.249)));
    assert_eq!(mmap, (BoundName::DeviceBandwidth, Some(0.969)));
    assert_eq!(held(active(2_432.0, 1024.0), other), [(BoundName::Unknown, None); 2]);
    // Nor by its requests, if these reach the device's measured rate at that size.
    let requests = active(2_432.0, 1024.0);
    assert_eq!(held(requests, active(5_900.0, 256.0)), [(BoundName::Unknown, None); 2]);
}

#[test]
fn an_outrun_ceiling_is_one_to_other_files_and_to_reads_at_random() {
    let mut ceilings = ceilings();
    ceilings.add(in_order());
    ceilings.add(DeviceCeiling { file_bytes: Bytes::mib(128), ..in_order() });
    ceilings.outrun = vec![honest::scan("read", Cold).conditions];
    let mut other = honest::scan("read", Cold);
    other.conditions.file_bytes = Bytes::mib(128);
    let activity = active(1_550.0, 1024.0);
    assert_eq!(ceilings.bound(&other, &activity).name, BoundName::DeviceBandwidth);
    assert_eq!(ceilings.bound(&honest::scan("mmap", Cold), &activity).name, BoundName::Unknown);
    let mut at_random = honest::cell("pread", Cold);
    (at_random.conditions.threads, at_random.conditions.file_bytes) = (1, Bytes::mib(64));
    ceilings.device = vec![DeviceCeiling { workload: Workload::RandomRead, ..in_order() }];
    assert_eq!(ceilings.bound(&at_random, &active(1_500.0, 1024.0)).name, BoundName::DeviceBandwidth);
}
