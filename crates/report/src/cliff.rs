//! The curves of a run over ratios of data to cache: chart, table, and what follows from them in words.

use std::io::{self, Write};

use pagewise_analysis::cliff::{CapacitySource, Cliff, Curve, CurveGroup};
use pagewise_model::Bytes;

use crate::chart::{self, Chart, letter};
use crate::numbers::{MISSING, rate};
use crate::table::{WIDEST, paragraph};

/// The narrowest width that is laid out for; less is treated as this.
pub const NARROWEST: usize = chart::NARROWEST;
/// Charts grow no wider: the eye has to follow a line.
const WIDEST_CHART: usize = 100;
/// Columns between two columns of the table.
const BETWEEN: usize = 2;

/// Writes every group of curves for a terminal of `width` columns.
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
        write_chart(out, group, width)?;
        write_table(out, group, width)?;
        for sentence in &group.sentences {
            paragraph(out, "  ", &format!("{}.", capitalized(sentence)), width)?;
        }
    }
    Ok(())
}

fn write_chart(out: &mut dyn Write, group: &CurveGroup, width: usize) -> io::Result<()> {
    let points = |curve: &Curve| {
        curve.points.iter().map(|point| (point.ratio, point.ops_per_second.map(|rate| rate.median))).collect()
    };
    let chart = Chart {
        lines: group.curves.iter().map(points).collect(),
        marks: group.crossings.iter().filter_map(|crossing| crossing.ratio).collect(),
        ticks: ratios(group).into_iter().map(|(ratio, _)| (ratio, times(ratio))).collect(),
    };
    let rows = chart::rows(&chart, width.min(WIDEST_CHART));
    if rows.is_empty() {
        return paragraph(out, "  ", "nothing to draw: no sample is valid", width);
    }
    let marked = if chart.marks.is_empty() { "" } else { "; ┆ marks where two methods change places" };
    paragraph(out, "", &format!("operations per second over data / cache; * is several{marked}"), width)?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))
}

/// Every ratio that anything was measured at, ascending, with its span.
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

/// Methods as rows and ratios as columns, below each other where they do not fit beside each other.
fn write_table(out: &mut dyn Write, group: &CurveGroup, width: usize) -> io::Result<()> {
    let names: Vec<String> = group
        .curves
        .iter()
        .enumerate()
        .map(|(index, curve)| format!("{} {}", letter(index), curve.method))
        .collect();
    let (first, limit) = ("ops/s at data / cache", "data / memory limit");
    let longest = names.iter().map(|name| name.chars().count()).chain([first.len(), limit.len()]).max();
    // A long method leaves room for at least one column of numbers.
    let head = longest.unwrap_or(0).min(width.saturating_sub(BETWEEN + 8));
    let columns: Vec<Vec<String>> =
        ratios(group).into_iter().map(|(ratio, span)| column(group, ratio, span)).collect();
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
    paragraph(
        out,
        "  ",
        &format!("{source}; {MISSING}: no valid sample; blank: not measured at this ratio"),
        width,
    )
}

/// Titles and numbers of one ratio, a line for each method.
fn column(group: &CurveGroup, ratio: f64, span: Bytes) -> Vec<String> {
    let to_limit = span.0 as f64 / group.memory_limit_bytes.0.max(1) as f64;
    let rates = group.curves.iter().map(|curve| {
        let point = curve.points.iter().find(|point| point.span_bytes == span);
        point.map_or_else(String::new, |point| match &point.ops_per_second {
            Some(value) => rate(value.median),
            None => MISSING.to_string(),
        })
    });
    [times(ratio), times(to_limit)].into_iter().chain(rates).collect()
}

fn wide(column: &[String]) -> usize {
    column.iter().map(|text| text.chars().count()).max().unwrap_or(0)
}

/// A text cut to `len` characters, with a dot in place of what is left out.
fn shortened(text: &str, len: usize) -> String {
    if text.chars().count() <= len {
        return text.to_string();
    }
    let kept: String = text.chars().take(len.saturating_sub(1)).collect();
    format!("{kept}…")
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

fn capitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    // Names of methods are lower case and begin no sentence.
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}
