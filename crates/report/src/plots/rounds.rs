//! Is it steady: every sample by its round, invalid ones with their reasons.

use std::collections::HashMap;

use pagewise_analysis::judge::collected::figure_of;
use pagewise_analysis::judge::{Comparison, FigureKind};
use pagewise_analysis::proof;
use pagewise_model::sample::Sample;
use pagewise_model::{Cell, Outcome};

use super::plot::{Axis, AxisQuantity, Form, Mark, MarkText, PARTS, Plot, Scale, Series};
use crate::judged_run::JudgedRun;
use crate::text_table::{TextCell, TextTable};
use crate::words::figures;

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
        let of_cell = |id: &String| {
            let cell = cells.get(id.as_str())?;
            let samples = samples.get(id.as_str()).into_iter().flatten();
            let taken: Vec<Taken> = samples.filter_map(|sample| Taken::of(cell, sample, figure)).collect();
            (!taken.is_empty()).then(|| (cell.method.to_string(), taken))
        };
        let taken: Vec<(String, Vec<Taken>)> = comparison.cells.iter().filter_map(of_cell).collect();
        plot(comparison, figure, &taken)
    };
    run.judged.comparisons.iter().map(of).collect()
}

/// A sample that has a figure.
struct Taken {
    round: u32,
    value: f64,
    text: String,
    /// The reasons, if it is invalid.
    invalid: Option<String>,
}

impl Taken {
    fn of(cell: &Cell, sample: &Sample, figure: FigureKind) -> Option<Self> {
        let Outcome::Taken { measurement, evidence, failures } = &sample.outcome else { return None };
        let value = shown(cell, figure, figure_of(cell, measurement, evidence)?);
        // The details of each take most of a page; CSV of samples has them.
        let checks: Vec<&str> = failures.iter().map(|failure| failure.kind.name()).collect();
        let invalid = (!checks.is_empty()).then(|| checks.join(", "));
        Some(Self { round: sample.round + 1, value, text: figures::shown(figure, value), invalid })
    }
}

/// Columns of a method; behind them stands one for each of its samples that is invalid.
const COLUMNS: [&str; 6] = ["method", "valid", "invalid", "lowest", "highest", "round"];
/// The one of the samples that are valid.
const ROUND: usize = 5;

fn plot(comparison: &Comparison, figure: FigureKind, taken: &[(String, Vec<Taken>)]) -> Plot {
    let mut table = TextTable::of(&COLUMNS);
    let mut series = Vec::new();
    for (index, (method, taken)) in taken.iter().enumerate() {
        let (mut valid, mut invalid) = (Vec::new(), Vec::new());
        let mut marks = Vec::new();
        for one in taken {
            let text = match &one.invalid {
                None => {
                    valid.push(one);
                    MarkText::Part(index, ROUND, valid.len() - 1)
                }
                Some(reason) => {
                    invalid.push(format!("{} in round {} (invalid: {reason})", one.text, one.round));
                    MarkText::Cell(index, COLUMNS.len() + invalid.len() - 1)
                }
            };
            let (x, invalid) = (f64::from(one.round), one.invalid.is_some());
            marks.push(Mark { x, y: one.value, text, invalid, ..Mark::default() });
        }
        let each: Vec<String> = valid.iter().map(|one| format!("{}: {}", one.round, one.text)).collect();
        let values = || valid.iter().map(|one| one.value);
        let text = |value: Option<f64>| TextCell::number(value, |value| figures::shown(figure, value));
        let row = [
            method.into(),
            TextCell::count(valid.len()),
            TextCell::count(invalid.len()),
            text(values().min_by(f64::total_cmp)),
            text(values().max_by(f64::total_cmp)),
            each.join(PARTS).into(),
        ];
        table.rows.push(row.into_iter().chain(invalid.into_iter().map(TextCell::from)).collect());
        series.push(Series { name: method.clone(), marks, ..Series::default() });
    }
    let widest = table.rows.iter().map(Vec::len).max().unwrap_or_default();
    let failed =
        (1..=widest.saturating_sub(COLUMNS.len())).map(|count| format!("failed attempt {count}").into());
    table.columns.extend(failed);
    table.rows.iter_mut().for_each(|row| row.resize(widest, TextCell::default()));
    let quantity = if figure.is_time() { AxisQuantity::TIME } else { AxisQuantity::RATE };
    Plot {
        id: "rounds",
        heading: "Is it steady?",
        conditions: comparison.conditions.label.clone(),
        form: Form::Dots,
        x: Axis::of("round", Scale::Linear, AxisQuantity::COUNT),
        y: Axis::of(figures::unit(figure), Scale::Log, quantity),
        series,
        bands: Vec::new(),
        table,
    }
}

/// The figure of a kind, from the one that a sample is ranked by, the more the better.
fn shown(cell: &Cell, figure: FigureKind, ranked: f64) -> f64 {
    match figure {
        FigureKind::ReadsPerSecond => ranked * f64::from(cell.conditions.reads_per_op()),
        FigureKind::RecordsPerSecond => ranked,
        FigureKind::TimeToWarm | FigureKind::TimeInTotal | FigureKind::UsualLatency => 1e9 / ranked,
    }
}
