//! Is it steady: every valid sample by its round, and of the invalid ones of a method the first of
//! each reason with their number. CSV of samples has each of them.

use std::collections::HashMap;

use pagewise_analysis::judge::collected::figure_of;
use pagewise_analysis::judge::{Comparison, FigureKind};
use pagewise_analysis::proof;
use pagewise_model::sample::Sample;
use pagewise_model::{Cell, Outcome, groups};

use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::{Axis, AxisQuantity, Form, Mark, MarkText, PARTS, Plot, Scale, Series};
use pagewise_report::text_table::{TextCell, TextTable};
use pagewise_report::words::figures;

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
        // CSV of samples has the details.
        let checks: Vec<&str> = failures.iter().map(|failure| failure.kind.name()).collect();
        let invalid = (!checks.is_empty()).then(|| checks.join(" and "));
        Some(Self { round: sample.round + 1, value, text: figures::shown(figure, value), invalid })
    }
}

/// Columns of a method.
const COLUMNS: [&str; 7] = ["method", "valid", "invalid", "lowest", "highest", "round", FAILED];
/// The one of the samples that are valid.
const ROUND: usize = 5;
/// That of the reasons for invalid ones, which is left out where there is none.
const FAILED: &str = "failed in round";

fn plot(comparison: &Comparison, figure: FigureKind, taken: &[(String, Vec<Taken>)]) -> Plot {
    let mut table = TextTable::of(&COLUMNS);
    let mut series = Vec::new();
    for (index, (method, taken)) in taken.iter().enumerate() {
        let (invalid, valid): (Vec<&Taken>, Vec<&Taken>) =
            taken.iter().partition(|one| one.invalid.is_some());
        let reasons = groups::by_key(invalid.iter().filter_map(|one| Some((one.invalid.as_deref()?, *one))));
        let mark = |one: &Taken, text| Mark {
            x: f64::from(one.round),
            y: one.value,
            text,
            invalid: one.invalid.is_some(),
            ..Mark::default()
        };
        let of_valid = |(part, one): (usize, &&Taken)| mark(one, MarkText::Part(index, ROUND, part));
        let of_reason = |(part, (_, failed)): (usize, &(&str, Vec<&Taken>))| {
            mark(failed[0], MarkText::Part(index, ROUND + 1, part))
        };
        let marks = valid.iter().enumerate().map(of_valid);
        let marks = marks.chain(reasons.iter().enumerate().map(of_reason)).collect();
        let each: Vec<String> = valid.iter().map(|one| format!("{}: {}", one.round, one.text)).collect();
        let failed: Vec<String> = reasons.iter().map(|(reason, failed)| said(reason, failed)).collect();
        let values = || valid.iter().map(|one| one.value);
        let text = |value: Option<f64>| TextCell::number(value, |value| figures::shown(figure, value));
        table.rows.push(vec![
            method.into(),
            TextCell::count(valid.len()),
            TextCell::count(invalid.len()),
            text(values().min_by(f64::total_cmp)),
            text(values().max_by(f64::total_cmp)),
            each.join(PARTS).into(),
            failed.join(PARTS).into(),
        ]);
        series.push(Series { name: method.clone(), marks, ..Series::default() });
    }
    if taken.iter().flat_map(|(_, taken)| taken).all(|one| one.invalid.is_none()) {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| row.truncate(COLUMNS.len() - 1));
    }
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

/// `6: 391k (invalid: not-warm; as 11 more)`.
fn said(reason: &str, failed: &[&Taken]) -> String {
    let more = match failed.len() - 1 {
        0 => String::new(),
        more => format!("; as {more} more"),
    };
    format!("{}: {} (invalid: {reason}{more})", failed[0].round, failed[0].text)
}

/// The figure of a kind, from the one that a sample is ranked by, the more the better.
fn shown(cell: &Cell, figure: FigureKind, ranked: f64) -> f64 {
    match figure {
        FigureKind::ReadsPerSecond => ranked * f64::from(cell.conditions.reads_per_op()),
        FigureKind::RecordsPerSecond => ranked,
        FigureKind::TimeToWarm | FigureKind::TimeInTotal | FigureKind::UsualLatency => 1e9 / ranked,
    }
}
