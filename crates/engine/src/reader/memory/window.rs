//! A window of reads for which advice is given ahead; it slides over the thread's part of the
//! table.

use pagewise_protocol::CallFailure;

use super::{MemoryReader, mapped};
use crate::consume::by_consumer;
use crate::reader::order::Independent;
use crate::reader::{ReadRange, ReadTarget, Reader};

pub(in crate::reader) struct WindowReader {
    reader: MemoryReader<Independent>,
    window: AdviceWindow,
}

/// Readers of mappings, with advice for this many reads ahead.
pub(in crate::reader) fn open(target: &ReadTarget, ahead: u32) -> Result<Vec<WindowReader>, CallFailure> {
    let readers = mapped(target, Independent::of(target))?;
    Ok(readers.into_iter().map(|reader| WindowReader { reader, window: AdviceWindow::new(ahead) }).collect())
}

/// Progress of the advice. Positions as in [`ReadRange`].
struct AdviceWindow {
    /// Number of reads ahead of the current one that advice is given for.
    ahead: u64,
    /// Position of the next read, if reads continue in order.
    next: u64,
    /// Position up to which advice was given.
    advised: u64,
}

impl AdviceWindow {
    fn new(ahead: u32) -> Self {
        Self { ahead: u64::from(ahead), next: 0, advised: 0 }
    }

    /// Timed region:
    /// `for each read i that is due: advise reads up to i + ahead; total += weight * take(read i)`.
    /// That is one call of advice for each read, and a whole window if reads begin at a new
    /// position.
    #[inline(always)]
    fn slide<E>(
        &mut self,
        reads: ReadRange<'_>,
        mut advise: impl FnMut(u64) -> Result<(), E>,
        mut take: impl FnMut(u64) -> u64,
    ) -> Result<u64, E> {
        if reads.first() != self.next {
            self.advised = reads.first();
        }
        self.next = reads.first() + reads.due().entries.len() as u64;
        let mut total = 0u64;
        for (position, (weight, offset)) in (reads.first()..).zip(reads.due().weighted()) {
            let advised_end = (position + self.ahead + 1).min(reads.end());
            while self.advised < advised_end {
                advise(reads.at(self.advised))?;
                self.advised += 1;
            }
            total = total.wrapping_add(weight.wrapping_mul(take(offset)));
        }
        Ok(total)
    }
}

impl Reader for WindowReader {
    /// Timed region: that of the window.
    #[inline(never)]
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        let MemoryReader { source, buffer, target, .. } = &mut self.reader;
        let (memory, len) = (source.bytes(), target.read_bytes);
        let advise = |offset| source.advise(target, offset);
        let bytes = |offset: u64| &memory[offset as usize..offset as usize + len];
        by_consumer!(reads.due().consumption(target.consumption), |consume| match buffer {
            None => self.window.slide(reads, advise, |offset| consume(bytes(offset))),
            Some(buffer) => {
                let buffer = &mut buffer.bytes_mut()[..len];
                self.window.slide(reads, advise, |offset| {
                    buffer.copy_from_slice(bytes(offset));
                    consume(buffer)
                })
            }
        })
    }

    fn warm_page_tables(&mut self) {
        self.reader.warm_page_tables();
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.reader.fetch(offset, into)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::reader::Piece;

    /// Read batches of a part of 10 reads with offsets from 100; return the actions, with advice as
    /// negative numbers.
    fn course(window: &mut AdviceWindow, batches: &[(u64, u64)], end: u64) -> Vec<i64> {
        let part: Vec<u64> = (100..110).collect();
        let course = RefCell::new(Vec::new());
        for (first, count) in batches {
            let piece = Piece { end: u64::MAX, ..Piece::default() };
            let reads = ReadRange::new(&part, (*first, *count), end, 0, piece);
            let weights: u64 = reads.due().weighted().map(|(weight, _)| weight).sum();
            let total = window.slide(
                reads,
                |offset| {
                    course.borrow_mut().push(-(offset as i64));
                    Ok::<_, ()>(())
                },
                |offset| {
                    course.borrow_mut().push(offset as i64);
                    1
                },
            );
            assert_eq!(total, Ok(weights));
        }
        course.into_inner()
    }

    #[test]
    fn the_window_stays_ahead_over_batches_and_passes() {
        let course = course(&mut AdviceWindow::new(2), &[(7, 2), (9, 1), (10, 2)], u64::MAX);
        assert_eq!(course, [-107, -108, -109, 107, -100, 108, -101, 109, -102, 100, -103, 101]);
    }

    #[test]
    fn nothing_is_advised_behind_the_last_read() {
        let course = course(&mut AdviceWindow::new(4096), &[(6, 2), (8, 1)], 9);
        assert_eq!(course, [-106, -107, -108, 106, 107, 108]);
    }

    #[test]
    fn a_new_start_has_a_new_window() {
        let mut window = AdviceWindow::new(1);
        assert_eq!(course(&mut window, &[(0, 2)], u64::MAX), [-100, -101, 100, -102, 101]);
        assert_eq!(course(&mut window, &[(0, 1), (1, 1)], u64::MAX), [-100, -101, 100, -102, 101]);
        assert_eq!(course(&mut window, &[(5, 1)], u64::MAX), [-105, -106, 105]);
    }

    #[test]
    fn a_window_wider_than_the_part_goes_round() {
        let course = course(&mut AdviceWindow::new(12), &[(0, 1), (1, 1)], u64::MAX);
        let advice: Vec<i64> = (0..13).map(|read| -(100 + read % 10)).collect();
        assert_eq!(course, [&advice[..], &[100, -103, 101]].concat());
    }
}
