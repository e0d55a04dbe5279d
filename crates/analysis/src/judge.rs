//! Judgement: from the samples of a run to verdicts.
//!
//! [`judge()`] is the entry point; the report makes the judged JSON of its result.

mod actor;
mod actor_ranking;
pub mod advice;
pub mod bound;
mod cell;
mod cold_start;
pub mod collected;
pub(crate) mod comparison;
pub mod elimination;
mod evidence;
pub mod expectations;
mod figure;
pub mod gain;
mod gap;
mod judged;
pub mod label;
pub mod latency;
mod parameters;
pub mod reasons;
pub mod schema;
pub mod self_replay;
pub mod simulation;
mod stall;
pub mod syncs;
#[cfg(test)]
pub(crate) mod tests;
pub mod verdict;

pub use comparison::rates_by_conditions;

use std::borrow::Cow;
use std::collections::HashMap;

use pagewise_model::Role;
use pagewise_model::inspection::Inspection;
use pagewise_model::run::{Run, SCHEMA_VERSION};

use crate::proof::{self, Again};
use advice::cache_unknown;
use advice::{PRICE_OF_SIMPLICITY, advise_all};
use bound::{Activity, Ceilings};
use collected::{CellSamples, collect, samples_by_id};
use elimination::InterimAnalyses;
use verdict::{ClaimedTogether, SMALLEST_DIFFERENCE, decide};

use crate::statistics::{ByRound, paired_log_ratios};

pub use actor::ActorFigures;
pub use actor_ranking::{ActorPlace, ActorRanking, LeftFigure, RankedActor};
pub use cell::{ById, CellJudgement, SLOW, Status, by_id};
pub use cold_start::ColdWindow;
pub use comparison::{AsIs, ComparedConditions, Comparison, RatioToLeader, Unranked};
pub use evidence::EvidenceMedians;
pub use figure::{FigureKind, MedianInterval};
pub use gap::GAP;
pub use judged::{
    AsOf, CeilingsSummary, InvalidReason, Judged, RunSummary, UnlikeItself, Validity, WorkerSummary,
};
pub use parameters::Parameters;
pub use stall::{Lateness, Stall, worst};

/// Judge a run, complete or not, with the usual price of simplicity.
pub fn judge(run: &Run) -> Judged {
    judge_at(run, PRICE_OF_SIMPLICITY)
}

/// Judge a run, complete or not. Today's checks are applied if the run file holds the context they
/// need. A simpler method is recommended if it is at most the share `price` slower than the leader.
pub fn judge_at(run: &Run, price: f64) -> Judged {
    let checked = proof::again(run);
    judge_checked(&checked, &collect(&checked.run), price)
}

/// Judgement at the usual price, with the ranked figures of each cell by round, the more the
/// better.
pub fn judge_with_figures(run: &Run) -> (Judged, HashMap<String, ByRound>) {
    let checked = proof::again(run);
    let samples = collect(&checked.run);
    let figures = samples.iter().map(|cell| (cell.id.clone(), cell.rates())).collect();
    (judge_checked(&checked, &samples, PRICE_OF_SIMPLICITY), figures)
}

/// A run with today's checks applied to its samples.
pub fn checked(run: &Run) -> Cow<'_, Run> {
    proof::again(run).run
}

/// Judge the samples of a run that was checked.
fn judge_checked(checked: &Again<'_>, samples: &[CellSamples<'_>], price: f64) -> Judged {
    let run = &*checked.run;
    let in_memory = run.checks.iter().any(|(_, context)| context.memory_backed);
    let cpus = run.header.environment.cpus;
    let activities: Vec<Option<Activity>> =
        samples.iter().map(|samples| Activity::of(samples, cpus)).collect();
    let active = samples.iter().zip(&activities);
    let ceilings =
        Ceilings::of(active.clone().filter_map(|(samples, activity)| Some((samples, activity.as_ref()?))));
    let expectations = &run.header.plan.expectations;
    let by_id = samples_by_id(samples);
    let cells: Vec<CellJudgement> = active
        .map(|(samples, activity)| CellJudgement {
            expected: expectations::judge_all(expectations, samples),
            actor: ActorFigures::of(samples, &by_id),
            ..CellJudgement::of(samples, activity.as_ref(), &ceilings, in_memory)
        })
        .collect();
    let sides = comparison::sides(samples);
    let comparisons = comparison::compare_all(&sides, &InterimAnalyses::of(&run.header.plan), true);
    let advice = advise_all(&comparisons, &cells, &by_id, price);
    let summary = summary(run, samples);
    let validity = validity(samples, checked);
    let trace = run.header.plan.trace.as_ref();
    let self_replay = self_replay::of(run, samples);
    let gain = gain::of(run, &comparisons, &cell::by_id(&cells));
    let judged = Judged {
        schema: SCHEMA_VERSION,
        unlike_itself: unlike_itself(&sides, &comparisons),
        run: summary,
        workers: run.header.workers.iter().map(WorkerSummary::of).collect(),
        environment: run.header.environment.clone(),
        ceilings: CeilingsSummary::of(ceilings),
        cache_unknown: cache_unknown::all(&comparisons, &cells),
        actors: actor_ranking::all(samples),
        cells,
        comparisons,
        validity,
        advice,
        self_replay,
        gain,
        inspection: trace.and_then(|trace| trace.inspection.clone()).filter(Inspection::is_sound),
    };
    without_unproven(judged)
}

/// A run whose trace may not stand for its program shows nothing of other methods.
fn without_unproven(mut judged: Judged) -> Judged {
    let Some(unproven) = judged.self_replay.as_ref().filter(|replay| !replay.stands) else { return judged };
    let is_own = |cell: &CellJudgement| cell.method == unproven.method && Some(cell.cache) == unproven.cache;
    judged.cells.retain(|cell| is_own(cell) || cell.role == Role::Ceiling);
    (judged.comparisons, judged.advice, judged.cache_unknown) = Default::default();
    judged.gain = None;
    judged
}

fn summary(run: &Run, samples: &[CellSamples<'_>]) -> RunSummary {
    let plan = &run.header.plan;
    RunSummary {
        question: plan.question.clone(),
        typed_plan: plan.typed.clone(),
        labels: run.header.labels.clone(),
        source: plan.source.clone(),
        seed: plan.seed,
        rounds: plan.rounds,
        sample_ns: plan.sample_ns,
        complete: run.is_complete(),
        blocks: run.samples.iter().map(|sample| sample.block.saturating_add(1)).max().unwrap_or(0),
        budget_ns: run.budget_ns(),
        samples_planned: plan.budget.is_none().then(|| plan.first_samples()),
        samples_tried: samples.iter().map(|cell| cell.rounds_tried() as u64).sum(),
        start: run.start,
        elapsed_ns: run.elapsed_ns,
        resumptions: run.resumptions,
        heartbeat_ns: Some(plan.workers.heartbeat_ns).filter(|interval| *interval > 0),
        worker_command: run.header.worker_command.clone(),
    }
}

/// A method of which two series differ by more than chance explains: something is not random here,
/// such as the order or the memory that a worker gets. It withholds nothing.
fn unlike_itself(sides: &[comparison::Side<'_>], comparisons: &[Comparison]) -> Option<UnlikeItself> {
    let pairs: Vec<_> = sides.iter().flat_map(comparison::Side::controls).collect();
    let inflation = comparisons.iter().map(|comparison| comparison.inflation).fold(1.0, f64::max);
    pairs.iter().find_map(|(baseline, control)| {
        let log_ratios = paired_log_ratios(&baseline.rates(), &control.rates());
        let claim = ClaimedTogether::Control(pairs.len());
        let decision = decide(&log_ratios, SMALLEST_DIFFERENCE, inflation, claim);
        let by = decision.log_ratio?.abs().exp_m1();
        let method = baseline.cell.method.to_string();
        decision.is_clear().then_some(UnlikeItself { method, by })
    })
}

fn validity(samples: &[CellSamples<'_>], checked: &Again<'_>) -> Validity {
    let mut reasons: Vec<InvalidReason> = Vec::new();
    let attempts = samples.iter().flat_map(|cell| &cell.attempts);
    // A sample that fails checks of one kind for several reasons counts once.
    let first_of_kind = attempts.flat_map(|sample| {
        let failures = sample.failures();
        failures
            .iter()
            .enumerate()
            .filter(|(index, failure)| !failures[..*index].iter().any(|other| other.kind == failure.kind))
            .map(|(_, failure)| failure)
    });
    for failure in first_of_kind {
        match reasons.iter_mut().find(|reason| reason.kind == failure.kind) {
            Some(reason) => reason.count += 1,
            None => {
                let (kind, example) = (failure.kind, failure.detail.clone());
                reasons.push(InvalidReason { kind, count: 1, example });
            }
        }
    }
    reasons.sort_by_key(|reason| (std::cmp::Reverse(reason.count), reason.kind));
    let valid =
        samples.iter().flat_map(|cell| &cell.attempts).filter(|sample| sample.valid().is_some()).count();
    let invalid = samples.iter().map(CellSamples::invalid_attempts).sum::<usize>();
    let taken = valid + invalid;
    Validity {
        samples: taken,
        valid,
        invalid,
        unavailable_cells: samples.iter().filter(|cell| cell.unavailable().is_some()).count(),
        refused: samples
            .iter()
            .filter(|cell| cell.unavailable().is_none())
            .filter_map(|cell| Some(cell.refused()?.0))
            .sum(),
        share: (taken > 0).then(|| valid as f64 / taken as f64),
        reasons,
        as_of: if checked.as_measured > 0 { AsOf::Measurement } else { AsOf::Report },
        valid_now: checked.valid_now,
        invalid_now: checked.invalid_now,
    }
}
