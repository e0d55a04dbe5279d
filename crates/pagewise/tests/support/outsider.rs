//! Means of somebody else on the machine, who does something to a run from outside.

use std::fs;
use std::path::{Path, PathBuf};

use pagewise_host::Control;

/// The dataset that a run at this place has made; `None` before and after it.
pub fn dataset(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let mut datasets = entries.filter(|entry| {
        entry.file_name().to_string_lossy().starts_with(".pagewise-")
            && entry.metadata().is_ok_and(|metadata| metadata.len() >= 1 << 20)
    });
    datasets.next().map(|entry| entry.path())
}

/// The group of pagewise that process `pid` is in; `None` if it is in none.
fn group_of(pid: u32) -> Option<PathBuf> {
    let membership = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let name = membership.lines().find_map(|line| {
        let name = line.rsplit('/').next()?;
        name.starts_with("pagewise-").then_some(name)
    })?;
    Some(Control::detect().memory().ok()?.parent().join(name))
}

/// Bytes that are charged to the group of process `pid`.
pub fn charged(pid: u32) -> Option<u64> {
    let group = group_of(pid)?;
    let read = |file: &str| fs::read_to_string(group.join(file)).ok();
    read("memory.current").or_else(|| read("memory.usage_in_bytes"))?.trim().parse().ok()
}

/// Sets the memory limit of the group of process `pid`.
pub fn set_limit(pid: u32, bytes: u64) -> Option<()> {
    let group = group_of(pid)?;
    let write = |file: &str| fs::write(group.join(file), bytes.to_string());
    if group.join("memory.max").exists() {
        return write("memory.max").ok();
    }
    // Memory with swap cannot be below memory, so which comes first depends on the direction:
    // either way one holds.
    let _ = write("memory.memsw.limit_in_bytes");
    let set = write("memory.limit_in_bytes").ok();
    let _ = write("memory.memsw.limit_in_bytes");
    set
}
