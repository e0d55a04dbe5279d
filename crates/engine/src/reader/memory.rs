//! `mmap` and `anonymous`: bytes are copied from memory that holds the span, or consumed in it.
//!
//! The memory is a mapping of the file, or what was read of it before. No method that copies from
//! the page cache can be faster than copying from the latter, so this is the memory ceiling for the
//! same offsets, working set and threads.

mod window;

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use pagewise_protocol::CallFailure;
use pagewise_sys::{Advice, AnonymousMemory, FileMapping};

use super::order::{Independent, Order, Stopped, out_of_range};
use super::{Due, ReadRange, ReadTarget, Reader};
use crate::consume::by_consumer;
use crate::failure::failed;
pub(super) use window::open as open_window;

/// Memory with the bytes of the span.
#[derive(Clone)]
enum Source {
    Mapped(Arc<FileMapping>),
    Loaded(Arc<AnonymousMemory>),
}

pub(super) struct MemoryReader<O> {
    source: Source,
    /// Bytes are copied to it; `None`: they are consumed in place.
    buffer: Option<AnonymousMemory>,
    target: ReadTarget,
    order: O,
}

/// Readers of mappings of the file.
pub(super) fn mapped<O: Order>(target: &ReadTarget, order: O) -> Result<Vec<MemoryReader<O>>, CallFailure> {
    let sources = target.share(|| target.file.map())?;
    let in_place = target.file.effects.in_place;
    sources
        .into_iter()
        .map(|mapping| MemoryReader::new(Source::Mapped(mapping), !in_place, target, order))
        .collect()
}

/// Readers of memory that the file was read into. A scan consumes it in place: all of it is there,
/// so nothing can be faster.
pub(super) fn loaded<O: Order>(target: &ReadTarget, order: O) -> Result<Vec<MemoryReader<O>>, CallFailure> {
    let source = Source::Loaded(Arc::new(target.file.load()?));
    let copies = !O::IS_FRONT_TO_BACK;
    (0..target.threads).map(|_| MemoryReader::new(source.clone(), copies, target, order)).collect()
}

impl Source {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        match self {
            Source::Mapped(mapping) => mapping.bytes(),
            Source::Loaded(memory) => memory.bytes(),
        }
    }

    /// MADV_WILLNEED of the pages of a read. What was read before needs none.
    fn advise(&self, target: &ReadTarget, offset: u64) -> Result<(), CallFailure> {
        let Source::Mapped(mapping) = self else { return Ok(()) };
        let range = Independent::of(target).range(offset, target.read_bytes);
        let (offset, len) = range.ok_or_else(|| out_of_range(target, offset))?;
        mapping
            .advise(pages(offset, len, target.consumption.page_bytes), Advice::WillNeed)
            .map_err(|error| failed(Advice::WillNeed.name(), error, &target.file.path, offset))
    }
}

/// The pages that hold `len` bytes from `offset` on.
fn pages(offset: u64, len: usize, page_bytes: usize) -> Range<usize> {
    let start = offset as usize / page_bytes * page_bytes;
    start..offset as usize + len
}

impl<O: Order> MemoryReader<O> {
    fn new(source: Source, copies: bool, target: &ReadTarget, order: O) -> Result<Self, CallFailure> {
        let buffer = copies.then(|| target.file.buffer(target.read_bytes)).transpose()?;
        Ok(Self { source, buffer, target: target.clone(), order })
    }
}

/// Timed region: [`Order::reads`] with
/// `memcpy(buffer, memory + offset, len); link(buffer); consume(buffer)`.
#[inline(never)]
fn copied<O: Order>(
    source: &[u8],
    due: Due<'_>,
    order: O,
    buffer: &mut [u8],
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Stopped<Infallible>> {
    let mut total = 0u64;
    order.reads(
        due,
        buffer.len(),
        #[inline(always)]
        |weight, (offset, len)| {
            let (start, buffer) = (offset as usize, &mut buffer[..len]);
            buffer.copy_from_slice(&source[start..start + len]);
            total = total.wrapping_add(weight.wrapping_mul(consume(buffer)));
            Ok(order.link(buffer))
        },
    )?;
    Ok(total)
}

/// Timed region: [`Order::reads`] with `link(memory + offset); consume(memory + offset)`.
#[inline(never)]
fn in_place<O: Order>(
    source: &[u8],
    due: Due<'_>,
    order: O,
    len: usize,
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Stopped<Infallible>> {
    let mut total = 0u64;
    order.reads(
        due,
        len,
        #[inline(always)]
        |weight, (offset, len)| {
            let bytes = &source[offset as usize..offset as usize + len];
            total = total.wrapping_add(weight.wrapping_mul(consume(bytes)));
            Ok(order.link(bytes))
        },
    )?;
    Ok(total)
}

impl<O: Order> Reader for MemoryReader<O> {
    const IN_MEMORY: bool = true;

    #[inline(always)]
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        let prefetch = self.target.file.effects.prefetch;
        let due = reads.due();
        // All ranges of an operation are advised together, so that the device receives them so.
        let together = if prefetch { self.target.reads_per_op } else { due.entries.len().max(1) };
        let mut total = 0u64;
        for due in due.operations(together) {
            if prefetch {
                due.unmasked().try_for_each(|offset| self.source.advise(&self.target, offset))?;
            }
            let (source, len, order) = (self.source.bytes(), self.target.read_bytes, self.order);
            let consumption = due.consumption(self.target.consumption);
            let checksum = by_consumer!(consumption, |consume| match &mut self.buffer {
                Some(buffer) => copied(source, due, order, &mut buffer.bytes_mut()[..len], consume),
                None => in_place(source, due, order, len, consume),
            });
            let checksum =
                checksum.map_err(|stopped| stopped.into_failure(&self.target, |never| match never {}))?;
            total = total.wrapping_add(checksum);
        }
        Ok(total)
    }

    fn warm_page_tables(&mut self) {
        let Source::Mapped(mapping) = &self.source else { return };
        let pages = mapping.bytes().iter().step_by(self.target.consumption.page_bytes);
        std::hint::black_box(pages.fold(0u8, |total, byte| total.wrapping_add(*byte)));
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        let start = offset as usize;
        into.copy_from_slice(&self.source.bytes()[start..start + into.len()]);
        Ok(())
    }
}
