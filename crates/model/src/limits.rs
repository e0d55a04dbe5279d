//! Limits of the numbers of a plan. The command line accepts no others. A run file with other
//! numbers was not written by pagewise and is refused before it is processed.

use crate::cell::{CacheState, Cell, Conditions};
use crate::ensure::ensure;
use crate::format::{counted, time};
use crate::method::Alignment;
use crate::plan::Plan;
use crate::ring::RecordRing;
use crate::sample::Sample;
use crate::work::Workload;

/// Rounds of a run.
pub const MAX_ROUNDS: u32 = 10_000;
/// Time that the samples of a run may take.
pub const MAX_BUDGET_NS: u64 = 1000 * 3_600_000_000_000;
/// Duration of a phase of a sample.
pub const MAX_PHASE_NS: u64 = 3_600_000_000_000;
/// Repetitions of a disturbed sample.
pub const MAX_RETAKES: u32 = 100;
/// More threads than this measure the scheduler.
pub const MAX_THREADS: u32 = 1024;
/// Updates of a sample, and the reads before them: the worker keeps their order in memory.
const MAX_UPDATES: u64 = 1 << 24;
/// The longest schedule of updates: a sample does all of them.
const MOST_SCHEDULED_NS: u64 = 10_000_000_000;
/// Fewest operations of a thread that are due within a sample.
const MIN_DUE: u64 = 10;
/// Blocks of a file of which some are read while others are updated.
const MIN_READ_BLOCKS: u64 = 4;

impl Conditions {
    /// Check that each number can be measured with. The error names the first that cannot.
    pub fn check_limits(&self) -> Result<(), String> {
        let Self { threads, file_bytes, span_bytes, .. } = self;
        let reading = self.workload().is_reading();
        ensure(*threads > 0, || {
            format!("0 threads {} nothing: write 1 or more", if reading { "read" } else { "write" })
        })?;
        ensure(*threads <= MAX_THREADS, || format!("{threads} threads: write at most {MAX_THREADS}"))?;
        ensure(file_bytes.0 > 0, || {
            let what = if reading { "holds nothing to read" } else { "has no space for records" };
            format!("a file of 0B {what}")
        })?;
        ensure(span_bytes.0 > 0, || "a span of 0B holds nothing to read".to_string())?;
        self.work.parameters().check(*threads)?;
        ensure(self.cache != CacheState::Recorded || self.workload() == Workload::Replay, || {
            "what was in the page cache when a program was recorded is for a replay of its trace: use --cache warm or cold".to_string()
        })?;
        self.check_rate()?;
        if let Some(actor) = &self.beside {
            actor.check(self, Alignment::ANY)?;
        }
        match self.writes().and_then(|writes| writes.updates).zip(self.ring()) {
            Some((updates, ring)) => self.check_updates(u64::from(updates), &ring),
            None => Ok(()),
        }
    }

    /// Check that operations can be due at a rate: one after the other, as long as a sample lasts.
    fn check_rate(&self) -> Result<(), String> {
        let Some(rate) = self.rate else { return Ok(()) };
        let updates = self.writes().and_then(|writes| writes.updates);
        let takes_rate = self.reads().is_some() || self.is_committing() || updates.is_some();
        ensure(takes_rate, || match self.workload() {
            Workload::Append => {
                format!("a rate of {rate} is for records that are committed: write --sync commit too")
            }
            workload => {
                format!(
                    "a rate of {rate} is for random-read, sequential-read, append and update, not for {workload}"
                )
            }
        })?;
        let all_ns = self.schedule().zip(updates).map(|(schedule, all)| schedule.due_ns(0, u64::from(all)));
        ensure(all_ns.is_none_or(|all_ns| all_ns <= MOST_SCHEDULED_NS), || {
            format!(
                "at {rate} the updates of a sample take {}, at most {} are possible: write fewer --updates or a higher rate",
                time(all_ns.unwrap_or(0)),
                time(MOST_SCHEDULED_NS)
            )
        })?;
        ensure(self.cache != CacheState::ColdStart, || {
            "a cold start is ranked by the time until it is warm, as fast as it gets: leave the rate out"
                .to_string()
        })?;
        ensure(self.host_settings.device_cap.is_none(), || {
            "a rate is judged by latencies, and a device cap does not slow single requests: leave one of them out".to_string()
        })
    }

    /// Check that each update has a block of its own, and a number that the worker can keep.
    fn check_updates(&self, updates: u64, ring: &RecordRing) -> Result<(), String> {
        let reads = updates.saturating_mul(u64::from(ring.reads_each()));
        ensure(updates <= MAX_UPDATES, || format!("{updates} updates: write at most {MAX_UPDATES}"))?;
        ensure(updates.saturating_add(reads) <= MAX_UPDATES, || {
            format!("{updates} updates and {reads} reads: write at most {MAX_UPDATES} together")
        })?;
        ensure(updates <= ring.slots(), || {
            format!(
                "{updates} updates, and a file of {} has {}, of which none is updated twice: write a larger --file-size or fewer --updates",
                self.file_bytes,
                counted(ring.slots(), "block")
            )
        })?;
        ensure(reads == 0 || ring.slots() >= MIN_READ_BLOCKS, || {
            format!(
                "a file of {} has {}, too few to read some while others are updated: write a larger --file-size or no --reads-per-update",
                self.file_bytes,
                counted(ring.slots(), "block")
            )
        })?;
        ensure(ring.slots() <= u64::from(u32::MAX), || {
            format!(
                "{} blocks: write a larger block or a smaller file, with at most {}",
                ring.slots(),
                u32::MAX
            )
        })
    }
}

impl Plan {
    /// Check that the command line would accept each number of a plan from a run file.
    pub fn check_limits(&self) -> Result<(), String> {
        let Self { rounds, budget, sample_ns, memory_sample_ns, retakes, .. } = self;
        let (shortest_ns, least_ns) =
            ((*sample_ns).min(memory_sample_ns.unwrap_or(u64::MAX)), Self::least_sample_ns(&self.cells));
        ensure(shortest_ns >= least_ns, || {
            format!("samples of {shortest_ns} ns beside an actor: they last {least_ns} ns or more")
        })?;
        let sample_ns = (*sample_ns).max(memory_sample_ns.unwrap_or(0));
        ensure(budget.is_none_or(|budget| (1..=MAX_BUDGET_NS).contains(&budget.least_ns)), || {
            format!("a budget of {} ns: write 1s to 1000h", budget.map_or(0, |budget| budget.least_ns))
        })?;
        ensure(*rounds <= MAX_ROUNDS, || format!("{rounds} rounds: a run has at most {MAX_ROUNDS}"))?;
        ensure(sample_ns <= MAX_PHASE_NS, || {
            format!("samples of {sample_ns} ns: one lasts at most {MAX_PHASE_NS}")
        })?;
        ensure(*retakes <= MAX_RETAKES, || {
            format!("{retakes} repetitions of a sample: at most {MAX_RETAKES} are possible")
        })?;
        self.cells.iter().try_for_each(|cell| cell.conditions.check_limits())?;
        self.check_files()?;
        self.cells.iter().try_for_each(|cell| self.check_due_of(cell))
    }

    /// Check that at its rate some operations of each thread are due within a sample.
    fn check_due_of(&self, cell: &Cell) -> Result<(), String> {
        let Some(schedule) = cell.conditions.schedule() else { return Ok(()) };
        let (sample_ns, _) = self.phases_ns(cell, 0);
        let last = schedule.threads.saturating_sub(1);
        let (due, least_ns) = (schedule.due_within(last, sample_ns), schedule.due_ns(last, MIN_DUE));
        ensure(due >= MIN_DUE, || {
            format!(
                "at {} a thread has {} due in a sample of {}: write --sample {}ms or more, or a higher rate",
                schedule.rate,
                counted(due, "operation"),
                time(sample_ns),
                least_ns.div_ceil(1_000_000)
            )
        })
    }

    /// Check that a run of this plan could contain the sample.
    pub fn check_sample(&self, sample: &Sample) -> Result<(), String> {
        ensure(sample.round < self.all_rounds(), || {
            format!(
                "a sample of round {}: the plan has {} rounds, counted from 0",
                sample.round,
                self.all_rounds()
            )
        })?;
        ensure(sample.attempt <= self.retakes, || {
            format!("attempt {} at a sample: it is repeated at most {} times", sample.attempt, self.retakes)
        })?;
        let Some((measurement, _)) = sample.valid() else { return Ok(()) };
        let (operations, ns) = (measurement.operations, measurement.measured_ns);
        ensure(operations > 0 && ns > 0, || format!("a valid sample of {operations} operations in {ns} ns"))
    }
}
