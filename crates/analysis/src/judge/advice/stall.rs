//! Sentences about the effects of methods on everything else in their process, compared with the
//! idle worker.
//!
//! They are reported if something waits for the device: with data in memory, little can be held up.
//! A difference is reported if it exceeds the idle baseline by a factor and by an amount, and the
//! beats are numerous enough.

use std::cmp::Reverse;

use pagewise_model::CacheState;

use super::case::Case;
use super::phrases::listed;
use crate::judge::cell::{CellJudgement, Status};
use crate::judge::stall::Stall;
use pagewise_model::format::time;

/// The p99 delay is late from this many times the idle p99 ...
const TIMES_IDLE: u64 = 3;
/// ... if it also exceeds this.
const LEAST_NS: u64 = 1_000_000;
/// Fewest beats that support a p99.
const FEWEST_BEATS: u64 = 300;
/// If half of the beats are late there cannot be many, so this many suffice.
const FEWEST_LATE_BEATS: u64 = 30;
/// Fewest beats of the baseline.
const FEWEST_IDLE_BEATS: u64 = 100;

pub(super) fn sentences(case: &Case<'_>) -> Vec<String> {
    let conditions = &case.comparison.conditions.conditions;
    let in_memory = conditions.cache == CacheState::Warm && conditions.fits_memory();
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
    let mut sentences: Vec<String> = held.iter().map(|(cell, stalls)| holds_up(cell, stalls)).collect();
    sentences.extend(holds_up_nothing(&others, held.is_empty() && few.is_empty()));
    if !few.is_empty() {
        let methods: Vec<String> = few.iter().map(|cell| cell.method.clone()).collect();
        sentences.push(format!(
            "Stalls by {} are not reported: fewer than {FEWEST_BEATS} heartbeats, or {FEWEST_IDLE_BEATS} of the idle worker.",
            listed(&methods)
        ));
    }
    sentences
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

/// The meaning of a kind of beats.
fn what(kind: &str) -> String {
    match kind {
        "thread" => "other threads".to_string(),
        "virtual-thread" => "virtual threads".to_string(),
        "safepoint" => "safepoints".to_string(),
        "goroutine" => "other goroutines".to_string(),
        other => format!("its heartbeat '{other}'"),
    }
}

fn holds_up(cell: &CellJudgement, stalls: &[&Stall]) -> String {
    let text = |stall: &&Stall| {
        let idle = stall.idle.map_or_else(String::new, |idle| format!("; idle worker {}", time(idle.p99_ns)));
        let waits =
            if stall.kind == "safepoint" { ", for which every thread of the process waits" } else { "" };
        format!(
            "{} for up to {} (p99 {}{idle}){waits}",
            what(&stall.kind),
            time(stall.busy.max_ns),
            time(stall.busy.p99_ns),
        )
    };
    let text: Vec<String> = stalls.iter().map(text).collect();
    format!("{} holds up {}.", cell.method, listed(&text))
}

/// Sentence about methods whose heartbeats are about as regular as in an idle worker.
fn holds_up_nothing(cells: &[&CellJudgement], is_all: bool) -> Option<String> {
    let p99 = |cell: &CellJudgement| {
        let known = cell.stall.iter().flatten().filter(|stall| is_many(stall));
        known.map(|stall| stall.busy.p99_ns).max().unwrap_or(0)
    };
    let methods: Vec<String> =
        cells.iter().map(|cell| format!("{} (p99 {})", cell.method, time(p99(cell)))).collect();
    let beyond = format!("by more than {TIMES_IDLE} times the idle worker's p99 and {}", time(LEAST_NS));
    match (methods.is_empty(), is_all) {
        (true, _) => None,
        (false, true) => {
            let latest = cells.iter().map(|cell| p99(cell)).max().unwrap_or(0);
            Some(format!(
                "No method holds up anything else in its process {beyond}: 99 of 100 heartbeats are late by at most {}.",
                time(latest)
            ))
        }
        (false, false) => Some(format!("Heartbeats next to {} are not late {beyond}.", listed(&methods))),
    }
}
