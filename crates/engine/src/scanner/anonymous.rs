//! `anonymous`: the bytes of the file are consumed in memory that already holds them. Consumption
//! alone costs this much, so no scan can be faster.

use pagewise_protocol::CallFailure;
use pagewise_sys::AnonymousMemory;

use super::mmap::consume_pieces;
use super::{ScanTarget, Scanner};
use crate::consume::by_consumer;

struct AnonymousScanner {
    memory: AnonymousMemory,
    target: ScanTarget,
}

pub(super) fn open(target: ScanTarget) -> Result<Box<dyn Scanner>, CallFailure> {
    let memory = target.file.load()?;
    Ok(Box::new(AnonymousScanner { memory, target }))
}

impl Scanner for AnonymousScanner {
    fn pass(&mut self) -> Result<u64, CallFailure> {
        let ScanTarget { file, piece_bytes, consumption } = &self.target;
        let source = &self.memory.bytes()[..file.span_bytes];
        Ok(by_consumer!(consumption, |consume| consume_pieces(source, *piece_bytes, consume)))
    }
}
