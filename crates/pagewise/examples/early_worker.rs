//! A worker that does its work between `opened` and `ready`, before any sample is asked for, so that tests can see where
//! that time goes.
//!
//! `early_worker KIND` speaks the line protocol for `scan`, `append` and `fill` with the method `get`. `hidden` says that
//! nothing was done there, `told` says how long it took, and `honest` works when it is told to go. All take [`MOMENT`] more
//! for their work than it needs, so that it cannot be lost in the slack of clocks.

mod support;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pagewise_protocol::{Go, Hello, Job, SampleReply};
use support::{Session, nanoseconds};

/// What the work takes beside.
const MOMENT: Duration = Duration::from_millis(150);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hidden,
    Told,
    Honest,
}

const KINDS: &[(&str, Kind)] = &[("hidden", Kind::Hidden), ("told", Kind::Told), ("honest", Kind::Honest)];

fn main() -> ExitCode {
    support::run("early_worker", KINDS, |kind| {
        let has = || "get".to_string();
        let hello = Hello { scan: has(), append: has(), fill: has(), ..support::hello("early") };
        support::serve(hello, |job| {
            let file = File::options().read(true).write(job.workload != "scan").open(&job.path)?;
            Ok(Work { kind, job, file, done: None })
        })
    })
}

struct Work {
    kind: Kind,
    job: Job,
    file: File,
    /// What was done before it was told to go.
    done: Option<SampleReply>,
}

impl Session for Work {
    fn prepare(&mut self) -> io::Result<u64> {
        let started = Instant::now();
        if self.kind != Kind::Honest {
            self.done = Some(work(&self.file, &self.job)?);
        }
        Ok(if self.kind == Kind::Told { nanoseconds(started) } else { 0 })
    }

    fn sample(&mut self, _: &Go) -> io::Result<SampleReply> {
        let started = Instant::now();
        let mut sample = match self.done.take() {
            Some(sample) => sample,
            None => work(&self.file, &self.job)?,
        };
        sample.elapsed_ns = nanoseconds(started).max(1);
        Ok(sample)
    }
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
