//! `mmap`: bytes are copied out of a shared mapping, or consumed in it.

mod dependent;
mod window;

use std::ops::Range;
use std::sync::Arc;

use pagewise_model::checksum;
use pagewise_model::protocol::CallFailure;
use pagewise_model::{Consume, Method, MethodOption};
use pagewise_sys::{Advice, AnonymousMemory, FileMapping};

use super::{Reader, Target, by_consumer, share};
use crate::failure::{failed, refused};
use dependent::DependentReader;
pub(super) use dependent::copy_dependent_reads;
use window::WindowReader;

struct MmapReader {
    mapping: Arc<FileMapping>,
    buffer: AnonymousMemory,
    target: Target,
    prefetch: bool,
    in_place: bool,
}

pub(super) fn open(
    method: &Method,
    target: &Target,
    threads: usize,
    per_thread: bool,
    dependent: bool,
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let mappings = share(threads, per_thread, || map(method, target))?;
    mappings
        .into_iter()
        .map(|mapping| {
            let buffer = touched_buffer(target.read_bytes, target)?;
            let (prefetch, in_place) =
                (method.has(MethodOption::Prefetch), method.has(MethodOption::InPlace));
            let reader = MmapReader { mapping, buffer, target: target.clone(), prefetch, in_place };
            Ok(match method.prefetch_window() {
                _ if dependent => Box::new(DependentReader::new(reader)) as Box<dyn Reader>,
                Some(window) => Box::new(WindowReader::new(reader, window)),
                None => Box::new(reader),
            })
        })
        .collect()
}

/// A buffer whose pages are there, so that no fault on it falls into a read.
pub(super) fn touched_buffer(len: usize, target: &Target) -> Result<AnonymousMemory, CallFailure> {
    let mut buffer = AnonymousMemory::new(len).map_err(|error| failed("mmap", error, &target.path, 0))?;
    buffer.bytes_mut().fill(0);
    Ok(buffer)
}

/// Opens, maps and advises, in the order in which the options were written.
fn map(method: &Method, target: &Target) -> Result<FileMapping, CallFailure> {
    let file = target.open(false)?;
    let populate = method.has(MethodOption::Populate);
    let span = 0..target.span_bytes;
    let mapping = FileMapping::new(&file, target.span_bytes, populate)
        .map_err(|error| failed("mmap", error, &target.path, 0))?;
    for option in method.options() {
        let advice = match option {
            MethodOption::Random => Advice::Random,
            MethodOption::Sequential => Advice::Sequential,
            MethodOption::WillNeed => Advice::WillNeed,
            MethodOption::PopulateRead => Advice::PopulateRead,
            MethodOption::HugePage => Advice::HugePage,
            _ => continue,
        };
        mapping.advise(span.clone(), advice).map_err(|error| refused(advice.name(), error, &target.path))?;
    }
    Ok(mapping)
}

/// The pages that hold `len` bytes from `offset` on.
fn pages(offset: u64, len: usize, page_bytes: usize) -> Range<usize> {
    let start = offset as usize / page_bytes * page_bytes;
    start..offset as usize + len
}

/// MADV_WILLNEED of the pages of a read.
fn advise_read(mapping: &FileMapping, target: &Target, offset: u64) -> Result<(), CallFailure> {
    mapping
        .advise(pages(offset, target.read_bytes, target.consumption.page_bytes), Advice::WillNeed)
        .map_err(|error| failed(Advice::WillNeed.name(), error, &target.path, offset))
}

/// Timed region: `for each offset: memcpy(buffer, mapping + offset, len); consume(buffer)`.
#[inline(never)]
pub(super) fn copy_reads(
    source: &[u8],
    offsets: &[u64],
    buffer: &mut [u8],
    consume: impl Fn(&[u8]) -> u64,
) -> u64 {
    let mut total = 0u64;
    for offset in offsets {
        let start = *offset as usize;
        buffer.copy_from_slice(&source[start..start + buffer.len()]);
        total = total.wrapping_add(consume(buffer));
    }
    total
}

/// Timed region: `for each offset: consume(mapping + offset)`.
#[inline(never)]
fn consume_reads(source: &[u8], offsets: &[u64], len: usize, consume: impl Fn(&[u8]) -> u64) -> u64 {
    let mut total = 0u64;
    for offset in offsets {
        let start = *offset as usize;
        total = total.wrapping_add(consume(&source[start..start + len]));
    }
    total
}

impl MmapReader {
    /// MADV_WILLNEED of all ranges of an operation, so that the device gets them together.
    fn prefetch(&self, operation: &[u64]) -> Result<(), CallFailure> {
        operation.iter().try_for_each(|offset| advise_read(&self.mapping, &self.target, *offset))
    }

    fn read_batch(&mut self, offsets: &[u64]) -> u64 {
        let (source, len) = (self.mapping.bytes(), self.target.read_bytes);
        if self.in_place {
            return by_consumer!(self.target.consumption, |consume| consume_reads(
                source, offsets, len, consume
            ));
        }
        let buffer = &mut self.buffer.bytes_mut()[..len];
        by_consumer!(self.target.consumption, |consume| copy_reads(source, offsets, buffer, consume))
    }
}

impl Reader for MmapReader {
    fn read(&mut self, offsets: &[u64]) -> Result<u64, CallFailure> {
        if !self.prefetch {
            return Ok(self.read_batch(offsets));
        }
        let mut total = 0u64;
        for operation in offsets.chunks(self.target.reads_per_op) {
            self.prefetch(operation)?;
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
