//! A worker that does its work between `opened` and `ready`, before any sample is asked for, so that tests can see where
//! that time goes.
//!
//! `early_worker KIND` speaks the line protocol for `scan`, `append` and `fill` with the method `get`. `hidden` says that
//! nothing was done there, `told` says how long it took, and `honest` works when it is told to go. All take [`MOMENT`] more
//! for their work than it needs, so that it cannot be lost in the slack of clocks.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pagewise_protocol::{Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply};

/// What the work takes beside.
const MOMENT: Duration = Duration::from_millis(150);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hidden,
    Told,
    Honest,
}

fn main() -> ExitCode {
    let kind = match std::env::args().nth(1).as_deref() {
        Some("hidden") => Kind::Hidden,
        Some("told") => Kind::Told,
        Some("honest") => Kind::Honest,
        _ => {
            eprintln!("usage: early_worker hidden|told|honest");
            return ExitCode::from(2);
        }
    };
    match converse(kind) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("early_worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say(reply: &Reply) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", serde_json::to_string(reply)?)?;
    stdout.flush()
}

fn converse(kind: Kind) -> io::Result<()> {
    let has = || "get".to_string();
    say(&Reply::Hello(Hello {
        protocol: PROTOCOL_VERSION,
        worker: "early".into(),
        version: "1".into(),
        scan: has(),
        append: has(),
        fill: has(),
        ..Hello::default()
    }))?;
    let (mut open, mut early) = (None, None);
    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Request::Open(job) => {
                let started = Instant::now();
                let file = File::options().read(true).write(job.workload != "scan").open(&job.path)?;
                say(&Reply::Opened { setup_ns: nanoseconds(started) })?;
                let started = Instant::now();
                early = if kind == Kind::Honest { None } else { Some(work(&file, &job)?) };
                let warmup_ns = if kind == Kind::Told { nanoseconds(started) } else { 0 };
                say(&Reply::Ready { warmup_ns })?;
                open = Some((file, job));
            }
            Request::Go(_) => {
                let (file, job) = open.as_ref().ok_or(io::ErrorKind::InvalidInput)?;
                let started = Instant::now();
                let mut sample = match early.take() {
                    Some(sample) => sample,
                    None => work(file, job)?,
                };
                sample.elapsed_ns = nanoseconds(started).max(1);
                say(&Reply::Sample(Box::new(sample)))?;
            }
            Request::Close => {
                open = None;
                say(&Reply::Closed { teardown_ns: 1, sync_ns: 0 })?;
            }
            Request::Verify(_) | Request::Idle { .. } => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(())
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

/// All of the work.
fn work(file: &File, job: &Job) -> io::Result<SampleReply> {
    let started = Instant::now();
    let mut sample = SampleReply::default();
    if job.workload == "scan" {
        let mut bytes = vec![0; job.span_bytes as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        (sample.operations, sample.bytes, sample.checksum) = (1, job.span_bytes, format!("{lines:016x}"));
    } else {
        let source = std::fs::read(&job.source_path)?;
        let places = job.file_bytes / job.record_bytes;
        for record in 0..job.records {
            let from = (record * job.record_bytes % job.source_period) as usize;
            let bytes = &source[from..from + job.record_bytes as usize];
            file.write_all_at(bytes, record % places * job.record_bytes)?;
        }
        (sample.operations, sample.bytes) = (job.records, job.records * job.record_bytes);
        sample.checksum = "0000000000000000".into();
    }
    sample.thread_operations = vec![sample.operations];
    while started.elapsed() < MOMENT {
        std::hint::spin_loop();
    }
    Ok(sample)
}
