//! Descriptors of a replay of several files: each is open while its reads are replayed, in this
//! process and in the worker, or mapped there.

use std::fs;

use anyhow::{Result, anyhow, ensure};
use pagewise_host::open_files;
use pagewise_model::format::grouped;
use pagewise_model::{Access, Cell, Descriptor, Plan};

/// Descriptors of a process besides, and mappings.
const SPARE: u64 = 256;
/// The file with the most mappings of a process.
const MAX_MAP_COUNT: &str = "/proc/sys/vm/max_map_count";

/// Let this process and its workers open the files of the plan, or refuse it.
pub fn ensure_descriptors(plan: &Plan) -> Result<()> {
    let most = |of: fn(&Cell) -> u64| plan.cells.iter().map(of).max().unwrap_or(0);
    let (open, mapped) = (most(open_files), most(mappings));
    if open == 0 {
        return Ok(());
    }
    let needed = open + SPARE;
    open_files::room_for(needed).map_err(|reason| {
        anyhow!(
            "this replay needs {} open files in one process, and {reason}: raise it (ulimit -n), or choose fewer with --file, or fewer threads",
            grouped(needed)
        )
    })?;
    let limit = fs::read_to_string(MAX_MAP_COUNT).ok().and_then(|text| text.trim().parse().ok());
    ensure_mappings(mapped, limit.unwrap_or(u64::MAX))
}

/// Refuse more mappings than a process may have.
fn ensure_mappings(mapped: u64, limit: u64) -> Result<()> {
    let needed = mapped + SPARE;
    ensure!(
        needed <= limit,
        "this replay needs {} mappings in one process, and vm.max_map_count is {}: choose fewer files with --file, or fewer threads",
        grouped(needed),
        grouped(limit)
    );
    Ok(())
}

/// Files of a replay of several, and its threads with files of their own.
fn copies(cell: &Cell) -> Option<(u64, u64)> {
    let files = cell.conditions.files();
    let own = cell.conditions.descriptor == Descriptor::PerThread;
    let copies = if own { u64::from(cell.conditions.threads) } else { 1 };
    (files > 1).then_some((u64::from(files), copies))
}

/// The most files that are open at once in one process.
fn open_files(cell: &Cell) -> u64 {
    let Some((files, copies)) = copies(cell) else { return 0 };
    let threads = u64::from(cell.conditions.threads);
    // A ring of each thread has descriptors of its own, beside those that it has them from.
    let of_worker = if cell.access() == Access::Uring { threads + 1 } else { copies };
    // Requests to read ahead have descriptors of their own.
    let asks = cell.conditions.work.read_ahead() > 0;
    files.saturating_mul(of_worker + u64::from(asks))
}

/// The most mappings: of each file, and of what is before it.
fn mappings(cell: &Cell) -> u64 {
    copies(cell)
        .filter(|_| cell.access() == Access::Mmap)
        .map_or(0, |(files, copies)| files.saturating_mul(copies).saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::trace::TraceKey;
    use pagewise_model::{Bytes, Conditions, Consume, Replay, Role, Work};

    fn cell(method: &str, files: u32, threads: u32, descriptor: Descriptor) -> Cell {
        let work = Work::Replay(Replay {
            trace: TraceKey::default(),
            file: 0,
            files,
            reads: 10_000,
            read_bytes: Bytes::mib(1),
            longest: Bytes::kib(4),
            trace_threads: threads,
            ballast: Bytes(0),
            consume: Consume::Touch,
            read_ahead: 0,
            gaps_ns: None,
        });
        let conditions = Conditions { threads, descriptor, ..Conditions::of(work, Bytes::mib(64)) };
        Cell { method: method.parse().expect("a method"), conditions, role: Role::Measured }
    }

    #[test]
    fn each_copy_of_a_descriptor_counts() {
        let (shared, own) = (Descriptor::Shared, Descriptor::PerThread);
        for (method, files, threads, descriptor, open, mapped) in [
            ("pread", 1, 4, own, 0, 0),
            ("pread", 3, 4, shared, 3, 0),
            ("pread", 3, 4, own, 12, 0),
            ("uring:depth=4", 3, 4, shared, 15, 0),
            ("mmap", 3, 1, shared, 3, 6),
            ("mmap", 3, 4, own, 12, 24),
        ] {
            let cell = cell(method, files, threads, descriptor);
            assert_eq!((open_files(&cell), mappings(&cell)), (open, mapped), "{}", cell.id());
        }
    }

    #[test]
    fn files_beyond_the_limits_are_refused() {
        let refused =
            |cell: Cell| ensure_descriptors(&Plan::of(vec![cell])).expect_err("refused").to_string();
        let many = refused(cell("pread", 10_000, 1024, Descriptor::PerThread));
        assert!(
            many.starts_with("this replay needs 10,240,256 open files in one process, and the limit is"),
            "{many}"
        );
        ensure_mappings(65_274, 65_530).expect("as many as there may be");
        assert_eq!(
            ensure_mappings(65_275, 65_530).expect_err("one more").to_string(),
            "this replay needs 65,531 mappings in one process, and vm.max_map_count is 65,530: choose fewer files with --file, or fewer threads"
        );
        ensure_descriptors(&Plan::of(vec![cell("pread", 1, 1, Descriptor::Shared)])).expect("one file");
        ensure_descriptors(&Plan::of(vec![cell("mmap", 3, 1, Descriptor::Shared)])).expect("three files");
    }
}
