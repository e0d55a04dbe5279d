//! Failed checks: each with its name and a sentence.

use serde::{Deserialize, Serialize};

use crate::words::words;

/// A failed check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failure {
    /// The check.
    pub kind: FailureKind,
    /// One sentence with the numbers.
    pub detail: String,
}

words! {
    /// The checks by name.
    FailureKind, "check" {
        /// The consumed bytes are not those at the offsets of the table.
        WrongChecksum = "wrong-checksum",
        /// A read that was compared byte for byte differs.
        WrongBytes = "wrong-bytes",
        /// The clocks of the worker and the supervisor disagree.
        FalseTime = "false-time",
        /// Counts contradict each other.
        InconsistentCounts = "inconsistent-counts",
        /// The rate exceeds what this machine's memory delivers.
        Implausible = "implausible",
        /// Fewer bytes went through read calls than were claimed.
        MissingReads = "missing-reads",
        /// Fewer bytes went through write calls than were claimed.
        MissingWrites = "missing-writes",
        /// Records are missing from the file or not at their positions.
        LostRecords = "lost-records",
        /// The page cache was not empty before a cold sample, or the bytes did not come from the
        /// device.
        NotCold = "not-cold",
        /// The page cache was not full before a warm sample, or bytes came from the device.
        NotWarm = "not-warm",
        /// The page cache was not, before a replay, as it was when the program was recorded.
        NotAsRecorded = "not-as-recorded",
        /// A cold sample brought more of the file into the cache than allowed.
        ColdOverrun = "cold-overrun",
        /// The advice, flag or huge page that defines the method is not in force.
        NotInForce = "not-in-force",
        /// O_DIRECT reads did not reach the device.
        NotDirect = "not-direct",
        /// Another process used the device, the hypervisor took the CPU, or a clock stepped.
        Contaminated = "contaminated",
        /// Other programs had the CPU for much of the sample, or for as long as a time is not
        /// accounted for.
        Disturbed = "disturbed",
        /// The memory limit was not in force, or was exceeded.
        LimitNotHeld = "limit-not-held",
        /// Page cache of the file is charged to a cgroup other than the worker's.
        ChargedToOtherCgroup = "charged-to-other-cgroup",
        /// The rate of device use did not become steady in time.
        NotSettled = "not-settled",
        /// The actor beside the worker was not at work, or not at what it was asked for.
        ActorAbsent = "actor-absent",
        /// A setting of the machine differs from the cell's: device cap, readahead, CPUs, node.
        SettingMismatch = "setting-mismatch",
        /// The counters contradict what the method does.
        MethodContradicted = "method-contradicted",
        /// The worker was killed because it needed more memory than the limit.
        KilledForMemory = "killed-for-memory",
        /// A call failed.
        CallFailed = "call-failed",
        /// The worker ended by itself or by its own fault.
        WorkerDied = "worker-died",
        /// The worker was killed by a signal sent to it, as by the kernel if the host has no memory
        /// left. It is not at fault.
        KilledFromOutside = "killed-from-outside",
        /// The worker did not answer in time.
        WorkerHung = "worker-hung",
        /// A replay took many times as long as its program, and was stopped.
        TooSlow = "too-slow",
        /// The worker's answer is not of the protocol.
        WorkerNonsense = "worker-nonsense",
        /// The worker reported that it had closed the file but still has a mapping of it.
        NotReleased = "not-released",
        /// The user's file changed during the run.
        FileChanged = "file-changed",
    }
}
