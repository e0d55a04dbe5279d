//! The gain that another method of reading could bring to a whole program: reads are a part of its
//! time, and no more than that part can be saved.

use std::collections::HashSet;

use pagewise_model::inspection::InspectedFile;
use pagewise_model::plan::PlannedTrace;
use pagewise_model::run::Run;
use pagewise_model::{Cell, Method, Plan};

use super::cell::{ById, CellJudgement};
use super::comparison::Comparison;
use super::elimination::BOUND_LEVEL;
use super::verdict::Place;
use crate::statistics::median_count;

/// The reads of a program within its time.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Gain {
    /// The program's own method.
    pub method: String,
    /// Time of its reads: replayed by its own method, the upper end of the interval, or what its
    /// thread waited for them when it was recorded, if that was longer; no more than the program's.
    pub reads_ns: u64,
    /// Time that the program took: the shortest of the runs that nobody watched, or else the median
    /// of its runs between rounds of the replay, or without them while it was recorded.
    pub program_ns: u64,
    /// True if nobody watched it.
    pub is_unwatched: bool,
    /// Runs of the program between rounds of the replay.
    pub program_runs: usize,
    /// The method that is ahead.
    pub quickest: String,
    /// The share of the program's time that any of the methods saves at most; 0 if the program's
    /// own is the best, `None` if that is not known.
    pub at_most: Option<f64>,
    /// Reason that it is not known.
    pub unknown: Option<UnknownGain>,
    /// A method that has several reads in flight, if it is quicker than each of them: a bound for
    /// reads that do not depend on each other.
    pub bound: Option<String>,
    /// The time that it takes.
    pub bound_ns: Option<u64>,
}

/// Reason that the gain of a program is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownGain {
    /// The program's reads ran in several threads at once: which part of its time they were is not
    /// known.
    SeveralThreads,
    /// The replayed reads took longer than the program, also while it was watched.
    LongerThanInProgram,
    /// The rounds do not decide it.
    Undecided,
}

/// The gain of the program whose trace is replayed; `None` without a time or a comparison.
pub(super) fn of(run: &Run, comparisons: &[Comparison], by_id: &ById<'_>) -> Option<Gain> {
    let plan = &run.header.plan;
    let trace = plan.trace.as_ref()?;
    // From the state of the cache with which the program began.
    let cache = plan.cells.get(plan.own_replay()?)?.conditions.cache;
    let mut began_alike = comparisons.iter().filter(|one| one.conditions.conditions.cache == cache);
    let (Some(comparison), None) = (began_alike.next(), began_alike.next()) else { return None };
    let method = trace.method.to_string();
    let cells = || comparison.cells.iter().filter_map(|id| by_id.get(id.as_str()).copied());
    let own = cells().find(|cell| cell.method == method)?;
    let again: Vec<u64> = run.program_runs.iter().map(|again| again.wall_ns).collect();
    let unwatched = run.program_runs.iter().filter_map(|again| again.unwatched_ns).min();
    // While it is watched it takes longer, and much longer in windows, so that a share of its time
    // would be too small.
    let watched = median_count(&again).or(trace.wall_ns.filter(|_| !trace.windows));
    let program_ns = unwatched.or(watched)?;
    let quickest = comparison.leader.clone()?;
    let files = recorded_files(plan, trace);
    let is_by_several = by_several_threads(plan, &files);
    // The shortest run may have met a quicker machine than the replay did.
    let is_longer = own.total_ns? > program_ns.max(watched.unwrap_or(0));
    let reads_ns = reads_ns(own, is_by_several, &files)?;
    let reads_ns = if is_longer { reads_ns } else { reads_ns.min(program_ns) };
    let at_most = match most_times_as_fast(comparison, &method) {
        _ if is_by_several => Err(UnknownGain::SeveralThreads),
        _ if is_longer => Err(UnknownGain::LongerThanInProgram),
        None => Err(UnknownGain::Undecided),
        Some(times) => Ok((1.0 - 1.0 / times) * reads_ns as f64 / program_ns as f64),
    };
    let bound = bound(comparison, cells(), &quickest);
    Some(Gain {
        reads_ns,
        program_ns,
        is_unwatched: unwatched.is_some(),
        program_runs: again.len(),
        at_most: at_most.ok(),
        unknown: at_most.err(),
        bound: bound.map(|(_, method)| method.to_string()),
        bound_ns: bound.map(|(total_ns, _)| total_ns),
        quickest,
        method,
    })
}

/// The files whose reads are replayed, as they were seen when they were recorded.
fn recorded_files<'a>(plan: &Plan, trace: &'a PlannedTrace) -> Vec<&'a InspectedFile> {
    let paths: HashSet<&str> = plan.source.own_files().map(|(path, _)| path).collect();
    let is_one = |file: &&InspectedFile| file.path.as_deref().is_some_and(|path| paths.contains(path));
    trace.inspection.iter().flat_map(|inspection| &inspection.files).filter(is_one).collect()
}

/// True if several threads read them: one of the files, or by turns all.
fn by_several_threads(plan: &Plan, files: &[&InspectedFile]) -> bool {
    let replayed = |cell: &Cell| cell.conditions.files() > 1 && cell.conditions.threads > 1;
    plan.cells.iter().any(replayed)
        || files.iter().any(|file| file.reads.as_ref().is_some_and(|reads| reads.threads > 1))
}

fn reads_ns(own: &CellJudgement, is_by_several: bool, files: &[&InspectedFile]) -> Option<u64> {
    let high = own.total_interval_ns.as_ref().and_then(|interval| interval.high);
    let replayed = own.total_ns?.max(high.map_or(0, |high| high as u64));
    // Threads that wait at the same time do so longer together than the clock shows.
    let waits = files.iter().filter_map(|file| Some(file.reads.as_ref()?.waits.total_ns));
    let waited = if is_by_several { 0 } else { waits.fold(0, u64::saturating_add) };
    Some(replayed.max(waited))
}

/// The most times as fast as `own` that any method may be, by the ends of intervals: the leader,
/// and those that may be ahead of it. 1 if none can be faster, `None` if it is not known.
fn most_times_as_fast(comparison: &Comparison, own: &str) -> Option<f64> {
    let is_sure = |coverage: Option<f64>| coverage.is_some_and(|coverage| coverage >= BOUND_LEVEL);
    let mut ahead_of_leader = 1.0f64;
    for ratio in comparison.ratios.iter().filter(|ratio| ratio.place != Place::Behind && ratio.method != own)
    {
        let low = ratio.low.filter(|low| *low > 0.0 && is_sure(ratio.coverage))?;
        ahead_of_leader = ahead_of_leader.max(1.0 / low);
    }
    if comparison.leader.as_deref() == Some(own) {
        return Some(ahead_of_leader);
    }
    let ratio = comparison.ratios.iter().find(|ratio| ratio.method == own)?;
    let is_leader = Some(&ratio.leader) == comparison.leader.as_ref();
    let high = ratio.high.filter(|_| is_leader && is_sure(ratio.coverage))?;
    Some(high.max(1.0) * ahead_of_leader)
}

/// The quickest method that is a bound, if it is quicker than the leader.
fn bound<'a>(
    comparison: &Comparison,
    cells: impl Iterator<Item = &'a CellJudgement> + Clone,
    leader: &str,
) -> Option<(u64, &'a str)> {
    let work = &comparison.conditions.conditions.work;
    let is_bound = |method: &str| method.parse::<Method>().is_ok_and(|method| method.is_bound(work));
    let leader_ns = cells.clone().find(|cell| cell.method == leader)?.total_ns?;
    let bounds = cells.filter(|cell| is_bound(&cell.method));
    let totals = bounds.filter_map(|cell| Some((cell.total_ns?, cell.method.as_str())));
    totals.min().filter(|(total_ns, _)| *total_ns < leader_ns)
}
