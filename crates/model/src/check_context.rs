//! What the checks of a sample must know beside its cell and its evidence. A run file holds it, so that whoever reads the file
//! can apply the checks again.

use serde::{Deserialize, Serialize};

/// Pages that Linux has are of 4 KiB to 64 KiB.
const PAGES: std::ops::RangeInclusive<u64> = 512..=1 << 24;

/// The machine and the source, as the checks are told them; alike for all samples that one process takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckContext {
    /// Size of a page.
    pub page_bytes: u64,
    /// CPUs that the worker may use.
    pub cpus: u32,
    /// What an honest worker takes on this machine between `go` and its answer beside the phases: it wakes
    /// threads and writes a line, which is milliseconds on a slow machine.
    pub answer_ns: u64,
    /// Whether the file has holes or is compressed, so that fewer bytes come from the device than are read.
    #[serde(alias = "hidden_bytes")]
    pub sparse_or_compressed_bytes: bool,
    /// Whether the file lives in memory, as on tmpfs: then nothing of it comes from a device, and nothing is written back.
    pub memory_backed: bool,
    /// Readahead of the device when the run began, which holds for cells that ask for none.
    pub readahead_bytes: Option<u64>,
    /// The heartbeats that were asked for, if any were.
    pub beating: Option<Beating>,
}

/// Heartbeats that the supervisor asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beating {
    /// Interval of heartbeats.
    pub interval_ns: u64,
    /// How long the worker was to do nothing else.
    pub idle_ns: u64,
}

impl CheckContext {
    /// Whether each number is one that a machine has.
    pub fn check_limits(&self) -> Result<(), String> {
        let Self { page_bytes, cpus, beating, .. } = self;
        if !(page_bytes.is_power_of_two() && PAGES.contains(page_bytes)) {
            return Err(format!("pages of {page_bytes} bytes: no machine has them"));
        }
        if *cpus == 0 || beating.is_some_and(|beating| beating.interval_ns == 0) {
            return Err("checks without a CPU, or of heartbeats without an interval".to_string());
        }
        Ok(())
    }
}
