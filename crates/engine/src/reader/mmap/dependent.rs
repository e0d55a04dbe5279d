//! Dependent reads of a mapping.

use pagewise_model::protocol::CallFailure;

use super::MmapReader;
use crate::consume::by_consumer;
use crate::reader::dependent::{Astray, Chain, link};
use crate::reader::{Due, Reader};

pub(super) struct DependentReader {
    reader: MmapReader,
    chain: Chain,
}

impl DependentReader {
    pub(super) fn new(reader: MmapReader) -> Self {
        let chain = Chain::new(&reader.target);
        Self { reader, chain }
    }
}

/// Timed region: [`Chain::follow`] with `memcpy(buffer, mapping + offset, len); link(buffer); consume(buffer)`.
#[inline(never)]
pub(in crate::reader) fn copy_dependent_reads(
    source: &[u8],
    due: Due<'_>,
    chain: Chain,
    buffer: &mut [u8],
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Astray> {
    chain.follow(due, |offset| {
        let start = offset as usize;
        buffer.copy_from_slice(&source[start..start + buffer.len()]);
        Ok((link(buffer), consume(buffer)))
    })
}

/// Timed region: [`Chain::follow`] with `link(mapping + offset); consume(mapping + offset)`.
#[inline(never)]
fn consume_dependent_reads(
    source: &[u8],
    due: Due<'_>,
    chain: Chain,
    len: usize,
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Astray> {
    chain.follow(due, |offset| {
        let start = offset as usize;
        let bytes = &source[start..start + len];
        Ok((link(bytes), consume(bytes)))
    })
}

impl Reader for DependentReader {
    fn read(&mut self, due: Due<'_>) -> Result<u64, CallFailure> {
        let MmapReader { mapping, buffer, target, in_place, .. } = &mut self.reader;
        let (source, len, chain) = (mapping.bytes(), target.read_bytes, self.chain);
        let result = if *in_place {
            by_consumer!(target.consumption, |consume| consume_dependent_reads(
                source, due, chain, len, consume
            ))
        } else {
            let buffer = &mut buffer.bytes_mut()[..len];
            by_consumer!(target.consumption, |consume| copy_dependent_reads(
                source, due, chain, buffer, consume
            ))
        };
        result.map_err(|astray| astray.into_failure(target))
    }

    fn warm_page_tables(&mut self) {
        self.reader.warm_page_tables();
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.reader.fetch(offset, into)
    }
}
