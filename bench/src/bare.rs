//! The bare C loops (`bare.c`), and what they run on: a mapping or a descriptor and a buffer of
//! their own.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use pagewise_model::Access;
use pagewise_sys::{AnonymousMemory, FileMapping};

use crate::cell::Cell;
use crate::offsets::Offsets;

#[allow(unsafe_code)]
mod ffi {
    unsafe extern "C" {
        pub fn bare_mmap_reads(
            source: *const u8,
            offsets: *const u64,
            count: usize,
            buffer: *mut u8,
            len: usize,
            touch_at: usize,
        ) -> u64;

        pub fn bare_pread_reads(
            file: i32,
            offsets: *const u64,
            count: usize,
            buffer: *mut u8,
            len: usize,
            touch_at: usize,
            total: *mut u64,
        ) -> usize;
    }
}

/// Where the bytes come from.
enum Origin {
    Mapping(FileMapping),
    File(File),
}

/// One thread's bare loop.
pub struct Bare {
    origin: Arc<Origin>,
    buffer: AnonymousMemory,
}

impl Bare {
    /// The bare loops of a cell's threads, which share one descriptor or one mapping, as a worker's
    /// threads do. Page tables are full when this returns.
    pub fn open(path: &Path, cell: &Cell) -> Result<Vec<Self>> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let origin = match cell.access {
            Access::Mmap => {
                let len = file.metadata()?.len() as usize;
                let mapping = FileMapping::new(&file, len, false)
                    .with_context(|| format!("cannot map {}", path.display()))?;
                let pages = mapping.bytes().iter().step_by(rustix::param::page_size());
                std::hint::black_box(pages.fold(0u8, |total, byte| total.wrapping_add(*byte)));
                Origin::Mapping(mapping)
            }
            _ => Origin::File(file),
        };
        let origin = Arc::new(origin);
        (0..cell.threads)
            .map(|_| {
                let mut buffer = AnonymousMemory::new(cell.read_bytes.0 as usize)?;
                buffer.bytes_mut().fill(0);
                Ok(Self { origin: origin.clone(), buffer })
            })
            .collect()
    }

    /// Does the reads at `offsets` and returns the sum of their checksums.
    #[allow(unsafe_code)]
    #[inline(never)]
    pub fn read(&mut self, offsets: Offsets<'_>) -> io::Result<u64> {
        let touch_at = offsets.touch_at();
        let buffer = self.buffer.bytes_mut();
        assert_eq!(buffer.len(), offsets.read_bytes(), "a buffer holds one read");
        let (start, count) = (offsets.reads().as_ptr(), offsets.reads().len());
        match &*self.origin {
            Origin::Mapping(mapping) => {
                assert!(offsets.end() <= mapping.bytes().len() as u64, "reads behind the mapping");
                let source = mapping.bytes().as_ptr();
                // SAFETY: `Offsets` proves that each read ends at or before `end`, which lies in
                // the mapping; the buffer holds one read, which has whole pages, and is borrowed
                // exclusively. `Offsets` proves that a page has a whole word at `touch_at`.
                Ok(unsafe {
                    let (into, len) = (buffer.as_mut_ptr(), buffer.len());
                    ffi::bare_mmap_reads(source, start, count, into, len, touch_at)
                })
            }
            Origin::File(file) => {
                let mut total = 0;
                // SAFETY: the kernel writes at most the buffer's length to the buffer, which is
                // borrowed exclusively; the descriptor is open as long as `file` lives.
                let done = unsafe {
                    let (into, len) = (buffer.as_mut_ptr(), buffer.len());
                    ffi::bare_pread_reads(file.as_raw_fd(), start, count, into, len, touch_at, &mut total)
                };
                if done == count { Ok(total) } else { Err(io::Error::last_os_error()) }
            }
        }
    }
}
