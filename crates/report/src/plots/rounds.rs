//! Is it steady: every sample by its round, invalid ones with their reasons.

use std::collections::HashMap;

use pagewise_analysis::judge::collected::figure_of;
use pagewise_analysis::judge::{Comparison, FigureKind};
use pagewise_analysis::proof;
use pagewise_model::sample::Sample;
use pagewise_model::{Cell, Outcome};

use super::plot::{Axis, AxisQuantity, Form, Mark, Plot, Scale, Series};
use crate::judged_run::JudgedRun;
use crate::text_table::{TextCell, TextTable};

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    let checked = proof::again(run.run).run;
    let cells: HashMap<&str, &Cell> = run
        .judged
        .cells
        .iter()
        .zip(&run.run.header.plan.cells)
        .map(|(judged, cell)| (judged.id.as_str(), cell))
        .collect();
    let mut samples: HashMap<&str, Vec<&Sample>> = HashMap::new();
    for sample in &checked.samples {
        samples.entry(&sample.cell).or_default().push(sample);
    }
    let of = |comparison: &Comparison| {
        let figure = FigureKind::of(&comparison.conditions.conditions);
        let mut series = Vec::new();
        let names = ["method", "valid", "invalid", "lowest", "highest", "by round"];
        let mut table = TextTable::of(&names);
        for id in &comparison.cells {
            let Some(cell) = cells.get(id.as_str()) else { continue };
            let method = cell.method.to_string();
            let taken = samples.get(id.as_str()).into_iter().flatten();
            let marks: Vec<Mark> = taken.filter_map(|sample| mark(cell, sample, figure, &method)).collect();
            if !marks.is_empty() {
                table.rows.push(row(&method, &marks, figure));
                series.push(Series { name: method, marks, ..Series::default() });
            }
        }
        let quantity = if figure.is_time() { AxisQuantity::TIME } else { AxisQuantity::RATE };
        Plot {
            id: "rounds",
            heading: "Is it steady?",
            conditions: comparison.conditions.label.clone(),
            form: Form::Dots,
            x: Axis::of("round", Scale::Linear, AxisQuantity::COUNT),
            y: Axis::of(figure.unit(), Scale::Log, quantity),
            series,
            bands: Vec::new(),
            table,
        }
    };
    run.judged.comparisons.iter().map(of).collect()
}

fn mark(cell: &Cell, sample: &Sample, figure: FigureKind, method: &str) -> Option<Mark> {
    let Outcome::Taken { measurement, evidence, failures } = &sample.outcome else { return None };
    let value = shown(cell, figure, figure_of(cell, measurement, evidence)?);
    let reasons = failures.iter().map(|failure| format!("{}: {}", failure.kind.name(), failure.detail));
    let reason = reasons.collect::<Vec<_>>().join("; ");
    Some(Mark {
        x: f64::from(sample.round) + 1.0,
        y: value,
        label: format!("{method}, round {}: {}", sample.round + 1, figure.text(value)),
        invalid: (!failures.is_empty()).then_some(reason),
        ..Mark::default()
    })
}

/// The figure of a kind, from the one that a sample is ranked by, the more the better.
fn shown(cell: &Cell, figure: FigureKind, ranked: f64) -> f64 {
    match figure {
        FigureKind::ReadsPerSecond => {
            ranked * cell.conditions.reads().map_or(1.0, |reads| f64::from(reads.reads_per_op))
        }
        FigureKind::RecordsPerSecond => ranked,
        FigureKind::TimeToWarm | FigureKind::TimeInTotal => 1e9 / ranked,
    }
}

fn row(method: &str, marks: &[Mark], figure: FigureKind) -> Vec<TextCell> {
    let valid = || marks.iter().filter(|mark| mark.invalid.is_none()).map(|mark| mark.y);
    let text = |value: Option<f64>| TextCell::number(value, |value| figure.text(value));
    let each = marks.iter().map(|mark| {
        let invalid =
            mark.invalid.as_ref().map_or_else(String::new, |reason| format!(" (invalid: {reason})"));
        format!("{:.0}: {}{invalid}", mark.x, figure.text(mark.y))
    });
    vec![
        method.into(),
        TextCell::count(valid().count()),
        TextCell::count(marks.len() - valid().count()),
        text(valid().min_by(f64::total_cmp)),
        text(valid().max_by(f64::total_cmp)),
        each.collect::<Vec<_>>().join(", ").into(),
    ]
}
