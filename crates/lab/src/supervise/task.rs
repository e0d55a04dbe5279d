//! The task of a worker (offsets, a whole pass, records, a trace) and its expected checksum.
//!
//! A task depends on the conditions and the round, never on the method: all methods of a comparison
//! do the same work in a round. One method of Java has another definition of a line, and an
//! expected count of its own.

use anyhow::Result;
use pagewise_host::{OperationOrder, PiecesOfGo, TableError, TableMemory, reference};
use pagewise_model::pieces::piece_reads;
use pagewise_model::random::mix;
use pagewise_model::trace::ResidentPages;
use pagewise_model::{CacheState, Cell, Conditions, Consume, LineRule, Work};
use pagewise_protocol::{Job, PhaseBounds, SampleReply};

use super::accesses::{Accesses, AccessesCache};
use super::files::Input;
use super::records::RecordTask;
use super::replays::ReplayTask;
use super::sample_round::SampleRound;

/// The task of a worker.
pub enum Task<'a> {
    /// Reads by an offset table.
    Reads(&'a Accesses),
    /// One pass over the span.
    Pass {
        /// Expected checksum.
        checksum: u64,
    },
    /// Records or blocks that are written.
    Records(&'a RecordTask),
    /// The reads of a trace.
    Replay(&'a ReplayTask),
}

/// Checksum of a pass over an input; computed once, because it takes a pass.
struct KnownPass {
    file_bytes: u64,
    span_bytes: u64,
    consume: Consume,
    line_rule: LineRule,
    checksum: u64,
}

/// The last tasks.
#[derive(Default)]
pub struct Tasks {
    accesses: AccessesCache,
    passes: Vec<KnownPass>,
    records: Option<RecordTask>,
    replay: Option<ReplayTask>,
}

impl Tasks {
    /// Make the task of `cell` in `round` on the file `input`, unless it is kept; afterwards it is
    /// [`Tasks::of`] the cell.
    pub fn load(&mut self, cell: &Cell, round: SampleRound<'_>, input: Option<&Input>) -> Result<()> {
        let conditions = &cell.conditions;
        if let Some(ring) = conditions.ring() {
            let seed = round.seed();
            if self.records.as_ref().is_none_or(|kept| (kept.ring, kept.seed) != (ring, seed)) {
                self.records = Some(RecordTask::new(ring, seed, round.page_bytes)?);
            }
            return Ok(());
        }
        let input = input.expect("a cell that reads has an input");
        match conditions.work {
            Work::Scan(scan) => self.learn_pass(cell, scan.consume, round, input),
            Work::Replay(work) => {
                if self.replay.as_ref().is_none_or(|kept| !kept.is_of(&work)) {
                    self.replay = Some(ReplayTask::new(work, round, input)?);
                }
                Ok(())
            }
            _ => self.accesses.load(conditions, round, input),
        }
    }

    /// The task of `cell`, which was loaded last.
    pub fn of(&self, cell: &Cell) -> Task<'_> {
        let conditions = &cell.conditions;
        match conditions.work {
            work if work.writes().is_some() => Task::Records(self.records.as_ref().expect("loaded before")),
            Work::Scan(scan) => {
                let known = self.known_pass(cell, scan.consume).expect("loaded before");
                Task::Pass { checksum: known }
            }
            Work::Replay(_) => Task::Replay(self.replay.as_ref().expect("loaded before")),
            _ => Task::Reads(self.accesses.current()),
        }
    }

    fn known_pass(&self, cell: &Cell, consume: Consume) -> Option<u64> {
        let Conditions { file_bytes, span_bytes, .. } = &cell.conditions;
        let key = (file_bytes.0, span_bytes.0, consume, cell.method.line_rule());
        let key_of = |known: &KnownPass| (known.file_bytes, known.span_bytes, known.consume, known.line_rule);
        self.passes.iter().find(|known| key_of(known) == key).map(|known| known.checksum)
    }

    fn learn_pass(
        &mut self,
        cell: &Cell,
        consume: Consume,
        round: SampleRound<'_>,
        input: &Input,
    ) -> Result<()> {
        if self.known_pass(cell, consume).is_some() {
            return Ok(());
        }
        let (file_bytes, span_bytes) = (cell.conditions.file_bytes.0, cell.conditions.span_bytes.0);
        let stop = round.wait.stop;
        let (line_rule, source) = (cell.method.line_rule(), input.reference_source());
        let checksum = match line_rule {
            LineRule::Newline => reference::pass(&source, consume, round.page_bytes, span_bytes, stop)?,
            LineRule::ReadLine => reference::read_lines(&source, span_bytes, stop)?,
        };
        self.passes.push(KnownPass { file_bytes, span_bytes, consume, line_rule, checksum });
        Ok(())
    }
}

impl Task<'_> {
    /// Bounds of one `go`.
    fn bounds(&self, conditions: &Conditions) -> PhaseBounds {
        match self {
            Task::Reads(accesses) => {
                let cold = conditions.cache == CacheState::Cold;
                let device_bytes = if cold { conditions.cold_budget_bytes() } else { 0 };
                bounds_of_go(conditions, accesses.max_thread_operations(), device_bytes)
            }
            Task::Pass { .. } | Task::Replay(_) => PhaseBounds::of_throughput(1, 0),
            Task::Records(records) => PhaseBounds::of_throughput(records.ring.records(), 0),
        }
    }

    /// Order of the table for a `go` from operation `first_operation` on: as drawn, or a new one.
    /// `None` without a table.
    pub fn order(&self, anew: bool, first_operation: u64) -> Option<OperationOrder> {
        match self {
            Task::Reads(accesses) if anew => Some(accesses.table.anew(first_operation)),
            Task::Reads(accesses) => Some(accesses.table.as_drawn()),
            Task::Pass { .. } | Task::Records(_) | Task::Replay(_) => None,
        }
    }

    /// Memory for the table, if there is one.
    pub fn table_memory(&self) -> Result<Option<TableMemory>, TableError> {
        match self {
            Task::Reads(accesses) => TableMemory::new(accesses.entries()).map(Some),
            Task::Replay(replay) => {
                TableMemory::new(replay.table.entries.len() as u64 + replay.words_behind()).map(Some)
            }
            Task::Records(records) if records.ring.is_scattered() => {
                TableMemory::new(records.accesses.len() as u64).map(Some)
            }
            Task::Pass { .. } | Task::Records(_) => Ok(None),
        }
    }

    /// Expected checksum of `reply`, from operation `first_operation` of this order on; `None` if
    /// it claims more than there is.
    pub fn expected_checksum(
        &self,
        order: Option<&OperationOrder>,
        reply: &SampleReply,
        first_operation: u64,
    ) -> Option<u64> {
        match self {
            Task::Reads(accesses) => accesses.expected_checksum(order?, reply, first_operation),
            Task::Pass { checksum } => (reply.operations <= 1).then(|| checksum * reply.operations),
            Task::Replay(ReplayTask { checksum, .. }) => {
                reply.thread_operations.iter().all(|operations| *operations <= 1).then_some(*checksum)
            }
            // Written bytes are read back instead.
            Task::Records(records) => records.checksum(reply.operations),
        }
    }

    /// Put the table of `cell` into its memory, for a `go` from operation `first_operation` on in
    /// this order.
    pub fn put_table(
        &self,
        memory: &mut TableMemory,
        cell: &Cell,
        order: Option<&OperationOrder>,
        first_operation: u64,
    ) {
        let reads = self.piece_reads(cell);
        match (self, order) {
            (Task::Reads(Accesses { table, reference, .. }), Some(order)) => {
                memory.put(table, order, &PiecesOfGo { reference, first_operation, reads });
            }
            (Task::Replay(replay), _) => {
                let ReplayTask { table, checksums, .. } = replay;
                memory.put_recorded(&table.entries, &table.thread_reads, reads, checksums);
                let (gaps, requests) = replay.between_reads(&cell.method);
                memory.put_behind(table.entries.len(), &gaps);
                memory.put_behind(table.entries.len() + gaps.len(), &requests);
            }
            (Task::Records(records), _) => memory.put_plain(&records.accesses),
            _ => {}
        }
    }

    /// Reads of a piece of the table; 0 without a table.
    fn piece_reads(&self, cell: &Cell) -> u64 {
        match self {
            Task::Reads(accesses) => accesses.piece_reads(&cell.method),
            Task::Replay(replay) => {
                let smallest = replay.table.thread_reads.iter().copied().min().unwrap_or(0);
                piece_reads(&cell.method, 1, smallest)
            }
            Task::Pass { .. } | Task::Records(_) => 0,
        }
    }

    /// Position in a page of the word that `touch` takes.
    pub fn touch_at(&self) -> u64 {
        match self {
            Task::Reads(accesses) => accesses.table.touch_at(),
            Task::Replay(replay) => replay.touch_at,
            Task::Records(records) => records.touch_at(),
            Task::Pass { .. } => 0,
        }
    }

    /// Reads of each thread, where threads have reads of their own.
    pub fn thread_reads(&self) -> &[u64] {
        match self {
            Task::Replay(replay) => &replay.table.thread_reads,
            _ => &[],
        }
    }

    /// The pages that were in the page cache when each file was recorded, of a replay.
    pub fn resident_when_recorded(&self) -> Option<&[ResidentPages]> {
        match self {
            Task::Replay(replay) => Some(&replay.resident),
            _ => None,
        }
    }

    /// Complete the job.
    pub fn describe(&self, cell: &Cell, job: &mut Job) {
        job.bounds = self.bounds(&cell.conditions);
        job.piece_reads = self.piece_reads(cell);
        match self {
            Task::Reads(accesses) => {
                job.table_reads = accesses.entries();
            }
            Task::Pass { .. } => {}
            Task::Replay(replay) => {
                job.table_reads = replay.table.entries.len() as u64;
                job.thread_reads = replay.table.thread_reads.clone();
                job.thread_read_ahead = replay.thread_read_ahead(&cell.method);
                if replay.span.starts().len() > 1 {
                    job.file_starts = replay.span.starts().to_vec();
                    job.file_bytes_each = replay.span.sizes().to_vec();
                }
            }
            Task::Records(records) => {
                job.table_reads = records.accesses.len() as u64;
                job.source_path = records.source_path();
                job.gap_seed = mix(records.seed);
            }
        }
    }
}

/// The bounds of one `go` of a sample that may do so much in all. Under a device cap no latency
/// phase follows, so the throughput phase has all of its share.
fn bounds_of_go(conditions: &Conditions, operations: u64, device_bytes: u64) -> PhaseBounds {
    let operations_share = conditions.measured_share(operations).max(operations.min(1));
    let device_share = conditions.measured_share(device_bytes);
    match conditions.host_settings.device_cap {
        Some(_) => PhaseBounds::of_throughput(operations_share, device_share),
        None => PhaseBounds::shared(operations_share, device_share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::{Bytes, HostSettings, Reads, Work};

    #[test]
    fn a_capped_sample_may_use_its_whole_share() {
        let of = |cap: Option<&str>| Conditions {
            cache: CacheState::Cold,
            host_settings: HostSettings {
                device_cap: cap.map(|cap| cap.parse().expect("a cap")),
                ..HostSettings::default()
            },
            ..Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(4))), Bytes::mib(96))
        };
        let (capped, free) = (of(Some("emmc")), of(None));
        let quarter = free.cold_budget_bytes();
        let of_capped = bounds_of_go(&capped, 1000, quarter);
        assert_eq!((of_capped.throughput_operations, of_capped.throughput_device_bytes), (500, quarter / 2));
        assert_eq!(bounds_of_go(&capped, 1, quarter).throughput_operations, 1, "none would be unbounded");
        assert_eq!(bounds_of_go(&free, 1000, quarter), PhaseBounds::shared(1000, quarter));
    }
}
