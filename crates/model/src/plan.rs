//! A resolved plan: every cell and the way it is sampled.
//!
//! Text (a question, a TOML file, options) is resolved to this value once. The same value is
//! printed by `--dry-run`, drives the schedule and is stored in the run file's header.

mod files;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::access_map::AccessMap;
use crate::cell::{CacheState, Cell, Conditions, Role};
use crate::expectation::Expectation;
use crate::format::counted;
use crate::inspection::Inspection;
use crate::method::{Method, Worker};
use crate::planned_table::PlannedTable;
use crate::units::Bytes;
use crate::workers::WorkerChoices;

/// Origin of the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum Source {
    /// Files that pagewise creates in `directory` and removes.
    Dataset {
        /// The directory.
        directory: String,
    },
    /// The user's own file, never written; of a replay, files.
    File {
        /// Path.
        path: String,
        /// True if pagewise may drop it from the page cache.
        evict: bool,
        /// Identity when the run began; a run is not continued on another file.
        identity: FileIdentity,
        /// The other files of a replay of several.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<OwnFile>,
        /// Directory of the files of actors; `None`: there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<String>,
    },
}

/// A file of the user, besides another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnFile {
    /// Path.
    pub path: String,
    /// Identity when the run began.
    pub identity: FileIdentity,
}

impl Source {
    /// Path of what is measured: the directory of the datasets, or the user's file; of several, the
    /// first one. All of them lie on one filesystem.
    pub fn path(&self) -> &str {
        match self {
            Source::Dataset { directory } => directory,
            Source::File { path, .. } => path,
        }
    }

    /// Directory in which pagewise makes files, if it makes any.
    pub fn directory(&self) -> Option<&str> {
        match self {
            Source::Dataset { directory } => Some(directory),
            Source::File { directory, .. } => directory.as_deref(),
        }
    }

    /// Paths and identities of the user's files.
    pub fn own_files(&self) -> impl Iterator<Item = (&str, &FileIdentity)> {
        let (first, others) = match self {
            Source::Dataset { .. } => (None, &[][..]),
            Source::File { path, identity, others, .. } => (Some((path.as_str(), identity)), &others[..]),
        };
        first.into_iter().chain(others.iter().map(|file| (file.path.as_str(), &file.identity)))
    }

    /// The user's file in words, and the number of others; or the directory.
    pub fn shown(&self) -> String {
        match self {
            Source::File { path, others, .. } if !others.is_empty() => {
                format!("{path} and {}", counted(others.len() as u64, "other file"))
            }
            _ => self.path().to_string(),
        }
    }
}

/// Attributes that identify the user's file and reveal changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileIdentity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Size.
    pub file_bytes: Bytes,
    /// Last change of the content, nanoseconds since 1970.
    pub modified_ns: i64,
}

/// Time that all samples of a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// The shortest time, in nanoseconds.
    pub least_ns: u64,
    /// So much of the time that the first rounds took, if that is longer; 0 for a time that was
    /// chosen.
    #[serde(default)]
    pub first_rounds_percent: u32,
}

impl Budget {
    /// A time that was chosen.
    pub fn of(least_ns: u64) -> Self {
        Self { least_ns, first_rounds_percent: 0 }
    }

    /// The time, if the first rounds took `first_ns`.
    pub fn ns(self, first_ns: u64) -> u64 {
        self.least_ns.max((u128::from(first_ns) * u128::from(self.first_rounds_percent) / 100) as u64)
    }
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// All cells and the way they are sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The question or the plan file's name.
    pub question: String,
    /// A short hash of what was asked for, without names, places and the seed: it is the same on
    /// every machine. `None` in files of an older pagewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<String>,
    /// Origin of the bytes.
    pub source: Source,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// Samples of each method; with a budget, at most so many.
    pub rounds: u32,
    /// With a budget rounds go where the order of methods is in question, until it is decided.
    /// `None`: every method takes all rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Bytes that workloads may write in all: rounds after the first ones are planned within it,
    /// and no sample begins that would exceed it, by what was expected and by what the device wrote
    /// so far. `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_written_bytes: Option<Bytes>,
    /// Duration of the throughput phase.
    pub sample_ns: u64,
    /// Duration of the throughput phase of a cell whose bytes are in memory, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_sample_ns: Option<u64>,
    /// Limits that each measured method is to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    /// Maximum repetitions of a sample that failed a check for reasons outside the worker.
    pub retakes: u32,
    /// Blocks of rounds, each of which reads datasets that are made anew for it: where a file lies
    /// on the device and in memory is chance that all rounds of a block share.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub blocks: u32,
    /// True if the whole page cache may be dropped when a file does not leave it otherwise.
    #[serde(default)]
    pub drop_caches: bool,
    /// Programs that perform the accesses.
    #[serde(default, skip_serializing_if = "WorkerChoices::is_default")]
    pub workers: WorkerChoices,
    /// The search beyond the matrix, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<CliffSearch>,
    /// The table of comparisons, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<PlannedTable>,
    /// The trace that is replayed, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PlannedTrace>,
    /// The matrix. A search extends it during the run.
    pub cells: Vec<Cell>,
}

/// A trace that is replayed, and what its recording knows of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedTrace {
    /// File.
    pub path: String,
    /// Indexes in it of the files whose reads are replayed, if they are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<u32>,
    /// The command that was recorded.
    pub command: Vec<String>,
    /// The method by which it read the file.
    pub method: Method,
    /// Memory that it was limited to.
    pub memory_limit: Option<Bytes>,
    /// The file was in no part in memory when it began.
    pub cold: bool,
    /// Bytes of the file in the page cache when it began, if its pages were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_bytes: Option<Bytes>,
    /// Bytes that came from the device for its reads.
    pub device_bytes: Option<u64>,
    /// True if the trace was recorded in windows.
    #[serde(default)]
    pub windows: bool,
    /// Time that it took, from its first instruction to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ns: Option<u64>,
    /// Sum of the gaps between its reads of the file, kept in a replay or not; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps_ns: Option<u64>,
    /// Map of its reads over offset and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<AccessMap>,
    /// The inspection of the program when it was recorded: its files, and the waits of its threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspection: Option<Inspection>,
}

impl PlannedTrace {
    /// True if a replay from this state of the page cache begins as the program did when it was
    /// recorded.
    pub fn began_with(&self, cache: CacheState) -> bool {
        match cache {
            CacheState::Cold => self.cold,
            CacheState::Recorded => self.cold || self.cached_bytes.is_some(),
            _ => false,
        }
    }

    /// True if a replay by `cell` shows whether the trace stands for its program: by its own
    /// method, from the state of the page cache in which it was recorded, where that matters.
    pub fn is_shown_by(&self, cell: &Cell) -> bool {
        let is_own = cell.role == Role::Measured && cell.method == self.method;
        is_own && (!cell.depends_on_cache() || self.began_with(cell.conditions.cache))
    }
}

/// Search for the ratio of data to cache at which the order of two methods changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CliffSearch {
    /// The interval of a crossing is halved until it is at most this wide, in thousandths.
    pub tolerance_thousandths: u32,
    /// Windows of `mmap:random+prefetch` that are tried first; the best one is measured everywhere.
    #[serde(default)]
    pub prefetch_windows: Vec<u32>,
}

/// Under a cap the kernel lets a burst through in each slice of 100 ms (`throtl_slice` in
/// block/blk-throttle.c), and then nothing until the next slice.
const SLICE_NS: u64 = 100_000_000;
/// Samples are long compared with slices.
const CAPPED_SAMPLE_NS: u64 = 1_000_000_000;

/// Samples of a cell in which operations are timed one by one.
const LATENCY_ROUNDS: u32 = 9;
/// A latency phase lasts this part of a sample: it shows where times lie, not which is shorter.
const LATENCY_PART: u64 = 3;
/// A shorter latency phase has few operations of a device.
const LEAST_LATENCY_NS: u64 = 1_000_000;
/// Time limit of a sample with fixed work; work left over then is reported.
const FIXED_WORK_NS: u64 = 60_000_000_000;
/// Longest phase of a replay, in durations of its program; work left over then is reported.
const REPLAY_TIMES: u64 = 30;
/// Time that a cap is in force before the measured region, because a new one lets a double burst
/// through at first. It ends in the middle of a pause, as a sample does ([`Plan::phases_ns`]).
const CAPPED_LEAD_IN_NS: u64 = 650_000_000;
/// Reads of a fresh process on an idle device before the measured region: its queues are empty, and
/// its host may sleep.
const DEVICE_LEAD_IN_NS: u64 = 20_000_000;
/// Threads that wake at once may begin on one CPU, and stay there until the scheduler balances its
/// load: at a tick, of at most 10 ms.
const THREADS_LEAD_IN_NS: u64 = 10_000_000;
/// A smaller span would be used up by reads of the device.
const LEAD_IN_SPAN: Bytes = Bytes::mib(256);

impl Plan {
    /// Shortest sample beside an actor, which is to be seen at work in each tenth of it.
    const ACTOR_SAMPLE_NS: u64 = 250_000_000;

    /// True if an actor is at work beside any of these cells.
    pub fn has_actor(cells: &[Cell]) -> bool {
        cells.iter().any(|cell| cell.conditions.beside.is_some())
    }

    /// Shortest sample of a plan of these cells: as long alone as beside an actor, so that stalls
    /// and quantiles are those of the same time.
    pub fn least_sample_ns(cells: &[Cell]) -> u64 {
        if Self::has_actor(cells) { Self::ACTOR_SAMPLE_NS } else { 0 }
    }

    /// Further rounds of a run with a budget, in which methods that were eliminated are sampled
    /// again. Their numbers follow [`Plan::rounds`].
    pub const RETURN_ROUNDS: u32 = 2;

    /// Rounds of every method of a run with a budget.
    pub const FIRST_ROUNDS: u32 = 5;
    /// Samples of a ceiling, if there are as many rounds.
    const CEILING_ROUNDS: u32 = 3;

    /// A plan of `cells` with seven rounds of 100 ms, on datasets in the current directory.
    pub fn of(cells: Vec<Cell>) -> Self {
        Self {
            question: "read".to_string(),
            typed: None,
            source: Source::Dataset { directory: ".".into() },
            seed: 1,
            rounds: 7,
            budget: None,
            max_written_bytes: None,
            sample_ns: 100_000_000,
            memory_sample_ns: None,
            expectations: Vec::new(),
            retakes: 1,
            blocks: 1,
            drop_caches: false,
            workers: WorkerChoices::default(),
            search: None,
            table: None,
            trace: None,
            cells,
        }
    }

    /// Rounds that every method has.
    pub fn first_rounds(&self) -> u32 {
        if self.budget.is_some() { self.rounds.min(Self::FIRST_ROUNDS) } else { self.rounds }
    }

    /// True if `cell` may have a sample in `round`. Those of a ceiling are spread over the rounds
    /// that every method has.
    pub fn takes(&self, cell: &Cell, round: u32) -> bool {
        let (rounds, samples) = (self.first_rounds(), Self::CEILING_ROUNDS);
        cell.role != Role::Ceiling
            || (rounds <= samples && round < rounds)
            || (rounds > samples && (0..samples).any(|sample| sample * (rounds - 1) / (samples - 1) == round))
    }

    /// The replay by the program's own method: the one that shows whether the trace stands for the
    /// program, if there is one.
    pub fn own_replay(&self) -> Option<usize> {
        let trace = self.trace.as_ref()?;
        let is_own = |cell: &Cell| cell.role == Role::Measured && cell.method == trace.method;
        let shows = self.cells.iter().position(|cell| trace.is_shown_by(cell));
        shows.or_else(|| self.cells.iter().position(is_own))
    }

    /// True if its samples are known beforehand: without a budget, a search and a trace.
    pub fn is_fixed(&self) -> bool {
        self.budget.is_none() && self.search.is_none() && self.trace.is_none()
    }

    /// Number of samples that `cell` has in the rounds that every method has.
    pub fn first_samples_of(&self, cell: &Cell) -> u32 {
        let rounds = self.first_rounds();
        if cell.role == Role::Ceiling { rounds.min(Self::CEILING_ROUNDS) } else { rounds }
    }

    /// Samples of the rounds that every method has.
    pub fn first_samples(&self) -> u64 {
        self.cells.iter().map(|cell| u64::from(self.first_samples_of(cell))).fold(0, u64::saturating_add)
    }

    /// Rounds that may be taken, return rounds among them.
    pub fn all_rounds(&self) -> u32 {
        self.rounds.saturating_add(if self.budget.is_some() { Self::RETURN_ROUNDS } else { 0 })
    }

    /// Durations of the throughput phase and the latency phase of a sample of `cell`. Latencies
    /// come from the first rounds only, since throughput takes more samples to decide. Under a
    /// device cap a sample is long compared with the kernel's pauses, and latencies are
    /// meaningless. The lead-in ends with the first read of a burst. The sample ends in the middle
    /// of a pause, so that it holds whole slices. One that ended with a pause would have a part of
    /// a burst too many: 1,000 ms gave 2,001 to 2,130 reads a second at a cap of 2,000, and 1,050
    /// ms give 2,000.
    pub fn phases_ns(&self, cell: &Cell, round: u32) -> (u64, u64) {
        let sample_ns = self.sample_ns_of(cell);
        if cell.conditions.is_one_shot() {
            // A replay is not cut off, and another method may take longer than the program did.
            let program_ns = self.trace.as_ref().and_then(|trace| trace.wall_ns).unwrap_or(0);
            return (FIXED_WORK_NS.max(program_ns.saturating_mul(REPLAY_TIMES)), 0);
        }
        if cell.conditions.rate.is_some() {
            // Each operation is timed.
            return (sample_ns, 0);
        }
        match cell.conditions.host_settings.device_cap {
            Some(_) => (sample_ns.max(CAPPED_SAMPLE_NS) / SLICE_NS * SLICE_NS + SLICE_NS / 2, 0),
            None if self.times_operations(round) => (sample_ns, self.latency_ns()),
            None => (sample_ns, 0),
        }
    }

    /// Maximum duration of a latency phase, in which operations are timed one by one.
    pub fn latency_ns(&self) -> u64 {
        (self.sample_ns / LATENCY_PART).max(LEAST_LATENCY_NS)
    }

    /// True if samples of this round have a latency phase.
    fn times_operations(&self, round: u32) -> bool {
        let is_expected = |one: &Expectation| matches!(one, Expectation::Operations(_));
        round < LATENCY_ROUNDS || round >= self.rounds || self.expectations.iter().any(is_expected)
    }

    /// The longest time in which a sample under these conditions reads by its table, or commits.
    pub fn longest_reading_ns(&self, conditions: &Conditions) -> u64 {
        let phases_ns =
            self.sample_ns.max(self.memory_sample_ns.unwrap_or(0)).saturating_add(self.latency_ns());
        match conditions.host_settings.device_cap {
            Some(_) => phases_ns.max(CAPPED_SAMPLE_NS.saturating_add(SLICE_NS)),
            None => phases_ns,
        }
    }

    /// Duration of the reads before the measured region of a sample of `cell`, which nothing
    /// counts: until the device works as it will, or each thread has a CPU.
    pub fn lead_in_ns(&self, cell: &Cell) -> Option<u64> {
        let conditions = &cell.conditions;
        if conditions.reads().is_none() || conditions.cache == CacheState::ColdStart {
            return None;
        }
        let reads_device =
            cell.method.is_direct() || (conditions.cache == CacheState::Cold && cell.depends_on_cache());
        match conditions.host_settings.device_cap {
            Some(_) => Some(CAPPED_LEAD_IN_NS),
            None if cell.is_in_memory() => (conditions.threads > 1).then_some(THREADS_LEAD_IN_NS),
            None => (reads_device && conditions.span_bytes >= LEAD_IN_SPAN).then_some(DEVICE_LEAD_IN_NS),
        }
    }

    /// Duration of the throughput phase of a sample of `cell` without a cap.
    pub fn sample_ns_of(&self, cell: &Cell) -> u64 {
        let is_fast = cell.is_in_memory() && cell.conditions.rate.is_none();
        self.memory_sample_ns.filter(|_| is_fast).unwrap_or(self.sample_ns)
    }

    /// Workers that perform its methods, without repetition.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_settings::HostSettings;
    use crate::{Method, Reads, Work};

    fn phases(sample_ms: u64, cap: Option<&str>) -> (u64, u64) {
        let device_cap = cap.map(|cap| cap.parse().expect("a cap"));
        let cell = Cell {
            role: Role::Measured,
            method: Method::anonymous(),
            conditions: Conditions {
                host_settings: HostSettings { device_cap, ..HostSettings::default() },
                ..Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(4))), Bytes::mib(1))
            },
        };
        let plan = Plan { sample_ns: sample_ms * 1_000_000, retakes: 0, ..Plan::of(Vec::new()) };
        plan.phases_ns(&cell, 0)
    }

    #[test]
    fn the_samples_of_a_ceiling_are_spread_over_the_first_rounds() {
        let of = |role| Cell {
            role,
            method: Method::anonymous(),
            conditions: Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(4))), Bytes::mib(1)),
        };
        for (rounds, budget, spread) in [
            (1, None, vec![0]),
            (2, None, vec![0, 1]),
            (3, None, vec![0, 1, 2]),
            (7, None, vec![0, 3, 6]),
            (33, None, vec![0, 16, 32]),
            (56, Some(Budget::of(1)), vec![0, 2, 4]),
        ] {
            let plan = Plan { rounds, budget, ..Plan::of(Vec::new()) };
            for (role, wanted) in
                [(Role::Ceiling, spread), (Role::Measured, (0..plan.first_rounds()).collect())]
            {
                let found: Vec<u32> =
                    (0..plan.first_rounds()).filter(|round| plan.takes(&of(role), *round)).collect();
                assert_eq!(found, wanted, "{rounds} rounds");
                assert_eq!(plan.first_samples_of(&of(role)) as usize, found.len(), "{rounds} rounds");
            }
        }
    }

    fn lead_in(threads: u32, method: &str, cache: CacheState, span: Bytes) -> Option<u64> {
        let work = Work::RandomRead(Reads::of(Bytes::kib(4)));
        let conditions = Conditions { cache, threads, ..Conditions::of(work, span) };
        let cell = Cell { role: Role::Measured, method: method.parse().expect("a method"), conditions };
        Plan::of(Vec::new()).lead_in_ns(&cell)
    }

    #[test]
    fn each_thread_has_a_cpu_before_its_reads_are_counted() {
        let of = |threads, method, cache| lead_in(threads, method, cache, Bytes::mib(64));
        for method in ["pread", "mmap", "jvm/pread"] {
            assert_eq!(of(2, method, CacheState::Warm), Some(THREADS_LEAD_IN_NS), "{method}");
            assert_eq!(of(1, method, CacheState::Warm), None, "{method} has no other thread to wait for");
        }
        assert_eq!(of(2, "pread", CacheState::Cold), None, "threads wait for the device");
    }

    #[test]
    fn the_device_works_before_its_reads_are_counted() {
        let lead_in = |method: &str, cache: CacheState, span: Bytes| lead_in(1, method, cache, span);
        let gib = Bytes::gib(1);
        assert_eq!(lead_in("pread", CacheState::Cold, gib), Some(DEVICE_LEAD_IN_NS));
        assert_eq!(lead_in("pread:direct", CacheState::Warm, gib), Some(DEVICE_LEAD_IN_NS));
        assert_eq!(lead_in("pread", CacheState::Warm, gib), None);
        assert_eq!(lead_in("pread", CacheState::ColdStart, gib), None);
        assert_eq!(lead_in("pread", CacheState::Cold, Bytes::mib(64)), None, "it would be used up");
    }

    #[test]
    fn a_sample_under_a_cap_is_long_and_ends_in_a_pause() {
        assert_eq!(phases(150, None), (150_000_000, 50_000_000));
        for (sample_ms, capped_ms) in [(150, 1050), (1000, 1050), (1080, 1050), (2000, 2050)] {
            assert_eq!(phases(sample_ms, Some("emmc")), (capped_ms * 1_000_000, 0));
        }
    }
}
