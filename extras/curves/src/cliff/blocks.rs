//! The curves of a run over ratios of data to cache: a table with bars, and conclusions.

use crate::cliff::{CapacitySource, Cliff, Crossing, Curve, CurveGroup, Point};
use pagewise_analysis::judge::verdict::FEWEST_ROUNDS;
use pagewise_model::Bytes;
use pagewise_model::format::{MISSING, rate};

use pagewise_report::document::{Block, Document};
use pagewise_report::line::Emphasis;
use pagewise_report::text_table::{TextCell, TextTable};

use super::words;

/// Mark before a rate from fewer samples than a verdict needs.
const FEW: &str = "~";
/// Most decimals shown, even if two ratios look alike.
const MOST_DECIMALS: usize = 6;

/// Every group of curves: its table and its conclusions.
pub fn blocks(cliff: &Cliff) -> Vec<Block> {
    if cliff.groups.is_empty() {
        return vec![Block::paragraph("no cell has a memory limit, so there is no ratio of data to cache")];
    }
    let of_group = |group: &CurveGroup| {
        Block::Part(Document {
            head: vec![Block::heading(3, &group.label)],
            body: vec![Block::Table(table(group), group.label.clone()), note(group)],
            conclusion: words::printed(group).into_iter().map(Block::paragraph).collect(),
        })
    };
    cliff.groups.iter().map(of_group).collect()
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

/// Methods as rows and ratios as columns. A bar compares methods at one ratio, and those that lead
/// there stand out.
pub fn table(group: &CurveGroup) -> TextTable {
    let (ratios, spans): (Vec<f64>, Vec<Bytes>) = ratios(group).into_iter().unzip();
    let limit_bytes = group.memory_limit_bytes.0.max(1) as f64;
    let to_limit: Vec<f64> = spans.iter().map(|span| span.0 as f64 / limit_bytes).collect();
    let limits =
        headings(&to_limit).into_iter().zip(&to_limit).map(|(text, ratio)| TextCell::of(text, *ratio));
    let row = |curve: &Curve| {
        let cells = spans.iter().map(|span| rate_at(group, curve, *span));
        std::iter::once(TextCell::from(&curve.method)).chain(cells).collect()
    };
    let columns = std::iter::once("reads/s at".to_string()).chain(headings(&ratios));
    let limits = std::iter::once("of the limit".into()).chain(limits).collect();
    TextTable {
        columns: columns.map(Into::into).collect(),
        rows: std::iter::once(limits).chain(group.curves.iter().map(row)).collect(),
    }
}

/// The table for a screen, which leaves out ratios that do not fit: first those that are far from
/// a change of order.
pub fn answer(group: &CurveGroup) -> TextTable {
    let mut table = table(group);
    // The data over the limit.
    table.rows.remove(0);
    let ratios: Vec<f64> = ratios(group).into_iter().map(|(ratio, _)| ratio).collect();
    let ends = |crossing: &Crossing| [crossing.low, crossing.high];
    let changes: Vec<f64> = group.crossings.iter().flat_map(ends).collect();
    let nearest =
        |ratio: f64| changes.iter().map(|change| (ratio / change).ln().abs()).fold(f64::MAX, f64::min);
    let mut order: Vec<usize> = (1..ratios.len().saturating_sub(1)).collect();
    order.sort_by(|one, other| nearest(ratios[*one]).total_cmp(&nearest(ratios[*other])));
    for (spare, index) in (1..).zip(order) {
        table.columns[1 + index].spare = spare;
    }
    table
}

/// Meaning of the signs of the table.
fn note(group: &CurveGroup) -> Block {
    let source = match group.capacity.source {
        CapacitySource::Measured => "as measured",
        CapacitySource::Nominal => "as calculated",
    };
    let mut points = group.curves.iter().flat_map(|curve| &curve.points);
    let is_few = |point: &Point| point.samples < FEWEST_ROUNDS && reads_per_second(group, point).is_some();
    let few = match points.any(is_few) {
        true => format!("; {FEW}: fewer than {FEWEST_ROUNDS} valid samples, too few for a verdict"),
        false => String::new(),
    };
    Block::paragraph(format!(
        "sizes are multiples of the cache {source}; {MISSING}: no valid sample{few}; blank: not measured at this ratio"
    ))
}

/// The rate of a curve at one span; blank if it was not measured there.
fn rate_at(group: &CurveGroup, curve: &Curve, span: Bytes) -> TextCell {
    let Some(point) = at(curve, span) else { return TextCell::default() };
    let few = if point.samples < FEWEST_ROUNDS { FEW } else { "" };
    let rate_of = |curve: &Curve| reads_per_second(group, at(curve, span)?);
    let fastest = group.curves.iter().filter_map(rate_of).fold(0.0, f64::max);
    let leads = group.leads.iter().filter(|lead| (lead.from..=lead.to).contains(&point.ratio));
    let leads = leads.flat_map(|lead| &lead.methods).any(|method| *method == curve.method);
    let found = reads_per_second(group, point);
    TextCell {
        bar: found.map(|found| found / fastest),
        emphasis: if leads { Emphasis::Strong } else { Emphasis::Plain },
        ..TextCell::number(found, |value| format!("{few}{}", rate(value)))
    }
}

/// The point of a curve at one span.
fn at(curve: &Curve, span: Bytes) -> Option<&Point> {
    curve.points.iter().find(|point| point.span_bytes == span)
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
