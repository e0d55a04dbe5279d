//! Dependent reads of a mapping.

use std::convert::Infallible;

use pagewise_protocol::CallFailure;

use super::MmapReader;
use crate::consume::by_consumer;
use crate::reader::Due;
use crate::reader::dependent::{Chain, ChainStopped, Follow, link};

/// Timed region: [`Chain::follow`] with `memcpy(buffer, mapping + offset, len); link(buffer); consume(buffer)`.
#[inline(never)]
pub(in crate::reader) fn copy_dependent_reads(
    source: &[u8],
    due: Due<'_>,
    chain: Chain,
    buffer: &mut [u8],
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, ChainStopped<Infallible>> {
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
) -> Result<u64, ChainStopped<Infallible>> {
    chain.follow(due, |offset| {
        let start = offset as usize;
        let bytes = &source[start..start + len];
        Ok((link(bytes), consume(bytes)))
    })
}

impl Follow for MmapReader {
    fn follow(&mut self, due: Due<'_>, chain: Chain) -> Result<u64, CallFailure> {
        let MmapReader { mapping, buffer, target, in_place, .. } = self;
        let (source, len) = (mapping.bytes(), target.read_bytes);
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
        result.map_err(|stopped| stopped.into_failure(target, |never| match never {}))
    }
}
