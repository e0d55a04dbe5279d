//! Workloads: accesses, their order, and the consumption of the bytes.
//!
//! A workload is a line of the registry and a module: its [`WorkloadFacts`], and the struct of its
//! [`WorkParameters`]. Limits, labels, estimates and checks follow from them.

mod append;
mod extent;
mod facts;
mod fill;
mod parameters;
mod reads;
mod replay;
mod scan;
mod update;
mod writes;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::checksum::Consume;
use crate::sync::Sync;
use crate::words::words;

pub use append::Append;
pub use extent::FileExtent;
pub use facts::{Offer, OtherWorkers, WorkloadFacts, WorkloadKind};
pub use fill::Fill;
pub use parameters::WorkParameters;
pub use reads::Reads;
pub use replay::{MAX_FILES, MOST_GAPS_NS, Replay, USUAL_GAPS_NS};
pub use scan::Scan;
pub use update::Update;
pub use writes::Writes;

/// The registry: the word of each workload, its parameters and its facts.
macro_rules! workloads {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal, $parameters:ident, $facts:expr;)+) => {
        words! {
            /// Accesses and their order.
            Workload, "workload" {
                $($(#[doc = $doc])+ $variant = $word,)+
            }
        }

        impl Workload {
            /// The properties that all work of this kind has.
            pub const fn facts(self) -> &'static WorkloadFacts {
                match self { $(Workload::$variant => &$facts,)+ }
            }
        }

        /// The work, with all parameters that define it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "workload", rename_all = "kebab-case")]
        pub enum Work {
            $($(#[doc = $doc])+ $variant($parameters),)+
        }

        impl Work {
            /// The workload's name.
            pub const fn workload(&self) -> Workload {
                match self { $(Work::$variant(_) => Workload::$variant,)+ }
            }

            /// Parameters of the work.
            pub fn parameters(&self) -> &dyn WorkParameters {
                match self { $(Work::$variant(parameters) => parameters,)+ }
            }
        }
    };
}

workloads! {
    /// Reads at random offsets.
    RandomRead = "random-read", Reads, reads::RANDOM;
    /// One random start for each operation, then contiguous reads.
    SequentialRead = "sequential-read", Reads, reads::SEQUENTIAL;
    /// The whole file once, front to back.
    Scan = "scan", Scan, scan::FACTS;
    /// Records into a ring file.
    Append = "append", Append, append::FACTS;
    /// A new file in blocks, front to back, once.
    Fill = "fill", Fill, fill::FACTS;
    /// Blocks of a file that exists, in no order.
    Update = "update", Update, update::FACTS;
    /// The reads of a trace, in its order, once.
    Replay = "replay", Replay, replay::FACTS;
}

impl Workload {
    /// True if it reads; otherwise it writes.
    pub const fn is_reading(self) -> bool {
        !matches!(self.facts().kind, WorkloadKind::Writes)
    }

    /// True if its work is done once. Whether methods are ranked by their total or their rate
    /// follows from the conditions ([`crate::Conditions::is_one_shot`]).
    pub const fn is_one_shot(self) -> bool {
        self.facts().is_one_shot
    }

    /// True if it writes blocks of a file; otherwise records, if it writes.
    pub fn writes_blocks(self) -> bool {
        self.facts().axes.contains(&"block_size")
    }

    /// The workloads that have an axis besides those that all have.
    pub fn with_axis(axis: &str) -> Vec<Self> {
        Self::ALL.iter().copied().filter(|workload| workload.facts().axes.contains(&axis)).collect()
    }
}

impl Work {
    /// The reads, if there is an offset table.
    pub const fn reads(&self) -> Option<&Reads> {
        match self {
            Work::RandomRead(reads) | Work::SequentialRead(reads) => Some(reads),
            Work::Scan(_) | Work::Append(_) | Work::Fill(_) | Work::Update(_) | Work::Replay(_) => None,
        }
    }

    /// The reads, mutable.
    pub const fn reads_mut(&mut self) -> Option<&mut Reads> {
        match self {
            Work::RandomRead(reads) | Work::SequentialRead(reads) => Some(reads),
            Work::Scan(_) | Work::Append(_) | Work::Fill(_) | Work::Update(_) | Work::Replay(_) => None,
        }
    }

    /// Requests to read ahead that a recorded program made.
    pub const fn read_ahead(&self) -> u64 {
        match self {
            Work::Replay(replay) => replay.read_ahead,
            _ => 0,
        }
    }

    /// The records, if the workload writes.
    pub fn writes(&self) -> Option<Writes> {
        self.parameters().writes()
    }

    /// True if a table has the offsets of its accesses.
    pub fn has_table(&self) -> bool {
        self.parameters().longest_read().is_some() || self.writes().is_some_and(|writes| writes.is_update())
    }

    /// The work with written bytes left to the kernel.
    pub const fn without_sync(self) -> Self {
        match self {
            Work::Append(append) => Work::Append(Append { sync: Sync::None, sync_call: None, ..append }),
            Work::Fill(fill) => Work::Fill(Fill { sync: Sync::None, sync_call: None, ..fill }),
            Work::Update(update) => Work::Update(Update { sync: Sync::None, sync_call: None, ..update }),
            work => work,
        }
    }

    /// Consumption of the bytes, if any are read.
    pub fn consume(&self) -> Option<Consume> {
        self.parameters().consume()
    }
}

/// All parameters of the work; a part of a cell's id.
impl fmt::Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.parameters(), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::SyncCall;
    use crate::units::Bytes;

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
