//! Known mistakes of workers in reads by a table, by the checksums to which they lead.

use pagewise_host::OperationOrder;
use pagewise_lab::supervise::accesses::Accesses;
use pagewise_lab::supervise::files::Input;
use pagewise_model::Consume;
use pagewise_model::checksum::{Consumption, weight};
use pagewise_protocol::SampleReply;

/// A sample whose checksum is wrong.
pub struct Summed<'a> {
    pub accesses: &'a Accesses,
    pub order: &'a OperationOrder,
    pub first_operation: u64,
    pub page_bytes: u64,
    /// The file, and that of another job.
    pub files: [&'a Input; 2],
}

/// A way to compute the checksum of a sample.
#[derive(Clone, Copy)]
struct Computation {
    /// Index of the file.
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
    /// Weight of its position in the table.
    InTable,
    /// Weight of its position in the part of its thread.
    InPart,
    /// 1.
    Alike,
}

impl Summed<'_> {
    /// Fail unless the checksum is that of the claimed operations; name the mistake if it is known.
    pub fn check(&self, reply: &SampleReply) -> Result<(), String> {
        let found = reply.checksum()?;
        let (first, operations) = (self.first_operation, &reply.thread_operations);
        let expected = self.accesses.expected_checksum(self.order, reply, first).unwrap_or_default();
        if found == expected {
            return Ok(());
        }
        let phase = SampleReply { thread_operations: vec![reply.operations], ..reply.clone() };
        let of_phase = operations.len() == 1 && reply.latency_operations > 0;
        let phase_alone =
            of_phase && self.accesses.expected_checksum(self.order, &phase, first) == Some(found);
        let why = match phase_alone {
            true => "; that is of the throughput phase alone: add the latency phase".to_string(),
            false => {
                self.mistake(found, operations).map_or(String::new(), |what| format!("; that is {what}"))
            }
        };
        Err(format!(
            "checksum {found:016x}, {operations:?} operations from {first} on come to {expected:016x}{why}"
        ))
    }

    fn mistake(&self, found: u64, operations: &[u64]) -> Option<&'static str> {
        let contents = self.files.map(|file| {
            let mut bytes = vec![0; file.file_bytes as usize];
            let _ = file.true_bytes(0, &mut bytes);
            bytes
        });
        let consumption = self.accesses.table.consumption(self.page_bytes);
        let first = self.first_operation;
        let usual =
            Computation { file: 0, consumption, first, weighting: Weighting::InTable, too_early: false };
        let of = |consumption| Computation { consumption, ..usual };
        let known = [
            (
                "of the same operations without the last word of each read: touch_last is 1",
                of(Consumption { touch_last: false, ..consumption }),
            ),
            (
                "of the first word of each page: touch_at says which word of a page counts",
                of(consumption.touching(0)),
            ),
            ("of operations from 0 on: begin with first_operation", Computation { first: 0, ..usual }),
            ("of the file of another job: forget it at close", Computation { file: 1, ..usual }),
            ("of all bytes: consume is touch", of(Consumption { consume: Consume::Sum, ..consumption })),
            (
                "of one word of each page: consume is sum",
                of(Consumption { consume: Consume::Touch, ..consumption }),
            ),
            (
                "of reads that all count alike: multiply each one's by 2 * its position in the table + 1",
                Computation { weighting: Weighting::Alike, ..usual },
            ),
            (
                "of positions counted from the start of each thread's part: count them from the start of the table",
                Computation { weighting: Weighting::InPart, ..usual },
            ),
            (
                "of a table of zeros: it is there from go on, so read it then, and anew with each go",
                Computation { too_early: true, ..usual },
            ),
        ];
        let comes_to = |computation: &Computation| {
            let bytes = &contents[computation.file];
            let of_thread =
                |(thread, operations): (u32, &u64)| self.sum(bytes, computation, thread, *operations);
            (0u32..).zip(operations).map(of_thread).fold(0u64, u64::wrapping_add) == found
        };
        known.iter().find(|(_, computation)| comes_to(computation)).map(|(what, _)| *what)
    }

    /// Checksum of the operations of one thread by this computation.
    fn sum(&self, bytes: &[u8], computation: &Computation, thread: u32, operations: u64) -> u64 {
        let table = &self.accesses.table;
        let (per_op, part) = (u64::from(table.shape().reads_per_op), table.operations_per_thread());
        let read_bytes = table.shape().read_bytes.0;
        let of_operation = |operation: u64| {
            let in_part = operation * per_op;
            let start = u64::from(thread) * part * per_op + in_part;
            let reads = table.operation(self.order, thread, operation).unwrap_or_default();
            (0u64..).zip(reads).fold(0u64, |total, (read, offset)| {
                let offset = if computation.too_early { 0 } else { *offset };
                let end = (offset + read_bytes).min(bytes.len() as u64);
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
        let pass = sums.iter().copied().fold(0, u64::wrapping_add);
        (0..operations % part).fold(pass.wrapping_mul(operations / part), |total, operation| {
            let index = (computation.first % part + operation) % part;
            total.wrapping_add(sums[index as usize])
        })
    }
}
