//! Identity of the machine and of its boot, to decide whether a recorded state still holds.

use crate::kernel_files;

/// A lasting name of this machine: machine-id(5), or the host name if there is none.
pub fn machine() -> String {
    kernel_files::text("/etc/machine-id").unwrap_or_else(host_name)
}

/// The name of this host (uname(2)).
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The boot id, which changes with each start of the machine (random(4)); `None` if /proc does not
/// show it.
pub fn boot() -> Option<String> {
    kernel_files::text("/proc/sys/kernel/random/boot_id")
}

#[cfg(test)]
mod tests {
    #[test]
    fn they_stay_the_same() {
        assert!(!super::machine().is_empty());
        assert_eq!(super::machine(), super::machine());
        assert_eq!(super::boot(), super::boot());
        assert_eq!(super::boot().map(|id| id.len()), Some(36));
    }
}
