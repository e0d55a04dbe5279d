//! The machine's memory and that of this process: /proc/meminfo and /proc/self/status.

use crate::kernel_files::{self, kib_field};

/// Values of /proc/meminfo, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// MemTotal.
    pub total_bytes: Option<u64>,
    /// MemAvailable (Linux 3.14): memory that can be used without swapping.
    pub available_bytes: Option<u64>,
    /// SwapTotal less SwapFree.
    pub swap_used_bytes: Option<u64>,
}

impl Memory {
    /// Read the current values.
    pub fn read() -> Self {
        kernel_files::text("/proc/meminfo").map(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// Parse the text of /proc/meminfo.
    pub fn parse(meminfo: &str) -> Self {
        let swap_total = kib_field(meminfo, "SwapTotal");
        let swap_free = kib_field(meminfo, "SwapFree");
        Self {
            total_bytes: kib_field(meminfo, "MemTotal"),
            available_bytes: kib_field(meminfo, "MemAvailable"),
            swap_used_bytes: swap_total.zip(swap_free).and_then(|(total, free)| total.checked_sub(free)),
        }
    }
}

/// Peak resident memory of this process: VmHWM. Not `ru_maxrss`, which survives exec(2).
pub fn own_peak_bytes() -> Option<u64> {
    kib_field(&kernel_files::text("/proc/self/status")?, "VmHWM")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_in_kib() {
        let text = "MemTotal:       24683656 kB\nMemFree:        24220052 kB\nMemAvailable:   24317444 kB\n\
                    SwapTotal:       1048576 kB\nSwapFree:        1000000 kB\n";
        let memory = Memory::parse(text);
        assert_eq!(memory.total_bytes, Some(24_683_656 * 1024));
        assert_eq!(memory.available_bytes, Some(24_317_444 * 1024));
        assert_eq!(memory.swap_used_bytes, Some(48_576 * 1024));
    }

    #[test]
    fn a_kernel_without_a_line_leaves_it_unknown() {
        assert_eq!(Memory::parse("MemTotal: 1 kB\n").available_bytes, None);
        assert_eq!(Memory::parse("SwapTotal: 1 kB\n").swap_used_bytes, None);
        assert_eq!(Memory::parse(""), Memory::default());
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(Memory::read().total_bytes.is_some_and(|bytes| bytes > 0));
        assert!(own_peak_bytes().is_some_and(|bytes| bytes > 0));
    }
}
