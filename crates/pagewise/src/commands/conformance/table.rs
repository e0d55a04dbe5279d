//! Reads by a table of offsets as a run has them, and what checksums come of them that are wrong in one known way.

use pagewise_host::{OffsetTable, OperationOrder, Reference, TableMemory};
use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::random::mix;
use pagewise_model::{Bytes, Conditions, Consume, Descriptor, Reads, Skew, Work, Workload};
use pagewise_protocol::{ConversationError, SampleReply};

use super::ground::{Ground, descriptor_path};

/// Entries behind the last part at most: too few for an operation, so nobody does them.
const BEHIND_MOST: u32 = 3;

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
        threads: 1,
        per_thread: false,
        dependent: false,
        span_divisor: 1,
        max_thread_operations: 0,
    };

    fn behind(&self) -> u64 {
        u64::from((self.reads_per_op - 1).min(BEHIND_MOST))
    }

    fn conditions(&self, workload: Workload, ground: &Ground) -> Conditions {
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
        let file_bytes = ground.random[self.file].bytes.len() as u64;
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
    /// What it was drawn for.
    pub conditions: Conditions,
    table: OffsetTable,
    reference: Reference,
    /// In which the entries are since the last `go`.
    order: OperationOrder,
    /// Where the worker finds them: zeros until the first `go`.
    memory: TableMemory,
}

/// How a worker may come to the checksum of a sample.
#[derive(Clone, Copy)]
struct How {
    file: usize,
    consumption: Consumption,
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
    /// Draws the offsets of a shape.
    pub fn draw(shape: &Shape, workload: Workload, ground: &Ground) -> Result<Self, ConversationError> {
        fn lack(error: impl std::fmt::Display) -> ConversationError {
            ConversationError::lack(error.to_string())
        }
        let conditions = shape.conditions(workload, ground);
        let content_seed = ground.random[shape.file].seed();
        let mut table = OffsetTable::with_part(&conditions, mix(ground.seed), shape.part).map_err(lack)?;
        let reference =
            Reference::for_dataset(&table, &conditions, content_seed, ground.page_bytes).map_err(lack)?;
        table.chain_dataset(content_seed).map_err(lack)?;
        let memory = TableMemory::new(table.reads() + shape.behind()).map_err(lack)?;
        Ok(Self { shape: *shape, order: table.as_drawn(), conditions, table, reference, memory })
    }

    /// Where the worker finds it, and how many reads it has.
    pub fn place(&self) -> (String, u64) {
        (descriptor_path(self.memory.file()), self.table.reads() + self.shape.behind())
    }

    /// Puts it where the worker finds it: as it was drawn, or in another order for a `go` that follows others.
    pub fn put(&mut self, anew_from: Option<u64>) {
        self.order = match anew_from {
            None => self.table.as_drawn(),
            Some(first) => self.table.anew(first),
        };
        self.memory.put(&self.table, &self.order);
    }

    /// Some of the offsets, to be read once more.
    pub fn some_offsets(&self) -> Vec<u64> {
        let offsets = self.table.offsets();
        [0, offsets.len() / 2, offsets.len() / 3].map(|read| offsets[read]).to_vec()
    }

    /// What operations of one thread come to that is wrong in some way.
    fn sum(&self, ground: &Ground, how: &How, thread: u32, operations: u64) -> u64 {
        let bytes = &ground.random[how.file].bytes;
        let (per_op, part) = (u64::from(self.shape.reads_per_op), self.shape.part);
        let of_operation = |operation: u64| {
            let in_part = operation * per_op;
            let start = u64::from(thread) * part * per_op + in_part;
            let reads = self.table.operation(&self.order, thread, operation).unwrap_or_default();
            (0u64..).zip(reads).fold(0u64, |total, (read, offset)| {
                let offset = if how.too_early { 0 } else { *offset };
                let end = (offset + self.shape.read_bytes).min(bytes.len() as u64);
                let checksum = how.consumption.of(&bytes[offset.min(end) as usize..end as usize]);
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
            let index = (how.first % part + operation) % part;
            total.wrapping_add(sums[index as usize])
        })
    }

    /// Whether the checksum is that of the operations that the threads say they did; else what it is instead, if that is
    /// known.
    pub fn check(&self, ground: &Ground, reply: &SampleReply, first: u64) -> Result<(), String> {
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
        let reads = self.conditions.reads().expect("it was drawn for reads");
        let consumption = reads.consumption(ground.page_bytes);
        let usual =
            How { file: self.shape.file, consumption, first, weigh: Weigh::InTable, too_early: false };
        let of = |consumption| How { consumption, ..usual };
        let others = [
            (
                "of the same operations without the last word of each read: touch_last is 1",
                of(Consumption { touch_last: false, ..consumption }),
            ),
            ("of operations from 0 on: begin with first_operation", How { first: 0, ..usual }),
            ("of the file of another job: forget it at close", How { file: 1 - self.shape.file, ..usual }),
            ("of all bytes: consume is touch", of(Consumption { consume: Consume::Sum, ..consumption })),
            (
                "of one word of each page: consume is sum",
                of(Consumption { consume: Consume::Touch, ..consumption }),
            ),
            (
                "of reads that all count alike: multiply each one's by 2 * its place in the table + 1",
                How { weigh: Weigh::Alike, ..usual },
            ),
            (
                "of places counted from the start of each thread's part: count them from the start of the table",
                How { weigh: Weigh::InPart, ..usual },
            ),
            (
                "of a table of zeros: it is there from go on, so read it then, and anew with each go",
                How { too_early: true, ..usual },
            ),
        ];
        let comes_to = |how: &How| {
            total(&|thread, operations| self.sum(ground, how, thread, operations), operations) == found
        };
        let known = others.iter().find(|(_, how)| comes_to(how)).map(|(what, _)| *what);
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
