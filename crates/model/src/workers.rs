//! Workers of a run: the user's choices, the programs found, their heartbeats and their warm-up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The user's choices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerChoices {
    /// Commands of the user's own workers by name: `--worker name=COMMAND`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, String>,
    /// Options of workers that have some, as `jdk` and `jvm_args`: what was typed, by their names,
    /// which have hyphens on a command line.
    #[serde(flatten)]
    pub options: BTreeMap<String, String>,
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

    /// The value of an option, if it was typed.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_beside_the_other_choices() {
        let text = r#"{"commands":{"mine":"./reader"},"jdk":"/jdk","jvm_args":"-Xmx1g","heartbeat_ns":5}"#;
        let choices: WorkerChoices = serde_json::from_str(text).expect("choices");
        assert_eq!((choices.option("jdk"), choices.option("jvm_args")), (Some("/jdk"), Some("-Xmx1g")));
        assert_eq!((choices.options.len(), choices.heartbeat_ns), (2, 5));
        assert_eq!(serde_json::to_string(&choices).expect("json"), text);
        assert!(serde_json::from_str::<WorkerChoices>("{}").expect("none").is_default());
    }
}
