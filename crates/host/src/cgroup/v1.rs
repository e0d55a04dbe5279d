//! The files of cgroup v1: Documentation/admin-guide/cgroup-v1/memory.rst and blkio-controller.rst.

use std::path::Path;

use pagewise_model::{DeviceCap, GroupCounters};

use super::UNLIMITED;
use super::error::GroupError;
use crate::kernel_files::{self, write, write_if_there};

/// "No limit" is the highest number of whole pages in a signed 64-bit number of bytes; pages have
/// up to 64 KiB.
const NO_LIMIT_FROM: u64 = i64::MAX as u64 - 0xffff;

/// Number of attempts to make a group give its memory back; see [`empty`].
const EMPTY_ATTEMPTS: u32 = 5;

/// Limit the memory, and memory with swap to the same value.
pub(super) fn set_memory_limit(group: &Path, limit_bytes: u64) -> Result<(), GroupError> {
    let path = group.join("memory.limit_in_bytes");
    write(&path, &limit_bytes.to_string())?;
    write_if_there(&group.join("memory.memsw.limit_in_bytes"), &limit_bytes.to_string())?;
    write_if_there(&group.join("memory.swappiness"), "0")?;
    expect_pages(&path, limit_bytes)?;
    let memory = MemoryStat::parse(&kernel_files::text(group.join("memory.stat")).unwrap_or_default());
    match memory.effective_limit_bytes {
        Some(above_bytes) if above_bytes < limit_bytes / PAGE_MAX * PAGE_MAX => Err(GroupError::LowerAbove {
            limit_bytes,
            above_bytes,
            group: group.parent().unwrap_or(group).into(),
        }),
        _ => Ok(()),
    }
}

/// The kernel counts whole pages.
const PAGE_MAX: u64 = 64 << 10;

/// Read back a size that was written.
pub(super) fn expect_pages(path: &Path, wanted_bytes: u64) -> Result<(), GroupError> {
    let found = kernel_files::text(path).unwrap_or_default();
    let page_bytes = rustix::param::page_size() as u64;
    let is_taken = found.parse::<u64>().is_ok_and(|found| found.abs_diff(wanted_bytes) < page_bytes);
    if is_taken {
        return Ok(());
    }
    Err(GroupError::NotTaken { path: path.to_path_buf(), wanted: wanted_bytes.to_string(), found })
}

/// Cap the device, or remove caps that are `None`: 0 means no cap.
pub(super) fn set_cap(group: &Path, device: (u32, u32), cap: &DeviceCap) -> Result<(), GroupError> {
    let values = [
        ("blkio.throttle.read_iops_device", cap.read_iops),
        ("blkio.throttle.read_bps_device", cap.read_bytes_per_second.map(|bytes| bytes.0)),
    ];
    for (name, value) in values {
        let path = group.join(name);
        write(&path, &format!("{}:{} {}", device.0, device.1, value.unwrap_or(0)))?;
        let found = of_device(&kernel_files::text(&path).unwrap_or_default(), device);
        if found != value {
            let text = |value: Option<u64>| value.map_or("no cap".to_string(), |value| value.to_string());
            return Err(GroupError::NotTaken { path, wanted: text(value), found: text(found) });
        }
    }
    Ok(())
}

/// Fill in the counters of the memory controller.
pub(super) fn read_memory(group: &Path, counters: &mut GroupCounters) {
    let number = |name: &str| kernel_files::number::<u64>(group.join(name));
    let text = |name: &str| kernel_files::text(group.join(name)).unwrap_or_default();
    let memory = MemoryStat::parse(&text("memory.stat"));
    counters.limit_bytes =
        number("memory.limit_in_bytes").map(|bytes| if bytes >= NO_LIMIT_FROM { UNLIMITED } else { bytes });
    counters.peak_bytes = number("memory.max_usage_in_bytes");
    counters.usage_bytes = number("memory.usage_in_bytes");
    counters.kernel_bytes = number("memory.kmem.usage_in_bytes");
    counters.file_bytes = memory.file_bytes;
    counters.anonymous_bytes = memory.anonymous_bytes;
    counters.refaults = memory.refaults;
    counters.memory_kills = keyed(&text("memory.oom_control"), "oom_kill");
}

/// Fill in the counters of the block controller for a device.
pub(super) fn read_device(group: &Path, device: (u32, u32), counters: &mut GroupCounters) {
    let text = |name: &str| kernel_files::text_or_empty(group.join(name));
    let cap = |name| Some(of_device(&text(name)?, device).unwrap_or(UNLIMITED));
    counters.cap_read_iops = cap("blkio.throttle.read_iops_device");
    counters.cap_read_bytes_per_second = cap("blkio.throttle.read_bps_device");
    // A device that has done nothing for the group has no line.
    let done = |name| Some(reads_of_device(&text(name)?, device).unwrap_or(0));
    counters.device_read_bytes = done("blkio.throttle.io_service_bytes");
    counters.device_read_requests = done("blkio.throttle.io_serviced");
}

/// `memory.force_empty` gives up after a few rounds without progress, and reports success
/// nevertheless. A group without the memory controller has no such file.
pub(super) fn empty(group: &Path) -> Result<Option<u64>, GroupError> {
    let usage = || kernel_files::number::<u64>(group.join("memory.usage_in_bytes"));
    let mut before = u64::MAX;
    for _ in 0..EMPTY_ATTEMPTS {
        write_if_there(&group.join("memory.force_empty"), "0")?;
        match usage() {
            Some(now) if now > 0 && now < before => before = now,
            _ => break,
        }
    }
    Ok(usage())
}

/// Counters in memory.stat.
#[derive(Debug, Default, PartialEq, Eq)]
struct MemoryStat {
    effective_limit_bytes: Option<u64>,
    file_bytes: Option<u64>,
    anonymous_bytes: Option<u64>,
    refaults: Option<u64>,
}

impl MemoryStat {
    /// The totals if the group counts its children, else its own numbers.
    fn parse(stat: &str) -> Self {
        let number = |name: &str| keyed(stat, &format!("total_{name}")).or_else(|| keyed(stat, name));
        Self {
            effective_limit_bytes: keyed(stat, "hierarchical_memory_limit"),
            file_bytes: number("cache"),
            anonymous_bytes: number("rss"),
            // One number before Linux 5.9, for files only.
            refaults: number("workingset_refault_file").or_else(|| number("workingset_refault")),
        }
    }
}

/// The value of a `name value` line.
pub(super) fn keyed(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(' ')?;
        (found == name).then(|| value.trim().parse().ok())?
    })
}

/// The value of a `major:minor value` line.
fn of_device(text: &str, device: (u32, u32)) -> Option<u64> {
    keyed(text, &format!("{}:{}", device.0, device.1))
}

/// The value of a `major:minor Read value` line.
fn reads_of_device(text: &str, device: (u32, u32)) -> Option<u64> {
    let start = format!("{}:{} Read ", device.0, device.1);
    text.lines().find_map(|line| line.strip_prefix(&start)?.trim().parse().ok())
}

/// Pass a text to every parser here.
#[cfg(test)]
pub(super) fn read_anything(text: &str) {
    MemoryStat::parse(text);
    of_device(text, (254, 0));
    reads_of_device(text, (254, 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_linux_6_18() {
        let text = include_str!("../../tests/fixtures/memory-stat-v1-6.18.txt");
        assert_eq!(
            MemoryStat::parse(text),
            MemoryStat {
                effective_limit_bytes: Some(9_223_372_036_854_771_712),
                file_bytes: Some(3_858_432),
                anonymous_bytes: Some(1_744_896),
                refaults: Some(33),
            }
        );
    }

    #[test]
    fn older_kernels_count_refaults_in_one_number() {
        let memory = MemoryStat::parse("cache 4096\nrss 0\nworkingset_refault 7\ntotal_cache 8192\n");
        assert_eq!((memory.file_bytes, memory.refaults), (Some(8192), Some(7)));
        assert_eq!(MemoryStat::parse(""), MemoryStat::default());
    }

    #[test]
    fn lines_of_devices() {
        assert_eq!(of_device("8:0 2000\n254:0 52428800\n", (254, 0)), Some(52_428_800));
        assert_eq!(of_device("8:0 2000\n", (8, 1)), None);
        let bytes = "254:0 Read 4096\n254:0 Write 0\n254:0 Total 4096\n254:1 Read 7\nTotal 4103\n";
        assert_eq!(reads_of_device(bytes, (254, 0)), Some(4096));
        assert_eq!(reads_of_device(bytes, (25, 0)), None);
        assert_eq!(reads_of_device("Total 0\n", (254, 0)), None);
    }

    #[test]
    fn kills_are_counted() {
        assert_eq!(keyed("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"), Some(3));
        // Before Linux 4.13.
        assert_eq!(keyed("oom_kill_disable 0\nunder_oom 0\n", "oom_kill"), None);
    }
}
