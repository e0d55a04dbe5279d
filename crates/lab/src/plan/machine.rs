//! The machine as a plan is resolved for it.

use pagewise_model::{CpuList, Environment, Replay, WorkerChoices};

use crate::worker_door::WorkerDoor;

/// Facts about the machine that resolving needs.
pub struct Machine<'a> {
    /// Environment of the directory or file.
    pub environment: &'a Environment,
    /// Free space of the dataset's filesystem.
    pub free_bytes: u64,
    /// Write rate of the filesystem in bytes per second, if the run must be short.
    pub write_pace: Option<u64>,
    /// A seed for a plan that names none.
    pub fresh_seed: u64,
    /// CPUs that are online.
    pub online_cpus: CpuList,
    /// NUMA nodes with memory.
    pub numa_nodes: Vec<u32>,
    /// Smallest memory limit under which a worker runs.
    pub least_memory_bytes: u64,
    /// Reason that the device of the files cannot be capped; `None` if it can, as far as the device
    /// is concerned.
    pub no_device: Option<String>,
    /// True if the whole page cache may be dropped.
    pub drop_caches: bool,
    /// The trace to be replayed, if there is one.
    pub replay: Option<Replay>,
    /// Choices about workers in other languages.
    pub workers: &'a WorkerChoices,
    /// Workers that extras offer.
    pub offered: &'a [WorkerDoor],
}
