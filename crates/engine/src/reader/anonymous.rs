//! `anonymous`: copying from memory that holds the file's bytes. No method that copies out of the page cache can
//! do better, so this is the ceiling of memory at the same offsets, working set and threads.
//!
//! Huge pages are asked for: the kernel's own mapping of the page cache has them, and a ceiling that paid
//! for more address translation than pread would be none.

use std::sync::Arc;

use pagewise_model::Consume;
use pagewise_model::checksum;
use pagewise_model::protocol::CallFailure;
use pagewise_sys::{Advice, AnonymousMemory};

use super::dependent::Chain;
use super::mmap::{copy_dependent_reads, copy_reads, touched_buffer};
use super::{Reader, Target, by_consumer};
use crate::failure::{failed, short};

const FILL_BYTES: usize = 1 << 20;

struct AnonymousReader {
    memory: Arc<AnonymousMemory>,
    buffer: AnonymousMemory,
    target: Target,
}

pub(super) fn open(
    target: &Target,
    threads: usize,
    dependent: bool,
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let memory = Arc::new(filled(target)?);
    (0..threads)
        .map(|_| {
            let buffer = touched_buffer(target.read_bytes, target)?;
            let reader = AnonymousReader { memory: memory.clone(), buffer, target: target.clone() };
            Ok(if dependent {
                Box::new(DependentReader { chain: Chain::new(target), reader }) as Box<dyn Reader>
            } else {
                Box::new(reader)
            })
        })
        .collect()
}

fn filled(target: &Target) -> Result<AnonymousMemory, CallFailure> {
    let file = target.open(false)?;
    let mut memory =
        AnonymousMemory::new(target.span_bytes).map_err(|error| failed("mmap", error, &target.path, 0))?;
    // A kernel without transparent huge pages refuses; then there are none to be had for the kernel either.
    let _ = memory.advise(Advice::HugePage);
    for (index, chunk) in memory.bytes_mut().chunks_mut(FILL_BYTES).enumerate() {
        let offset = (index * FILL_BYTES) as u64;
        let expected = chunk.len();
        let received = rustix::io::pread(&file, &mut *chunk, offset)
            .map_err(|error| failed("pread", error.into(), &target.path, offset))?;
        if received != expected {
            return Err(short("pread", &target.path, offset, expected, received));
        }
    }
    Ok(memory)
}

impl Reader for AnonymousReader {
    fn read(&mut self, offsets: &[u64]) -> Result<u64, CallFailure> {
        let source = self.memory.bytes();
        let buffer = &mut self.buffer.bytes_mut()[..self.target.read_bytes];
        Ok(by_consumer!(self.target.consumption, |consume| copy_reads(source, offsets, buffer, consume)))
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        let start = offset as usize;
        into.copy_from_slice(&self.memory.bytes()[start..start + into.len()]);
        Ok(())
    }
}

struct DependentReader {
    reader: AnonymousReader,
    chain: Chain,
}

impl Reader for DependentReader {
    fn read(&mut self, entries: &[u64]) -> Result<u64, CallFailure> {
        let AnonymousReader { memory, buffer, target } = &mut self.reader;
        let (source, chain) = (memory.bytes(), self.chain);
        let buffer = &mut buffer.bytes_mut()[..target.read_bytes];
        by_consumer!(target.consumption, |consume| copy_dependent_reads(
            source, entries, chain, buffer, consume
        ))
        .map_err(|astray| astray.into_failure(target))
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.reader.fetch(offset, into)
    }
}
