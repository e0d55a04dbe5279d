//! A worker that appends by pwrite(2) and cheats about its syncs, so that tests can see whether pagewise notices.
//!
//! `cheating_log_worker KIND` speaks the line protocol for `append` with `pwrite`, synced at intervals or after each record.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::time::Instant;

use pagewise_model::{Bytes, Sync};
use pagewise_protocol::{Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply};

/// What is wrong with the syncs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing.
    Honest,
    /// None is made, all are told.
    Skips,
    /// Every fourth is made, all are told.
    Overstates,
    /// One is made, after the last record; all are told.
    AtEnd,
    /// All are made, half are told.
    Understates,
}

const KINDS: &[(&str, Kind)] = &[
    ("honest", Kind::Honest),
    ("skips-syncs", Kind::Skips),
    ("overstates-syncs", Kind::Overstates),
    ("syncs-at-end", Kind::AtEnd),
    ("understates-syncs", Kind::Understates),
];

fn main() -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or_default();
    let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == word) else {
        let known: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
        eprintln!("usage: cheating_log_worker KIND, one of {}", known.join(", "));
        return ExitCode::from(2);
    };
    match converse(*kind) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cheating_log_worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say(reply: &Reply) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", serde_json::to_string(reply)?)?;
    stdout.flush()
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

fn converse(kind: Kind) -> io::Result<()> {
    say(&Reply::Hello(Hello {
        protocol: PROTOCOL_VERSION,
        worker: "log".into(),
        version: "1".into(),
        append: "pwrite".into(),
        commit_threads: 1,
        ..Hello::default()
    }))?;
    let mut log = None;
    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Request::Open(job) => {
                let started = Instant::now();
                log = Some(Log::open(*job, kind)?);
                say(&Reply::Opened { setup_ns: nanoseconds(started) })?;
                say(&Reply::Ready { warmup_ns: 0 })?;
            }
            Request::Go(go) => {
                let log = log.as_mut().ok_or(io::ErrorKind::InvalidInput)?;
                say(&Reply::Sample(Box::new(log.append_all(go.sample_ns)?)))?;
            }
            Request::Verify(_) | Request::Idle { .. } => return Err(io::ErrorKind::InvalidInput.into()),
            Request::Close => {
                let started = Instant::now();
                drop(log.take());
                say(&Reply::Closed { teardown_ns: nanoseconds(started), sync_ns: 0 })?;
            }
        }
    }
    Ok(())
}

struct Log {
    job: Job,
    kind: Kind,
    file: File,
    source: Vec<u8>,
    /// Durations of the syncs that are told, in order.
    told_ns: Vec<u64>,
    due: u64,
}

impl Log {
    fn open(job: Job, kind: Kind) -> io::Result<Self> {
        let file = File::options().write(true).open(&job.path)?;
        let source = std::fs::read(&job.source_path)?;
        Ok(Self { job, kind, file, source, told_ns: Vec::new(), due: 0 })
    }

    /// A sync is due: made or not, told or not.
    fn sync(&mut self, is_last: bool) -> io::Result<()> {
        let started = Instant::now();
        self.due += 1;
        let is_made = match self.kind {
            Kind::Honest | Kind::Understates => true,
            Kind::Skips => false,
            Kind::Overstates => is_last || self.due.is_multiple_of(4),
            Kind::AtEnd => is_last,
        };
        if is_made {
            self.file.sync_data()?;
        }
        if self.kind != Kind::Understates || self.due.is_multiple_of(2) {
            self.told_ns.push(nanoseconds(started).max(1));
        }
        Ok(())
    }

    fn append_all(&mut self, sample_ns: u64) -> io::Result<SampleReply> {
        let every = match self.job.sync.parse::<Sync>().map_err(io::Error::other)? {
            Sync::Commit => 1,
            Sync::Every(Bytes(bytes)) => bytes,
            Sync::None | Sync::End => u64::MAX,
        };
        let (record_bytes, slots) = (self.job.record_bytes, self.job.file_bytes / self.job.record_bytes);
        let mut latencies = Vec::new();
        let started = Instant::now();
        let mut unsynced = 0;
        let mut done = 0;
        while done < self.job.records && nanoseconds(started) < sample_ns {
            let begun = Instant::now();
            let place =
                (u128::from(done) * u128::from(record_bytes) % u128::from(self.job.source_period)) as usize;
            let record = &self.source[place..place + record_bytes as usize];
            self.file.write_all_at(record, done % slots * record_bytes)?;
            unsynced += record_bytes;
            done += 1;
            if unsynced >= every {
                self.sync(done == self.job.records)?;
                unsynced = 0;
            }
            latencies.push(nanoseconds(begun).max(1));
        }
        if every != u64::MAX && (unsynced > 0 || done < self.job.records) {
            self.sync(true)?;
        }
        let (latency_ns, latency_counts) = buckets(latencies);
        let (sync_duration_ns, sync_duration_counts) = buckets(std::mem::take(&mut self.told_ns));
        Ok(SampleReply {
            operations: done,
            elapsed_ns: nanoseconds(started),
            thread_operations: vec![done],
            bytes: done * record_bytes,
            checksum: format!("{:016x}", 0),
            latency_ns,
            latency_counts,
            sync_duration_ns,
            sync_duration_counts,
            ..SampleReply::default()
        })
    }
}

/// Buckets as wide as a nanosecond.
fn buckets(mut all: Vec<u64>) -> (Vec<u64>, Vec<u64>) {
    all.sort_unstable();
    let mut buckets: Vec<(u64, u64)> = Vec::new();
    for ns in all {
        match buckets.last_mut() {
            Some((end, count)) if *end == ns => *count += 1,
            _ => buckets.push((ns, 1)),
        }
    }
    buckets.into_iter().unzip()
}
