//! Workers of a run: what the user chose, what was found, how they beat and how they practised.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the user chose of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerChoices {
    /// Commands of the user's own workers by name: `--worker name=COMMAND`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, String>,
    /// The JDK to take, where one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jdk: Option<String>,
    /// Arguments of the JVM in place of pagewise's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jvm_args: Option<String>,
    /// Interval of heartbeats; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub heartbeat_ns: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl WorkerChoices {
    /// Whether nothing was chosen.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A worker other than pagewise itself, as a run found it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFound {
    /// `jvm`, `go`, `python`, or the name that the user gave.
    pub name: String,
    /// Version of its toolchain, or what it says of itself; empty where it could not be had.
    #[serde(default)]
    pub version: String,
    /// How it is started, with its flags.
    #[serde(default)]
    pub command: Vec<String>,
    /// What was passed over to find it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why its cells are unavailable, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// How late the heartbeats of one kind came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// `thread`, `virtual-thread`, `safepoint`, `goroutine`, or a word of the user's own worker.
    pub kind: String,
    /// While the worker did nothing.
    pub idle: Delays,
    /// Within the measured region.
    pub busy: Delays,
}

/// A histogram of delays: by how much beats came late.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays {
    /// Upper ends of buckets, ascending.
    pub ns: Vec<u64>,
    /// Beats in each.
    pub counts: Vec<u64>,
}

/// How a worker whose code is compiled as it runs was made ready: it worked on a small file, in the same way, until it
/// got no faster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerWarmup {
    /// Operations per second in stretches of about 100 ms, in the order of time.
    pub rates: Vec<u64>,
    /// How long it took in all.
    pub elapsed_ns: u64,
    /// Whether the rate had stopped rising when it ended.
    pub steady: bool,
}
