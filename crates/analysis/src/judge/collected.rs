//! Samples of a run by cell and round: the input of every later step.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pagewise_model::run::Run;
use pagewise_model::sample::Measurement;
use pagewise_model::{CacheState, Cell, Evidence, Outcome, Plan, Role, Sample};

use crate::judge::gap::FEWEST_ROUNDS_OF_A_GAP;
use crate::judge::reasons::Shortfall;
use crate::proof::measured::{
    RateOutcome, is_done, ops_per_second, rate_outcome, region_ns, total_ns, usual_latency_ns,
};
use crate::proof::steady::time_to_warm;
use crate::statistics::{ByRound, median, paired_log_ratios};

/// One cell with all of its attempts.
#[derive(Clone, Debug)]
pub struct CellSamples<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Position in the plan.
    pub index: usize,
    /// [`Cell::id`].
    pub id: String,
    /// Every attempt in chronological order, valid or not.
    pub attempts: Vec<&'a Sample>,
    /// The number of regular rounds; later ones are return rounds.
    pub regular: u32,
    /// Number of samples that it must have, at least.
    pub least: u32,
    /// True if it takes no more samples, because it is far behind in rounds that take long.
    pub left: bool,
    /// The last valid attempt by round. Only rounds that have one take memory, so a large number in
    /// a run file costs nothing.
    pub rounds: BTreeMap<u32, &'a Sample>,
}

impl<'a> CellSamples<'a> {
    /// The valid sample of each round that has one.
    pub fn valid(&self) -> impl Iterator<Item = (&'a Measurement, &'a Evidence)> + '_ {
        self.rounds.values().filter_map(|sample| sample.valid())
    }

    /// A figure of each valid sample.
    pub fn figures(&self, figure: impl Fn(&Measurement, &Evidence) -> f64) -> Vec<f64> {
        self.valid().map(|(measurement, evidence)| figure(measurement, evidence)).collect()
    }

    /// A figure of each valid sample that has one.
    pub fn known(&self, figure: impl Fn(&Measurement, &Evidence) -> Option<f64>) -> Vec<f64> {
        self.valid().filter_map(|(measurement, evidence)| figure(measurement, evidence)).collect()
    }

    /// A figure of each valid sample, by round.
    pub fn by_round(&self, figure: impl Fn(&Measurement) -> f64) -> ByRound {
        let of = |(round, sample): (&u32, &&Sample)| Some((*round, figure(sample.valid()?.0)));
        self.rounds.iter().filter_map(of).collect()
    }

    /// The valid samples with this verdict on their rate.
    fn with_outcome(&self, outcome: RateOutcome) -> impl Iterator<Item = &'a Measurement> + '_ {
        self.valid().map(|(one, _)| one).filter(move |one| rate_outcome(one) == Some(outcome))
    }

    /// Number of valid samples that did not keep the rate.
    pub fn rate_missed(&self) -> usize {
        self.with_outcome(RateOutcome::Missed).count()
    }

    /// True if so many samples did not keep the rate that the others say nothing of the method.
    pub fn misses_rate(&self) -> bool {
        self.cell.conditions.rate.is_some() && self.rate_missed() * MISSED_PART > self.valid().count()
    }

    /// Reason of samples without a figure at a rate, the more frequent one; `None` if each has one.
    pub fn rate_shortfall(&self) -> Option<Shortfall> {
        let conditions = &self.cell.conditions;
        let asked = conditions.rate_text()?;
        let cut_short: Vec<f64> =
            self.with_outcome(RateOutcome::CutShort).map(|one| one.operations as f64).collect();
        let each = f64::from(conditions.reads_per_op());
        let missed: Vec<f64> =
            self.with_outcome(RateOutcome::Missed).map(|one| ops_per_second(one) * each).collect();
        if missed.len() >= cut_short.len() {
            let (missed, done_per_second) = (missed.len(), median(&missed)?);
            return Some(Shortfall::RateMissed {
                done_per_second,
                asked,
                missed,
                valid: self.valid().count(),
            });
        }
        Some(Shortfall::CutShort { operations: median(&cut_short)? })
    }

    /// The ranked figure, by round.
    pub fn rates(&self) -> ByRound {
        if self.misses_rate() {
            return ByRound::default();
        }
        let rate = |(round, sample): (&u32, &&Sample)| Some((*round, ranked_figure(self.cell, sample)?));
        self.rounds.iter().filter_map(rate).collect()
    }

    /// Number of regular rounds, from the first, in which it was tried; all there are if its cell
    /// ended early or left, since it takes no more samples.
    pub fn regular_rounds(&self) -> u32 {
        // One that was killed from outside is tried again.
        let ended = self.attempts.last().is_some_and(|sample| sample.outcome.ends_cell());
        let rounds = self.attempts.iter().map(|sample| sample.round);
        let last = rounds.filter(|round| *round < self.regular).max();
        if ended || self.left { u32::MAX } else { last.map_or(0, |round| round + 1) }
    }

    /// Number of rounds in which it was tried.
    pub fn rounds_tried(&self) -> usize {
        self.attempts.iter().map(|sample| sample.round).collect::<BTreeSet<_>>().len()
    }

    /// Reason that the machine does not support it; `None` if any attempt got further.
    pub fn unavailable(&self) -> Option<&'a str> {
        let mut reason = None;
        for sample in &self.attempts {
            match &sample.outcome {
                Outcome::Unavailable { reason: refused } => reason = Some(refused.as_str()),
                _ => return None,
            }
        }
        reason
    }

    /// Number of attempts that the machine refused, with the last reason; `None` if it refused
    /// none.
    pub fn refused(&self) -> Option<(usize, &'a str)> {
        let mut refusals = self.attempts.iter().filter_map(|sample| match &sample.outcome {
            Outcome::Unavailable { reason } => Some(reason.as_str()),
            _ => None,
        });
        Some((refusals.clone().count(), refusals.next_back()?))
    }

    /// Number of attempts that failed a check or broke.
    pub fn invalid_attempts(&self) -> usize {
        let failed = |sample: &&&Sample| {
            !matches!(sample.outcome, Outcome::Unavailable { .. }) && sample.valid().is_none()
        };
        self.attempts.iter().filter(failed).count()
    }
}

/// Samples of which one may miss the rate: a machine that others use may keep a method from it.
const MISSED_PART: usize = 5;

/// The figure that a sample is ranked by, the more the better: operations per second; for a cold
/// start, the inverse of the time to warm; for one-shot work, the inverse of the total, including
/// set-up and tear-down; at a rate, the inverse of the mean latency of the fastest 95 %. A cold
/// start that did not become warm has none, and neither have work that was not completed, a rate
/// that was not kept and an invalid sample.
pub fn ranked_figure(cell: &Cell, sample: &Sample) -> Option<f64> {
    let (measurement, evidence) = sample.valid()?;
    figure_of(cell, measurement, evidence)
}

/// The figure of a measurement by which its cell is ranked, whether or not it is valid.
pub fn figure_of(cell: &Cell, measurement: &Measurement, evidence: &Evidence) -> Option<f64> {
    let conditions = &cell.conditions;
    if conditions.cache == CacheState::ColdStart {
        let warmed = time_to_warm(conditions.op_bytes(), &evidence.windows)?;
        return Some(1e9 / warmed.time_ns as f64);
    }
    if conditions.rate.is_some() {
        return usual_latency_ns(measurement).map(|mean_ns| 1e9 / mean_ns.max(1.0));
    }
    if conditions.is_one_shot() {
        return is_done(cell, measurement).then(|| 1e9 / total_ns(measurement).max(1) as f64);
    }
    Some(ops_per_second(measurement))
}

/// Bytes that were asked for or reached the file, per second of the throughput phase.
pub fn bytes_per_second(cell: &Cell, measurement: &Measurement, evidence: &Evidence) -> f64 {
    match cell.conditions.workload().is_reading() {
        true => ops_per_second(measurement) * cell.conditions.mean_op_bytes(),
        // Staged bytes have not reached the file.
        false => evidence.requested_bytes as f64 * 1e9 / region_ns(measurement) as f64,
    }
}

/// Group the samples of `run` by cell, in the order of the plan. A sample of a cell that is not in
/// the plan is left out: it belongs to no comparison.
pub fn collect(run: &Run) -> Vec<CellSamples<'_>> {
    collect_those(&run.header.plan, &run.samples)
}

/// Collect some of the samples of a run of `plan`.
pub fn collect_those<'a>(
    plan: &'a Plan,
    samples: impl IntoIterator<Item = &'a Sample>,
) -> Vec<CellSamples<'a>> {
    let of_cell = |(index, cell): (usize, &'a Cell)| CellSamples {
        cell,
        index,
        id: cell.id(),
        attempts: Vec::new(),
        regular: plan.rounds,
        least: plan.first_samples_of(cell),
        left: false,
        rounds: BTreeMap::new(),
    };
    let mut cells: Vec<CellSamples<'_>> = plan.cells.iter().enumerate().map(of_cell).collect();
    let index_of: HashMap<String, usize> =
        cells.iter().enumerate().map(|(index, cell)| (cell.id.clone(), index)).collect();
    for sample in samples {
        let Some(cell) = index_of.get(&sample.cell).map(|index| &mut cells[*index]) else { continue };
        cell.attempts.push(sample);
        if sample.valid().is_some() {
            cell.rounds.insert(sample.round, sample);
        }
    }
    let left: Vec<usize> = far_behind(plan, &cells).collect();
    for index in left {
        let cell = &mut cells[index];
        cell.left = cell.attempts.iter().all(|sample| sample.round < FAR_ROUNDS);
        cell.least = if cell.left { FAR_ROUNDS } else { cell.least };
    }
    cells
}

/// Rounds after which a replay that is far behind is known to be.
pub const FAR_ROUNDS: u32 = FEWEST_ROUNDS_OF_A_GAP as u32;
/// Times as long as another replay takes one that is far behind.
const FAR: f64 = 10.0;

/// Replays that took over ten times as long as another one in each of the first [`FAR_ROUNDS`]
/// rounds: each further one would take as long again, and none can change that it is behind. The
/// program's own method is measured in every round.
fn far_behind<'a>(plan: &'a Plan, cells: &'a [CellSamples<'a>]) -> impl Iterator<Item = usize> + use<'a> {
    let own = plan.trace.as_ref().filter(|_| plan.budget.is_some()).map(|trace| &trace.method);
    let rates = |cell: &CellSamples<'_>| cell.rates().within(|round| round < FAR_ROUNDS);
    let leads = move |leader: &CellSamples<'_>, other: &CellSamples<'_>| {
        let ratios = paired_log_ratios(&rates(leader), &rates(other));
        leader.cell.conditions == other.cell.conditions
            && !leader.cell.method.is_bound(&leader.cell.conditions.work)
            && ratios.len() == FAR_ROUNDS as usize
            && ratios.iter().all(|ratio| *ratio > FAR.ln())
    };
    let may_leave = move |cell: &&CellSamples<'_>| {
        cell.cell.role == Role::Measured && own.is_some_and(|own| *own != cell.cell.method)
    };
    let is_far = move |cell: &&CellSamples<'_>| cells.iter().any(|leader| leads(leader, cell));
    cells.iter().filter(may_leave).filter(is_far).map(|cell| cell.index)
}

/// The samples of a cell outside of a run, one for each round.
#[cfg(test)]
pub(crate) fn of_samples<'a>(cell: &'a Cell, samples: &'a [Sample]) -> CellSamples<'a> {
    let valid = samples.iter().filter(|sample| sample.valid().is_some());
    CellSamples {
        cell,
        index: 0,
        id: cell.id(),
        attempts: samples.iter().collect(),
        regular: samples.len() as u32,
        least: 1,
        left: false,
        rounds: valid.map(|sample| (sample.round, sample)).collect(),
    }
}

/// Samples of a run for lookup by the cell's id.
pub type SamplesById<'a> = HashMap<&'a str, &'a CellSamples<'a>>;

/// The samples of each cell, by its id.
pub fn samples_by_id<'a>(samples: &'a [CellSamples<'a>]) -> SamplesById<'a> {
    samples.iter().map(|samples| (samples.id.as_str(), samples)).collect()
}
