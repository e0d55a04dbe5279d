//! Changes of order, and the narrowing of their intervals.

use std::iter;

use pagewise_model::Method;

use super::group::{CliffGroup, SpanComparison};
use crate::judge::verdict::Finding;

/// This many unclear spans added by halving end the search in an interval.
const MOST_UNCLEAR: usize = 4;
/// A part of an interval is not narrowed below this part of the tolerance.
const FINEST_PART: f64 = 0.25;

/// Two methods, and the interval in which their order changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change<'a> {
    pub(crate) before: &'a Method,
    pub(crate) after: &'a Method,
    /// The largest span at which `before` clearly wins, below all at which `after` does.
    pub(crate) low: SpanComparison,
    /// The smallest span at which `after` clearly wins, above all at which `before` does.
    pub(crate) high: SpanComparison,
    /// Spans between, ascending; unclear at each of them.
    unclear: Vec<u64>,
    pub(crate) before_leads: bool,
    pub(crate) after_leads: bool,
}

/// Next step for a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Narrowing {
    /// Its interval is within the tolerance.
    Reached,
    /// The span to measure.
    Measure(u64),
    /// The order between the ends is not distinguishable.
    CannotTell,
    /// There is no span between the ends.
    TooFine,
}

/// All changes that involve a leader, those from one leader to the next first.
pub(crate) fn changes<'a>(group: &CliffGroup<'a>) -> Vec<Change<'a>> {
    let methods = group.methods();
    // If lost samples leave no comparison of all methods, the next ratio decides who leads.
    let full: Vec<(u64, Vec<&Method>)> = group
        .full_spans()
        .into_iter()
        .map(|span| (span, group.leaders(span)))
        .filter(|(_, leaders)| !leaders.is_empty())
        .collect();
    let mut changes = Vec::new();
    for (index, first) in methods.iter().enumerate() {
        for second in &methods[index + 1..] {
            let told: Vec<SpanComparison> =
                group.spans().into_iter().filter_map(|span| group.compare(first, second, span)).collect();
            changes.extend(of_pair(first, second, &told));
        }
    }
    for change in &mut changes {
        let below = full.iter().rev().find(|(span, _)| *span <= change.low.span);
        let above = full.iter().find(|(span, _)| *span >= change.high.span);
        change.before_leads = below.is_some_and(|(_, leaders)| leaders.contains(&change.before));
        change.after_leads = above.is_some_and(|(_, leaders)| leaders.contains(&change.after));
    }
    changes.retain(|change| change.before_leads || change.after_leads);
    changes.sort_by_key(|change| (!(change.before_leads && change.after_leads), change.low.span));
    changes
}

/// The changes of one pair, from its comparisons at spans in ascending order.
fn of_pair<'a>(first: &'a Method, second: &'a Method, told: &[SpanComparison]) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    let mut last_firm: Option<usize> = None;
    for (index, at) in told.iter().enumerate().filter(|(_, at)| at.firm) {
        if let Some(from) = last_firm.filter(|from| told[*from].faster != at.faster) {
            let (before, after) = if at.faster == Finding::Lower { (first, second) } else { (second, first) };
            changes.push(within(before, after, &told[from..=index]));
        }
        last_firm = Some(index);
    }
    changes
}

/// The narrowest interval that contradicts none of the clear differences between two firm ones.
fn within<'a>(before: &'a Method, after: &'a Method, told: &[SpanComparison]) -> Change<'a> {
    let (low_side, high_side) = (told[0].faster, told[told.len() - 1].faster);
    let first_of_after = told.iter().position(|at| at.faster == high_side).unwrap_or(told.len() - 1);
    let last_of_before = told.iter().rposition(|at| at.faster == low_side).unwrap_or(0);
    let low = told[..first_of_after].iter().rposition(|at| at.faster == low_side).unwrap_or(0);
    let behind = &told[last_of_before + 1..];
    let high = behind
        .iter()
        .position(|at| at.faster == high_side)
        .map_or(told.len() - 1, |at| last_of_before + 1 + at);
    Change {
        before,
        after,
        low: told[low],
        high: told[high],
        unclear: told[low + 1..high].iter().map(|at| at.span).collect(),
        before_leads: false,
        after_leads: false,
    }
}

impl Change<'_> {
    /// The span at which both are equally fast, if the logarithm of their ratio is a straight line between the ends.
    pub(crate) fn estimate(&self) -> Option<f64> {
        let (low, high) = (self.low.log_ratio?.abs(), self.high.log_ratio?.abs());
        let share = if low + high > 0.0 { low / (low + high) } else { 0.5 };
        let (from, to) = ((self.low.span as f64).ln(), (self.high.span as f64).ln());
        Some((from + (to - from) * share).exp())
    }

    /// Number of halvings until the interval is within `tolerance`.
    pub(crate) fn halvings(&self, tolerance: f64) -> usize {
        let width = (self.high.span as f64 / self.low.span as f64).ln() / tolerance.ln_1p();
        width.log2().ceil().max(0.0) as usize
    }

    /// The next span to measure to bring the ends within `tolerance` of each other.
    pub(crate) fn narrow(&self, tolerance: f64, group: &CliffGroup<'_>, page_bytes: u64) -> Narrowing {
        let (low, high) = (self.low.span, self.high.span);
        if high as f64 <= low as f64 * (1.0 + tolerance) {
            return Narrowing::Reached;
        }
        let grid = group.grid();
        let added = self.unclear.iter().filter(|span| !grid.contains(span)).count();
        if added >= MOST_UNCLEAR {
            return Narrowing::CannotTell;
        }
        // Next to an unclear span the order may still be distinguishable.
        let finest = 1.0 + tolerance * FINEST_PART;
        let worth = |(from, to): &(u64, u64)| *to as f64 > *from as f64 * finest;
        let widest_first = self.parts().into_iter().filter(worth);
        match widest_first.filter_map(|(from, to)| middle(from, to, group, page_bytes)).next() {
            Some(span) => Narrowing::Measure(span),
            None if self.unclear.is_empty() => Narrowing::TooFine,
            None => Narrowing::CannotTell,
        }
    }

    /// The parts into which unclear spans divide the interval, the widest first.
    fn parts(&self) -> Vec<(u64, u64)> {
        let ends: Vec<u64> =
            iter::once(self.low.span).chain(self.unclear.iter().copied()).chain([self.high.span]).collect();
        let mut parts: Vec<(u64, u64)> = ends.windows(2).map(|part| (part[0], part[1])).collect();
        let width = |(from, to): &(u64, u64)| *to as f64 / *from as f64;
        parts.sort_by(|left, right| width(right).total_cmp(&width(left)));
        parts
    }
}

/// The geometric middle of two spans in whole reads and pages, where nothing was measured yet: cells of other rounds
/// cannot be paired with new ones.
fn middle(low: u64, high: u64, group: &CliffGroup<'_>, page_bytes: u64) -> Option<u64> {
    let conditions = group.conditions(high);
    let (read, page) = (conditions.reads()?.read_bytes.0.max(1), page_bytes.max(1));
    let step = if read.is_multiple_of(page) { read } else { page.next_multiple_of(read).max(page) };
    let exact = (low as f64 * high as f64).sqrt();
    let nearest = (exact / step as f64).round() as u64;
    // 0, 1, -1, 2, -2 steps away: there are at most as many spans as cells that could be in the way.
    let attempts = 2 * group.spans().len() as u64 + 1;
    (0..=attempts)
        .map(|attempt| {
            let away = attempt.div_ceil(2);
            if attempt % 2 == 1 { nearest.saturating_add(away) } else { nearest.saturating_sub(away) }
        })
        .map(|steps| steps.saturating_mul(step))
        .find(|span| {
            *span > low && *span < high && *span <= conditions.file_bytes.0 && !group.has_span(*span)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(span: u64, faster: Finding, firm: bool) -> SpanComparison {
        let log_ratio = Some(match faster {
            Finding::Higher => 0.2,
            Finding::Lower => -0.2,
            _ => 0.0,
        });
        SpanComparison { span, faster, wins: firm, firm, log_ratio }
    }

    fn methods() -> (Method, Method) {
        ("mmap".parse().expect("mmap"), "pread".parse().expect("pread"))
    }

    use Finding::{Higher, Indistinguishable, Lower};

    #[test]
    fn the_interval_lies_between_the_last_and_the_first_clear_ones() {
        let (mmap, pread) = methods();
        let all = [
            told(1, Higher, true),
            told(2, Higher, false),
            told(3, Indistinguishable, false),
            told(4, Lower, false),
            told(5, Lower, true),
        ];
        let found = of_pair(&mmap, &pread, &all);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].before, found[0].after), (&mmap, &pread));
        assert_eq!((found[0].low.span, found[0].high.span), (2, 4));
        assert_eq!(found[0].unclear, [3]);
        let estimate = found[0].estimate().expect("both known");
        assert!((estimate - 8f64.sqrt()).abs() < 1e-9, "{estimate}");
    }

    #[test]
    fn contradictions_stay_inside() {
        let (mmap, pread) = methods();
        let all = [
            told(1, Lower, true),
            told(2, Lower, false),
            told(3, Higher, false),
            told(4, Lower, false),
            told(5, Higher, true),
        ];
        let found = of_pair(&mmap, &pread, &all);
        assert_eq!((found[0].before, found[0].after), (&pread, &mmap));
        assert_eq!((found[0].low.span, found[0].high.span, found[0].unclear.len()), (2, 5, 2));
    }

    #[test]
    fn an_unclear_span_does_not_hide_the_wider_part_beside_it() {
        let (mmap, pread) = methods();
        let parts = |unclear: &[u64]| {
            let inside = unclear.iter().map(|span| told(*span, Indistinguishable, false));
            let ends = (told(88, Higher, true), told(395, Lower, true));
            let all: Vec<SpanComparison> = iter::once(ends.0).chain(inside).chain([ends.1]).collect();
            of_pair(&mmap, &pread, &all)[0].parts()
        };
        assert_eq!(parts(&[]), [(88, 395)]);
        assert_eq!(parts(&[106]), [(106, 395), (88, 106)]);
        assert_eq!(parts(&[106, 205]), [(106, 205), (205, 395), (88, 106)]);
    }

    #[test]
    fn what_is_not_firm_on_both_sides_is_no_change() {
        let (mmap, pread) = methods();
        assert!(of_pair(&mmap, &pread, &[told(1, Higher, true), told(2, Lower, false)]).is_empty());
        assert!(of_pair(&mmap, &pread, &[told(1, Higher, false), told(2, Lower, true)]).is_empty());
        assert!(
            of_pair(&mmap, &pread, &[told(1, Indistinguishable, false), told(2, Lower, true)]).is_empty()
        );
        assert!(of_pair(&mmap, &pread, &[]).is_empty());
    }

    #[test]
    fn places_may_change_back() {
        let (mmap, pread) = methods();
        let all = [told(1, Higher, true), told(2, Lower, true), told(3, Higher, true)];
        let found = of_pair(&mmap, &pread, &all);
        assert_eq!(
            found.iter().map(|change| (change.low.span, change.high.span)).collect::<Vec<_>>(),
            [(1, 2), (2, 3)]
        );
    }
}
