//! `mmap`: bytes are copied from a shared mapping, or consumed in it.

mod window;

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use pagewise_protocol::CallFailure;
use pagewise_sys::{Advice, AnonymousMemory, FileMapping};

use super::order::{Independent, Order, OrderKind, ReadInOrder, Stopped, out_of_range};
use super::{Due, ReadRange, ReadTarget, Reader, share};
use crate::consume::by_consumer;
use crate::effects::Effects;
use crate::failure::failed;
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
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let mappings = share(threads, per_thread, || target.file.map())?;
    mappings
        .into_iter()
        .map(|mapping| {
            let buffer = target.file.buffer(target.read_bytes)?;
            let Effects { prefetch, in_place, prefetch_window, .. } = target.file.effects;
            let reader = MmapReader { mapping, buffer, target: target.clone(), prefetch, in_place };
            Ok(match prefetch_window {
                Some(window) if target.order == OrderKind::Independent => {
                    Box::new(WindowReader::new(reader, window))
                }
                _ => reader.boxed(target),
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
    Independent::of(target).range(offset, target.read_bytes).ok_or_else(|| out_of_range(target, offset))?;
    mapping
        .advise(pages(offset, target.read_bytes, target.consumption.page_bytes), Advice::WillNeed)
        .map_err(|error| failed(Advice::WillNeed.name(), error, &target.file.path, offset))
}

/// Do the reads of `target` from memory, into `buffer`.
pub(super) fn copy_reads(
    source: &[u8],
    due: Due<'_>,
    order: impl Order,
    buffer: &mut [u8],
    target: &ReadTarget,
) -> Result<u64, CallFailure> {
    let buffer = &mut buffer[..target.read_bytes];
    let consumption = due.consumption(target.consumption);
    let result = by_consumer!(consumption, |consume| copied(source, due, order, buffer, consume));
    result.map_err(|stopped| stopped.into_failure(target, |never| match never {}))
}

/// Timed region: [`Order::reads`] with
/// `memcpy(buffer, mapping + offset, len); link(buffer); consume(buffer)`.
#[inline(never)]
fn copied<O: Order>(
    source: &[u8],
    due: Due<'_>,
    order: O,
    buffer: &mut [u8],
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Stopped<Infallible>> {
    order.reads(due, buffer.len(), |(offset, len)| {
        let (start, buffer) = (offset as usize, &mut buffer[..len]);
        buffer.copy_from_slice(&source[start..start + len]);
        Ok((order.link(buffer), consume(buffer)))
    })
}

/// Timed region: [`Order::reads`] with `link(mapping + offset); consume(mapping + offset)`.
#[inline(never)]
fn in_place<O: Order>(
    source: &[u8],
    due: Due<'_>,
    order: O,
    len: usize,
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Stopped<Infallible>> {
    order.reads(due, len, |(offset, len)| {
        let start = offset as usize;
        let bytes = &source[start..start + len];
        Ok((order.link(bytes), consume(bytes)))
    })
}

impl MmapReader {
    /// MADV_WILLNEED of all ranges of an operation, so that the device receives them together.
    fn prefetch(&self, operation: Due<'_>) -> Result<(), CallFailure> {
        operation.unmasked().try_for_each(|offset| advise_read(&self.mapping, &self.target, offset))
    }
}

impl ReadInOrder for MmapReader {
    fn read_in(&mut self, due: Due<'_>, order: impl Order) -> Result<u64, CallFailure> {
        let (source, target) = (self.mapping.bytes(), &self.target);
        if !self.in_place {
            return copy_reads(source, due, order, self.buffer.bytes_mut(), target);
        }
        let len = target.read_bytes;
        let consumption = due.consumption(target.consumption);
        let result = by_consumer!(consumption, |consume| in_place(source, due, order, len, consume));
        result.map_err(|stopped| stopped.into_failure(target, |never| match never {}))
    }
}

impl Reader for MmapReader {
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        let order = Independent::of(&self.target);
        if !self.prefetch {
            return self.read_in(reads.due(), order);
        }
        let mut total = 0u64;
        for operation in reads.due().operations(self.target.reads_per_op) {
            self.prefetch(operation)?;
            total = total.wrapping_add(self.read_in(operation, order)?);
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
