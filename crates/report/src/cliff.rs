//! The curves of a run over ratios of data to cache: chart, table and conclusions.

use std::io::{self, Write};

use pagewise_analysis::judge::cliff::{CapacitySource, Cliff, Curve, CurveGroup, Point};
use pagewise_analysis::judge::verdict::FEWEST_ROUNDS;
use pagewise_model::{Bytes, Untrusted};

use crate::chart::{self, Chart, letter};
use crate::paragraph::{WIDEST, paragraph, shortened, wrapped};
use crate::words;
use pagewise_model::format::{MISSING, rate};

/// The narrowest layout; smaller widths are treated as this.
pub const NARROWEST: usize = chart::NARROWEST;
/// The widest chart, so that the eye can follow a line.
const WIDEST_CHART: usize = 100;
/// Columns between two columns of the table.
const BETWEEN: usize = 2;
/// Ratio of the ends of the widest interval whose crossing is marked in a chart without a
/// tolerance; in a search, it is twice the tolerance.
const WIDEST_MARKED: f64 = 1.25;
/// Mark before a rate from fewer samples than a verdict needs.
const FEW: char = '~';
/// Most decimals shown, even if two ratios look alike.
const MOST_DECIMALS: usize = 6;

/// Write every group of curves for a terminal of `width` columns.
pub fn write(out: &mut dyn Write, cliff: &Cliff, width: usize) -> io::Result<()> {
    let width = width.clamp(NARROWEST, WIDEST);
    if cliff.groups.is_empty() {
        return paragraph(
            out,
            "",
            "no cell has a memory limit, so there is no ratio of data to cache",
            width,
        );
    }
    for (index, group) in cliff.groups.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        paragraph(out, "", &group.label, width)?;
        write_chart(out, group, cliff.tolerance, width)?;
        write_table(out, group, width)?;
        for sentence in words::cliff::printed(group) {
            paragraph(out, "  ", &sentence, width)?;
        }
    }
    Ok(())
}

/// The lines of a group's chart, with the methods of its curves below it.
pub(crate) fn chart_lines(cliff: &Cliff, group: &CurveGroup, width: usize) -> Vec<String> {
    let mut drawn = Vec::new();
    write_chart(&mut drawn, group, cliff.tolerance, width).expect("memory takes all");
    let legend: Vec<String> = group
        .curves
        .iter()
        .enumerate()
        .map(|(index, curve)| format!("{} {}", letter(index), curve.method))
        .collect();
    let drawn = String::from_utf8(drawn).expect("text was written");
    drawn.lines().map(str::to_string).chain(wrapped("  ", &legend.join(" · "), width)).collect()
}

fn write_chart(
    out: &mut dyn Write,
    group: &CurveGroup,
    tolerance: Option<f64>,
    width: usize,
) -> io::Result<()> {
    let points = |curve: &Curve| {
        curve.points.iter().map(|point| (point.ratio, reads_per_second(group, point))).collect()
    };
    // A line at one position suggests that the position is known.
    let widest = tolerance.map_or(WIDEST_MARKED, |tolerance| 1.0 + 2.0 * tolerance);
    let known = group.crossings.iter().filter(|crossing| crossing.high <= crossing.low * widest);
    let ratios: Vec<f64> = ratios(group).into_iter().map(|(ratio, _)| ratio).collect();
    let chart = Chart {
        lines: group.curves.iter().map(points).collect(),
        marks: known.filter_map(|crossing| crossing.ratio).collect(),
        ticks: ratios.iter().copied().zip(headings(&ratios)).collect(),
    };
    let rows = chart::rows(&chart, width.min(WIDEST_CHART));
    if rows.is_empty() {
        return paragraph(out, "  ", "nothing to draw: no sample is valid", width);
    }
    let marked = if chart.marks.is_empty() { "" } else { "; ┆ marks a change of order" };
    paragraph(out, "", &format!("reads/s over data / cache; * is several{marked}"), width)?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))
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

/// Write methods as rows and ratios as columns, in several tables if they are too wide for one.
fn write_table(out: &mut dyn Write, group: &CurveGroup, width: usize) -> io::Result<()> {
    let names: Vec<String> = group
        .curves
        .iter()
        .enumerate()
        .map(|(index, curve)| format!("{} {}", letter(index), Untrusted(&curve.method)))
        .collect();
    let (first, limit) = ("reads/s at data / cache", "data / memory limit");
    let longest = names.iter().map(|name| name.chars().count()).chain([first.len(), limit.len()]).max();
    // A long method leaves room for at least one column of numbers.
    let head = longest.unwrap_or(0).min(width.saturating_sub(BETWEEN + 8));
    let (ratios, spans): (Vec<f64>, Vec<Bytes>) = ratios(group).into_iter().unzip();
    let limit_bytes = group.memory_limit_bytes.0.max(1) as f64;
    let to_limit: Vec<f64> = spans.iter().map(|span| span.0 as f64 / limit_bytes).collect();
    let columns: Vec<Vec<String>> = headings(&ratios)
        .into_iter()
        .zip(headings(&to_limit))
        .zip(&spans)
        .map(|((ratio, to_limit), span)| [ratio, to_limit].into_iter().chain(column(group, *span)).collect())
        .collect();
    let mut from = 0;
    while from < columns.len() {
        let mut to = from;
        let mut used = head;
        while to < columns.len() && (to == from || used + BETWEEN + wide(&columns[to]) <= width) {
            used += BETWEEN + wide(&columns[to]);
            to += 1;
        }
        let titles = [first.to_string(), limit.to_string()];
        for (row, title) in titles.iter().chain(&names).enumerate() {
            let mut line = format!("{:head$}", shortened(title, head));
            for column in &columns[from..to] {
                line.push_str(&format!("{:>1$}", column[row], BETWEEN + wide(column)));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        from = to;
    }
    let source = match group.capacity.source {
        CapacitySource::Measured => "cache as measured",
        CapacitySource::Nominal => "cache as calculated",
    };
    let few = match columns.iter().flatten().any(|text| text.starts_with(FEW)) {
        true => format!("; {FEW}: fewer than {FEWEST_ROUNDS} valid samples, too few for a verdict"),
        false => String::new(),
    };
    paragraph(
        out,
        "  ",
        &format!("{source}; {MISSING}: no valid sample{few}; blank: not measured at this ratio"),
        width,
    )
}

/// Numbers of one span, one for each method.
fn column(group: &CurveGroup, span: Bytes) -> impl Iterator<Item = String> {
    group.curves.iter().map(move |curve| {
        let point = curve.points.iter().find(|point| point.span_bytes == span);
        point.map_or_else(String::new, |point| match reads_per_second(group, point) {
            Some(value) if point.samples < FEWEST_ROUNDS => format!("{FEW}{}", rate(value)),
            Some(value) => rate(value),
            None => MISSING.to_string(),
        })
    })
}

/// The median of a point.
fn reads_per_second(group: &CurveGroup, point: &Point) -> Option<f64> {
    point.ops_per_second.map(|rate| rate.median * f64::from(group.reads_per_op))
}

fn wide(column: &[String]) -> usize {
    column.iter().map(|text| text.chars().count()).max().unwrap_or(0)
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
