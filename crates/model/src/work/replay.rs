//! `replay`: the reads of a trace, of a file or of several.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FileExtent, Offer, OtherWorkers, WorkParameters, WorkloadFacts, WorkloadKind};
use crate::checksum::{Consume, Consumption};
use crate::content::Content;
use crate::ensure::ensure;
use crate::format::{bytes, counted, time};
use crate::trace::entry::LONGEST_ENTRY;
use crate::trace::key::TraceKey;
use crate::units::Bytes;

pub(super) const FACTS: WorkloadFacts = WorkloadFacts {
    title: "replay",
    noun: "the reads of the trace",
    access: "trace",
    kind: WorkloadKind::Reads,
    // What is read ahead elsewhere are the next reads of a table, which a program may not know yet.
    offer: Offer::Native {
        accesses: &["mmap", "pread", "uring"],
        without: &["prefetch"],
        others: OtherWorkers::OfUsers,
    },
    is_one_shot: true,
    starts_cold: true,
    usual_content: Content::Random,
    usual_methods: &["mmap", "mmap:random", "pread", "pread:random", "pread:direct", "uring:direct+depth=32"],
    axes: &["consume", "descriptor", "as_fast_as_possible"],
};

/// Files whose reads are replayed together, each of which is open while they are.
pub const MAX_FILES: u32 = 10_000;
/// The most gaps that a replay keeps without being asked to, in ns: each method waits for them in
/// each round.
pub const USUAL_GAPS_NS: u64 = 2_000_000_000;
/// The most gaps of a replay, in ns.
pub const MOST_GAPS_NS: u64 = 60_000_000_000;

/// The reads of files of a trace, each thread's in its order. An operation is the reads of one
/// thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Replay {
    /// The trace, as its trailer names it.
    pub trace: TraceKey,
    /// Index of the file in it; of several, of the first one.
    pub file: u32,
    /// Number of files.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub files: u32,
    /// Reads, those that are longer than [`crate::trace::LONGEST_ENTRY`] in pieces.
    pub reads: u64,
    /// Bytes of the reads.
    pub read_bytes: Bytes,
    /// The longest of them.
    pub longest: Bytes,
    /// Threads with reads of their own; so many do them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub trace_threads: u32,
    /// Memory of the program without a file, which the worker holds too.
    pub ballast: Bytes,
    /// Consumption of the bytes.
    pub consume: Consume,
    /// Requests of the program to the kernel to read ahead, which methods make at the same places
    /// if they read as the program did ([`Method::asks_to_read_ahead`]).
    ///
    /// [`Method::asks_to_read_ahead`]: crate::Method::asks_to_read_ahead
    #[serde(default, skip_serializing_if = "is_none")]
    pub read_ahead: u64,
    /// Sum of the gaps between the reads, in which the program did something else, if they are
    /// kept; `None`: the reads are as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps_ns: Option<u64>,
}

fn one() -> u32 {
    1
}

fn is_none(number: &u64) -> bool {
    *number == 0
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

impl Replay {
    /// Of a number that all threads have together, the part of so many operations: on average,
    /// unless they are all.
    fn part(&self, all: u64, operations: u64) -> u64 {
        let part = u128::from(all) * u128::from(operations) / u128::from(self.trace_threads.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// Consumption of the bytes on a machine with pages of `page_bytes`: reads begin anywhere.
    pub fn consumption(&self, page_bytes: u64) -> Consumption {
        Consumption::new(self.consume, page_bytes as usize, 1)
    }
}

impl WorkParameters for Replay {
    fn operation(&self) -> Vec<String> {
        let order = if self.trace_threads == 1 { "in their order" } else { "in the order of each thread" };
        let (reads, read_bytes) = (counted(self.reads, "read"), bytes(self.read_bytes));
        // The program did something else between them.
        let pace = match self.gaps_ns {
            None => "as fast as possible".to_string(),
            Some(gaps_ns) => format!("with the program's gaps between them ({} in all)", time(gaps_ns)),
        };
        let of_files = match self.files {
            1 => String::new(),
            files => format!(", of {}", counted(u64::from(files), "file")),
        };
        let ahead = match self.read_ahead {
            0 => String::new(),
            requests => format!(", with the program's {} to read ahead", counted(requests, "request")),
        };
        vec![format!("{reads} of {read_bytes} in all{of_files}, {order}, {pace}{ahead}")]
    }

    fn details(&self) -> Vec<String> {
        let ballast = self.ballast;
        let reserved = (ballast.0 > 0).then(|| format!("{} of program memory reserved", bytes(ballast)));
        reserved.into_iter().chain(self.consume.unless_touched()).collect()
    }

    fn check(&self, threads: u32) -> Result<(), String> {
        ensure(self.reads > 0 && self.read_bytes.0 > 0, || "a trace without a read".to_string())?;
        ensure(self.trace_threads == threads, || {
            let recorded = counted(u64::from(self.trace_threads), "thread");
            format!("a trace of {recorded} is replayed by as many, and not by {threads}")
        })?;
        ensure((1..=MAX_FILES).contains(&self.files), || {
            format!("a replay of {} files: at most {MAX_FILES} are replayed together", self.files)
        })?;
        ensure(u64::from(threads) <= self.reads, || "a thread of a trace without a read".to_string())?;
        ensure(self.gaps_ns.is_none() || threads == 1, || {
            format!("the gaps of a trace are kept by one thread, and not by {threads}")
        })?;
        ensure(self.gaps_ns() <= MOST_GAPS_NS, || {
            format!("gaps of {} in all: a replay keeps at most {}", time(self.gaps_ns()), time(MOST_GAPS_NS))
        })?;
        ensure((1..=LONGEST_ENTRY).contains(&self.longest.0), || {
            format!("a read of {} in a trace: it has at most {}", self.longest, Bytes(LONGEST_ENTRY))
        })
    }

    fn op_bytes(&self, _extent: FileExtent) -> u64 {
        self.part(self.read_bytes.0, 1)
    }

    fn bytes_of(&self, _extent: FileExtent, operations: u64) -> u64 {
        self.part(self.read_bytes.0, operations)
    }

    fn fixed_operations(&self, _extent: FileExtent) -> Option<u64> {
        Some(u64::from(self.trace_threads))
    }

    fn reads_of(&self, _extent: FileExtent, operations: u64, _piece_bytes: u64) -> u64 {
        self.part(self.reads, operations)
    }

    fn access_bytes(&self) -> Option<u64> {
        Some(self.read_bytes.0 / self.reads.max(1))
    }

    fn longest_read(&self) -> Option<u64> {
        Some(self.longest.0)
    }

    fn consume(&self) -> Option<Consume> {
        Some(self.consume)
    }

    fn ballast_bytes(&self) -> u64 {
        self.ballast.0
    }

    fn gaps_ns(&self) -> u64 {
        self.gaps_ns.unwrap_or(0)
    }

    /// A trace is replayed to its end.
    fn cold_divisor(&self) -> u64 {
        1
    }
}

impl fmt::Display for Replay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Replay {
            trace,
            file,
            files,
            reads,
            read_bytes,
            longest: _,
            trace_threads: _,
            ballast,
            consume,
            read_ahead,
            gaps_ns,
        } = self;
        write!(formatter, "{trace}:{file},{reads}x{read_bytes},ballast={ballast},{consume}")?;
        if *files > 1 {
            write!(formatter, ",files={files}")?;
        }
        if *read_ahead > 0 {
            write!(formatter, ",read-ahead={read_ahead}")?;
        }
        gaps_ns.map_or(Ok(()), |gaps_ns| write!(formatter, ",gaps={gaps_ns}ns"))
    }
}
