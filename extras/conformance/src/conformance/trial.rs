//! One job of the worker under test: the conversation of a sample of a run, with what only an
//! examination asks for and looks at.

use pagewise_analysis::proof::{self, CPU_OF_OTHERS};
use pagewise_host::{OperationOrder, ReadBack};
use pagewise_lab::supervise::accesses::{Accesses, Parts};
use pagewise_lab::supervise::files::Input;
use pagewise_lab::supervise::follower::Follower;
use pagewise_lab::supervise::records::RecordTask;
use pagewise_lab::supervise::sample::read_back;
use pagewise_model::sample::{Measurement, Written};
use pagewise_model::{Access, Cell, CheckContext, Conditions, Evidence, Failure, FailureKind, Method, Role};
use pagewise_protocol::claims::{Asked, false_time};
use pagewise_protocol::{Conversation, ConversationError, Job, PhaseBounds, SampleReply};

use super::mistakes::Summed;
use super::test_files::{check_holder, check_released, check_span};

/// Parts of a job, each of which may be a step.
pub const OPENS: &str = "opens the file and is ready";
pub const SAMPLE: &str = "go and sample";
pub const CLOCK: &str = "its clock agrees with the clock outside";
pub const NAME: &str = "does what its name says";
pub const SPAN: &str = "maps the span";
pub const BOUND: &str = "keeps the bound";
pub const VERIFIED: &str = "hands verified bytes over";
pub const WRITTEN: &str = "every record is in the file at sample";
pub const KEPT: &str = "every record is in the file after closed";
pub const SYNCS: &str = "syncs";
pub const IDLE_BEATS: &str = "beats while idle";
pub const BEATS: &str = "beats in a sample";
pub const CLOSES: &str = "closes the file, and nothing of it is left";

/// Length of most samples.
const SAMPLE_NS: u64 = 6_000_000;
/// A `go` before the sample is this long.
const LEAD_IN_NS: u64 = 2_000_000;
/// The first operation of a job: past the end of a part.
const FIRST_OPERATION: u64 = 1_000_003;
/// Time limit of a pass before the measured one.
const PASS_NS: u64 = 10_000_000_000;
/// Least share of the requested length. A phase ends with a batch, so it is not shorter, but clocks
/// differ a little.
const PHASE_SHARE: f64 = 0.95;

/// A job for the worker under test.
pub struct Trial {
    /// Method and work.
    pub cell: Cell,
    /// Parts of its table, if it has one.
    pub parts: Parts,
    /// Length of its sample, without the latency phase.
    pub sample_ns: u64,
    /// Interval of heartbeats; 0: none.
    pub heartbeat_ns: u64,
    /// Bound of a thread's operations; 0: none.
    pub max_operations: u64,
    /// Change of the job.
    pub change: Box<dyn Fn(&mut Job)>,
}

impl Trial {
    /// A usual job of `method` under these conditions.
    pub fn of(method: &Method, conditions: Conditions) -> Self {
        Self {
            cell: Cell { role: Role::Measured, method: method.clone(), conditions },
            parts: Parts::default(),
            sample_ns: SAMPLE_NS,
            heartbeat_ns: 0,
            max_operations: 0,
            change: Box::new(|_| {}),
        }
    }

    /// The parts of the job that are looked at.
    pub fn looked_at(&self) -> Vec<&'static str> {
        if self.heartbeat_ns > 0 {
            return vec![OPENS, IDLE_BEATS, BEATS, CLOSES];
        }
        let named = (self.cell.method.access() != Access::Unknown).then_some(NAME);
        let work = &self.cell.conditions.work;
        let after: &[&str] = match (work.writes(), work.reads()) {
            (Some(_), _) => &[WRITTEN, KEPT, SYNCS],
            (None, Some(_)) => &[VERIFIED],
            (None, None) => &[],
        };
        let all = [&[OPENS, SAMPLE, CLOCK], named.as_slice(), after, &[CLOSES]];
        all.concat()
    }
}

/// Findings of a job.
pub struct Tried {
    /// The error that ended it early.
    pub error: Option<ConversationError>,
    /// Faults, each with its part.
    pub wrong: Vec<(&'static str, String)>,
    /// Doubts that waits for a CPU explain, each with its part.
    pub disturbed: Vec<(&'static str, String)>,
    /// The answer that is awaited.
    pub stage: &'static str,
    /// Operations of its sample.
    pub operations: Option<u64>,
    /// Kinds of its heartbeats.
    pub beats: Vec<String>,
}

impl Tried {
    /// True if its clock is its only fault, which a hypervisor may have made too.
    pub fn has_only_doubtful_time(&self) -> bool {
        let is_time = |(part, _): &(&str, String)| *part == CLOCK;
        self.error.is_none() && !self.wrong.is_empty() && self.wrong.iter().all(is_time)
    }
}

/// Looks at the worker while it does a job.
pub struct Onlooker<'a> {
    pub trial: &'a Trial,
    pub input: &'a Input,
    /// The file of another job.
    pub other: &'a Input,
    pub accesses: Option<&'a Accesses>,
    pub records: Option<&'a RecordTask>,
    pub context: CheckContext,
    pub tried: &'a mut Tried,
}

impl Follower for Onlooker<'_> {
    fn job(&self, job: &mut Job) {
        if self.trial.max_operations > 0 {
            job.bounds = PhaseBounds::shared(self.trial.max_operations, 0);
        }
        (self.trial.change)(job);
    }

    fn lead_in(&self) -> Option<(u64, u64)> {
        let work = &self.trial.cell.conditions.work;
        match (work.writes(), work.reads()) {
            (Some(_), _) => None,
            (None, Some(_)) => Some((FIRST_OPERATION, LEAD_IN_NS)),
            (None, None) => Some((0, PASS_NS)),
        }
    }

    fn ready(&mut self, worker: &Conversation) {
        self.tried.stage = "go and sample";
        self.judge(OPENS, check_holder(worker, &self.input.key));
        let conditions = &self.trial.cell.conditions;
        if conditions.span_bytes < conditions.file_bytes {
            let (span, page) = (conditions.span_bytes.0, self.context.page_bytes);
            self.judge(SPAN, check_span(worker.pid(), &self.input.key, span, page));
        }
    }

    fn sampled(&mut self, reply: &SampleReply, order: Option<&OperationOrder>, first_operation: u64) {
        self.tried.stage = if self.accesses.is_some() { "verify and verified" } else { "closes the file" };
        self.tried.operations = Some(reply.operations);
        let sample = self.check_sample(reply, order, first_operation);
        self.judge(SAMPLE, sample);
        self.judge(BOUND, self.check_bound(reply));
        let (asked, lasted) = (self.trial.sample_ns, reply.elapsed_ns);
        let is_timed = self.accesses.is_some() && self.trial.max_operations == 0;
        let too_short = is_timed && (lasted as f64) < asked as f64 * PHASE_SHARE;
        let why = || {
            format!("elapsed_ns is {lasted}, sample_ns was {asked}: go on for so long, and count all of it")
        };
        self.judge(CLOCK, if too_short { Err(why()) } else { Ok(()) });
        if let Some(records) = self.records {
            // While it has the file open: bytes in a buffer of its own are not in the file.
            self.judge(WRITTEN, written(self.input, records, reply.operations));
        }
    }

    fn verified(&mut self, reads: u64, offsets: &[u64], handed: &[u8]) {
        self.tried.stage = "closes the file";
        self.judge(VERIFIED, self.check_verified(reads, offsets, handed));
    }
}

impl Onlooker<'_> {
    fn judge(&mut self, part: &'static str, outcome: Result<(), String>) {
        self.tried.wrong.extend(outcome.err().map(|detail| (part, detail)));
    }

    fn check_sample(
        &self,
        reply: &SampleReply,
        order: Option<&OperationOrder>,
        first_operation: u64,
    ) -> Result<(), String> {
        let Trial { cell, heartbeat_ns, max_operations, .. } = self.trial;
        let (claims, checksum) = (reply.claims(), reply.checksum()?);
        let asked = Asked::of_method(&cell.conditions, &cell.method);
        claims.wrong_operations(&asked).map_or(Ok(()), Err)?;
        let all = claims.all_operations();
        if let Some(work) = asked.operations.filter(|work| all != *work) {
            return Err(format!("{all} operations were done, the job has {work}: do all of it, once"));
        }
        if *heartbeat_ns == 0 && !reply.beats.heartbeat_kinds.is_empty() {
            return Err("it reports heartbeats, and heartbeat_ns is 0: run none then".to_string());
        }
        if let Some(expected) = self.records.and_then(|records| records.checksum(reply.operations))
            && checksum != expected
        {
            let what = match expected {
                0 => "of records without reads it is 16 zeros".to_string(),
                _ => format!("that of the blocks that are read between updates is '{expected:016x}'"),
            };
            return Err(format!("checksum is '{}', {what}", reply.checksum));
        }
        let Some((accesses, order)) = self.accesses.zip(order) else { return Ok(()) };
        let timed = reply.latency_counts.iter().fold(0u64, |total, count| total.saturating_add(*count));
        if *max_operations == 0 && reply.latency_operations == 0 && timed != reply.operations {
            return Err(format!(
                "there was no latency phase, and {timed} latencies of {} operations: time all in the throughput phase if its \
                 batches are of one operation, else go on for latency_ns with a clock around each",
                reply.operations
            ));
        }
        let (page_bytes, files) = (self.context.page_bytes, [self.input, self.other]);
        Summed { accesses, order, first_operation, page_bytes, files }.check(reply)
    }

    fn check_bound(&self, reply: &SampleReply) -> Result<(), String> {
        let most = self.trial.max_operations;
        let of_phase = PhaseBounds::shared(most, 0).throughput_operations;
        let by_thread = &reply.thread_operations;
        if most == 0 || reply.operations <= of_phase && by_thread.iter().all(|done| *done <= most) {
            return Ok(());
        }
        Err(format!(
            "{by_thread:?} operations by thread, {} of them in the throughput phase: max_thread_operations is {most} for both, \
             and throughput_operations {of_phase} for the first",
            reply.operations
        ))
    }

    fn check_verified(&self, reads: u64, offsets: &[u64], handed: &[u8]) -> Result<(), String> {
        if reads != offsets.len() as u64 {
            return Err(format!("reads is {reads}, verify has {} offsets", offsets.len()));
        }
        let read_bytes = self.trial.cell.conditions.reads().map_or(1, |reads| reads.read_bytes.0) as usize;
        let mut truth = vec![0; read_bytes];
        for (index, (offset, found)) in offsets.iter().zip(handed.chunks_exact(read_bytes)).enumerate() {
            let _ = self.input.true_bytes(*offset, &mut truth);
            if found.iter().all(|byte| *byte == 0) {
                return Err(format!(
                    "nothing was put at byte {} of the hand-over memory: read i of verify goes to i * read_bytes",
                    index * read_bytes
                ));
            }
            if let Some(at) = found.iter().zip(&truth).position(|(found, truth)| found != truth) {
                return Err(format!(
                    "of the {read_bytes} bytes at offset {offset}, byte {at} is {}, not {}: put read i of verify at i * \
                     read_bytes of the hand-over memory",
                    found[at], truth[at]
                ));
            }
        }
        Ok(())
    }

    /// The job is done: add what the checks of a run find, and what the worker has left.
    pub fn prove(&mut self, worker: &Conversation, measurement: &Measurement, mut evidence: Evidence) {
        let at_most = |name: &str, claimed_ns: u64, wall_ns: Option<u64>| {
            false_time(name, claimed_ns, wall_ns?, u64::MAX)
        };
        let Measurement { setup_ns, warmup_ns, teardown_ns, sync_ns, .. } = *measurement;
        let opened = at_most("setup_ns", setup_ns, evidence.setup_wall_ns).or_else(|| {
            let ready_ns = evidence.setup_wall_ns?.saturating_add(evidence.warmup_wall_ns?);
            at_most("warmup_ns", warmup_ns, Some(ready_ns))
        });
        self.judge(OPENS, opened.map_or(Ok(()), Err));
        let closed = at_most("teardown_ns", teardown_ns, evidence.teardown_wall_ns)
            .or_else(|| at_most("sync_ns", sync_ns, Some(teardown_ns)));
        self.judge(CLOSES, closed.map_or(Ok(()), Err));
        self.judge(CLOSES, check_released(worker, &self.input.key));
        let cell = &self.trial.cell;
        if let Some(records) = self.records {
            let unread = read_back(cell, self.input, records, measurement, &mut evidence).err();
            evidence.observed.extend(unread);
        }
        // The files are cached: what a device delivers is left to a run.
        evidence.device_read_bytes = None;
        self.tried.beats = evidence.heartbeats.iter().map(|beats| beats.kind.clone()).collect();
        for failure in proof::failures(cell, measurement, &evidence, &self.context) {
            if failure.kind == FailureKind::Disturbed {
                // Rates of a busy machine are nothing that a worker claims.
                if !failure.detail.starts_with(CPU_OF_OTHERS) {
                    self.tried.disturbed.extend(part_of(&failure).map(|part| (part, failure.detail)));
                }
            } else if let Some(part) = part_of(&failure) {
                let detail = format!("{}{}", failure.detail, advice(cell, &failure));
                self.tried.wrong.push((part, detail));
            }
        }
    }
}

/// The part of a job to which a failure belongs; `None` if it is the machine's.
fn part_of(failure: &Failure) -> Option<&'static str> {
    let detail = &failure.detail;
    Some(match failure.kind {
        FailureKind::Contaminated | FailureKind::NotReleased => return None,
        FailureKind::FalseTime => CLOCK,
        FailureKind::Disturbed if detail.contains("in the idle interval") => IDLE_BEATS,
        FailureKind::Disturbed if detail.contains("heartbeats of kind") => BEATS,
        FailureKind::Disturbed => CLOCK,
        FailureKind::WrongBytes => VERIFIED,
        FailureKind::LostRecords => KEPT,
        FailureKind::NotInForce if detail.starts_with("sync=") => SYNCS,
        FailureKind::InconsistentCounts if detail.contains("in the idle interval") => IDLE_BEATS,
        FailureKind::InconsistentCounts if detail.starts_with("heartbeats of kind") => BEATS,
        FailureKind::MissingReads
        | FailureKind::MissingWrites
        | FailureKind::NotInForce
        | FailureKind::MethodContradicted
        | FailureKind::NotDirect => NAME,
        _ => SAMPLE,
    })
}

/// The way out of a failure, for who wrote the worker.
fn advice(cell: &Cell, failure: &Failure) -> String {
    let (method, conditions) = (cell.method.spec(), &cell.conditions);
    let calls = if conditions.workload().is_reading() { "read calls" } else { "write calls" };
    match part_of(failure) {
        Some(SYNCS) => ": msync(MS_SYNC) the mapping, or fdatasync".to_string(),
        Some(KEPT) => {
            ": record i lies at i mod floor(file_bytes / record_bytes) * record_bytes, and the bytes behind the last slot stay \
             as they are"
                .to_string()
        }
        Some(CLOCK) => ": do nothing between go and sample but the two phases".to_string(),
        Some(IDLE_BEATS | BEATS) => ": report those within idle and go, late ones too, and no others".to_string(),
        Some(NAME) if failure.detail.contains("is not in force") => String::new(),
        Some(NAME) => match cell.access() {
            Access::Pread | Access::Read | Access::Pwrite | Access::Write => {
                format!(": '{method}' moves its bytes through {calls}; choose another name if yours does not")
            }
            Access::Mmap => {
                format!(": '{method}' moves its bytes through a mapping; choose another name if yours does not")
            }
            Access::Uring | Access::Anonymous | Access::Unknown => String::new(),
        },
        _ => match (failure.kind, conditions.consume()) {
            (FailureKind::WrongChecksum, Some(consume)) => {
                format!(" (the {} bytes of the span under consume = {consume})", conditions.span_bytes.0)
            }
            _ => String::new(),
        },
    }
}

/// Fail unless every record is at its offset and nothing else was written.
fn written(input: &Input, records: &RecordTask, claimed: u64) -> Result<(), String> {
    let Some(file) = input.new_file() else { return Ok(()) };
    let (all, mut written) = (records.ring.records(), Written::default());
    file.read_back(records.first(claimed.min(all)), ReadBack::Pread, &mut written)
        .map_err(|error| format!("the file cannot be read back: {error}"))?;
    let Written { missing_bytes, first_missing_at, stray_bytes, expected_bytes, .. } = written;
    if missing_bytes > 0 {
        return Err(format!(
            "{missing_bytes} of {expected_bytes} bytes are not there, the first record that misses some begins at {}: record \
             i lies at i mod floor(file_bytes / record_bytes) * record_bytes, and buffers are empty when sample is sent",
            first_missing_at.unwrap_or(0)
        ));
    }
    if stray_bytes > 0 {
        return Err(format!(
            "{stray_bytes} bytes behind the last slot were written, or the file grew: leave them as they are"
        ));
    }
    Ok(())
}
