//! The expected checksums of the reads of a trace.

use std::fs::File;
use std::sync::atomic::AtomicBool;

use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::trace::{FileSpan, range_of};

use super::ReferenceError;
use super::source::SourceReader;
use super::windows::each_range;

/// The checksums of these entries ([`pagewise_model::trace::entry()`]) of the user's files, which
/// lie in a span, each with the weight of its position.
///
/// # Panics
/// If there is another number of files than places.
pub fn recorded(
    entries: &[u64],
    (files, span): (&[&File], &FileSpan),
    consumption: &Consumption,
    stop: &AtomicBool,
) -> Result<Vec<u64>, ReferenceError> {
    assert_eq!(files.len(), span.starts().len(), "each file has its place");
    let mut checksums = vec![0u64; entries.len()];
    // File after file: a window of bytes is of one.
    let mut of_file: Vec<Vec<u32>> = vec![Vec::new(); files.len()];
    for (read, entry) in (0u32..).zip(entries) {
        of_file[span.locate(0, range_of(*entry).0).0].push(read);
    }
    for (index, reads) in of_file.iter().enumerate().filter(|(_, reads)| !reads.is_empty()) {
        let (mut reader, _) = SourceReader::open(files[index], span.sizes()[index], stop)?;
        let start = span.starts()[index];
        let range = |read: usize| {
            let (offset, len) = range_of(entries[reads[read] as usize]);
            (offset - start, len as u64)
        };
        let longest = (0..reads.len()).map(|read| range(read).1).max().unwrap_or(1);
        each_range(reads.len(), longest, &range, &mut reader, &mut |read, bytes| {
            let read = reads[read];
            checksums[read as usize] = weight(u64::from(read)).wrapping_mul(consumption.of(bytes));
        })?;
    }
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
        let span = FileSpan::of([bytes.len() as u64], 4096).expect("a span");
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
            let found = recorded(&entries, (&[file.as_file()], &span), &consumption, &stop);
            assert_eq!(found.expect("checksums"), expected);
        }
        let gone = [entry(bytes.len() as u64 - 5, 6)];
        let consumption = Consumption::new(Consume::Sum, 4096, 1);
        let stop = AtomicBool::new(false);
        recorded(&gone, (&[file.as_file()], &span), &consumption, &stop).expect_err("behind the end");
    }

    /// Each read has the bytes of its own file, at its offset there.
    #[test]
    fn reads_of_several_files_have_the_checksums_of_their_own() {
        let sizes = [1u64, 70_000, 4096, 100_001];
        let content = |file: usize| -> Vec<u8> {
            (0..sizes[file] as u32).map(|index| ((index * 7 + file as u32) >> 3) as u8).collect()
        };
        let contents: Vec<Vec<u8>> = (0..4).map(content).collect();
        let files: Vec<File> = contents
            .iter()
            .map(|bytes| {
                let file = tempfile::NamedTempFile::new().expect("a file");
                std::fs::write(file.path(), bytes).expect("write");
                file.reopen().expect("open")
            })
            .collect();
        let span = FileSpan::of(sizes, 4096).expect("a span");
        let mut random = Random::new(3);
        let reads: Vec<(usize, u64, u64)> = (0..400)
            .map(|read| {
                let file = if read % 5 == 0 { 0 } else { random.below(4) as usize };
                let len = 1 + random.below(sizes[file].min(5000));
                (file, random.below(sizes[file] - len + 1), len)
            })
            .collect();
        let in_span = |(file, offset, len): &(usize, u64, u64)| entry(span.starts()[*file] + offset, *len);
        let entries: Vec<u64> = reads.iter().map(in_span).collect();
        let consumption = Consumption::new(Consume::Sum, 4096, 1);
        let of_read = |((file, offset, len), place): (&(usize, u64, u64), u64)| {
            let bytes = &contents[*file][*offset as usize..][..*len as usize];
            weight(place).wrapping_mul(consumption.of(bytes))
        };
        let expected: Vec<u64> = reads.iter().zip(0u64..).map(of_read).collect();
        let (stop, all) = (AtomicBool::new(false), files.iter().collect::<Vec<_>>());
        let found = recorded(&entries, (&all, &span), &consumption, &stop).expect("checksums");
        assert_eq!(found, expected);
        // A file in place of another one does not have them.
        let swapped = [all[0], all[3], all[2], all[1]];
        let found = recorded(&entries, (&swapped, &span), &consumption, &stop);
        assert!(found.is_err() || found.is_ok_and(|found| found != expected));
    }
}
