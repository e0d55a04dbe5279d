//! A worker that does one-shot work under pagewise's own names and hides a part of its time, so
//! that tests and `bench/cheats.py` can see whether that makes it faster than its honest twin.
//!
//! `cheating_once_worker KIND` speaks the line protocol: `scan` by `read` and `mmap`, `append` and
//! `fill` by `pwrite` and `mmap`.

mod support;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::Instant;

use pagewise_model::Workload;
use pagewise_protocol::{Go, Hello, Job, SampleReply};
use pagewise_sys::{FileMapping, WritableMapping};
use support::{Session, nanoseconds};

/// Bytes of a read of a scan.
const BUFFER_BYTES: usize = 64 << 10;

/// Where its time goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Where it belongs.
    Honest,
    /// Works between `opened` and `ready`, of which it says that it took no time.
    BeforeReady,
    /// Works between `ready` and `go`.
    AfterReady,
    /// The work is done after `go`, and the worker says that this took a microsecond.
    Understates,
    /// Says that the work took half of the time.
    Halves,
}

const KINDS: &[(&str, Kind)] = &[
    ("honest", Kind::Honest),
    ("before-ready", Kind::BeforeReady),
    ("after-ready", Kind::AfterReady),
    ("understates", Kind::Understates),
    ("halves", Kind::Halves),
];

fn main() -> ExitCode {
    support::run("cheating_once_worker", KINDS, |kind| {
        let writes = || "mmap,pwrite".to_string();
        let hello = Hello {
            offers: [
                (Workload::Scan, "mmap,read".into()),
                (Workload::Append, writes()),
                (Workload::Fill, writes()),
            ]
            .into(),
            ..support::hello("once")
        };
        support::serve(hello, |job| Ok(Once { kind, work: Some(Work::open(job)?), early: None }))
    })
}

struct Once {
    kind: Kind,
    work: Option<Work>,
    /// What was done too early.
    early: Option<JoinHandle<io::Result<(Work, SampleReply)>>>,
}

/// The work, with what it needs in place.
struct Work {
    job: Job,
    file: File,
    source: Vec<u8>,
    buffer: Vec<u8>,
    written: Option<WritableMapping>,
    scanned: Option<FileMapping>,
}

impl Session for Once {
    fn prepare(&mut self) -> io::Result<u64> {
        if matches!(self.kind, Kind::BeforeReady | Kind::AfterReady) {
            let mut work = self.work.take().ok_or(io::ErrorKind::InvalidInput)?;
            self.early = Some(std::thread::spawn(move || {
                let sample = work.all()?;
                Ok((work, sample))
            }));
        }
        while self.kind == Kind::BeforeReady && self.early.as_ref().is_some_and(|early| !early.is_finished())
        {
            std::thread::yield_now();
        }
        Ok(0)
    }

    fn sample(&mut self, _: &Go) -> io::Result<SampleReply> {
        let started = Instant::now();
        let mut sample = match self.early.take() {
            Some(early) => {
                let (work, sample) = early.join().map_err(|_| io::Error::other("the work panicked"))??;
                self.work = Some(work);
                sample
            }
            None => self.work.as_mut().ok_or(io::ErrorKind::InvalidInput)?.all()?,
        };
        let took_ns = nanoseconds(started).max(1);
        sample.elapsed_ns = match self.kind {
            Kind::Understates => 1000,
            Kind::Halves => took_ns.div_ceil(2),
            _ => took_ns,
        };
        Ok(sample)
    }
}

impl Work {
    fn open(job: Job) -> io::Result<Self> {
        let (is_scan, is_mapped) = (job.workload == "scan", job.method == "mmap");
        let file = File::options().read(true).write(!is_scan).open(&job.path)?;
        let len = job.file_bytes as usize;
        Ok(Self {
            source: if is_scan { Vec::new() } else { std::fs::read(&job.source_path)? },
            buffer: vec![0; if is_scan && !is_mapped { BUFFER_BYTES } else { 0 }],
            written: (!is_scan && is_mapped).then(|| WritableMapping::new(&file, len, false)).transpose()?,
            scanned: (is_scan && is_mapped).then(|| FileMapping::new(&file, len, false)).transpose()?,
            job,
            file,
        })
    }

    fn all(&mut self) -> io::Result<SampleReply> {
        let (operations, bytes, checksum) = if self.job.workload == "scan" {
            (1, self.job.span_bytes, self.lines()?)
        } else {
            self.write()?;
            (self.job.records, self.job.records * self.job.record_bytes, 0)
        };
        let checksum = format!("{checksum:016x}");
        Ok(SampleReply {
            operations,
            bytes,
            checksum,
            thread_operations: vec![operations],
            ..SampleReply::default()
        })
    }

    fn lines(&mut self) -> io::Result<u64> {
        let count = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count() as u64;
        if let Some(mapping) = &self.scanned {
            return Ok(count(mapping.bytes()));
        }
        let (mut lines, mut at) = (0, 0);
        loop {
            match self.file.read_at(&mut self.buffer, at)? {
                0 => return Ok(lines),
                read => {
                    lines += count(&self.buffer[..read]);
                    at += read as u64;
                }
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let record_bytes = self.job.record_bytes;
        let places = self.job.file_bytes / record_bytes;
        for record in 0..self.job.records {
            let from = (record * record_bytes % self.job.source_period) as usize;
            let bytes = &self.source[from..from + record_bytes as usize];
            let at = record % places * record_bytes;
            match &mut self.written {
                Some(mapping) => mapping.bytes_mut()[at as usize..][..bytes.len()].copy_from_slice(bytes),
                None => self.file.write_all_at(bytes, at)?,
            }
        }
        Ok(())
    }
}
