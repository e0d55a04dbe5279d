//! Events that the kernel records about other programs (perf_event_open(2)): page faults, switches,
//! calls, mappings.
//!
//! An [`Event`] watches one thread on one CPU, with all threads and processes that it starts there.
//! It writes records into the [`EventRing`] of its CPU, whose bytes [`EventRecord`] decodes. What
//! is not recorded is counted: an event knows how often it happened and how many of its records
//! found no room.

mod record;
mod ring;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use perf_event_open_sys::bindings as kernel;
use rustix::process::Pid;

use crate::checked;

pub use record::{EventRecord, EventSample, MappedRange};
pub use ring::EventRing;

/// Source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSource {
    /// Page faults that needed no device.
    MinorFaults,
    /// Page faults that waited for a page to be read.
    MajorFaults,
    /// A thread leaves its CPU. The kernel does it, so only privileged users see it.
    Switches,
    /// A tracepoint, by its number in tracefs; only the records that the filter keeps, if any.
    Tracepoint(u64, Option<&'static str>),
    /// Nothing itself: the ring gets records of mappings, names, starts and ends, and of switches
    /// between threads.
    SideBand,
}

/// Options of opening an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventOptions {
    /// The source of the event.
    pub source: EventSource,
    /// With what the kernel does for the program, which only privileged users may see.
    pub with_kernel: bool,
    /// True if the event starts when the thread executes a program; otherwise when it is enabled.
    pub starts_with_exec: bool,
    /// A poll of the ring returns when it holds so many bytes.
    pub wakeup_bytes: u32,
}

/// An open event. It ends when it is dropped, which takes some 40 ms for a tracepoint.
#[derive(Debug)]
pub struct Event {
    descriptor: OwnedFd,
    id: u64,
    counts_lost: bool,
}

/// Counts of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCount {
    /// Number of occurrences.
    pub counted: u64,
    /// Number of its records that found no room in the ring; `None`: this kernel does not say
    /// (before Linux 6.0).
    pub lost: Option<u64>,
}

impl Event {
    /// Watch a thread on one CPU. The error is that of perf_event_open(2): EACCES or EPERM if this
    /// user may not.
    pub fn open(options: &EventOptions, thread: Pid, cpu: u32) -> io::Result<Self> {
        match Self::open_with(options, thread, cpu, true) {
            // Before Linux 6.0 nobody counts what was lost.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Self::open_with(options, thread, cpu, false)
            }
            result => result,
        }
    }

    fn open_with(options: &EventOptions, thread: Pid, cpu: u32, counts_lost: bool) -> io::Result<Self> {
        let mut attributes = attributes(options, counts_lost);
        let cpu = i32::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the attributes live during the call, and have the size that they name.
        let descriptor = checked(unsafe {
            perf_event_open_sys::perf_event_open(
                &mut attributes,
                thread.as_raw_nonzero().get(),
                cpu,
                -1,
                kernel::PERF_FLAG_FD_CLOEXEC.into(),
            )
        })?;
        // SAFETY: the call has just returned this descriptor, and nobody else has it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let mut id = 0u64;
        // SAFETY: the kernel writes one u64 through the pointer (PERF_EVENT_IOC_ID).
        checked(unsafe { libc::ioctl(descriptor.as_raw_fd(), IOC_ID, &raw mut id) })?;
        if let EventSource::Tracepoint(_, Some(filter)) = options.source {
            let filter = CString::new(filter)?;
            // SAFETY: the kernel reads a text that lives during the call
            // (PERF_EVENT_IOC_SET_FILTER).
            checked(unsafe { libc::ioctl(descriptor.as_raw_fd(), IOC_SET_FILTER, filter.as_ptr()) })?;
        }
        Ok(Self { descriptor, id, counts_lost })
    }

    /// The number by which records name it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Write records into the ring of another event of the same CPU.
    pub fn write_into(&self, ring: &EventRing) -> io::Result<()> {
        // SAFETY: the argument is a descriptor (PERF_EVENT_IOC_SET_OUTPUT), which lives during the
        // call.
        checked(unsafe {
            libc::ioctl(self.descriptor.as_raw_fd(), IOC_SET_OUTPUT, ring.descriptor().as_raw_fd())
        })
        .map(drop)
    }

    /// Begin.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the call takes no pointer (PERF_EVENT_IOC_ENABLE).
        checked(unsafe { libc::ioctl(self.descriptor.as_raw_fd(), IOC_ENABLE, 0) }).map(drop)
    }

    /// Stop. What was recorded stays in the ring.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: the call takes no pointer (PERF_EVENT_IOC_DISABLE).
        checked(unsafe { libc::ioctl(self.descriptor.as_raw_fd(), IOC_DISABLE, 0) }).map(drop)
    }

    /// Count so far, in all threads and processes that it watches.
    pub fn count(&self) -> io::Result<EventCount> {
        // The value, its id, and the lost records, as asked for by `read_format`.
        let mut words = [0u8; 24];
        let bytes = if self.counts_lost { &mut words[..] } else { &mut words[..16] };
        let wanted = bytes.len();
        if rustix::io::read(&self.descriptor, &mut *bytes)? != wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let word =
            |index: usize| words[index * 8..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Ok(EventCount { counted: word(0), lost: self.counts_lost.then(|| word(2)) })
    }
}

/// The number of the register that holds the address of the instruction, of <asm/perf_regs.h>.
const INSTRUCTION_REGISTER: Option<u32> = match () {
    () if cfg!(target_arch = "x86_64") => Some(8),
    () if cfg!(target_arch = "aarch64") => Some(32),
    () if cfg!(target_arch = "riscv64") => Some(0),
    () => None,
};

/// True if faults and switches name the program's instruction on this architecture.
pub const KNOWS_INSTRUCTIONS: bool = INSTRUCTION_REGISTER.is_some();

// Numbers of <linux/perf_event.h>, which the bindings leave out.
const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOC_SET_FILTER: libc::c_ulong = 0x4008_2406;
const IOC_ID: libc::c_ulong = 0x8008_2407;

fn attributes(options: &EventOptions, counts_lost: bool) -> kernel::perf_event_attr {
    let mut attributes = kernel::perf_event_attr::default();
    attributes.size = size_of::<kernel::perf_event_attr>() as u32;
    attributes.sample_type = u64::from(record::SAMPLE_TYPE);
    attributes.read_format = u64::from(kernel::PERF_FORMAT_ID);
    attributes.clockid = libc::CLOCK_MONOTONIC;
    let software = |config: kernel::perf_sw_ids| (kernel::PERF_TYPE_SOFTWARE, u64::from(config));
    (attributes.type_, attributes.config) = match options.source {
        EventSource::MinorFaults => software(kernel::PERF_COUNT_SW_PAGE_FAULTS_MIN),
        EventSource::MajorFaults => software(kernel::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
        EventSource::Switches => software(kernel::PERF_COUNT_SW_CONTEXT_SWITCHES),
        EventSource::SideBand => software(kernel::PERF_COUNT_SW_DUMMY),
        EventSource::Tracepoint(number, _) => (kernel::PERF_TYPE_TRACEPOINT, number),
    };
    match options.source {
        EventSource::Tracepoint(..) => attributes.sample_type |= u64::from(kernel::PERF_SAMPLE_RAW),
        EventSource::SideBand => {
            attributes.set_mmap(1);
            attributes.set_mmap2(1);
            attributes.set_mmap_data(1);
            attributes.set_comm(1);
            attributes.set_comm_exec(1);
            attributes.set_task(1);
            attributes.set_context_switch(1);
        }
        EventSource::MinorFaults | EventSource::MajorFaults | EventSource::Switches => {
            if let Some(register) = INSTRUCTION_REGISTER {
                attributes.sample_type |= u64::from(kernel::PERF_SAMPLE_REGS_USER);
                attributes.sample_regs_user = 1 << register;
            }
        }
    }
    if counts_lost {
        attributes.read_format |= u64::from(kernel::PERF_FORMAT_LOST);
    }
    attributes.__bindgen_anon_1.sample_period = 1;
    attributes.__bindgen_anon_2.wakeup_watermark = options.wakeup_bytes;
    attributes.set_watermark(1);
    attributes.set_sample_id_all(1);
    attributes.set_use_clockid(1);
    attributes.set_inherit(1);
    attributes.set_disabled(1);
    attributes.set_enable_on_exec(options.starts_with_exec.into());
    attributes.set_exclude_kernel((!options.with_kernel).into());
    attributes.set_exclude_hv(1);
    attributes
}
