//! Activity of the host, second by second: the columns of vmstat.

use pagewise_model::format::{bytes, plain, time};

use super::plot::{Axis, Form, Mark, Plot, Scale, Series};
use crate::judged_run::JudgedRun;
use crate::text_table::{TextCell, TextTable};
use crate::vmstat::{COLUMNS, VmstatRow, rows};

/// More seconds are thinned out evenly.
const MOST_SECONDS: usize = 300;

/// Quantity, form of its values, and columns.
type Panel = (&'static str, fn(f64) -> String, &'static [&'static str]);

const PANELS: [Panel; 5] = [
    ("share of CPU time", |value| format!("{value:.0} %"), &["us", "sy", "id", "wa", "st"]),
    ("block devices, KiB/s", plain, &["bi", "bo"]),
    ("tasks", |value| format!("{value:.0}"), &["r", "b"]),
    ("per second", plain, &["in", "cs"]),
    ("memory", |value| bytes(value * 1024.0), &["free", "buff", "cache", "swpd"]),
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

fn of_panel((label, told, columns): &Panel, rows: &[&VmstatRow], conditions: String) -> Plot {
    let index_of =
        |name: &&str| COLUMNS.iter().position(|column| column == name).expect("a column of vmstat");
    // The time is no value.
    let value = |row: &VmstatRow, name: &&str| row.values[index_of(name) - 1];
    let series = columns.iter().map(|name| {
        let mark = |row: &&VmstatRow| {
            let value = value(row, name)? as f64;
            let label = format!("{name}, {}: {}", time(row.at_ns), told(value));
            Some(Mark { x: row.at_ns as f64, y: value, label, ..Mark::default() })
        };
        Series { name: name.to_string(), marks: rows.iter().filter_map(mark).collect(), ..Series::default() }
    });
    let row = |row: &&VmstatRow| {
        let told = |name| TextCell::number(value(row, name).map(|value| value as f64), told);
        std::iter::once(TextCell::of(time(row.at_ns), row.at_ns as f64))
            .chain(columns.iter().map(told))
            .collect()
    };
    Plot {
        id: "host",
        heading: "What did the host do, second by second?",
        conditions,
        form: Form::Lines,
        x: Axis::of("time since the run began", "", Scale::Linear, time),
        y: Axis::of(*label, "", Scale::Linear, *told),
        series: series.filter(|series| !series.marks.is_empty()).collect(),
        bands: Vec::new(),
        table: TextTable {
            rows: rows.iter().map(row).collect(),
            ..TextTable::of(&[&["time"], *columns].concat())
        },
    }
}
