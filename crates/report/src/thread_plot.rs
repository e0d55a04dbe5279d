//! Rates by threads, and what the threads did meanwhile, as a plot.

use pagewise_analysis::judge::MedianInterval;
use pagewise_model::format::{percent, rate};
use pagewise_model::planned_table::TableColumn;

use crate::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use crate::text_table::{TextCell, TextTable};
use crate::words::figures;

const COLUMNS: [&str; 6] =
    ["method", "at", "operations/s", "on a CPU", "waiting for a CPU", "waiting for anything else"];

/// A plot of rates with this horizontal axis, without marks.
pub fn along(conditions: String, x: Axis, heading: &'static str) -> Plot {
    Plot {
        id: "threads",
        heading,
        conditions,
        form: Form::Lines,
        x,
        y: Axis::of("operations/s", Scale::Log, AxisQuantity::RATE),
        series: Vec::new(),
        bands: Vec::new(),
        table: TextTable::of(&COLUMNS),
    }
}

/// A plot of rates by threads, without marks.
pub fn by_threads(conditions: String) -> Plot {
    let x = Axis::of("threads", Scale::Log, AxisQuantity::COUNT);
    along(conditions, x, "Do more threads help?")
}

/// Add a mark, and its row: shares of the threads' time on a CPU, waiting for one, waiting for
/// anything else.
pub fn add(
    plot: &mut Plot,
    method: &str,
    column: TableColumn,
    value: MedianInterval,
    shares: [Option<f64>; 3],
) {
    let (text, at) = (figures::interval(value, rate), column.to_string());
    Series::named(&mut plot.series, method).push(Mark {
        x: column.position(),
        y: value.median,
        low: value.low,
        high: value.high,
        text: MarkText::Own(format!("{method}, {at}: {text} operations/s")),
        invalid: false,
    });
    let mut row = vec![method.into(), TextCell::of(at, column.position()), TextCell::of(text, value.median)];
    row.extend(shares.map(|share| TextCell::number(share, percent)));
    plot.table.rows.push(row);
}
