//! Bytes of a ring as records. The layouts are those of perf_event_open(2), for the fields that
//! this room asks for.

use perf_event_open_sys::bindings as kernel;

/// The fields of a sample, in this order, each of 8 bytes: the event, the process and its thread,
/// the time, the address. Behind them are those of its event: [`EventSample::raw`] or
/// [`EventSample::instruction`].
pub(super) const SAMPLE_TYPE: u32 = kernel::PERF_SAMPLE_IDENTIFIER
    | kernel::PERF_SAMPLE_TID
    | kernel::PERF_SAMPLE_TIME
    | kernel::PERF_SAMPLE_ADDR;

/// A record of the kernel. Times are those of CLOCK_MONOTONIC, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRecord<'a> {
    /// An event happened.
    Sample(EventSample<'a>),
    /// A range of addresses was mapped.
    Mapped(MappedRange<'a>),
    /// A thread got another name, or executed a program.
    Named {
        /// The process.
        process: u32,
        /// The thread.
        thread: u32,
        /// When.
        time_ns: u64,
        /// The name, without the zero.
        name: &'a [u8],
        /// True if the process executed a program.
        executed: bool,
    },
    /// A thread or a process began.
    Began {
        /// The process.
        process: u32,
        /// Parent, or the same one for a thread.
        parent: u32,
        /// The thread.
        thread: u32,
        /// When.
        time_ns: u64,
    },
    /// A thread ended.
    Ended {
        /// The process.
        process: u32,
        /// The thread.
        thread: u32,
        /// When.
        time_ns: u64,
    },
    /// A thread left its CPU, or got one.
    Switched {
        /// The process.
        process: u32,
        /// The thread.
        thread: u32,
        /// When.
        time_ns: u64,
        /// True if the thread left the CPU.
        out: bool,
        /// True if it could have gone on.
        preempted: bool,
    },
    /// So many records found no room.
    Lost(u64),
}

/// A sample of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSample<'a> {
    /// The event, as by [`super::Event::id`].
    pub event: u64,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// When.
    pub time_ns: u64,
    /// The address of a fault.
    pub address: u64,
    /// True if the event happened in the program itself, not in the kernel on its behalf.
    pub in_program: bool,
    /// The fields that only some events have.
    fields: &'a [u8],
}

impl<'a> EventSample<'a> {
    /// Of a tracepoint: the record, as its format in tracefs says.
    pub fn raw(&self) -> Option<&'a [u8]> {
        let len = u32::from_ne_bytes(*self.fields.first_chunk()?);
        self.fields.get(4..)?.get(..len as usize)
    }

    /// Of a fault or a switch: the program has registers of 32 bits, so its calls have other
    /// numbers.
    pub fn has_narrow_registers(&self) -> bool {
        const NARROW: u64 = kernel::PERF_SAMPLE_REGS_ABI_32 as u64;
        self.fields.first_chunk().is_some_and(|abi| u64::from_ne_bytes(*abi) == NARROW)
    }

    /// Of a fault or a switch: the address of the program's instruction, which in a call is the one
    /// behind it; `None` for threads of the kernel, and where the number of the register is not
    /// known here ([`super::KNOWS_INSTRUCTIONS`]).
    pub fn instruction(&self) -> Option<u64> {
        let (abi, registers) = self.fields.split_first_chunk()?;
        let has_registers = super::KNOWS_INSTRUCTIONS && u64::from_ne_bytes(*abi) != 0;
        has_registers.then_some(u64::from_ne_bytes(*registers.first_chunk()?))
    }
}

/// A range that was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRange<'a> {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// When.
    pub time_ns: u64,
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Offset of its start in the file, in bytes.
    pub offset: u64,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// The file's inode; 0: memory without a file.
    pub inode: u64,
    /// True if its code may be executed.
    pub executable: bool,
    /// Writes do not reach the file.
    pub private: bool,
    /// The path, as the kernel sees it.
    pub path: &'a [u8],
}

impl<'a> EventRecord<'a> {
    /// The record of these bytes; `None` for kinds that nobody asked for, and for bytes that are
    /// too few.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let kind = u32::from_ne_bytes(*bytes.first_chunk()?);
        let misc = u32::from(u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]));
        let word = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let half = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        // Records that are no samples end with the thread, the time and the event.
        let end = bytes.len().checked_sub(24)?;
        let (process, thread, time_ns) = (half(end), half(end + 4), word(end + 8));
        Some(match kind {
            kernel::PERF_RECORD_SAMPLE => Self::Sample(EventSample {
                event: word(8)?,
                process: half(16)?,
                thread: half(20)?,
                time_ns: word(24)?,
                address: word(32)?,
                in_program: misc & kernel::PERF_RECORD_MISC_CPUMODE_MASK == kernel::PERF_RECORD_MISC_USER,
                fields: bytes.get(40..)?,
            }),
            kernel::PERF_RECORD_MMAP2 => Self::Mapped(MappedRange {
                process: half(8)?,
                thread: half(12)?,
                time_ns: time_ns?,
                start: word(16)?,
                len: word(24)?,
                offset: word(32)?,
                device: (half(40)?, half(44)?),
                inode: word(48)?,
                executable: half(64)? & libc::PROT_EXEC as u32 != 0,
                private: half(68)? & libc::MAP_PRIVATE as u32 != 0,
                path: text(bytes.get(72..end)?),
            }),
            kernel::PERF_RECORD_COMM => Self::Named {
                process: half(8)?,
                thread: half(12)?,
                time_ns: time_ns?,
                name: text(bytes.get(16..end)?),
                executed: misc & kernel::PERF_RECORD_MISC_COMM_EXEC != 0,
            },
            kernel::PERF_RECORD_FORK => {
                Self::Began { process: half(8)?, parent: half(12)?, thread: half(16)?, time_ns: word(24)? }
            }
            kernel::PERF_RECORD_EXIT => {
                Self::Ended { process: half(8)?, thread: half(16)?, time_ns: word(24)? }
            }
            kernel::PERF_RECORD_SWITCH => Self::Switched {
                process: process?,
                thread: thread?,
                time_ns: time_ns?,
                out: misc & kernel::PERF_RECORD_MISC_SWITCH_OUT != 0,
                preempted: misc & kernel::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0,
            },
            kernel::PERF_RECORD_LOST => Self::Lost(word(16)?),
            kernel::PERF_RECORD_LOST_SAMPLES => Self::Lost(word(8)?),
            _ => return None,
        })
    }
}

/// The bytes before the first zero.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of these words behind its header.
    fn record(kind: u32, misc: u32, words: &[u64]) -> Vec<u8> {
        let size = 8 + words.len() as u64 * 8;
        let header = u64::from(kind) | u64::from(misc) << 32 | size << 48;
        [header].iter().chain(words).flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn sample(bytes: &[u8]) -> EventSample<'_> {
        match EventRecord::decode(bytes) {
            Some(EventRecord::Sample(sample)) => sample,
            other => panic!("a sample: {other:?}"),
        }
    }

    /// Two halves in one word.
    fn pair(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    #[test]
    fn a_fault_and_a_tracepoint_are_samples() {
        let words = [7, pair(10, 11), 99, 0x7000, 2, 0x40_1000];
        let bytes = record(kernel::PERF_RECORD_SAMPLE, kernel::PERF_RECORD_MISC_USER, &words);
        let fault = sample(&bytes);
        assert_eq!((fault.event, fault.process, fault.thread, fault.time_ns), (7, 10, 11, 99));
        assert_eq!((fault.address, fault.in_program), (0x7000, true));
        assert_eq!(fault.instruction(), super::super::KNOWS_INSTRUCTIONS.then_some(0x40_1000));
        assert!(!fault.has_narrow_registers());
        let narrow = record(kernel::PERF_RECORD_SAMPLE, 0, &[7, pair(10, 11), 99, 0x7000, 1, 0x40_1000]);
        assert!(sample(&narrow).has_narrow_registers());
        // The kernel's own threads have no such registers, and only the word that says so.
        let without = record(kernel::PERF_RECORD_SAMPLE, kernel::PERF_RECORD_MISC_KERNEL, &[7, 0, 99, 0, 0]);
        assert_eq!((sample(&without).in_program, sample(&without).instruction()), (false, None));
        let mut bytes =
            record(kernel::PERF_RECORD_SAMPLE, 0, &[7, pair(10, 11), 99, 0, pair(4, 0x0403_0201)]);
        assert_eq!(sample(&bytes).raw(), Some(&[1, 2, 3, 4][..]));
        // A length that the record does not have is no record of a tracepoint.
        bytes[40] = 5;
        assert_eq!(sample(&bytes).raw(), None);
    }

    #[test]
    fn what_is_no_sample_has_its_thread_and_time_at_the_end() {
        let out =
            record(kernel::PERF_RECORD_SWITCH, kernel::PERF_RECORD_MISC_SWITCH_OUT, &[pair(10, 11), 99, 7]);
        let expected =
            EventRecord::Switched { process: 10, thread: 11, time_ns: 99, out: true, preempted: false };
        assert_eq!(EventRecord::decode(&out), Some(expected));
        let name = u64::from_ne_bytes(*b"sh\0\0\0\0\0\0");
        let named = record(
            kernel::PERF_RECORD_COMM,
            kernel::PERF_RECORD_MISC_COMM_EXEC,
            &[pair(10, 11), name, pair(10, 11), 99, 7],
        );
        let expected =
            EventRecord::Named { process: 10, thread: 11, time_ns: 99, name: b"sh", executed: true };
        assert_eq!(EventRecord::decode(&named), Some(expected));
        assert_eq!(
            EventRecord::decode(&record(kernel::PERF_RECORD_LOST, 0, &[7, 12, 0, 0, 0])),
            Some(EventRecord::Lost(12))
        );
    }

    #[test]
    fn bytes_that_are_cut_off_are_no_record() {
        let name = u64::from_ne_bytes(*b"/a\0\0\0\0\0\0");
        let words = [
            pair(10, 11),
            0x1000,
            0x2000,
            0x3000,
            pair(8, 1),
            42,
            0,
            pair(libc::PROT_READ as u32, libc::MAP_PRIVATE as u32),
            name,
            pair(10, 11),
            99,
            7,
        ];
        let bytes = record(kernel::PERF_RECORD_MMAP2, 0, &words);
        let Some(EventRecord::Mapped(mapped)) = EventRecord::decode(&bytes) else { panic!("a mapping") };
        assert_eq!((mapped.start, mapped.len, mapped.offset), (0x1000, 0x2000, 0x3000));
        assert_eq!((mapped.device, mapped.inode, mapped.path), ((8, 1), 42, &b"/a"[..]));
        assert!(mapped.private && !mapped.executable && mapped.time_ns == 99);
        for len in 0..bytes.len() {
            let _ = EventRecord::decode(&bytes[..len]);
        }
        assert_eq!(EventRecord::decode(&bytes[..20]), None);
        assert_eq!(EventRecord::decode(&record(kernel::PERF_RECORD_READ, 0, &[0; 8])), None);
    }
}
