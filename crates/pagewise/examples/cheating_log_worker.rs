//! A worker that appends by pwrite(2) and cheats about its syncs, so that tests can see whether
//! pagewise notices.
//!
//! `cheating_log_worker KIND` speaks the line protocol for `append` with `pwrite`, synced at
//! intervals or after each record.

mod support;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::time::Instant;

use pagewise_model::{Bytes, Sync, Workload};
use pagewise_protocol::{Go, Hello, Job, SampleReply};
use support::{Session, nanoseconds};

/// What is wrong with the syncs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing.
    Honest,
    /// None is made, all are reported.
    Skips,
    /// Every fourth is made, all are reported.
    Overstates,
    /// One is made, after the last record; all are reported.
    AtEnd,
    /// All are made, half are reported.
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
    support::run("cheating_log_worker", KINDS, |kind| {
        let hello = Hello {
            offers: [(Workload::Append, "pwrite".into())].into(),
            commit_threads: 1,
            ..support::hello("log")
        };
        support::serve(hello, |job| Log::open(job, kind))
    })
}

struct Log {
    job: Job,
    kind: Kind,
    file: File,
    source: Vec<u8>,
    /// Durations of the syncs that are reported, in order.
    claimed_ns: Vec<u64>,
    due: u64,
}

impl Log {
    fn open(job: Job, kind: Kind) -> io::Result<Self> {
        let file = File::options().write(true).open(&job.path)?;
        let source = std::fs::read(&job.source_path)?;
        Ok(Self { job, kind, file, source, claimed_ns: Vec::new(), due: 0 })
    }

    /// A sync is due: made or not, reported or not.
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
            self.claimed_ns.push(nanoseconds(started).max(1));
        }
        Ok(())
    }
}

impl Session for Log {
    fn sample(&mut self, go: &Go) -> io::Result<SampleReply> {
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
        while done < self.job.records && nanoseconds(started) < go.sample_ns {
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
        let (sync_duration_ns, sync_duration_counts) = buckets(std::mem::take(&mut self.claimed_ns));
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
