//! The effects of methods on everything else in their process, compared with the idle worker.
//!
//! Stalls are reported if something waits for the device: with data in memory, little can be held
//! up. A difference is reported if it exceeds the idle baseline by a factor and by an amount, and
//! the beats are numerous enough.

use std::cmp::Reverse;

use pagewise_model::CacheState;

use super::case::Case;
use crate::judge::cell::{CellJudgement, Status};
use crate::judge::stall::Stall;

/// The p99 delay is late from this many times the idle p99 ...
pub const TIMES_IDLE: u64 = 3;
/// ... if it also exceeds this.
pub const LEAST_NS: u64 = 1_000_000;
/// Fewest beats that support a p99.
pub const FEWEST_BEATS: u64 = 300;
/// If half of the beats are late there cannot be many, so this many suffice.
const FEWEST_LATE_BEATS: u64 = 30;
/// Fewest beats of the baseline.
pub const FEWEST_IDLE_BEATS: u64 = 100;

/// Effects of methods on everything else in their process.
#[derive(Clone, Debug, PartialEq)]
pub enum HeldUp {
    /// A method delays these kinds of heartbeats, the latest first.
    By(String, Vec<Stall>),
    /// Methods next to which heartbeats are about as regular as in an idle worker, with the p99 of
    /// their delays in ns; true if it is so with every method.
    ByNone(Vec<(String, u64)>, bool),
    /// Methods with too few heartbeats.
    Unknown(Vec<String>),
}

pub(super) fn effects(case: &Case<'_>) -> Vec<HeldUp> {
    let conditions = &case.comparison.conditions.conditions;
    let in_memory = conditions.cache == CacheState::Warm && conditions.stays_in_memory();
    let known = case.compared.iter().filter(|cell| cell.status == Status::Ok && cell.stall.is_some());
    let known: Vec<&CellJudgement> = known.copied().collect();
    if in_memory || known.is_empty() {
        return Vec::new();
    }
    let (enough, few): (Vec<&CellJudgement>, Vec<&CellJudgement>) =
        known.into_iter().partition(|cell| is_known(cell));
    let mut held: Vec<(&CellJudgement, Vec<&Stall>)> =
        enough.iter().map(|cell| (*cell, held_up(cell))).filter(|(_, stalls)| !stalls.is_empty()).collect();
    held.sort_by_key(|(_, stalls)| Reverse(stalls[0].busy.p99_ns));
    let others: Vec<&CellJudgement> = enough.into_iter().filter(|cell| held_up(cell).is_empty()).collect();
    let by = |(cell, stalls): &(&CellJudgement, Vec<&Stall>)| {
        HeldUp::By(cell.method.clone(), stalls.iter().copied().cloned().collect())
    };
    let mut effects: Vec<HeldUp> = held.iter().map(by).collect();
    if !others.is_empty() {
        let methods = others.iter().map(|cell| (cell.method.clone(), p99_ns(cell))).collect();
        effects.push(HeldUp::ByNone(methods, held.is_empty() && few.is_empty()));
    }
    if !few.is_empty() {
        effects.push(HeldUp::Unknown(few.iter().map(|cell| cell.method.clone()).collect()));
    }
    effects
}

fn is_many(stall: &Stall) -> bool {
    let mostly_late = stall.beats >= FEWEST_LATE_BEATS && is_late(stall, stall.busy.p50_ns);
    (stall.beats >= FEWEST_BEATS || mostly_late)
        && stall.idle.is_some_and(|idle| idle.beats >= FEWEST_IDLE_BEATS)
}

/// True if a delay exceeds the baseline.
fn is_late(stall: &Stall, delay_ns: u64) -> bool {
    let idle_ns = stall.idle.map_or(0, |idle| idle.p99_ns);
    delay_ns > LEAST_NS && delay_ns > idle_ns.saturating_mul(TIMES_IDLE)
}

fn is_known(cell: &CellJudgement) -> bool {
    cell.stall.iter().flatten().any(is_many)
}

/// Kinds of heartbeats that the method delays, the latest first.
fn held_up(cell: &CellJudgement) -> Vec<&Stall> {
    let late = |stall: &&Stall| is_many(stall) && is_late(stall, stall.busy.p99_ns);
    let mut stalls: Vec<&Stall> = cell.stall.iter().flatten().filter(late).collect();
    stalls.sort_by_key(|stall| Reverse(stall.busy.p99_ns));
    stalls
}

/// The delay of 99 of 100 beats next to a method, of the kind that is late the most.
fn p99_ns(cell: &CellJudgement) -> u64 {
    let known = cell.stall.iter().flatten().filter(|stall| is_many(stall));
    known.map(|stall| stall.busy.p99_ns).max().unwrap_or(0)
}
