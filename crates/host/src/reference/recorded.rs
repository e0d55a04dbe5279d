//! The expected checksums of the reads of a trace.

use std::fs::File;
use std::sync::atomic::AtomicBool;

use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::trace::range_of;

use super::ReferenceError;
use super::source::SourceReader;
use super::windows::each_range;

/// The checksums of these entries ([`pagewise_model::trace::entry()`]) of the user's file, each
/// with the weight of its position.
pub fn recorded(
    entries: &[u64],
    file: &File,
    span_bytes: u64,
    consumption: &Consumption,
    stop: &AtomicBool,
) -> Result<Vec<u64>, ReferenceError> {
    let (mut reader, _) = SourceReader::open(file, span_bytes, stop)?;
    let range = |read: usize| {
        let (offset, len) = range_of(entries[read]);
        (offset, len as u64)
    };
    let longest = (0..entries.len()).map(|read| range(read).1).max().unwrap_or(1);
    let mut checksums = vec![0u64; entries.len()];
    each_range(entries.len(), longest, &range, &mut reader, &mut |read, bytes| {
        checksums[read] = weight(read as u64).wrapping_mul(consumption.of(bytes));
    })?;
    Ok(checksums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::Consume;
    use pagewise_model::random::Random;
    use pagewise_model::trace::entry;

    /// Against the sum over the bytes themselves, for reads of all lengths that overlap, repeat and
    /// leave gaps.
    #[test]
    fn a_replay_has_the_checksum_of_its_reads() {
        let bytes: Vec<u8> =
            (0..3_000_001u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &bytes).expect("write");
        let mut random = Random::new(7);
        let mut entries: Vec<u64> = (0..500)
            .map(|_| {
                let most = 1 << random.below(17);
                let len = 1 + random.below(most);
                entry(random.below(bytes.len() as u64 - len + 1), len)
            })
            .collect();
        entries.push(entry(bytes.len() as u64 - 1, 1));
        entries.push(entries[3]);
        for (consume, touch_at) in [(Consume::Touch, 0), (Consume::Touch, 1000), (Consume::Sum, 0)] {
            let consumption = Consumption::new(consume, 4096, 1).touching(touch_at);
            let of_read = |(entry, position): (&u64, u64)| {
                let (offset, len) = range_of(*entry);
                weight(position).wrapping_mul(consumption.of(&bytes[offset as usize..][..len]))
            };
            let expected: Vec<u64> = entries.iter().zip(0u64..).map(of_read).collect();
            let stop = AtomicBool::new(false);
            let found = recorded(&entries, file.as_file(), bytes.len() as u64, &consumption, &stop);
            assert_eq!(found.expect("checksums"), expected);
        }
        let gone = [entry(bytes.len() as u64 - 5, 6)];
        let consumption = Consumption::new(Consume::Sum, 4096, 1);
        let stop = AtomicBool::new(false);
        recorded(&gone, file.as_file(), bytes.len() as u64, &consumption, &stop).expect_err("behind the end");
    }
}
