//! The native worker's side of the conversation.
//!
//! A message that is not of the protocol ends the worker with a sentence on stderr, whose tail the
//! supervisor shows. The end of stdin ends it too: it means that the supervisor is gone.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use pagewise_model::work::MAX_FILES;
use pagewise_model::{Method, Sync, SyncCall, Work, Worker, Workload, limits};
use pagewise_protocol::{
    CallFailure, Heartbeats, Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply, Understood, Verify,
};
use pagewise_sys::{FileMapping, SharedMemory};
use rustix::fs::{Mode, OFlags};

use crate::clock::now_ns;
use crate::effects::ensure_in_effect;
use crate::failure::{failed, refusal};
use crate::heartbeat::HeartbeatThread;
use crate::reader::{self, TablePart};
use crate::sampling::{Bounds, ThreadWork};
use crate::threads::JobThreads;
use crate::writer;

/// Serve jobs from `hello` until the supervisor is gone.
pub fn converse(requests: impl BufRead, mut replies: impl Write) -> io::Result<()> {
    let words = |workload: &Workload| (*workload, Method::words(&Worker::Native, *workload).join(","));
    let hello = Hello {
        protocol: PROTOCOL_VERSION,
        worker: Worker::Native.name().to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        worker_warmup: 0,
        offers: Workload::ALL.iter().map(words).collect(),
        sync_calls: SyncCall::ALL.iter().map(|call| call.name()).collect::<Vec<_>>().join(","),
        commit_threads: limits::MAX_THREADS,
        replay_threads: limits::MAX_THREADS,
        replay_files: MAX_FILES,
        rates: 1,
    };
    say(&mut replies, &Reply::Hello(hello))?;
    let mut requests = Requests(requests.lines());
    while let Some(request) = requests.next()? {
        let Request::Open(job) = request else {
            return Err(nonsense("the first message of a job is not open"));
        };
        match serve(&job, &mut requests, &mut replies) {
            Ok(()) => {}
            Err(JobEnd::Call(failure)) => return say(&mut replies, &Reply::Failed(failure)),
            Err(JobEnd::Conversation(error)) => return Err(error),
        }
    }
    Ok(())
}

/// Reason that a job ends early.
enum JobEnd {
    /// A call failed, which is reported in the conversation.
    Call(CallFailure),
    /// The conversation itself cannot continue.
    Conversation(io::Error),
}

impl From<CallFailure> for JobEnd {
    fn from(failure: CallFailure) -> Self {
        JobEnd::Call(failure)
    }
}

impl From<io::Error> for JobEnd {
    fn from(error: io::Error) -> Self {
        JobEnd::Conversation(error)
    }
}

struct Requests<R>(io::Lines<R>);

impl<R: BufRead> Requests<R> {
    fn next(&mut self) -> io::Result<Option<Request>> {
        let Some(line) = self.0.next() else { return Ok(None) };
        serde_json::from_str(&line?).map(Some).map_err(|error| nonsense(&error.to_string()))
    }
}

fn say(replies: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_string(reply)?;
    line.push('\n');
    replies.write_all(line.as_bytes())?;
    replies.flush()
}

fn nonsense(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not of the protocol: {reason}"))
}

fn serve<R: BufRead>(job: &Job, requests: &mut Requests<R>, replies: &mut impl Write) -> Result<(), JobEnd> {
    let method = method_of(&job.method).map_err(|reason| unknown(job, reason))?;
    let Understood { work, per_thread } = job.understand().map_err(|error| nonsense(&error))?;
    let task = ParsedJob { method, work, per_thread };
    let reads_by_table = work.reads().is_some();
    let table = work.has_table().then(|| table(job)).transpose()?;
    let started = now_ns();
    // Given back when the job is over, after its tear-down.
    let _ballast = (job.ballast_bytes > 0).then(|| reader::ballast(job)).transpose()?;
    let ballast_ns = now_ns() - started;
    let started = now_ns();
    let (work, bounds) = task.open(job, table)?;
    say(replies, &Reply::Opened { setup_ns: now_ns() - started, ballast_ns })?;
    let started = now_ns();
    let threads = JobThreads::start(work, bounds);
    if job.warm_page_tables == 1 {
        threads.warm_page_tables()?;
    }
    let heartbeat = (job.heartbeat_ns > 0).then(|| HeartbeatThread::start(job.heartbeat_ns));
    say(replies, &Reply::Ready { warmup_ns: now_ns() - started })?;
    while let Some(request) = requests.next()? {
        let reply = match request {
            Request::Idle { idle_ns } => {
                let idling = || {
                    std::thread::sleep(Duration::from_nanos(idle_ns));
                    Ok(())
                };
                Reply::Idled(with_beats(heartbeat.as_ref(), idling)?.1)
            }
            Request::Go(go) => {
                let (sample, beats) = with_beats(heartbeat.as_ref(), || threads.sample(&go))?;
                Reply::Sample(Box::new(SampleReply { beats, ..sample }))
            }
            Request::Verify(verify) if reads_by_table => hand_over(&threads, job, verify)?,
            Request::Verify(_) => return Err(nonsense(&format!("verify of {}", job.workload)).into()),
            Request::Close => {
                drop(heartbeat);
                return Ok(say(replies, &task.close(threads)?)?);
            }
            Request::Open(_) => return Err(nonsense("a second open").into()),
        };
        say(replies, &reply)?;
    }
    Ok(())
}

/// Run `work`, and return the delays of heartbeats during it.
fn with_beats<T>(
    heartbeat: Option<&HeartbeatThread>,
    what: impl FnOnce() -> Result<T, CallFailure>,
) -> Result<(T, Heartbeats), CallFailure> {
    if let Some(heartbeat) = heartbeat {
        heartbeat.begin();
    }
    let done = what()?;
    Ok((done, heartbeat.map(HeartbeatThread::end).unwrap_or_default()))
}

/// A parsed job.
struct ParsedJob {
    method: Method,
    work: Work,
    per_thread: bool,
}

impl ParsedJob {
    /// Set-up: open the work of each thread, and its amount.
    fn open(
        &self,
        job: &Job,
        table: Option<FileMapping>,
    ) -> Result<(Vec<Box<dyn ThreadWork>>, Bounds), CallFailure> {
        let workload = self.work.workload();
        let shares = self.sync() == Sync::Commit || workload == Workload::Replay;
        if workload.is_one_shot() && job.threads != 1 && !shares {
            let detail = format!("{workload} is the work of one thread: {} were requested", job.threads);
            return Err(refusal("open", &job.path, detail));
        }
        if let Some(reason) = self.method.refuses(&self.work, job.alignment()) {
            return Err(unknown(job, reason));
        }
        ensure_in_effect(&self.method, &job.path)?;
        if let Some(writes) = self.work.writes() {
            let bounds = match writes.sync {
                Sync::Commit => Bounds::commits(job),
                _ => Bounds::records(job),
            };
            return Ok((writer::open_threads(&self.method, job, writes, table)?, bounds));
        }
        let consume = self.work.consume().expect("it reads");
        let Some(table) = table else {
            return Ok((reader::open_scan(&self.method, job, consume)?, Bounds::fixed(job, 1)));
        };
        let parts = TablePart::divide(table, job)?;
        let bounds = match self.work {
            Work::Replay(_) => Bounds::fixed(job, 1),
            _ => Bounds::timed(job),
        };
        Ok((reader::open(&self.method, job, consume, self.per_thread, parts)?, bounds))
    }

    fn sync(&self) -> Sync {
        self.work.writes().map_or(Sync::None, |writes| writes.sync)
    }

    /// Tear-down: sync, unmap, close.
    fn close(&self, threads: JobThreads) -> Result<Reply, CallFailure> {
        let started = now_ns();
        let mut sync_ns = 0;
        if self.sync() == Sync::End {
            threads.sync()?;
            sync_ns = now_ns() - started;
        }
        threads.end();
        Ok(Reply::Closed { teardown_ns: now_ns() - started, sync_ns })
    }
}

/// A method of another version, or of another worker, or for other work.
fn unknown(job: &Job, reason: String) -> CallFailure {
    CallFailure { unavailable: 1, ..refusal("open", &job.path, reason) }
}

fn method_of(text: &str) -> Result<Method, String> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(|error| error.to_string())
}

fn hand_over(threads: &JobThreads, job: &Job, verify: Verify) -> Result<Reply, CallFailure> {
    let reads = verify.offsets.len();
    let handover = shared(&job.handover_path, reads * job.read_bytes as usize)?;
    threads.fetch(verify.offsets, job.read_bytes as usize, handover)?;
    Ok(Reply::Verified { reads: reads as u64 })
}

/// Map the offset table, which the supervisor writes, with what is behind its entries.
fn table(job: &Job) -> Result<FileMapping, CallFailure> {
    let path = &job.table_path;
    let words = job.table_words();
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| failed("open", error.into(), path, 0))?;
    let table = FileMapping::new(file, words as usize * 8, true);
    table.map_err(|error| failed("mmap", error, path, 0))
}

/// Map memory that the supervisor made for answers.
fn shared(path: &str, len: usize) -> Result<SharedMemory, CallFailure> {
    let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| failed("open", error.into(), path, 0))?;
    SharedMemory::new(file, len).map_err(|error| failed("mmap", error, path, 0))
}

#[cfg(test)]
mod tests;
