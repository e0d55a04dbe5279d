//! Presence of /proc and /sys, and the consequences of their absence: one sentence for every
//! command.

use std::path::Path;

/// Reason that nothing can be measured; `None` if /proc is mounted.
pub fn proc_missing() -> Option<&'static str> {
    (!Path::new("/proc/self/exe").exists()).then_some(
        "/proc is not mounted, and pagewise takes its evidence from there: nothing can be measured, while report and clean \
         work; mount it with: mount -t proc proc /proc",
    )
}

/// Facts and settings that are unavailable; `None` if /sys is mounted.
pub fn sys_missing() -> Option<&'static str> {
    (!Path::new("/sys/devices/system").exists()).then_some(
        "/sys is not mounted: the device with its readahead and what others do on it, NUMA nodes and the last-level cache are \
         not known, and neither memory limits nor device caps nor readahead can be set; methods and cache states can be \
         measured; mount it with: mount -t sysfs sysfs /sys",
    )
}
