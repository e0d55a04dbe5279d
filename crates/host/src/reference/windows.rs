//! Reads processed in the order of their offsets, in windows of about 1 MiB that leave gaps out.

use super::ReferenceError;
use super::source::{ByteSource, buffer};

/// Bytes held at a time, unless a read is larger.
pub(super) const WINDOW_BYTES: u64 = 1 << 20;
/// Maximum bytes held at a time for reads that overlap.
const WINDOW_MAX_BYTES: u64 = 8 << 20;
/// Largest gap between reads that is cheaper to read than to leave out.
const GAP_BYTES: u64 = 128 << 10;

/// Call `see` with the index and the `read_bytes` bytes of each read.
pub(crate) fn each_read(
    offsets: &[u64],
    read_bytes: u64,
    source: &mut dyn ByteSource,
    see: &mut dyn FnMut(usize, &[u8]),
) -> Result<(), ReferenceError> {
    each_range(offsets.len(), read_bytes, &|read| (offsets[read], read_bytes), source, see)
}

/// Call `see` with the index and the bytes of each of `count` reads, whose offset and length
/// `range` returns; none is longer than `read_bytes`.
pub(crate) fn each_range(
    count: usize,
    read_bytes: u64,
    range: &dyn Fn(usize) -> (u64, u64),
    source: &mut dyn ByteSource,
    see: &mut dyn FnMut(usize, &[u8]),
) -> Result<(), ReferenceError> {
    let alignment = source.alignment();
    // Large reads that overlap share a window, so that their common bytes are read once.
    let several = (4 * read_bytes).clamp(WINDOW_BYTES, WINDOW_MAX_BYTES);
    let window_bytes = several.max(read_bytes + 2 * alignment).next_multiple_of(alignment);
    let mut window = buffer(window_bytes)?;
    let of = |read: u32| range(read as usize);
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_unstable_by_key(|read| of(*read).0);
    let mut rest = &order[..];
    while let Some(first) = rest.first() {
        let start = of(*first).0 / alignment * alignment;
        let mut end = start;
        let fits = |read: &&u32, end: u64| {
            let (offset, len) = of(**read);
            offset + len <= start + window_bytes && (end == start || offset <= end + GAP_BYTES)
        };
        let count = rest
            .iter()
            .take_while(|read| {
                let taken = fits(read, end);
                if taken {
                    let (offset, len) = of(**read);
                    end = end.max(offset + len);
                }
                taken
            })
            .count();
        let (here, later) = rest.split_at(count);
        let needed = (end - start) as usize;
        let filled = needed.next_multiple_of(alignment as usize);
        source.fill(start, &mut window.bytes_mut()[..filled], needed)?;
        for read in here {
            let (offset, len) = of(*read);
            let offset = (offset - start) as usize;
            see(*read as usize, &window.bytes()[offset..offset + len as usize]);
        }
        rest = later;
    }
    Ok(())
}
