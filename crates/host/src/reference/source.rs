//! Content of a file: by formula, or by reading it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use pagewise_model::Content;
use pagewise_sys::AnonymousMemory;
use rustix::fs::OFlags;

use super::{ReferenceError, ReferenceSource};
use crate::environment::direct_alignment;
use crate::{cache, scratch};

/// Alignment of direct reads if the filesystem does not report one: suitable for every disk.
const DIRECT_ALIGNMENT: u64 = 4096;

/// Source of expected bytes.
pub(crate) trait ByteSource {
    /// Divisor required of offsets and lengths.
    fn alignment(&self) -> u64;
    /// Fill `buffer` from `offset` on; at least the first `needed` bytes.
    fn fill(&mut self, offset: u64, buffer: &mut [u8], needed: usize) -> Result<(), ReferenceError>;
}

pub(super) struct Formula {
    pub(super) content: Content,
    pub(super) seed: u64,
}

impl ByteSource for Formula {
    fn alignment(&self) -> u64 {
        8
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8], needed: usize) -> Result<(), ReferenceError> {
        self.content.fill(self.seed, offset, &mut buffer[..needed]);
        Ok(())
    }
}

pub(crate) struct SourceReader<'a> {
    file: File,
    path: PathBuf,
    alignment: u64,
    stop: &'a AtomicBool,
}

impl<'a> SourceReader<'a> {
    /// Open the file anew, so that the user's descriptor keeps its readahead state.
    pub(crate) fn open(
        file: &File,
        span_bytes: u64,
        stop: &'a AtomicBool,
    ) -> Result<(Self, ReferenceSource), ReferenceError> {
        let again = scratch::reopen_path(file);
        let path = std::fs::read_link(&again).unwrap_or_else(|_| again.clone());
        let reader = |file, alignment| Self { file, path: path.clone(), alignment, stop };
        let cached = cache::residency(file, span_bytes).resident_bytes == Some(span_bytes);
        if !cached {
            let flags = OFlags::DIRECT.bits() as i32;
            if let Ok(direct) = File::options().read(true).custom_flags(flags).open(&again) {
                let alignment = direct_alignment(&direct).unwrap_or(DIRECT_ALIGNMENT);
                let mut reader = reader(direct, alignment);
                // O_DIRECT may be accepted at open(2) and refused at the first transfer.
                let mut probe = buffer(alignment)?;
                if reader.fill(0, probe.bytes_mut(), 1).is_ok() {
                    return Ok((reader, ReferenceSource::DirectReads));
                }
            }
        }
        let plain = File::open(&again).map_err(|source| ReferenceError::Call {
            path: path.clone(),
            call: "open",
            offset: 0,
            source,
        })?;
        let source = if cached { ReferenceSource::CachedReads } else { ReferenceSource::DisturbingReads };
        Ok((reader(plain, 1), source))
    }
}

impl ByteSource for SourceReader<'_> {
    fn alignment(&self) -> u64 {
        self.alignment
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8], needed: usize) -> Result<(), ReferenceError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ReferenceError::Stopped { path: self.path.clone() });
        }
        let mut done = 0;
        while done < needed {
            let at = offset + done as u64;
            match self.file.read_at(&mut buffer[done..], at) {
                Ok(0) => return Err(ReferenceError::Short { path: self.path.clone(), offset: at }),
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(ReferenceError::Call {
                        path: self.path.clone(),
                        call: "pread",
                        offset: at,
                        source,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Page-aligned memory, as O_DIRECT requires.
pub(super) fn buffer(bytes: u64) -> Result<AnonymousMemory, ReferenceError> {
    AnonymousMemory::new(bytes as usize).map_err(|source| ReferenceError::Memory { bytes, source })
}
