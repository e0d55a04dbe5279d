//! The course of one sample: state of the cache, worker, evidence, verification, checks.
//!
//! Evidence is read by the supervisor while the worker's threads wait: just before `go` and just after
//! `sample`. Verification comes behind it, so that it changes none of the counters.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pagewise_analysis::checks::{self, Context as CheckContext};
use pagewise_host::memory::Memory;
use pagewise_host::{BlockDevice, DeviceCounters, ProcessCounters, process};
use pagewise_model::protocol::{Go, Job, Reply, Request, SampleReply, Verify};
use pagewise_model::random::Random;
use pagewise_model::sample::Measurement;
use pagewise_model::{Access, CacheState, Cell, Evidence, Failure, FailureKind, Outcome, Plan, Source};
use pagewise_sys::SharedMemory;

use super::accesses::{Accesses, AccessesCache};
use super::files::{Input, NoState};
use super::worker::{Program, Trouble, Worker, died_of_sigbus, unexpected};

/// Reads of a sample that are compared byte for byte.
const VERIFIED_READS: u64 = 8;
/// The comparison may take this much memory: fewer reads are compared where one is large.
const VERIFIED_BYTES: u64 = 4 << 20;
/// A storage that reads slower than this makes set-up of a whole file time out.
const SLOWEST_BYTES_PER_SECOND: u64 = 2 << 20;
/// Anonymous memory for a ceiling may take this part of what is available.
const ANONYMOUS_MEMORY_SHARE: u64 = 2;

/// Takes samples of a plan.
pub struct Sampler<'a> {
    plan: &'a Plan,
    inputs: &'a [Input],
    program: Program,
    patience: Duration,
    stop: &'a AtomicBool,
    page_bytes: u64,
    direct_alignment: u64,
    device: Option<BlockDevice>,
    accesses: AccessesCache,
    context: CheckContext,
}

/// The user wants to stop; nothing was taken.
pub struct Stopped;

/// What the sampler needs to know of the machine.
pub struct Setting {
    /// Which program workers are.
    pub program: Program,
    /// How long an answer may take beyond what was asked for.
    pub patience: Duration,
    /// Size of a page.
    pub page_bytes: u64,
    /// CPUs that workers may use.
    pub cpus: u32,
    /// What an honest worker takes to answer beside its phases.
    pub answer_ns: u64,
    /// What O_DIRECT demands.
    pub direct_alignment: u64,
    /// The device behind the files.
    pub device: Option<BlockDevice>,
}

impl<'a> Sampler<'a> {
    /// A sampler for `plan` over its files.
    pub fn new(plan: &'a Plan, inputs: &'a [Input], setting: Setting, stop: &'a AtomicBool) -> Self {
        let hidden_bytes = inputs.iter().any(Input::hides_bytes);
        Self {
            plan,
            inputs,
            program: setting.program,
            patience: setting.patience,
            stop,
            page_bytes: setting.page_bytes,
            direct_alignment: setting.direct_alignment,
            device: setting.device,
            accesses: AccessesCache::default(),
            context: CheckContext {
                page_bytes: setting.page_bytes,
                cpus: setting.cpus,
                answer_ns: setting.answer_ns,
                hidden_bytes,
            },
        }
    }

    /// Takes one sample.
    pub fn take(&mut self, cell: &Cell, round: u32) -> Result<Outcome, Stopped> {
        let input = self
            .inputs
            .iter()
            .find(|input| input.file_bytes == cell.conditions.file_bytes.0)
            .expect("there is an input of every size in the plan");
        if let Err(failure) = input.check_unchanged() {
            return Ok(Outcome::Broken { failures: vec![failure], stderr_tail: String::new() });
        }
        if let Some(reason) = self.beyond_memory(cell, input) {
            return Ok(Outcome::Unavailable { reason });
        }
        // First, because learning what the user's file holds may read it.
        let loaded =
            self.accesses.load(&cell.conditions, round, self.plan, self.page_bytes, input, self.stop);
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        if let Err(error) = loaded {
            return Ok(Outcome::Unavailable { reason: format!("{error:#}") });
        }
        match self.prepare_cache(cell, input) {
            Ok(()) => {}
            Err(NoState::Stopped) => return Err(Stopped),
            Err(NoState::Unavailable(reason)) => return Ok(Outcome::Unavailable { reason }),
            Err(NoState::Failed(failure)) => {
                return Ok(Outcome::Broken { failures: vec![failure], stderr_tail: String::new() });
            }
        }
        let visit = Visit {
            cell,
            input,
            accesses: self.accesses.current(),
            plan: self.plan,
            round,
            patience: self.patience,
            stop: self.stop,
            page_bytes: self.page_bytes,
            direct_alignment: self.direct_alignment,
            device: self.device.as_ref(),
        };
        // Made before the worker, which inherits it.
        let handover = match visit.handover() {
            Ok(handover) => handover,
            Err(trouble) => return finish(trouble, None, input),
        };
        let mut worker = match Worker::start(&self.program) {
            Ok(worker) => worker,
            Err(trouble) => return finish(trouble, None, input),
        };
        match visit.converse(&mut worker, &handover) {
            Ok((measurement, evidence)) => {
                if let Err(trouble) = worker.end() {
                    return finish(trouble, None, input);
                }
                if let Some(reason) = checks::no_effect(cell, &evidence) {
                    return Ok(Outcome::Unavailable { reason });
                }
                if let Some(reason) = served_from_memory(cell, input, &evidence) {
                    return Ok(Outcome::Unavailable { reason });
                }
                let mut failures = checks::failures(cell, &measurement, &evidence, &self.context);
                if evidence.expected_checksum.is_none() {
                    // Nothing else could notice that a cold block was read a second time.
                    failures.push(Failure {
                        kind: FailureKind::InconsistentCounts,
                        detail: format!(
                            "threads claim {:?} operations, the table has {} for each of {}: what they must add up \
                             to is not known",
                            measurement.thread_operations,
                            visit.accesses.table.operations_per_thread(),
                            cell.conditions.threads
                        ),
                    });
                }
                failures.extend(input.check_unchanged().err());
                Ok(Outcome::Taken { measurement, evidence: Box::new(evidence), failures })
            }
            Err(trouble) => finish(trouble, Some(worker), input),
        }
    }

    /// Why a ceiling of memory cannot be measured without harm.
    fn beyond_memory(&self, cell: &Cell, input: &Input) -> Option<String> {
        if cell.method.access() != Access::Anonymous {
            return None;
        }
        let span = cell.conditions.span_bytes;
        if let Some(available) = Memory::read().available_bytes
            && span.0 > available / ANONYMOUS_MEMORY_SHARE
        {
            let available = pagewise_model::Bytes(available >> 20 << 20);
            return Some(format!(
                "a copy of {span} in memory would take more than half of the {available} available"
            ));
        }
        if let Source::File { evict: false, .. } = self.plan.source
            && input.residency(span.0).resident_bytes != Some(span.0)
            && self
                .plan
                .cells
                .iter()
                .any(|cell| cell.conditions.cache == CacheState::AsIs && cell.depends_on_cache())
        {
            return Some(
                "copying your file into memory would change what the page cache holds of it".to_string(),
            );
        }
        None
    }

    fn prepare_cache(&self, cell: &Cell, input: &Input) -> Result<(), NoState> {
        if !cell.depends_on_cache() {
            return Ok(());
        }
        match cell.conditions.cache {
            CacheState::Cold | CacheState::ColdStart => input.make_cold(cell.conditions.span_bytes.0),
            CacheState::Warm => input.make_warm(cell.conditions.span_bytes.0, self.stop),
            CacheState::AsIs => Ok(()),
        }
    }
}

/// Why O_DIRECT means nothing on this filesystem, though it was accepted (tmpfs since Linux 6.6).
fn served_from_memory(cell: &Cell, input: &Input, evidence: &Evidence) -> Option<String> {
    if !cell.method.is_direct() || evidence.device_read_bytes.is_some_and(|bytes| bytes > 0) {
        return None;
    }
    let filesystem = input.in_memory()?;
    let requested = evidence.requested_bytes;
    Some(format!(
        "O_DIRECT is accepted, but served from memory: {} lies on {filesystem}, and the device delivered none of \
         {requested} bytes",
        input.path.display()
    ))
}

/// What trouble makes of a sample.
fn finish(trouble: Trouble, worker: Option<Worker>, input: &Input) -> Result<Outcome, Stopped> {
    let stderr_tail = worker.map(Worker::into_stderr_tail).unwrap_or_default();
    // A worker knows the file by its descriptor, the user by its name.
    let named = |detail: String| detail.replace(&input.worker_path(), &input.path.to_string_lossy());
    let failure = match trouble {
        Trouble::Stopped => return Err(Stopped),
        Trouble::Call(failure) if failure.unavailable == 1 => {
            return Ok(Outcome::Unavailable { reason: named(failure.detail) });
        }
        Trouble::Call(failure) => Failure { kind: FailureKind::CallFailed, detail: named(failure.detail) },
        Trouble::Broken(failure) => failure,
    };
    let mut failures = vec![failure];
    if let Err(changed) = input.check_unchanged() {
        failures.insert(0, changed);
    } else if died_of_sigbus(&failures[0]) {
        failures[0]
            .detail
            .push_str("; a page of the mapping could not be read: the device failed or the file changed");
    }
    Ok(Outcome::Broken { failures, stderr_tail })
}

/// One worker's visit to one cell.
struct Visit<'a> {
    cell: &'a Cell,
    input: &'a Input,
    accesses: &'a Accesses,
    plan: &'a Plan,
    round: u32,
    patience: Duration,
    stop: &'a AtomicBool,
    page_bytes: u64,
    direct_alignment: u64,
    device: Option<&'a BlockDevice>,
}

/// Totals that only differences of mean something.
struct Totals {
    process: ProcessCounters,
    device: Option<DeviceCounters>,
    steal_ns: Option<u64>,
}

impl Visit<'_> {
    fn converse(
        &self,
        worker: &mut Worker,
        handover: &SharedMemory,
    ) -> Result<(Measurement, Evidence), Trouble> {
        worker.greet(self.patience, self.stop)?;
        worker.send(&Request::Open(Box::new(self.job(handover))))?;
        let setup_ns = match worker.receive("opened", self.setup_patience(), self.stop)? {
            Reply::Opened { setup_ns } => setup_ns,
            other => return Err(unexpected("opened", &other)),
        };
        let warmup_ns = match worker.receive("ready", self.setup_patience(), self.stop)? {
            Reply::Ready { warmup_ns } => warmup_ns,
            other => return Err(unexpected("ready", &other)),
        };
        let residency_before = self.input.residency(self.cell.conditions.span_bytes.0);
        let before = self.totals(worker);
        let started = Instant::now();
        worker.send(&Request::Go(Go {
            first_operation: 0,
            sample_ns: self.plan.sample_ns,
            latency_ns: self.plan.latency_ns,
        }))?;
        let reply = match worker.receive("sample", self.sample_patience(), self.stop)? {
            Reply::Sample(reply) => *reply,
            other => return Err(unexpected("sample", &other)),
        };
        let wall_ns = started.elapsed().as_nanos() as u64;
        let after = self.totals(worker);
        let residency_after = self.input.residency(self.cell.conditions.span_bytes.0);

        let mut evidence = self.evidence(worker, &before, &after, &reply);
        evidence.wall_ns = wall_ns;
        evidence.resident_before_bytes = residency_before.resident_bytes;
        evidence.resident_after_bytes = residency_after.resident_bytes;
        evidence.residency_source = residency_before.source;
        (evidence.verified_reads, evidence.differing_reads) = self.verify(worker, &reply, handover)?;

        worker.send(&Request::Close)?;
        let teardown_ns = match worker.receive("closed", self.setup_patience(), self.stop)? {
            Reply::Closed { teardown_ns } => teardown_ns,
            other => return Err(unexpected("closed", &other)),
        };
        let measurement = Measurement {
            setup_ns,
            warmup_ns,
            measured_ns: reply.elapsed_ns,
            operations: reply.operations,
            teardown_ns,
            latency_phase_ns: reply.latency_elapsed_ns,
            latency_phase_operations: reply.latency_operations,
            thread_operations: reply.thread_operations,
            latency_ns: reply.latency_ns,
            latency_counts: reply.latency_counts,
            stalls: reply.stalls,
            stall_longest_ns: reply.stall_longest_ns,
        };
        Ok((measurement, evidence))
    }

    fn job(&self, handover: &SharedMemory) -> Job {
        let conditions = &self.cell.conditions;
        let consumption = conditions.consumption(self.page_bytes);
        let cold = conditions.cache == CacheState::Cold;
        let mapped = self.cell.method.access() == Access::Mmap;
        Job {
            method: self.cell.method.to_string(),
            path: self.input.worker_path(),
            file_bytes: self.input.file_bytes,
            span_bytes: conditions.span_bytes.0,
            threads: conditions.threads,
            descriptor: conditions.descriptor.name().to_string(),
            table_path: self.accesses.table.path(),
            table_reads: self.accesses.table.reads(),
            read_bytes: conditions.read_bytes.0,
            reads_per_op: conditions.reads_per_op,
            consume: conditions.consume.name().to_string(),
            page_bytes: self.page_bytes,
            dependent: u32::from(conditions.dependent),
            touch_last: u32::from(consumption.touch_last),
            direct_flag: rustix::fs::OFlags::DIRECT.bits(),
            direct_alignment: self.direct_alignment,
            warm_page_tables: u32::from(mapped && conditions.cache == CacheState::Warm),
            max_thread_operations: self.accesses.max_thread_operations(),
            max_device_bytes: if cold { conditions.cold_budget_bytes() } else { 0 },
            handover_path: descriptor_path(handover),
        }
    }

    /// Set-up may read the whole span.
    fn setup_patience(&self) -> Duration {
        self.patience + Duration::from_secs(self.cell.conditions.span_bytes.0 / SLOWEST_BYTES_PER_SECOND)
    }

    /// A batch that has begun is finished, and an operation may be large.
    fn sample_patience(&self) -> Duration {
        let phases = Duration::from_nanos(self.plan.sample_ns + self.plan.latency_ns);
        let operation = self.cell.conditions.op_bytes() * u64::from(self.cell.conditions.threads);
        self.patience + 2 * phases + Duration::from_secs(operation / SLOWEST_BYTES_PER_SECOND)
    }

    fn totals(&self, worker: &Worker) -> Totals {
        Totals {
            process: ProcessCounters::read(worker.pid()),
            device: self.device.and_then(BlockDevice::counters),
            steal_ns: process::host_steal_ns(),
        }
    }

    fn evidence(&self, worker: &Worker, before: &Totals, after: &Totals, reply: &SampleReply) -> Evidence {
        let process = ProcessCounters::difference(&before.process, &after.process);
        let device = before
            .device
            .as_ref()
            .zip(after.device.as_ref())
            .and_then(|(before, after)| DeviceCounters::difference(before, after));
        let own = process.device_read_bytes;
        let mapping = process::mapping(worker.pid(), &self.input.key).ok().flatten();
        Evidence {
            // As the worker says; the checks compare it with the operations that it claims.
            requested_bytes: reply.bytes,
            device_read_bytes: own,
            device_other_bytes: device
                .zip(own)
                .map(|(device, own)| (device.read_bytes + device.written_bytes).saturating_sub(own)),
            device_read_requests: device.map(|device| device.read_requests),
            read_call_bytes: process.read_call_bytes,
            read_calls: process.read_calls,
            minor_faults: process.minor_faults,
            major_faults: process.major_faults,
            cpu_ns: process.cpu_ns,
            run_queue_ns: process.run_queue_ns,
            user_ns: process.user_ns,
            system_ns: process.system_ns,
            voluntary_switches: process.voluntary_switches,
            involuntary_switches: process.involuntary_switches,
            steal_ns: before
                .steal_ns
                .zip(after.steal_ns)
                .and_then(|(before, after)| after.checked_sub(before)),
            huge_mapped_bytes: mapping.as_ref().and_then(|mapping| mapping.huge_mapped_bytes),
            mapping_flags: mapping.and_then(|mapping| mapping.vm_flags),
            descriptor_direct: process::descriptor_direct(worker.pid(), &self.input.key),
            worker_peak_bytes: process.peak_bytes,
            expected_checksum: self.expected_checksum(reply),
            checksum: u64::from_str_radix(&reply.checksum, 16).unwrap_or(0),
            ..Evidence::default()
        }
    }

    /// What the accesses that all threads did must add up to.
    fn expected_checksum(&self, reply: &SampleReply) -> Option<u64> {
        reply.thread_operations.iter().enumerate().try_fold(0u64, |total, (thread, operations)| {
            Some(total.wrapping_add(self.accesses.reference.expected(thread as u32, 0, *operations)?))
        })
    }

    fn handover(&self) -> Result<SharedMemory, Trouble> {
        let len = (self.verified_reads() * self.cell.conditions.read_bytes.0) as usize;
        SharedMemory::create("pagewise-handover", len)
            .map_err(|error| Trouble::lack(format!("memory to compare reads cannot be had: {error}")))
    }

    fn verified_reads(&self) -> u64 {
        (VERIFIED_BYTES / self.cell.conditions.read_bytes.0).clamp(1, VERIFIED_READS)
    }

    /// Has a seeded subset of the reads done once more and compares their bytes.
    fn verify(
        &self,
        worker: &mut Worker,
        reply: &SampleReply,
        handover: &SharedMemory,
    ) -> Result<(u64, u64), Trouble> {
        let mut random =
            Random::for_purpose(self.plan.seed, &format!("verify {} {}", self.cell.id(), self.round));
        let table = &self.accesses.table;
        let done: Vec<u64> = reply
            .thread_operations
            .iter()
            .take(self.cell.conditions.threads as usize)
            .map(|operations| (*operations).min(table.operations_per_thread()))
            .collect();
        let offsets: Vec<u64> = (0..self.verified_reads())
            .filter_map(|read| {
                let thread = read as usize % done.len().max(1);
                let operations = *done.get(thread).filter(|operations| **operations > 0)?;
                let operation = table.operation(thread as u32, random.below(operations))?;
                Some(operation[random.below(operation.len() as u64) as usize])
            })
            .collect();
        if offsets.is_empty() {
            return Ok((0, 0));
        }
        worker.send(&Request::Verify(Verify { offsets: offsets.clone() }))?;
        match worker.receive("verified", self.sample_patience(), self.stop)? {
            Reply::Verified { .. } => {}
            other => return Err(unexpected("verified", &other)),
        }
        let read_bytes = self.cell.conditions.read_bytes.0 as usize;
        let mut truth = vec![0; read_bytes];
        let mut differing = 0;
        for (offset, bytes) in offsets.iter().zip(handover.bytes().chunks_exact(read_bytes)) {
            self.input.true_bytes(*offset, &mut truth)?;
            differing += u64::from(bytes != truth);
        }
        Ok((offsets.len() as u64, differing))
    }
}

/// The path by which a worker opens memory that it inherits.
pub fn descriptor_path(memory: &SharedMemory) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", memory.file().as_raw_fd())
}

/// Whether the method is one that a sample may find disturbed from outside: then it is taken again.
pub fn worth_retaking(outcome: &Outcome) -> bool {
    let from_outside = |failure: &Failure| {
        matches!(
            failure.kind,
            FailureKind::NotCold | FailureKind::NotWarm | FailureKind::Contaminated | FailureKind::FalseTime
        )
    };
    match outcome {
        Outcome::Taken { failures, .. } | Outcome::Broken { failures, .. } => {
            !failures.is_empty() && failures.iter().all(from_outside)
        }
        Outcome::Unavailable { .. } => false,
    }
}

/// Whether nothing more can come of the cell.
pub fn ends_cell(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Taken { .. })
}
