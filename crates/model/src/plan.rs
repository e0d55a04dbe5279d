//! A resolved plan: every cell, and how to sample it.
//!
//! Text (a question, a TOML file, options) becomes this value once. The same value is printed by
//! `--dry-run`, drives the schedule and stands in the run file's header.

use std::cmp::Reverse;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::cell::{CacheState, Cell, Conditions, Content, Role};
use crate::method::{Access, Worker};
use crate::pivot::Pivot;
use crate::units::Bytes;
use crate::workers::WorkerChoices;

/// Where the bytes come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum Source {
    /// Files that pagewise makes in `directory` and removes.
    Dataset {
        /// Where.
        directory: String,
    },
    /// The user's own file, never written.
    File {
        /// Which.
        path: String,
        /// Whether pagewise may drop it from the page cache.
        evict: bool,
        /// What it was when the run began; a run is not continued on another one.
        identity: FileIdentity,
    },
}

/// What tells the user's file from another, or from itself changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Size.
    pub file_bytes: Bytes,
    /// Last change of content, nanoseconds since 1970.
    pub modified_ns: i64,
}

/// Every cell, and how to sample it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The question or the plan file's name.
    pub question: String,
    /// Where the bytes come from.
    pub source: Source,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Samples of every cell.
    pub rounds: u32,
    /// How long the throughput phase lasts.
    pub sample_ns: u64,
    /// How long the latency phase may last, where there is one.
    pub latency_ns: u64,
    /// How often a sample that failed a check for reasons outside the worker is taken again.
    pub retakes: u32,
    /// Whether the whole page cache may be dropped where a file does not leave it otherwise.
    #[serde(default)]
    pub drop_caches: bool,
    /// Which programs perform the accesses.
    #[serde(default, skip_serializing_if = "WorkerChoices::is_default")]
    pub workers: WorkerChoices,
    /// What is looked for beyond the matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<CliffSearch>,
    /// The table that its comparisons are laid out as, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pivot: Option<Pivot>,
    /// The matrix. A search extends it as the run goes on.
    pub cells: Vec<Cell>,
}

/// The search for the ratio of data to cache at which two methods change places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CliffSearch {
    /// The interval of a crossing is halved until its ends are this close, in thousandths.
    pub tolerance_thousandths: u32,
    /// Windows of `mmap:random+prefetch` that are tried first; the best is measured everywhere.
    #[serde(default)]
    pub prefetch_windows: Vec<u32>,
}

/// Under a cap the kernel lets a burst through in each slice of 100 ms (`throtl_slice` in block/blk-throttle.c), and then
/// nothing until the next.
const SLICE_NS: u64 = 100_000_000;
/// A sample is long against them.
const CAPPED_SAMPLE_NS: u64 = 1_000_000_000;

/// Work that is fixed may take so long in a sample; what it could not do by then is told.
const FIXED_WORK_NS: u64 = 60_000_000_000;
/// A cap is in force this long before the measured region: a new one lets a double burst through at first. It is over in
/// the middle of a pause, as a sample is ([`Plan::phases_ns`]).
pub const LEAD_IN_NS: u64 = 650_000_000;

impl Plan {
    /// How long the throughput phase and the latency phase of a sample of `cell` last. Under a device cap a sample
    /// is long against the pauses that the kernel makes, and latencies mean nothing. What leads into it ends with the first
    /// read of a burst; so that the sample does too, and holds whole slices, its time is up in the middle of a pause. One that
    /// is up at the end of a pause has a part of a burst too many: 1,000 ms gave 2,001 to 2,130 reads a second at a cap
    /// of 2,000, where 1,050 ms give 2,000.
    pub fn phases_ns(&self, cell: &Cell) -> (u64, u64) {
        if cell.conditions.workload().is_one_shot() {
            return (FIXED_WORK_NS, 0);
        }
        match cell.conditions.host_settings.device_cap {
            Some(_) => (self.sample_ns.max(CAPPED_SAMPLE_NS) / SLICE_NS * SLICE_NS + SLICE_NS / 2, 0),
            None => (self.sample_ns, self.latency_ns),
        }
    }

    /// Workers that perform its methods, each once.
    pub fn workers(&self) -> Vec<Worker> {
        let mut workers: Vec<Worker> = self.cells.iter().map(|cell| cell.method.worker().clone()).collect();
        workers.sort_unstable();
        workers.dedup();
        workers
    }

    /// The conditions under which methods are compared, in the order of the plan.
    pub fn comparisons(&self) -> Vec<&Conditions> {
        let mut seen: HashSet<&Conditions> = HashSet::new();
        let measured = self.cells.iter().filter(|cell| cell.role == Role::Measured);
        measured.map(|cell| &cell.conditions).filter(|conditions| seen.insert(conditions)).collect()
    }

    /// Contents and sizes of the files that are read, largest first, each once.
    pub fn datasets(&self) -> Vec<(Content, Bytes)> {
        let read = self.cells.iter().filter(|cell| cell.conditions.workload().is_reading());
        let mut datasets: Vec<(Content, Bytes)> =
            read.map(|cell| (cell.conditions.content, cell.conditions.file_bytes)).collect();
        datasets.sort_unstable_by_key(|(content, size)| Reverse((*size, *content)));
        datasets.dedup();
        datasets
    }

    /// The largest file that a workload writes.
    pub fn largest_written(&self) -> Option<Bytes> {
        let written = self.cells.iter().filter(|cell| !cell.conditions.workload().is_reading());
        written.map(|cell| cell.conditions.file_bytes).max()
    }

    /// Bytes that files of pagewise's own take at most at a time.
    pub fn space_bytes(&self) -> Bytes {
        Bytes(self.dataset_bytes().0.saturating_add(self.largest_written().map_or(0, Bytes::get)))
    }

    /// Cells that write to a file, as far as their method can; the ceiling of memory writes to none.
    pub fn writing_cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| {
            let conditions = &cell.conditions;
            !conditions.workload().is_reading()
                && cell.method.access() != Access::Anonymous
                && cell.method.refuses(&conditions.work, 1).is_none()
        })
    }

    /// Bytes that the workloads write in all rounds, with what makes a file warm before.
    pub fn written_bytes(&self) -> Bytes {
        let of_cell = |cell: &Cell| {
            let ring = cell.conditions.ring()?;
            let before = if cell.conditions.cache == CacheState::Warm { ring.bytes() } else { 0 };
            let laps = u64::from(cell.conditions.writes()?.laps);
            Some(ring.bytes().saturating_mul(laps).saturating_add(before))
        };
        let round = self.writing_cells().filter_map(of_cell).fold(0u64, u64::saturating_add);
        Bytes(round.saturating_mul(u64::from(self.rounds)))
    }

    /// Bytes that will be written to make the datasets.
    pub fn dataset_bytes(&self) -> Bytes {
        match self.source {
            Source::Dataset { .. } => {
                Bytes(self.datasets().iter().fold(0, |total, (_, size)| total.saturating_add(size.0)))
            }
            Source::File { .. } => Bytes(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_settings::HostSettings;
    use crate::{Consume, Descriptor, Method, Reads, Skew, Work};

    fn phases(sample_ms: u64, cap: Option<&str>) -> (u64, u64) {
        let device_cap = cap.map(|cap| cap.parse().expect("a cap"));
        let cell = Cell {
            role: Role::Measured,
            method: Method::anonymous(),
            conditions: Conditions {
                work: Work::RandomRead(Reads {
                    read_bytes: Bytes::kib(4),
                    reads_per_op: 1,
                    align_bytes: Bytes::kib(4),
                    skew: Skew::Uniform,
                    dependent: false,
                    consume: Consume::Touch,
                }),
                threads: 1,
                file_bytes: Bytes::mib(1),
                span_bytes: Bytes::mib(1),
                content: Content::Random,
                cache: CacheState::AsIs,
                descriptor: Descriptor::Shared,
                host_settings: HostSettings { device_cap, ..HostSettings::default() },
            },
        };
        let plan = Plan {
            question: "read".into(),
            source: Source::Dataset { directory: "/data".into() },
            seed: 1,
            rounds: 7,
            sample_ns: sample_ms * 1_000_000,
            latency_ns: 5_000_000,
            retakes: 0,
            drop_caches: false,
            workers: WorkerChoices::default(),
            search: None,
            pivot: None,
            cells: Vec::new(),
        };
        plan.phases_ns(&cell)
    }

    #[test]
    fn a_sample_under_a_cap_is_long_and_ends_in_a_pause() {
        assert_eq!(phases(150, None), (150_000_000, 5_000_000));
        for (sample_ms, capped_ms) in [(150, 1050), (1000, 1050), (1080, 1050), (2000, 2050)] {
            assert_eq!(phases(sample_ms, Some("emmc")), (capped_ms * 1_000_000, 0));
        }
    }
}
