//! Conversation with the worker under test: keeps one process as long as it answers, starts another otherwise, and leads jobs
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

use super::steps::Steps;
use super::test_files::{TestFiles, check_holder, check_released, process_name};
use crate::exit::Exit;
use crate::supervise::evidence::Stretches;

/// Time that reading or writing the test files may take, whatever the method.
const SETUP_WORK: Duration = Duration::from_secs(10);

/// Length of the shown end of stderr.
const SHOWN_CHARS: usize = 320;

/// Fields that no version of the protocol has.
const UNKNOWN_FIELDS: &str = r#""added_later":"anything","added_number":7,"added_list":[1,2],"#;

/// The worker under test, and the steps recorded so far.
pub struct Examiner<'a> {
    /// Command of the worker.
    pub command: &'a [String],
    /// Files that it reads and writes.
    pub files: TestFiles,
    /// Recorded steps.
    pub steps: Steps,
    /// Its hello.
    pub hello: Hello,
    /// True while requests carry [`UNKNOWN_FIELDS`].
    pub unknown_fields: bool,
    wait: Wait<'a>,
    worker: Option<Conversation>,
    strays: Vec<String>,
    examination: Examination,
}

/// The current job.
#[derive(Default)]
struct Examination {
    subject: String,
    /// True if each part is a step of its own.
    detailed: bool,
    /// True once a part was wrong.
    wrong: bool,
}

/// Answer to a `go`.
pub struct TimedReply {
    /// The worker's figures.
    pub sample: SampleReply,
    /// Time between request and answer.
    pub wall_ns: u64,
    /// Time of it in which threads of the worker, or this one, waited for a CPU.
    pub waited_ns: u64,
}

impl TimedReply {
    /// Fail with the first wrong figure. One-shot work must be done completely.
    pub fn check(&self, asked: &Asked) -> Result<(), String> {
        let claims = self.sample.claims();
        // A thread that waits for a CPU leaves its phase empty; a run takes such a sample again.
        let asked = &Asked { is_filled: false, ..*asked };
        let undone = || {
            let (work, all) = (asked.operations?, claims.all_operations());
            (all != work)
                .then(|| format!("{all} operations were done, the job has {work}: do all of it, once"))
        };
        // Time that is not accounted for shows over longer phases.
        let too_long =
            || false_time("elapsed_ns + latency_elapsed_ns", claims.all_ns(), self.wall_ns, u64::MAX);
        let wrong = claims.wrong_operations(asked).or_else(undone).or_else(too_long);
        let wrong = wrong.or_else(|| claims.wrong_latencies()).or_else(|| claims.false_latencies(asked, 0));
        let wrong = wrong.or_else(|| claims.wrong_syncs(asked));
        wrong.map_or(Ok(()), Err)
    }
}

/// Outcome of a part of a job; an error carries the name of the part.
pub type Part<T> = Result<T, (&'static str, ConversationError)>;

impl<'a> Examiner<'a> {
    /// Start the worker and receive its hello. A command that is not a worker is an error of one sentence.
    pub fn begin(command: &'a [String], files: TestFiles, steps: Steps, wait: Wait<'a>) -> Result<Self> {
        let (hello, strays, examination) = (Hello::default(), Vec::new(), Examination::default());
        let unknown_fields = false;
        let mut examiner =
            Self { command, files, steps, hello, unknown_fields, wait, worker: None, strays, examination };
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
        let (program, arguments) = self.command.split_first().expect("the command line requires one");
        let mut command = Command::new(program);
        command.args(arguments);
        let shown = format!("the worker '{program}'");
        let worker = Conversation::start(command, &shown, |command| Ok(die_with_parent(command)))?;
        let worker = self.worker.insert(worker);
        worker.pass_over_strays();
        worker.hello(self.wait)
    }

    /// Time limit of an answer, beyond the requested work.
    pub fn wait(&self) -> Wait<'a> {
        self.wait
    }

    /// The worker, started again if the last one no longer answers.
    pub fn worker(&mut self) -> Result<&mut Conversation, ConversationError> {
        if self.worker.is_none() {
            self.start()?;
        }
        Ok(self.worker.as_mut().expect("it was just started"))
    }

    /// A worker without earlier jobs.
    pub fn fresh_worker(&mut self) -> Result<&mut Conversation, ConversationError> {
        self.drop_worker();
        self.worker()
    }

    /// Process id of the worker.
    pub fn pid(&mut self) -> Part<u32> {
        self.worker().map(|worker| worker.pid()).map_err(|error| ("the worker", error))
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
        let named = left.first().map(|pid| format!("{pid} ({})", process_name(*pid)));
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

    /// Examine a job, as one step or, if `detailed`, as a step for each part. Return true if the worker refused it because
    /// this machine or the worker lacks something.
    pub fn examine(
        &mut self,
        subject: impl Into<String>,
        detailed: bool,
        job: impl FnOnce(&mut Self) -> Part<()>,
    ) -> bool {
        self.examination = Examination { subject: subject.into(), detailed, wrong: false };
        let refused = job(self).is_err_and(|(part, error)| self.abort(part, &error));
        let Examination { subject, detailed, wrong } = std::mem::take(&mut self.examination);
        if !detailed && !wrong {
            self.steps.ok(subject);
        }
        refused
    }

    /// Record the outcome of a part. Of a job that is one step, only the first failure: later ones may follow from it.
    pub fn record(&mut self, part: &str, outcome: Result<(), String>) {
        let Examination { subject, detailed, wrong } = &mut self.examination;
        if *detailed || (outcome.is_err() && !*wrong) {
            *wrong |= outcome.is_err();
            self.steps.judge(format!("{subject}: {part}"), outcome);
        }
    }

    /// Record the error that ended the job early, and end the worker. Return true if it is a refusal.
    fn abort(&mut self, part: &str, error: &ConversationError) -> bool {
        self.examination.wrong = true;
        let subject = self.examination.subject.clone();
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

    /// Open a job of the file `key` and wait until the worker is ready.
    pub fn open(&mut self, job: &Job, key: &FileKey) -> Part<()> {
        let wait = self.wait.and(SETUP_WORK);
        let of_part = |error| ("opens the file", error);
        let started = self.send(&Request::Open(Box::new(job.clone()))).map_err(of_part)?;
        let worker = self.worker().map_err(of_part)?;
        let (setup_ns, _) = worker.opened(wait).map_err(of_part)?;
        let opened_ns = nanoseconds(started);
        let warmup_ns = worker.ready(wait).map_err(|error| ("is ready", error))?;
        let ready_ns = nanoseconds(started);
        let holder = check_holder(worker, key);
        let timed =
            at_most("setup_ns", setup_ns, opened_ns).and_then(|()| at_most("warmup_ns", warmup_ns, ready_ns));
        self.record("opens the file and is ready", timed.and(holder));
        Ok(())
    }

    /// Request a sample.
    pub fn go(&mut self, go: Go) -> Part<TimedReply> {
        let work = Duration::from_nanos(2 * (go.sample_ns + go.latency_ns)) + SETUP_WORK;
        let (of_part, wait) = (|error| ("go and sample", error), self.wait.and(work));
        let pid = self.worker().map_err(of_part)?.pid();
        let mut stretch = Stretches::default();
        stretch.begin(pid);
        let started = self.send(&Request::Go(go)).map_err(of_part)?;
        let sample = self.worker().and_then(|worker| worker.sample(wait)).map_err(of_part)?;
        let wall_ns = nanoseconds(started);
        stretch.end(pid);
        let waits = stretch.total().and_then(|total| total.run_queue_ns.zip(total.supervisor_run_queue_ns));
        Ok(TimedReply { sample, wall_ns, waited_ns: waits.map_or(0, |(worker, own)| worker + own) })
    }

    /// Let the worker idle; return its heartbeats and the time between request and answer in ns.
    pub fn idle(&mut self, idle_ns: u64) -> Part<(Beats, u64)> {
        let (of_part, wait) =
            (|error| ("idle and idled", error), self.wait.and(Duration::from_nanos(idle_ns)));
        let worker = self.worker().map_err(of_part)?;
        let started = Instant::now();
        let beats = worker.idle(idle_ns, wait).map_err(of_part)?;
        Ok((beats, nanoseconds(started)))
    }

    /// Have the reads at these offsets done once more; return their number.
    pub fn verify(&mut self, offsets: Vec<u64>) -> Part<u64> {
        let (of_part, wait) = (|error| ("verify and verified", error), self.wait);
        self.worker().and_then(|worker| worker.verify(offsets, wait)).map_err(of_part)
    }

    /// Close the job: no mapping or descriptor of the file `key` may be left.
    pub fn close(&mut self, key: &FileKey) -> Part<()> {
        let (of_part, wait) = (|error| ("closes the file", error), self.wait.and(SETUP_WORK));
        let worker = self.worker().map_err(of_part)?;
        let started = Instant::now();
        let (teardown_ns, sync_ns) = worker.close(wait).map_err(of_part)?;
        let wall_ns = nanoseconds(started);
        let timed = at_most("teardown_ns", teardown_ns, wall_ns)
            .and_then(|()| at_most("sync_ns", sync_ns, teardown_ns));
        let released = check_released(worker, key);
        self.record("closes the file, and nothing of it is left", timed.and(released));
        Ok(())
    }

    /// Send a request, and return when.
    fn send(&mut self, request: &Request) -> Result<Instant, ConversationError> {
        let mut line = serde_json::to_string(request).expect("string keys only");
        if self.unknown_fields {
            line.insert_str(1, UNKNOWN_FIELDS);
        }
        let worker = self.worker()?;
        let started = Instant::now();
        worker.send_line(&line)?;
        Ok(started)
    }
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

fn at_most(name: &str, claimed_ns: u64, wall_ns: u64) -> Result<(), String> {
    false_time(name, claimed_ns, wall_ns, u64::MAX).map_or(Ok(()), Err)
}

/// The end of a text, on one line.
fn last_chars(text: &str) -> String {
    let line = text.lines().map(str::trim).collect::<Vec<_>>().join(" | ");
    let skipped = line.chars().count().saturating_sub(SHOWN_CHARS);
    line.chars().skip(skipped).collect()
}
