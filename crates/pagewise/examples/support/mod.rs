//! Conversation of the workers that tests start: one job at a time, and one sample of it.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::time::Instant;

use pagewise_protocol::{Go, Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply};

/// An open job.
pub trait Session {
    /// Do what comes between `opened` and `ready`: the time that is reported for it, in
    /// nanoseconds.
    fn prepare(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    fn sample(&mut self, go: &Go) -> io::Result<SampleReply>;
}

/// Converse as the kind that the command line names.
pub fn run<K: Copy>(name: &str, kinds: &[(&str, K)], converse: impl Fn(K) -> io::Result<()>) -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or_default();
    let Some((_, kind)) = kinds.iter().find(|(known, _)| *known == word) else {
        let known: Vec<&str> = kinds.iter().map(|(word, _)| *word).collect();
        eprintln!("usage: {name} KIND, one of {}", known.join(", "));
        return ExitCode::from(2);
    };
    match converse(*kind) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Words of a worker that has no methods yet.
pub fn hello(worker: &str) -> Hello {
    Hello {
        protocol: PROTOCOL_VERSION,
        worker: worker.to_string(),
        version: "1".to_string(),
        ..Hello::default()
    }
}

/// Serve jobs until the supervisor has no more.
pub fn serve<S: Session>(hello: Hello, open: impl Fn(Job) -> io::Result<S>) -> io::Result<()> {
    say(&Reply::Hello(hello))?;
    let mut session = None;
    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Request::Open(job) => {
                let started = Instant::now();
                let opened = session.insert(open(*job)?);
                say(&Reply::Opened { setup_ns: nanoseconds(started), ballast_ns: 0 })?;
                let warmup_ns = opened.prepare()?;
                say(&Reply::Ready { warmup_ns })?;
            }
            Request::Go(go) => {
                let session = session.as_mut().ok_or(io::ErrorKind::InvalidInput)?;
                say(&Reply::Sample(Box::new(session.sample(&go)?)))?;
            }
            Request::Verify(_) | Request::Idle { .. } => return Err(io::ErrorKind::InvalidInput.into()),
            Request::Close => {
                let started = Instant::now();
                drop(session.take());
                say(&Reply::Closed { teardown_ns: nanoseconds(started), sync_ns: 0 })?;
            }
        }
    }
    Ok(())
}

pub fn say(reply: &Reply) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", serde_json::to_string(reply)?)?;
    stdout.flush()
}

pub fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}
