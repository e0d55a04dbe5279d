//! Counters of the whole host: /proc/stat, vmstat, meminfo, interrupts and pressure.
//!
//! Totals since boot and gauges, over all processes of the machine. Files stay open and are read
//! again from the beginning into the same memory, so that a reading costs little more than the
//! kernel's time to write the text.

mod parse;

use std::fs::File;
use std::os::unix::fs::FileExt;

use pagewise_model::counters::HostCounters;

pub(crate) use parse::CpuTicks;

/// A larger text is not read: /proc/interrupts of the largest machines, with a column for each CPU.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Largest /proc/interrupts that [`HostReader::read_often`] reads. The kernel writes about 50 bytes
/// per microsecond, so this costs about 1 ms; a machine of 64 CPUs with a network and a disk queue
/// for each has 200 KiB and more.
const MAX_FREQUENT_BYTES: usize = 64 << 10;

/// Reads the host's counters repeatedly.
#[derive(Debug)]
pub struct HostReader {
    stat: KernelText,
    vmstat: KernelText,
    meminfo: KernelText,
    interrupts: KernelText,
    memory_pressure: KernelText,
    io_pressure: KernelText,
    /// True if /proc/interrupts is too large to be read often.
    interrupts_are_large: bool,
    page_bytes: u64,
    tick_ns: u64,
}

impl HostReader {
    /// Open the available files; counters in missing files stay unknown.
    pub fn new() -> Self {
        Self {
            stat: KernelText::open("/proc/stat"),
            vmstat: KernelText::open("/proc/vmstat"),
            meminfo: KernelText::open("/proc/meminfo"),
            interrupts: KernelText::open("/proc/interrupts"),
            memory_pressure: KernelText::open("/proc/pressure/memory"),
            io_pressure: KernelText::open("/proc/pressure/io"),
            interrupts_are_large: false,
            page_bytes: rustix::param::page_size() as u64,
            tick_ns: tick_ns(),
        }
    }

    /// Every counter that this kernel has.
    pub fn read(&mut self) -> HostCounters {
        self.read_within(MAX_TEXT_BYTES)
    }

    /// Every counter, for readings every second or more often: TLB shootdowns are unknown if
    /// /proc/interrupts is so large that reading it would take a noticeable share of a CPU.
    pub fn read_often(&mut self) -> HostCounters {
        if self.interrupts_are_large { self.read_within(0) } else { self.read_within(MAX_FREQUENT_BYTES) }
    }

    fn read_within(&mut self, interrupts_bytes: usize) -> HostCounters {
        let mut host = HostCounters::default();
        // The CPU split first, so that it does not include reading the others.
        if let Some(text) = self.stat.read(MAX_TEXT_BYTES) {
            parse::stat(text, self.tick_ns, &mut host);
        }
        if let Some(text) = self.vmstat.read(MAX_TEXT_BYTES) {
            parse::vmstat(text, self.page_bytes, &mut host);
        }
        if let Some(text) = self.meminfo.read(MAX_TEXT_BYTES) {
            parse::meminfo(text, &mut host);
        }
        if interrupts_bytes > 0 {
            match self.interrupts.read(interrupts_bytes) {
                Some(text) => host.tlb_shootdowns = parse::tlb_shootdowns(text),
                None => self.interrupts_are_large = self.interrupts.file.is_some(),
            }
        }
        if let Some(text) = self.memory_pressure.read(MAX_TEXT_BYTES) {
            (host.memory_some_ns, host.memory_full_ns) = parse::pressure(text);
        }
        if let Some(text) = self.io_pressure.read(MAX_TEXT_BYTES) {
            (host.io_some_ns, host.io_full_ns) = parse::pressure(text);
        }
        host
    }
}

impl Default for HostReader {
    fn default() -> Self {
        Self::new()
    }
}

/// Every counter of the host, once.
pub fn host() -> HostCounters {
    HostReader::new().read()
}

impl CpuTicks {
    pub(crate) fn read() -> Option<Self> {
        Self::parse(&std::fs::read("/proc/stat").ok()?)
    }
}

pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// A file of the kernel that stays open.
#[derive(Debug)]
struct KernelText {
    file: Option<File>,
    bytes: Vec<u8>,
}

impl KernelText {
    fn open(path: &str) -> Self {
        Self { file: File::open(path).ok(), bytes: vec![0; 4096] }
    }

    /// Read the whole current text; `None` if it cannot be read or is larger than `max`.
    fn read(&mut self, max: usize) -> Option<&[u8]> {
        let file = self.file.as_ref()?;
        let mut len = 0;
        loop {
            if len == self.bytes.len() {
                if len >= max {
                    return None;
                }
                self.bytes.resize(len * 2, 0);
            }
            match file.read_at(&mut self.bytes[len..], len as u64) {
                Ok(0) => return Some(&self.bytes[..len]),
                Ok(read) => len += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
pub(crate) use tests::read_anything;
#[cfg(test)]
mod tests;
