//! `random-read` and `sequential-read`: reads of one size by a table of offsets.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FileExtent, Offer, WorkParameters, Workload, WorkloadFacts, WorkloadKind};
use crate::checksum::{Consume, Consumption};
use crate::content::Content;
use crate::ensure::ensure;
use crate::format::bytes;
use crate::host_settings::Skew;
use crate::units::Bytes;

const MAX_READS_PER_OP: u32 = 65_536;
/// A read must be small compared with memory.
const MAX_READ: Bytes = Bytes::gib(1);

pub(super) const RANDOM: WorkloadFacts = WorkloadFacts {
    title: "random reads",
    noun: "random reads",
    access: "read",
    kind: WorkloadKind::Reads,
    offer: Offer::Column(0),
    is_one_shot: false,
    starts_cold: false,
    usual_content: Content::Random,
    usual_methods: &["mmap", "mmap:random", "pread", "pread:direct", "uring:direct+depth=32"],
    axes: &[
        "span",
        "read_size",
        "reads_per_op",
        "align",
        "consume",
        "descriptor",
        "skew",
        "dependent",
        "rate",
    ],
};

pub(super) const SEQUENTIAL: WorkloadFacts =
    WorkloadFacts { title: "sequential reads", noun: "sequential reads", ..RANDOM };

/// Reads by the offset table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reads {
    /// Size of one read.
    pub read_bytes: Bytes,
    /// Reads in one operation.
    pub reads_per_op: u32,
    /// Offsets are multiples of this.
    pub align_bytes: Bytes,
    /// Distribution of offsets over the span.
    #[serde(default)]
    pub skew: Skew,
    /// True if each offset within an operation follows from the data of the read before.
    #[serde(default)]
    pub dependent: bool,
    /// Consumption of the bytes.
    pub consume: Consume,
}

impl Reads {
    /// One read per operation, aligned to its size, uniformly distributed.
    pub const fn of(read_bytes: Bytes) -> Self {
        Self {
            read_bytes,
            reads_per_op: 1,
            align_bytes: read_bytes,
            skew: Skew::Uniform,
            dependent: false,
            consume: Consume::Touch,
        }
    }

    /// Bytes that one operation asks for.
    pub fn op_bytes(&self) -> u64 {
        self.read_bytes.0.saturating_mul(u64::from(self.reads_per_op))
    }

    /// Bytes from one drawn offset on: of a read, or of all reads of a sequential operation.
    pub fn drawn_bytes(&self, workload: Workload) -> u64 {
        if workload == Workload::SequentialRead { self.op_bytes() } else { self.read_bytes.0 }
    }

    /// Consumption of the bytes on a machine with pages of `page_bytes`.
    pub fn consumption(&self, page_bytes: u64) -> Consumption {
        Consumption::new(self.consume, page_bytes as usize, self.align_bytes.0)
    }
}

impl WorkParameters for Reads {
    fn operation(&self) -> Vec<String> {
        let size = bytes(self.read_bytes);
        vec![match self.reads_per_op {
            1 => format!("reads of {size}"),
            batch => format!("batches of {batch} reads of {size}"),
        }]
    }

    fn details(&self) -> Vec<String> {
        let Self { read_bytes, reads_per_op: _, align_bytes, skew, dependent, consume } = self;
        let skew = match skew {
            Skew::Zipf { .. } => Some(skew.to_string().replace(':', " ")),
            Skew::Uniform => None,
        };
        let align = (align_bytes != read_bytes).then(|| format!("aligned to {}", bytes(*align_bytes)));
        let dependent = dependent.then(|| "dependent".to_string());
        [align, consume.unless_touched(), skew, dependent].into_iter().flatten().collect()
    }

    fn check(&self, _threads: u32) -> Result<(), String> {
        let Self { read_bytes, reads_per_op, align_bytes, .. } = self;
        ensure(read_bytes.0 > 0, || "a read of 0B reads nothing".to_string())?;
        ensure(*read_bytes <= MAX_READ, || {
            format!("a read of {read_bytes} is too large: write at most {MAX_READ}")
        })?;
        ensure((1..=MAX_READS_PER_OP).contains(reads_per_op), || {
            format!("{reads_per_op} reads in an operation: write 1 to {MAX_READS_PER_OP}")
        })?;
        ensure(align_bytes.0 > 0, || "an alignment of 0B: write 1B for unaligned reads".to_string())
    }

    fn op_bytes(&self, _extent: FileExtent) -> u64 {
        Reads::op_bytes(self)
    }

    fn reads_of(&self, _extent: FileExtent, operations: u64, _piece_bytes: u64) -> u64 {
        operations.saturating_mul(u64::from(self.reads_per_op))
    }

    fn access_bytes(&self) -> Option<u64> {
        Some(self.read_bytes.0)
    }

    fn longest_read(&self) -> Option<u64> {
        Some(self.read_bytes.0)
    }

    fn consume(&self) -> Option<Consume> {
        Some(self.consume)
    }
}

impl fmt::Display for Reads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reads { read_bytes, reads_per_op, align_bytes, skew, dependent, consume } = self;
        write!(formatter, "{read_bytes}x{reads_per_op},align={align_bytes},{consume}")?;
        if *skew != Skew::Uniform {
            write!(formatter, ",{skew}")?;
        }
        formatter.write_str(if *dependent { ",dependent" } else { "" })
    }
}
