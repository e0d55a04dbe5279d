//! Memory for a copy of what is read. Calls that read one offset again and again are cheap, because
//! its bytes stay in the first caches of a CPU; the words that count then come from a copy.

use pagewise_model::{Access, Work};

use super::subject::Subject;

/// A direct read is widened by so much at most.
const WIDENED_BYTES: u64 = 128 << 10;

/// A method that moves the bytes of its reads by calls takes no memory from which it could answer
/// them.
pub(super) fn kept_copy(subject: &Subject<'_>) -> Option<String> {
    let conditions = &subject.cell.conditions;
    let parameters = conditions.work.parameters();
    let read_bytes = parameters.longest_read()?;
    // The table of a replay is as long as its trace.
    let entries = if let Work::Replay(replay) = conditions.work { replay.reads } else { 0 };
    let table_bytes = parameters.ballast_bytes().saturating_add(entries.saturating_mul(8));
    if !matches!(subject.cell.access(), Access::Pread | Access::Uring) {
        return None;
    }
    let evidence = subject.evidence;
    // Memory that it has in store becomes a copy without growing.
    let before = evidence.worker_peak_before_bytes?.min(subject.allowance().idle_bytes);
    let grown = evidence.worker_peak_bytes?.saturating_sub(before);
    // A buffer is whole pages, and a page longer than a read.
    let longer = if subject.cell.method.is_direct() { WIDENED_BYTES } else { 2 * subject.context.page_bytes };
    let in_flight = u64::from(subject.cell.method.depth()).saturating_mul(u64::from(conditions.threads));
    let buffers = read_bytes.saturating_add(longer).saturating_mul(in_flight);
    let most = buffers.saturating_add(table_bytes).saturating_add(subject.allowance().memory_bytes);
    (grown > most).then(|| {
        format!(
            "the worker's memory came to {grown} bytes more in its job than the {before} that it may begin with, at most {most} may be: {} \
             reads by calls, and keeps no copy of the file",
            subject.cell.method
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::proof::honest::{cell, kinds};
    use pagewise_model::CacheState::{Cold, Warm};
    use pagewise_model::FailureKind::MethodContradicted;
    use pagewise_model::{Bytes, Cell};

    /// Failures of a worker that had so much and grew by so much.
    fn grown_from(cell: &Cell, before_mib: u64, mib: u64) -> Vec<pagewise_model::FailureKind> {
        kinds(cell, move |_, evidence| {
            evidence.worker_peak_before_bytes = Some(before_mib << 20);
            evidence.worker_peak_bytes = Some((before_mib + mib) << 20);
        })
    }

    fn grown(cell: &Cell, mib: u64) -> Vec<pagewise_model::FailureKind> {
        grown_from(cell, 15, mib)
    }

    #[test]
    fn memory_in_store_is_room_for_a_copy() {
        for (method, expected) in
            [("pread", vec![MethodContradicted]), ("jvm/pread", vec![]), ("mine/pread", vec![])]
        {
            assert_eq!(grown_from(&cell(method, Warm), 96, 0), expected, "{method}");
        }
    }

    #[test]
    fn a_copy_of_the_file_beside_calls_is_noticed() {
        for (method, honest, copy) in
            [("pread", 5, 64), ("mine/pread", 5, 64), ("uring:depth=32", 10, 128), ("jvm/pread", 35, 64)]
        {
            for state in [Warm, Cold] {
                let cell = cell(method, state);
                assert_eq!(grown(&cell, honest), [], "{method} {state}");
                assert_eq!(grown(&cell, copy), [MethodContradicted], "{method} {state}");
            }
        }
        for method in ["mmap", "mine/get"] {
            assert_eq!(
                grown(&cell(method, Warm), 1024),
                [],
                "{method} has the file in its memory, or may have it"
            );
        }
    }

    #[test]
    fn buffers_are_no_copy() {
        let mut large = cell("uring:depth=32", Warm);
        large.conditions.work.reads_mut().expect("reads").read_bytes = Bytes::mib(1);
        large.conditions.threads = 2;
        assert_eq!(grown(&large, 70), []);
    }
}
