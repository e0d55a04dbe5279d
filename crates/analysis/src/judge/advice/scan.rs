//! Advice for scans: the share of the device that a stream already uses, and the cost of counting.

use pagewise_model::{Access, CacheState, Consume, Method, MethodOption, Role, Worker};

use super::case::Case;
use super::note::Note;
use super::phrases::{capital, interval, listed, slower};
use super::read_advice::amplification;
use crate::judge::bound::BoundName;
use crate::judge::cell::{CellJudgement, Status};
use crate::judge::verdict::{FEWEST_ROUNDS, NEAR, Place};
use pagewise_model::format::{percent, time, times};

/// From this share of the device's bandwidth, the rest is not worth a word.
const NEARLY_ALL: f64 = 0.95;

/// Return what follows from the comparison beyond the choice: the insight, and notes.
pub(super) fn explain(case: &Case<'_>) -> (Option<String>, Vec<Note>) {
    let counting = counting(case);
    match case.comparison.conditions.conditions.cache {
        CacheState::Cold => {
            let (insight, why_not) = match insight(case) {
                Ok(insight) => (Some(insight), None),
                Err(reason) => {
                    (None, Some(format!("The possible gain of a method is unknown, because {reason}.")))
                }
            };
            let notes = [why_not, shares(case), counting].into_iter().flatten().map(Note::Said);
            (insight, notes.chain(amplification(case)).collect())
        }
        _ => {
            let notes = limits(case).into_iter().chain(counting).map(Note::Said);
            (None, notes.chain(amplification(case)).collect())
        }
    }
}

/// Sentence about the share of the device that the plain stream reaches and what another method
/// gains, or the reason that it is unknown.
fn insight(case: &Case<'_>) -> Result<String, String> {
    let stream = stream(case)?;
    let (method, share) = (&stream.method, stream.of_device_bandwidth);
    let (Some(share), Some(low), Some(high)) =
        (share, stream.of_device_bandwidth_low, stream.of_device_bandwidth_high)
    else {
        return Err(format!("the share of this device that {method} reaches was not measured"));
    };
    if stream.samples < FEWEST_ROUNDS {
        return Err(format!("{method} has {} valid rounds, and {FEWEST_ROUNDS} are needed", stream.samples));
    }
    let (text, ends) = (percent(share), interval(low, high));
    let runs = format!("{method} runs at {text} {ends} of the most that this device delivered in this run");
    let others = match gained(case, method) {
        Some(gained) => format!("; {gained}"),
        // Of a share of 0 nothing follows.
        None if share < NEARLY_ALL && low > 0.0 => format!(
            "; no method here is faster, though another had {}x [{}, {}] as much of it",
            times(1.0 / share),
            times(1.0 / high),
            times(1.0 / low)
        ),
        None => "; no method here is faster".to_string(),
    };
    Ok(runs + &others)
}

/// The gain of the leader over the stream, with its interval; `None` if the stream leads.
fn gained(case: &Case<'_>, stream: &str) -> Option<String> {
    let leader = case.comparison.leader.as_deref().filter(|leader| *leader != stream)?;
    let ratio = case.comparison.ratios.iter().find(|ratio| ratio.method == stream)?;
    Some(match (ratio.place, ratio.low, ratio.high, ratio.bound) {
        (Place::Behind, Some(low), Some(high), _) => {
            format!("{leader} gains {}x [{}, {}]", times(ratio.ratio), times(low), times(high))
        }
        (_, _, _, Some(bound)) => format!("it is {} than {leader}, these rounds do not tell", slower(bound)),
        _ => format!("too few rounds compare it with {leader}"),
    })
}

/// The most obvious stream: read(2) with only a buffer, of the usual size if that was measured,
/// else the fastest.
fn stream<'a>(case: &Case<'a>) -> Result<&'a CellJudgement, String> {
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
    Err(missing.map_or_else(|| "no plain stream (read:buffer=SIZE) is among the methods".to_string(), lack))
}

/// Sentence about the share of the device's bandwidth that each method reaches.
fn shares(case: &Case<'_>) -> Option<String> {
    let cells = case.compared.iter().filter(|cell| cell.status == Status::Ok);
    let mut shares: Vec<(f64, &str)> =
        cells.filter_map(|cell| Some((cell.of_device_bandwidth?, cell.method.as_str()))).collect();
    shares.sort_by(|left, right| right.0.total_cmp(&left.0));
    let words: Vec<String> =
        shares.iter().map(|(share, method)| format!("{method} {}", percent(*share))).collect();
    (!words.is_empty()).then(|| format!("Of the most that this device delivered: {}.", words.join(", ")))
}

/// Sentence about the limits of the methods if the bytes come from memory.
fn limits(case: &Case<'_>) -> Option<String> {
    let limited = |name: BoundName| -> Vec<String> {
        let cells = case.compared.iter().filter(|cell| cell.limit.is_named(name));
        cells.map(|cell| cell.method.clone()).collect()
    };
    let mut names: Vec<BoundName> = case.compared.iter().filter_map(|cell| cell.limit.bound).collect();
    names.sort_by_key(|name| name.subject());
    names.dedup();
    let words: Vec<String> = names
        .into_iter()
        .map(|name| (limited(name), name.subject()))
        .filter(|(methods, _)| !methods.is_empty())
        .map(|(methods, subject)| format!("{subject} limits {}", listed(&methods)))
        .collect();
    (!words.is_empty()).then(|| format!("{}.", capital(&words.join("; "))))
}

/// Sentence about the cost of reading every byte: the same method against one that touches a word
/// of each page.
fn counting(case: &Case<'_>) -> Option<String> {
    let consumes = match case.comparison.conditions.conditions.consume()? {
        Consume::Touch => return None,
        Consume::Sum => "Summing the bytes",
        Consume::Lines => "Counting lines",
    };
    let advised = case.recommended.or(case.comparison.leader.as_deref());
    let mut candidates: Vec<&CellJudgement> =
        case.compared.iter().copied().filter(|cell| cell.status == Status::Ok).collect();
    candidates.sort_by_key(|cell| advised != Some(cell.method.as_str()));
    let (cell, full_ns, touched_ns) =
        candidates.into_iter().find_map(|cell| Some((cell, cell.total_ns?, touching(case, cell)?)))?;
    let (all, alone) = (time(full_ns), time(touched_ns));
    let method = &cell.method;
    if full_ns as f64 <= touched_ns as f64 * NEAR {
        return Some(format!(
            "{consumes} costs {method} no distinguishable time: {all}, and {alone} where pages are only touched."
        ));
    }
    Some(format!(
        "{consumes} costs {method} {}: {all}, and {alone} where pages are only touched.",
        time((full_ns - touched_ns) as f64)
    ))
}

/// The total of the same method under the same conditions with pages only touched.
fn touching(case: &Case<'_>, cell: &CellJudgement) -> Option<u64> {
    let place = |cell: &CellJudgement| {
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
            && place(other) == place(cell)
    };
    case.cells.iter().find(same)?.total_ns
}

fn lack(lack: super::note::Lack) -> String {
    match lack {
        super::note::Lack::NotRanked(method, reason) => format!("{method} is not ranked: {reason}"),
        super::note::Lack::FewRounds(method, rounds) => format!("{method} {rounds}"),
    }
}
