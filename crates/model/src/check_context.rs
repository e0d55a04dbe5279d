//! Facts that the checks of a sample need besides its cell and its evidence. A run file holds them,
//! so that its reader can apply the checks again.

use serde::{Deserialize, Serialize};

/// Page sizes of Linux are 4 KiB to 64 KiB; the bounds leave room on both sides.
const PAGES: std::ops::RangeInclusive<u64> = 512..=1 << 24;

/// Facts about the machine and the source; equal for all samples that one process takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckContext {
    /// Size of a page.
    pub page_bytes: u64,
    /// CPUs that the worker may use.
    pub cpus: u32,
    /// Time that an honest worker takes on this machine between `go` and its answer, outside the
    /// phases: it wakes threads and writes a line, which takes milliseconds on a slow machine.
    pub answer_ns: u64,
    /// True if the time of an answer is left out of the totals of one-shot work: nobody else's
    /// worker takes part, which could hide work in it.
    #[serde(default = "unknown")]
    pub forgives_answers: bool,
    /// True if the file has holes, is compressed, or is served by a program, so that fewer bytes
    /// come from the device for a worker than it reads.
    pub sparse_or_compressed_bytes: bool,
    /// True if the file is stored in memory, as on tmpfs: nothing of it comes from a device, and
    /// nothing is written back.
    pub memory_backed: bool,
    /// True if a write may bypass the volatile cache of the device (FUA), as far as is known: then
    /// it flushes nothing.
    #[serde(default = "unknown")]
    pub writes_through: bool,
    /// Readahead of the device when the run began; applies to cells that ask for none.
    pub readahead_bytes: Option<u64>,
    /// The requested heartbeats, if any.
    pub beating: Option<Beating>,
}

/// The value of a fact that older files do not say: it may be so.
fn unknown() -> bool {
    true
}

/// Heartbeats that the supervisor requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beating {
    /// Interval of heartbeats.
    pub interval_ns: u64,
    /// Duration of the idle phase.
    pub idle_ns: u64,
}

impl CheckContext {
    /// Check that each number is plausible for a machine. The error names the first that is not.
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
