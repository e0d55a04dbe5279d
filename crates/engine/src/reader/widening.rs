//! Widening of reads to the alignment that O_DIRECT requires.

/// A read as sent to the device, and the position of the requested bytes in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Widened {
    /// Aligned offset in the file.
    pub offset: u64,
    /// Aligned length.
    pub len: usize,
    /// Bytes that must arrive: fewer than `len` at the end of the file.
    pub expected: usize,
    /// Start of the requested bytes in the buffer.
    pub inner: usize,
}

impl Widened {
    /// A read as it is asked for.
    #[inline(always)]
    pub const fn not(offset: u64, len: usize) -> Self {
        Self { offset, len, expected: len, inner: 0 }
    }
}

/// Widen a read of `len` bytes at `offset` to multiples of `alignment` in a file of `file_bytes`.
#[inline(always)]
pub(super) fn widen(offset: u64, len: usize, alignment: usize, file_bytes: u64) -> Widened {
    let alignment = alignment as u64;
    let start = offset / alignment * alignment;
    let end = (offset + len as u64).div_ceil(alignment) * alignment;
    Widened {
        offset: start,
        len: (end - start) as usize,
        expected: (end.min(file_bytes) - start) as usize,
        inner: (offset - start) as usize,
    }
}

/// The same of a read that may end behind the end of its file, if the data led there. Its bytes
/// must arrive too, so it comes short.
#[inline(always)]
pub(super) fn widen_within(offset: u64, len: usize, alignment: usize, file_bytes: u64) -> Widened {
    widen(offset, len, alignment, file_bytes.max(offset + len as u64))
}

/// Maximum length of a widened read of `len` bytes.
pub(super) fn widest(len: usize, alignment: usize) -> usize {
    (len + alignment - 1).next_multiple_of(alignment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aligned_read_stays_as_it_is() {
        assert_eq!(
            widen(8192, 4096, 512, 1 << 20),
            Widened { offset: 8192, len: 4096, expected: 4096, inner: 0 }
        );
    }

    #[test]
    fn an_unaligned_read_covers_its_ends() {
        assert_eq!(
            widen(5000, 4096, 4096, 1 << 20),
            Widened { offset: 4096, len: 8192, expected: 8192, inner: 904 }
        );
        assert!(widen(4095, 4098, 4096, 1 << 20).len <= widest(4098, 4096));
    }

    #[test]
    fn a_read_behind_the_end_of_its_file_needs_more_than_there_is() {
        assert_eq!(widen_within(4096, 100, 4096, 4196), widen(4096, 100, 4096, 4196));
        assert_eq!(widen_within(4097, 100, 4096, 4196).expected, 101);
        assert_eq!(widen_within(9000, 100, 4096, 4196).expected, 908);
    }

    #[test]
    fn the_end_of_the_file_comes_short() {
        assert_eq!(
            widen(4096, 100, 4096, 4196),
            Widened { offset: 4096, len: 4096, expected: 100, inner: 0 }
        );
    }
}
