//! The curves of a run over ratios of data to cache: chart, table and conclusions.

use pagewise_analysis::judge::cliff::{CapacitySource, Cliff, Curve, CurveGroup, Point};
use pagewise_analysis::judge::verdict::FEWEST_ROUNDS;
use pagewise_model::Bytes;
use pagewise_model::format::{MISSING, rate};

use crate::chart::{Chart, letter};
use crate::document::{Block, Document};
use crate::text_table::{TextCell, TextTable};
use crate::words;

/// Ratio of the ends of the widest interval whose crossing is marked in a chart without a
/// tolerance; in a search, it is twice the tolerance.
const WIDEST_MARKED: f64 = 1.25;
/// Mark before a rate from fewer samples than a verdict needs.
const FEW: &str = "~";
/// Most decimals shown, even if two ratios look alike.
const MOST_DECIMALS: usize = 6;

/// Every group of curves: its chart, its table and its conclusions.
pub fn blocks(cliff: &Cliff) -> Vec<Block> {
    if cliff.groups.is_empty() {
        return vec![Block::paragraph("no cell has a memory limit, so there is no ratio of data to cache")];
    }
    let of_group = |group: &CurveGroup| {
        Block::Part(Document {
            head: vec![Block::heading(3, &group.label)],
            body: vec![chart(cliff, group), Block::Table(table(group), group.label.clone()), note(group)],
            conclusion: words::cliff::printed(group).into_iter().map(Block::paragraph).collect(),
        })
    };
    cliff.groups.iter().map(of_group).collect()
}

/// The chart of a group.
pub(crate) fn chart(cliff: &Cliff, group: &CurveGroup) -> Block {
    let points = |curve: &Curve| {
        curve.points.iter().map(|point| (point.ratio, reads_per_second(group, point))).collect()
    };
    // A line at one position suggests that the position is known.
    let widest = cliff.tolerance.map_or(WIDEST_MARKED, |tolerance| 1.0 + 2.0 * tolerance);
    let known = group.crossings.iter().filter(|crossing| crossing.high <= crossing.low * widest);
    let ratios: Vec<f64> = ratios(group).into_iter().map(|(ratio, _)| ratio).collect();
    let chart = Chart {
        lines: group.curves.iter().map(points).collect(),
        marks: known.filter_map(|crossing| crossing.ratio).collect(),
        ticks: ratios.iter().copied().zip(headings(&ratios)).collect(),
    };
    let marked = if chart.marks.is_empty() { "" } else { "; ┆ marks a change of order" };
    let caption = format!("reads/s over data / cache; * is several{marked}");
    Block::Chart(chart, caption)
}

/// The methods of the curves with their letters.
pub(crate) fn legend(group: &CurveGroup) -> String {
    let name = |(index, curve): (usize, &Curve)| format!("{} {}", letter(index), curve.method);
    group.curves.iter().enumerate().map(name).collect::<Vec<_>>().join(" · ")
}

/// All measured ratios, ascending, with their spans.
fn ratios(group: &CurveGroup) -> Vec<(f64, Bytes)> {
    let mut ratios: Vec<(f64, Bytes)> = group
        .curves
        .iter()
        .flat_map(|curve| &curve.points)
        .map(|point| (point.ratio, point.span_bytes))
        .collect();
    ratios.sort_by_key(|(_, span)| *span);
    ratios.dedup_by_key(|(_, span)| *span);
    ratios
}

/// Methods as rows and ratios as columns.
fn table(group: &CurveGroup) -> TextTable {
    let (ratios, spans): (Vec<f64>, Vec<Bytes>) = ratios(group).into_iter().unzip();
    let limit_bytes = group.memory_limit_bytes.0.max(1) as f64;
    let to_limit: Vec<f64> = spans.iter().map(|span| span.0 as f64 / limit_bytes).collect();
    let limits =
        headings(&to_limit).into_iter().zip(&to_limit).map(|(text, ratio)| TextCell::of(text, *ratio));
    let row = |(index, curve): (usize, &Curve)| {
        let name = format!("{} {}", letter(index), curve.method).into();
        std::iter::once(name).chain(spans.iter().map(|span| rate_at(group, curve, *span))).collect()
    };
    let columns = std::iter::once("reads/s at data / cache".to_string()).chain(headings(&ratios));
    let limits = std::iter::once("data / memory limit".into()).chain(limits).collect();
    TextTable {
        columns: columns.map(Into::into).collect(),
        rows: std::iter::once(limits).chain(group.curves.iter().enumerate().map(row)).collect(),
    }
}

/// Meaning of the signs of the table.
fn note(group: &CurveGroup) -> Block {
    let source = match group.capacity.source {
        CapacitySource::Measured => "cache as measured",
        CapacitySource::Nominal => "cache as calculated",
    };
    let mut points = group.curves.iter().flat_map(|curve| &curve.points);
    let is_few = |point: &Point| point.samples < FEWEST_ROUNDS && reads_per_second(group, point).is_some();
    let few = match points.any(is_few) {
        true => format!("; {FEW}: fewer than {FEWEST_ROUNDS} valid samples, too few for a verdict"),
        false => String::new(),
    };
    Block::paragraph(format!("{source}; {MISSING}: no valid sample{few}; blank: not measured at this ratio"))
}

/// The rate of a curve at one span; blank if it was not measured there.
fn rate_at(group: &CurveGroup, curve: &Curve, span: Bytes) -> TextCell {
    let Some(point) = curve.points.iter().find(|point| point.span_bytes == span) else {
        return TextCell::default();
    };
    let few = if point.samples < FEWEST_ROUNDS { FEW } else { "" };
    TextCell::number(reads_per_second(group, point), |value| format!("{few}{}", rate(value)))
}

/// The median of a point.
fn reads_per_second(group: &CurveGroup, point: &Point) -> Option<f64> {
    point.ops_per_second.map(|rate| rate.median * f64::from(group.reads_per_op))
}

/// Headings of ascending ratios: two decimals, more if two of them would look alike.
fn headings(ratios: &[f64]) -> Vec<String> {
    let times = |ratio: f64, decimals: usize| format!("{ratio:.decimals$}x");
    let alike = |index: usize, other: usize, decimals: usize| {
        let other = ratios.get(other).filter(|other| **other != ratios[index]);
        other.is_some_and(|other| times(*other, decimals) == times(ratios[index], decimals))
    };
    let heading = |index: usize| {
        let are_distinct = |decimals: &usize| {
            !alike(index, index.wrapping_sub(1), *decimals) && !alike(index, index + 1, *decimals)
        };
        times(ratios[index], (2..MOST_DECIMALS).find(are_distinct).unwrap_or(MOST_DECIMALS))
    };
    (0..ratios.len()).map(heading).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_that_would_look_alike_get_more_digits() {
        assert_eq!(headings(&[0.5, 0.96, 1.0, 4.0]), ["0.50x", "0.96x", "1.00x", "4.00x"]);
        assert_eq!(headings(&[0.89, 0.9601, 0.9632, 4.0]), ["0.89x", "0.960x", "0.963x", "4.00x"]);
        assert_eq!(headings(&[0.96312, 0.96318, 0.9633]), ["0.9631x", "0.9632x", "0.9633x"]);
        assert_eq!(headings(&[1.0, 1.0]), ["1.00x", "1.00x"]);
        assert!(headings(&[]).is_empty());
    }
}
