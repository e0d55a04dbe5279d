//! Advice for scans: the share of the device that a stream already uses, and the cost of counting.

use pagewise_model::{Access, CacheState, Consume, Method, MethodOption, Role, Worker};

use super::case::Case;
use super::insight::{Insight, StreamGain};
use super::note::{Lack, Note};
use super::read_advice::amplification;
use crate::judge::bound::BoundName;
use crate::judge::cell::{CellJudgement, Status};
use crate::judge::verdict::{FEWEST_ROUNDS, NEAR, Place};
use crate::statistics::Extent;

/// From this share of the device's bandwidth, the rest is not worth a word.
const NEARLY_ALL: f64 = 0.95;

/// Return what follows from the comparison beyond the choice: the insight, and notes.
pub(super) fn explain(case: &Case<'_>) -> (Option<Insight>, Vec<Note>) {
    let (insight, first) = match case.comparison.conditions.conditions.cache {
        CacheState::Cold => match insight(case) {
            Ok(insight) => (Some(insight), [None, shares(case)]),
            Err(lack) => (None, [Some(Note::UnknownGain(lack)), shares(case)]),
        },
        _ => (None, [limits(case), None]),
    };
    let notes = first.into_iter().flatten().chain(consuming(case)).chain(amplification(case));
    (insight, notes.collect())
}

/// The share of the device that the plain stream reaches and what another method gains, or the
/// reason that it is unknown.
fn insight(case: &Case<'_>) -> Result<Insight, Lack> {
    let stream = stream(case)?;
    let method = stream.method.clone();
    let (Some(share), Some(low), Some(high)) =
        (stream.of_device_bandwidth, stream.of_device_bandwidth_low, stream.of_device_bandwidth_high)
    else {
        return Err(Lack::NoShare(method));
    };
    if stream.samples < FEWEST_ROUNDS {
        return Err(Lack::FewRounds(method, stream.samples));
    }
    // Of a share of 0 nothing follows.
    let gain = gain(case, &method).unwrap_or(StreamGain::Nothing(share < NEARLY_ALL && low > 0.0));
    Ok(Insight::Stream { method, share: Extent { low, median: share, high }, gain })
}

/// The gain of the leader over the stream, with its interval; `None` if the stream leads.
fn gain(case: &Case<'_>, stream: &str) -> Option<StreamGain> {
    let leader = case.comparison.leader.clone().filter(|leader| *leader != stream)?;
    let ratio = case.comparison.ratios.iter().find(|ratio| ratio.method == stream)?;
    Some(match (ratio.place, ratio.low, ratio.high, ratio.bound) {
        (Place::Behind, Some(low), Some(high), _) => {
            StreamGain::Known(leader, Extent { low, median: ratio.ratio, high })
        }
        // The table shows its interval, whose upper end is more certain than the bound.
        (Place::Open, _, Some(high), Some(bound)) => StreamGain::AtMost(leader, bound.max(high - 1.0)),
        (_, _, _, Some(bound)) => StreamGain::AtMost(leader, bound),
        _ => StreamGain::FewRounds(leader),
    })
}

/// The most obvious stream: read(2) with only a buffer, of the usual size if that was measured,
/// else the fastest.
fn stream<'a>(case: &Case<'a>) -> Result<&'a CellJudgement, Lack> {
    let is_stream = |method: &Method| {
        let plain = method.options().iter().all(|option| matches!(option, MethodOption::Buffer(_)));
        *method.worker() == Worker::Native && method.access() == Access::Read && plain
    };
    let streams: Vec<(&CellJudgement, Method)> = case
        .compared
        .iter()
        .filter_map(|cell| Some((*cell, cell.method.parse::<Method>().ok()?)))
        .filter(|(_, method)| is_stream(method))
        .collect();
    let with_figures = || streams.iter().filter(|(cell, _)| cell.status == Status::Ok);
    let usual = with_figures().find(|(_, method)| method.buffer() == Some(Method::DEFAULT_BUFFER));
    let fastest = with_figures().min_by_key(|(cell, _)| cell.total_ns.unwrap_or(u64::MAX));
    if let Some((cell, _)) = usual.or(fastest) {
        return Ok(cell);
    }
    let missing = streams.first().and_then(|(cell, _)| case.missing(&cell.method));
    Err(missing.unwrap_or(Lack::NoStream))
}

/// The share of the device's bandwidth that each method reaches.
fn shares(case: &Case<'_>) -> Option<Note> {
    let cells = case.compared.iter().filter(|cell| cell.status == Status::Ok);
    let mut shares: Vec<(String, f64)> =
        cells.filter_map(|cell| Some((cell.method.clone(), cell.of_device_bandwidth?))).collect();
    shares.sort_by(|left, right| right.1.total_cmp(&left.1));
    (!shares.is_empty()).then_some(Note::Shares(shares))
}

/// The limits of the methods if the bytes come from memory.
fn limits(case: &Case<'_>) -> Option<Note> {
    let limited = |name: BoundName| -> Vec<String> {
        let cells = case.compared.iter().filter(|cell| cell.limit.is_named(name));
        cells.map(|cell| cell.method.clone()).collect()
    };
    let mut names: Vec<BoundName> = case.compared.iter().filter_map(|cell| cell.limit.bound).collect();
    names.sort();
    names.dedup();
    let limits: Vec<(BoundName, Vec<String>)> = names
        .into_iter()
        .map(|name| (name, limited(name)))
        .filter(|(_, methods)| !methods.is_empty())
        .collect();
    (!limits.is_empty()).then_some(Note::Limits(limits))
}

/// The cost of reading every byte: the same method against one that touches a word of each page.
fn consuming(case: &Case<'_>) -> Option<Note> {
    let consume = case.comparison.conditions.conditions.consume().filter(|read| *read != Consume::Touch)?;
    let advised = case.recommended.or(case.comparison.leader.as_deref());
    let mut candidates: Vec<&CellJudgement> =
        case.compared.iter().copied().filter(|cell| cell.status == Status::Ok).collect();
    candidates.sort_by_key(|cell| advised != Some(cell.method.as_str()));
    let (cell, full_ns, touched_ns) =
        candidates.into_iter().find_map(|cell| Some((cell, cell.total_ns?, touching(case, cell)?)))?;
    let costs = full_ns as f64 > touched_ns as f64 * NEAR;
    Some(Note::Consuming { consume, method: cell.method.clone(), full_ns, touched_ns, costs })
}

/// The total of the same method under the same conditions with pages only touched.
fn touching(case: &Case<'_>, cell: &CellJudgement) -> Option<u64> {
    let conditions = |cell: &CellJudgement| {
        let mut parameters = cell.parameters.clone();
        parameters.consume = None;
        (
            cell.workload,
            cell.file_bytes,
            cell.span_bytes,
            cell.memory_limit_bytes,
            cell.cache,
            cell.threads,
            parameters,
        )
    };
    let same = |other: &&CellJudgement| {
        other.role == Role::Measured
            && other.status == Status::Ok
            && other.method == cell.method
            && other.parameters.consume == Some(Consume::Touch)
            && conditions(other) == conditions(cell)
    };
    case.cells.iter().find(same)?.total_ns
}
