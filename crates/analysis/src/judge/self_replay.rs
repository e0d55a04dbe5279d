//! The proof that a trace stands for its program: its own method, replayed under the conditions of
//! the recording, must read what the program read.

use pagewise_model::inspection::Inspection;
use pagewise_model::plan::PlannedTrace;
use pagewise_model::run::Run;
use pagewise_model::{Bytes, CacheState, Plan};

use super::cell::main_failure;
use super::collected::CellSamples;
use super::reasons::MainFailure;
use crate::statistics::median_count;

/// Device bytes of the replay and of the program agree within this share.
pub const WITHIN: f64 = 0.05;
/// Of little more than this, single pages of readahead are over that share.
pub const SLACK_BYTES: f64 = 256.0 * 1024.0;

/// The replay of a trace by the program's own method, beside the program.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct SelfReplay {
    /// The method by which the program read.
    pub method: String,
    /// The state of the page cache with which its replay began: that of the recording, if there is
    /// such a replay.
    pub cache: Option<CacheState>,
    /// Bytes of the file in the page cache when the recording began; `None` if that is not known.
    pub cached_bytes: Option<Bytes>,
    /// Bytes that came from the device for the program's reads of the file: the median of its runs.
    pub program_bytes: Option<u64>,
    /// Device bytes of each run of the program: when it was recorded, and between rounds of the
    /// replay.
    pub program_runs_bytes: Vec<u64>,
    /// Device bytes of the replay: the median of its valid samples.
    pub replayed_bytes: Option<u64>,
    /// The second over the first, less one.
    pub difference: Option<f64>,
    /// Bytes that the program moved by descriptors that were closed before anybody saw of what
    /// files they are: a replay lacks them.
    pub unassigned_bytes: u64,
    /// True if the trace stands for the program: the replay read as much as a run of it, within 5 %
    /// of their median or between the least and the most of them. Otherwise no other method is
    /// shown.
    pub stands: bool,
    /// Reason that this is not known; `None` if it is.
    pub unknown: Option<Unproven>,
    /// The main failure of samples of its replay; in its sentence, if none is valid.
    #[serde(skip)]
    pub failed: Option<MainFailure>,
}

/// Reason that it is not known whether a trace stands for its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unproven {
    /// The program's own method was not replayed.
    NotReplayed,
    /// The file may have been in memory when the program was recorded, or was in another part than
    /// when its reads were replayed.
    InMemory,
    /// The program found so much of what it read in the page cache that bytes of the device say
    /// nothing of its reads.
    Cached,
    /// The program was recorded under another limit of memory than the trace was replayed under.
    OtherLimit {
        /// Limit of the recording; `None` without one.
        recorded_bytes: Option<Bytes>,
        /// Limit of the replay.
        replayed_bytes: Option<Bytes>,
    },
    /// Windows were mapped, which change the readahead of mmap.
    Windows,
    /// A file has holes or is compressed, so fewer bytes come from the device than into the page
    /// cache, which were seen of the program.
    HiddenBytes,
    /// The bytes that the program read from the device were not seen.
    NotSeen,
    /// No replay by the program's own method is valid.
    NoValidReplay,
}

/// The replay of the plan's trace by its own method; `None` if no trace is replayed.
pub(crate) fn of(run: &Run, samples: &[CellSamples<'_>]) -> Option<SelfReplay> {
    let trace = run.header.plan.trace.as_ref()?;
    let again = run.program_runs.iter().map(|again| again.device_bytes);
    // In windows nothing is mapped around a fault, from which the kernel concludes how far to read
    // ahead.
    let recorded = trace.device_bytes.filter(|_| !trace.windows || run.program_runs.is_empty());
    let program_runs: Vec<u64> = recorded.into_iter().chain(again.flatten()).collect();
    let own = run.header.plan.own_replay();
    let own = own.and_then(|own| samples.iter().find(|cell| cell.index == own));
    let replayed_bytes = own.and_then(|own| {
        let read = own.valid().filter_map(|(_, evidence)| {
            Some(evidence.device_read_bytes?.saturating_add(evidence.setup_device_read_bytes.unwrap_or(0)))
        });
        median_count(&read.collect::<Vec<u64>>())
    });
    let proven = proven(run, trace, own, &program_runs, replayed_bytes);
    Some(SelfReplay {
        method: trace.method.to_string(),
        cache: own.map(|own| own.cell.conditions.cache),
        cached_bytes: trace.cached_bytes.or(trace.cold.then_some(Bytes(0))),
        program_bytes: median_count(&program_runs),
        program_runs_bytes: program_runs,
        replayed_bytes,
        unassigned_bytes: trace.inspection.as_ref().map_or(0, Inspection::unassigned_bytes),
        difference: proven.ok().map(|(difference, _)| difference),
        stands: proven.is_ok_and(|(_, stands)| stands),
        unknown: proven.err(),
        failed: own.and_then(main_failure),
    })
}

/// Reason that no replay of the plan's trace shows whether it stands for its program, as far as it
/// is known before anything is measured; `is_run_again`: so does the program itself.
pub fn foreseen(plan: &Plan, is_run_again: bool) -> Option<Unproven> {
    let trace = plan.trace.as_ref()?;
    let Some(own) = plan.own_replay().map(|own| &plan.cells[own]) else { return Some(Unproven::NotReplayed) };
    if !trace.is_shown_by(own) {
        return Some(Unproven::InMemory);
    }
    let recorded_bytes = trace.memory_limit;
    let replayed_bytes = own.conditions.host_settings.memory_limit_bytes;
    if recorded_bytes != replayed_bytes {
        return Some(Unproven::OtherLimit { recorded_bytes, replayed_bytes });
    }
    let is_unlike_itself = trace.windows && !is_run_again && trace.method.to_string() == "mmap";
    is_unlike_itself.then_some(Unproven::Windows)
}

/// The difference of the replay from the program, and whether the trace stands for it.
fn proven(
    run: &Run,
    trace: &PlannedTrace,
    own: Option<&CellSamples<'_>>,
    program_runs: &[u64],
    replayed: Option<u64>,
) -> Result<(f64, bool), Unproven> {
    if let Some(reason) = foreseen(&run.header.plan, !run.program_runs.is_empty()) {
        return Err(reason);
    }
    let own = own.ok_or(Unproven::NotReplayed)?;
    if run.checks.iter().any(|(_, context)| context.sparse_or_compressed_bytes) {
        return Err(Unproven::HiddenBytes);
    }
    let program = median_count(program_runs).ok_or(Unproven::NotSeen)?;
    let replayed = replayed.ok_or(Unproven::NoValidReplay)?;
    let is_next_to_nothing = |bytes: u64| bytes as f64 <= SLACK_BYTES;
    let may_be_cached = own.cell.depends_on_cache() && !trace.cold;
    if may_be_cached && is_next_to_nothing(program) && is_next_to_nothing(replayed) {
        return Err(Unproven::Cached);
    }
    let apart = replayed as f64 - program as f64;
    let (least, most) = spread(program_runs);
    let stands =
        (least..=most).contains(&replayed) || apart.abs() <= (program as f64 * WITHIN).max(SLACK_BYTES);
    Ok((apart / (program as f64).max(1.0), stands))
}

/// The least and the most that a run of the program read.
pub fn spread(program_runs: &[u64]) -> (u64, u64) {
    let least = program_runs.iter().min().copied().unwrap_or_default();
    (least, program_runs.iter().max().copied().unwrap_or_default())
}
