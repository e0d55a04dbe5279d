//! The checksum that honest accesses must have, known without asking the worker.
//!
//! For a dataset it follows from the seed. For the user's file the bytes are read here, with O_DIRECT where
//! possible, so that the page cache stays as it was. Sums are kept per operation and added up front to back,
//! so that any run of operations is looked up by two subtractions. Three ways lead to the same sums:
//!
//! * words: `touch` of a dataset needs only the touched words, which are computed one by one;
//! * granules: `sum` of aligned reads that cover much of the span adds whole granules (at most a page), each
//!   summed once; a stretch of the span at a time, because additions modulo 2^64 commute;
//! * windows: everything else goes through the reads in the order of their offsets and reads the file in
//!   windows of about 1 MiB that leave gaps out.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use pagewise_model::checksum::{Consumption, sum};
use pagewise_model::{Conditions, Consume, content};
use pagewise_sys::AnonymousMemory;
use rustix::fs::OFlags;

use crate::environment::direct_alignment;
use crate::table::OffsetTable;
use crate::{cache, scratch};

/// Bytes that are held at a time, if a read is not larger.
const WINDOW_BYTES: u64 = 1 << 20;
/// Bytes that are held at a time for the sake of reads that overlap.
const WINDOW_MAX_BYTES: u64 = 8 << 20;
/// A gap between reads that costs less to read than to leave out.
const GAP_BYTES: u64 = 128 << 10;
/// Granules summed at a time: 2 MiB of sums.
const GRANULES: u64 = 1 << 18;
/// Smaller granules are not worth a pass over the table for each stretch.
const GRANULE_MIN_BYTES: u64 = 512;
/// Alignment of direct reads where the filesystem does not say one: fits every disk.
const DIRECT_ALIGNMENT: u64 = 4096;

/// Where the expected bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceSource {
    /// Computed from the dataset's seed.
    Formula,
    /// Read with O_DIRECT; the page cache is as it was.
    DirectReads,
    /// Read from the page cache, which held the whole span.
    CachedReads,
    /// Read through the page cache, which now holds more of the file than before.
    DisturbingReads,
}

/// Why the expected bytes cannot be known.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum ReferenceError {
    #[error("{call} of {path} failed at offset {offset}: {source}")]
    Call { path: PathBuf, call: &'static str, offset: u64, source: io::Error },
    #[error("{path} ends at byte {offset}, before the bytes that were to be read; it became shorter")]
    Short { path: PathBuf, offset: u64 },
    #[error("no memory for a buffer of {bytes} bytes: {source}")]
    Memory { bytes: u64, source: io::Error },
    #[error("stopped while {path} was being read")]
    Stopped { path: PathBuf },
}

/// Checksums of all operations of a table.
pub struct Reference {
    /// For each operation of a thread's part, the sum of all up to and with it.
    sums: Vec<u64>,
    part: u64,
    repeats: bool,
    source: ReferenceSource,
}

impl Reference {
    /// The checksums of reads of a dataset with `seed`.
    pub fn for_dataset(
        table: &OffsetTable,
        conditions: &Conditions,
        seed: u64,
        page_bytes: u64,
    ) -> Result<Self, ReferenceError> {
        let consumption = conditions.consumption(page_bytes);
        let mut sums = vec![0; table.operations() as usize];
        if conditions.consume == Consume::Touch {
            for (total, operation) in
                sums.iter_mut().zip(table.offsets().chunks_exact(reads_per_op(conditions)))
            {
                for offset in operation {
                    let checksum = touch_words(seed, *offset, conditions.read_bytes.0, &consumption);
                    *total = checksum.wrapping_add(*total);
                }
            }
        } else {
            add_reads(&mut sums, table, conditions, &consumption, &mut Formula { seed })?;
        }
        Ok(Self::accumulate(sums, table, ReferenceSource::Formula))
    }

    /// The checksums of reads of the user's file.
    pub fn for_file(
        table: &OffsetTable,
        conditions: &Conditions,
        file: &File,
        page_bytes: u64,
        stop: &AtomicBool,
    ) -> Result<Self, ReferenceError> {
        let consumption = conditions.consumption(page_bytes);
        let (mut reader, source) = Reader::open(file, conditions.span_bytes.0, stop)?;
        let mut sums = vec![0; table.operations() as usize];
        add_reads(&mut sums, table, conditions, &consumption, &mut reader)?;
        Ok(Self::accumulate(sums, table, source))
    }

    fn accumulate(mut sums: Vec<u64>, table: &OffsetTable, source: ReferenceSource) -> Self {
        let part = table.operations_per_thread();
        for part in sums.chunks_exact_mut(part as usize) {
            let mut total = 0u64;
            for sum in part {
                total = total.wrapping_add(*sum);
                *sum = total;
            }
        }
        Self { sums, part, repeats: table.repeats(), source }
    }

    /// The checksum of `operations` operations of thread `thread` from `first_operation` of its part on;
    /// the part is begun again at its end. `None` behind the end of a part that is not repeated.
    pub fn expected(&self, thread: u32, first_operation: u64, operations: u64) -> Option<u64> {
        let end = first_operation.checked_add(operations)?;
        if !self.repeats && end > self.part {
            return None;
        }
        let part = self.part as usize;
        let sums = self.sums.get(thread as usize * part..(thread as usize + 1) * part)?;
        let up_to = |operation: u64| {
            let laps = sums[part - 1].wrapping_mul(operation / self.part);
            match (operation % self.part) as usize {
                0 => laps,
                rest => laps.wrapping_add(sums[rest - 1]),
            }
        };
        Some(up_to(end).wrapping_sub(up_to(first_operation)))
    }

    /// Where the bytes come from.
    pub fn source(&self) -> ReferenceSource {
        self.source
    }
}

fn reads_per_op(conditions: &Conditions) -> usize {
    conditions.reads_per_op as usize
}

/// `touch` of one read of a dataset: [`pagewise_model::checksum::touch`] without the bytes between.
fn touch_words(seed: u64, offset: u64, read_bytes: u64, consumption: &Consumption) -> u64 {
    let word = |position: u64| {
        let at = offset + position;
        if at.is_multiple_of(8) && position + 8 <= read_bytes {
            return content::word(seed, at / 8);
        }
        let mut bytes = [0; 8];
        content::fill(seed, at, &mut bytes[..(read_bytes - position).min(8) as usize]);
        u64::from_le_bytes(bytes)
    };
    let pages = (0..read_bytes).step_by(consumption.page_bytes).map(word);
    let total = pages.fold(0u64, u64::wrapping_add);
    if consumption.touch_last { total.wrapping_add(word(read_bytes.saturating_sub(8))) } else { total }
}

/// Where expected bytes are read from.
trait Source {
    /// What offsets and lengths must be multiples of.
    fn alignment(&self) -> u64;
    /// Fills `buffer` from `offset` on; at least the first `needed` bytes.
    fn fill(&mut self, offset: u64, buffer: &mut [u8], needed: usize) -> Result<(), ReferenceError>;
}

struct Formula {
    seed: u64,
}

impl Source for Formula {
    fn alignment(&self) -> u64 {
        8
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8], needed: usize) -> Result<(), ReferenceError> {
        content::fill(self.seed, offset, &mut buffer[..needed]);
        Ok(())
    }
}

struct Reader<'a> {
    file: File,
    path: PathBuf,
    alignment: u64,
    stop: &'a AtomicBool,
}

impl<'a> Reader<'a> {
    /// The file opened anew, so that the user's descriptor keeps its readahead state.
    fn open(
        file: &File,
        span_bytes: u64,
        stop: &'a AtomicBool,
    ) -> Result<(Self, ReferenceSource), ReferenceError> {
        let again = scratch::reopen_path(file);
        let path = std::fs::read_link(&again).unwrap_or_else(|_| again.clone());
        let reader = |file, alignment| Self { file, path: path.clone(), alignment, stop };
        let cached = cache::residency(file, span_bytes).resident_bytes == Some(span_bytes);
        if !cached {
            let flags = OFlags::DIRECT.bits() as i32;
            if let Ok(direct) = File::options().read(true).custom_flags(flags).open(&again) {
                let alignment = direct_alignment(&direct).unwrap_or(DIRECT_ALIGNMENT);
                let mut reader = reader(direct, alignment);
                // O_DIRECT may be taken at open(2) and refused at the first transfer.
                let mut probe = buffer(alignment)?;
                if reader.fill(0, probe.bytes_mut(), 1).is_ok() {
                    return Ok((reader, ReferenceSource::DirectReads));
                }
            }
        }
        let plain = File::open(&again).map_err(|source| ReferenceError::Call {
            path: path.clone(),
            call: "open",
            offset: 0,
            source,
        })?;
        let source = if cached { ReferenceSource::CachedReads } else { ReferenceSource::DisturbingReads };
        Ok((reader(plain, 1), source))
    }
}

impl Source for Reader<'_> {
    fn alignment(&self) -> u64 {
        self.alignment
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8], needed: usize) -> Result<(), ReferenceError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ReferenceError::Stopped { path: self.path.clone() });
        }
        let mut done = 0;
        while done < needed {
            let at = offset + done as u64;
            match self.file.read_at(&mut buffer[done..], at) {
                Ok(0) => return Err(ReferenceError::Short { path: self.path.clone(), offset: at }),
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(ReferenceError::Call {
                        path: self.path.clone(),
                        call: "pread",
                        offset: at,
                        source,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Page-aligned memory, as O_DIRECT wants it.
fn buffer(bytes: u64) -> Result<AnonymousMemory, ReferenceError> {
    AnonymousMemory::new(bytes as usize).map_err(|source| ReferenceError::Memory { bytes, source })
}

/// Adds the checksum of every read to the sum of its operation.
fn add_reads(
    sums: &mut [u64],
    table: &OffsetTable,
    conditions: &Conditions,
    consumption: &Consumption,
    source: &mut dyn Source,
) -> Result<(), ReferenceError> {
    let requested_bytes = table.reads().saturating_mul(conditions.read_bytes.0);
    let granule_bytes = granule_bytes(conditions, consumption.page_bytes as u64);
    match granule_bytes {
        Some(granule_bytes) if requested_bytes >= conditions.span_bytes.0 / 2 => {
            add_by_granules(sums, table, conditions, granule_bytes, source)
        }
        _ => add_by_windows(sums, table, conditions, consumption, source),
    }
}

/// The largest power of two, up to a page, that divides offset and length of every read, if only sums count.
fn granule_bytes(conditions: &Conditions, page_bytes: u64) -> Option<u64> {
    let common = 1u64 << (conditions.read_bytes.0 | conditions.align_bytes.0).trailing_zeros();
    let granule_bytes = common.min(page_bytes);
    (conditions.consume == Consume::Sum && granule_bytes >= GRANULE_MIN_BYTES).then_some(granule_bytes)
}

fn add_by_granules(
    sums: &mut [u64],
    table: &OffsetTable,
    conditions: &Conditions,
    granule_bytes: u64,
    source: &mut dyn Source,
) -> Result<(), ReferenceError> {
    let mut window = buffer(WINDOW_BYTES)?;
    let reads_end = conditions.span_bytes.0 / granule_bytes;
    let read_granules = conditions.read_bytes.0 / granule_bytes;
    // `totals[k]` is the sum of the first k granules of the stretch.
    let mut totals = Vec::with_capacity(GRANULES as usize + 1);
    let mut start = 0;
    while start < reads_end {
        let end = (start + GRANULES).min(reads_end);
        totals.clear();
        totals.push(0u64);
        let mut offset = start * granule_bytes;
        while offset < end * granule_bytes {
            let needed = (end * granule_bytes - offset).min(WINDOW_BYTES) as usize;
            let read_bytes = needed.next_multiple_of(source.alignment() as usize).min(WINDOW_BYTES as usize);
            source.fill(offset, &mut window.bytes_mut()[..read_bytes], needed)?;
            for granule in window.bytes()[..needed].chunks_exact(granule_bytes as usize) {
                totals.push(totals[totals.len() - 1].wrapping_add(sum(granule)));
            }
            offset += needed as u64;
        }
        for (total, operation) in sums.iter_mut().zip(table.offsets().chunks_exact(reads_per_op(conditions)))
        {
            for offset in operation {
                let first = offset / granule_bytes;
                let (from, to) = (first.max(start), (first + read_granules).min(end));
                if from < to {
                    let here = totals[(to - start) as usize].wrapping_sub(totals[(from - start) as usize]);
                    *total = total.wrapping_add(here);
                }
            }
        }
        start = end;
    }
    Ok(())
}

fn add_by_windows(
    sums: &mut [u64],
    table: &OffsetTable,
    conditions: &Conditions,
    consumption: &Consumption,
    source: &mut dyn Source,
) -> Result<(), ReferenceError> {
    let offsets = table.offsets();
    let read_bytes = conditions.read_bytes.0;
    let alignment = source.alignment();
    // Large reads that overlap share a window, so that their common bytes are not read once for each.
    let several = (4 * read_bytes).clamp(WINDOW_BYTES, WINDOW_MAX_BYTES);
    let window_bytes = several.max(read_bytes + 2 * alignment).next_multiple_of(alignment);
    let mut window = buffer(window_bytes)?;
    let mut order: Vec<u32> = (0..offsets.len() as u32).collect();
    order.sort_unstable_by_key(|read| offsets[*read as usize]);
    let mut rest = &order[..];
    while let Some(first) = rest.first() {
        let start = offsets[*first as usize] / alignment * alignment;
        let mut end = start;
        let fits = |read: &&u32, end: u64| {
            let offset = offsets[**read as usize];
            offset + read_bytes <= start + window_bytes && (end == start || offset <= end + GAP_BYTES)
        };
        let count = rest
            .iter()
            .take_while(|read| {
                let taken = fits(read, end);
                if taken {
                    end = offsets[**read as usize] + read_bytes;
                }
                taken
            })
            .count();
        let (here, later) = rest.split_at(count);
        let needed = (end - start) as usize;
        let filled = needed.next_multiple_of(alignment as usize);
        source.fill(start, &mut window.bytes_mut()[..filled], needed)?;
        for read in here {
            let offset = (offsets[*read as usize] - start) as usize;
            let checksum = consumption.of(&window.bytes()[offset..offset + read_bytes as usize]);
            let total = &mut sums[*read as usize / reads_per_op(conditions)];
            *total = total.wrapping_add(checksum);
        }
        rest = later;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::{Bytes, CacheState, Descriptor, Workload};
    use proptest::prelude::*;

    const PAGE: u64 = 4096;
    static GO: AtomicBool = AtomicBool::new(false);

    fn conditions(
        workload: Workload,
        cache: CacheState,
        consume: Consume,
        span: u64,
        read: u64,
        align: u64,
    ) -> Conditions {
        Conditions {
            workload,
            threads: 2,
            file_bytes: Bytes(span),
            span_bytes: Bytes(span),
            cache,
            descriptor: Descriptor::Shared,
            read_bytes: Bytes(read),
            reads_per_op: 3,
            align_bytes: Bytes(align),
            skew: pagewise_model::Skew::Uniform,
            dependent: false,
            consume,
            surroundings: pagewise_model::Surroundings::default(),
        }
    }

    fn bytes_of(span: u64, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0; span as usize];
        content::fill(seed, 0, &mut bytes);
        bytes
    }

    /// What a worker would return for operations of a thread, one read at a time.
    fn naive(
        table: &OffsetTable,
        conditions: &Conditions,
        bytes: &[u8],
        thread: u32,
        operations: std::ops::Range<u64>,
    ) -> u64 {
        let consumption = conditions.consumption(PAGE);
        operations
            .flat_map(|operation| table.operation(thread, operation).expect("in the table").to_vec())
            .map(|offset| consumption.of(&bytes[offset as usize..][..conditions.read_bytes.0 as usize]))
            .fold(0, u64::wrapping_add)
    }

    fn check(reference: &Reference, table: &OffsetTable, conditions: &Conditions, bytes: &[u8]) {
        let part = table.operations_per_thread();
        for thread in 0..conditions.threads {
            for operations in [0..1, 0..part.min(5), part / 2..part / 2 + 3, part - 1..part, part..part] {
                if !table.repeats() && operations.end > part {
                    continue;
                }
                let expected = naive(table, conditions, bytes, thread, operations.clone());
                let count = operations.end - operations.start;
                assert_eq!(
                    reference.expected(thread, operations.start, count),
                    Some(expected),
                    "{operations:?}"
                );
            }
        }
    }

    #[test]
    fn all_ways_agree_on_a_whole_table() {
        // Spans over several windows, reads larger than a granule, and every way to add.
        for (read, align) in [(16384, 4096), (4096, 512), (1000, 8), (1001, 1), (5000, 4096), (8192, 8192)] {
            for consume in [Consume::Touch, Consume::Sum] {
                let conditions =
                    conditions(Workload::RandomRead, CacheState::Cold, consume, 3 << 20, read, align);
                let table = OffsetTable::new(&conditions, 11).expect("table");
                let bytes = bytes_of(3 << 20, 5);
                let reference = Reference::for_dataset(&table, &conditions, 5, PAGE).expect("reference");
                let part = table.operations_per_thread();
                for thread in 0..2 {
                    assert_eq!(
                        reference.expected(thread, 0, part),
                        Some(naive(&table, &conditions, &bytes, thread, 0..part)),
                        "{read} {align} {consume}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_file_gives_what_its_bytes_give() {
        let span = (2 << 20) + 12_345;
        let bytes = bytes_of(span, 8);
        let directory = tempfile::tempdir().expect("directory");
        let file = scratch::nameless_file(directory.path()).expect("file");
        file.write_all_at(&bytes, 0).expect("write");
        let mut sources = Vec::new();
        for evict in [false, true] {
            for (read, align) in [(16384, 4096), (4096, 512), (999, 1), (2 << 20, 4096)] {
                for consume in [Consume::Touch, Consume::Sum] {
                    let conditions = Conditions {
                        reads_per_op: 1,
                        ..conditions(Workload::RandomRead, CacheState::Warm, consume, span, read, align)
                    };
                    let table = OffsetTable::new(&conditions, 1).expect("table");
                    if evict && let Err(error) = cache::evict(&file, span) {
                        println!("skipped: {error}");
                        return;
                    }
                    let reference =
                        Reference::for_file(&table, &conditions, &file, PAGE, &GO).expect("reference");
                    check(&reference, &table, &conditions, &bytes);
                    if reference.source() == ReferenceSource::DirectReads {
                        assert_eq!(cache::residency(&file, span).resident_bytes.unwrap_or(0), 0);
                    }
                    sources.push(reference.source());
                }
            }
        }
        assert!(sources[..8].iter().all(|source| *source == ReferenceSource::CachedReads), "{sources:?}");
        assert!(sources[8..].iter().all(|source| *source != ReferenceSource::CachedReads), "{sources:?}");
    }

    #[test]
    fn a_part_is_begun_again_unless_cold() {
        for cache in [CacheState::Warm, CacheState::Cold] {
            let conditions = conditions(Workload::RandomRead, cache, Consume::Sum, 2 << 20, 4096, 4096);
            let table = OffsetTable::new(&conditions, 2).expect("table");
            let reference = Reference::for_dataset(&table, &conditions, 7, PAGE).expect("reference");
            let part = table.operations_per_thread();
            let beyond = reference.expected(1, part - 1, 2 * part + 3);
            if cache == CacheState::Cold {
                assert_eq!(beyond, None);
                assert_eq!(reference.expected(0, part, 0), Some(0));
                continue;
            }
            let bytes = bytes_of(2 << 20, 7);
            assert_eq!(beyond, Some(naive(&table, &conditions, &bytes, 1, part - 1..3 * part + 2)));
            assert_eq!(reference.expected(2, 0, 1), None);
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let conditions =
            conditions(Workload::RandomRead, CacheState::Warm, Consume::Sum, 1 << 20, 4096, 4096);
        let table = OffsetTable::new(&conditions, 2).expect("table");
        let directory = tempfile::tempdir().expect("directory");
        let file = scratch::nameless_file(directory.path()).expect("file");
        file.write_all_at(&[1; 10_000], 0).expect("write");
        match Reference::for_file(&table, &conditions, &file, PAGE, &GO) {
            Err(ReferenceError::Short { offset, .. }) => assert_eq!(offset, 10_000),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("taken"),
        }
        let stopped = Reference::for_file(&table, &conditions, &file, PAGE, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(ReferenceError::Stopped { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn any_operations_have_the_naive_checksum(
            sequential: bool,
            cold: bool,
            add_all: bool,
            span in 200_000u64..700_000,
            read in prop_oneof![
                1u64..20_000,
                (1u64..8).prop_map(|pages| pages * PAGE),
                (1u64..40).prop_map(|sectors| sectors * 512),
            ],
            align in prop_oneof![Just(1u64), Just(8), Just(512), Just(1000), Just(PAGE), Just(2 * PAGE)],
            seed: u64,
        ) {
            let workload = if sequential { Workload::SequentialRead } else { Workload::RandomRead };
            let cache = if cold { CacheState::Cold } else { CacheState::Warm };
            let consume = if add_all { Consume::Sum } else { Consume::Touch };
            let conditions = conditions(workload, cache, consume, span, read, align);
            let Ok(table) = OffsetTable::new(&conditions, seed) else { return Ok(()) };
            let reference = Reference::for_dataset(&table, &conditions, seed, PAGE).expect("formula");
            check(&reference, &table, &conditions, &bytes_of(span, seed));
        }
    }
}
