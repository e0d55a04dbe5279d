//! One sample: settings of the machine, state of the cache, worker, evidence, verification, checks.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pagewise_analysis::proof;
use pagewise_host::memory::Memory;
use pagewise_host::{BlockDevice, HostReader, ReadBack, cache};
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Access, Alignment, Beating, CacheState, Cell, CheckContext, Evidence, Failure, FailureKind, Outcome,
    Plan, Source,
};
use pagewise_protocol::{Conversation, ConversationError, EXIT_PATIENCE, Wait, died_of_sigbus};

use super::conditions::{ConditionGuard, ConditionSetter};
use super::files::{Input, NoState};
use super::memory_speed::MemorySpeeds;
use super::programs::Programs;
use super::records::RecordTask;
use super::task::{Task, Tasks};
use super::warming;
use super::worker_session::{WorkerSession, idle_ns};
use crate::state::State;

/// Anonymous memory for a ceiling may take this part of what is available.
const ANONYMOUS_MEMORY_SHARE: u64 = 2;

/// Takes samples of a plan.
pub struct Sampler<'a> {
    plan: &'a Plan,
    inputs: &'a [Input],
    programs: Programs,
    patience: Duration,
    stop: &'a AtomicBool,
    page_bytes: u64,
    direct_alignment: u64,
    device: Option<BlockDevice>,
    setter: ConditionSetter,
    host: HostReader,
    tasks: Tasks,
    memory_speeds: MemorySpeeds,
    new_path: Option<PathBuf>,
    context: CheckContext,
}

/// The user wants to stop; nothing was taken.
pub struct Stopped;

/// What the sampler needs to know of the machine.
pub struct MachineFacts {
    /// Which programs workers are.
    pub programs: Programs,
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
    /// What sets limits, caps and placement.
    pub setter: ConditionSetter,
    /// Where files that are written are made, if any are.
    pub new_path: Option<PathBuf>,
}

impl<'a> Sampler<'a> {
    /// A sampler for `plan` over its files.
    pub fn new(plan: &'a Plan, inputs: &'a [Input], setting: MachineFacts, stop: &'a AtomicBool) -> Self {
        let readahead_bytes =
            setting.setter.settings().at_start().get("readahead").and_then(|bytes| bytes.parse().ok());
        let sparse_or_compressed_bytes = inputs.iter().any(Input::hides_bytes);
        let place = match &plan.source {
            Source::Dataset { directory } => directory,
            Source::File { path, .. } => path,
        };
        let in_memory = File::open(place).ok().and_then(|place| cache::in_memory(&place));
        Self {
            plan,
            inputs,
            programs: setting.programs,
            patience: setting.patience,
            stop,
            page_bytes: setting.page_bytes,
            direct_alignment: setting.direct_alignment,
            device: setting.device,
            setter: setting.setter,
            host: HostReader::new(),
            tasks: Tasks::default(),
            memory_speeds: MemorySpeeds::default(),
            new_path: setting.new_path,
            context: CheckContext {
                page_bytes: setting.page_bytes,
                cpus: setting.cpus,
                answer_ns: setting.answer_ns,
                sparse_or_compressed_bytes,
                memory_backed: in_memory.is_some(),
                readahead_bytes,
                beating: (plan.workers.heartbeat_ns > 0)
                    .then(|| Beating { interval_ns: plan.workers.heartbeat_ns, idle_ns: idle_ns(plan) }),
            },
        }
    }

    /// What the checks are told.
    pub fn check_context(&self) -> CheckContext {
        self.context
    }

    /// Takes one sample. What it changes on the machine is announced in `journal` first.
    pub fn take(&mut self, cell: &Cell, round: u32, journal: &mut State) -> Result<Outcome, Stopped> {
        let read = self.inputs.iter().find(|input| input.holds(&cell.conditions));
        if let Some(Err(failure)) = read.map(Input::check_unchanged) {
            return Ok(Outcome::Broken { failures: vec![failure], stderr_tail: String::new() });
        }
        let program = match self.programs.of(cell.method.worker()) {
            Ok(program) => program.clone(),
            Err(reason) => return Ok(Outcome::Unavailable { reason: reason.to_string() }),
        };
        if let Some(reason) = self.beyond_memory(cell, read) {
            return Ok(Outcome::Unavailable { reason });
        }
        let alignment = Alignment { direct_bytes: self.direct_alignment, page_bytes: self.page_bytes };
        if let Some(reason) = cell.method.refuses(&cell.conditions.work, alignment) {
            return Ok(Outcome::Unavailable { reason });
        }
        // First, because learning what the user's file holds may read it.
        let loaded = self.tasks.load(cell, round, self.plan, self.page_bytes, read, self.stop);
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        if let Err(error) = loaded {
            return Ok(Outcome::Unavailable { reason: format!("{error:#}") });
        }
        let made;
        let input = match (read, self.tasks.of(cell)) {
            (_, Task::Records(records)) => match self.new_file(cell, records) {
                Ok(new) => {
                    made = new;
                    &made
                }
                Err(state) => return without_state(state),
            },
            (read, _) => read.expect("there is an input of every size in the plan"),
        };
        let host_settings = &cell.conditions.host_settings;
        let held = match self.setter.hold(host_settings, journal) {
            Ok(held) => held,
            Err(state) => return without_state(state),
        };
        // A cap is in force from set-up on, but not while the cache is warmed.
        let reading = cell.conditions.workload().is_reading();
        let warmed = matches!(cell.conditions.cache, CacheState::Warm | CacheState::ReadOnce);
        let warmed_first = reading && warmed && cell.depends_on_cache();
        let prepare = || {
            warming::prepare(cell, input, &held, self.plan.drop_caches, self.patience, self.stop)
                .and_then(|()| held.place_pages(input, cell.conditions.span_bytes.0))
                .and_then(|()| if warmed_first { Ok(()) } else { self.setter.cap_device(&held) })
        };
        // What the cache holds would not stay so for the seconds in which a worker practises, so there it comes after.
        let practises = cell.method.worker().has_runtime();
        if !practises && let Err(state) = prepare() {
            return without_state(state);
        }
        let mut session = WorkerSession {
            cell,
            input,
            task: self.tasks.of(cell),
            plan: self.plan,
            round,
            wait: Wait { patience: self.patience, stop: self.stop },
            page_bytes: self.page_bytes,
            direct_alignment: self.direct_alignment,
            device: self.device.as_ref(),
            readahead_bytes: host_settings
                .kernel
                .readahead_bytes
                .map(|bytes| bytes.0)
                .or(self.context.readahead_bytes),
            held: &held,
            setter: &self.setter,
            warmed_first,
            host: &mut self.host,
        };
        // Made before the worker, which inherits it.
        let mut inherited = match session.inherited() {
            Ok(inherited) => inherited,
            Err(trouble) => return finish(trouble, None, input, &held, self.stop),
        };
        let warmup_file = match session.warmup_file() {
            Ok(warmup_file) => warmup_file,
            Err(trouble) => return finish(trouble, None, input, &held, self.stop),
        };
        let mut worker = match program.start(|command| held.prepare(command)) {
            Ok(worker) => worker,
            Err(trouble) => return finish(trouble, None, input, &held, self.stop),
        };
        let worker_warmup = match session.meet(&mut worker, &inherited, warmup_file.as_ref()) {
            Ok(worker_warmup) => worker_warmup,
            Err(trouble) => return finish(trouble, Some(worker), input, &held, self.stop),
        };
        if practises && let Err(state) = prepare() {
            return without_state(state);
        }
        match session.converse(&mut worker, &mut inherited) {
            Ok((measurement, mut evidence)) => {
                evidence.worker_warmup = worker_warmup;
                evidence.memory_bytes_per_second =
                    self.memory_speeds.of(cell, self.context.cpus, proof::byte_rate(cell, &measurement));
                if let Err(trouble) = worker.end(EXIT_PATIENCE) {
                    return finish(trouble, None, input, &held, self.stop);
                }
                if let Some(reason) = proof::no_effect(cell, &evidence) {
                    return Ok(Outcome::Unavailable { reason });
                }
                if let Some(reason) = served_from_memory(cell, input, &evidence) {
                    return Ok(Outcome::Unavailable { reason });
                }
                if let Task::Records(records) = self.tasks.of(cell) {
                    let unread = read_back(cell, input, records, &measurement, &mut evidence).err();
                    evidence.witnessed.extend(unread);
                }
                evidence.witnessed.extend(input.check_unchanged().err());
                let failures = proof::failures(cell, &measurement, &evidence, &self.context);
                Ok(Outcome::Taken { measurement, evidence: Box::new(evidence), failures })
            }
            Err(trouble) => finish(trouble, Some(worker), input, &held, self.stop),
        }
    }

    /// The file that a sample writes: new, or written once before; gone with the value.
    fn new_file(&self, cell: &Cell, records: &RecordTask) -> Result<Input, NoState> {
        let path = self.new_path.as_deref().expect("a plan that writes has a name reserved for its file");
        let warm = cell.conditions.cache == CacheState::Warm;
        Input::make_new(path, cell.conditions.file_bytes.0, warm.then_some(records))
    }

    /// Why a ceiling of memory cannot be measured without harm.
    fn beyond_memory(&self, cell: &Cell, input: Option<&Input>) -> Option<String> {
        if cell.access() != Access::Anonymous {
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
            && input.is_some_and(|input| input.residency(span.0).resident_bytes != Some(span.0))
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

/// Reads back what was written and adds it to the evidence.
fn read_back(
    cell: &Cell,
    input: &Input,
    records: &RecordTask,
    measurement: &Measurement,
    evidence: &mut Evidence,
) -> Result<(), Failure> {
    let (Some(file), Some(written)) = (input.new_file(), &mut evidence.written) else { return Ok(()) };
    if cell.access() == Access::Anonymous {
        // The ceiling of memory writes to memory of its own, and nothing to the file.
        evidence.written = None;
        return Ok(());
    }
    // Another way than that of the worker.
    let way = if cell.access() == Access::Mmap { ReadBack::Pread } else { ReadBack::Mapping };
    file.read_back(&records.ring, records.source(), measurement.operations, way, written).map_err(|error| {
        let detail = format!("{} cannot be read back: {error}", input.path.display());
        Failure { kind: FailureKind::LostRecords, detail }
    })
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

/// Why O_DIRECT means nothing on this filesystem, though it was accepted (tmpfs since Linux 6.6).
fn served_from_memory(cell: &Cell, input: &Input, evidence: &Evidence) -> Option<String> {
    let reading = cell.conditions.workload().is_reading();
    let delivered = reading && evidence.device_read_bytes.is_some_and(|bytes| bytes > 0);
    if !cell.method.is_direct() || delivered {
        return None;
    }
    let filesystem = input.in_memory()?;
    let requested = evidence.requested_bytes;
    Some(format!(
        "O_DIRECT is accepted, but served from memory: {} lies on {filesystem}, and no device moved any of the \
         {requested} bytes",
        input.path.display()
    ))
}

/// What trouble makes of a sample.
fn finish(
    trouble: ConversationError,
    worker: Option<Conversation>,
    input: &Input,
    held: &ConditionGuard,
    stop: &AtomicBool,
) -> Result<Outcome, Stopped> {
    let stderr_tail = worker.map(|mut worker| worker.last_words(stop)).unwrap_or_default();
    // A worker knows the file by its descriptor, the user by its name.
    let named = |detail: String| detail.replace(&input.worker_path(), &input.path.to_string_lossy());
    let failure = match trouble {
        ConversationError::Stopped => return Err(Stopped),
        // What was refused for a file that somebody else made shorter says nothing of the method.
        ConversationError::Call(failure) if failure.unavailable == 1 && input.check_unchanged().is_ok() => {
            return Ok(Outcome::Unavailable { reason: named(failure.detail) });
        }
        ConversationError::Call(failure) => {
            Failure { kind: FailureKind::CallFailed, detail: named(failure.detail) }
        }
        ConversationError::Broken(failure) => failure,
    };
    let mut failures = vec![failure];
    if matches!(failures[0].kind, FailureKind::WorkerDied | FailureKind::KilledFromOutside)
        && let Some(detail) = held.killed_for_memory()
    {
        failures[0] = Failure { kind: FailureKind::KilledForMemory, detail };
    } else if let Err(changed) = input.check_unchanged() {
        failures.insert(0, changed);
    } else if died_of_sigbus(&failures[0]) {
        failures[0].detail.push_str(match (&input.new_file(), input.is_filesystem_full()) {
            (Some(_), true) => "; the filesystem is full (ENOSPC), so a store into the mapping found no room",
            (Some(_), false) => "; a store into the mapping found no room, or the file became shorter",
            (None, _) => "; a page of the mapping could not be read: the device failed or the file changed",
        });
    }
    Ok(Outcome::Broken { failures, stderr_tail })
}
