//! Workers of a run: the user's choices, the programs found, their heartbeats and their warm-up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The user's choices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerChoices {
    /// Commands of the user's own workers by name: `--worker name=COMMAND`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, String>,
    /// The JDK to use, if named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jdk: Option<String>,
    /// Arguments of the JVM that replace pagewise's own.
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
    /// True if nothing was chosen.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A worker other than pagewise itself, as a run found it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFound {
    /// `jvm`, `go`, `python`, or the name that the user gave.
    pub name: String,
    /// Version of its toolchain, or the one it reports; empty if unknown.
    #[serde(default)]
    pub version: String,
    /// Command line, with flags.
    #[serde(default)]
    pub command: Vec<String>,
    /// Candidates that were skipped when it was looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Reason that its cells are unavailable, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// Delays of the heartbeats of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Heartbeat {
    /// `thread`, `virtual-thread`, `safepoint`, `goroutine`, or a word of the user's own worker.
    pub kind: String,
    /// Delays while the worker was idle.
    pub idle: Delays,
    /// Delays within the measured region.
    pub busy: Delays,
}

/// A histogram of the delays of heartbeats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Delays {
    /// Upper ends of buckets, ascending.
    pub ns: Vec<u64>,
    /// Beats in each bucket.
    pub counts: Vec<u64>,
}

/// Warm-up of a worker whose code is compiled as it runs: it worked on a small file, in the same
/// way, until its rate stopped rising.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkerWarmup {
    /// Operations per second in intervals of about 100 ms, in chronological order.
    pub rates: Vec<u64>,
    /// Duration.
    pub elapsed_ns: u64,
    /// True if the rate had stopped rising when it ended.
    pub steady: bool,
}
