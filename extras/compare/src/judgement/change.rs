//! One method on two sides: the ratio of its times, with an interval over runs.

use pagewise_analysis::judge::verdict::{CLOSE, SMALLEST_DIFFERENCE};
use pagewise_analysis::judge::{FigureKind, MedianInterval};
use pagewise_analysis::statistics::paired::centre;
use pagewise_analysis::statistics::{Interval, SHOWN_LEVEL, paired_log_ratios};
use serde::Serialize;

use super::digest::{RunFigure, SituationDigest};
use super::unpaired::{FEWEST_RUNS, difference, intervals, mean};

/// A method on two sides.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// The method.
    pub method: String,
    /// Geometric mean of the first side's figures, in the unit of the situation; `None` without
    /// one. The ratio is that of the two means, unless it is relative to another method.
    pub base: Option<f64>,
    /// Geometric mean of the second side's figures.
    pub new: Option<f64>,
    /// Runs of the first side that have a figure.
    pub base_runs: usize,
    /// Runs of the second side that have one.
    pub new_runs: usize,
    /// Time of the second side over that of the first: above 1 it is slower. A geometric mean over
    /// runs.
    pub ratio: Option<f64>,
    /// Lower end of its interval. All intervals of a comparison hold together with 95 %, except
    /// where the noise between runs is unknown: then it is that of the rounds of one run alone.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The finding from the interval.
    pub finding: ChangeFinding,
    /// Reason that a side has no figure.
    pub reason: Option<String>,
}

/// An interval whose ends are at most so far apart, as a ratio, bounds something. Three runs on
/// each side that scatter have wider ones where many comparisons hold together.
const WIDEST: f64 = 1e4;

/// The ends of an interval that bounds something.
pub(super) fn bounds(low: Option<f64>, high: Option<f64>) -> Option<(f64, f64)> {
    low.zip(high).filter(|(low, high)| *high <= low * WIDEST)
}

/// Finding from the interval of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeFinding {
    /// The second side is slower.
    Slower,
    /// The second side is faster.
    Faster,
    /// The sides differ by at most 2 %.
    Same,
    /// The sides differ by at most 20 %.
    Close,
    /// The runs do not decide it.
    Open,
    /// The noise between runs is unknown.
    NoiseUnknown,
    /// A side has no figure.
    NotMeasured,
}

impl Change {
    /// The most that the sides differ by, as a share of the faster one's time; `None` without an
    /// interval.
    pub fn distance(&self) -> Option<f64> {
        Some(self.high?.max(1.0 / self.low?) - 1.0)
    }

    /// Interval, unless it is so wide that it bounds nothing.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        bounds(self.low, self.high)
    }
}

impl ChangeFinding {
    /// Every finding.
    pub const ALL: [Self; 7] = [
        Self::Slower,
        Self::Faster,
        Self::Same,
        Self::Close,
        Self::Open,
        Self::NoiseUnknown,
        Self::NotMeasured,
    ];

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Same => "same",
            Self::Close => "close",
            Self::Open => "open",
            Self::NoiseUnknown => "noise unknown",
            Self::NotMeasured => "no figure",
        }
    }

    fn of(ratio: f64, interval: Interval) -> Self {
        let within = |share: f64| interval.high <= 1.0 + share && interval.low >= 1.0 / (1.0 + share);
        match () {
            () if within(SMALLEST_DIFFERENCE) => Self::Same,
            () if interval.low > 1.0 && ratio > 1.0 + SMALLEST_DIFFERENCE => Self::Slower,
            () if interval.high < 1.0 && ratio < 1.0 / (1.0 + SMALLEST_DIFFERENCE) => Self::Faster,
            () if within(CLOSE) => Self::Close,
            () => Self::Open,
        }
    }
}

/// A method of a situation in the runs of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// Logarithms of its times, by run.
    logs: Vec<f64>,
    figures: Vec<MedianInterval>,
    reason: Option<String>,
}

impl Series {
    /// A method in those runs that have the situation; relative to another method of the same run,
    /// if one is named.
    pub(super) fn of<'a>(
        situations: impl Iterator<Item = &'a SituationDigest>,
        method: &str,
        relative_to: Option<&str>,
    ) -> Self {
        let mut series = Self::default();
        for situation in situations {
            let find = |wanted: &str| situation.methods.iter().find(|(name, _)| name == wanted);
            let Some((_, outcome)) = find(method) else { continue };
            let found = outcome.as_ref().map_err(Clone::clone).and_then(|figure| {
                let log = match relative_to {
                    None => log_time(situation.kind, &figure.shown),
                    Some(wanted) => relative(figure, find(wanted), wanted)?,
                };
                Ok((log, figure.shown))
            });
            match found {
                Ok((log, figure)) => {
                    series.logs.push(log);
                    series.figures.push(figure);
                }
                Err(reason) => series.reason = series.reason.or(Some(reason)),
            }
        }
        series
    }

    /// The figure of a side, as its ratio takes it.
    pub(super) fn shown(&self) -> Option<f64> {
        let logs: Vec<f64> = self.medians().into_iter().map(f64::ln).collect();
        mean(&logs).map(f64::exp)
    }

    /// The figures of its runs.
    pub(super) fn medians(&self) -> Vec<f64> {
        self.figures.iter().map(|figure| figure.median).collect()
    }

    /// Distances of the ends of the interval of its only run from its figure, as logarithms:
    /// towards less and more time.
    fn within_run(&self, kind: FigureKind) -> Option<(f64, f64)> {
        let [figure] = self.figures[..] else { return None };
        let (down, up) = ((figure.median / figure.low?).ln(), (figure.high? / figure.median).ln());
        Some(if kind.is_time() { (down, up) } else { (up, down) })
    }
}

/// Logarithm of the time of a method over that of another, taken within rounds: what lasts for a
/// round cancels out.
fn relative(
    figure: &RunFigure,
    other: Option<&(String, Result<RunFigure, String>)>,
    name: &str,
) -> Result<f64, String> {
    let other =
        other.and_then(|(_, other)| other.as_ref().ok()).ok_or_else(|| format!("{name} has no figure"))?;
    match paired_log_ratios(&other.by_round, &figure.by_round) {
        ratios if ratios.is_empty() => Err(format!("no round has both it and {name}")),
        ratios => Ok(centre(&ratios)),
    }
}

fn log_time(kind: FigureKind, figure: &MedianInterval) -> f64 {
    if kind.is_time() { figure.median.ln() } else { -figure.median.ln() }
}

/// A method on both sides, before its interval is known.
pub(super) struct Pair {
    pub(super) situation: usize,
    pub(super) method: String,
    pub(super) kind: FigureKind,
    pub(super) base: Series,
    pub(super) new: Series,
    pub(super) is_relative: bool,
}

/// The changes of all methods, each with its situation. Their intervals hold together.
pub(super) fn changes(pairs: Vec<Pair>) -> Vec<(usize, Change)> {
    let logs: Vec<(&[f64], &[f64])> =
        pairs.iter().map(|pair| (&pair.base.logs[..], &pair.new.logs[..])).collect();
    let intervals = intervals(&logs);
    pairs.iter().zip(intervals).map(|(pair, interval)| (pair.situation, change(pair, interval))).collect()
}

fn change(pair: &Pair, between_runs: Option<Interval>) -> Change {
    let Pair { base, new, .. } = pair;
    let log = difference(&base.logs, &new.logs);
    let within_runs = || {
        let (base, new) = (base.within_run(pair.kind)?, new.within_run(pair.kind)?);
        let log = log.filter(|_| !pair.is_relative)?;
        // The method of variance estimates recovery (Zou and Donner 2008): the interval of a
        // difference from those of its parts.
        Some(Interval {
            low: log - new.0.hypot(base.1),
            high: log + new.1.hypot(base.0),
            coverage: SHOWN_LEVEL,
        })
    };
    let shown = between_runs.or_else(within_runs).map(Interval::as_ratios);
    let ratio = log.map(f64::exp);
    let finding = match (ratio, between_runs) {
        (None, _) => ChangeFinding::NotMeasured,
        (Some(_), None) => ChangeFinding::NoiseUnknown,
        (Some(ratio), Some(ends)) => ChangeFinding::of(ratio, ends.as_ratios()),
    };
    let missing = |series: &Series, side: &str| {
        let reason = series.reason.as_ref().filter(|_| series.logs.is_empty())?;
        Some(format!("{side}: {reason}"))
    };
    Change {
        method: pair.method.clone(),
        base: base.shown(),
        new: new.shown(),
        base_runs: base.logs.len(),
        new_runs: new.logs.len(),
        ratio,
        low: shown.map(|ends| ends.low),
        high: shown.map(|ends| ends.high),
        finding,
        reason: missing(base, "base").or_else(|| missing(new, "new")),
    }
}

/// True if so many runs on each side show the noise between them.
pub(super) fn show_noise(base: usize, new: usize) -> bool {
    base.min(new) >= FEWEST_RUNS
}
