//! Who tries a worker: keeps one process as long as it can be talked to, starts another where it cannot, and leads jobs
//! from open to closed.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use pagewise_host::FileKey;
use pagewise_protocol::{Go, Hello, Job, Reply, Request, SampleReply};

use super::conversation::{Conversation, ConversationError};
use super::ground::{Ground, held_by_itself, released};
use super::steps::Steps;
use crate::commands::CommandError as Reported;

/// Reading or writing the files of a trial takes no longer than this, whatever the method.
const SETUP_WORK: Duration = Duration::from_secs(10);

/// Fields that no version of the protocol has.
const UNKNOWN_FIELDS: &str = r#""added_later":"anything","added_number":7,"added_list":[1,2],"#;

/// Tries a worker.
pub struct Examiner<'a> {
    /// Its command.
    pub command: &'a [String],
    /// What it is tried on.
    pub ground: Ground,
    /// How it went so far.
    pub steps: Steps,
    /// What it says that it is.
    pub hello: Hello,
    patience: Duration,
    stop: &'a AtomicBool,
    worker: Option<Conversation<'a>>,
    strays: Vec<String>,
}

/// What came of a `go`.
pub struct Gone {
    /// What the worker says.
    pub sample: SampleReply,
    /// What passed outside.
    pub wall_ns: u64,
}

/// One job: the steps of it in turn, told one by one or as one.
pub struct Visit {
    subject: String,
    /// Whether each part is a step of its own.
    detailed: bool,
    wrong: bool,
}

impl Visit {
    /// A job whose parts are steps of their own.
    pub fn detailed(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), detailed: true, wrong: false }
    }

    /// A job that is one step, if nothing of it is wrong.
    pub fn brief(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), detailed: false, wrong: false }
    }

    /// Tells a part. What is wrong in a brief job may have made wrong what comes after.
    pub fn tell(&mut self, steps: &mut Steps, part: &str, outcome: Result<(), String>) {
        if !self.detailed && self.wrong {
            return;
        }
        self.wrong |= outcome.is_err();
        match outcome {
            Ok(()) if !self.detailed => {}
            outcome => steps.judge(format!("{}: {part}", self.subject), outcome),
        }
    }

    /// Tells what ended the job before its time.
    fn break_off(&mut self, steps: &mut Steps, part: &str, trouble: &ConversationError) {
        self.wrong = true;
        match trouble {
            ConversationError::Failed(failure) if failure.unavailable == 1 => {
                steps.not_tried(&self.subject, &failure.detail);
            }
            trouble => {
                steps.wrong(format!("{}: {part}", self.subject), trouble.sentence());
                steps.not_tried(
                    format!("{}: the rest of this job", self.subject),
                    "the conversation broke off",
                );
            }
        }
    }

    /// Ends the job: one step if it is brief and all went well.
    pub fn end(self, steps: &mut Steps) {
        if !self.detailed && !self.wrong {
            steps.ok(self.subject);
        }
    }
}

/// A part of a job, with what it was about when it broke off.
pub type Part<T> = Result<T, (&'static str, ConversationError)>;

impl<'a> Examiner<'a> {
    /// Starts the worker and has it say hello. A command that is no worker at all is an error of one sentence.
    pub fn begin(
        command: &'a [String],
        ground: Ground,
        mut steps: Steps,
        patience: Duration,
        stop: &'a AtomicBool,
    ) -> Result<Self> {
        let shown = command.join(" ");
        let broken = |sentence: String| Reported(anyhow!("'{shown}' is no worker: {sentence}"));
        let mut worker = Conversation::start(command, patience, stop)
            .map_err(|error| Reported(anyhow!("'{shown}' could not be started: {error}")))?;
        let hello = match worker.receive("hello", Duration::ZERO) {
            Ok(Reply::Hello(hello)) => hello,
            Ok(other) => return Err(broken(Conversation::unexpected("hello", &other).sentence()).into()),
            Err(trouble) => return Err(broken(trouble.sentence()).into()),
        };
        steps.ok(format!("starts and says hello: {} {}", hello.worker, hello.version));
        let strays = Vec::new();
        Ok(Self { command, ground, steps, hello, patience, stop, worker: Some(worker), strays })
    }

    /// The worker, started anew if the last one cannot be talked to any more.
    pub fn worker(&mut self) -> Result<&mut Conversation<'a>, ConversationError> {
        if self.worker.is_none() {
            let started = Conversation::start(self.command, self.patience, self.stop);
            let mut worker = started
                .map_err(|error| ConversationError::Lost(format!("it could not be started: {error}")))?;
            match worker.receive("hello", Duration::ZERO)? {
                Reply::Hello(_) => {}
                other => return Err(Conversation::unexpected("hello", &other)),
            }
            self.worker = Some(worker);
        }
        Ok(self.worker.as_mut().expect("it was just started"))
    }

    /// A worker that has served nothing yet.
    pub fn fresh_worker(&mut self) -> Result<&mut Conversation<'a>, ConversationError> {
        self.let_go();
        self.worker()
    }

    /// Takes leave of the worker, whatever it does.
    pub fn let_go(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            self.strays.extend(worker.take_strays());
        }
    }

    /// Takes the worker, to be ended.
    pub fn take_worker(&mut self) -> Option<Conversation<'a>> {
        let mut worker = self.worker.take()?;
        self.strays.extend(worker.take_strays());
        Some(worker)
    }

    /// Lines on stdout that were no messages.
    pub fn strays(&self) -> &[String] {
        &self.strays
    }

    /// Remembers lines that were no messages.
    pub fn add_strays(&mut self, strays: Vec<String>) {
        self.strays.extend(strays);
    }

    /// Tells what broke a job off, and takes leave of the worker.
    pub fn break_off(&mut self, visit: &mut Visit, (part, trouble): (&'static str, ConversationError)) {
        visit.break_off(&mut self.steps, part, &trouble);
        self.let_go();
    }

    /// Open, opened, ready. `unknown_fields`: with fields that it cannot know.
    pub fn open(&mut self, job: &Job, unknown_fields: bool, visit: &mut Visit, key: &FileKey) -> Part<()> {
        let line = serde_json::to_string(&Request::Open(Box::new(job.clone()))).expect("string keys only");
        let line = if unknown_fields { with_unknown_fields(&line) } else { line };
        let part = "opens the file";
        let worker = self.worker().map_err(|trouble| (part, trouble))?;
        let started = Instant::now();
        worker.send_line(&line).map_err(|trouble| (part, trouble))?;
        let setup_ns = match worker.receive("opened", SETUP_WORK).map_err(|trouble| (part, trouble))? {
            Reply::Opened { setup_ns } => setup_ns,
            other => return Err((part, Conversation::unexpected("opened", &other))),
        };
        let opened_ns = nanoseconds(started);
        let warmup_ns = match worker.receive("ready", SETUP_WORK).map_err(|trouble| ("is ready", trouble))? {
            Reply::Ready { warmup_ns } => warmup_ns,
            other => return Err(("is ready", Conversation::unexpected("ready", &other))),
        };
        let ready_ns = nanoseconds(started);
        let held = held_by_itself(worker, key);
        let timed =
            at_most("setup_ns", setup_ns, opened_ns).and_then(|()| at_most("warmup_ns", warmup_ns, ready_ns));
        visit.tell(&mut self.steps, "opens the file and is ready", timed.and(held));
        Ok(())
    }

    /// One `go`.
    pub fn go(&mut self, go: Go, unknown_fields: bool) -> Part<Gone> {
        let work = Duration::from_nanos(2 * (go.sample_ns + go.latency_ns)) + SETUP_WORK;
        let line = serde_json::to_string(&Request::Go(go)).expect("string keys only");
        let line = if unknown_fields { with_unknown_fields(&line) } else { line };
        let part = "go and sample";
        let worker = self.worker().map_err(|trouble| (part, trouble))?;
        let started = Instant::now();
        worker.send_line(&line).map_err(|trouble| (part, trouble))?;
        match worker.receive("sample", work).map_err(|trouble| (part, trouble))? {
            Reply::Sample(sample) => Ok(Gone { sample: *sample, wall_ns: nanoseconds(started) }),
            other => Err((part, Conversation::unexpected("sample", &other))),
        }
    }

    /// Any other question.
    pub fn ask(&mut self, request: &Request, awaited: &'static str, work: Duration) -> Part<Reply> {
        let worker = self.worker().map_err(|trouble| (awaited, trouble))?;
        worker.send(request).map_err(|trouble| (awaited, trouble))?;
        worker.receive(awaited, work).map_err(|trouble| (awaited, trouble))
    }

    /// Close, closed, and nothing left of the file.
    pub fn close(&mut self, visit: &mut Visit, key: &FileKey) -> Part<()> {
        let part = "closes the file";
        let started = Instant::now();
        let (teardown_ns, sync_ns) = match self.ask(&Request::Close, "closed", SETUP_WORK) {
            Ok(Reply::Closed { teardown_ns, sync_ns }) => (teardown_ns, sync_ns),
            Ok(other) => return Err((part, Conversation::unexpected("closed", &other))),
            Err((_, trouble)) => return Err((part, trouble)),
        };
        let wall_ns = nanoseconds(started);
        let timed = at_most("teardown_ns", teardown_ns, wall_ns)
            .and_then(|()| at_most("sync_ns", sync_ns, teardown_ns));
        let worker = self.worker().map_err(|trouble| (part, trouble))?;
        let left = released(worker, key);
        visit.tell(&mut self.steps, "closes the file, and nothing of it is left", timed.and(left));
        Ok(())
    }
}

fn with_unknown_fields(line: &str) -> String {
    line.replacen('{', &format!("{{{UNKNOWN_FIELDS}"), 1)
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

fn at_most(name: &str, claimed: u64, passed: u64) -> Result<(), String> {
    if claimed > passed {
        return Err(format!(
            "{name} is {claimed} ns, only {passed} ns passed: use a monotonic clock, in nanoseconds"
        ));
    }
    Ok(())
}
