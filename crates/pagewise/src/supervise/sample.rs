//! The course of one sample: setting of the machine, state of the cache, worker, evidence, verification, checks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pagewise_analysis::checks::{self, Context as CheckContext};
use pagewise_host::memory::Memory;
use pagewise_host::{BlockDevice, HostReader, placement};
use pagewise_model::{Access, CacheState, Cell, Evidence, Failure, FailureKind, Outcome, Plan, Source};
use pagewise_sys::SharedMemory;

use super::accesses::AccessesCache;
use super::files::{Input, NoState};
use super::setting::{Held, Setter};
use super::visit::Visit;
use super::warming;
use super::worker::{Program, Trouble, Worker, died_of_sigbus};
use crate::state::State;

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
    readahead_bytes: Option<u64>,
    setter: Setter,
    host: HostReader,
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
    /// Readahead in force when the run began.
    pub readahead_bytes: Option<u64>,
    /// What sets limits, caps and placement.
    pub setter: Setter,
}

impl<'a> Sampler<'a> {
    /// A sampler for `plan` over its files.
    pub fn new(plan: &'a Plan, inputs: &'a [Input], setting: Setting, stop: &'a AtomicBool) -> Self {
        let readahead_bytes = setting.setter.readahead_at_start();
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
            readahead_bytes: setting.readahead_bytes,
            setter: setting.setter,
            host: HostReader::new(),
            accesses: AccessesCache::default(),
            context: CheckContext {
                page_bytes: setting.page_bytes,
                cpus: setting.cpus,
                answer_ns: setting.answer_ns,
                hidden_bytes,
                readahead_bytes,
            },
        }
    }

    /// Takes one sample. What it changes on the machine is announced in `journal` first.
    pub fn take(&mut self, cell: &Cell, round: u32, journal: &mut State) -> Result<Outcome, Stopped> {
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
        let surroundings = &cell.conditions.surroundings;
        let held = match self.setter.hold(surroundings, journal) {
            Ok(held) => held,
            Err(state) => return without_state(state),
        };
        // A cap is in force from set-up on, but not while the cache is warmed.
        let warmed_first = cell.conditions.cache == CacheState::Warm && cell.depends_on_cache();
        let prepared = warming::prepare(cell, input, &held, self.plan.drop_caches, self.patience, self.stop)
            .and_then(|()| place_pages(cell, input, &held))
            .and_then(|()| if warmed_first { Ok(()) } else { self.setter.cap_device(&held) });
        if let Err(state) = prepared {
            return without_state(state);
        }
        let mut visit = Visit {
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
            readahead_bytes: surroundings.readahead_bytes.map(|bytes| bytes.0).or(self.readahead_bytes),
            held: &held,
            setter: &self.setter,
            warmed_first,
            host: &mut self.host,
        };
        // Made before the worker, which inherits it.
        let handover = match visit.handover() {
            Ok(handover) => handover,
            Err(trouble) => return finish(trouble, None, input, &held),
        };
        let mut worker = match Worker::start(&self.program, |command| held.prepare(command)) {
            Ok(worker) => worker,
            Err(trouble) => return finish(trouble, None, input, &held),
        };
        match visit.converse(&mut worker, &handover) {
            Ok((measurement, evidence)) => {
                if let Err(trouble) = worker.end() {
                    return finish(trouble, None, input, &held);
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
                            self.accesses.current().table.operations_per_thread(),
                            cell.conditions.threads
                        ),
                    });
                }
                failures.extend(input.check_unchanged().err());
                Ok(Outcome::Taken { measurement, evidence: Box::new(evidence), failures })
            }
            Err(trouble) => finish(trouble, Some(worker), input, &held),
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
}

/// What the lack of a state makes of a sample.
fn without_state(state: NoState) -> Result<Outcome, Stopped> {
    match state {
        NoState::Stopped => Err(Stopped),
        NoState::Unavailable(reason) => Ok(Outcome::Unavailable { reason }),
        NoState::Failed(failure) => {
            Ok(Outcome::Broken { failures: vec![failure], stderr_tail: String::new() })
        }
    }
}

/// Puts the pages of the span on the node that the cell asks for.
fn place_pages(cell: &Cell, input: &Input, held: &Held) -> Result<(), NoState> {
    let Some(plan) = &held.placement else { return Ok(()) };
    placement::place_pages(input.file(), cell.conditions.span_bytes.0, plan.page_node).map_err(|error| {
        NoState::Unavailable(format!("pages cannot be put on node {}: {error}", plan.page_node))
    })
}

/// Reading so many bytes takes no longer than this.
pub fn slowest(bytes: u64) -> Duration {
    Duration::from_secs(bytes / SLOWEST_BYTES_PER_SECOND)
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
fn finish(trouble: Trouble, worker: Option<Worker>, input: &Input, held: &Held) -> Result<Outcome, Stopped> {
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
    if failures[0].kind == FailureKind::WorkerDied
        && let Some(detail) = held.killed_for_memory()
    {
        failures[0] = Failure { kind: FailureKind::KilledForMemory, detail };
    } else if let Err(changed) = input.check_unchanged() {
        failures.insert(0, changed);
    } else if died_of_sigbus(&failures[0]) {
        failures[0]
            .detail
            .push_str("; a page of the mapping could not be read: the device failed or the file changed");
    }
    Ok(Outcome::Broken { failures, stderr_tail })
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
            FailureKind::NotCold
                | FailureKind::NotWarm
                | FailureKind::Contaminated
                | FailureKind::FalseTime
                | FailureKind::NotSettled
                | FailureKind::ChargedElsewhere
                | FailureKind::LimitNotHeld
                | FailureKind::NotAsSet
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
