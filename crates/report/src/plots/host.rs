//! Activity of the host, second by second: the columns of vmstat.

use pagewise_model::format::time;

use super::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use crate::judged_run::JudgedRun;
use crate::text_table::{TextCell, TextTable};
use crate::vmstat::{COLUMNS, VmstatRow, rows};

/// More seconds are thinned out evenly.
const MOST_SECONDS: usize = 300;

/// Its heading, its columns, the kind of their values, and the unit in which vmstat counts them.
type Panel = (&'static str, &'static [&'static str], AxisQuantity, f64);

const PANELS: [Panel; 5] = [
    ("share of CPU time", &["us", "sy", "id", "wa", "st"], AxisQuantity::SHARE, 0.01),
    ("block devices, KiB/s", &["bi", "bo"], AxisQuantity::PLAIN, 1.0),
    ("tasks", &["r", "b"], AxisQuantity::COUNT, 1.0),
    ("per second", &["in", "cs"], AxisQuantity::PLAIN, 1.0),
    ("memory", &["free", "buff", "cache", "swpd"], AxisQuantity::BYTES, 1024.0),
];

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    let all = rows(&run.run.seconds);
    let step = all.len().div_ceil(MOST_SECONDS).max(1);
    let shown: Vec<&VmstatRow> = all.iter().step_by(step).collect();
    let conditions = match step {
        1 => "the whole run".to_string(),
        step => format!("the whole run; one second of {step} is shown"),
    };
    PANELS.iter().map(|panel| of_panel(panel, &shown, conditions.clone())).collect()
}

fn of_panel((label, columns, quantity, unit): &Panel, rows: &[&VmstatRow], conditions: String) -> Plot {
    let index_of =
        |name: &&str| COLUMNS.iter().position(|column| column == name).expect("a column of vmstat");
    // The time is no value.
    let value = |row: &VmstatRow, name: &&str| Some(row.values[index_of(name) - 1]? as f64 * unit);
    let series = columns.iter().enumerate().map(|(column, name)| {
        let mark = |(index, row): (usize, &&VmstatRow)| {
            let (y, text) = (value(row, name)?, MarkText::Cell(index, column + 1));
            Some(Mark { x: row.at_ns as f64, y, text, ..Mark::default() })
        };
        let marks = rows.iter().enumerate().filter_map(mark).collect();
        Series { name: name.to_string(), marks, ..Series::default() }
    });
    let row = |row: &&VmstatRow| {
        let cell = |name| TextCell::number(value(row, name), quantity.text);
        std::iter::once(TextCell::of(time(row.at_ns), row.at_ns as f64))
            .chain(columns.iter().map(cell))
            .collect()
    };
    Plot {
        id: "host",
        heading: "What did the host do, second by second?",
        conditions,
        form: Form::Lines,
        x: Axis::of("time since the run began", Scale::Linear, AxisQuantity::TIME),
        y: Axis::of(*label, Scale::Linear, *quantity),
        series: series.filter(|series| !series.marks.is_empty()).collect(),
        bands: Vec::new(),
        table: TextTable {
            rows: rows.iter().map(row).collect(),
            ..TextTable::of(&[&["time"], *columns].concat())
        },
    }
}
