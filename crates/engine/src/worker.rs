//! The native worker's side of the conversation.
//!
//! Anything that is not of the protocol ends the worker with a sentence on stderr: the supervisor
//! shows its tail. So does the end of stdin, which is how a worker notices that nobody listens.

use std::io::{self, BufRead, Write};

use pagewise_model::protocol::{CallFailure, Hello, Job, PROTOCOL_VERSION, Reply, Request, Verify};
use pagewise_model::{Consume, Descriptor, Method};
use pagewise_sys::{FileMapping, SharedMemory};
use rustix::fs::{Mode, OFlags};

use crate::clock::now_ns;
use crate::crew::Crew;
use crate::failure::failed;
use crate::reader;

/// Serves one job from `hello` to `closed`.
pub fn converse(requests: impl BufRead, mut replies: impl Write) -> io::Result<()> {
    let hello = Hello {
        protocol: PROTOCOL_VERSION,
        worker: "native".to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
    };
    say(&mut replies, &Reply::Hello(hello))?;
    let mut requests = Requests(requests.lines());
    let Some(Request::Open(job)) = requests.next()? else {
        return Err(nonsense("the conversation did not begin with open"));
    };
    let outcome = serve(&job, &mut requests, &mut replies)?;
    match outcome {
        Ok(()) => Ok(()),
        Err(failure) => say(&mut replies, &Reply::Failed(failure)),
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

/// The outer error ends the conversation, the inner one is told in it.
fn serve<R: BufRead>(
    job: &Job,
    requests: &mut Requests<R>,
    replies: &mut impl Write,
) -> io::Result<Result<(), CallFailure>> {
    let method = method_of(&job.method)?;
    let consume: Consume = job.consume.parse().map_err(|error: String| nonsense(&error))?;
    let descriptor: Descriptor = job.descriptor.parse().map_err(|error: String| nonsense(&error))?;
    let table = match table(job) {
        Ok(table) => table,
        Err(failure) => return Ok(Err(failure)),
    };
    let started = now_ns();
    let readers = match reader::open(&method, job, consume, descriptor == Descriptor::PerThread) {
        Ok(readers) => readers,
        Err(failure) => return Ok(Err(failure)),
    };
    say(replies, &Reply::Opened { setup_ns: now_ns() - started })?;
    let crew = Crew::start(readers, table, job);
    let started = now_ns();
    if job.warm_page_tables == 1
        && let Err(failure) = crew.warm_page_tables()
    {
        return Ok(Err(failure));
    }
    say(replies, &Reply::Ready { warmup_ns: now_ns() - started })?;
    while let Some(request) = requests.next()? {
        let answer = match request {
            Request::Go(go) => crew.sample(&go).map(|sample| Reply::Sample(Box::new(sample))),
            Request::Verify(verify) => hand_over(&crew, job, verify),
            Request::Close => {
                let started = now_ns();
                crew.end();
                say(replies, &Reply::Closed { teardown_ns: now_ns() - started })?;
                return Ok(Ok(()));
            }
            Request::Open(_) => return Err(nonsense("a second open")),
        };
        match answer {
            Ok(reply) => say(replies, &reply)?,
            Err(failure) => return Ok(Err(failure)),
        }
    }
    Ok(Ok(()))
}

fn method_of(text: &str) -> io::Result<Method> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(|error| nonsense(&error.to_string()))
}

fn hand_over(crew: &Crew, job: &Job, verify: Verify) -> Result<Reply, CallFailure> {
    let reads = verify.offsets.len();
    let handover = shared(&job.handover_path, reads * job.read_bytes as usize)?;
    crew.fetch(verify.offsets, handover)?;
    Ok(Reply::Verified { reads: reads as u64 })
}

/// Maps the offset table, which is the supervisor's to write.
fn table(job: &Job) -> Result<FileMapping, CallFailure> {
    let path = &job.table_path;
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| failed("open", error.into(), path, 0))?;
    let table = FileMapping::new(file, job.table_reads as usize * 8, true);
    table.map_err(|error| failed("mmap", error, path, 0))
}

/// Maps memory that the supervisor made for answers.
fn shared(path: &str, len: usize) -> Result<SharedMemory, CallFailure> {
    let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| failed("open", error.into(), path, 0))?;
    SharedMemory::new(file, len).map_err(|error| failed("mmap", error, path, 0))
}
