//! The worker under test: keeps one process as long as it answers, starts another otherwise, and
//! records what jobs show.

use std::thread;

use anyhow::{Result, anyhow};
use pagewise_host::{HostReader, process};
use pagewise_lab::exit::Exit;
use pagewise_lab::plan::resolve::RETAKES;
use pagewise_lab::supervise::accesses::Accesses;
use pagewise_lab::supervise::answer_time::answer_ns;
use pagewise_lab::supervise::conditions::{ConditionGuard, ConditionSetter, InForce};
use pagewise_lab::supervise::files::NoState;
use pagewise_lab::supervise::program::{Program, Stated};
use pagewise_lab::supervise::sample_round::SampleRound;
use pagewise_lab::supervise::task::{Task, Tasks};
use pagewise_lab::supervise::worker_session::{Storage, WorkerSession, idle_ns};
use pagewise_model::random::mix;
use pagewise_model::{Beating, CheckContext, FailureKind, HostSettings, Plan, WorkerChoices};
use pagewise_protocol::claims::ANSWER_NS;
use pagewise_protocol::{CallFailure, Conversation, ConversationError, EXIT_PATIENCE, Hello, Wait};

use super::steps::Steps;
use super::test_files::TestFiles;
use super::trial::{BEATS, IDLE_BEATS, Onlooker, SAMPLE, Trial, Tried};

/// Length of the shown end of stderr.
const SHOWN_CHARS: usize = 320;

/// Fields that no version of the protocol has.
const UNKNOWN_FIELDS: &str = r#""added_later":"anything","added_number":7,"added_list":[1,2],"#;

/// The worker under test, and the steps recorded so far.
pub struct Examiner<'a> {
    /// Files that it reads and writes.
    pub files: TestFiles,
    /// Recorded steps.
    pub steps: Steps,
    /// Hello.
    pub hello: Hello,
    /// True while requests carry [`UNKNOWN_FIELDS`].
    pub unknown_fields: bool,
    program: Program,
    wait: Wait<'a>,
    worker: Option<Conversation>,
    strays: Vec<String>,
    tasks: Tasks,
    setter: ConditionSetter,
    guard: ConditionGuard,
    host: HostReader,
    /// Answer time of an honest worker on this machine.
    answer_ns: u64,
}

impl<'a> Examiner<'a> {
    /// Start the worker and receive its hello. A command that is not a worker is an error of one
    /// sentence.
    pub fn begin(command: &[String], mut files: TestFiles, steps: Steps, wait: Wait<'a>) -> Result<Self> {
        let (program, arguments) = command.split_first().expect("the command line requires one");
        let mut setter = ConditionSetter::new(&Plan::of(Vec::new()), &files.directory, None, files.seed);
        let guard =
            setter.apply(&HostSettings::default(), &mut files.state).map_err(|state| match state {
                NoState::Unavailable(reason) => anyhow!(reason),
                NoState::Failed(failure) => anyhow!(failure.detail),
                NoState::Stopped => Exit::Interrupted.because(anyhow!("it was stopped")),
            })?;
        let answer_ns = answer_ns(files.alignment.page_bytes, wait.patience, wait.stop);
        let mut examiner = Self {
            files,
            steps,
            hello: Hello::default(),
            unknown_fields: false,
            program: Program::stated(Stated::new(program, arguments)),
            wait,
            worker: None,
            strays: Vec::new(),
            tasks: Tasks::default(),
            setter,
            guard,
            host: HostReader::new(),
            answer_ns: answer_ns.unwrap_or(ANSWER_NS),
        };
        match examiner.start() {
            Ok(hello) => examiner.hello = hello,
            Err(error) => {
                let sentence = examiner.sentence(&error);
                let shown = command.join(" ");
                return Err(Exit::FellShort.because(anyhow!("'{shown}' cannot be tried: {sentence}")));
            }
        }
        let Hello { worker, version, .. } = &examiner.hello;
        examiner.steps.ok(format!("starts and says hello: {worker} {version}"));
        Ok(examiner)
    }

    fn start(&mut self) -> Result<Hello, ConversationError> {
        let worker = self.program.start(|command| self.guard.prepare(command))?;
        let worker = self.worker.insert(worker);
        worker.pass_over_strays();
        worker.hello(self.wait)
    }

    /// The worker, started again if the last one no longer answers.
    pub fn worker(&mut self) -> Result<&mut Conversation, ConversationError> {
        if self.worker.is_none() {
            self.start()?;
        }
        Ok(self.worker.as_mut().expect("it was just started"))
    }

    /// End the worker in whatever state it is.
    pub fn drop_worker(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            self.strays.extend(worker.take_strays());
        }
    }

    /// Close the worker's stdin and wait: it must end with status 0 and leave no process.
    pub fn end_worker(&mut self) -> Result<(), String> {
        let Some(mut worker) = self.worker.take() else { return Ok(()) };
        worker.say_no_more();
        let limit = EXIT_PATIENCE.min(self.wait.patience);
        let has_ended = worker.ends_within(limit);
        self.strays.extend(worker.take_strays());
        if !has_ended {
            let limit = limit.as_secs();
            return Err(format!("it still runs {limit} s after the end of stdin: end when stdin does"));
        }
        let left = worker.processes();
        let named = left.first().map(|pid| format!("{pid} ({})", process::name(*pid)));
        if let Err(ConversationError::Broken(failure)) = worker.end(limit) {
            return Err(format!("{}: end with status 0 when stdin ends", failure.detail));
        }
        match named {
            None => Ok(()),
            Some(named) => Err(format!(
                "{} of its processes still run after it, {named} among them: end what it starts",
                left.len()
            )),
        }
    }

    /// Close the worker's stdin after `failed`: it must end. `None` if it has ended already.
    pub fn ends_after_failed(&mut self) -> Option<Result<(), String>> {
        let patience = EXIT_PATIENCE.min(self.wait.patience);
        let worker = self.worker.as_mut()?;
        worker.say_no_more();
        let has_ended = worker.ends_within(patience);
        self.drop_worker();
        Some(match has_ended {
            true => Ok(()),
            false => Err("it goes on after failed, although stdin has ended: end then".to_string()),
        })
    }

    /// The error with a hint to its cause. Ends a worker that no longer answers.
    pub fn sentence(&mut self, error: &ConversationError) -> String {
        let failure = match error {
            ConversationError::Stopped => return "it was stopped".to_string(),
            ConversationError::Call(CallFailure { call, errno, detail, .. }) => {
                return format!("it answered failed: {call}, errno {errno}: {detail}");
            }
            ConversationError::Broken(failure) => failure,
        };
        let last_words = self.worker.as_mut().map(|worker| worker.last_words(self.wait.stop));
        self.drop_worker();
        let hint = match (failure.kind, self.strays.last(), last_words) {
            (FailureKind::WorkerHung, Some(stray), _) => {
                format!("; it sent '{stray}': print nothing but messages to stdout")
            }
            (FailureKind::WorkerHung, None, _) => {
                "; answer in time, end each message with a newline, and flush".to_string()
            }
            (FailureKind::WorkerDied | FailureKind::KilledFromOutside, _, Some(words))
                if !words.is_empty() =>
            {
                format!("; the end of its stderr: '{}'", last_chars(&words))
            }
            _ => String::new(),
        };
        format!("{}{hint}", failure.detail)
    }

    /// Lines on stdout that were not messages.
    pub fn strays(&self) -> &[String] {
        &self.strays
    }

    /// Examine a job, as one step or, if `detailed`, as a step for each part; its sample is called
    /// `name`. Return true if the worker refused it because this machine or the worker lacks
    /// something.
    pub fn examine(&mut self, subject: &str, trial: &Trial, detailed: Option<&str>) -> bool {
        let mut tried = self.converse(trial);
        // As in a run, a sample of which only the time is in doubt is taken again.
        for _ in 0..RETAKES {
            if !tried.has_only_doubtful_time() {
                break;
            }
            tried = self.converse(trial);
        }
        let shown = |part: &str| match detailed.filter(|_| part == SAMPLE) {
            Some(name) => format!("{subject}: {part}, {name}"),
            None => format!("{subject}: {part}"),
        };
        // Other faults are reported by other steps.
        let first = tried.wrong.iter().find(|(part, _)| !self.unknown_fields || *part == SAMPLE);
        if let Some(error) = &tried.error {
            if let Some((part, detail)) = first {
                self.steps.wrong(shown(part), detail);
            }
            return self.abort(subject, tried.stage, error);
        }
        if detailed.is_none() {
            match first {
                None => self.steps.ok(subject),
                Some((part, detail)) => self.steps.wrong(shown(part), detail),
            }
            return false;
        }
        for part in trial.looked_at() {
            let of_part = |all: &[(&str, String)]| {
                all.iter().find(|(of, _)| *of == part).map(|(_, detail)| detail.clone())
            };
            match (of_part(&tried.wrong), of_part(&tried.disturbed), part) {
                (Some(detail), ..) => self.steps.wrong(shown(part), detail),
                (None, Some(waits), _) => self.steps.not_tried(shown(part), waits),
                (None, _, IDLE_BEATS | BEATS) if tried.beats.is_empty() => {
                    self.steps.not_tried(shown(part), "it has no heartbeat of any kind");
                }
                (None, ..) => self.steps.ok(shown(part)),
            }
        }
        false
    }

    /// Record the error that ended a job early, and end the worker. Return true if it is a refusal.
    fn abort(&mut self, subject: &str, part: &str, error: &ConversationError) -> bool {
        let refusal = match error {
            ConversationError::Call(failure) if failure.unavailable == 1 => Some(&failure.detail),
            _ => None,
        };
        if let Some(detail) = refusal {
            self.steps.not_tried(subject, detail);
        } else {
            let sentence = self.sentence(error);
            self.steps.wrong(format!("{subject}: {part}"), sentence);
            self.steps.not_tried(format!("{subject}: the rest of this job"), "the conversation broke off");
        }
        self.drop_worker();
        refusal.is_some()
    }

    /// Have a job done by the worker, and look at it.
    pub fn converse(&mut self, trial: &Trial) -> Tried {
        let mut tried = Tried {
            error: None,
            wrong: Vec::new(),
            disturbed: Vec::new(),
            stage: "opens the file",
            operations: None,
            beats: Vec::new(),
        };
        match self.converse_into(trial, &mut tried) {
            Ok(()) => tried,
            Err(error) => Tried { error: Some(error), ..tried },
        }
    }

    fn converse_into(&mut self, trial: &Trial, tried: &mut Tried) -> Result<(), ConversationError> {
        let lack = |error: anyhow::Error| ConversationError::lack(format!("{error:#}"));
        let conditions = &trial.cell.conditions;
        let plan = Plan {
            sample_ns: trial.sample_ns,
            seed: mix(self.files.seed),
            workers: WorkerChoices { heartbeat_ns: trial.heartbeat_ns, ..WorkerChoices::default() },
            ..Plan::of(Vec::new())
        };
        let round = SampleRound {
            plan: &plan,
            number: 0,
            page_bytes: self.files.alignment.page_bytes,
            wait: self.wait,
        };
        let made = match conditions.writes() {
            Some(_) => {
                self.tasks.load(&trial.cell, round, None).map_err(lack)?;
                Some(self.files.new_file(conditions, self.tasks.of(&trial.cell)).map_err(lack)?)
            }
            None => None,
        };
        let added = if self.unknown_fields { UNKNOWN_FIELDS } else { "" };
        self.worker()?.add_to_requests(added);
        let Self { files, worker, tasks, guard, setter, host, answer_ns, .. } = self;
        let worker = worker.as_mut().expect("it was just started");
        let input = made.as_ref().unwrap_or_else(|| files.read_by(conditions));
        let context = CheckContext {
            page_bytes: files.alignment.page_bytes,
            cpus: thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
            answer_ns: *answer_ns,
            forgives_answers: true,
            sparse_or_compressed_bytes: false,
            memory_backed: false,
            writes_through: true,
            readahead_bytes: None,
            beating: (trial.heartbeat_ns > 0)
                .then(|| Beating { interval_ns: trial.heartbeat_ns, idle_ns: idle_ns(&plan) }),
        };
        let accesses = match (conditions.reads(), input.seed()) {
            (Some(_), Some(content_seed)) => {
                let seeds = (plan.seed, content_seed);
                Some(Accesses::in_parts(conditions, seeds, trial.parts, context.page_bytes).map_err(lack)?)
            }
            _ => None,
        };
        if accesses.is_none() {
            tasks.load(&trial.cell, round, Some(input)).map_err(lack)?;
        }
        let task = || accesses.as_ref().map_or_else(|| tasks.of(&trial.cell), Task::Reads);
        let records = match task() {
            Task::Records(records) => Some(records),
            _ => None,
        };
        let other = files.another_than(input);
        let mut watch =
            Onlooker { trial, input, other, accesses: accesses.as_ref(), records, context, tried };
        let mut session = WorkerSession {
            cell: &trial.cell,
            input,
            task: task(),
            round,
            storage: Storage { direct_alignment: files.alignment.direct_bytes, device: None },
            conditions: InForce { guard, setter, warmed_first: false },
            actor: None,
            context,
            host,
            follower: &mut watch,
        };
        let mut memory = session.memory()?;
        let (measurement, evidence) = session.converse(worker, &mut memory)?;
        watch.prove(worker, &measurement, evidence);
        Ok(())
    }
}

/// The end of a text, on one line.
fn last_chars(text: &str) -> String {
    let line = text.lines().map(str::trim).collect::<Vec<_>>().join(" | ");
    let skipped = line.chars().count().saturating_sub(SHOWN_CHARS);
    line.chars().skip(skipped).collect()
}
