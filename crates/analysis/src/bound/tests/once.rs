//! Bounds of work that is done once.

use super::*;

/// What the device does in order, in large requests, for one thread: 1,600 MiB per second.
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
    // Half of it, in requests of 128 KiB, and the CPU is not busy: it waits for each of them.
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

/// What limits a fill whose stores run at 8 GB/s in memory.
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
