//! Changes of order, and the narrowing of their intervals.

use pagewise_model::Method;

use statrs::distribution::{ContinuousCDF, Normal};

use super::fit::{Fit, FitPoint};
use super::group::{CliffGroup, SpanComparison};
use pagewise_analysis::judge::verdict::FALSE_WINNERS;

/// Spans added to an interval without narrowing it, after which its search ends.
const MOST_INSIDE: usize = 3;
/// A gap in an interval is not halved below this part of the tolerance.
const FINEST_PART: f64 = 0.25;

/// Two methods, and the interval in which their order changes.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderChange<'a> {
    pub before: &'a Method,
    pub after: &'a Method,
    /// All spans from one at which `before` is firmly faster to one at which `after` is, ascending.
    points: Vec<FitPoint>,
    fit: Fit,
    pub before_leads: bool,
    pub after_leads: bool,
}

/// Next step for a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Narrowing {
    /// The interval is within the tolerance.
    Reached,
    /// The span to measure.
    Measure(u64),
    /// The order between the ends is not distinguishable.
    Undecided,
    /// No span lies between the ends.
    TooFine,
}

/// All changes that involve a leader, those from one leader to the next first.
pub fn changes<'a>(group: &CliffGroup<'a>) -> Vec<OrderChange<'a>> {
    let methods = group.methods();
    // If lost samples leave no comparison of all methods, the next ratio decides who leads.
    let full: Vec<(u64, Vec<&Method>)> = group
        .full_spans()
        .into_iter()
        .map(|span| (span, group.leaders(span)))
        .filter(|(_, leaders)| !leaders.is_empty())
        .collect();
    // A difference that is not there makes a change only together with one in the other direction:
    // one-sided.
    let firm = -Normal::standard().inverse_cdf(FALSE_WINNERS / group.claims as f64);
    let mut changes = Vec::new();
    for (index, first) in methods.iter().enumerate() {
        for second in &methods[index + 1..] {
            let comparisons: Vec<SpanComparison> =
                group.spans().into_iter().filter_map(|span| group.compare(first, second, span)).collect();
            changes.extend(of_pair(first, second, &comparisons, firm));
        }
    }
    for change in &mut changes {
        let below = full.iter().rev().find(|(span, _)| *span <= change.low());
        let above = full.iter().find(|(span, _)| *span >= change.high());
        change.before_leads = below.is_some_and(|(_, leaders)| leaders.contains(&change.before));
        change.after_leads = above.is_some_and(|(_, leaders)| leaders.contains(&change.after));
    }
    changes.retain(|change| change.before_leads || change.after_leads);
    changes.sort_by_key(|change| (!(change.before_leads && change.after_leads), change.low()));
    changes
}

/// Neighbouring spans at which one method is *firmly* faster: by all of them together, and by no
/// fewer.
struct FirmRun {
    first: usize,
    last: usize,
    /// True if the first method of the pair is the faster one.
    is_higher: bool,
}

/// The changes of one pair, from its comparisons at spans in ascending order. A firm difference has
/// a score of at least `firm`.
fn of_pair<'a>(
    first: &'a Method,
    second: &'a Method,
    comparisons: &[SpanComparison],
    firm: f64,
) -> Vec<OrderChange<'a>> {
    let mut changes = Vec::new();
    let mut latest: Option<FirmRun> = None;
    for run in firm_runs(comparisons, firm) {
        if let Some(from) = latest.as_ref().filter(|from| from.is_higher != run.is_higher) {
            if run.first <= from.last {
                continue;
            }
            let (before, after) = if from.is_higher { (first, second) } else { (second, first) };
            let points = comparisons[from.first..=run.last].iter().filter_map(|at| at.point(from.is_higher));
            let points: Vec<FitPoint> = points.collect();
            if let Some(fit) = Fit::of(&points) {
                changes.push(OrderChange {
                    before,
                    after,
                    points,
                    fit,
                    before_leads: false,
                    after_leads: false,
                });
            }
        }
        latest = Some(run);
    }
    changes
}

/// The firm runs of which no part is firm, by their last span.
fn firm_runs(comparisons: &[SpanComparison], firm: f64) -> Vec<FirmRun> {
    let mut runs: Vec<FirmRun> = Vec::new();
    for last in 0..comparisons.len() {
        for is_higher in [true, false] {
            let is_firm = |first: &usize| is_firm(&comparisons[*first..=last], is_higher, firm);
            let Some(first) = (0..=last).rev().find(is_firm) else { continue };
            if !runs.iter().any(|run| run.is_higher == is_higher && run.first >= first) {
                runs.push(FirmRun { first, last, is_higher });
            }
        }
    }
    runs
}

/// True if the first method, or else the second, is faster at all of these spans together: the sum
/// of independent normal deviates over the root of their number is one too (Stouffer 1949).
fn is_firm(comparisons: &[SpanComparison], is_higher: bool, firm: f64) -> bool {
    let known: Vec<(f64, f64)> =
        comparisons.iter().filter_map(|at| Some((at.score?, at.log_ratio?))).collect();
    let count = known.len() as f64;
    let sign = if is_higher { 1.0 } else { -1.0 };
    let score: f64 = known.iter().map(|(score, _)| sign * score).sum();
    let log_ratio: f64 = known.iter().map(|(_, log_ratio)| sign * log_ratio).sum();
    let least = comparisons.iter().map(|at| at.least).fold(0.0, f64::max);
    count > 0.0 && score / count.sqrt() > firm && log_ratio / count > least
}

impl OrderChange<'_> {
    /// The spans of the interval: both ends, and those between them.
    fn interval(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let (low, high) = self.fit.ends;
        self.points[low..=high].iter().map(|point| point.span)
    }

    /// The lower end of the interval, a measured span.
    pub fn low(&self) -> u64 {
        self.points[self.fit.ends.0].span
    }

    /// The upper end, another one.
    pub fn high(&self) -> u64 {
        self.points[self.fit.ends.1].span
    }

    /// The span at which both are equally fast by the fit.
    pub fn estimate(&self) -> f64 {
        self.fit.estimate
    }

    /// Number of halvings until the interval is within `tolerance`.
    pub fn halvings(&self, tolerance: f64) -> usize {
        let width = (self.high() as f64 / self.low() as f64).ln() / tolerance.ln_1p();
        width.log2().ceil().max(0.0) as usize
    }

    /// The next span to measure to bring the ends within `tolerance` of each other: the middle of
    /// the widest gap.
    pub fn narrow(&self, tolerance: f64, group: &CliffGroup<'_>, page_bytes: u64) -> Narrowing {
        if self.high() as f64 <= self.low() as f64 * (1.0 + tolerance) {
            return Narrowing::Reached;
        }
        let grid = group.grid();
        let inside: Vec<u64> =
            self.interval().filter(|span| (self.low() + 1..self.high()).contains(span)).collect();
        if inside.iter().filter(|span| !grid.contains(span)).count() >= MOST_INSIDE {
            return Narrowing::Undecided;
        }
        let width = |(from, to): &(u64, u64)| *to as f64 / *from as f64;
        let worth = |gap: &(u64, u64)| width(gap) > 1.0 + tolerance * FINEST_PART;
        let mut gaps: Vec<(u64, u64)> = self.interval().zip(self.interval().skip(1)).filter(worth).collect();
        gaps.sort_by(|left, right| width(right).total_cmp(&width(left)));
        match gaps.into_iter().find_map(|(from, to)| middle(from, to, group, page_bytes)) {
            Some(span) => Narrowing::Measure(span),
            None if inside.is_empty() => Narrowing::TooFine,
            None => Narrowing::Undecided,
        }
    }
}

/// A span between two others in whole reads and pages.
fn middle(low: u64, high: u64, group: &CliffGroup<'_>, page_bytes: u64) -> Option<u64> {
    let conditions = group.conditions(high);
    let (read, page) = (conditions.reads()?.read_bytes.0.max(1), page_bytes.max(1));
    let step = if read.is_multiple_of(page) { read } else { page.next_multiple_of(read).max(page) };
    between(low, high.min(conditions.file_bytes.0.saturating_add(1)), step, &group.spans())
}

/// A multiple of `step` between two spans where nothing was measured yet: cells of other rounds
/// cannot be paired with new ones. It is the geometric middle, or, if something was measured near
/// that (too few samples of it were valid), away from it.
fn between(low: u64, high: u64, step: u64, measured: &[u64]) -> Option<u64> {
    let gap = (high as f64 / low as f64).ln();
    let at = |share: f64| (low as f64 * (gap * share).exp() / step as f64).round() as u64;
    let is_between = |span: &u64| *span > low && *span < high;
    let is_far =
        |span: &u64| !measured.iter().any(|other| (*other as f64 / *span as f64).ln().abs() < gap * NEAR);
    // 0, 1, -1, 2, -2 steps away: there are at most as many spans as cells that could be in the
    // way.
    let beside = (0..=2 * measured.len() as u64 + 1).map(|attempt| {
        let away = attempt.div_ceil(2);
        if attempt % 2 == 1 { at(0.5).saturating_add(away) } else { at(0.5).saturating_sub(away) }
    });
    let spans = |steps: u64| steps.saturating_mul(step);
    let mut far = SHARES.into_iter().map(at).map(spans).filter(is_between).filter(is_far);
    far.next().or_else(|| beside.map(spans).filter(is_between).find(|span| !measured.contains(span)))
}

/// Positions between two spans, as shares of their logarithmic distance, in the order in which they
/// are tried.
const SHARES: [f64; 7] = [0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875];
/// Spans nearer than this share of the distance say the same.
const NEAR: f64 = 1.0 / 16.0;

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_analysis::judge::verdict::Finding;

    const FIRM: f64 = 3.0;

    fn compared(span: u64, faster: Finding, is_firm: bool) -> SpanComparison {
        let sign = match faster {
            Finding::Higher => 1.0,
            Finding::Lower => -1.0,
            _ => 0.0,
        };
        let score = Some(sign * if is_firm { 4.0 } else { 1.0 });
        let (log_ratio, reach) = (Some(sign * 0.2), Some(0.1));
        SpanComparison { span, faster, wins: is_firm, log_ratio, least: 0.02, score, reach }
    }

    #[test]
    fn what_could_not_be_measured_in_the_middle_is_measured_away_from_it() {
        let kib = |all: &[u64]| all.iter().map(|kib| kib << 10).collect::<Vec<u64>>();
        let of =
            |measured: &[u64]| between(64 << 20, 256 << 20, 16 << 10, &kib(measured)).map(|span| span >> 10);
        let ends = [64 << 10, 256 << 10];
        assert_eq!(of(&ends), Some(128 << 10));
        // Not 16 KiB aside: a quarter and three quarters of the way.
        assert_eq!(of(&[ends[0], 128 << 10, ends[1]]), Some(92_688));
        assert_eq!(of(&[ends[0], 92_688, 128 << 10, ends[1]]), Some(185_360));
        // Few steps are left.
        assert_eq!(between(64, 67, 1, &[64, 65, 67]), Some(66));
        assert_eq!(between(64, 67, 1, &[64, 65, 66, 67]), None);
    }

    fn methods() -> (Method, Method) {
        ("mmap".parse().expect("mmap"), "pread".parse().expect("pread"))
    }

    fn ends(change: &OrderChange<'_>) -> (u64, u64) {
        (change.low(), change.high())
    }

    use Finding::{Higher, Indistinguishable, Lower};

    #[test]
    fn the_interval_lies_between_firm_differences_in_opposite_directions() {
        let (mmap, pread) = methods();
        let all = [
            compared(1, Higher, true),
            compared(2, Higher, false),
            compared(3, Indistinguishable, false),
            compared(4, Lower, false),
            compared(5, Lower, true),
        ];
        let found = of_pair(&mmap, &pread, &all, FIRM);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].before, found[0].after), (&mmap, &pread));
        assert_eq!(ends(&found[0]), (2, 4));
        assert!((2.0..=4.0).contains(&found[0].estimate()), "{}", found[0].estimate());
    }

    #[test]
    fn contradictions_widen_the_interval() {
        let (mmap, pread) = methods();
        let all = [
            compared(1, Lower, true),
            compared(2, Lower, false),
            compared(3, Higher, false),
            compared(4, Lower, false),
            compared(5, Higher, true),
        ];
        let found = of_pair(&mmap, &pread, &all, FIRM);
        assert_eq!((found[0].before, found[0].after), (&pread, &mmap));
        assert_eq!(ends(&found[0]), (1, 5));
    }

    #[test]
    fn a_span_without_enough_rounds_has_no_part_in_it() {
        let (mmap, pread) = methods();
        let empty = SpanComparison {
            reach: None,
            log_ratio: None,
            score: None,
            ..compared(2, Finding::TooFewRounds, false)
        };
        let found =
            of_pair(&mmap, &pread, &[compared(1, Higher, true), empty, compared(3, Lower, true)], FIRM);
        assert_eq!(found.iter().map(ends).collect::<Vec<_>>(), [(1, 3)]);
    }

    #[test]
    fn what_is_not_firm_on_both_sides_is_no_change() {
        let (mmap, pread) = methods();
        assert!(
            of_pair(&mmap, &pread, &[compared(1, Higher, true), compared(2, Lower, false)], FIRM).is_empty()
        );
        assert!(
            of_pair(&mmap, &pread, &[compared(1, Higher, false), compared(2, Lower, true)], FIRM).is_empty()
        );
        assert!(
            of_pair(&mmap, &pread, &[compared(1, Indistinguishable, false), compared(2, Lower, true)], FIRM)
                .is_empty()
        );
        assert!(of_pair(&mmap, &pread, &[], FIRM).is_empty());
    }

    #[test]
    fn orders_may_change_back() {
        let (mmap, pread) = methods();
        let all = [compared(1, Higher, true), compared(2, Lower, true), compared(3, Higher, true)];
        let found = of_pair(&mmap, &pread, &all, FIRM);
        assert_eq!(found.iter().map(ends).collect::<Vec<_>>(), [(1, 2), (2, 3)]);
    }

    #[test]
    fn neighbours_are_firm_together() {
        let (mmap, pread) = methods();
        let with = |score: f64| {
            let all = [(1, Higher, score), (2, Higher, score), (3, Lower, 4.0)];
            let at = |(span, faster, score): (u64, Finding, f64)| {
                let at = compared(span, faster, false);
                SpanComparison { score: Some(if faster == Higher { score } else { -score }), ..at }
            };
            of_pair(&mmap, &pread, &all.map(at), FIRM).iter().map(ends).collect::<Vec<_>>()
        };
        assert_eq!(with(2.0), [], "2.8 together");
        assert_eq!(with(2.2), [(2, 3)], "3.1 together");
    }
}
