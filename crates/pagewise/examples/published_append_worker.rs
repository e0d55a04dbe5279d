//! A worker that appends as a published study did, defects included, so that tests can see whether
//! pagewise notices.
//!
//! `published_append_worker KIND` speaks the line protocol for `append` and `fill` with `mmap` and
//! `mmap:buffer=SIZE`. The study measured that buffering a mapping pays, up to 155 times; half and
//! more of its records never reached the file. `published` has all of its defects, the kinds after
//! it one each, and `honest` none.

mod support;

use std::fs::File;
use std::io;
use std::process::ExitCode;
use std::time::Instant;

use pagewise_model::{Method, Workload};
use pagewise_protocol::{Go, Hello, Job, SampleReply};
use pagewise_sys::WritableMapping;
use support::{Session, nanoseconds};

/// What is wrong with the ring.
#[derive(Clone, Copy, Default)]
struct Defects {
    /// After a flush the cursor moves by one record, whatever was flushed.
    cursor_by_record: bool,
    /// The record that fills the buffer is copied into it and not flushed with the others.
    last_dropped: bool,
    /// What does not fit before the end of the file is left out, and not written at its start.
    clipped_end: bool,
    /// What is in the buffer at the end stays there.
    rest_left: bool,
}

const KINDS: &[(&str, Defects)] = &[
    ("honest", NONE),
    ("published", Defects { cursor_by_record: true, last_dropped: true, clipped_end: true, rest_left: true }),
    ("cursor-by-record", Defects { cursor_by_record: true, ..NONE }),
    ("last-dropped", Defects { last_dropped: true, ..NONE }),
    ("clipped-end", Defects { clipped_end: true, ..NONE }),
    ("rest-left", Defects { rest_left: true, ..NONE }),
];

const NONE: Defects =
    Defects { cursor_by_record: false, last_dropped: false, clipped_end: false, rest_left: false };

fn main() -> ExitCode {
    support::run("published_append_worker", KINDS, |defects| {
        let hello = Hello {
            offers: [(Workload::Append, "mmap".into()), (Workload::Fill, "mmap".into())].into(),
            ..support::hello("published")
        };
        support::serve(hello, |job| RecordRing::open(job, defects))
    })
}

struct RecordRing {
    job: Job,
    defects: Defects,
    mapping: WritableMapping,
    source: Vec<u8>,
    /// Records collected, where there is a buffer larger than one.
    buffer: Vec<u8>,
    capacity: usize,
    cursor: usize,
}

impl RecordRing {
    fn open(job: Job, defects: Defects) -> io::Result<Self> {
        let method: Method = job.method.parse().map_err(io::Error::other)?;
        let file = File::options().read(true).write(true).open(&job.path)?;
        let mapping = WritableMapping::new(&file, job.file_bytes as usize, false)?;
        let source = std::fs::read(&job.source_path)?;
        let capacity = method.buffer().map_or(0, |bytes| bytes.0 as usize);
        Ok(Self { job, defects, mapping, source, buffer: Vec::with_capacity(capacity), capacity, cursor: 0 })
    }

    /// Bytes of the file that records may take.
    fn ring_bytes(&self) -> usize {
        let record = self.job.record_bytes as usize;
        match self.defects.clipped_end {
            true => self.job.file_bytes as usize,
            false => self.job.file_bytes as usize / record * record,
        }
    }

    fn append(&mut self, record: &[u8]) {
        if self.capacity <= record.len() {
            self.store(record);
            self.advance(record.len());
            return;
        }
        if self.defects.last_dropped {
            if self.buffer.len() + record.len() >= self.capacity {
                self.flush();
            } else {
                self.buffer.extend_from_slice(record);
            }
            return;
        }
        if self.buffer.len() + record.len() > self.capacity {
            self.flush();
        }
        self.buffer.extend_from_slice(record);
    }

    fn flush(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.store(&buffer);
        let moved = if self.defects.cursor_by_record { self.job.record_bytes as usize } else { buffer.len() };
        self.advance(moved);
    }

    /// Stores bytes at the cursor, what is behind the end of the ring at its start.
    fn store(&mut self, bytes: &[u8]) {
        let (start, end) = (self.cursor, self.ring_bytes());
        let first = bytes.len().min(end - start);
        let target = self.mapping.bytes_mut();
        target[start..start + first].copy_from_slice(&bytes[..first]);
        if !self.defects.clipped_end {
            target[..bytes.len() - first].copy_from_slice(&bytes[first..]);
        }
    }

    fn advance(&mut self, by: usize) {
        self.cursor += by;
        if self.cursor >= self.ring_bytes() {
            self.cursor = if self.defects.clipped_end { 0 } else { self.cursor - self.ring_bytes() };
        }
    }
}

impl Session for RecordRing {
    fn sample(&mut self, _: &Go) -> io::Result<SampleReply> {
        let started = Instant::now();
        let record_bytes = self.job.record_bytes as usize;
        for index in 0..self.job.records {
            let place =
                (u128::from(index) * record_bytes as u128 % u128::from(self.job.source_period)) as usize;
            let record = self.source[place..place + record_bytes].to_vec();
            self.append(&record);
        }
        if !self.defects.rest_left {
            self.flush();
        }
        Ok(SampleReply {
            operations: self.job.records,
            elapsed_ns: nanoseconds(started),
            thread_operations: vec![self.job.records],
            // As the study counted: what was offered.
            bytes: self.job.records * self.job.record_bytes,
            checksum: format!("{:016x}", 0),
            ..SampleReply::default()
        })
    }
}
