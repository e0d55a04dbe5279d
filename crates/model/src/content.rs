//! Content of a dataset: every byte is a function of its offset and a seed.
//!
//! Word `k` (bytes `8k .. 8k + 8`, little-endian) is SplitMix64's output `k` for the seed. Any read
//! can be verified without a second copy, a read at the wrong offset is detected, and the data
//! cannot be compressed on the way to the device. Text is made of the same bytes: one in 64 becomes
//! a newline, the others letters, digits and punctuation, so lines have seeded lengths.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// Content of a dataset.
    Content, "content" {
        /// Incompressible words.
        Random = "random",
        /// Lines of text with seeded lengths, 64 bytes on average.
        Text = "text",
    }
}

impl Content {
    pub(crate) fn is_random(&self) -> bool {
        *self == Content::Random
    }
}
use crate::random::{STEP, mix};

/// The word at byte offset `8 * index`.
#[inline]
pub const fn word(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_add(index.wrapping_add(1).wrapping_mul(STEP)))
}

/// Fill `buffer` with the content from `offset` on; any offset and length.
pub fn fill(seed: u64, offset: u64, buffer: &mut [u8]) {
    let lead = ((8 - offset % 8) % 8).min(buffer.len() as u64) as usize;
    let (head, rest) = buffer.split_at_mut(lead);
    if !head.is_empty() {
        let start = (offset % 8) as usize;
        head.copy_from_slice(&word(seed, offset / 8).to_le_bytes()[start..start + lead]);
    }
    let mut index = (offset + lead as u64) / 8;
    let (words, tail) = rest.as_chunks_mut::<8>();
    for bytes in words {
        *bytes = word(seed, index).to_le_bytes();
        index += 1;
    }
    if !tail.is_empty() {
        let bytes = word(seed, index).to_le_bytes();
        tail.copy_from_slice(&bytes[..tail.len()]);
    }
}

/// Fill `buffer` with text from `offset` on.
fn fill_text(seed: u64, offset: u64, buffer: &mut [u8]) {
    fill(seed, offset, buffer);
    for byte in buffer {
        *byte = LETTERS[usize::from(*byte)];
    }
}

/// Text character of each random byte.
const LETTERS: [u8; 256] = letters();

const fn letters() -> [u8; 256] {
    let mut letters = [b'\n'; 256];
    let mut byte = 4;
    while byte < letters.len() {
        // The printable ones, space to tilde.
        letters[byte] = b' ' + (byte % 95) as u8;
        byte += 1;
    }
    letters
}

impl Content {
    /// Fill `buffer` with the content of a dataset of `seed` from `offset` on.
    pub fn fill(self, seed: u64, offset: u64, buffer: &mut [u8]) {
        match self {
            Content::Random => fill(seed, offset, buffer),
            Content::Text => fill_text(seed, offset, buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_piece_equals_the_same_piece_of_the_whole(offset in 0usize..300, len in 0usize..300) {
            let mut whole = vec![0; 600];
            fill(42, 0, &mut whole);
            let mut piece = vec![0; len];
            fill(42, offset as u64, &mut piece);
            prop_assert_eq!(&piece[..], &whole[offset..offset + len]);
        }
    }

    #[test]
    fn text_has_lines_of_many_lengths() {
        let mut text = vec![0; 1 << 16];
        Content::Text.fill(7, 0, &mut text);
        let mut lengths: Vec<usize> = text.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
        assert!((900..1150).contains(&lengths.len()), "{} lines", lengths.len());
        assert!(text.iter().all(|byte| *byte == b'\n' || byte.is_ascii_graphic() || *byte == b' '));
        lengths.sort_unstable();
        lengths.dedup();
        assert!(lengths.len() > 100);
    }

    #[test]
    fn a_byte_depends_on_the_seed_and_the_offset() {
        let mut one = [0; 64];
        let mut other = [0; 64];
        fill(1, 0, &mut one);
        fill(2, 0, &mut other);
        assert_ne!(one, other);
        fill(1, 4096, &mut other);
        assert_ne!(one, other);
    }
}
