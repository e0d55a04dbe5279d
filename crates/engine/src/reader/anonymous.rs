//! `anonymous`: copying from memory that holds the file's bytes. No method that copies from the page cache can be
//! faster, so this is the memory ceiling for the same offsets, working set and threads.

use std::sync::Arc;

use pagewise_protocol::CallFailure;
use pagewise_sys::AnonymousMemory;

use super::dependent::{Chain, Follow};
use super::mmap::{copy_dependent_reads, copy_reads};
use super::{Due, ReadTarget, Reader};
use crate::consume::by_consumer;

struct AnonymousReader {
    memory: Arc<AnonymousMemory>,
    buffer: AnonymousMemory,
    target: ReadTarget,
}

pub(super) fn open(
    target: &ReadTarget,
    threads: usize,
    dependent: bool,
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let memory = Arc::new(target.file.load()?);
    (0..threads)
        .map(|_| {
            let buffer = target.file.buffer(target.read_bytes)?;
            let reader = AnonymousReader { memory: memory.clone(), buffer, target: target.clone() };
            Ok(reader.boxed(target, dependent))
        })
        .collect()
}

impl Reader for AnonymousReader {
    fn read(&mut self, due: Due<'_>) -> Result<u64, CallFailure> {
        let source = self.memory.bytes();
        let buffer = &mut self.buffer.bytes_mut()[..self.target.read_bytes];
        Ok(by_consumer!(self.target.consumption, |consume| copy_reads(source, due, buffer, consume)))
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        let start = offset as usize;
        into.copy_from_slice(&self.memory.bytes()[start..start + into.len()]);
        Ok(())
    }
}

impl Follow for AnonymousReader {
    fn follow(&mut self, due: Due<'_>, chain: Chain) -> Result<u64, CallFailure> {
        let source = self.memory.bytes();
        let buffer = &mut self.buffer.bytes_mut()[..self.target.read_bytes];
        by_consumer!(self.target.consumption, |consume| copy_dependent_reads(
            source, due, chain, buffer, consume
        ))
        .map_err(|stopped| stopped.into_failure(&self.target, |never| match never {}))
    }
}
