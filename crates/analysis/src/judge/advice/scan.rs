//! Advice for scans: the share of the device that a stream already uses, and the cost of counting.

use pagewise_model::{Access, CacheState, Consume, Method, MethodOption, Role, Worker};

use super::case::{Case, Total};
use super::phrases::{capital, listed};
use super::read_advice::amplification;
use crate::judge::bound::BoundName;
use crate::judge::cell::{CellJudgement, Status};
use crate::judge::verdict::{FEWEST_ROUNDS, NEAR};
use pagewise_model::format::{percent, time, times};

/// From this share of the device's bandwidth, no method can gain what a user would notice.
pub const NOTHING_LEFT: f64 = 0.95;

/// Return what follows from the comparison beyond the choice: the insight, and notes.
pub(super) fn explain(case: &Case<'_>) -> (Option<String>, Vec<String>) {
    let counting = counting(case);
    match case.comparison.conditions.conditions.cache {
        CacheState::Cold => {
            let (insight, why_not) = match insight(case) {
                Ok(insight) => (Some(insight), None),
                Err(reason) => {
                    (None, Some(format!("The possible gain of a method is unknown, because {reason}.")))
                }
            };
            let notes = [why_not, shares(case), counting].into_iter().flatten().chain(amplification(case));
            (insight, notes.collect())
        }
        _ => (None, limits(case).into_iter().chain(counting).chain(amplification(case)).collect()),
    }
}

/// Sentence about the remaining potential of the plain stream, or the reason it is unknown.
fn insight(case: &Case<'_>) -> Result<String, String> {
    let stream = stream(case)?;
    let unknown = || format!("the share of this device that {} reaches was not measured", stream.method);
    let share =
        stream.of_device_bandwidth.ok_or_else(|| ceiling_too_low(case, stream).unwrap_or_else(unknown))?;
    if stream.samples < FEWEST_ROUNDS {
        return Err(format!(
            "{} has {} valid rounds, and {FEWEST_ROUNDS} are needed",
            stream.method, stream.samples
        ));
    }
    let (method, used) = (&stream.method, (share * 100.0).round() as u64);
    // A ceiling is a measurement too. What a method gains in the same rounds is known better.
    if share >= NOTHING_LEFT
        && let Some(leader) = case.comparison.leader.as_deref()
        && leader != method
        && let Some(Total::Gains(gain)) = case.total(leader, method)
    {
        return Ok(format!(
            "{method} runs at {used} % of the ceiling that was measured of this device, and {leader} still gains {}x",
            times(gain)
        ));
    }
    match share {
        _ if used >= 100 => {
            Ok(format!("{method} already runs at the ceiling of this device: no method can gain"))
        }
        share if share >= NOTHING_LEFT => Ok(format!(
            "{method} already runs at {used} % of this device: no method can gain more than {} %",
            100 - used
        )),
        share => Ok(format!(
            "{method} runs at {used} % of this device: mapping or deeper readahead can gain up to {}x{}",
            times(1.0 / share),
            gained(case, method)
        )),
    }
}

/// Sentence about a method that exceeded the measured ceiling: the stream, else the fastest such method.
fn ceiling_too_low(case: &Case<'_>, stream: &CellJudgement) -> Option<String> {
    let beyond = |cell: &CellJudgement| Some((cell.beyond_device_ceiling?, cell.method.clone()));
    let alike = |cell: &&CellJudgement| {
        (cell.workload, cell.file_bytes, cell.threads) == (stream.workload, stream.file_bytes, stream.threads)
    };
    let most = || {
        let others = case.cells.iter().filter(alike).filter_map(beyond);
        others.max_by(|left, right| left.0.total_cmp(&right.0))
    };
    let (share, method) = beyond(stream).or_else(most)?;
    Some(format!("{method} is {}x as fast as the ceiling of this device that was measured", times(share)))
}

/// Gain of a method of this comparison over the stream.
fn gained(case: &Case<'_>, stream: &str) -> String {
    let Some(leader) = case.comparison.leader.as_deref() else { return String::new() };
    if leader == stream {
        return "; none of the methods here does".to_string();
    }
    match case.total(leader, stream) {
        Some(Total::Gains(gain)) => format!("; {leader} gains {}x", times(gain)),
        Some(_) => "; none of the methods here does distinguishably in these rounds".to_string(),
        None => String::new(),
    }
}

/// The most obvious stream: read(2) with only a buffer, of the usual size if that was measured, else the fastest.
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
    Err(missing.unwrap_or_else(|| "no plain stream (read:buffer=SIZE) is among the methods".to_string()))
}

/// Sentence about the share of the device's bandwidth that each method reaches.
fn shares(case: &Case<'_>) -> Option<String> {
    let cells = case.compared.iter().filter(|cell| cell.status == Status::Ok);
    let mut shares: Vec<(f64, &str)> =
        cells.filter_map(|cell| Some((cell.of_device_bandwidth?, cell.method.as_str()))).collect();
    shares.sort_by(|left, right| right.0.total_cmp(&left.0));
    let words: Vec<String> =
        shares.iter().map(|(share, method)| format!("{method} {}", percent(*share))).collect();
    (!words.is_empty()).then(|| format!("Of what this device can do: {}.", words.join(", ")))
}

/// Sentence about the limits of the methods if the bytes come from memory.
fn limits(case: &Case<'_>) -> Option<String> {
    let limited = |name: BoundName| -> Vec<String> {
        let cells = case.compared.iter().filter(|cell| cell.bound == Some(name));
        cells.map(|cell| cell.method.clone()).collect()
    };
    let words: Vec<String> = [
        (BoundName::Cpu, "the CPU limits"),
        (BoundName::MemoryCopy, "copying from memory limits"),
        (BoundName::DeviceBandwidth, "the device limits"),
        (BoundName::Waiting, "waiting limits"),
    ]
    .into_iter()
    .map(|(name, what)| (limited(name), what))
    .filter(|(methods, _)| !methods.is_empty())
    .map(|(methods, what)| format!("{what} {}", listed(&methods)))
    .collect();
    (!words.is_empty()).then(|| format!("{}.", capital(&words.join("; "))))
}

/// Sentence about the cost of reading every byte: the same method against one that touches a word of each page.
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
