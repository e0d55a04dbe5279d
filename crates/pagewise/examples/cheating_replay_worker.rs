//! A worker that replays traces by pread(2) in several threads and cheats about who reads what, so that tests can see whether pagewise
//! notices.
//!
//! `cheating_replay_worker KIND` speaks the line protocol for `replay` with `pread`.

mod support;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use pagewise_model::Consume;
use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::trace::range_of;
use pagewise_protocol::{Go, Hello, Job, SampleReply};
use pagewise_sys::FileMapping;
use support::{Session, nanoseconds};

/// Who reads what.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Each thread its own part.
    Honest,
    /// One thread all parts; the others are there.
    Alone,
    /// The parts are divided anew, into equal ones.
    Divides,
    /// It speaks of one thread only.
    OneThread,
}

const KINDS: &[(&str, Kind)] = &[
    ("honest", Kind::Honest),
    ("walks-alone", Kind::Alone),
    ("divides-anew", Kind::Divides),
    ("one-thread", Kind::OneThread),
];

fn main() -> ExitCode {
    support::run("cheating_replay_worker", KINDS, |kind| {
        let replay_threads = if kind == Kind::OneThread { 0 } else { 64 };
        let hello = Hello { replay: "pread".into(), replay_threads, ..support::hello("walker") };
        support::serve(hello, |job| Walkers::open(job, kind))
    })
}

/// What threads share.
struct Walk {
    job: Job,
    file: File,
    table: FileMapping,
}

/// A thread that walks its part at each request, and is there until the job is closed: its counters are read after the sample.
struct Walker {
    requests: Sender<()>,
    checksums: Receiver<io::Result<u64>>,
    thread: JoinHandle<()>,
}

struct Walkers {
    walk: Arc<Walk>,
    walkers: Vec<Walker>,
    _ballast: Vec<u8>,
}

impl Walkers {
    fn open(job: Job, kind: Kind) -> io::Result<Self> {
        let file = File::open(&job.path)?;
        let table = FileMapping::new(File::open(&job.table_path)?, job.table_reads as usize * 8, true)?;
        let (ballast, parts) = (vec![1; job.ballast_bytes as usize], parts(&job, kind));
        let walk = Arc::new(Walk { job, file, table });
        let mut end = 0;
        let walkers = parts.iter().map(|reads| {
            let begin = end;
            end += reads;
            Walker::start(walk.clone(), begin as usize..end as usize)
        });
        Ok(Self { walkers: walkers.collect(), walk: walk.clone(), _ballast: ballast })
    }
}

/// Reads of each thread, as this worker divides them.
fn parts(job: &Job, kind: Kind) -> Vec<u64> {
    let (all, own) = (job.table_reads, &job.thread_reads);
    let threads = own.len() as u64;
    match kind {
        Kind::Honest | Kind::OneThread => own.clone(),
        Kind::Alone => (0..threads).map(|thread| if thread == 0 { all } else { 0 }).collect(),
        Kind::Divides => {
            (0..threads).map(|thread| all * (thread + 1) / threads - all * thread / threads).collect()
        }
    }
}

impl Walker {
    fn start(walk: Arc<Walk>, part: Range<usize>) -> Self {
        let (requests, asked) = channel();
        let (told, checksums) = channel();
        let thread =
            thread::spawn(
                move || {
                    while asked.recv().is_ok() && told.send(walk.part(part.clone())).is_ok() {}
                },
            );
        Self { requests, checksums, thread }
    }
}

impl Drop for Walkers {
    fn drop(&mut self) {
        for Walker { requests, thread, .. } in self.walkers.drain(..) {
            drop(requests);
            let _ = thread.join();
        }
    }
}

impl Walk {
    /// The checksum of the entries of a part.
    fn part(&self, part: Range<usize>) -> io::Result<u64> {
        let consume = self.job.consume.parse::<Consume>().map_err(io::Error::other)?;
        let consumption = Consumption::new(consume, self.job.page_bytes as usize, 1);
        let mut buffer = vec![0; self.job.read_bytes as usize];
        let mut total = 0u64;
        for (entry, place) in self.table.words()[part.clone()].iter().zip(part.start as u64..) {
            let (offset, len) = range_of(*entry);
            self.file.read_exact_at(&mut buffer[..len], offset)?;
            total = total.wrapping_add(weight(place).wrapping_mul(consumption.of(&buffer[..len])));
        }
        Ok(total)
    }
}

impl Session for Walkers {
    fn sample(&mut self, _: &Go) -> io::Result<SampleReply> {
        let threads = self.walkers.len() as u64;
        let started = Instant::now();
        for walker in &self.walkers {
            walker.requests.send(()).map_err(io::Error::other)?;
        }
        let mut checksum = 0u64;
        for walker in &self.walkers {
            checksum = checksum.wrapping_add(walker.checksums.recv().map_err(io::Error::other)??);
        }
        let elapsed_ns = nanoseconds(started);
        let bytes = self.walk.table.words().iter().map(|entry| range_of(*entry).1 as u64).sum();
        Ok(SampleReply {
            operations: threads,
            elapsed_ns,
            thread_operations: vec![1; threads as usize],
            bytes,
            checksum: format!("{checksum:016x}"),
            latency_ns: vec![elapsed_ns],
            latency_counts: vec![threads],
            ..SampleReply::default()
        })
    }
}
