//! Expected page faults of a method that writes, in its measured region, as data; and the check
//! that they are met.
//!
//! Set-up exists to spare the measured region its faults. If it did not, something else was
//! measured.

use pagewise_model::{Access, Method, MethodOption, Sync};

use super::kinds::kinds;
use super::subject::Subject;
use crate::proof::calls;

/// Page faults of a measured region that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFaults {
    /// Pages are mapped as they are written. One fault maps at most a huge page.
    OnePerHugePage,
    /// Pages were made writable before, but those written back in between fault once more.
    Few,
    /// Pages were mapped for reading. In memory that makes them writable; on a disk it does not.
    FewInMemory,
    /// Calls bring pages in without faults.
    None,
    /// Any number.
    Any,
}

impl WriteFaults {
    /// Text for documentation.
    pub const fn words(self) -> &'static str {
        match self {
            WriteFaults::OnePerHugePage => "at least one for each huge page written",
            WriteFaults::Few => {
                "at most one for 8 pages, and one for each page that was written back in between"
            }
            WriteFaults::FewInMemory => "on a file in memory at most one for 8 pages",
            WriteFaults::None => "at most one for 50 pages, and those of its own buffers",
            WriteFaults::Any => "any number",
        }
    }
}

kinds! {
    /// Kinds of methods that write, by their expected faults.
    WriteKind: WriteFaults {
        Calls "`pwrite`, `write`, `uring`" => WriteFaults::None,
        Prepared "`mmap` with `populate-write` or `touch`" => WriteFaults::Few,
        Mapped "`mmap` with `populate` or `lock`" => WriteFaults::FewInMemory,
        Pretouched "`mmap` with `pretouch`" => WriteFaults::Any,
        OtherMmap "other `mmap`" => WriteFaults::OnePerHugePage,
    }
}

/// Return the expected faults of `method` if it writes.
pub fn write_faults(method: &Method) -> WriteFaults {
    let has_any = |options: &[MethodOption]| options.iter().any(|option| method.has(*option));
    let kind = match method.access() {
        Access::Unknown | Access::Anonymous => return WriteFaults::Any,
        Access::Mmap if has_any(&[MethodOption::PopulateWrite, MethodOption::Touch]) => WriteKind::Prepared,
        Access::Mmap if has_any(&[MethodOption::Populate, MethodOption::Lock]) => WriteKind::Mapped,
        Access::Mmap if method.pretouch().is_some() => WriteKind::Pretouched,
        Access::Mmap => WriteKind::OtherMmap,
        Access::Pwrite | Access::Write | Access::Uring | Access::Pread | Access::Read => WriteKind::Calls,
    };
    kind.promise()
}

/// Of the pages of a prepared file, one in this many may fault.
const PREPARED_PAGES: u64 = 8;
/// Of the pages of a file written by calls, one in this many may fault.
const CALLED_PAGES: u64 = 50;

/// Too many faults for pages that set-up should have prepared.
pub(super) fn not_prepared(subject: &Subject<'_>) -> Option<String> {
    let (method, conditions) = (&subject.cell.method, &subject.cell.conditions);
    let writes = conditions.writes().filter(|_| conditions.fits_memory())?;
    let (page, in_memory) = (subject.context.page_bytes, subject.context.memory_backed);
    let pages = conditions.file_bytes.0 / page;
    let again = match write_faults(method) {
        WriteFaults::Few if in_memory => 0,
        // A sync also cleans pages ahead of the writer.
        WriteFaults::Few if matches!(writes.sync, Sync::Every(_)) => return None,
        WriteFaults::Few => {
            let dirty = subject.evidence.written.as_ref()?.dirty_before_bytes?;
            let cleaned = subject.device_written_at_most()? / page;
            pages.saturating_sub(dirty / page).saturating_add(cleaned)
        }
        WriteFaults::FewInMemory if in_memory => 0,
        _ => return None,
    };
    let most =
        (pages / PREPARED_PAGES).saturating_add(again).saturating_add(subject.allowance().memory_faults);
    let faults = faults(subject).filter(|faults| *faults > most)?;
    Some(format!("{faults} page faults in a mapping that set-up should have prepared, at most {most} may be"))
}

/// Fewer or more faults than the method takes.
pub(super) fn wrong_write_faults(subject: &Subject<'_>) -> Option<String> {
    let (method, conditions) = (&subject.cell.method, &subject.cell.conditions);
    let ring = conditions.ring()?;
    let page = subject.context.page_bytes;
    let expected = write_faults(method);
    let faults = faults(subject)?;
    let (wrong, bound) = match expected {
        WriteFaults::OnePerHugePage => {
            let touched = subject.evidence.requested_bytes.min(ring.bytes());
            let fewest = (touched / huge_page_bytes(page)).max(1);
            (faults < fewest, format!("at least {fewest} must be"))
        }
        WriteFaults::None => {
            let buffers = calls::largest_write_bytes(subject.cell)?.saturating_mul(u64::from(method.depth()));
            let most = subject.allowance().memory_faults
                + conditions.file_bytes.0 / page / CALLED_PAGES
                + (buffers.saturating_add(ring.source_bytes())) / page;
            (faults > most, format!("at most {most} may be"))
        }
        _ => return None,
    };
    wrong.then(|| format!("{faults} page faults, {bound}: {method} takes {}", expected.words()))
}

/// The largest page that one entry of the second-lowest page table level maps: a page full of
/// entries of 8 bytes.
fn huge_page_bytes(page: u64) -> u64 {
    (page / 8).saturating_mul(page).max(1)
}

fn faults(subject: &Subject<'_>) -> Option<u64> {
    Some(subject.evidence.minor_faults?.saturating_add(subject.evidence.major_faults.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::honest::{CONTEXT, append, fill, kinds, kinds_in, synced};
    use pagewise_model::CacheState::{Cold, Warm};
    use pagewise_model::CheckContext as Context;
    use pagewise_model::FailureKind::{MethodContradicted, NotInForce};
    use pagewise_model::{Cell, Evidence, FailureKind};

    const IN_MEMORY: Context = Context { memory_backed: true, ..CONTEXT };
    /// Pages of a fill.
    const PAGES: u64 = 4096;

    fn with(cell: &Cell, context: &Context, faults: u64) -> Vec<FailureKind> {
        kinds_in(cell, context, |_, evidence| evidence.minor_faults = Some(faults))
    }

    #[test]
    fn the_documentation_says_the_same() {
        let method = include_str!("../../../../docs/method/proof.md");
        for kind in WriteKind::ALL {
            let row = format!("| {} | {} |", kind.words(), kind.promise().words());
            assert!(method.contains(&row), "{row}");
        }
    }

    #[test]
    fn a_file_that_was_prepared_takes_few_faults() {
        for method in ["mmap:populate-write", "mmap:touch", "mmap:hugepage+populate-write"] {
            let cell = fill(method, Cold);
            assert_eq!(with(&cell, &CONTEXT, 1536), [], "{method}: 512 and its own");
            assert_eq!(with(&cell, &CONTEXT, 1537), [NotInForce], "{method}");
            assert_eq!(with(&cell, &IN_MEMORY, 1537), [NotInForce], "{method}");
        }
    }

    #[test]
    fn pages_that_were_written_back_fault_once_more() {
        let cell = fill("mmap:populate-write", Cold);
        let faulting = |change: &dyn Fn(&mut Evidence)| {
            kinds(&cell, |_, evidence| {
                evidence.minor_faults = Some(PAGES);
                change(evidence);
            })
        };
        assert_eq!(faulting(&|_| {}), [NotInForce]);
        assert_eq!(faulting(&|evidence| evidence.device_written_bytes = Some(PAGES * 4096)), []);
        assert_eq!(faulting(&|evidence| evidence.device_written_bytes = None), []);
        let before = |bytes| {
            faulting(&move |evidence| {
                evidence.written.as_mut().expect("read back").dirty_before_bytes = bytes;
            })
        };
        assert_eq!((before(Some(0)), before(None)), (vec![], vec![]));
        assert_eq!(with(&synced(cell.clone(), "every:1MiB"), &CONTEXT, PAGES), []);
    }

    #[test]
    fn what_was_mapped_for_reading_is_writable_in_memory_only() {
        for method in ["mmap:populate", "mmap:lock", "mmap:prealloc+populate"] {
            assert_eq!(with(&fill(method, Cold), &CONTEXT, PAGES), [], "{method}");
            assert_eq!(with(&fill(method, Cold), &IN_MEMORY, PAGES), [NotInForce], "{method}");
            assert_eq!(with(&fill(method, Cold), &IN_MEMORY, 500), [], "{method}");
        }
    }

    #[test]
    fn a_mapping_without_faults_is_none() {
        for cache in [Cold, Warm] {
            for method in ["mmap", "mmap:willneed", "mmap:prealloc"] {
                // 16 MiB are 8 huge pages.
                assert_eq!(with(&fill(method, cache), &CONTEXT, 8), [], "{method}");
                assert_eq!(with(&fill(method, cache), &CONTEXT, 7), [MethodContradicted], "{method}");
            }
        }
        assert_eq!(with(&fill("mmap:pretouch=1MiB", Cold), &CONTEXT, 0), []);
    }

    #[test]
    fn each_thread_has_memory_of_its_own() {
        let commit = synced(append("pwrite", Cold), "commit");
        let mut several = commit.clone();
        several.conditions.threads = 16;
        let contradicted = |cell: &Cell| with(cell, &CONTEXT, 3_000).contains(&MethodContradicted);
        assert_eq!((contradicted(&commit), contradicted(&several)), (true, false));
    }

    #[test]
    fn a_call_that_faults_is_a_mapping() {
        for method in ["pwrite", "write", "uring:depth=1"] {
            let cell = append(method, Cold);
            assert_eq!(with(&cell, &CONTEXT, 1000), [], "{method}");
            assert_eq!(with(&cell, &CONTEXT, 2560), [MethodContradicted], "{method}");
            assert_eq!(kinds(&cell, |_, evidence| evidence.minor_faults = None), [], "{method}");
        }
        let buffered = append("pwrite:buffer=8MiB", Cold);
        assert_eq!(with(&buffered, &CONTEXT, 2560), [], "its buffer may fault");
    }
}
