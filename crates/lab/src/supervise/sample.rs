//! One sample: settings of the machine, state of the cache, worker, evidence, verification, checks.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pagewise_analysis::proof::{self, unaccounted::unaccounted_ns};
use pagewise_host::memory::Memory;
use pagewise_host::steps::{RunStep, reached};
use pagewise_host::{BlockDevice, HostReader, ReadBack, cache, files};
use pagewise_model::random::mix;
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Access, Alignment, Beating, CacheState, Cell, CheckContext, Evidence, Failure, FailureKind, Outcome,
    Plan, Source,
};
use pagewise_protocol::{Conversation, ConversationError, EXIT_PATIENCE, Wait, died_of_sigbus};

use super::actor::ReadyActor;
use super::actor_task::KeptAccesses;
use super::conditions::{ConditionGuard, ConditionSetter, InForce};
use super::files::{FileUse, Input, Inputs, NoState};
use super::follower::Unfollowed;
use super::memory_speed::MemorySpeeds;
use super::programs::Programs;
use super::records::RecordTask;
use super::sample_round::SampleRound;
use super::task::{Task, Tasks};
use super::warming::{self, WarmSettings};
use super::worker_session::{Storage, WorkerSession, idle_ns};
use crate::state::State;

/// Share of the available memory that a ceiling may use.
const ANONYMOUS_MEMORY_SHARE: u64 = 2;

/// Sampler of a plan.
pub struct Sampler<'a> {
    plan: &'a Plan,
    inputs: Inputs,
    machine: MachineFacts,
    stop: &'a AtomicBool,
    host: HostReader,
    tasks: Tasks,
    kept_accesses: KeptAccesses,
    memory_speeds: MemorySpeeds,
    context: CheckContext,
}

/// The user stopped the run; no sample was taken.
pub struct Stopped;

/// Facts about the machine.
pub struct MachineFacts {
    /// Programs of the workers.
    pub programs: Programs,
    /// Time limit of an answer, beyond the requested work.
    pub patience: Duration,
    /// Size of a page.
    pub page_bytes: u64,
    /// CPUs that workers may use.
    pub cpus: u32,
    /// Answer time of an honest worker, outside of its phases.
    pub answer_ns: u64,
    /// Alignment for O_DIRECT.
    pub direct_alignment: u64,
    /// The device behind the files.
    pub device: Option<BlockDevice>,
    /// Setter of limits, caps and placement.
    pub setter: ConditionSetter,
    /// Directory of files to write, if there are any.
    pub new_path: Option<PathBuf>,
}

impl<'a> Sampler<'a> {
    /// A sampler for `plan` over its files.
    pub fn new(plan: &'a Plan, inputs: Inputs, machine: MachineFacts, stop: &'a AtomicBool) -> Self {
        let readahead_bytes =
            machine.setter.settings().at_start().get("readahead").and_then(|bytes| bytes.parse().ok());
        let sparse_or_compressed_bytes = inputs.of(FileUse::Measured).any(Input::hides_bytes);
        let in_memory = File::open(plan.source.path()).ok().and_then(|file| cache::in_memory(&file));
        Self {
            plan,
            inputs,
            stop,
            host: HostReader::new(),
            tasks: Tasks::default(),
            kept_accesses: KeptAccesses::default(),
            memory_speeds: MemorySpeeds::default(),
            context: CheckContext {
                page_bytes: machine.page_bytes,
                cpus: machine.cpus,
                answer_ns: machine.answer_ns,
                forgives_answers: machine.programs.are_shipped(plan),
                sparse_or_compressed_bytes,
                memory_backed: in_memory.is_some(),
                writes_through: machine.device.as_ref().is_none_or(|device| device.writes_through),
                readahead_bytes,
                beating: (plan.workers.heartbeat_ns > 0)
                    .then(|| Beating { interval_ns: plan.workers.heartbeat_ns, idle_ns: idle_ns(plan) }),
            },
            machine,
        }
    }

    /// Take samples of other datasets from now on. Those before them are removed.
    pub fn set_inputs(&mut self, inputs: Inputs) {
        self.tasks = Tasks::default();
        self.kept_accesses = KeptAccesses::default();
        self.inputs = inputs;
    }

    /// Input of the checks.
    pub fn check_context(&self) -> CheckContext {
        self.context
    }

    /// Take one sample. Changes of the machine are recorded in `journal` first.
    pub fn take(&mut self, cell: &Cell, round: u32, journal: &mut State) -> Result<Outcome, Stopped> {
        let read = self.inputs.of(FileUse::Measured).find(|input| input.suits(&cell.conditions));
        if let Some(Err(failure)) = read.map(Input::check_unchanged) {
            return Ok(Outcome::Broken { failures: vec![failure], stderr_tail: String::new() });
        }
        let program = match self.machine.programs.of(cell.method.worker()) {
            Ok(program) => program.clone(),
            Err(reason) => return Ok(Outcome::Unavailable { reason: reason.to_string() }),
        };
        if let Some(reason) = self.beyond_memory(cell, read) {
            return Ok(Outcome::Unavailable { reason });
        }
        let alignment =
            Alignment { direct_bytes: self.machine.direct_alignment, page_bytes: self.machine.page_bytes };
        if let Some(reason) = cell.method.excluded_from(&cell.conditions, alignment) {
            return Ok(Outcome::Unavailable { reason });
        }
        // First, because computing the checksum of the user's file reads it.
        let of_round = SampleRound {
            plan: self.plan,
            number: round,
            page_bytes: self.machine.page_bytes,
            wait: Wait { patience: self.machine.patience, stop: self.stop },
        };
        let loaded = self.tasks.load(cell, of_round, read);
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
        let guard = match self.machine.setter.apply(host_settings, journal) {
            Ok(guard) => guard,
            Err(state) => return without_state(state),
        };
        // Before the cache is prepared: it may take longer to start than that state lasts.
        let actor = match self.actor(cell, read, of_round, &guard) {
            Ok(actor) => actor,
            Err(NoActor::State(state)) => return without_state(state),
            Err(NoActor::Worker(error)) => return finish(error, None, input, &guard, self.stop),
        };
        // A cap is in force from set-up on, but not while the cache is warmed.
        let reading = cell.conditions.workload().is_reading();
        let warmed =
            matches!(cell.conditions.cache, CacheState::Warm | CacheState::ReadOnce | CacheState::Recorded);
        let warmed_first = reading && warmed && cell.depends_on_cache();
        let task = self.tasks.of(cell);
        let prepare = || {
            let settings = WarmSettings {
                drop_caches: self.plan.drop_caches,
                evicts_direct: self.context.sparse_or_compressed_bytes
                    && !self.context.memory_backed
                    && !matches!(self.plan.source, Source::File { evict: false, .. })
                    && !self.plan.cells.iter().any(finds_cache_as_it_is),
                patience: self.machine.patience,
                page_bytes: self.machine.page_bytes,
                seed: mix(!self.plan.seed ^ u64::from(round)),
                recorded: task.resident_when_recorded(),
                stop: self.stop,
            };
            warming::prepare(cell, input, &guard, &settings)
                .and_then(|()| guard.place_pages(input, cell.conditions.span_bytes.0))
                .inspect(|()| reached(RunStep::CachePrepared))
                .and_then(|()| if warmed_first { Ok(()) } else { self.machine.setter.cap_device(&guard) })
        };
        // The state of the cache would not last through the seconds of a worker's warm-up, which
        // comes first where there is one.
        let has_warmup = cell.method.worker().has_runtime();
        if !has_warmup && let Err(state) = prepare() {
            return without_state(state);
        }
        let mut session = WorkerSession {
            cell,
            input,
            task: self.tasks.of(cell),
            round: of_round,
            storage: Storage {
                direct_alignment: self.machine.direct_alignment,
                device: self.machine.device.as_ref(),
            },
            conditions: InForce { guard: &guard, setter: &self.machine.setter, warmed_first },
            actor,
            context: self.context,
            host: &mut self.host,
            follower: &mut Unfollowed,
        };
        // The warm-up file is made before the worker, which inherits it.
        let started = session.memory().and_then(|memory| {
            Ok((memory, session.warmup_file()?, program.start(|command| guard.prepare(command))?))
        });
        let (mut memory, warmup_file, mut worker) = match started {
            Ok(started) => started,
            Err(error) => return finish(error, None, input, &guard, self.stop),
        };
        reached(RunStep::WorkerStarted);
        let worker_warmup = match session.meet(&mut worker, &memory, warmup_file.as_ref()) {
            Ok(worker_warmup) => worker_warmup,
            Err(error) => return finish(error, Some(worker), input, &guard, self.stop),
        };
        // A file that was written before has been idle meanwhile, and may have left the cache.
        let brought_again = || match reading || cell.conditions.makes_file() {
            true => Ok(()),
            false => input.bring_into(cell.conditions.cache),
        };
        if has_warmup && let Err(state) = brought_again().and_then(|()| prepare()) {
            return without_state(state);
        }
        match session.converse(&mut worker, &mut memory) {
            Ok((mut measurement, mut evidence)) => {
                measurement.unaccounted_ns = unaccounted_ns(cell, &measurement, &evidence, &self.context);
                evidence.worker_warmup = worker_warmup;
                evidence.memory_bytes_per_second =
                    self.memory_speeds.of(cell, self.context.cpus, proof::byte_rate(cell, &measurement));
                if let Err(error) = worker.end(EXIT_PATIENCE) {
                    return finish(error, None, input, &guard, self.stop);
                }
                reached(RunStep::WorkerEnded);
                // The next sample under the limit evicts it in any case.
                if warmed_first && cell.conditions.cache_capacity().is_some() {
                    input.let_go();
                }
                if let Some(reason) = proof::no_effect(cell, &evidence) {
                    return Ok(Outcome::Unavailable { reason });
                }
                if let Some(reason) = dropped_when_opened(cell, input, &evidence) {
                    return Ok(Outcome::Unavailable { reason });
                }
                if let Some(reason) = served_from_memory(cell, input, &evidence) {
                    return Ok(Outcome::Unavailable { reason });
                }
                if let Task::Records(records) = self.tasks.of(cell) {
                    let unread = read_back(cell, input, records, &measurement, &mut evidence).err();
                    evidence.observed.extend(unread);
                }
                evidence.observed.extend(input.check_unchanged().err());
                let failures = proof::failures(cell, &measurement, &evidence, &self.context);
                Ok(Outcome::Taken {
                    measurement: Box::new(measurement),
                    evidence: Box::new(evidence),
                    failures,
                })
            }
            Err(error) => finish(error, Some(worker), input, &guard, self.stop),
        }
    }

    /// The actor of `cell`, on a file of its own as if nobody had read it before, or on the
    /// `measured` one; its worker is ready.
    fn actor(
        &self,
        cell: &Cell,
        measured: Option<&Input>,
        round: SampleRound<'_>,
        guard: &ConditionGuard,
    ) -> Result<Option<ReadyActor>, NoActor> {
        let Some(actor) = &cell.conditions.beside else { return Ok(None) };
        let of_use = if actor.is_writing() { FileUse::WrittenByActors } else { FileUse::ReadByActors };
        let input = match actor.own_file_bytes() {
            Some(file_bytes) => self.inputs.of(of_use).find(|input| input.file_bytes == file_bytes.0),
            None => measured,
        };
        let input = input.expect("there is a file of every size in the plan");
        if cell.conditions.drops_file_of_actor() {
            input.make_cold(input.file_bytes, self.plan.drop_caches).map_err(NoActor::State)?;
        }
        let program = self.machine.programs.of(actor.method.worker()).expect("it is the native worker");
        let of_actor = actor.cell(&cell.conditions);
        let file = (input, &self.kept_accesses);
        let alignment = self.machine.direct_alignment;
        ReadyActor::start((actor, &of_actor), file, program, guard, round, alignment)
            .map(Some)
            .map_err(|error| NoActor::Worker(error.of(&format!("the actor '{actor}'"))))
    }

    /// The file that a sample writes: new, or written once before, in the page cache or not;
    /// dropping it removes it.
    fn new_file(&self, cell: &Cell, records: &RecordTask) -> Result<Input, NoState> {
        let path =
            self.machine.new_path.as_deref().expect("a plan that writes has a name reserved for its file");
        Input::make_new(path, &cell.conditions, records)
    }

    /// The reason that a ceiling of memory cannot be measured without harm.
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
            && self.plan.cells.iter().any(finds_cache_as_it_is)
        {
            return Some(
                "copying your file into memory would change what the page cache holds of it".to_string(),
            );
        }
        None
    }
}

/// Reason that an actor is not there.
enum NoActor {
    /// The file of the actor has not the state that it begins with.
    State(NoState),
    /// The worker of the actor is not ready.
    Worker(ConversationError),
}

/// Read back the written file and add the result to the evidence.
pub fn read_back(
    cell: &Cell,
    input: &Input,
    records: &RecordTask,
    measurement: &Measurement,
    evidence: &mut Evidence,
) -> Result<(), Failure> {
    let (Some(file), Some(written)) = (input.new_file(), &mut evidence.written) else { return Ok(()) };
    if cell.access() == Access::Anonymous {
        // The ceiling of memory writes to its own memory, and nothing to the file.
        evidence.written = None;
        return Ok(());
    }
    let way = ReadBack::other_than(cell.access());
    file.read_back(records.first(measurement.operations), way, written).map_err(|error| {
        let detail = format!("{} cannot be read back: {error}", input.path.display());
        Failure { kind: FailureKind::LostRecords, detail }
    })
}

/// Outcome of a sample whose state could not be reached.
fn without_state(state: NoState) -> Result<Outcome, Stopped> {
    match state {
        NoState::Stopped => Err(Stopped),
        NoState::Unavailable(reason) => Ok(Outcome::Unavailable { reason }),
        NoState::Failed(failure) => {
            Ok(Outcome::Broken { failures: vec![failure], stderr_tail: String::new() })
        }
    }
}

/// The reason that an accepted O_DIRECT has no effect on this filesystem (tmpfs since Linux 6.6).
fn served_from_memory(cell: &Cell, input: &Input, evidence: &Evidence) -> Option<String> {
    let reading = cell.conditions.workload().is_reading();
    // A page of the worker's own code may come from a device at any time.
    let delivered =
        reading && evidence.device_read_bytes.is_some_and(|bytes| bytes >= evidence.requested_bytes / 2);
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

/// The reason that a file that was read into the page cache is not there when a worker has opened
/// it.
fn dropped_when_opened(cell: &Cell, input: &Input, evidence: &Evidence) -> Option<String> {
    let conditions = &cell.conditions;
    let is_gone = conditions.cache == CacheState::Warm
        && conditions.workload().is_reading()
        && cell.depends_on_cache()
        && evidence.resident_before_bytes == Some(0);
    (is_gone && files::is_served_by_program(input.file())).then(|| {
        "the program that serves this filesystem has the kernel drop a file from the page cache when it is opened (FUSE without \
         FOPEN_KEEP_CACHE), so it is never warm"
            .to_string()
    })
}

/// True if the cell measures what the page cache holds of the file, which is to stay as it is then.
fn finds_cache_as_it_is(cell: &Cell) -> bool {
    cell.conditions.cache == CacheState::AsIs && cell.depends_on_cache()
}

/// Outcome of a sample whose conversation failed.
fn finish(
    error: ConversationError,
    worker: Option<Conversation>,
    input: &Input,
    guard: &ConditionGuard,
    stop: &AtomicBool,
) -> Result<Outcome, Stopped> {
    let stderr_tail = worker.map(|mut worker| worker.last_words(stop)).unwrap_or_default();
    // A worker knows a file by its descriptor, the user by its name.
    let named = |detail: String| input.named(detail);
    let failure = match error {
        ConversationError::Stopped => return Err(Stopped),
        // A refusal after somebody else truncated the file says nothing about the method.
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
        && let Some(detail) = guard.killed_for_memory()
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
