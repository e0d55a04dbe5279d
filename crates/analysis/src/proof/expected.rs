//! Expected counters of each method, as data; and the check that they are met.
//!
//! A method is more than its calls: it implies behaviour of the kernel. Counters that contradict it
//! mean that something else was measured.

use pagewise_model::{Access, Method, MethodOption, Work, Workload};

use super::kinds::kinds;
use super::subject::Subject;

/// Major faults that a method may take for its reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MajorFaults {
    /// None: reads use calls, or memory without a file.
    None,
    /// One for each page that comes from the device.
    OnePerPage,
    /// At most one for each page that comes from the device.
    AtMostOnePerPage,
    /// Any number: a fault also waits for pages that were requested ahead, and those are not
    /// counted elsewhere.
    Any,
}

/// Device bytes that a method may cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceBytes {
    /// All bytes of the requested blocks: nothing is cached.
    AllAsked,
    /// At most those of the requested pages: nothing is read ahead.
    AtMostAsked,
    /// None.
    None,
    /// Any number: the kernel reads ahead.
    Any,
}

/// Expected counters of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Major faults.
    pub major_faults: MajorFaults,
    /// Bytes from the device.
    pub device_bytes: DeviceBytes,
}

impl MajorFaults {
    /// Text for documentation.
    pub const fn words(self) -> &'static str {
        match self {
            MajorFaults::None => "none",
            MajorFaults::OnePerPage => "one for each page from the device",
            MajorFaults::AtMostOnePerPage => "at most one for each page from the device",
            MajorFaults::Any => "any number",
        }
    }
}

impl DeviceBytes {
    /// Text for documentation.
    pub const fn words(self) -> &'static str {
        match self {
            DeviceBytes::AllAsked => "all requested blocks",
            DeviceBytes::AtMostAsked => "at most the requested pages",
            DeviceBytes::None => "none",
            DeviceBytes::Any => "any number",
        }
    }
}

impl Expected {
    /// The same of a program that asks the kernel to read ahead: what was asked for comes too, and
    /// a fault may find it or wait for it.
    const fn with_requests_to_read_ahead(self) -> Self {
        let major_faults = match self.major_faults {
            MajorFaults::None => MajorFaults::None,
            _ => MajorFaults::Any,
        };
        promise(major_faults, DeviceBytes::Any)
    }
}

const fn promise(major_faults: MajorFaults, device_bytes: DeviceBytes) -> Expected {
    Expected { major_faults, device_bytes }
}

kinds! {
    /// Kinds of methods by their expected counters.
    Kind: Expected {
        DirectReads "`pread:direct`, `uring:direct`" => promise(MajorFaults::None, DeviceBytes::AllAsked),
        RandomPread "`pread:random`" => promise(MajorFaults::None, DeviceBytes::AtMostAsked),
        OtherReads "other `pread`, other `uring`" => promise(MajorFaults::None, DeviceBytes::Any),
        RandomMmap "`mmap:random`, also with `in-place`" => promise(MajorFaults::OnePerPage, DeviceBytes::AtMostAsked),
        OtherMmap "`mmap`, `mmap:sequential`, also with `in-place`" => promise(MajorFaults::AtMostOnePerPage, DeviceBytes::Any),
        MmapAskingAhead "`mmap` with `prefetch`, `willneed`, `populate`, `populate-read` or `hugepage`" => promise(MajorFaults::Any, DeviceBytes::Any),
        Anonymous "`anonymous`" => promise(MajorFaults::None, DeviceBytes::None),
        DirectStream "`read:direct`" => promise(MajorFaults::None, DeviceBytes::AllAsked),
        RandomStream "`read:random`" => promise(MajorFaults::None, DeviceBytes::AtMostAsked),
        OtherStream "other `read`" => promise(MajorFaults::None, DeviceBytes::Any),
        /// A fault in a hole of the file counts as a major fault.
        WrittenMmap "`mmap` that is written" => promise(MajorFaults::Any, DeviceBytes::Any),
        Writes "`pwrite`, `write`, `uring` that writes" => promise(MajorFaults::None, DeviceBytes::Any),
        Unknown "a method that pagewise does not know" => promise(MajorFaults::Any, DeviceBytes::Any),
    }
}

/// Return the expected counters of `method`.
pub fn expected(method: &Method, workload: Workload) -> Expected {
    let has = |option| method.has(option);
    let asks_ahead = has(MethodOption::Prefetch)
        || method.prefetch_window().is_some()
        || has(MethodOption::WillNeed)
        || has(MethodOption::HugePage)
        || method.reads_all_in_setup();
    let kind = match method.access().in_workload(workload) {
        Access::Anonymous => Kind::Anonymous,
        Access::Unknown => Kind::Unknown,
        Access::Mmap if !workload.is_reading() => Kind::WrittenMmap,
        Access::Pwrite | Access::Write => Kind::Writes,
        Access::Uring if !workload.is_reading() => Kind::Writes,
        Access::Read if workload != Workload::Scan => Kind::OtherReads,
        Access::Read if method.is_direct() => Kind::DirectStream,
        Access::Read if has(MethodOption::Random) && !asks_ahead => Kind::RandomStream,
        Access::Read => Kind::OtherStream,
        Access::Pread | Access::Uring if method.is_direct() => Kind::DirectReads,
        Access::Pread if has(MethodOption::Random) && !asks_ahead => Kind::RandomPread,
        Access::Pread | Access::Uring => Kind::OtherReads,
        Access::Mmap if asks_ahead => Kind::MmapAskingAhead,
        Access::Mmap if has(MethodOption::Random) => Kind::RandomMmap,
        Access::Mmap => Kind::OtherMmap,
    };
    kind.promise()
}

/// Pages of the worker's own code, stacks and offset table may have to be read from the device
/// again, more of them under memory pressure: its allowance, and this share of the pages that the
/// device delivered.
const OWN_PAGES_SHARE: f64 = 0.01;
/// Faults and pages agree within this share. Threads that fault on one page all wait for it, and
/// each counts; a page may also be reclaimed before it is mapped: 0.03 % at eight threads, zipf and
/// four times the memory (Linux 6.18).
const FAULT_SHARE: f64 = 0.02;
/// Share allowed for blocks at both ends of a read and for the worker's own code.
const BYTES_SHARE: f64 = 0.02;

/// Check that the counters match the method.
pub(super) fn method_contradicted(subject: &Subject<'_>) -> Option<String> {
    let method = &subject.cell.method;
    let expected = expected(method, subject.cell.conditions.workload());
    let asks = subject.cell.conditions.work.read_ahead() > 0 && method.asks_to_read_ahead(false);
    let expected = if asks { expected.with_requests_to_read_ahead() } else { expected };
    wrong_faults(subject, expected.major_faults).or_else(|| wrong_bytes(subject, expected.device_bytes))
}

fn wrong_faults(subject: &Subject<'_>, expected: MajorFaults) -> Option<String> {
    let (faults, read) = (subject.evidence.major_faults?, subject.device_bytes()?);
    let pages = read / subject.context.page_bytes;
    let own = subject.allowance().pages + (pages as f64 * OWN_PAGES_SHARE) as u64;
    let share = (pages as f64 * FAULT_SHARE) as u64 + subject.allowance().pages;
    let wrong = match expected {
        MajorFaults::None => faults > own,
        // If holes or compression hide bytes, there are more faults than pages.
        MajorFaults::OnePerPage if subject.context.sparse_or_compressed_bytes => {
            faults.saturating_add(share) < pages
        }
        MajorFaults::OnePerPage => faults.abs_diff(pages) > share,
        MajorFaults::AtMostOnePerPage => {
            !subject.context.sparse_or_compressed_bytes && faults > pages.saturating_add(share)
        }
        MajorFaults::Any => false,
    };
    wrong.then(|| {
        format!(
            "{faults} major faults for {pages} pages from the device: {} takes {}",
            subject.cell.method,
            expected.words()
        )
    })
}

fn wrong_bytes(subject: &Subject<'_>, expected: DeviceBytes) -> Option<String> {
    let read = subject.device_bytes()?;
    let own = subject.allowance().pages.saturating_mul(subject.context.page_bytes);
    let asked = ((widened(subject) as f64 * (1.0 + BYTES_SHARE)) as u64).saturating_add(own);
    let (wrong, most) = match expected {
        // `not-direct` checks that it is not less.
        DeviceBytes::AllAsked | DeviceBytes::AtMostAsked => (read > asked, asked),
        DeviceBytes::None => (read > own, own),
        DeviceBytes::Any => return None,
    };
    wrong.then(|| {
        format!(
            "{read} bytes came from the device, at most {most} may: {} causes {}",
            subject.cell.method,
            expected.words()
        )
    })
}

/// Requested bytes, widened to whole pages: exact if reads begin and end on pages, else an upper
/// limit.
pub(super) fn widened(subject: &Subject<'_>) -> u64 {
    let page = subject.context.page_bytes;
    if let Work::Replay(_) = subject.cell.conditions.work {
        // Each read may begin and end within a page.
        let ends = subject.reads().saturating_mul(2 * page);
        return subject.cell.conditions.bytes_of(subject.operations()).saturating_add(ends);
    }
    let Some(reads) = subject.cell.conditions.reads() else {
        // The pieces of a scan are adjacent, and so are records.
        let asked = subject.cell.conditions.bytes_of(subject.operations());
        return asked.div_ceil(page).saturating_mul(page);
    };
    let (read, align) = (reads.read_bytes.0, reads.align_bytes.0);
    let of_one = match (read % page, align % page) {
        (0, 0) => read,
        // A read that begins on a page ends within one.
        (_, 0) => read.next_multiple_of(page),
        _ => (read + page - 1).next_multiple_of(page),
    };
    subject.reads().saturating_mul(of_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::honest::{CONTEXT, cell, kinds, kinds_in, limited, reads_mut, replay, set};
    use pagewise_model::CacheState::{AsIs, Cold, Warm};
    use pagewise_model::FailureKind::{MethodContradicted, NotWarm};
    use pagewise_model::{Cell, Evidence, FailureKind};

    fn with(cell: &Cell, faults: u64, pages: u64) -> Vec<FailureKind> {
        kinds(cell, |_, evidence| {
            evidence.major_faults = Some(faults);
            evidence.device_read_bytes = Some(pages * 4096);
        })
    }

    #[test]
    fn every_method_has_what_it_promises() {
        let of = |text: &str| expected(&text.parse().expect(text), Workload::RandomRead);
        assert_eq!(of("mmap:random+in-place").major_faults, MajorFaults::OnePerPage);
        assert_eq!(of("mmap:random+prefetch").major_faults, MajorFaults::Any);
        assert_eq!(of("mmap:random+prefetch=8").major_faults, MajorFaults::Any);
        assert_eq!(of("mmap:sequential").major_faults, MajorFaults::AtMostOnePerPage);
        assert_eq!(of("mmap:random+populate").device_bytes, DeviceBytes::Any);
        assert_eq!(of("uring:direct+depth=4").device_bytes, DeviceBytes::AllAsked);
        assert_eq!(of("pread:random").device_bytes, DeviceBytes::AtMostAsked);
        assert_eq!(of("pread:random+willneed").device_bytes, DeviceBytes::Any);
        assert_eq!(of("uring").major_faults, MajorFaults::None);
        assert_eq!(expected(&Method::anonymous(), Workload::RandomRead).device_bytes, DeviceBytes::None);
    }

    /// The pages of a request come too, and a fault may find them or wait for them.
    #[test]
    fn requests_of_a_replayed_program_are_no_contradiction() {
        let asking = |method: &str, read_ahead| {
            let mut cell = replay(method);
            let Work::Replay(work) = &mut cell.conditions.work else { panic!("a replay") };
            work.read_ahead = read_ahead;
            cell
        };
        // 16,384 pages are the file, and 80,000 more than each read with both of its ends.
        for (method, faults, pages) in [("mmap:random", 1, 16_384), ("pread:random", 0, 80_000)] {
            let contradicts =
                |read_ahead| with(&asking(method, read_ahead), faults, pages).contains(&MethodContradicted);
            assert_eq!([contradicts(0), contradicts(3)], [true, false], "{method}");
        }
        assert!(with(&asking("pread", 3), 9000, 16_384).contains(&MethodContradicted), "calls do not fault");
    }

    #[test]
    fn the_documentation_says_the_same() {
        let method = include_str!("../../../../docs/method/proof.md");
        for kind in Kind::ALL {
            let Expected { major_faults, device_bytes } = kind.promise();
            let row = format!("| {} | {} | {} |", kind.words(), major_faults.words(), device_bytes.words());
            assert!(method.contains(&row), "{row}");
        }
    }

    #[test]
    fn a_pread_that_faults_is_a_mapping() {
        // 40 MiB are 10,240 pages.
        let pread = cell("pread", Cold);
        assert_eq!(
            (with(&pread, 166, 10_240), with(&pread, 167, 10_240)),
            (vec![], vec![MethodContradicted])
        );
        assert_eq!(with(&cell("uring", Warm), 65, 0), [MethodContradicted]);
        assert_eq!(with(&set("pread:direct", AsIs), 10_240, 10_240), [MethodContradicted]);
    }

    #[test]
    fn each_page_of_a_random_mapping_is_a_fault() {
        let random = cell("mmap:random", Cold);
        // 2 % and 64 pages.
        assert_eq!(
            (with(&random, 9_972, 10_240), with(&random, 9_971, 10_240)),
            (vec![], vec![MethodContradicted])
        );
        assert_eq!(
            (with(&random, 10_508, 10_240), with(&random, 10_509, 10_240)),
            (vec![], vec![MethodContradicted])
        );
        assert_eq!(with(&random, 160, 10_240), [MethodContradicted], "64 pages a fault are readahead");
        assert_eq!(with(&limited("mmap:random", Warm, 128), 1000, 5_120), [MethodContradicted]);
    }

    #[test]
    fn a_fault_of_a_plain_mapping_brings_in_a_page_at_least() {
        let plain = cell("mmap", Cold);
        assert_eq!((with(&plain, 160, 10_240), with(&plain, 10_240, 10_240)), (vec![], vec![]));
        assert_eq!(with(&plain, 10_509, 10_240), [MethodContradicted]);
        let hidden = pagewise_model::CheckContext { sparse_or_compressed_bytes: true, ..CONTEXT };
        let faults = |_: &mut _, evidence: &mut Evidence| evidence.major_faults = Some(30_000);
        assert_eq!(kinds_in(&plain, &hidden, faults), []);
        assert_eq!(kinds_in(&cell("mmap:random", Cold), &hidden, faults), []);
    }

    #[test]
    fn methods_without_readahead_read_no_more_than_asked() {
        for method in ["pread:direct", "uring:direct+depth=32", "pread:random"] {
            // 2 % and 64 pages above 10,240.
            let cell = cell(method, Cold);
            assert_eq!(
                (with(&cell, 0, 10_508), with(&cell, 0, 10_509)),
                (vec![], vec![MethodContradicted]),
                "{method}"
            );
        }
        assert_eq!(with(&cell("pread", Cold), 0, 20_000), []);
        assert_eq!(with(&cell("mmap:random", Cold), 20_000, 20_000), [MethodContradicted]);
        assert_eq!(with(&cell("anonymous", Warm), 0, 65), [MethodContradicted]);
    }

    #[test]
    fn reads_that_do_not_end_on_pages_are_widened() {
        let mut odd = cell("pread:direct", AsIs);
        reads_mut(&mut odd).align_bytes.0 = 512;
        assert_eq!(with(&odd, 0, 12_800), [], "five pages for each read of four");
        assert_eq!(with(&odd, 0, 13_200), [MethodContradicted]);
        let mut short = cell("pread:direct", AsIs);
        reads_mut(&mut short).read_bytes.0 = 5000;
        reads_mut(&mut short).align_bytes.0 = 8192;
        let read = |pages: u64| {
            kinds(&short, |_, evidence| {
                evidence.requested_bytes = 160 * 16 * 5000;
                evidence.device_read_bytes = Some(pages * 4096);
            })
        };
        assert_eq!((read(5120), read(6000)), (vec![], vec![MethodContradicted]));
    }

    #[test]
    fn unknown_counters_contradict_nothing() {
        let unknown = |_: &mut _, evidence: &mut Evidence| evidence.major_faults = None;
        assert_eq!(kinds(&cell("mmap:random", Cold), unknown), []);
        assert_eq!(with(&cell("mmap", Warm), 3, 0), [NotWarm], "few faults are the worker's own code");
    }
}
