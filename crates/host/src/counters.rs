//! What the whole host did, as the kernel counted it: /proc/stat, vmstat, meminfo, interrupts and pressure.
//!
//! Totals since boot and gauges, of everyone on the machine. Files stay open and are read again from their
//! beginning into the same memory, so that a reading costs little more than what the kernel takes to write the text.

mod parse;

use std::fs::File;
use std::os::unix::fs::FileExt;

use pagewise_model::counters::HostCounters;

pub(crate) use parse::CpuTicks;

/// A text larger than this is not read: /proc/interrupts of the largest machines, a column for each CPU.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// What [`HostReader::read_often`] takes of /proc/interrupts. The kernel writes about 50 bytes a microsecond, so this
/// costs some 1 ms; a machine of 64 CPUs with a queue of network and disk for each has 200 KiB and more.
const MAX_FREQUENT_BYTES: usize = 64 << 10;

/// Reads the host's counters again and again.
#[derive(Debug)]
pub struct HostReader {
    stat: KernelText,
    vmstat: KernelText,
    meminfo: KernelText,
    interrupts: KernelText,
    memory_pressure: KernelText,
    io_pressure: KernelText,
    /// /proc/interrupts was found too large to be read often.
    interrupts_are_large: bool,
    page_bytes: u64,
    tick_ns: u64,
}

impl HostReader {
    /// Opens what there is; a file that this kernel does not have leaves its counters unknown.
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

    /// The same for those who read every second or more often: TLB shootdowns are left unknown where /proc/interrupts
    /// is so large that reading it would take a part of a CPU worth mentioning.
    pub fn read_often(&mut self) -> HostCounters {
        if self.interrupts_are_large { self.read_within(0) } else { self.read_within(MAX_FREQUENT_BYTES) }
    }

    fn read_within(&mut self, interrupts_bytes: usize) -> HostCounters {
        let mut host = HostCounters::default();
        // The CPU split first: reading the others is then not in it.
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

/// A text of the kernel's that stays open.
#[derive(Debug)]
struct KernelText {
    file: Option<File>,
    bytes: Vec<u8>,
}

impl KernelText {
    fn open(path: &str) -> Self {
        Self { file: File::open(path).ok(), bytes: vec![0; 4096] }
    }

    /// The whole text as it is now; `None` where it cannot be read or is larger than `max`.
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
