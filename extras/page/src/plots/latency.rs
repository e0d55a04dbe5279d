//! Duration of single operations: quantiles by method.

use pagewise_analysis::judge::Comparison;
use pagewise_analysis::judge::latency::Latency;
use pagewise_model::format::{grouped, time};

use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use pagewise_report::table::positions::Positions;
use pagewise_report::table::rows::sorted;
use pagewise_report::text_table::{TextCell, TextTable};

/// Name and value.
type Quantile = (&'static str, fn(&Latency) -> Option<u64>);

const QUANTILES: [Quantile; 6] = [
    ("p50", |latency| latency.p50),
    ("p90", |latency| latency.p90),
    ("p99", |latency| latency.p99),
    ("p99.9", |latency| latency.p999),
    ("p99.99", |latency| latency.p9999),
    ("longest", |latency| Some(latency.max)),
];

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    let by_id = run.judged.by_id();
    let names = QUANTILES.map(|(name, _)| name);
    let of = |comparison: &Comparison| {
        let mut series = Vec::new();
        let mut table = TextTable::of(&[&["method"][..], &names, &["operations"]].concat());
        for cell in sorted(&by_id, comparison, &Positions::of(comparison)) {
            let Some(latency) = &cell.latency_ns else { continue };
            let values = QUANTILES.map(|(_, quantile)| quantile(latency));
            let row = table.rows.len();
            let mark = |(index, value): (usize, &Option<u64>)| {
                let (y, text) = ((*value)? as f64, MarkText::Cell(row, index + 1));
                Some(Mark { x: index as f64, y, text, ..Mark::default() })
            };
            let marks = values.iter().enumerate().filter_map(mark).collect();
            series.push(Series { name: cell.method.clone(), marks, ..Series::default() });
            let text = values.map(|value| TextCell::number(value.map(|value| value as f64), time));
            let operations = TextCell::of(grouped(latency.operations), latency.operations as f64);
            table.rows.push([vec![TextCell::from(&cell.method)], text.to_vec(), vec![operations]].concat());
        }
        Plot {
            id: "latency",
            heading: "How long do single operations take?",
            conditions: comparison.conditions.label.clone(),
            form: Form::Lines,
            x: Axis::names("quantile", names.map(str::to_string).to_vec()),
            y: Axis::of("latency", Scale::Log, AxisQuantity::TIME),
            series,
            bands: Vec::new(),
            table,
        }
    };
    run.judged.comparisons.iter().map(of).collect()
}
