//! `anonymous`: the bytes of the file are consumed in memory that holds them already. What is done with the bytes costs
//! this much by itself, so no scan can do better.

use pagewise_model::protocol::CallFailure;
use pagewise_sys::AnonymousMemory;

use super::mmap::consume_pieces;
use super::{Scanner, Target};
use crate::consume::by_consumer;

struct AnonymousScanner {
    memory: AnonymousMemory,
    target: Target,
}

pub(super) fn open(target: Target) -> Result<Box<dyn Scanner>, CallFailure> {
    let memory = target.file.load()?;
    Ok(Box::new(AnonymousScanner { memory, target }))
}

impl Scanner for AnonymousScanner {
    fn pass(&mut self) -> Result<u64, CallFailure> {
        let Target { file, piece_bytes, consumption } = &self.target;
        let source = &self.memory.bytes()[..file.span_bytes];
        Ok(by_consumer!(consumption, |consume| consume_pieces(source, *piece_bytes, consume)))
    }
}
