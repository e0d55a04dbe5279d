//! Which machine this is, and since when it runs: what tells whether something that was noted down still holds.

use crate::kernel_files;

/// A name of this machine that lasts: machine-id(5), or the name of the host where it has none.
pub fn machine() -> String {
    kernel_files::text("/etc/machine-id")
        .unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

/// A number that is another one after each start of the machine (random(4)); `None` where /proc does not show it.
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
