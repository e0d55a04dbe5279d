//! Reads by a table of offsets, and what they must come to: all of it computed from the bytes that the file is known to hold.

use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::random::Random;
use pagewise_model::{Consume, Workload};
use pagewise_protocol::{Job, SampleReply};

use super::ground::Ground;

/// One way to read a file by a table.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What is special about it, as a part of a sentence.
    pub what: &'static str,
    /// Which of the two files.
    pub file: usize,
    /// Size of a read.
    pub read_bytes: u64,
    /// Reads in one operation.
    pub reads_per_op: u32,
    /// Operations in the part of each thread: so few that a `go` goes round, and mostly ends within a part.
    pub part: u64,
    /// Offsets are multiples of this.
    pub align: u64,
    /// What is done with the bytes.
    pub consume: Consume,
    /// Whether `touch` takes the last word too.
    pub touch_last: bool,
    /// Threads.
    pub threads: u32,
    /// Whether each has a descriptor and a mapping of its own.
    pub per_thread: bool,
    /// Whether offsets follow from the data.
    pub dependent: bool,
    /// The part of the file that is read, as a divisor of its size.
    pub span_divisor: u64,
    /// The bound of a thread's operations; 0: none.
    pub max_thread_operations: u64,
}

impl Shape {
    /// One aligned read of a page an operation, in one thread.
    pub const PLAIN: Self = Self {
        what: "one aligned read an operation, touched",
        file: 0,
        read_bytes: 4096,
        reads_per_op: 1,
        part: 1021,
        align: 4096,
        consume: Consume::Touch,
        touch_last: false,
        threads: 1,
        per_thread: false,
        dependent: false,
        span_divisor: 1,
        max_thread_operations: 0,
    };

    fn consumption(&self, page_bytes: u64) -> Consumption {
        let page_bytes = page_bytes as usize;
        Consumption { consume: self.consume, page_bytes, touch_last: self.touch_last }
    }
}

/// The table of one `go`.
pub struct Table {
    shape: Shape,
    /// Where reads are.
    offsets: Vec<u64>,
    /// What the worker is given: the same, or offsets hidden behind data.
    pub entries: Vec<u8>,
}

/// How a worker may come to the checksum of a sample.
#[derive(Clone, Copy)]
struct How {
    shape: Shape,
    first: u64,
    weigh: Weigh,
    /// Whether it read the table before `go`, when it held zeros.
    too_early: bool,
}

/// What a read's checksum is multiplied by.
#[derive(Clone, Copy)]
enum Weigh {
    /// The weight of its place in the table.
    InTable,
    /// That of its place in the part of its thread.
    InPart,
    /// Nothing.
    Alike,
}

impl Table {
    /// Draws the offsets of a shape for a `go` of this number. A few entries stand behind the last part, which nobody does.
    pub fn draw(shape: &Shape, workload: Workload, ground: &Ground, number: u32) -> Self {
        let span = ground.random[shape.file].bytes.len() as u64 / shape.span_divisor;
        let purpose = format!("{workload} {} {number}", shape.what);
        let mut random = Random::for_purpose(ground.seed, &purpose);
        let per_op = u64::from(shape.reads_per_op);
        let reads = shape.part * u64::from(shape.threads) * per_op + per_op.min(4) - 1;
        let room = |bytes: u64| (span - bytes) / shape.align + 1;
        let mut offsets = Vec::with_capacity(reads as usize);
        for read in 0..reads {
            let follows = workload == Workload::SequentialRead && read % per_op > 0;
            offsets.push(match (follows, offsets.last()) {
                (true, Some(last)) => last + shape.read_bytes,
                _ if workload == Workload::SequentialRead => {
                    random.below(room(shape.read_bytes * per_op)) * shape.align
                }
                _ => random.below(room(shape.read_bytes)) * shape.align,
            });
        }
        let bytes = &ground.random[shape.file].bytes;
        let hidden = |read: usize| match read as u64 % per_op {
            0 => offsets[read],
            _ if !shape.dependent => offsets[read],
            _ => offsets[read] ^ word_at(bytes, offsets[read - 1]),
        };
        let entries = (0..offsets.len()).flat_map(|read| hidden(read).to_le_bytes()).collect();
        Self { shape: *shape, offsets, entries }
    }

    /// Puts what the job says of the reads into it.
    pub fn describe(&self, job: &mut Job) {
        let shape = &self.shape;
        job.span_bytes = job.file_bytes / shape.span_divisor;
        job.threads = shape.threads;
        job.descriptor = if shape.per_thread { "per-thread" } else { "shared" }.to_string();
        job.table_reads = self.offsets.len() as u64;
        job.read_bytes = shape.read_bytes;
        job.reads_per_op = shape.reads_per_op;
        job.consume = shape.consume.name().to_string();
        job.dependent = u32::from(shape.dependent);
        job.touch_last = u32::from(shape.touch_last);
        job.max_thread_operations = shape.max_thread_operations;
        job.warm_page_tables = u32::from(shape.span_divisor > 1);
    }

    /// Some of the offsets, to be read once more.
    pub fn some_offsets(&self) -> Vec<u64> {
        [0, self.offsets.len() / 2, self.offsets.len() / 3].map(|read| self.offsets[read]).to_vec()
    }

    /// Bytes of one operation.
    pub fn op_bytes(&self) -> u64 {
        self.shape.read_bytes * u64::from(self.shape.reads_per_op)
    }

    /// What operations of one thread come to.
    fn sum(&self, ground: &Ground, how: &How, thread: u64, operations: u64) -> u64 {
        let bytes = &ground.random[how.shape.file].bytes;
        let consumption = how.shape.consumption(ground.page_bytes);
        let (per_op, part, first) = (u64::from(self.shape.reads_per_op), self.shape.part, how.first);
        let of_operation = |operation: u64| {
            let in_part = operation * per_op;
            let start = thread * part * per_op + in_part;
            let reads = &self.offsets[start as usize..(start + per_op) as usize];
            (0u64..).zip(reads).fold(0u64, |total, (read, offset)| {
                let offset = if how.too_early { 0 } else { *offset };
                let end = (offset + self.shape.read_bytes).min(bytes.len() as u64);
                let checksum = consumption.of(&bytes[offset.min(end) as usize..end as usize]);
                let weight = match how.weigh {
                    Weigh::InTable => weight(start + read),
                    Weigh::InPart => weight(in_part + read),
                    Weigh::Alike => 1,
                };
                total.wrapping_add(weight.wrapping_mul(checksum))
            })
        };
        let sums: Vec<u64> = (0..part).map(of_operation).collect();
        let lap = sums.iter().fold(0u64, |total, sum| total.wrapping_add(*sum));
        let rest = operations % part;
        (0..rest).fold(lap.wrapping_mul(operations / part), |total, operation| {
            let index = (first % part + operation) % part;
            total.wrapping_add(sums[index as usize])
        })
    }

    fn expected(&self, ground: &Ground, how: &How, operations: &[u64]) -> u64 {
        operations.iter().enumerate().fold(0u64, |total, (thread, operations)| {
            total.wrapping_add(self.sum(ground, how, thread as u64, *operations))
        })
    }

    /// Whether the checksum is that of the operations that the threads say they did; else what it is instead, if that is
    /// known.
    pub fn check(&self, ground: &Ground, reply: &SampleReply, first: u64) -> Result<(), String> {
        let found = reply.checksum()?;
        let threads = self.shape.threads as usize;
        let operations = &reply.thread_operations[..reply.thread_operations.len().min(threads)];
        let shape = self.shape;
        let right = How { shape, first, weigh: Weigh::InTable, too_early: false };
        let expected = self.expected(ground, &right, operations);
        if found == expected {
            return Ok(());
        }
        let of = |shape: Shape| How { shape, ..right };
        let others = [
            (
                "of the same operations without the last word of each read: touch_last is 1",
                of(Shape { touch_last: false, ..shape }),
            ),
            ("of operations from 0 on: begin with first_operation", How { first: 0, ..right }),
            ("of the file of another job: forget it at close", of(Shape { file: 1 - shape.file, ..shape })),
            ("of all bytes: consume is touch", of(Shape { consume: Consume::Sum, ..shape })),
            ("of one word of each page: consume is sum", of(Shape { consume: Consume::Touch, ..shape })),
            (
                "of reads that all count alike: multiply each one's by 2 * its place in the table + 1",
                How { weigh: Weigh::Alike, ..right },
            ),
            (
                "of places counted from the start of each thread's part: count them from the start of the table",
                How { weigh: Weigh::InPart, ..right },
            ),
            (
                "of a table of zeros: it is there from go on, so read it then, and anew with each go",
                How { too_early: true, ..right },
            ),
        ];
        let known = others
            .iter()
            .find(|(_, how)| self.expected(ground, how, operations) == found)
            .map(|(what, _)| *what);
        let of_phase = threads == 1 && reply.latency_operations > 0;
        let phase_alone = of_phase && self.expected(ground, &right, &[reply.operations]) == found;
        let why = match known {
            _ if phase_alone => "; that is of the throughput phase alone: add the latency phase".to_string(),
            Some(what) => format!("; that is {what}"),
            None => String::new(),
        };
        Err(format!(
            "checksum {found:016x}, {operations:?} operations from {first} on come to {expected:016x}{why}"
        ))
    }
}

/// The eight bytes at an offset as a number.
fn word_at(bytes: &[u8], offset: u64) -> u64 {
    let word = bytes[offset as usize..].first_chunk::<8>().expect("a dependent read has eight bytes");
    u64::from_le_bytes(*word)
}
