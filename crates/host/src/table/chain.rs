//! Dependent reads: offsets encoded with the data of the preceding reads.
//!
//! The entry that a worker gets for a read is its offset XOR the first 8 bytes, little-endian, of
//! the data of the read before it; for the first read of an operation it is the offset. The next
//! offset is therefore unknown until the data have arrived, both to a CPU that speculates and to a
//! worker that would leave reads out.

use std::fs::File;
use std::sync::atomic::AtomicBool;

use pagewise_model::Method;

use super::OffsetTable;
use crate::reference::ReferenceError;
use crate::reference::source::SourceReader;
use crate::reference::windows::each_read;

impl OffsetTable {
    /// Encode the offsets of dependent reads with the data of a dataset with `content_seed`; does
    /// nothing if reads are independent.
    pub fn chain_dataset(&mut self, content_seed: u64) -> Result<(), ReferenceError> {
        let content = self.content;
        self.chain(|offsets, see| {
            let mut link = [0; Method::LINK_BYTES as usize];
            for (read, offset) in offsets.iter().enumerate() {
                content.fill(content_seed, *offset, &mut link);
                see(read, &link);
            }
            Ok(())
        })
    }

    /// Encode the offsets of dependent reads with the first `span_bytes` of the user's file, which
    /// are read for it as for [`crate::Reference::for_file`]; does nothing if reads are
    /// independent.
    ///
    /// Called after that one: if reading changes the page cache, the state it finds is the original
    /// one.
    pub fn chain_file(
        &mut self,
        file: &File,
        span_bytes: u64,
        stop: &AtomicBool,
    ) -> Result<(), ReferenceError> {
        self.chain(|offsets, see| {
            let (mut reader, _) = SourceReader::open(file, span_bytes, stop)?;
            each_read(offsets, Method::LINK_BYTES, &mut reader, see)
        })
    }

    /// `links` passes the first bytes of each read with its index, in any order.
    fn chain(
        &mut self,
        links: impl FnOnce(&[u64], &mut dyn FnMut(usize, &[u8])) -> Result<(), ReferenceError>,
    ) -> Result<(), ReferenceError> {
        if !self.shape.dependent {
            return Ok(());
        }
        let mut entries = self.offsets.clone();
        let reads_per_op = self.reads_per_op as usize;
        links(&self.offsets, &mut |read, link| {
            let next = read + 1;
            if !next.is_multiple_of(reads_per_op) {
                entries[next] ^= u64::from_le_bytes(link.try_into().expect("a link of eight bytes"));
            }
        })?;
        self.hidden = Some(entries);
        Ok(())
    }
}
