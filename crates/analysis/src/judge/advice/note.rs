//! Findings that explain the result of a comparison. The report makes a sentence of each.

use std::collections::BTreeMap;

use pagewise_model::{Bytes, Consume, SyncCall};
use serde::Serialize;

use super::insight::FillFigures;
use crate::judge::bound::BoundName;
use crate::judge::reasons::{CellReason, UnrankedReason};

/// A finding that explains the result of a comparison. Methods come with their figures.
#[allow(clippy::large_enum_variant)] // There are few.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// Bytes that a method reads from the device per requested byte.
    Amplified(String, f64),
    /// Major faults per operation of a mapping that is behind.
    MajorFaults(String, f64),
    /// Page faults per operation of a mapping that is behind although nothing came from the device.
    MinorFaults(String, f64),
    /// Refaults per operation, because of the memory limit.
    Refaults(Vec<(String, f64)>),
    /// Syncs that leave bytes in memory or in a volatile cache.
    NotDurable {
        /// The call.
        call: SyncCall,
        /// True if the file is stored in memory.
        in_memory: bool,
    },
    /// Bytes that have not reached the device when the clock stops.
    StillDirty {
        /// The methods that leave any, with their bytes.
        methods: Vec<(String, u64)>,
        /// The size of the file.
        of_bytes: Bytes,
        /// True if there are several methods and all of them do.
        every: bool,
    },
    /// Intervals that took over a millisecond too long: their number in half of the samples, and
    /// the longest in ns.
    Stalls(Vec<(String, u64, u64)>),
    /// Bytes that the device wrote, for any process, per byte that reached the file.
    WrittenAgain(Vec<(String, f64)>),
    /// No buffer is advised, for the reason that no method is.
    NoBuffer,
    /// No buffer is advised for methods of a base, because too few of them have figures.
    NoBufferOf(String, Vec<Lack>),
    /// The buffers of a base.
    Buffers(Buffers),
    /// The smallest good buffer by the size of the file, for records of one size.
    BufferByFileSize(Bytes, Vec<(String, FilesByBuffer)>),
    /// Nothing is known of what a method could gain over a stream.
    UnknownGain(Lack),
    /// The share of the device's bandwidth that each method reaches, the largest first.
    Shares(Vec<(String, f64)>),
    /// The methods that each resource limits.
    Limits(Vec<(BoundName, Vec<String>)>),
    /// The cost of reading every byte.
    Consuming {
        /// The way in which bytes are read.
        consume: Consume,
        /// The method.
        method: String,
        /// Total.
        full_ns: u64,
        /// Total where a word of each page is read.
        touched_ns: u64,
        /// True if the two are distinguishable.
        costs: bool,
    },
    /// Nothing is known of what prefaulting gains.
    UnknownPrefault(Lack),
    /// A thread that touches pages ahead does not hide their faults.
    Unhidden {
        /// The method with that thread.
        pretouch: FillFigures,
        /// The method that prefaults.
        prefaulted: FillFigures,
        /// The mapping without options.
        plain: FillFigures,
    },
    /// The time of a block, with its page faults: p99.9 and longest.
    Blocks(Vec<(String, u64, u64)>),
}

/// Sizes of files by their smallest good buffer; true if a smaller one is unclear.
pub type FilesByBuffer = BTreeMap<Bytes, Vec<(Bytes, bool)>>;

/// Reason that the figures of a method are not compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Lack {
    /// The method is not ranked, for this reason.
    NotRanked(String, UnrankedReason),
    /// The method has no figures, for this reason.
    NoFigures(String, Box<CellReason>),
    /// The method has so many valid rounds, and a verdict needs more.
    FewRounds(String, usize),
    /// The share of the device that it reaches was not measured.
    NoShare(String),
    /// No plain stream is among the methods.
    NoStream,
    /// The mapping without options is not among the methods.
    NoPlainMapping,
    /// No method that prefaults is ranked.
    NoPrefault,
}

/// Methods of one comparison that differ only in their buffer.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Buffers {
    /// The method without its buffer: `mmap:prealloc`.
    pub base: String,
    /// The smallest buffer from which on, up to the best, all are within `bound`; 0: none needed.
    pub smallest_bytes: Bytes,
    /// The largest buffer up to which all are within `bound`.
    pub largest_bytes: Bytes,
    /// The most that any of those may be slower than the best, as a share; 0 if there is only the
    /// best.
    pub bound: f64,
    /// The best buffer; 0: none.
    pub best_bytes: Bytes,
    /// Nanoseconds per record with the best.
    pub best_ns_per_op: f64,
    /// Buffers outside of that range which these rounds do not show to be slower.
    pub unclear_bytes: Vec<Bytes>,
    /// The most that each of those may be slower than the best, as a share; `None` with too few
    /// rounds.
    #[serde(skip)]
    pub unclear_bounds: Vec<Option<f64>>,
    /// Buffers that are slower, and the best over each.
    #[serde(skip)]
    pub costs: Vec<(Bytes, f64)>,
    /// Methods of this base that could not be compared.
    #[serde(skip)]
    pub missing: Vec<Lack>,
}
