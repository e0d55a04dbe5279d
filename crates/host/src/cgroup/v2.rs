//! The files of cgroup v2: Documentation/admin-guide/cgroup-v2.rst.

use std::fs;
use std::io;
use std::path::Path;

use pagewise_model::{DeviceCap, GroupCounters};
use rustix::io::Errno;

use super::error::GroupError;
use super::v1::{expect_pages, keyed};
use super::{ParentGroup, UNLIMITED, directories, leaf_path};
use crate::kernel_files::{self, CallError, write, write_if_there};

/// Processes may fork while they are moved; this many rounds are tried.
const ENABLE_ATTEMPTS: u32 = 20;
/// Number of attempts to make a group give its memory back.
const EMPTY_ATTEMPTS: u32 = 5;

/// Enable the missing controllers for the children of the group; if processes prevent it, move them
/// to a leaf.
pub(super) fn enable(within: &ParentGroup, random: u64) -> Result<(), GroupError> {
    let control = within.parent.join("cgroup.subtree_control");
    let enabled = kernel_files::text(&control).unwrap_or_default();
    if within.missing.iter().all(|name| enabled.split_whitespace().any(|word| word == *name)) {
        return Ok(());
    }
    // Also if nothing has to be moved: its name lists the enabled controllers.
    let leaf = leaf_path(within, random);
    fs::create_dir(&leaf).map_err(CallError::at("mkdir", &leaf))?;
    let enabled = enable_with(within, &leaf, &control);
    if enabled.is_err() {
        // Processes are moved back; the first error is more informative.
        let _ = directories::leave_leaf(&leaf);
    }
    enabled
}

fn enable_with(within: &ParentGroup, leaf: &Path, control: &Path) -> Result<(), GroupError> {
    let words: Vec<String> = within.missing.iter().map(|name| format!("+{name}")).collect();
    let mut attempts = 0;
    loop {
        attempts += 1;
        match write(control, &words.join(" ")) {
            // Processes are in the group, which only the real root may have.
            Err(error) if error.is(Errno::BUSY) && attempts < ENABLE_ATTEMPTS => {
                directories::move_processes(&within.parent, leaf)?;
            }
            result => return Ok(result?),
        }
    }
}

/// Limit the memory and forbid swap.
pub(super) fn set_memory_limit(group: &Path, limit_bytes: u64, root: &Path) -> Result<(), GroupError> {
    let path = group.join("memory.max");
    write(&path, &limit_bytes.to_string())?;
    write_if_there(&group.join("memory.swap.max"), "0")?;
    expect_pages(&path, limit_bytes)?;
    let above = group.ancestors().skip(1).take_while(|above| above.starts_with(root)).filter_map(|above| {
        let lowest = ["memory.max", "memory.high"]
            .iter()
            .filter_map(|name| kernel_files::number::<u64>(above.join(name)))
            .min()?;
        Some((lowest, above))
    });
    match above.min_by_key(|(bytes, _)| *bytes) {
        Some((above_bytes, above)) if above_bytes < limit_bytes => {
            Err(GroupError::LowerAbove { limit_bytes, above_bytes, group: above.to_path_buf() })
        }
        _ => Ok(()),
    }
}

/// Cap the device, or remove caps that are `None`.
pub(super) fn set_cap(group: &Path, device: (u32, u32), cap: &DeviceCap) -> Result<(), GroupError> {
    let path = group.join("io.max");
    let bytes = cap.read_bytes_per_second.map(|bytes| bytes.0);
    let text = |value: Option<u64>| value.map_or("max".to_string(), |value| value.to_string());
    let wanted = format!("{}:{} rbps={} riops={}", device.0, device.1, text(bytes), text(cap.read_iops));
    write(&path, &wanted)?;
    let found = kernel_files::text(&path).unwrap_or_default();
    let line = IoLine::of_device(&found, device);
    if (line.cap("rbps"), line.cap("riops")) == (bytes, cap.read_iops) {
        return Ok(());
    }
    Err(GroupError::NotTaken { path, wanted, found })
}

/// Fill in the counters of the memory controller.
pub(super) fn read_memory(group: &Path, counters: &mut GroupCounters) {
    let number = |name: &str| kernel_files::number::<u64>(group.join(name));
    let text = |name: &str| kernel_files::text(group.join(name)).unwrap_or_default();
    let memory = MemoryStat::parse(&text("memory.stat"));
    counters.limit_bytes = match text("memory.max").as_str() {
        "max" => Some(UNLIMITED),
        other => other.parse().ok(),
    };
    // Linux 5.19.
    counters.peak_bytes = number("memory.peak");
    counters.usage_bytes = number("memory.current");
    counters.kernel_bytes = memory.kernel_bytes;
    counters.file_bytes = memory.file_bytes;
    counters.anonymous_bytes = memory.anonymous_bytes;
    counters.refaults = memory.refaults;
    counters.scanned_pages = memory.scanned_pages;
    counters.reclaimed_pages = memory.reclaimed_pages;
    counters.memory_kills = keyed(&text("memory.events"), "oom_kill");
}

/// Fill in the counters of the block controller for a device.
pub(super) fn read_device(group: &Path, device: (u32, u32), counters: &mut GroupCounters) {
    // Devices without a cap, and those that were not used by the group, have no line.
    if let Some(text) = kernel_files::text_or_empty(group.join("io.max")) {
        let line = IoLine::of_device(&text, device);
        counters.cap_read_iops = Some(line.cap("riops").unwrap_or(UNLIMITED));
        counters.cap_read_bytes_per_second = Some(line.cap("rbps").unwrap_or(UNLIMITED));
    }
    if let Some(text) = kernel_files::text_or_empty(group.join("io.stat")) {
        let line = IoLine::of_device(&text, device);
        counters.device_read_bytes = Some(line.number("rbytes").unwrap_or(0));
        counters.device_read_requests = Some(line.number("rios").unwrap_or(0));
    }
}

/// By memory.reclaim (Linux 5.19), else by a high-water mark of 0, to which memory is reclaimed
/// when it is set.
pub(super) fn empty(group: &Path) -> Result<Option<u64>, GroupError> {
    let usage = || kernel_files::number::<u64>(group.join("memory.current"));
    let reclaim = group.join("memory.reclaim");
    let mut before = u64::MAX;
    for _ in 0..EMPTY_ATTEMPTS {
        match usage() {
            Some(now) if now > 0 && now < before => before = now,
            _ => break,
        }
        let asked = if reclaim.exists() {
            write(&reclaim, &before.to_string())
        } else {
            let high = group.join("memory.high");
            let lowered = write(&high, "0");
            lowered.and(write(&high, "max"))
        };
        match asked {
            // Less was reclaimed than requested: kernel memory and pages in use stay.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => result?,
        }
    }
    Ok(usage())
}

/// Counters in memory.stat.
#[derive(Debug, Default, PartialEq, Eq)]
struct MemoryStat {
    file_bytes: Option<u64>,
    anonymous_bytes: Option<u64>,
    kernel_bytes: Option<u64>,
    refaults: Option<u64>,
    scanned_pages: Option<u64>,
    reclaimed_pages: Option<u64>,
}

impl MemoryStat {
    fn parse(stat: &str) -> Self {
        let number = |name| keyed(stat, name);
        Self {
            file_bytes: number("file"),
            anonymous_bytes: number("anon"),
            // Linux 5.18.
            kernel_bytes: number("kernel"),
            // One number before Linux 5.9, for files only.
            refaults: number("workingset_refault_file").or_else(|| number("workingset_refault")),
            scanned_pages: number("pgscan"),
            reclaimed_pages: number("pgsteal"),
        }
    }
}

/// The `key=value` words after `major:minor`; none if the device has no line.
struct IoLine<'a>(&'a str);

impl<'a> IoLine<'a> {
    fn of_device(text: &'a str, device: (u32, u32)) -> Self {
        let start = format!("{}:{} ", device.0, device.1);
        Self(text.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default())
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        self.0.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.value(key)?.parse().ok()
    }

    /// `max` means no cap.
    fn cap(&self, key: &str) -> Option<u64> {
        self.number(key)
    }
}

/// Pass a text to every parser here.
#[cfg(test)]
pub(super) fn read_anything(text: &str) {
    MemoryStat::parse(text);
    let line = IoLine::of_device(text, (254, 0));
    for key in ["rbytes", "rios", "rbps", "riops"] {
        line.number(key);
        line.cap(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of 8 MiB after three passes over a file of 30 MB.
    #[test]
    fn memory_of_linux_6_1_and_6_12() {
        let memory = |file_bytes, kernel_bytes, refaults, scanned_pages, reclaimed_pages| MemoryStat {
            file_bytes: Some(file_bytes),
            anonymous_bytes: Some(0),
            kernel_bytes: Some(kernel_bytes),
            refaults: Some(refaults),
            scanned_pages: Some(scanned_pages),
            reclaimed_pages: Some(reclaimed_pages),
        };
        assert_eq!(
            MemoryStat::parse(include_str!("../../tests/fixtures/memory-stat-v2-6.1.txt")),
            memory(7_958_528, 90_112, 14_650, 25_478, 25_476)
        );
        assert_eq!(
            MemoryStat::parse(include_str!("../../tests/fixtures/memory-stat-v2-6.12.txt")),
            memory(7_995_392, 77_824, 12_988, 25_856, 25_420)
        );
    }

    #[test]
    fn what_a_kernel_lacks_is_unknown() {
        let memory = MemoryStat::parse("anon 4096\nfile 8192\nworkingset_refault 3\n");
        assert_eq!((memory.refaults, memory.kernel_bytes, memory.scanned_pages), (Some(3), None, None));
    }

    #[test]
    fn lines_of_devices() {
        // Linux 6.1 and 6.12 write the same.
        let both = IoLine::of_device("254:0 rbps=1048576 wbps=max riops=2000 wiops=max\n", (254, 0));
        assert_eq!((both.cap("rbps"), both.cap("riops")), (Some(1 << 20), Some(2000)));
        let caps = "8:16 rbps=2097152 wbps=max riops=max wiops=120\n";
        let line = IoLine::of_device(caps, (8, 16));
        assert_eq!((line.cap("rbps"), line.cap("riops")), (Some(2_097_152), None));
        assert_eq!(IoLine::of_device(caps, (8, 1)).cap("rbps"), None);
        let done = "8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n253:0 \n";
        let line = IoLine::of_device(done, (8, 16));
        assert_eq!((line.number("rbytes"), line.number("rios")), (Some(1_459_200), Some(192)));
    }
}
