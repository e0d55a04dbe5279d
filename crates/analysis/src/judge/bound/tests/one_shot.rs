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
    let share = ceilings.share_of_bandwidth(&cell.conditions, &activity).map(|share| share.median);
    (ceilings.bound(&cell, &activity), share)
}

#[test]
fn a_scan_is_held_against_what_the_device_does_in_order() {
    let (bound, of_device) = scan("read", active(1_550.0, 1024.0));
    assert_eq!(share(bound), (BoundName::DeviceBandwidth, 0.969));
    assert_eq!(of_device.map(|share| (share * 1000.0).round()), Some(969.0));
    // Half of it, in requests of 128 KiB, and the CPU is not busy: it waits for readahead.
    let with = |cpu| Activity { time: time(cpu), knows_run_queue: true, ..active(6_400.0, 128.0) };
    let (bound, of_device) = scan("mmap", with(0.1));
    assert_eq!((named(&bound).0, of_device), (BoundName::Readahead, Some(0.5)));
    assert_eq!(named(&scan("mmap", with(0.95)).0).0, BoundName::Cpu);
    let (bound, of_device) = scan("mmap:in-place", in_memory(4e9, 0.99));
    assert_eq!((named(&bound).0, of_device), (BoundName::Cpu, None));
}

#[test]
fn what_the_device_does_in_order_is_nothing_to_reads_at_random() {
    let mut ceilings = Ceilings { device: vec![in_order()], ..Ceilings::default() };
    let mut cell = honest::cell("uring:direct", AsIs);
    (cell.conditions.threads, cell.conditions.file_bytes) = (1, Bytes::mib(64));
    assert_eq!(ceilings.bound(&cell, &active(1_550.0, 1024.0)).bound, Some(BoundName::Unknown));
    assert_eq!(ceilings.device_iops(), None);
    assert_eq!(ceilings.device_bytes_per_second(), Some(1_600.0 * 1024.0 * KIB));
    ceilings.device[0].workload = Workload::RandomRead;
    assert_eq!(named(&ceilings.bound(&cell, &active(1_550.0, 1024.0))).0, BoundName::DeviceBandwidth);
}

/// The bound of a fill whose stores run at 8 GB/s in memory.
fn written(cell: &Cell, activity: Activity) -> BoundName {
    let memory = CopyCeiling {
        conditions: honest::fill("anonymous", Cold).conditions,
        threads: 1,
        read_bytes: None,
        ..copying("anonymous", 8e9)
    };
    named(&Ceilings { copy: vec![memory], ..ceilings() }.bound(cell, &activity)).0
}

#[test]
fn stores_are_held_against_the_same_stores_in_memory() {
    let fill = honest::fill("mmap:populate-write", Cold);
    assert_eq!(written(&fill, in_memory(7.6e9, 1.0)), BoundName::MemoryCopy);
    assert_eq!(written(&fill, in_memory(3e9, 0.98)), BoundName::Cpu, "page faults");
    assert_eq!(written(&fill, in_memory(3e9, 0.2)), BoundName::Waiting);
    let synced = honest::synced(honest::fill("mmap", Warm), "end");
    assert_eq!(written(&synced, in_memory(7.6e9, 1.0)), BoundName::MemoryCopy);
    let append = honest::append("mmap", Cold);
    assert_eq!(written(&append, in_memory(7.6e9, 1.0)), BoundName::Cpu, "other records");
    let direct = honest::fill("pwrite:direct+buffer=64KiB", Cold);
    assert_eq!(written(&direct, in_memory(7.6e9, 1.0)), BoundName::Cpu, "the CPU copies nothing");
}

#[test]
fn waits_of_writes_have_names_too() {
    let fill = honest::fill("mmap", Cold);
    let writing = Activity { writes_device: true, ..in_memory(3e9, 0.2) };
    assert_eq!(written(&fill, writing), BoundName::Writeback);
    let direct = honest::fill("pwrite:direct+buffer=64KiB", Cold);
    assert_eq!(written(&direct, writing), BoundName::QueueDepth, "one write at a time");
    let at_the_end =
        TimeShares { cpu: Extent::exactly(0.1), sync: Extent::exactly(0.9), ..TimeShares::default() };
    assert_eq!(written(&fill, Activity { time: Some(at_the_end), ..writing }), BoundName::Writeback);
    let before =
        TimeShares { cpu: Extent::exactly(0.1), set_up: Extent::exactly(0.9), ..TimeShares::default() };
    assert_eq!(written(&fill, Activity { time: Some(before), ..in_memory(3e9, 0.9) }), BoundName::SetUp);
    let copying = Activity { time: Some(before), ..in_memory(7.9e9, 0.9) };
    assert_eq!(written(&fill, copying), BoundName::SetUp, "copying is a tenth of the total");
}
