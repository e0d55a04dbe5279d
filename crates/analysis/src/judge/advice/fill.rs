//! Advice for fills: the gain from prefaulting, the cost it moves into set-up, and the total.

use pagewise_model::{Method, MethodOption};

use super::append::notes_of_writes;
use super::case::Case;
use super::effort::effort;
use super::insight::{FillFigures, Insight};
use super::note::{Lack, Note};
use crate::judge::cell::{CellJudgement, Status};
use crate::judge::verdict::NEAR;

/// The method that all others are compared with.
const PLAIN: &str = "mmap";
/// A thread that touches pages ahead hides their faults if the fill takes at most this many times
/// as long as a prefaulted one.
const HIDDEN: f64 = 1.1;

/// Return the effect of prefaulting, and notes.
pub(super) fn explain(case: &Case<'_>) -> (Option<Insight>, Vec<Note>) {
    let effect = case.recommended.map(|_| prefaulting(case));
    let (insight, unknown) = match effect {
        Some(Ok(insight)) => (Some(insight), None),
        Some(Err(lack)) => (None, Some(Note::UnknownPrefault(lack))),
        None => (None, None),
    };
    let unhidden = case.recommended.and_then(|_| unhidden(case));
    let notes = [unknown, unhidden, blocks(case)].into_iter().flatten().chain(notes_of_writes(case));
    (insight, notes.collect())
}

/// The gain of the fill, and the total.
fn prefaulting(case: &Case<'_>) -> Result<Insight, Lack> {
    let plain = plain(case)?;
    let prefaulted = prefaulted(case).ok_or(Lack::NoPrefault)?;
    let steady = pretouching(case).filter(|pretouch| hides(pretouch, prefaulted, plain));
    Ok(Insight::Prefault {
        plain: FillFigures::of(plain),
        prefaulted: FillFigures::of(prefaulted),
        faster: case.times_faster(prefaulted, plain),
        in_total: case.times_faster_in_total(&prefaulted.method, PLAIN),
        steady: steady.map(FillFigures::of),
    })
}

fn plain<'a>(case: &Case<'a>) -> Result<&'a CellJudgement, Lack> {
    let ranked = case.ranked().find(|cell| cell.method == PLAIN);
    ranked.ok_or_else(|| case.missing(PLAIN).unwrap_or(Lack::NoPlainMapping))
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

/// True if a thread that touches pages ahead makes the fill as fast and its longest blocks short.
fn hides(pretouch: &CellJudgement, prefaulted: &CellJudgement, plain: &CellJudgement) -> bool {
    let as_fast = pretouch
        .measured_ns
        .zip(prefaulted.measured_ns)
        .is_some_and(|(own, best)| own as f64 <= best as f64 * HIDDEN);
    let shorter =
        p999(pretouch).zip(p999(plain)).is_some_and(|(own, plain)| own as f64 * NEAR < plain as f64);
    as_fast && shorter
}

/// The pre-toucher with the fastest fill.
fn pretouching<'a>(case: &Case<'a>) -> Option<&'a CellJudgement> {
    case.ranked()
        .filter(|cell| cell.method.parse::<Method>().is_ok_and(|method| method.pretouch().is_some()))
        .min_by_key(|cell| cell.measured_ns.unwrap_or(u64::MAX))
}

/// A pre-toucher that does not hide the faults.
fn unhidden(case: &Case<'_>) -> Option<Note> {
    let (pretouch, prefaulted, plain) = (pretouching(case)?, prefaulted(case)?, plain(case).ok()?);
    (!hides(pretouch, prefaulted, plain)).then(|| Note::Unhidden {
        pretouch: FillFigures::of(pretouch),
        prefaulted: FillFigures::of(prefaulted),
        plain: FillFigures::of(plain),
    })
}

fn p999(cell: &CellJudgement) -> Option<u64> {
    cell.latency_ns.as_ref()?.p999
}

/// The effect of page faults on single blocks: the tail of the distribution.
fn blocks(case: &Case<'_>) -> Option<Note> {
    let shown = [plain(case).ok(), prefaulted(case), pretouching(case)].into_iter().flatten();
    let shown = shown.filter(|cell| cell.status == Status::Ok);
    let tail = |cell: &CellJudgement| Some((cell.method.clone(), p999(cell)?, cell.latency_ns.as_ref()?.max));
    let tails: Vec<(String, u64, u64)> = shown.filter_map(tail).collect();
    (tails.len() > 1).then_some(Note::Blocks(tails))
}
