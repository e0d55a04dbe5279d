//! Jobs of reads by a table of offsets.

use pagewise_lab::supervise::accesses::Parts;
use pagewise_model::{Bytes, Conditions, Consume, Descriptor, Method, Reads, Skew, Work, Workload};

use super::examiner::Examiner;
use super::test_files::FILE_BYTES;
use super::trial::Trial;

/// Length of the plain job, over which clocks are compared.
const PLAIN_NS: u64 = 60_000_000;
/// Bound of a thread's operations.
const MOST_OPERATIONS: u64 = 10;
/// Maximum entries after the last part: too few for an operation, so they are not read.
const MAX_BEHIND: u32 = 3;

/// One shape of reads by a table.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Special property, as a part of a sentence.
    name: &'static str,
    /// Index of the file.
    file: usize,
    /// Size of a read.
    read_bytes: u64,
    /// Reads in one operation.
    reads_per_op: u32,
    /// Operations in the part of each thread: few enough that a `go` wraps, and mostly ends within
    /// a part.
    part: u64,
    /// Offsets are multiples of this.
    align: u64,
    /// Consumption of the bytes.
    consume: Consume,
    /// Threads.
    threads: u32,
    /// True if each thread has its own descriptor and mapping.
    per_thread: bool,
    /// True if offsets follow from the data.
    dependent: bool,
    /// Size of the file over that of the span.
    span_divisor: u64,
    /// Bound of a thread's operations; 0: none.
    max_operations: u64,
    /// True if the table comes in pieces.
    in_pieces: bool,
}

impl Shape {
    /// One aligned read of a page an operation, in one thread.
    const PLAIN: Self = Self {
        name: "one aligned read an operation, touched",
        file: 0,
        read_bytes: 4096,
        reads_per_op: 1,
        part: 1021,
        align: 4096,
        consume: Consume::Touch,
        threads: 1,
        per_thread: false,
        dependent: false,
        span_divisor: 1,
        max_operations: 0,
        in_pieces: false,
    };

    fn behind(&self) -> u64 {
        u64::from((self.reads_per_op - 1).min(MAX_BEHIND))
    }

    /// A job of this shape.
    fn trial(&self, workload: Workload, method: &Method) -> Trial {
        let reads = Reads {
            read_bytes: Bytes(self.read_bytes),
            reads_per_op: self.reads_per_op,
            align_bytes: Bytes(self.align),
            skew: Skew::Uniform,
            dependent: self.dependent,
            consume: self.consume,
        };
        let work = match workload {
            Workload::SequentialRead => Work::SequentialRead(reads),
            _ => Work::RandomRead(reads),
        };
        let file_bytes = FILE_BYTES[self.file];
        let conditions = Conditions {
            threads: self.threads,
            span_bytes: Bytes(file_bytes / self.span_divisor),
            descriptor: if self.per_thread { Descriptor::PerThread } else { Descriptor::Shared },
            ..Conditions::of(work, Bytes(file_bytes))
        };
        let parts = Parts { operations: self.part, behind: self.behind(), in_one_piece: !self.in_pieces };
        let mut trial = Trial { parts, max_operations: self.max_operations, ..Trial::of(method, conditions) };
        if self.span_divisor > 1 {
            trial.change = Box::new(|job| job.warm_page_tables = 1);
        }
        trial
    }
}

/// Shapes of random reads besides the plain one.
const RANDOM: [Shape; 9] = [
    Shape {
        name: "16 reads an operation at any offset, all bytes summed, from another file in a later job",
        file: 1,
        read_bytes: 5001,
        reads_per_op: 16,
        part: 23,
        align: 1,
        consume: Consume::Sum,
        ..Shape::PLAIN
    },
    Shape {
        name: "reads at any offset, touched with their last word",
        read_bytes: 10_001,
        reads_per_op: 3,
        align: 1,
        ..Shape::PLAIN
    },
    Shape { name: "two threads that share a descriptor", reads_per_op: 16, threads: 2, ..Shape::PLAIN },
    Shape {
        name: "two threads with a descriptor each",
        file: 1,
        reads_per_op: 16,
        threads: 2,
        per_thread: true,
        ..Shape::PLAIN
    },
    Shape { name: "dependent reads", read_bytes: 64, reads_per_op: 8, dependent: true, ..Shape::PLAIN },
    Shape { name: "a span of half of the file, page tables warmed", span_divisor: 2, ..Shape::PLAIN },
    Shape {
        name: "max_thread_operations",
        file: 1,
        reads_per_op: 2,
        max_operations: MOST_OPERATIONS,
        ..Shape::PLAIN
    },
    Shape {
        name: "a table in pieces (piece_reads), two threads",
        reads_per_op: 3,
        part: 131,
        threads: 2,
        in_pieces: true,
        ..Shape::PLAIN
    },
    Shape {
        name: "dependent reads, a table in pieces",
        read_bytes: 64,
        reads_per_op: 8,
        part: 131,
        dependent: true,
        in_pieces: true,
        ..Shape::PLAIN
    },
];

/// Shapes of sequential reads.
const SEQUENTIAL: [Shape; 3] = [
    Shape {
        name: "16 reads an operation from any offset on, all bytes summed, from another file in a later job",
        file: 1,
        read_bytes: 5001,
        reads_per_op: 16,
        part: 23,
        align: 1,
        consume: Consume::Sum,
        ..Shape::PLAIN
    },
    Shape { name: "two threads that share a descriptor", reads_per_op: 16, threads: 2, ..Shape::PLAIN },
    Shape {
        name: "a table in pieces (piece_reads)",
        reads_per_op: 8,
        part: 131,
        in_pieces: true,
        ..Shape::PLAIN
    },
];

/// Examine one method.
pub fn examine(examiner: &mut Examiner<'_>, workload: Workload, text: &str, method: &Method) {
    let subject = format!("{workload} {text}");
    let plain = match workload {
        Workload::SequentialRead => Shape { reads_per_op: 8, ..Shape::PLAIN },
        _ => Shape::PLAIN,
    };
    let trial = Trial { sample_ns: PLAIN_NS, ..plain.trial(workload, method) };
    if examiner.examine(&subject, &trial, Some(plain.name)) {
        return;
    }
    let shapes: &[Shape] = if workload == Workload::SequentialRead { &SEQUENTIAL } else { &RANDOM };
    for shape in shapes {
        examiner.examine(&format!("{subject}: {}", shape.name), &shape.trial(workload, method), None);
    }
}

/// A job of the plain shape.
pub fn plain(workload: Workload, method: &Method) -> Trial {
    Shape::PLAIN.trial(workload, method)
}
