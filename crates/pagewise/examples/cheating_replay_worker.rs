//! A worker that replays traces by pread(2) in several threads and cheats about who reads what, or
//! in which order, so that tests can see whether pagewise notices.
//!
//! `cheating_replay_worker KIND` speaks the line protocol for `replay` with `pread`.

mod support;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::pieces::Masks;
use pagewise_model::trace::range_of;
use pagewise_model::{Consume, Workload};
use pagewise_protocol::{Go, Hello, Job, SampleReply};
use pagewise_sys::FileMapping;
use support::{Session, nanoseconds};

/// Who reads what, and when.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Each thread its own part.
    Honest,
    /// One thread all parts; the others are there.
    Alone,
    /// The parts are divided otherwise: the first thread does two.
    Divides,
    /// All reads of a part in the order of their offsets, as far as it knows them.
    Sorts,
    /// Speaks of one thread only.
    OneThread,
    /// Speaks of one file only.
    OneFile,
    /// The bytes of all files from the first one.
    FirstFile,
    /// The bytes of each file from the next one.
    NextFile,
}

const KINDS: &[(&str, Kind)] = &[
    ("honest", Kind::Honest),
    ("walks-alone", Kind::Alone),
    ("divides-anew", Kind::Divides),
    ("sorts", Kind::Sorts),
    ("one-thread", Kind::OneThread),
    ("one-file", Kind::OneFile),
    ("reads-the-first-file", Kind::FirstFile),
    ("reads-the-next-file", Kind::NextFile),
];

fn main() -> ExitCode {
    support::run("cheating_replay_worker", KINDS, |kind| {
        let replay_threads = if kind == Kind::OneThread { 0 } else { 64 };
        let hello = Hello {
            offers: [(Workload::Replay, "pread".into())].into(),
            replay_threads,
            replay_files: if kind == Kind::OneFile { 0 } else { 100 },
            ..support::hello("walker")
        };
        support::serve(hello, |job| Walkers::open(job, kind))
    })
}

/// What threads share.
struct Walk {
    kind: Kind,
    job: Job,
    /// Each file, where it begins in the span, and its size.
    files: Vec<(File, u64, u64)>,
    table: FileMapping,
    /// Position in a page of the word that `touch` takes.
    touch_at: AtomicU64,
    /// Bytes that were read.
    bytes: AtomicU64,
}

/// A thread that walks its part at each request, and is there until the job is closed: its counters
/// are read after the sample.
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
        let files = match job.file_descriptors.is_empty() {
            true => vec![(File::open(&job.path)?, 0, job.span_bytes)],
            false => {
                let places = job.file_starts.iter().zip(&job.file_bytes_each);
                let opened = job.file_descriptors.iter().zip(places).map(|(descriptor, (start, bytes))| {
                    Ok((File::open(format!("{}/{descriptor}", job.path))?, *start, *bytes))
                });
                opened.collect::<io::Result<_>>()?
            }
        };
        let table = FileMapping::new(File::open(&job.table_path)?, job.table_reads as usize * 8, true)?;
        let ballast = vec![1; job.ballast_bytes as usize];
        let threads = job.thread_reads.len();
        let parts_of = |thread: usize| match kind {
            Kind::Alone => 0..if thread == 0 { threads } else { 0 },
            Kind::Divides => (thread + thread.min(1)).min(threads)..(thread + 2).min(threads),
            _ => thread..thread + 1,
        };
        let walk =
            Arc::new(Walk { kind, job, files, table, touch_at: AtomicU64::new(0), bytes: AtomicU64::new(0) });
        let walkers = (0..threads).map(|thread| Walker::start(walk.clone(), parts_of(thread)));
        Ok(Self { walkers: walkers.collect(), walk: walk.clone(), _ballast: ballast })
    }
}

impl Walker {
    fn start(walk: Arc<Walk>, parts: Range<usize>) -> Self {
        let (requests, asked) = channel();
        let (walked, checksums) = channel();
        let thread =
            thread::spawn(
                move || {
                    while asked.recv().is_ok() && walked.send(walk.parts(parts.clone())).is_ok() {}
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
    /// The checksum of the reads of these threads.
    fn parts(&self, threads: Range<usize>) -> io::Result<u64> {
        let consume = self.job.consume.parse::<Consume>().map_err(io::Error::other)?;
        let touch_at = self.touch_at.load(Ordering::Relaxed);
        let consumption = Consumption::new(consume, self.job.page_bytes as usize, 1).touching(touch_at);
        let mut buffer = vec![0; self.job.read_bytes as usize];
        let mut read = |(place, entry): (usize, u64)| {
            let (mut offset, mut len) = range_of(entry);
            let at = self.files.partition_point(|(_, start, _)| *start <= offset) - 1;
            offset -= self.files[at].1;
            let (file, _, bytes) = match self.kind {
                Kind::FirstFile => &self.files[0],
                Kind::NextFile => &self.files[(at + 1) % self.files.len()],
                _ => &self.files[at],
            };
            // Where it does not know the entry, or that file is shorter: some other read.
            if len > buffer.len() || offset + len as u64 > *bytes {
                len = len.min(buffer.len()).min(*bytes as usize);
                offset %= (bytes - len as u64).max(1);
            }
            file.read_exact_at(&mut buffer[..len], offset)?;
            self.bytes.fetch_add(len as u64, Ordering::Relaxed);
            io::Result::Ok(weight(place as u64).wrapping_mul(consumption.of(&buffer[..len])))
        };
        let mut total = 0u64;
        for thread in threads {
            let begin = self.job.thread_reads[..thread].iter().sum::<u64>() as usize;
            let places: Vec<usize> = (begin..begin + self.job.thread_reads[thread] as usize).collect();
            let piece = if self.kind == Kind::Sorts { places.len() } else { self.job.piece_reads as usize };
            let mut masks = Masks::default();
            for places in places.chunks(piece.max(1)) {
                let words = self.table.words();
                let mut reads: Vec<_> =
                    places.iter().map(|place| (*place, words[*place] ^ masks.mask())).collect();
                if self.kind == Kind::Sorts {
                    reads.sort_unstable_by_key(|(_, entry)| *entry);
                }
                let mut checksum = 0u64;
                for entry in reads {
                    checksum = checksum.wrapping_add(read(entry)?);
                }
                masks.end_piece(checksum);
                total = total.wrapping_add(checksum);
            }
        }
        Ok(total)
    }
}

impl Session for Walkers {
    fn sample(&mut self, go: &Go) -> io::Result<SampleReply> {
        let threads = self.walkers.len() as u64;
        self.walk.touch_at.store(go.touch_at, Ordering::Relaxed);
        self.walk.bytes.store(0, Ordering::Relaxed);
        let started = Instant::now();
        for walker in &self.walkers {
            walker.requests.send(()).map_err(io::Error::other)?;
        }
        let mut checksum = 0u64;
        for walker in &self.walkers {
            checksum = checksum.wrapping_add(walker.checksums.recv().map_err(io::Error::other)??);
        }
        let elapsed_ns = nanoseconds(started);
        let bytes = self.walk.bytes.load(Ordering::Relaxed);
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
