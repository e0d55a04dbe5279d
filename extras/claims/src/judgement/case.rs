//! One case of a test: a quantity round by round, and whether it is within the bounds.

use pagewise_analysis::judge::collected::CellSamples;
use pagewise_analysis::judge::label::{label, texts};
use pagewise_analysis::statistics::paired::{FEWEST_ROUNDS, PairedTest};
use pagewise_analysis::statistics::{ByRound, median, paired_differences, paired_log_ratios};
use pagewise_model::{Cell, Role, Sample};
use serde::Serialize;

use super::quantity::{Definition, Sampled};
use super::selection::Pair;
use super::study::Test;

/// Error probability of all cases of a test together, if they are said to be within their bounds,
/// or beyond them (one-sided).
const LEVEL: f64 = 0.025;

/// Position of a case relative to the bounds of its test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaseFinding {
    /// The value is within the bounds.
    Within,
    /// The value is beyond one of the bounds.
    Beyond,
    /// The rounds do not decide.
    Open,
    /// Too few samples are valid.
    Missing,
    /// The machine or the method does not support it.
    Unavailable,
}

impl CaseFinding {
    /// As it is printed.
    pub fn text(self) -> &'static str {
        match self {
            CaseFinding::Within => "within",
            CaseFinding::Beyond => "beyond",
            CaseFinding::Open => "open",
            CaseFinding::Missing => "missing",
            CaseFinding::Unavailable => "unavailable",
        }
    }
}

/// A quantity of one cell, alone or compared with another.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Case {
    /// The conditions.
    pub conditions: String,
    /// The method.
    pub method: String,
    /// The other side: a method, or the conditions that differ.
    pub against: Option<String>,
    /// The value; a ratio or a difference if it is compared.
    pub value: Option<f64>,
    /// Lower end of its interval; those of all cases of a test hold together with 95 %.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Common rounds.
    pub rounds: usize,
    /// Position relative to the bounds.
    pub finding: CaseFinding,
    /// Reason that there is no value.
    pub reason: Option<String>,
    /// Distance from the nearest bound, on the scale of the value, or its logarithm; negative
    /// beyond it.
    #[serde(skip)]
    pub margin: f64,
    /// The cells, by their ids.
    #[serde(skip)]
    pub cells: Vec<String>,
}

/// The values of a quantity by round, of one cell.
pub(super) fn by_round(definition: &Definition, samples: &CellSamples<'_>, cpus: u32) -> ByRound {
    let value = |(round, sample): (&u32, &&Sample)| {
        let (measurement, evidence) = sample.valid()?;
        let sampled = Sampled { cell: samples.cell, measurement, evidence, cpus };
        Some((*round, (definition.of)(&sampled)?))
    };
    samples.rounds.iter().filter_map(value).collect()
}

/// All cases of a test among the cells of a run, whose intervals are longer by `inflation`.
pub(super) fn cases(test: &Test, pairs: &[Pair<'_>], cpus: u32, inflation: f64) -> Vec<Case> {
    let definition = test.quantity.definition();
    let compared: Vec<Compared<'_>> =
        pairs.iter().map(|pair| Compared::of(test, definition, pair, cpus)).collect();
    let values = compared.iter().map(|one| one.values.clone()).collect();
    let paired = PairedTest::new(values, inflation);
    // Of many cases one is beyond by chance more often than one alone.
    let level = LEVEL / compared.len().max(1) as f64;
    let judged = compared.iter().enumerate();
    judged.map(|(index, one)| one.judge(test, &paired, index, level)).collect()
}

/// The two sides of a case, round by round.
struct Compared<'a> {
    of: &'a CellSamples<'a>,
    against: Option<&'a CellSamples<'a>>,
    /// Logarithms of ratios, differences, or values.
    values: Vec<f64>,
    reason: Option<String>,
}

impl<'a> Compared<'a> {
    fn of(test: &Test, definition: &Definition, pair: &Pair<'a>, cpus: u32) -> Self {
        let rounds = |samples: &CellSamples<'_>| by_round(definition, samples, cpus);
        let (of, own) = best(&pair.of, rounds).expect("a case has a cell");
        let against = pair.against.as_ref().map(|cells| best(cells, rounds));
        let (against, values) = match against {
            None => (None, own.values()),
            Some(None) => (None, Vec::new()),
            Some(Some((other, others))) if test.over.is_some() => {
                (Some(other), paired_log_ratios(&own, &others))
            }
            Some(Some((other, others))) => (Some(other), paired_differences(&own, &others)),
        };
        let mut compared = Self { of, against, values, reason: None };
        if compared.values.len() < FEWEST_ROUNDS {
            compared.reason = Some(match pair.against.is_some() && against.is_none() {
                true => "there is nothing to compare with in this run".to_string(),
                false => compared.missing(),
            });
        }
        compared
    }

    /// Reason that a case has too few rounds.
    fn missing(&self) -> String {
        let lacking = [Some(self.of), self.against].into_iter().flatten().min_by_key(|one| one.rounds.len());
        let lacking = lacking.unwrap_or(self.of);
        let failed = lacking.attempts.iter().flat_map(|sample| sample.failures()).next_back();
        let why = lacking.unavailable().map(str::to_string).or(failed.map(|failure| failure.detail.clone()));
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        format!("{} has {} valid samples{why}", lacking.cell.method, lacking.rounds.len())
    }

    fn is_unavailable(&self) -> bool {
        [Some(self.of), self.against].into_iter().flatten().any(|one| one.unavailable().is_some())
    }

    fn judge(&self, test: &Test, paired: &PairedTest, index: usize, level: f64) -> Case {
        let is_ratio = test.over.is_some();
        let scaled = |bound: f64| if is_ratio { bound.ln() } else { bound };
        let back = |value: f64| if is_ratio { value.exp() } else { value };
        let (least, most) = (test.at_least.map(scaled), test.at_most.map(scaled));
        let estimate = paired.estimate(index);
        let is_within = least.is_none_or(|least| paired.exceeds(index, least, level))
            && most.is_none_or(|most| paired.falls_below(index, most, level));
        let is_beyond = least.is_some_and(|least| paired.falls_below(index, least, level))
            || most.is_some_and(|most| paired.exceeds(index, most, level));
        let has_value = self.values.len() >= FEWEST_ROUNDS;
        let interval = paired.interval(index, 2.0 * level).filter(|_| has_value);
        let distances = [least.map(|least| estimate - least), most.map(|most| most - estimate)];
        Case {
            conditions: label(&self.of.cell.conditions),
            method: self.of.cell.method.to_string(),
            against: self.against.map(|other| against_text(self.of.cell, other.cell)),
            value: has_value.then(|| back(estimate)),
            low: interval.map(|interval| back(interval.low)),
            high: interval.map(|interval| back(interval.high)),
            rounds: self.values.len(),
            finding: match (has_value, is_within, is_beyond) {
                (false, ..) if self.is_unavailable() => CaseFinding::Unavailable,
                (false, ..) => CaseFinding::Missing,
                (_, true, _) => CaseFinding::Within,
                (.., true) => CaseFinding::Beyond,
                _ => CaseFinding::Open,
            },
            reason: self.reason.clone(),
            margin: distances.into_iter().flatten().fold(f64::INFINITY, f64::min),
            cells: [Some(self.of), self.against].into_iter().flatten().map(|one| one.id.clone()).collect(),
        }
    }
}

/// The other side: its method, and its conditions where they differ.
fn against_text(of: &Cell, other: &Cell) -> String {
    let own = texts(&of.conditions, &[]);
    let others = texts(&other.conditions, &[]);
    let differing: Vec<String> = others.into_iter().filter(|text| !own.contains(text)).collect();
    let control = if other.role == Role::Control { " again" } else { "" };
    match (of.method == other.method, differing.is_empty()) {
        (true, false) => format!("itself with {}", differing.join(", ")),
        (_, true) => format!("{}{control}", other.method),
        (false, false) => format!("{} with {}", other.method, differing.join(", ")),
    }
}

/// The cell whose median is highest, with its rounds; one without a median is lower than any.
fn best<'a>(
    cells: &[&'a CellSamples<'a>],
    rounds: impl Fn(&CellSamples<'_>) -> ByRound,
) -> Option<(&'a CellSamples<'a>, ByRound)> {
    let with_rounds = cells.iter().map(|one| (*one, rounds(one)));
    let ranked = with_rounds.map(|one| (median(&one.1.values()).unwrap_or(f64::NEG_INFINITY), one));
    ranked.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, best)| best)
}
