//! A worker that does its work when no clock should see it, so that tests can see where that time
//! goes.
//!
//! `early_worker KIND` speaks the line protocol for `scan`, `append` and `fill` with the method
//! `get`. `honest` works after `go`. `hidden` works between `opened` and `ready` and says that
//! nothing was done there, `reported` says how long it took. All three take [`MOMENT`] more for
//! their work than it needs, so that it cannot be lost in the slack of clocks. `slack` leaves
//! [`FORGIVEN`] out of the time that it reports of its region, `idle` uses so much CPU time between
//! `ready` and `go`: less than what makes a sample invalid.

mod support;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pagewise_model::Workload;
use pagewise_protocol::{Go, Hello, Job, SampleReply};
use rustix::time::{ClockId, clock_gettime};
use support::{Session, nanoseconds};

/// What the work takes beside.
const MOMENT: Duration = Duration::from_millis(150);

/// What it takes beside and does not report, where that is little.
const FORGIVEN: Duration = Duration::from_millis(8);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hidden,
    Reported,
    Honest,
    Slack,
    Idle,
}

const KINDS: &[(&str, Kind)] = &[
    ("hidden", Kind::Hidden),
    ("reported", Kind::Reported),
    ("honest", Kind::Honest),
    ("slack", Kind::Slack),
    ("idle", Kind::Idle),
];

fn main() -> ExitCode {
    support::run("early_worker", KINDS, |kind| {
        let has = || "get".to_string();
        let hello = Hello {
            offers: [(Workload::Scan, has()), (Workload::Append, has()), (Workload::Fill, has())].into(),
            ..support::hello("early")
        };
        support::serve(hello, |job| {
            let file = File::options().read(true).write(job.workload != "scan").open(&job.path)?;
            Ok(Work { kind, job, file, done: None, idle: None })
        })
    })
}

struct Work {
    kind: Kind,
    job: Job,
    file: File,
    /// What was done before `go`.
    done: Option<SampleReply>,
    /// The thread that works while nothing is asked for, and where it says that it is done.
    idle: Option<(JoinHandle<()>, Receiver<()>)>,
}

impl Session for Work {
    fn prepare(&mut self) -> io::Result<u64> {
        let started = Instant::now();
        match self.kind {
            Kind::Hidden | Kind::Reported => self.done = Some(work(&self.file, &self.job, MOMENT)?),
            // It lives until `go`: the time of a thread that has ended is in no
            // account.
            Kind::Idle => {
                let (done, is_done) = channel();
                let thread = std::thread::spawn(move || {
                    use_cpu(FORGIVEN);
                    let _ = done.send(());
                    std::thread::park();
                });
                self.idle = Some((thread, is_done));
            }
            Kind::Honest | Kind::Slack => {}
        }
        Ok(if self.kind == Kind::Reported { nanoseconds(started) } else { 0 })
    }

    fn sample(&mut self, _: &Go) -> io::Result<SampleReply> {
        if let Some((_, is_done)) = &self.idle {
            let _ = is_done.recv();
        }
        let started = Instant::now();
        let mut sample = match self.done.take() {
            Some(sample) => sample,
            None => {
                work(&self.file, &self.job, if self.kind == Kind::Honest { MOMENT } else { Duration::ZERO })?
            }
        };
        sample.elapsed_ns = nanoseconds(started).max(1);
        if self.kind == Kind::Slack {
            use_cpu(FORGIVEN);
        }
        if let Some((thread, _)) = self.idle.take() {
            thread.thread().unpark();
        }
        Ok(sample)
    }
}

/// Use so much time of a CPU.
fn use_cpu(time: Duration) {
    let used = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let end = used() + time;
    while used() < end {
        std::hint::spin_loop();
    }
}

/// All of the work; it takes `moment` at least.
fn work(file: &File, job: &Job, moment: Duration) -> io::Result<SampleReply> {
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
    while started.elapsed() < moment {
        std::hint::spin_loop();
    }
    Ok(sample)
}
