//! Workloads: accesses, their order, and the consumption of the bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::checksum::{Consume, Consumption};
use crate::content::Content;
use crate::host_settings::Skew;
use crate::sync::{Sync, SyncCall};
use crate::trace::key::TraceKey;
use crate::units::Bytes;
use crate::words::words;

words! {
    /// Accesses and their order.
    Workload, "workload" {
        /// Reads at random offsets.
        RandomRead = "random-read",
        /// One random start for each operation, then contiguous reads.
        SequentialRead = "sequential-read",
        /// The whole file once, front to back.
        Scan = "scan",
        /// Records into a ring file.
        Append = "append",
        /// A new file in blocks, front to back, once.
        Fill = "fill",
        /// The reads of a trace, in its order, once.
        Replay = "replay",
    }
}

impl Workload {
    /// True if it reads; otherwise it writes.
    pub const fn is_reading(self) -> bool {
        matches!(self, Workload::RandomRead | Workload::SequentialRead | Workload::Scan | Workload::Replay)
    }

    /// True if its work is done once. Whether methods are ranked by their total or their rate
    /// follows from the conditions ([`crate::Conditions::is_one_shot`]).
    pub const fn is_one_shot(self) -> bool {
        matches!(self, Workload::Scan | Workload::Append | Workload::Fill | Workload::Replay)
    }
}

/// The work, with all parameters that define it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "workload", rename_all = "kebab-case")]
pub enum Work {
    /// Reads at random offsets.
    RandomRead(Reads),
    /// One random start for each operation, then contiguous reads.
    SequentialRead(Reads),
    /// The whole file once; one operation.
    Scan(Scan),
    /// Records into a ring file; an operation is a record.
    Append(Append),
    /// A new file in blocks; an operation is a block.
    Fill(Fill),
    /// The reads of a trace; one operation.
    Replay(Replay),
}

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
}

/// The whole file, front to back, by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Scan {
    /// Consumption of the bytes.
    pub consume: Consume,
}

/// Records into a ring file, by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Append {
    /// Size of a record.
    pub record_bytes: Bytes,
    /// Number of passes over the ring.
    pub passes: u32,
    /// Time by which written bytes must be on the device.
    #[serde(default)]
    pub sync: Sync,
    /// The call by which they get there; `None`: the usual one of the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_call: Option<SyncCall>,
}

/// A new file in blocks, front to back, by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fill {
    /// Size of a block.
    pub block_bytes: Bytes,
    /// Time by which written bytes must be on the device.
    #[serde(default)]
    pub sync: Sync,
    /// The call by which they get there; `None`: the usual one of the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_call: Option<SyncCall>,
}

/// The reads of a trace of one file, each thread's in its order. An operation is the reads of one
/// thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Replay {
    /// The trace, as its trailer names it.
    pub trace: TraceKey,
    /// Index of the file in it.
    pub file: u32,
    /// Reads, those that are longer than [`crate::trace::LONGEST_ENTRY`] in pieces.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: Bytes,
    /// The longest of them.
    pub longest: Bytes,
    /// Threads with reads of their own; so many do them.
    #[serde(default = "one_thread", skip_serializing_if = "is_one_thread")]
    pub trace_threads: u32,
    /// Memory of the program without a file, which the worker holds too.
    pub ballast: Bytes,
    /// Consumption of the bytes.
    pub consume: Consume,
}

fn one_thread() -> u32 {
    1
}

fn is_one_thread(threads: &u32) -> bool {
    *threads == 1
}

impl Replay {
    /// Of a number that all threads have together, the part of so many operations.
    pub(crate) fn part(&self, all: u64, operations: u64) -> u64 {
        let part = u128::from(all) * u128::from(operations) / u128::from(self.trace_threads.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// Reads of so many operations: on average, unless they are all.
    pub fn reads_of(&self, operations: u64) -> u64 {
        self.part(self.reads, operations)
    }

    /// Consumption of the bytes on a machine with pages of `page_bytes`: reads begin anywhere.
    pub fn consumption(&self, page_bytes: u64) -> Consumption {
        Consumption::new(self.consume, page_bytes as usize, 1)
    }
}

/// Common part of appending and filling: records of one size, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Writes {
    /// Size of a record or block.
    pub record_bytes: Bytes,
    /// Number of passes over the file.
    pub passes: u32,
    /// Time by which written bytes must be on the device.
    pub sync: Sync,
    /// The call by which they get there; `None`: the usual one of the method.
    pub sync_call: Option<SyncCall>,
}

impl Writes {
    /// The sync in whole records: an interval holds as many as fit, at least one. Otherwise a
    /// record that straddles the end of an interval would make unbuffered methods sync later, and a
    /// buffer that holds an interval less a part of a record would sync half as often.
    pub fn sync_of_records(&self) -> Sync {
        match self.sync {
            Sync::Every(bytes) => {
                let record = self.record_bytes.0.max(1);
                Sync::Every(Bytes((bytes.0 / record).max(1).saturating_mul(record)))
            }
            sync => sync,
        }
    }
}

impl Reads {
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

/// Buffer memory granted to a thread without reads of a single size.
const BUFFER_BYTES: u64 = 1 << 20;

impl Work {
    /// The workload's name.
    pub const fn workload(&self) -> Workload {
        match self {
            Work::RandomRead(_) => Workload::RandomRead,
            Work::SequentialRead(_) => Workload::SequentialRead,
            Work::Scan(_) => Workload::Scan,
            Work::Append(_) => Workload::Append,
            Work::Fill(_) => Workload::Fill,
            Work::Replay(_) => Workload::Replay,
        }
    }

    /// The reads, if there is an offset table.
    pub const fn reads(&self) -> Option<&Reads> {
        match self {
            Work::RandomRead(reads) | Work::SequentialRead(reads) => Some(reads),
            _ => None,
        }
    }

    /// The same, mutable.
    pub const fn reads_mut(&mut self) -> Option<&mut Reads> {
        match self {
            Work::RandomRead(reads) | Work::SequentialRead(reads) => Some(reads),
            _ => None,
        }
    }

    /// The records, if the workload writes.
    pub const fn writes(&self) -> Option<Writes> {
        match *self {
            Work::Append(Append { record_bytes, passes, sync, sync_call }) => {
                Some(Writes { record_bytes, passes, sync, sync_call })
            }
            Work::Fill(Fill { block_bytes, sync, sync_call }) => {
                Some(Writes { record_bytes: block_bytes, passes: 1, sync, sync_call })
            }
            _ => None,
        }
    }

    /// The same, with written bytes left to the kernel.
    pub const fn without_sync(self) -> Self {
        match self {
            Work::Append(append) => Work::Append(Append { sync: Sync::None, sync_call: None, ..append }),
            Work::Fill(fill) => Work::Fill(Fill { sync: Sync::None, sync_call: None, ..fill }),
            work => work,
        }
    }

    /// Consumption of the bytes, if any are read.
    pub const fn consume(&self) -> Option<Consume> {
        match self {
            Work::RandomRead(reads) | Work::SequentialRead(reads) => Some(reads.consume),
            Work::Scan(scan) => Some(scan.consume),
            Work::Replay(replay) => Some(replay.consume),
            Work::Append(_) | Work::Fill(_) => None,
        }
    }

    /// Default content of its dataset.
    pub const fn usual_content(&self) -> Content {
        match self {
            Work::Scan(_) => Content::Text,
            _ => Content::Random,
        }
    }

    /// Buffer memory of a thread.
    pub const fn buffer_bytes(&self) -> u64 {
        match self {
            Work::RandomRead(reads) | Work::SequentialRead(reads) => reads.read_bytes.0,
            Work::Replay(replay) => replay.longest.0,
            _ => BUFFER_BYTES,
        }
    }

    /// Memory that the worker holds besides.
    pub const fn ballast_bytes(&self) -> u64 {
        match self {
            Work::Replay(replay) => replay.ballast.0,
            _ => 0,
        }
    }
}

/// All parameters of the work; a part of a cell's id.
impl fmt::Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sync = |sync: &Sync, call: &Option<SyncCall>| {
            let sync = if *sync == Sync::None { String::new() } else { format!(",sync={sync}") };
            call.map_or(sync.clone(), |call| format!("{sync},sync-call={call}"))
        };
        match self {
            Work::RandomRead(reads) | Work::SequentialRead(reads) => {
                let Reads { read_bytes, reads_per_op, align_bytes, skew, dependent, consume } = reads;
                write!(formatter, "{read_bytes}x{reads_per_op},align={align_bytes},{consume}")?;
                if *skew != Skew::Uniform {
                    write!(formatter, ",{skew}")?;
                }
                formatter.write_str(if *dependent { ",dependent" } else { "" })
            }
            Work::Scan(Scan { consume }) => write!(formatter, "{consume}"),
            Work::Replay(replay) => {
                let Replay { trace, file, reads, read_bytes, longest: _, trace_threads: _, ballast, consume } =
                    replay;
                write!(formatter, "{trace}:{file},{reads}x{read_bytes},ballast={ballast},{consume}")
            }
            Work::Append(append) => {
                let Append { record_bytes, passes, sync: when, sync_call } = append;
                write!(formatter, "{record_bytes},passes={passes}{}", sync(when, sync_call))
            }
            Work::Fill(fill) => {
                write!(formatter, "{}{}", fill.block_bytes, sync(&fill.sync, &fill.sync_call))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_flat_in_json() {
        let sync = Sync::Every(Bytes::mib(1));
        let append = Append { record_bytes: Bytes(100), passes: 1, sync, sync_call: None };
        let text = serde_json::to_string(&Work::Append(append)).expect("json");
        assert_eq!(text, r#"{"workload":"append","record_bytes":100,"passes":1,"sync":"every:1MiB"}"#);
        assert_eq!(serde_json::from_str::<Work>(&text).expect("back"), Work::Append(append));
        let named = Work::Append(Append { sync_call: Some(SyncCall::ODsync), ..append });
        let text = serde_json::to_string(&named).expect("json");
        assert!(text.ends_with(r#","sync":"every:1MiB","sync_call":"O_DSYNC"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Work>(&text).expect("back"), named);
        assert_eq!(named.to_string(), "100B,passes=1,sync=every:1MiB,sync-call=O_DSYNC");
    }
}
