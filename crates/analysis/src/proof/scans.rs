//! Checks of a scan in addition to those of reads, some of them also of a replay.

use pagewise_model::{Access, CacheState, MethodOption, Work};

use super::conditions::{ALL_FROM_DEVICE, NONE_FROM_DEVICE};
use super::subject::Subject;
use pagewise_model::format::percent_of;

/// Share of the requested bytes that may come from the device in addition: blocks that two pieces
/// share, the worker's own code.
const MORE_SHARE: f64 = 0.02;
/// Readahead past the end of the span, if unknown.
const READAHEAD_BYTES: u64 = 16 << 20;

/// A scan needs each byte once. More bytes from the device mean that pages were evicted before they
/// were used, which is expected under a memory limit, and of RWF_DONTCACHE, which drops pages
/// itself, some of them before they were used.
pub(super) fn read_again(subject: &Subject<'_>) -> Option<String> {
    let (cell, conditions) = (subject.cell, &subject.cell.conditions);
    let reads_file = matches!(conditions.work, Work::Scan(_)) && cell.depends_on_cache();
    let drops_pages = cell.method.has(MethodOption::DontCache);
    if !reads_file || drops_pages || conditions.cache != CacheState::Cold || !conditions.fits_memory() {
        return None;
    }
    let budget = conditions.cold_budget_bytes();
    let readahead = subject.evidence.readahead_bytes.unwrap_or(0).max(READAHEAD_BYTES);
    let most = budget.saturating_add((budget as f64 * MORE_SHARE) as u64).saturating_add(readahead);
    let read = subject.device_bytes().filter(|read| *read > most)?;
    Some(format!("{read} bytes came from the device for a scan of {budget}: at most {most} may"))
}

/// Set-up may bring in everything before the clock starts, so only the bytes that the device
/// delivered by then prove that the cache was empty.
pub(super) fn not_cold_before_setup(subject: &Subject<'_>) -> Option<String> {
    let (cell, evidence) = (subject.cell, subject.evidence);
    let conditions = &cell.conditions;
    let all_in_setup = cell.method.reads_all_in_setup() && counts_setup(&conditions.work);
    if !all_in_setup || conditions.cache != CacheState::Cold || subject.context.sparse_or_compressed_bytes {
        return None;
    }
    let span = conditions.span_bytes.0;
    let Some(in_setup) = evidence.setup_device_read_bytes else {
        return Some("device bytes of set-up are unknown, so it is not proven to have been cold".to_string());
    };
    let read = in_setup.saturating_add(evidence.device_read_bytes.unwrap_or(0));
    ((read as f64) < span as f64 * ALL_FROM_DEVICE).then(|| {
        format!(
            "{read} bytes came from the device in set-up and behind it, {} of the {span} of the span",
            percent_of(read, span)
        )
    })
}

/// True if set-up is a part of the figure of work that reads.
fn counts_setup(work: &Work) -> bool {
    matches!(work, Work::Scan(_) | Work::Replay(_))
}

/// A warm sample whose set-up counts, and had to fetch some, was not warm.
pub(super) fn not_warm_before_setup(subject: &Subject<'_>) -> Option<String> {
    let (cell, conditions) = (subject.cell, &subject.cell.conditions);
    let reads_file = counts_setup(&conditions.work) && cell.depends_on_cache();
    if !reads_file || conditions.cache != CacheState::Warm || !conditions.fits_memory() {
        return None;
    }
    let span = conditions.span_bytes.0;
    let most = ((span as f64 * NONE_FROM_DEVICE) as u64).max(subject.allowance().code_bytes);
    let read = subject.evidence.setup_device_read_bytes.filter(|read| *read > most)?;
    Some(format!("{read} bytes ({} of the span) came from the device in set-up", percent_of(read, span)))
}

/// Largest part of the page tables that a fault of a mapping fills: a huge page.
const FAULT_BYTES: u64 = 2 << 20;

/// A process that has just mapped a file takes faults to access it, however warm it is.
pub(super) fn mapping_not_touched(subject: &Subject<'_>) -> Option<String> {
    let (cell, evidence) = (subject.cell, subject.evidence);
    if cell.access() != Access::Mmap || !matches!(cell.conditions.work, Work::Scan(_)) {
        return None;
    }
    let faults = evidence.minor_faults?.saturating_add(evidence.major_faults?);
    let faults = faults.saturating_add(evidence.setup_faults?);
    let least = cell.conditions.span_bytes.0 / FAULT_BYTES / 2;
    (faults < least && !cell.method.reads_all_in_setup()).then(|| {
        format!("the worker took {faults} page faults; accessing the whole mapping takes at least {least}")
    })
}

#[cfg(test)]
mod tests {
    use crate::proof::honest::{CONTEXT, kinds, kinds_in, scan};
    use pagewise_model::CacheState::{AsIs, Cold, Warm};
    use pagewise_model::CheckContext as Context;
    use pagewise_model::FailureKind::{
        ColdOverrun, InconsistentCounts, MethodContradicted, MissingReads, NotCold, NotDirect, NotInForce,
        NotWarm, WrongChecksum,
    };
    use pagewise_model::{Bytes, Cell, Evidence};

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_count_that_is_not_that_of_the_file_is_noticed() {
        for method in ["mmap", "mmap:in-place", "read", "pread:sequential", "uring"] {
            let cell = scan(method, Warm);
            assert_eq!(kinds(&cell, |_, evidence| evidence.checksum += 1), [WrongChecksum], "{method}");
            let unknown = |_: &mut _, evidence: &mut Evidence| evidence.expected_checksum = None;
            assert_eq!(kinds(&cell, unknown), [InconsistentCounts], "{method}: nothing else proves it");
        }
    }

    #[test]
    fn a_mapping_that_nobody_touched_is_noticed() {
        for method in ["mmap", "jvm/mapped-byte-buffer", "mine/mmap"] {
            let untouched = |_: &mut _, evidence: &mut Evidence| {
                (evidence.minor_faults, evidence.setup_faults) = (Some(5), Some(5));
            };
            assert_eq!(kinds(&scan(method, Warm), untouched), [MethodContradicted], "{method}");
        }
        let unmapped = |_: &mut _, evidence: &mut Evidence| evidence.mappings = Some(0);
        assert_eq!(kinds(&scan("mine/mmap", Warm), unmapped), [NotInForce]);
        assert_eq!(kinds(&scan("pread", Warm), unmapped), []);
        let calls = |_: &mut _, evidence: &mut Evidence| {
            evidence.read_call_bytes = Some(evidence.requested_bytes);
        };
        assert_eq!(kinds(&scan("mine/mmap", Warm), calls), [NotInForce]);
    }

    #[test]
    fn a_scan_is_one_pass_over_all_of_it() {
        let cell = scan("read", Warm);
        assert_eq!(kinds(&cell, |_, evidence| evidence.requested_bytes -= 1), [InconsistentCounts]);
        let twice = kinds(&cell, |measurement, evidence| {
            measurement.operations = 2;
            measurement.thread_operations = vec![2];
            evidence.requested_bytes *= 2;
            evidence.read_calls = evidence.read_calls.map(|calls| calls * 2);
            evidence.read_call_bytes = evidence.read_call_bytes.map(|bytes| bytes * 2);
        });
        assert_eq!(twice, [InconsistentCounts]);
    }

    #[test]
    fn pieces_that_were_not_read_are_noticed() {
        for method in ["read", "pread", "read:direct"] {
            let cell = scan(method, Warm);
            let calls = |calls| kinds(&cell, |_, evidence| evidence.read_calls = Some(calls));
            assert_eq!((calls(1024), calls(1023)), (vec![], vec![MissingReads]), "{method}");
            let bytes = |bytes| kinds(&cell, |_, evidence| evidence.read_call_bytes = Some(bytes));
            assert_eq!((bytes(64 * MIB), bytes(64 * MIB - 1)), (vec![], vec![MissingReads]), "{method}");
        }
        let large = scan("read:buffer=1MiB", Warm);
        assert_eq!(kinds(&large, |_, evidence| evidence.read_calls = Some(64)), []);
        assert_eq!(kinds(&scan("uring", Warm), |_, evidence| evidence.read_calls = Some(0)), []);
    }

    #[test]
    fn a_cold_scan_begins_cold_and_reads_each_byte_once() {
        for method in ["mmap", "read", "pread", "uring", "mmap:in-place"] {
            let cell = scan(method, Cold);
            let resident = |_: &mut _, evidence: &mut Evidence| evidence.resident_before_bytes = Some(4096);
            assert_eq!(kinds(&cell, resident), [NotCold], "{method}");
            let read = |bytes| kinds(&cell, |_, evidence| evidence.device_read_bytes = Some(bytes));
            assert_eq!((read(63 * MIB), read(62 * MIB)), (vec![], vec![NotCold]), "{method}");
            assert_eq!((read(81 * MIB), read(82 * MIB)), (vec![], vec![ColdOverrun]), "{method}");
        }
        let twice = |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(120 * MIB);
        assert_eq!(kinds(&scan("pread:dontcache", Cold), twice), [], "it drops what readahead brought in");
        let holes = Context { sparse_or_compressed_bytes: true, ..CONTEXT };
        let few = |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(MIB);
        assert_eq!(kinds_in(&scan("read", Cold), &holes, few), []);
        let mut limited = scan("read", Cold);
        limited.conditions.host_settings.memory_limit_bytes = Some(Bytes::mib(32));
        let again = kinds(&limited, |_, evidence| {
            evidence.device_read_bytes = Some(120 * MIB);
            evidence.resident_after_bytes = Some(20 * MIB);
            evidence.group.as_mut().expect("a group").file_bytes = Some(20 * MIB);
        });
        assert_eq!(again, [], "a limit throws pages out");
    }

    #[test]
    fn a_populated_scan_was_cold_before_set_up() {
        let cell = scan("mmap:populate", Cold);
        let in_setup = |bytes| {
            kinds(&cell, |_, evidence| {
                evidence.device_read_bytes = Some(0);
                evidence.setup_device_read_bytes = bytes;
            })
        };
        assert_eq!(in_setup(Some(64 * MIB)), []);
        assert_eq!((in_setup(Some(60 * MIB)), in_setup(None)), (vec![NotCold], vec![NotCold]));
    }

    #[test]
    fn a_scan_may_fill_the_cache() {
        let cell = scan("read", Cold);
        assert_eq!(kinds(&cell, |_, evidence| evidence.resident_after_bytes = Some(64 * MIB)), []);
    }

    #[test]
    fn a_warm_scan_needs_nothing_from_the_device() {
        let cell = scan("mmap:in-place", Warm);
        let read = |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(MIB);
        assert_eq!(kinds(&cell, read), [NotWarm]);
        let short = |_: &mut _, evidence: &mut Evidence| evidence.resident_before_bytes = Some(63 * MIB);
        assert_eq!(kinds(&cell, short), [NotWarm]);
    }

    #[test]
    fn a_warm_scan_fetches_nothing_in_set_up() {
        let in_setup =
            |cell: &Cell, bytes| kinds(cell, |_, evidence| evidence.setup_device_read_bytes = bytes);
        for method in ["mmap:populate", "mmap:willneed", "read", "mmap"] {
            let warm = scan(method, Warm);
            assert_eq!(in_setup(&warm, Some(8 * MIB)), [NotWarm], "{method}");
            // A thousandth of 64 MiB.
            assert_eq!(in_setup(&warm, Some(67_108)), [], "{method}: its own code");
            assert_eq!(in_setup(&warm, Some(67_109)), [NotWarm], "{method}");
            assert_eq!(in_setup(&warm, None), [], "{method}");
            assert_eq!(in_setup(&scan(method, AsIs), Some(8 * MIB)), [], "{method}");
        }
        assert_eq!(in_setup(&scan("read:direct", Warm), Some(8 * MIB)), []);
    }

    #[test]
    fn a_direct_scan_comes_from_the_device() {
        for method in ["read:direct", "pread:direct", "uring:direct"] {
            let cell = scan(method, AsIs);
            assert_eq!(kinds(&cell, |_, evidence| evidence.device_read_bytes = Some(0)), [NotDirect]);
            let twice = |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(128 * MIB);
            assert_eq!(kinds(&cell, twice), [MethodContradicted], "{method}");
        }
    }

    #[test]
    fn a_read_that_faults_is_a_mapping() {
        let faults = |_: &mut _, evidence: &mut Evidence| evidence.major_faults = Some(1000);
        assert_eq!(kinds(&scan("read:buffer=4KiB", Cold), faults), [MethodContradicted]);
    }

    #[test]
    fn a_populated_scan_takes_no_faults() {
        let faults =
            |count| kinds(&scan("mmap:populate", Cold), |_, evidence| evidence.minor_faults = Some(count));
        // A fiftieth of 16,384 pages, a piece, the table, and its own.
        assert_eq!((faults(1360), faults(1400)), (vec![], vec![NotInForce]));
    }
}
