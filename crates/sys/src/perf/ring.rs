//! The memory through which the kernel hands records over.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings as kernel;

use super::{Event, EventRecord};

/// The ring of one CPU.
#[derive(Debug)]
pub struct EventRing {
    base: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    /// Of the event that it was mapped for, which the kernel needs to be open.
    descriptor: OwnedFd,
    /// A record that crosses the end.
    joined: Vec<u8>,
}

impl EventRing {
    /// A ring of `data_bytes`, a power of two of whole pages, for an event and those that share it.
    /// EPERM: more than this user may lock (perf_event_mlock_kb and RLIMIT_MEMLOCK).
    pub fn map(event: &Event, data_bytes: usize) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        if !data_bytes.is_power_of_two() || data_bytes < page_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let descriptor = event.descriptor.try_clone()?;
        // SAFETY: a new shared mapping at an address of the kernel's choice; it is unmapped on
        // drop, and nowhere else.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page_bytes + data_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                descriptor.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, page_bytes, data_bytes, descriptor, joined: Vec::new() })
    }

    /// To be polled.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Hand every record that is there to `take`, and give their room back.
    pub fn drain(&mut self, mut take: impl FnMut(EventRecord<'_>)) {
        let (head, mut tail) = (self.head().load(Ordering::Acquire), self.tail().load(Ordering::Relaxed));
        while tail < head {
            let start = (tail % self.data_bytes as u64) as usize;
            let mut joined = std::mem::take(&mut self.joined);
            let data = self.data();
            // Records begin at multiples of 8, so a header is never cut in two.
            let length = data[start..]
                .first_chunk::<8>()
                .map_or(0, |header| usize::from(u16::from_ne_bytes([header[6], header[7]])));
            if length < 8 || length as u64 > head - tail {
                // The kernel writes whole records only.
                tail = head;
            } else {
                let bytes = match data.get(start..start + length) {
                    Some(bytes) => bytes,
                    None => {
                        let first = data.len() - start;
                        joined.clear();
                        joined.extend_from_slice(&data[start..]);
                        joined.extend_from_slice(&data[..length - first]);
                        &joined
                    }
                };
                if let Some(record) = EventRecord::decode(bytes) {
                    take(record);
                }
                tail += length as u64;
            }
            self.joined = joined;
            self.tail().store(tail, Ordering::Release);
        }
    }

    /// The bytes of records. The kernel writes only between its head and the tail that was stored
    /// last.
    fn data(&self) -> &[u8] {
        // SAFETY: the mapping has so many bytes behind its first page. Those of unread records do
        // not change: the kernel overwrites none before the tail has passed it (the mapping is
        // writable, so that it asks), and the others are not looked at.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(self.page_bytes), self.data_bytes) }
    }

    fn head(&self) -> &AtomicU64 {
        self.position(std::mem::offset_of!(kernel::perf_event_mmap_page, data_head))
    }

    fn tail(&self) -> &AtomicU64 {
        self.position(std::mem::offset_of!(kernel::perf_event_mmap_page, data_tail))
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page holds a `perf_event_mmap_page`, whose positions are aligned words
        // that the kernel and this process access atomically.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl Drop for EventRing {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and no reference into it outlives it. A failure would
        // only keep memory.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for EventRing {}
