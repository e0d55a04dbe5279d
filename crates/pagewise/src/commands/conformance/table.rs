//! Reads by a table of offsets as in a run, and the checksums of known mistakes.

use pagewise_host::{OffsetTable, OperationOrder, PiecesOfGo, Reference, TableMemory};
use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::random::mix;
use pagewise_model::{Bytes, Conditions, Consume, Descriptor, Reads, Skew, Work, Workload};
use pagewise_protocol::{ConversationError, SampleReply, descriptor_path};

use super::test_files::TestFiles;

/// Maximum entries after the last part: too few for an operation, so they are not read.
const MAX_BEHIND: u32 = 3;

/// One shape of reads by a table.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its special property, as a part of a sentence.
    pub name: &'static str,
    /// Index of the file.
    pub file: usize,
    /// Size of a read.
    pub read_bytes: u64,
    /// Reads in one operation.
    pub reads_per_op: u32,
    /// Operations in the part of each thread: few enough that a `go` wraps, and mostly ends within a part.
    pub part: u64,
    /// Offsets are multiples of this.
    pub align: u64,
    /// Consumption of the bytes.
    pub consume: Consume,
    /// Threads.
    pub threads: u32,
    /// True if each thread has its own descriptor and mapping.
    pub per_thread: bool,
    /// True if offsets follow from the data.
    pub dependent: bool,
    /// Size of the file over that of the span.
    pub span_divisor: u64,
    /// Bound of a thread's operations; 0: none.
    pub max_thread_operations: u64,
    /// True if the table comes in pieces.
    pub in_pieces: bool,
}

impl Shape {
    /// One aligned read of a page an operation, in one thread.
    pub const PLAIN: Self = Self {
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
        max_thread_operations: 0,
        in_pieces: false,
    };

    fn behind(&self) -> u64 {
        u64::from((self.reads_per_op - 1).min(MAX_BEHIND))
    }

    fn conditions(&self, workload: Workload, files: &TestFiles) -> Conditions {
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
        let file_bytes = files.random[self.file].bytes.len() as u64;
        let descriptor = if self.per_thread { Descriptor::PerThread } else { Descriptor::Shared };
        Conditions {
            threads: self.threads,
            span_bytes: Bytes(file_bytes / self.span_divisor),
            descriptor,
            ..Conditions::of(work, Bytes(file_bytes))
        }
    }
}

/// The table of a job.
pub struct Table {
    shape: Shape,
    /// Conditions it was drawn for.
    pub conditions: Conditions,
    table: OffsetTable,
    reference: Reference,
    /// Order of the entries since the last `go`.
    order: OperationOrder,
    /// Memory in which the worker finds them: zeros until the first `go`.
    memory: TableMemory,
}

/// A way to compute the checksum of a sample.
#[derive(Clone, Copy)]
struct Computation {
    file: usize,
    consumption: Consumption,
    first: u64,
    weighting: Weighting,
    /// True if the table was read before `go`, when it contained zeros.
    too_early: bool,
}

/// Factor of a read's checksum.
#[derive(Clone, Copy)]
enum Weighting {
    /// Weight of its place in the table.
    InTable,
    /// Weight of its place in the part of its thread.
    InPart,
    /// 1.
    Alike,
}

impl Table {
    /// Draw the offsets of a shape.
    pub fn draw(shape: &Shape, workload: Workload, files: &TestFiles) -> Result<Self, ConversationError> {
        fn lack(error: impl std::fmt::Display) -> ConversationError {
            ConversationError::lack(error.to_string())
        }
        let conditions = shape.conditions(workload, files);
        let content_seed = files.random[shape.file].seed();
        let mut table = OffsetTable::with_part(&conditions, mix(files.seed), shape.part).map_err(lack)?;
        let reference =
            Reference::for_dataset(&table, &conditions, content_seed, files.page_bytes).map_err(lack)?;
        table.chain_dataset(content_seed).map_err(lack)?;
        let memory = TableMemory::new(table.reads() + shape.behind()).map_err(lack)?;
        Ok(Self { shape: *shape, order: table.as_drawn(), conditions, table, reference, memory })
    }

    /// Its path and its number of reads.
    pub fn place(&self) -> (String, u64) {
        (descriptor_path(self.memory.file()), self.table.reads() + self.shape.behind())
    }

    /// Put it in place in pieces of so many reads for a `go` from operation `first_operation` on: as drawn, or reordered where it
    /// follows others.
    pub fn put(&mut self, first_operation: u64, follows: bool, piece_reads: u64) {
        self.order = if follows { self.table.anew(first_operation) } else { self.table.as_drawn() };
        let pieces = PiecesOfGo { reference: &self.reference, first_operation, reads: piece_reads };
        self.memory.put(&self.table, &self.order, &pieces);
    }

    /// Position in a page of the word that `touch` takes.
    pub fn touch_at(&self) -> u64 {
        self.table.touch_at()
    }

    /// Some of the offsets, to be verified.
    pub fn some_offsets(&self) -> Vec<u64> {
        let offsets = self.table.offsets();
        [0, offsets.len() / 2, offsets.len() / 3].map(|read| offsets[read]).to_vec()
    }

    /// Checksum of the operations of one thread by this computation.
    fn sum(&self, files: &TestFiles, computation: &Computation, thread: u32, operations: u64) -> u64 {
        let bytes = &files.random[computation.file].bytes;
        let (per_op, part) = (u64::from(self.shape.reads_per_op), self.shape.part);
        let of_operation = |operation: u64| {
            let in_part = operation * per_op;
            let start = u64::from(thread) * part * per_op + in_part;
            let reads = self.table.operation(&self.order, thread, operation).unwrap_or_default();
            (0u64..).zip(reads).fold(0u64, |total, (read, offset)| {
                let offset = if computation.too_early { 0 } else { *offset };
                let end = (offset + self.shape.read_bytes).min(bytes.len() as u64);
                let checksum = computation.consumption.of(&bytes[offset.min(end) as usize..end as usize]);
                let weight = match computation.weighting {
                    Weighting::InTable => weight(start + read),
                    Weighting::InPart => weight(in_part + read),
                    Weighting::Alike => 1,
                };
                total.wrapping_add(weight.wrapping_mul(checksum))
            })
        };
        let sums: Vec<u64> = (0..part).map(of_operation).collect();
        let pass = sums.iter().fold(0u64, |total, sum| total.wrapping_add(*sum));
        let rest = operations % part;
        (0..rest).fold(pass.wrapping_mul(operations / part), |total, operation| {
            let index = (computation.first % part + operation) % part;
            total.wrapping_add(sums[index as usize])
        })
    }

    /// Fail unless the checksum is that of the claimed operations; name the mistake if it is known.
    pub fn check(&self, files: &TestFiles, reply: &SampleReply, first: u64) -> Result<(), String> {
        let found = reply.checksum()?;
        let threads = self.shape.threads as usize;
        let operations = &reply.thread_operations[..reply.thread_operations.len().min(threads)];
        let total = |of_thread: &dyn Fn(u32, u64) -> u64, operations: &[u64]| {
            (0u32..)
                .zip(operations)
                .fold(0u64, |total, (thread, operations)| total.wrapping_add(of_thread(thread, *operations)))
        };
        let right = |thread, operations| {
            self.reference.expected(&self.order, thread, first, operations).unwrap_or_default()
        };
        let expected = total(&right, operations);
        if found == expected {
            return Ok(());
        }
        let consumption = self.table.consumption(files.page_bytes);
        let usual = Computation {
            file: self.shape.file,
            consumption,
            first,
            weighting: Weighting::InTable,
            too_early: false,
        };
        let of = |consumption| Computation { consumption, ..usual };
        let others = [
            (
                "of the same operations without the last word of each read: touch_last is 1",
                of(Consumption { touch_last: false, ..consumption }),
            ),
            (
                "of the first word of each page: touch_at says which word of a page counts",
                of(consumption.touching(0)),
            ),
            ("of operations from 0 on: begin with first_operation", Computation { first: 0, ..usual }),
            (
                "of the file of another job: forget it at close",
                Computation { file: 1 - self.shape.file, ..usual },
            ),
            ("of all bytes: consume is touch", of(Consumption { consume: Consume::Sum, ..consumption })),
            (
                "of one word of each page: consume is sum",
                of(Consumption { consume: Consume::Touch, ..consumption }),
            ),
            (
                "of reads that all count alike: multiply each one's by 2 * its place in the table + 1",
                Computation { weighting: Weighting::Alike, ..usual },
            ),
            (
                "of places counted from the start of each thread's part: count them from the start of the table",
                Computation { weighting: Weighting::InPart, ..usual },
            ),
            (
                "of a table of zeros: it is there from go on, so read it then, and anew with each go",
                Computation { too_early: true, ..usual },
            ),
        ];
        let comes_to = |computation: &Computation| {
            total(&|thread, operations| self.sum(files, computation, thread, operations), operations) == found
        };
        let known = others.iter().find(|(_, computation)| comes_to(computation)).map(|(what, _)| *what);
        let of_phase = threads == 1 && reply.latency_operations > 0;
        let phase_alone = of_phase && total(&right, &[reply.operations]) == found;
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
