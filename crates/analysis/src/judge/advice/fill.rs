//! Advice for fills: the gain from prefaulting, the cost it moves into set-up, and the total.

use pagewise_model::{Method, MethodOption};

use super::append::notes_of_writes;
use super::case::{Case, Total};
use super::effort::effort;
use super::note::Note;
use crate::judge::cell::{CellJudgement, Status};
use crate::judge::verdict::NEAR;
use pagewise_model::format::{time, times};

/// The method that all others are compared with.
const PLAIN: &str = "mmap";
/// A thread that touches pages ahead hides their faults if the fill takes at most this many times
/// as long as a prefaulted one.
const HIDDEN: f64 = 1.1;

/// Return the effect of prefaulting, and notes.
pub(super) fn explain(case: &Case<'_>) -> (Option<String>, Vec<Note>) {
    let outcome = match case.silence() {
        Some(_) => None,
        None => Some(prefaulting(case)),
    };
    let (insight, why_not) = match outcome {
        Some(Ok(insight)) => (Some(insight), None),
        Some(Err(reason)) => (None, Some(format!("The gain from prefaulting is unknown, because {reason}."))),
        None => (None, None),
    };
    let pretouch = case.silence().is_none().then(|| pretouch_in_sight(case)).flatten();
    let notes = [why_not, pretouch, faults(case)].into_iter().flatten().map(Note::Said);
    (insight, notes.chain(notes_of_writes(case)).collect())
}

/// Sentence about the gain of the fill and about the total.
fn prefaulting(case: &Case<'_>) -> Result<String, String> {
    let plain = plain(case)?;
    let prefaulted = prefaulted(case).ok_or_else(|| "no method that prefaults is ranked".to_string())?;
    let method = &prefaulted.method;
    let (own_ns, plain_ns) = (prefaulted.measured_ns.unwrap_or(0), plain.measured_ns.unwrap_or(0));
    let fill = match case.times_faster(prefaulted, plain) {
        Some(gain) => format!("{method} makes the fill {}x faster{}", times(gain), moved(prefaulted, plain)),
        None => format!(
            "{method} does not make the fill faster than {PLAIN} distinguishably in these rounds ({} and {})",
            time(own_ns),
            time(plain_ns)
        ),
    };
    let total = match case.total(method, PLAIN) {
        Some(Total::Gains(gain)) => format!("in total it gains {}x", times(gain)),
        Some(Total::Costs(cost)) => format!("in total it costs {}x", times(cost)),
        Some(Total::Indistinguishable) | None => {
            format!("in total the two are not distinguishable{}", totals(prefaulted, plain))
        }
    };
    let steady = steady_writer(case, prefaulted, plain);
    Ok([Some(fill), Some(total), steady].into_iter().flatten().collect::<Vec<_>>().join("; "))
}

fn plain<'a>(case: &Case<'a>) -> Result<&'a CellJudgement, String> {
    case.ranked().find(|cell| cell.method == PLAIN).ok_or_else(|| {
        case.missing(PLAIN).map_or_else(|| format!("plain {PLAIN} is not among the methods"), lack)
    })
}

/// The prefaulted method to report: the recommended one, else the simplest of those with the
/// fastest fill.
fn prefaulted<'a>(case: &Case<'a>) -> Option<&'a CellJudgement> {
    let candidates: Vec<&CellJudgement> = case.ranked().filter(|cell| prefaults(&cell.method)).collect();
    if let Some(advised) = candidates.iter().find(|cell| case.recommended == Some(cell.method.as_str())) {
        return Some(advised);
    }
    let fastest = candidates.iter().filter_map(|cell| cell.measured_ns).min()?;
    candidates
        .into_iter()
        .filter(|cell| cell.measured_ns.is_some_and(|ns| ns as f64 <= fastest as f64 * NEAR))
        .min_by_key(|cell| effort(&cell.method))
}

/// True if set-up creates the pages that the fill will need.
fn prefaults(method: &str) -> bool {
    use MethodOption::{Lock, Populate, PopulateRead, PopulateWrite, Touch};
    let options = [Populate, PopulateRead, PopulateWrite, Touch, Lock];
    method.parse::<Method>().is_ok_and(|method| options.iter().any(|option| method.has(*option)))
}

fn moved(prefaulted: &CellJudgement, plain: &CellJudgement) -> String {
    match (prefaulted.prepared_ns(), plain.prepared_ns()) {
        (Some(own), Some(plain)) if own > plain => {
            format!(" by moving {} into set-up", time((own - plain) as f64))
        }
        _ => String::new(),
    }
}

fn totals(one: &CellJudgement, other: &CellJudgement) -> String {
    match (one.total_ns, other.total_ns) {
        (Some(one), Some(other)) => format!(" ({} and {})", time(one), time(other)),
        _ => String::new(),
    }
}

/// Sentence about a thread that touches pages ahead, if it makes the fill as fast and its longest
/// blocks short.
fn steady_writer(case: &Case<'_>, prefaulted: &CellJudgement, plain: &CellJudgement) -> Option<String> {
    let pretouch = pretouching(case)?;
    if !hides(pretouch, prefaulted, plain) {
        return None;
    }
    let (own, plains) = (p999(pretouch)?, p999(plain)?);
    Some(format!(
        "for a steady writer, {} hides it: p99.9 of a block {} instead of {}, with {} of set-up instead of {}",
        pretouch.method,
        time(own),
        time(plains),
        time(pretouch.prepared_ns()?),
        time(prefaulted.prepared_ns()?)
    ))
}

fn hides(pretouch: &CellJudgement, prefaulted: &CellJudgement, plain: &CellJudgement) -> bool {
    let as_fast = pretouch
        .measured_ns
        .zip(prefaulted.measured_ns)
        .is_some_and(|(own, best)| own as f64 <= best as f64 * HIDDEN);
    let shorter = p999(pretouch).zip(p999(plain)).is_some_and(|(own, plain)| own * NEAR < plain);
    as_fast && shorter
}

/// The pre-toucher with the fastest fill.
fn pretouching<'a>(case: &Case<'a>) -> Option<&'a CellJudgement> {
    case.ranked()
        .filter(|cell| cell.method.parse::<Method>().is_ok_and(|method| method.pretouch().is_some()))
        .min_by_key(|cell| cell.measured_ns.unwrap_or(u64::MAX))
}

/// Sentence about a pre-toucher that does not hide the faults.
fn pretouch_in_sight(case: &Case<'_>) -> Option<String> {
    let (pretouch, prefaulted, plain) = (pretouching(case)?, prefaulted(case)?, plain(case).ok()?);
    if hides(pretouch, prefaulted, plain) {
        return None;
    }
    let tail = match (p999(pretouch), p999(plain)) {
        (Some(own), Some(plain)) => {
            format!(", and p99.9 of a block {} where {PLAIN} has {}", time(own), time(plain))
        }
        _ => String::new(),
    };
    Some(format!(
        "{} does not hide the page faults: its fill takes {}, where {} takes {}{tail}.",
        pretouch.method,
        time(pretouch.measured_ns?),
        prefaulted.method,
        time(prefaulted.measured_ns?)
    ))
}

fn p999(cell: &CellJudgement) -> Option<f64> {
    Some(cell.latency_ns.as_ref()?.p999? as f64)
}

/// Sentence about the effect of page faults on single blocks: the tail of the distribution.
fn faults(case: &Case<'_>) -> Option<String> {
    let shown = [plain(case).ok(), prefaulted(case), pretouching(case)];
    let words: Vec<String> = shown
        .into_iter()
        .flatten()
        .filter(|cell| cell.status == Status::Ok)
        .filter_map(|cell| {
            let longest = cell.latency_ns.as_ref()?.max as f64;
            Some(format!("{} {} and {}", cell.method, time(p999(cell)?), time(longest)))
        })
        .collect();
    (words.len() > 1)
        .then(|| format!("Page faults in a block's time, p99.9 and longest: {}.", words.join(", ")))
}

fn lack(lack: super::note::Lack) -> String {
    match lack {
        super::note::Lack::NotRanked(method, reason) => format!("{method} is not ranked: {reason}"),
        super::note::Lack::FewRounds(method, rounds) => format!("{method} {rounds}"),
    }
}
