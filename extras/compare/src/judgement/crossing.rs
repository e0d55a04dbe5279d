//! The crossing of two methods on two sides: the ratio of data to page cache at which their order
//! changes.

use pagewise_analysis::judge::verdict::SMALLEST_DIFFERENCE;
use pagewise_analysis::statistics::{Interval, median};
use pagewise_model::groups::distinct;
use pagewise_report::curves_door::{FoundCrossing, SearchedCrossings};
use serde::Serialize;

use super::change::bounds;
use super::digest::Digest;
use super::unpaired::{difference, intervals};

/// A crossing on two sides.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ChangedCrossing {
    /// The conditions.
    pub label: String,
    /// The faster method below it.
    pub before: String,
    /// The faster method above it.
    pub after: String,
    /// Data over page cache at the crossing, the median over the runs of the first side that found
    /// it.
    pub base: Option<f64>,
    /// Median over the runs of the second side.
    pub new: Option<f64>,
    /// The second over the first.
    pub ratio: Option<f64>,
    /// Lower end of its interval over runs.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The finding.
    pub finding: CrossingFinding,
}

impl ChangedCrossing {
    /// Interval, unless it is so wide that it bounds nothing.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        bounds(self.low, self.high)
    }
}

/// Finding from the crossings of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CrossingFinding {
    /// The crossing moved.
    Moved,
    /// All runs of the first side have it, and none of the second.
    Gone,
    /// All runs of the second side have it, and none of the first.
    Appeared,
    /// The runs do not show that the crossing moved.
    NotMoved,
    /// The noise between runs is unknown.
    NoiseUnknown,
}

/// All crossings of searches that both sides have made.
pub(super) fn changes(base: &[Digest], new: &[Digest]) -> Vec<ChangedCrossing> {
    let searches = base.iter().chain(new).flat_map(|run| &run.searches);
    let keys = distinct(searches.flat_map(|search| {
        let crossings = search.crossings.iter();
        crossings.map(|one| Key { label: &search.label, before: &one.before, after: &one.after })
    }));
    let mut found: Vec<(Key<'_>, Found, Found)> =
        keys.into_iter().map(|key| (key, Found::of(base, key), Found::of(new, key))).collect();
    found.retain(|(_, base, new)| base.searches > 0 && new.searches > 0);
    let logs: Vec<(&[f64], &[f64])> =
        found.iter().map(|(_, base, new)| (&base.logs[..], &new.logs[..])).collect();
    let intervals = intervals(&logs);
    found.iter().zip(intervals).map(|((key, base, new), interval)| key.change(base, new, interval)).collect()
}

/// Identity of a crossing on both sides.
#[derive(Clone, Copy, PartialEq)]
struct Key<'a> {
    label: &'a str,
    before: &'a str,
    after: &'a str,
}

impl Key<'_> {
    fn change(self, base: &Found, new: &Found, interval: Option<Interval>) -> ChangedCrossing {
        let ratio = difference(&base.logs, &new.logs).map(f64::exp);
        let interval = interval.map(Interval::as_ratios);
        ChangedCrossing {
            label: self.label.to_string(),
            before: self.before.to_string(),
            after: self.after.to_string(),
            base: base.shown(),
            new: new.shown(),
            ratio,
            low: interval.map(|ends| ends.low),
            high: interval.map(|ends| ends.high),
            finding: finding(base, new, ratio, interval),
        }
    }
}

/// A crossing in the runs of one side.
struct Found {
    /// Runs that searched for it.
    searches: usize,
    /// Logarithms of the ratios at which they found it.
    logs: Vec<f64>,
}

impl Found {
    fn of(side: &[Digest], key: Key<'_>) -> Self {
        let searches: Vec<&SearchedCrossings> =
            side.iter().flat_map(|run| &run.searches).filter(|search| search.label == key.label).collect();
        let is_it = |crossing: &&FoundCrossing| crossing.before == key.before && crossing.after == key.after;
        let crossings = searches.iter().filter_map(|search| search.crossings.iter().find(is_it));
        Self { searches: searches.len(), logs: crossings.map(|crossing| crossing.ratio.ln()).collect() }
    }

    fn shown(&self) -> Option<f64> {
        median(&self.logs).map(f64::exp)
    }
}

fn finding(base: &Found, new: &Found, ratio: Option<f64>, interval: Option<Interval>) -> CrossingFinding {
    let is_all = |found: &Found| {
        super::change::show_noise(found.logs.len(), found.searches) && found.logs.len() == found.searches
    };
    let is_none =
        |found: &Found| super::change::show_noise(found.searches, found.searches) && found.logs.is_empty();
    match (ratio, interval) {
        _ if is_all(base) && is_none(new) => CrossingFinding::Gone,
        _ if is_none(base) && is_all(new) => CrossingFinding::Appeared,
        (Some(ratio), Some(ends)) => {
            let is_clear = ends.low > 1.0 || ends.high < 1.0;
            match is_clear && ratio.ln().abs() > SMALLEST_DIFFERENCE.ln_1p() {
                true => CrossingFinding::Moved,
                false => CrossingFinding::NotMoved,
            }
        }
        _ => CrossingFinding::NoiseUnknown,
    }
}
