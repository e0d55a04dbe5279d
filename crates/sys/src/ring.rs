//! Reads and writes in flight through io_uring, with buffers that the ring owns.
//!
//! A slot is a buffer and its position in the queue. It is either free or in flight. While it is in
//! flight, the kernel may write to its buffer or read it, and no other access is allowed until its
//! completion has been taken.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::{IoUring, Probe, opcode, squeue, types};

use crate::mapping::AnonymousMemory;

/// Parameters of a ring.
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// Slots: the maximum number of reads and writes in flight.
    pub depth: u32,
    /// Size of a slot's buffer; rounded up to whole pages.
    pub slot_bytes: usize,
    /// Registered file and buffers.
    pub fixed: bool,
    /// Each write is synced before it is done (RWF_DSYNC).
    pub dsync: bool,
}

/// The set-up step of a ring that the kernel refused.
#[derive(Debug)]
pub struct RingError {
    /// The system call, as in the manual.
    pub call: &'static str,
    /// Errno.
    pub error: io::Error,
}

impl RingError {
    fn at(call: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self { call, error }
    }
}

/// A completed read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Slot, free again.
    pub slot: usize,
    /// Bytes read or written, or a negative errno.
    pub result: i32,
}

/// A ring over a file, or over several.
pub struct Ring {
    // Drop order matters: the ring first, then the memory that it could write to.
    ring: IoUring,
    buffers: AnonymousMemory,
    files: Vec<OwnedFd>,
    slot_bytes: usize,
    fixed: bool,
    write_flags: i32,
    in_flight: Vec<bool>,
    in_flight_count: usize,
}

/// Set up a ring whose completions interrupt no thread (IORING_SETUP_COOP_TASKRUN, Linux 5.19), as
/// liburing recommends and fio does; older kernels do not support it and get a plain ring.
fn set_up(entries: u32) -> io::Result<IoUring> {
    match IoUring::builder().setup_clamp().setup_coop_taskrun().build(entries) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().setup_clamp().build(entries)
        }
        other => other,
    }
}

impl Ring {
    /// Set up a ring for reads and writes of `file`, with touched buffers so that no fault falls
    /// into a read or write.
    pub fn new(file: OwnedFd, options: RingOptions) -> Result<Self, RingError> {
        Self::of_files(vec![file], options)
    }

    /// Set up a ring for several files, of which an operation names one by its index.
    ///
    /// # Panics
    /// If there is no file.
    pub fn of_files(files: Vec<OwnedFd>, options: RingOptions) -> Result<Self, RingError> {
        assert!(!files.is_empty(), "a ring has a file");
        let page = rustix::param::page_size();
        let slot_bytes = options.slot_bytes.div_ceil(page) * page;
        let ring = set_up(options.depth.next_power_of_two()).map_err(RingError::at("io_uring_setup"))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(RingError::at("io_uring_register(PROBE)"))?;
        let needed = if options.fixed {
            [opcode::ReadFixed::CODE, opcode::WriteFixed::CODE]
        } else {
            [opcode::Read::CODE, opcode::Write::CODE]
        };
        if !needed.into_iter().all(|code| probe.is_supported(code)) {
            return Err(RingError {
                call: "io_uring_register(PROBE)",
                error: io::ErrorKind::Unsupported.into(),
            });
        }
        let mut buffers =
            AnonymousMemory::new(slot_bytes * options.depth as usize).map_err(RingError::at("mmap"))?;
        buffers.bytes_mut().fill(0);
        if options.fixed {
            let vectors: Vec<libc::iovec> = buffers
                .bytes_mut()
                .chunks_exact_mut(slot_bytes)
                .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot_bytes })
                .collect();
            // SAFETY: the buffers live as long as the ring, which is dropped before them.
            unsafe { ring.submitter().register_buffers(&vectors) }
                .map_err(RingError::at("io_uring_register(BUFFERS)"))?;
            ring.submitter()
                .register_files(&files.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>())
                .map_err(RingError::at("io_uring_register(FILES)"))?;
        }
        let in_flight = vec![false; options.depth as usize];
        let write_flags = if options.dsync { libc::RWF_DSYNC } else { 0 };
        let RingOptions { fixed, .. } = options;
        Ok(Self { ring, buffers, files, slot_bytes, fixed, write_flags, in_flight, in_flight_count: 0 })
    }

    /// Reads and writes in flight.
    #[inline(always)]
    pub fn in_flight(&self) -> usize {
        self.in_flight_count
    }

    /// Queue a read of `len` bytes at `offset` into `slot`; it starts with the next
    /// [`Ring::submit`].
    ///
    /// # Panics
    /// If the slot is in flight or too small.
    #[inline(always)]
    pub fn queue_read(&mut self, slot: usize, offset: u64, len: usize) {
        self.queue_read_of(0, slot, offset, len);
    }

    /// [`Ring::queue_read`] of the file with this index.
    ///
    /// # Panics
    /// As there.
    #[inline(always)]
    pub fn queue_read_of(&mut self, file: usize, slot: usize, offset: u64, len: usize) {
        assert!(!self.in_flight[slot] && len <= self.slot_bytes, "a slot in flight, or too small");
        let start = slot * self.slot_bytes;
        let buffer = self.buffers.bytes_mut()[start..start + len].as_mut_ptr();
        let entry = if self.fixed {
            let file = types::Fixed(file as u32);
            opcode::ReadFixed::new(file, buffer, len as u32, slot as u16).offset(offset).build()
        } else {
            let file = types::Fd(self.files[file].as_raw_fd());
            opcode::Read::new(file, buffer, len as u32).offset(offset).build()
        };
        self.queue(slot, entry);
    }

    /// Queue a write of the bytes `part` of the buffer of `slot` to `offset`; it starts with the
    /// next [`Ring::submit`].
    ///
    /// # Panics
    /// If the slot is in flight or too small.
    #[inline(always)]
    pub fn queue_write(&mut self, slot: usize, part: Range<usize>, offset: u64) {
        let len = part.len() as u32;
        let buffer = self.buffer(slot)[part].as_ptr();
        let entry = if self.fixed {
            let write = opcode::WriteFixed::new(types::Fixed(0), buffer, len, slot as u16);
            write.offset(offset).rw_flags(self.write_flags).build()
        } else {
            let write = opcode::Write::new(types::Fd(self.files[0].as_raw_fd()), buffer, len);
            write.offset(offset).rw_flags(self.write_flags).build()
        };
        self.queue(slot, entry);
    }

    #[inline(always)]
    fn queue(&mut self, slot: usize, entry: squeue::Entry) {
        // SAFETY: buffer and files live until Drop, which waits for all that is in flight;
        // `in_flight` keeps anyone from using the buffer meanwhile.
        let queued = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        queued.expect("the queue has an entry for every slot");
        self.in_flight[slot] = true;
        self.in_flight_count += 1;
    }

    /// Start the queued operations and wait until at least `wait` reads or writes are done. A wait
    /// is renewed after a second: on Linux 6.18 a wait without remaining operations was seen that
    /// never ended.
    #[inline(always)]
    pub fn submit(&mut self, wait: usize) -> io::Result<()> {
        let second = types::Timespec::new().sec(1);
        loop {
            let entered = match wait > 0 && self.ring.params().is_feature_ext_arg() {
                true => {
                    let within = types::SubmitArgs::new().timespec(&second);
                    self.ring.submitter().submit_with_args(wait, &within)
                }
                false => self.ring.submit_and_wait(wait),
            };
            match entered {
                Ok(_) => return Ok(()),
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME)) => continue,
                Err(error) => return Err(error),
            }
        }
    }

    /// Take an available completion.
    #[inline(always)]
    pub fn complete(&mut self) -> Option<Completion> {
        let entry = self.ring.completion().next()?;
        let slot = entry.user_data() as usize;
        self.in_flight[slot] = false;
        self.in_flight_count -= 1;
        Some(Completion { slot, result: entry.result() })
    }

    /// The buffer of a slot that is not in flight.
    ///
    /// # Panics
    /// If the slot is in flight.
    #[inline(always)]
    pub fn buffer(&self, slot: usize) -> &[u8] {
        assert!(!self.in_flight[slot], "the kernel may be using the buffer");
        &self.buffers.bytes()[slot * self.slot_bytes..(slot + 1) * self.slot_bytes]
    }

    /// The buffer of a slot, mutable.
    ///
    /// # Panics
    /// If the slot is in flight.
    #[inline(always)]
    pub fn buffer_mut(&mut self, slot: usize) -> &mut [u8] {
        assert!(!self.in_flight[slot], "the kernel may be using the buffer");
        &mut self.buffers.bytes_mut()[slot * self.slot_bytes..(slot + 1) * self.slot_bytes]
    }

    /// True if the slot's read or write has not been taken from the ring yet.
    #[inline(always)]
    pub fn is_in_flight(&self, slot: usize) -> bool {
        self.in_flight[slot]
    }

    /// The file; of several, the first one.
    pub fn file(&self) -> &OwnedFd {
        &self.files[0]
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.in_flight_count > 0 {
            if self.submit(1).is_err() {
                // The kernel may still write to the buffers: they must never be handed out again.
                std::process::abort();
            }
            while self.complete().is_some() {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file_of(len: usize) -> OwnedFd {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(&(0..len).map(|index| (index / 512) as u8).collect::<Vec<_>>()).expect("write");
        file.into()
    }

    #[test]
    fn reads_land_in_their_slots() {
        for fixed in [false, true] {
            let options = RingOptions { depth: 3, slot_bytes: 512, fixed, dsync: false };
            let mut ring = match Ring::new(file_of(4096), options) {
                Ok(ring) => ring,
                Err(refused) => panic!("this machine has no io_uring: {refused:?}"),
            };
            for slot in 0..3 {
                ring.queue_read(slot, slot as u64 * 1024, 512);
            }
            ring.submit(3).expect("submit");
            let mut slots = Vec::new();
            while let Some(completion) = ring.complete() {
                assert_eq!(completion.result, 512);
                assert!(
                    ring.buffer(completion.slot)[..512].iter().all(|byte| *byte == completion.slot as u8 * 2)
                );
                slots.push(completion.slot);
            }
            slots.sort_unstable();
            assert_eq!((slots, ring.in_flight()), (vec![0, 1, 2], 0));
        }
    }

    #[test]
    fn a_read_is_of_the_file_that_it_names() {
        for fixed in [false, true] {
            let options = RingOptions { depth: 4, slot_bytes: 16, fixed, dsync: false };
            let file = |byte: u8| {
                let mut file = tempfile::tempfile().expect("file");
                file.write_all(&[byte; 16]).expect("write");
                OwnedFd::from(file)
            };
            let mut ring = Ring::of_files((0..4).map(file).collect(), options).expect("ring");
            for slot in 0..4 {
                ring.queue_read_of(3 - slot, slot, 0, 16);
            }
            ring.submit(4).expect("submit");
            while let Some(Completion { slot, result }) = ring.complete() {
                assert_eq!((result, ring.buffer(slot)[15]), (16, 3 - slot as u8));
            }
        }
    }

    #[test]
    fn writes_come_from_their_slots() {
        use std::os::unix::fs::FileExt;
        for (fixed, dsync) in [(false, false), (true, false), (false, true), (true, true)] {
            let file = std::fs::File::from(file_of(4096));
            let options = RingOptions { depth: 2, slot_bytes: 1024, fixed, dsync };
            let mut ring = Ring::new(file.try_clone().expect("clone").into(), options).expect("ring");
            for slot in 0..2 {
                ring.buffer_mut(slot).fill(100 + slot as u8);
                ring.queue_write(slot, 10..1000, slot as u64 * 2000);
                assert!(ring.is_in_flight(slot));
            }
            ring.submit(2).expect("submit");
            while let Some(completion) = ring.complete() {
                assert_eq!(completion.result, 990);
                assert!(!ring.is_in_flight(completion.slot));
            }
            let mut bytes = [0; 4096];
            file.read_exact_at(&mut bytes, 0).expect("read");
            assert!(bytes[..990].iter().all(|byte| *byte == 100));
            assert!(bytes[990..2000].iter().all(|byte| *byte < 8), "between the writes");
            assert!(bytes[2000..2990].iter().all(|byte| *byte == 101));
        }
    }

    #[test]
    #[should_panic(expected = "the kernel may be using the buffer")]
    fn a_buffer_in_flight_is_out_of_reach() {
        let options = RingOptions { depth: 1, slot_bytes: 512, fixed: false, dsync: false };
        let mut ring = Ring::new(file_of(4096), options).expect("ring");
        ring.queue_write(0, 0..512, 0);
        ring.buffer_mut(0);
    }

    #[test]
    fn a_ring_dropped_with_reads_in_flight_waits_for_them() {
        let options = RingOptions { depth: 8, slot_bytes: 4096, fixed: false, dsync: false };
        let mut ring = Ring::new(file_of(65536), options).expect("ring");
        for slot in 0..8 {
            ring.queue_read(slot, slot as u64 * 4096, 4096);
        }
        ring.submit(0).expect("submit");
        drop(ring);
    }
}
