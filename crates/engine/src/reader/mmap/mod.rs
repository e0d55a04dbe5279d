//! `mmap`: bytes are copied from a shared mapping, or consumed in it.

mod dependent;
mod window;

use std::ops::Range;
use std::sync::Arc;

use pagewise_protocol::CallFailure;
use pagewise_sys::{Advice, AnonymousMemory, FileMapping};

use super::dependent::Follow;
use super::{Due, ReadTarget, Reader, share};
use crate::consume::by_consumer;
use crate::effects::Effects;
use crate::failure::failed;
pub(super) use dependent::copy_dependent_reads;
use window::WindowReader;

struct MmapReader {
    mapping: Arc<FileMapping>,
    buffer: AnonymousMemory,
    target: ReadTarget,
    prefetch: bool,
    in_place: bool,
}

pub(super) fn open(
    target: &ReadTarget,
    threads: usize,
    per_thread: bool,
    dependent: bool,
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let mappings = share(threads, per_thread, || target.file.map())?;
    mappings
        .into_iter()
        .map(|mapping| {
            let buffer = target.file.buffer(target.read_bytes)?;
            let Effects { prefetch, in_place, prefetch_window, .. } = target.file.effects;
            let reader = MmapReader { mapping, buffer, target: target.clone(), prefetch, in_place };
            Ok(match prefetch_window {
                Some(window) if !dependent => Box::new(WindowReader::new(reader, window)),
                _ => reader.boxed(target, dependent),
            })
        })
        .collect()
}

/// The pages that hold `len` bytes from `offset` on.
fn pages(offset: u64, len: usize, page_bytes: usize) -> Range<usize> {
    let start = offset as usize / page_bytes * page_bytes;
    start..offset as usize + len
}

/// MADV_WILLNEED of the pages of a read.
fn advise_read(mapping: &FileMapping, target: &ReadTarget, offset: u64) -> Result<(), CallFailure> {
    mapping
        .advise(pages(offset, target.read_bytes, target.consumption.page_bytes), Advice::WillNeed)
        .map_err(|error| failed(Advice::WillNeed.name(), error, &target.file.path, offset))
}

/// Timed region: `for each (weight, offset): memcpy(buffer, mapping + offset, len); total += weight * consume(buffer)`.
#[inline(never)]
pub(super) fn copy_reads(
    source: &[u8],
    due: Due<'_>,
    buffer: &mut [u8],
    consume: impl Fn(&[u8]) -> u64,
) -> u64 {
    let mut total = 0u64;
    for (weight, offset) in due.weighted() {
        let start = offset as usize;
        buffer.copy_from_slice(&source[start..start + buffer.len()]);
        total = total.wrapping_add(weight.wrapping_mul(consume(buffer)));
    }
    total
}

/// Timed region: `for each (weight, offset): total += weight * consume(mapping + offset)`.
#[inline(never)]
fn consume_reads(source: &[u8], due: Due<'_>, len: usize, consume: impl Fn(&[u8]) -> u64) -> u64 {
    let mut total = 0u64;
    for (weight, offset) in due.weighted() {
        let start = offset as usize;
        total = total.wrapping_add(weight.wrapping_mul(consume(&source[start..start + len])));
    }
    total
}

impl MmapReader {
    /// MADV_WILLNEED of all ranges of an operation, so that the device receives them together.
    fn prefetch(&self, operation: &[u64]) -> Result<(), CallFailure> {
        operation.iter().try_for_each(|offset| advise_read(&self.mapping, &self.target, *offset))
    }

    fn read_batch(&mut self, due: Due<'_>) -> u64 {
        let (source, len) = (self.mapping.bytes(), self.target.read_bytes);
        if self.in_place {
            return by_consumer!(self.target.consumption, |consume| consume_reads(source, due, len, consume));
        }
        let buffer = &mut self.buffer.bytes_mut()[..len];
        by_consumer!(self.target.consumption, |consume| copy_reads(source, due, buffer, consume))
    }
}

impl Reader for MmapReader {
    fn read(&mut self, due: Due<'_>) -> Result<u64, CallFailure> {
        if !self.prefetch {
            return Ok(self.read_batch(due));
        }
        let mut total = 0u64;
        for operation in due.operations(self.target.reads_per_op) {
            self.prefetch(operation.entries)?;
            total = total.wrapping_add(self.read_batch(operation));
        }
        Ok(total)
    }

    fn warm_page_tables(&mut self) {
        let pages = self.mapping.bytes().iter().step_by(self.target.consumption.page_bytes);
        std::hint::black_box(pages.fold(0u8, |total, byte| total.wrapping_add(*byte)));
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        let start = offset as usize;
        into.copy_from_slice(&self.mapping.bytes()[start..start + into.len()]);
        Ok(())
    }
}
