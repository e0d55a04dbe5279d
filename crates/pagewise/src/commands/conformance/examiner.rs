//! Who tries a worker: keeps one process as long as it can be talked to, starts another where it cannot, and leads jobs
//! from open to closed.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use pagewise_host::FileKey;
use pagewise_model::FailureKind;
use pagewise_protocol::claims::{Asked, false_time};
use pagewise_protocol::{
    Beats, CallFailure, Conversation, ConversationError, EXIT_PATIENCE, Go, Hello, Job, Request, SampleReply,
    Wait,
};
use pagewise_sys::child::die_with_parent;

use super::ground::{Ground, held_by_itself, name_of, released};
use super::steps::Steps;
use crate::commands::CommandError as Reported;

/// Reading or writing the files of a trial takes no longer than this, whatever the method.
const SETUP_WORK: Duration = Duration::from_secs(10);

/// How much of stderr is shown.
const SHOWN_CHARS: usize = 320;

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
    wait: Wait<'a>,
    worker: Option<Conversation>,
    strays: Vec<String>,
}

/// What came of a `go`.
pub struct Gone {
    /// What the worker says.
    pub sample: SampleReply,
    /// What passed outside.
    pub wall_ns: u64,
}

impl Gone {
    /// The first of its numbers that is wrong. Of work that is done once all is to be done.
    pub fn check(&self, asked: &Asked) -> Result<(), String> {
        let claims = self.sample.claims();
        // A thread that waits for a CPU leaves its phase empty; a run takes such a sample again.
        let asked = &Asked { is_filled: false, ..*asked };
        let undone = || {
            let (work, all) = (asked.operations?, claims.all_operations());
            (all != work)
                .then(|| format!("{all} operations were done, the job has {work}: do all of it, once"))
        };
        // What may be left unaccounted for shows over longer phases.
        let too_long =
            || false_time("elapsed_ns + latency_elapsed_ns", claims.all_ns(), self.wall_ns, u64::MAX);
        let wrong = claims.wrong_operations(asked).or_else(undone).or_else(too_long);
        let wrong = wrong.or_else(|| claims.wrong_latencies()).or_else(|| claims.false_latencies(asked));
        wrong.map_or(Ok(()), Err)
    }
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
    pub fn begin(command: &'a [String], ground: Ground, steps: Steps, wait: Wait<'a>) -> Result<Self> {
        let (hello, strays) = (Hello::default(), Vec::new());
        let mut examiner = Self { command, ground, steps, hello, wait, worker: None, strays };
        match examiner.start() {
            Ok(hello) => examiner.hello = hello,
            Err(trouble) => {
                let sentence = examiner.sentence(&trouble);
                let shown = command.join(" ");
                return Err(Reported(anyhow!("'{shown}' cannot be tried: {sentence}")).into());
            }
        }
        let Hello { worker, version, .. } = &examiner.hello;
        examiner.steps.ok(format!("starts and says hello: {worker} {version}"));
        Ok(examiner)
    }

    fn start(&mut self) -> Result<Hello, ConversationError> {
        let (program, arguments) = self.command.split_first().expect("the command line asks for one");
        let mut command = Command::new(program);
        command.args(arguments);
        let shown = format!("the worker '{program}'");
        let worker = Conversation::start(command, &shown, |command| Ok(die_with_parent(command)))?;
        let worker = self.worker.insert(worker);
        worker.pass_over_strays();
        worker.hello(self.wait)
    }

    /// How long an answer is waited for, beyond the work.
    pub fn wait(&self) -> Wait<'a> {
        self.wait
    }

    /// The worker, started anew if the last one cannot be talked to any more.
    pub fn worker(&mut self) -> Result<&mut Conversation, ConversationError> {
        if self.worker.is_none() {
            self.start()?;
        }
        Ok(self.worker.as_mut().expect("it was just started"))
    }

    /// A worker that has served nothing yet.
    pub fn fresh_worker(&mut self) -> Result<&mut Conversation, ConversationError> {
        self.let_go();
        self.worker()
    }

    /// Takes leave of the worker, whatever it does.
    pub fn let_go(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            self.strays.extend(worker.take_strays());
        }
    }

    /// Ends the input of a worker and waits: it must end with status 0 and leave nobody.
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
        let named = left.first().map(|pid| format!("{pid} ({})", name_of(*pid)));
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

    /// After `failed`, a worker ends, once it is told that there is nothing more; `None` if it is gone already.
    pub fn ends_after_failed(&mut self) -> Option<Result<(), String>> {
        let patience = EXIT_PATIENCE.min(self.wait.patience);
        let worker = self.worker.as_mut()?;
        worker.say_no_more();
        let has_ended = worker.ends_within(patience);
        self.let_go();
        Some(match has_ended {
            true => Ok(()),
            false => Err("it goes on after failed, although stdin has ended: end then".to_string()),
        })
    }

    /// What was seen, with what helps to understand it. Nothing more can be had of the worker then.
    pub fn sentence(&mut self, trouble: &ConversationError) -> String {
        let failure = match trouble {
            ConversationError::Stopped => return "it was stopped".to_string(),
            ConversationError::Call(CallFailure { call, errno, detail, .. }) => {
                return format!("it answered failed: {call}, errno {errno}: {detail}");
            }
            ConversationError::Broken(failure) => failure,
        };
        let last_words = self.worker.as_mut().map(|worker| worker.last_words(self.wait.stop));
        self.let_go();
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

    /// Lines on stdout that were no messages.
    pub fn strays(&self) -> &[String] {
        &self.strays
    }

    /// Tells what ended a job before its time, and takes leave of the worker. Whether it was refused, as what this machine or the
    /// worker does not have.
    pub fn break_off(
        &mut self,
        visit: &mut Visit,
        (part, trouble): (&'static str, ConversationError),
    ) -> bool {
        visit.wrong = true;
        let refused = matches!(&trouble, ConversationError::Call(failure) if failure.unavailable == 1);
        match &trouble {
            ConversationError::Call(failure) if refused => {
                self.steps.not_tried(&visit.subject, &failure.detail)
            }
            trouble => {
                let sentence = self.sentence(trouble);
                self.steps.wrong(format!("{}: {part}", visit.subject), sentence);
                let rest = format!("{}: the rest of this job", visit.subject);
                self.steps.not_tried(rest, "the conversation broke off");
            }
        }
        self.let_go();
        refused
    }

    /// Open, opened, ready. `unknown_fields`: with fields that it cannot know.
    pub fn open(&mut self, job: &Job, unknown_fields: bool, visit: &mut Visit, key: &FileKey) -> Part<()> {
        let line = serde_json::to_string(&Request::Open(Box::new(job.clone()))).expect("string keys only");
        let line = if unknown_fields { with_unknown_fields(&line) } else { line };
        let (part, wait) = ("opens the file", self.wait.and(SETUP_WORK));
        let of_part = |trouble| (part, trouble);
        let worker = self.worker().map_err(of_part)?;
        let started = Instant::now();
        worker.send_line(&line).map_err(of_part)?;
        let setup_ns = worker.opened(wait).map_err(of_part)?;
        let opened_ns = nanoseconds(started);
        let warmup_ns = worker.ready(wait).map_err(|trouble| ("is ready", trouble))?;
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
        let (of_part, wait) = (|trouble| ("go and sample", trouble), self.wait.and(work));
        let worker = self.worker().map_err(of_part)?;
        let started = Instant::now();
        worker.send_line(&line).map_err(of_part)?;
        let sample = worker.sample(wait).map_err(of_part)?;
        Ok(Gone { sample, wall_ns: nanoseconds(started) })
    }

    /// Idle and idled, and what passed outside in ns.
    pub fn idle(&mut self, idle_ns: u64) -> Part<(Beats, u64)> {
        let (of_part, wait) =
            (|trouble| ("idle and idled", trouble), self.wait.and(Duration::from_nanos(idle_ns)));
        let worker = self.worker().map_err(of_part)?;
        let started = Instant::now();
        let beats = worker.idle(idle_ns, wait).map_err(of_part)?;
        Ok((beats, nanoseconds(started)))
    }

    /// Verify and verified.
    pub fn verify(&mut self, offsets: Vec<u64>) -> Part<u64> {
        let (of_part, wait) = (|trouble| ("verify and verified", trouble), self.wait);
        self.worker().and_then(|worker| worker.verify(offsets, wait)).map_err(of_part)
    }

    /// Close, closed, and nothing left of the file.
    pub fn close(&mut self, visit: &mut Visit, key: &FileKey) -> Part<()> {
        let (of_part, wait) = (|trouble| ("closes the file", trouble), self.wait.and(SETUP_WORK));
        let worker = self.worker().map_err(of_part)?;
        let started = Instant::now();
        let (teardown_ns, sync_ns) = worker.close(wait).map_err(of_part)?;
        let wall_ns = nanoseconds(started);
        let timed = at_most("teardown_ns", teardown_ns, wall_ns)
            .and_then(|()| at_most("sync_ns", sync_ns, teardown_ns));
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

fn at_most(what: &str, claimed_ns: u64, passed_ns: u64) -> Result<(), String> {
    false_time(what, claimed_ns, passed_ns, u64::MAX).map_or(Ok(()), Err)
}

/// The end of what was printed, on one line.
fn last_chars(text: &str) -> String {
    let line = text.lines().map(str::trim).collect::<Vec<_>>().join(" | ");
    let skipped = line.chars().count().saturating_sub(SHOWN_CHARS);
    line.chars().skip(skipped).collect()
}
