//! `anonymous`: copying from memory that holds the file's bytes. No method that copies from the
//! page cache can be faster, so this is the memory ceiling for the same offsets, working set and
//! threads.

use std::sync::Arc;

use pagewise_protocol::CallFailure;
use pagewise_sys::AnonymousMemory;

use super::mmap::copy_reads;
use super::order::{Independent, Order, ReadInOrder};
use super::{Due, ReadRange, ReadTarget, Reader};

struct AnonymousReader {
    memory: Arc<AnonymousMemory>,
    buffer: AnonymousMemory,
    target: ReadTarget,
}

pub(super) fn open(target: &ReadTarget, threads: usize) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let memory = Arc::new(target.file.load()?);
    (0..threads)
        .map(|_| {
            let buffer = target.file.buffer(target.read_bytes)?;
            let reader = AnonymousReader { memory: memory.clone(), buffer, target: target.clone() };
            Ok(reader.boxed(target))
        })
        .collect()
}

impl ReadInOrder for AnonymousReader {
    fn read_in(&mut self, due: Due<'_>, order: impl Order) -> Result<u64, CallFailure> {
        copy_reads(self.memory.bytes(), due, order, self.buffer.bytes_mut(), &self.target)
    }
}

impl Reader for AnonymousReader {
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        self.read_in(reads.due(), Independent::of(&self.target))
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        let start = offset as usize;
        into.copy_from_slice(&self.memory.bytes()[start..start + into.len()]);
        Ok(())
    }
}
