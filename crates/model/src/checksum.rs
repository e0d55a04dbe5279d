//! Consumption of the bytes of a read, and the checksum that results.
//!
//! Workers of all languages consume in the same way, so that all methods do the same work. Words
//! are little-endian, 64 bits, added modulo 2^64. The checksum of reads by an offset table is the
//! sum of the checksums of its reads, each times the [`weight`] of its index in the table. It does
//! not depend on the order of the reads, but a read at the position of another changes it.
//!
//! * `touch`: one word of each page-sized range of the read, at a position in the page that a
//!   worker learns with `go` ([`Consumption::touch_at`]), and the read's last word when reads are
//!   not page-aligned (an unaligned read of n pages lies on n + 1);
//! * `sum`: all words; a tail shorter than a word counts as if padded with zeros;
//! * `lines`: the number of newline bytes.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// Consumption of the bytes of a read.
    Consume, "consumption" {
        /// One word of each page.
        Touch = "touch",
        /// All bytes.
        Sum = "sum",
        /// Count of newline bytes.
        Lines = "lines",
    }
}

impl Consume {
    /// A part of a label.
    pub const fn in_words(self) -> &'static str {
        match self {
            Consume::Touch => "touching pages",
            Consume::Sum => "all bytes summed",
            Consume::Lines => "counting lines",
        }
    }

    /// A part of a label, unless it is the usual one of single reads.
    pub(crate) fn unless_touched(self) -> Option<String> {
        (self != Consume::Touch).then(|| self.in_words().to_string())
    }
}

/// Factor for the checksum of the read at `position` of the offset table, counted from 0 over all
/// threads. It is odd, so that no bit is lost.
#[inline(always)]
pub const fn weight(position: u64) -> u64 {
    position.wrapping_mul(2).wrapping_add(1)
}

/// Consumption resolved to numbers, as sent to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumption {
    /// The kind of consumption.
    pub consume: Consume,
    /// Distance between touched words.
    pub page_bytes: usize,
    /// The first of them: a position in a read, below [`Consumption::page_bytes`].
    pub touch_at: usize,
    /// True if `touch` also takes the last word.
    pub touch_last: bool,
}

impl Consumption {
    /// Consumption of reads that start at multiples of `align_bytes`.
    pub fn new(consume: Consume, page_bytes: usize, align_bytes: u64) -> Self {
        Self { consume, page_bytes, touch_at: 0, touch_last: !align_bytes.is_multiple_of(page_bytes as u64) }
    }

    /// The consumption with the first touched word at `touch_at`.
    #[inline(always)]
    pub fn touching(self, touch_at: u64) -> Self {
        Self { touch_at: touch_at as usize, ..self }
    }

    /// The checksum of one read.
    #[inline(always)]
    pub fn of(&self, bytes: &[u8]) -> u64 {
        match self.consume {
            Consume::Touch => touch(bytes, self),
            Consume::Sum => sum(bytes),
            Consume::Lines => lines(bytes),
        }
    }
}

/// The word that starts at `offset`, zero-padded at the end of `bytes`.
#[inline(always)]
fn word_at(bytes: &[u8], offset: usize) -> u64 {
    match bytes.get(offset..offset + 8) {
        Some(word) => u64::from_le_bytes(word.try_into().expect("eight bytes")),
        None => tail(&bytes[offset..]),
    }
}

/// The word of these bytes, fewer than 8, with zeros behind them. By whole loads: copying so few
/// bytes is a call, which costs more than such a read.
#[inline(always)]
fn tail(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // They overlap in the same bytes.
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        return first | last << (8 * (len - 4));
    }
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// `consume = touch`.
#[inline(always)]
pub fn touch(bytes: &[u8], consumption: &Consumption) -> u64 {
    let mut total = 0u64;
    let mut offset = consumption.touch_at;
    while offset < bytes.len() {
        total = total.wrapping_add(word_at(bytes, offset));
        offset += consumption.page_bytes;
    }
    if consumption.touch_last {
        total = total.wrapping_add(word_at(bytes, bytes.len().saturating_sub(8)));
    }
    total
}

/// `consume = sum`.
#[inline(always)]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let total = words.iter().fold(0u64, |total, word| total.wrapping_add(u64::from_le_bytes(*word)));
    if rest.is_empty() { total } else { total.wrapping_add(tail(rest)) }
}

/// `consume = lines`, the plain form that faster counters must agree with.
pub fn lines(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let ends = tail.iter().filter(|byte| **byte == b'\n').count() as u64;
    words.iter().fold(ends, |total, word| total + newlines(u64::from_le_bytes(*word)))
}

/// Newlines among the eight bytes of a word.
fn newlines(word: u64) -> u64 {
    const LOW_BITS: u64 = u64::from_ne_bytes([0x7f; 8]);
    // Bytes that are zero where there is a newline. The high bit of each becomes its answer, and no
    // carry leaves a byte.
    let others = word ^ u64::from_ne_bytes([b'\n'; 8]);
    let is_other = ((others & LOW_BITS) + LOW_BITS) | others;
    u64::from((!is_other & !LOW_BITS).count_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touch_takes_one_word_of_each_page() {
        let mut bytes = vec![0u8; 16384];
        for page in 0..4 {
            bytes[page * 4096] = 1 << page;
            bytes[page * 4096 + 8] = 255;
        }
        let touch = |bytes: &[u8], align_bytes, touch_at| {
            Consumption::new(Consume::Touch, 4096, align_bytes).touching(touch_at).of(bytes)
        };
        assert_eq!(touch(&bytes, 4096, 0), 0b1111);
        assert_eq!(touch(&bytes, 4096, 8), 4 * 255);
        bytes[16383] = 1;
        assert_eq!(touch(&bytes, 1, 0), 0b1111 + (1 << 56));
        assert_eq!(touch(&bytes, 4096, 4088), 1 << 56);
        assert_eq!(touch(&bytes[..4096 + 8], 4096, 8), 255, "a page that ends before its word has none");
        assert_eq!(touch(&bytes[..4096 + 9], 4096, 8), 2 * 255, "and one that cuts it has zeros behind");
    }

    #[test]
    fn sum_takes_every_byte() {
        for position in 0..21 {
            let mut bytes = [0u8; 21];
            bytes[position] = 3;
            assert_eq!(sum(&bytes), 3 << (8 * (position % 8)));
        }
    }

    #[test]
    fn lines_are_newline_bytes() {
        for (newlines, others) in [(0, 0), (1, 0), (192, 1), (1000, 7), (0, 500)] {
            let bytes = [vec![b'\n'; newlines], vec![b'x'; others], vec![b'\n'; newlines]].concat();
            assert_eq!(lines(&bytes), 2 * newlines as u64);
        }
    }

    #[test]
    fn a_place_has_a_weight_of_its_own() {
        assert_eq!([0, 1, 2, (1 << 19) - 1].map(weight), [1, 3, 5, (1 << 20) - 1]);
        assert_eq!(weight(u64::MAX), u64::MAX, "it wraps and stays odd");
    }

    #[test]
    fn a_word_that_is_cut_has_zeros_behind() {
        let bytes = [0xf1, 0xe2, 0xd3, 0xc4, 0xb5, 0xa6, 0x97];
        for len in 0..=bytes.len() {
            let mut word = [0; 8];
            word[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(tail(&bytes[..len]), u64::from_le_bytes(word), "{len}");
        }
    }

    #[test]
    fn reads_shorter_than_a_word_count() {
        assert_eq!(Consumption::new(Consume::Touch, 4096, 4096).of(&[1, 2]), 0x0201);
        assert_eq!(sum(&[1, 2]), 0x0201);
    }
}
