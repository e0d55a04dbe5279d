//! The conversation about one cell, with evidence read around the measured region.
//!
//! The supervisor reads evidence while the worker's threads wait: just before `go` and just after
//! `sample`. Verification comes after it, so that it changes no counter.

mod cold_start;
mod heartbeats;
mod latencies;
mod replay_limit;
mod windows;

use std::time::{Duration, Instant};

use pagewise_analysis::proof::unaccounted::unaccounted_in_region_ns;
use pagewise_host::steps::{RunStep, reached};
use pagewise_host::{
    BlockDevice, ClockPair, HostReader, OperationOrder, ProcessCounters, TableMemory, WrittenFile, process,
};
use pagewise_model::random::Random;
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Access, CacheState, Cell, CheckContext, Evidence, Failure, FailureKind, Plan, RateWindow, WorkerWarmup,
};
use pagewise_protocol::{
    Conversation, ConversationError, Go, Heartbeats, Job, SampleReply, Wait, descriptor_path,
};
use pagewise_sys::SharedMemory;

use super::accesses::Accesses;
use super::actor::ReadyActor;
use super::actor_task::ActorRecords;
use super::conditions::InForce;
use super::dirty_polls::{self, DirtyPolls};
use super::evidence::{ActivitySum, CounterReading, CpuWait, Moment, Totals, between, wait_until_asleep};
use super::files::{Input, NoState, slowest};
use super::follower::Follower;
use super::sample_round::SampleRound;
use super::task::Task;
use super::worker_warmup::{WarmingWorker, WarmupFile};
use heartbeats::heartbeats;
use replay_limit::ReplayLimit;

/// Reads of a sample that are compared byte for byte.
const VERIFIED_READS: u64 = 8;
/// Maximum memory of the comparison: fewer reads are compared if they are large.
const VERIFIED_BYTES: u64 = 4 << 20;
/// Bounds of the time in which an idle worker beats: otherwise as long as a sample.
const IDLE_MIN_NS: u64 = 50_000_000;
const IDLE_MAX_NS: u64 = 500_000_000;

/// The conversation with one worker about one cell.
pub struct WorkerSession<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Input file of the cell.
    pub input: &'a Input,
    /// The task of the worker.
    pub task: Task<'a>,
    /// The round.
    pub round: SampleRound<'a>,
    /// Under the file.
    pub storage: Storage<'a>,
    /// The host settings of the sample.
    pub conditions: InForce<'a>,
    /// The actor that will be at work beside it.
    pub actor: Option<ReadyActor>,
    /// The facts that checks need.
    pub context: CheckContext,
    /// The counters of the host.
    pub host: &'a mut HostReader,
    /// An examination that goes along with it.
    pub follower: &'a mut dyn Follower,
}

/// The filesystem and the device of the file.
#[derive(Clone, Copy)]
pub struct Storage<'a> {
    /// Alignment of direct reads.
    pub direct_alignment: u64,
    /// The block device, if there is one.
    pub device: Option<&'a BlockDevice>,
}

/// Memory that a worker opens by its path.
pub struct SessionMemory {
    /// Memory of the table, if its work has one.
    table: Option<TableMemory>,
    /// Memory for reads that are compared byte for byte.
    handover: SharedMemory,
}

/// A worker that is asked, request by request.
struct Exchange<'a> {
    worker: &'a mut Conversation,
    memory: &'a mut SessionMemory,
    progress: GoProgress,
}

/// Progress of the threads.
#[derive(Default)]
struct GoProgress {
    /// First operation of the next `go`.
    first_operation: u64,
    windows: Vec<RateWindow>,
    /// Activity of the worker while it waits.
    waiting: ActivitySum,
}

/// Outcome of one `go`.
struct GoOutcome {
    reply: SampleReply,
    /// Moment of the request.
    began: Instant,
    /// When it was sent, by the wall clock, since 1970.
    go_unix_ns: u64,
    /// Time on the supervisor's clock.
    wall_ns: u64,
    /// Time of it that the worker's clock leaves out and that counts all the same.
    unaccounted_ns: u64,
    /// CPU time of the worker meanwhile, and what it used shortly before and was not in its account
    /// yet.
    cpu_ns: Option<u64>,
    /// Time of it in which the supervisor waited for a CPU.
    supervisor_run_queue_ns: Option<u64>,
    /// Expected checksum.
    expected_checksum: Option<u64>,
    /// Order of the table.
    order: Option<OperationOrder>,
    /// Polls of a file that was synced while it was written.
    polls: Option<DirtyPolls>,
}

impl WorkerSession<'_> {
    /// Receive the worker's hello, and warm it up if its code is compiled at run time.
    pub fn meet(
        &self,
        worker: &mut Conversation,
        memory: &SessionMemory,
        warmup_file: Option<&WarmupFile>,
    ) -> Result<Option<WorkerWarmup>, ConversationError> {
        let hello = worker.greet(self.round.wait)?;
        if let Some(detail) = hello.refuses(&self.job(memory), &self.cell.method) {
            return Err(ConversationError::unavailable(detail));
        }
        let (1, Some(warmup_file)) = (hello.worker_warmup, warmup_file) else { return Ok(None) };
        let mut warming = WarmingWorker { worker, warmup_file, wait: self.round.wait };
        warming.warm_up(self.job(memory)).map(Some)
    }

    /// Run the job; return the worker's measurement and the evidence around it.
    pub fn converse(
        &mut self,
        worker: &mut Conversation,
        memory: &mut SessionMemory,
    ) -> Result<(Measurement, Evidence), ConversationError> {
        let pid = worker.pid();
        // What it had and gave back before it knew its file is no room for a copy of it.
        process::begin_peak_anew(pid);
        let before_setup = process::totals(pid);
        let mut before_ready = ActivitySum::default();
        before_ready.begin(pid);
        let opening = Instant::now();
        let mut job = self.job(memory);
        job.ballast_bytes = ballast_beside(job.ballast_bytes, process::anonymous_bytes(pid));
        let (setup_ns, ballast_ns) = worker.open(&job, self.setup_wait())?;
        // Where there is none, all of the time is the method's.
        let ballast_ns = if job.ballast_bytes > 0 { ballast_ns } else { 0 };
        let setup_wall_ns = opening.elapsed().as_nanos() as u64;
        let set_up = || ProcessCounters::difference(&before_setup, &process::totals(pid));
        // Of one-shot work all of this time counts, and reading counters takes some.
        let one_shot = self.cell.conditions.is_one_shot();
        let opened = (!one_shot).then(set_up);
        let warmup_ns = worker.ready(self.setup_wait())?;
        // From `opened` on, and not from when it was received: the worker goes on while counters
        // are read.
        let ready_wall_ns = opening.elapsed().as_nanos() as u64;
        let ready = self.moment(pid);
        reached(RunStep::WorkerReady);
        let in_setup = opened.unwrap_or_else(set_up);
        before_ready.end_at(CounterReading::read(pid), ready);
        self.follower.ready(worker);
        let mut idling = ActivitySum::default();
        let (idle, since) = self.idle(worker, &mut idling, ready)?;
        let mut exchange = Exchange { worker, memory, progress: GoProgress::default() };
        exchange.progress.waiting.begin_at(pid, since);
        let conditions = &self.cell.conditions;
        let span_bytes = conditions.span_bytes.0;
        // What an actor does to a warm cache belongs to the sample.
        let before_actor = conditions.shares_cache().then(|| self.input.residency(span_bytes));
        let actor = self.actor.take().map(ReadyActor::begin);
        if self.conditions.warmed_first {
            if conditions.cache == CacheState::Warm && !conditions.stays_in_memory() {
                self.settle(&mut exchange, actor.as_ref())?;
            }
            self.conditions.cap_device().map_err(lost_state)?;
        }
        let residency_before = before_actor.unwrap_or_else(|| self.input.residency(span_bytes));
        if let Some(actor) = &actor {
            actor.wait_for_pace(conditions.actor_bytes_before().0, self.round.wait.stop);
            reached(RunStep::ActorAtPace);
        }
        let recorded =
            self.task.resident_when_recorded().filter(|_| conditions.cache == CacheState::Recorded);
        let unlike_recorded = recorded.and_then(|pages| self.input.unlike_recorded(span_bytes, pages).ok());
        let cold_start = conditions.cache == CacheState::ColdStart;
        let as_planned = || Some((0, self.round.plan.lead_in_ns(self.cell)?));
        if let Some((first, lead_in_ns)) = self.follower.lead_in().or_else(as_planned) {
            exchange.progress.first_operation = first;
            let lead_in = self.go(&mut exchange, false, (lead_in_ns, 0))?;
            // Each pass is the first operation.
            let passed = if conditions.reads().is_some() { furthest(&lead_in.reply) } else { 0 };
            exchange.progress.first_operation = first.saturating_add(passed);
        }
        let first_operation = exchange.progress.first_operation;
        let mut written = self.input.new_file().map(WrittenFile::state_before);
        let before = self.totals(exchange.worker);
        let actor_before = actor.as_ref().map(|actor| actor.moment(pid));
        let outcome = match cold_start {
            true => self.cold_start(&mut exchange)?,
            false => {
                // The worker knows the order of earlier operations.
                let anew = exchange.progress.first_operation > 0;
                self.go(&mut exchange, anew, self.phases_ns())?
            }
        };
        let reply = &outcome.reply;
        let actor_after = actor.as_ref().map(|actor| actor.moment(pid));
        let after = self.totals(exchange.worker);
        let residency_after = self.input.residency(span_bytes);
        let mut evidence = between(&before, &after, pid, &self.input.keys, reply);
        evidence.heartbeats = heartbeats(&idle, &reply.beats)?;
        if let (Some(written), Some(file)) = (&mut written, self.input.new_file()) {
            written.dirty_after_bytes = file.dirty_bytes();
            if let Some(polls) = outcome.polls {
                polls.put_into(written);
            }
        }
        evidence.go_unix_ns = Some(outcome.go_unix_ns);
        evidence.wall_ns = outcome.wall_ns;
        evidence.cpu_ns = outcome.cpu_ns.or(evidence.cpu_ns);
        evidence.supervisor_run_queue_ns = outcome.supervisor_run_queue_ns;
        evidence.setup_faults =
            in_setup.minor_faults.zip(in_setup.major_faults).map(|(minor, major)| minor + major);
        evidence.worker_peak_before_bytes = before_setup.peak_bytes;
        evidence.setup_device_read_bytes = in_setup.device_read_bytes;
        evidence.expected_checksum = outcome.expected_checksum;
        evidence.thread_reads = self.task.thread_reads().to_vec();
        evidence.resident_before_bytes = residency_before.resident_bytes;
        (evidence.recorded_missing_bytes, evidence.recorded_added_bytes) = unlike_recorded.unzip();
        evidence.resident_after_bytes = residency_after.resident_bytes;
        evidence.residency_source = residency_before.source;
        evidence.settings = self.conditions.setter.settings().now();
        evidence.readahead_bytes = evidence.settings.get("readahead").and_then(|bytes| bytes.parse().ok());
        evidence.windows = std::mem::take(&mut exchange.progress.windows);
        evidence.placement = self.conditions.guard.placed(self.input, span_bytes);
        exchange.progress.waiting.end(pid);
        self.follower.sampled(reply, outcome.order.as_ref(), first_operation);
        (evidence.verified_reads, evidence.differing_reads) =
            self.verify(&mut exchange, &outcome, first_operation)?;
        exchange.progress.first_operation = first_operation.saturating_add(furthest(&outcome.reply));
        let region_began = outcome.began;
        let gaps_ns = self.cell.conditions.gaps_ns();
        let mut measurement = measurement(outcome.reply, outcome.unaccounted_ns, gaps_ns);
        self.take_latencies(&mut exchange, &mut measurement, &mut evidence)?;
        let mut actor_records = None;
        if let (Some(actor), Some(before), Some(after)) = (actor, actor_before, actor_after) {
            let ended = actor.end(region_began, evidence.wall_ns, (&before, &after));
            let others = evidence.device_other_bytes.zip(ended.evidence.device_read_bytes);
            evidence.device_other_bytes = others.map(|(others, actors)| others.saturating_sub(actors));
            evidence.observed.extend(ended.failure);
            evidence.actor = Some(ended.evidence);
            actor_records = ended.records;
        }

        let mut closing = ActivitySum::default();
        closing.begin(pid);
        let asked_to_close = Instant::now();
        let (teardown_ns, sync_ns) = exchange.worker.close(self.setup_wait())?;
        let teardown_wall_ns = asked_to_close.elapsed().as_nanos() as u64;
        closing.end(pid);
        evidence.setup_wall_ns = Some(setup_wall_ns);
        evidence.warmup_wall_ns = Some(ready_wall_ns.saturating_sub(setup_wall_ns));
        evidence.before_ready = before_ready.total();
        evidence.idling = idling.total();
        evidence.waiting = exchange.progress.waiting.total();
        evidence.closing = closing.total();
        evidence.teardown_wall_ns = Some(teardown_wall_ns);
        evidence.mappings_left = process::mappings_of_any(pid, &self.input.keys).ok();
        if let (Some(written), Some(file)) = (&mut written, self.input.new_file()) {
            written.dirty_end_bytes = file.dirty_bytes();
        }
        evidence.written = written;
        // Not before the measured worker has ended: it brings the file into the page cache.
        match (actor_records.map(ActorRecords::read_back), &mut evidence.actor) {
            (Some(Ok(writes)), Some(actor)) => actor.writes = Some(writes),
            (Some(Err(failure)), _) => evidence.observed.push(failure),
            _ => {}
        }
        Ok((Measurement { setup_ns, ballast_ns, warmup_ns, teardown_ns, sync_ns, ..measurement }, evidence))
    }

    /// True if what a worker does while it has nothing to do is part of the total, however little.
    fn counts_answers(&self) -> bool {
        !self.context.forgives_answers && self.cell.conditions.is_one_shot()
    }

    /// The moment of an answer.
    fn moment(&self, pid: u32) -> Moment {
        match self.counts_answers() {
            true => Moment::settled(pid, self.context.cpus),
            false => Moment::now(pid),
        }
    }

    /// Record heartbeats of the worker, which is ready and idle, if the plan requests them; the
    /// moment from which on it waits.
    fn idle(
        &self,
        worker: &mut Conversation,
        interval: &mut ActivitySum,
        ready: Moment,
    ) -> Result<(Heartbeats, Moment), ConversationError> {
        if self.round.plan.workers.heartbeat_ns == 0 {
            return Ok((Heartbeats::default(), ready));
        }
        let idle_ns = idle_ns(self.round.plan);
        interval.begin_at(worker.pid(), ready);
        let beats = worker.idle(idle_ns, self.sample_wait(idle_ns))?;
        let idled = Moment::now(worker.pid());
        interval.end_at(CounterReading::read(worker.pid()), idled);
        Ok((beats, idled))
    }

    /// Request a `go` from the end of the previous one on, by the table as drawn or in a new order.
    /// The table is put into its memory at the last moment, so that it cannot be used before the
    /// clock starts.
    fn go(
        &self,
        exchange: &mut Exchange<'_>,
        anew: bool,
        (sample_ns, latency_ns): (u64, u64),
    ) -> Result<GoOutcome, ConversationError> {
        let Exchange { worker, memory, progress } = exchange;
        let first_operation = progress.first_operation;
        let order = self.task.order(anew, first_operation);
        let pid = worker.pid();
        if self.counts_answers() {
            wait_until_asleep(pid);
        }
        let counters = CounterReading::read(pid);
        if let Some(table) = &mut memory.table {
            self.task.put_table(table, self.cell, order.as_ref(), first_operation);
        }
        let go_at = Moment::now(pid);
        progress.waiting.end_at(counters, go_at);
        let supervisor = CpuWait::begin();
        let go_unix_ns = ClockPair::now().real_ns.max(0) as u64;
        let started = Instant::now();
        let go = Go { first_operation, sample_ns, latency_ns, touch_at: self.task.touch_at() };
        let replay_limit = ReplayLimit::of(self.round.plan, self.cell);
        let wait = self.sample_wait(sample_ns + latency_ns);
        let wait = replay_limit.map_or(wait, |limit| limit.wait(wait));
        let syncs = self.cell.conditions.measures_syncs();
        let timed = || {
            let reply = worker.begin(go).and_then(|()| {
                reached(RunStep::GoSent);
                worker.sample(wait)
            });
            (reply, started.elapsed().as_nanos() as u64, self.moment(pid))
        };
        let ((reply, wall_ns, sampled), polls) = match self.input.new_file().filter(|_| syncs) {
            Some(file) => {
                let (timed, polls) = dirty_polls::during(file, timed);
                (timed, Some(polls))
            }
            None => (timed(), None),
        };
        let reply = reply.map_err(|error| match replay_limit {
            Some(limit) => limit.exceeded(error),
            None => error,
        })?;
        reached(RunStep::Answered);
        let supervisor_run_queue_ns = supervisor.ns();
        progress.waiting.begin_at(pid, sampled);
        let expected_checksum = self.task.expected_checksum(order.as_ref(), &reply, first_operation);
        let cpu_ns = sampled.cpu_ns_since(&go_at);
        let unaccounted_ns = unaccounted_in_region_ns(self.cell, &self.context, reply.elapsed_ns, wall_ns);
        Ok(GoOutcome {
            reply,
            began: started,
            go_unix_ns,
            wall_ns,
            unaccounted_ns,
            cpu_ns,
            supervisor_run_queue_ns,
            expected_checksum,
            order,
            polls,
        })
    }

    fn job(&self, memory: &SessionMemory) -> Job {
        let conditions = &self.cell.conditions;
        let mapped = self.cell.access() == Access::Mmap && conditions.reads().is_some();
        let mut job = Job {
            heartbeat_ns: self.round.plan.workers.heartbeat_ns,
            path: self.input.worker_path(),
            direct_flag: rustix::fs::OFlags::DIRECT.bits(),
            direct_alignment: self.storage.direct_alignment,
            warm_page_tables: u32::from(
                mapped && conditions.cache == CacheState::Warm && conditions.stays_in_memory(),
            ),
            table_path: memory.table.as_ref().map_or_else(String::new, |table| descriptor_path(table.file())),
            handover_path: descriptor_path(memory.handover.file()),
            ..Job::of(&self.cell.method, conditions, self.round.page_bytes)
        };
        self.task.describe(self.cell, &mut job);
        if self.input.is_several() {
            (job.path, job.file_descriptors) = self.input.worker_descriptors();
        }
        self.follower.job(&mut job);
        job
    }

    /// Warm-up file of a worker with a runtime, to be made before it starts.
    pub fn warmup_file(&self) -> Result<Option<WarmupFile>, ConversationError> {
        let has_runtime = self.cell.method.worker().has_runtime();
        has_runtime.then(|| WarmupFile::new(self.cell, self.round.plan.seed)).transpose()
    }

    /// Time limit of set-up, which may read the whole span.
    fn setup_wait(&self) -> Wait<'_> {
        self.round.wait.and(slowest(self.cell.conditions.span_bytes.0))
    }

    /// Time limit of a sample: a batch that has begun is finished, and an operation may be large.
    fn sample_wait(&self, phases_ns: u64) -> Wait<'_> {
        let operation = self.cell.conditions.op_bytes() * u64::from(self.cell.conditions.threads);
        self.round.wait.and(2 * Duration::from_nanos(phases_ns) + slowest(operation))
    }

    fn totals(&mut self, worker: &Conversation) -> Totals {
        Totals::read(worker.pid(), self.storage.device, self.conditions.guard, self.host)
    }

    /// Allocate the memory that the worker opens by its path.
    pub fn memory(&self) -> Result<SessionMemory, ConversationError> {
        let read_bytes = self.cell.conditions.reads().map_or(1, |reads| reads.read_bytes.0);
        let verified_bytes = (verified_reads(read_bytes) * read_bytes) as usize;
        let handover = SharedMemory::create("pagewise-handover", verified_bytes).map_err(|error| {
            ConversationError::lack(format!("memory to compare reads cannot be had: {error}"))
        })?;
        let table = self.task.table_memory().map_err(|error| ConversationError::lack(error.to_string()))?;
        Ok(SessionMemory { table, handover })
    }

    /// Have a seeded subset of the reads done once more, and compare their bytes; return the
    /// numbers of compared and of differing reads. Passes have a checksum of all bytes, and written
    /// files are read back.
    fn verify(
        &mut self,
        exchange: &mut Exchange<'_>,
        outcome: &GoOutcome,
        first_operation: u64,
    ) -> Result<(u64, u64), ConversationError> {
        let (Task::Reads(Accesses { table, .. }), Some(order)) = (&self.task, &outcome.order) else {
            return Ok((0, 0));
        };
        let read_bytes = self.cell.conditions.reads().map_or(1, |reads| reads.read_bytes.0);
        let mut random = Random::for_purpose(
            self.round.plan.seed,
            &format!("verify {} {}", self.cell.id(), self.round.number),
        );
        let done: Vec<u64> = outcome
            .reply
            .thread_operations
            .iter()
            .take(self.cell.conditions.threads as usize)
            .map(|operations| (*operations).min(table.operations_per_thread()))
            .collect();
        let offsets: Vec<u64> = (0..verified_reads(read_bytes))
            .filter_map(|read| {
                let thread = read as usize % done.len().max(1);
                let operations = *done.get(thread).filter(|operations| **operations > 0)?;
                let operation = first_operation.checked_add(random.below(operations))?;
                let operation = table.operation(order, thread as u32, operation)?;
                Some(operation[random.below(operation.len() as u64) as usize])
            })
            .collect();
        if offsets.is_empty() {
            return Ok((0, 0));
        }
        let Exchange { worker, memory, .. } = exchange;
        let reads = worker.verify(offsets.clone(), self.sample_wait(0))?;
        self.follower.verified(reads, &offsets, memory.handover.bytes());
        let read_bytes = read_bytes as usize;
        let mut truth = vec![0; read_bytes];
        let mut differing = 0;
        for (offset, bytes) in offsets.iter().zip(memory.handover.bytes().chunks_exact(read_bytes)) {
            self.input.true_bytes(*offset, &mut truth)?;
            differing += u64::from(bytes != truth);
        }
        Ok((offsets.len() as u64, differing))
    }
}

/// Time in which the idle worker beats.
pub fn idle_ns(plan: &Plan) -> u64 {
    plan.sample_ns.clamp(IDLE_MIN_NS, IDLE_MAX_NS)
}

/// Number of compared reads of `read_bytes`.
fn verified_reads(read_bytes: u64) -> u64 {
    (VERIFIED_BYTES / read_bytes).clamp(1, VERIFIED_READS)
}

/// The worker's numbers of a sample, and the gaps of its work.
fn measurement(reply: SampleReply, unaccounted_in_region_ns: u64, gaps_ns: u64) -> Measurement {
    Measurement {
        gaps_ns,
        gap_wait_ns: reply.gap_wait_ns,
        measured_ns: reply.elapsed_ns,
        operations: reply.operations,
        unaccounted_in_region_ns,
        latency_phase_ns: reply.latency_elapsed_ns,
        latency_phase_operations: reply.latency_operations,
        thread_operations: reply.thread_operations,
        latency_ns: reply.latency_ns,
        latency_counts: reply.latency_counts,
        sync_duration_ns: reply.sync_duration_ns,
        sync_duration_counts: reply.sync_duration_counts,
        due_operations: reply.due_operations,
        late_starts: reply.late_starts,
        cut_short: reply.cut_short > 0,
        stalls: reply.stalls,
        stall_longest_ns: reply.stall_longest_ns,
        ..Measurement::default()
    }
}

/// The most operations that a thread did.
fn furthest(reply: &SampleReply) -> u64 {
    reply.thread_operations.iter().copied().max().unwrap_or(0)
}

/// The error of a state that is lost during a conversation.
fn lost_state(state: NoState) -> ConversationError {
    match state {
        NoState::Stopped => ConversationError::Stopped,
        NoState::Failed(failure) => ConversationError::Broken(failure),
        NoState::Unavailable(detail) => {
            ConversationError::Broken(Failure { kind: FailureKind::SettingMismatch, detail })
        }
    }
}

/// Memory without a file that a worker is to hold besides its own, which is under the same limit:
/// both are to be what the recorded program held.
fn ballast_beside(held_bytes: u64, own_bytes: Option<u64>) -> u64 {
    held_bytes.saturating_sub(own_bytes.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_holds_what_the_program_held_and_its_own_is_a_part_of_it() {
        assert_eq!(ballast_beside(4 << 20, Some(1 << 20)), 3 << 20);
        assert_eq!(ballast_beside(1 << 20, Some(4 << 20)), 0);
        assert_eq!(ballast_beside(4 << 20, None), 4 << 20);
    }
}
