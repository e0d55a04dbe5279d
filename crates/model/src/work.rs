//! Workloads: accesses, their order, and the consumption of the bytes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::checksum::{Consume, Consumption};
use crate::content::Content;
use crate::host_settings::Skew;
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
    }
}

impl Workload {
    /// True if it reads; otherwise it writes.
    pub const fn is_reading(self) -> bool {
        matches!(self, Workload::RandomRead | Workload::SequentialRead | Workload::Scan)
    }

    /// True if its work is done once and by one thread, so that methods are ranked by the total of set-up, measured
    /// region and tear-down; otherwise they are ranked by their rate.
    pub const fn is_one_shot(self) -> bool {
        matches!(self, Workload::Scan | Workload::Append | Workload::Fill)
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
    pub laps: u32,
    /// Time by which written bytes must be on the device.
    #[serde(default)]
    pub sync: Sync,
}

/// A new file in blocks, front to back, by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fill {
    /// Size of a block.
    pub block_bytes: Bytes,
    /// Time by which written bytes must be on the device.
    #[serde(default)]
    pub sync: Sync,
}

/// Common part of appending and filling: records of one size, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Writes {
    /// Size of a record or block.
    pub record_bytes: Bytes,
    /// Number of passes over the file.
    pub laps: u32,
    /// Time by which written bytes must be on the device.
    pub sync: Sync,
}

/// Time by which written bytes must be on the device: by msync(2) of a mapping, by fdatasync(2) otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sync {
    /// Left to the kernel.
    #[default]
    None,
    /// At the end, as a part of tear-down.
    End,
    /// Whenever this many more bytes have been written, and at the end; within the measured region.
    Every(Bytes),
}

impl Reads {
    /// Bytes that one operation asks for.
    pub fn op_bytes(&self) -> u64 {
        self.read_bytes.0.saturating_mul(u64::from(self.reads_per_op))
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
            Work::Append(Append { record_bytes, laps, sync }) => Some(Writes { record_bytes, laps, sync }),
            Work::Fill(Fill { block_bytes, sync }) => {
                Some(Writes { record_bytes: block_bytes, laps: 1, sync })
            }
            _ => None,
        }
    }

    /// Consumption of the bytes, if any are read.
    pub const fn consume(&self) -> Option<Consume> {
        match self {
            Work::RandomRead(reads) | Work::SequentialRead(reads) => Some(reads.consume),
            Work::Scan(scan) => Some(scan.consume),
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
            _ => BUFFER_BYTES,
        }
    }
}

/// All parameters of the work; a part of a cell's id.
impl fmt::Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sync = |sync: &Sync| if *sync == Sync::None { String::new() } else { format!(",sync={sync}") };
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
            Work::Append(append) => {
                write!(formatter, "{},laps={}{}", append.record_bytes, append.laps, sync(&append.sync))
            }
            Work::Fill(fill) => write!(formatter, "{}{}", fill.block_bytes, sync(&fill.sync)),
        }
    }
}

impl fmt::Display for Sync {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sync::None => formatter.pad("none"),
            Sync::End => formatter.pad("end"),
            Sync::Every(bytes) => formatter.pad(&format!("every:{bytes}")),
        }
    }
}

impl FromStr for Sync {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("every:")) {
            ("none", _) => Ok(Sync::None),
            ("end", _) => Ok(Sync::End),
            (_, Some(size)) => match size.parse::<Bytes>() {
                Ok(Bytes(0)) => {
                    Err("invalid sync 'every:0B': write the bytes between two syncs, as in every:1MiB".into())
                }
                Ok(bytes) => Ok(Sync::Every(bytes)),
                Err(error) => Err(error.to_string()),
            },
            _ => Err(format!("unknown sync '{text}': write one of none, end, every:SIZE")),
        }
    }
}

impl schemars::JsonSchema for Sync {
    fn schema_name() -> Cow<'static, str> {
        "Sync".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

impl Serialize for Sync {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sync {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_is_written_as_typed() {
        for text in ["none", "end", "every:1MiB", "every:100B"] {
            assert_eq!(text.parse::<Sync>().expect(text).to_string(), text);
        }
        for nonsense in ["", "always", "every", "every:", "every:0B", "every:4096", "end:1MiB"] {
            assert!(nonsense.parse::<Sync>().is_err(), "{nonsense:?} was taken");
        }
    }

    #[test]
    fn work_is_flat_in_json() {
        let append = Append { record_bytes: Bytes(100), laps: 1, sync: Sync::Every(Bytes::mib(1)) };
        let text = serde_json::to_string(&Work::Append(append)).expect("json");
        assert_eq!(text, r#"{"workload":"append","record_bytes":100,"laps":1,"sync":"every:1MiB"}"#);
        assert_eq!(serde_json::from_str::<Work>(&text).expect("back"), Work::Append(append));
    }
}
