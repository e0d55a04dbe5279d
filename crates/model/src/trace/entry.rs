//! Reads as entries of a table.

/// The longest read of an entry of a table ([`entry()`]).
pub const LONGEST_ENTRY: u64 = 1 << LEN_BITS;
/// Entries begin below this offset.
pub const END_OF_ENTRIES: u64 = 1 << (64 - LEN_BITS);
const LEN_BITS: u32 = 24;

/// A read as an entry of a table: 40 bits of its offset, and 24 bits of its length less one.
///
/// # Panics
/// If it is empty, longer than [`LONGEST_ENTRY`], or begins at [`END_OF_ENTRIES`] or behind it.
pub fn entry(offset: u64, len: u64) -> u64 {
    assert!((1..=LONGEST_ENTRY).contains(&len) && offset < END_OF_ENTRIES, "a read that fits into an entry");
    offset << LEN_BITS | (len - 1)
}

/// Offset and length of an entry.
#[inline(always)]
pub const fn range_of(entry: u64) -> (u64, usize) {
    (entry >> LEN_BITS, (entry & (LONGEST_ENTRY - 1)) as usize + 1)
}
