//! Activity of the host, second by second: the columns of vmstat.

use pagewise_model::format::time;

use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use pagewise_report::text_table::{TextCell, TextTable};
use pagewise_report::vmstat::{COLUMNS, VmstatRow, rows};

/// More seconds are thinned out evenly: `--vmstat` prints each of them.
const MOST_SECONDS: usize = 60;

/// Heading of a plot, its columns, the kind of their values, and the unit in which vmstat counts
/// them.
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
    let table = table(&shown);
    PANELS.iter().map(|panel| of_panel(panel, &shown, conditions.clone(), table.clone())).collect()
}

fn value(row: &VmstatRow, name: &str, unit: f64) -> Option<f64> {
    let index = COLUMNS.iter().position(|column| *column == name).expect("a column of vmstat");
    // The time is no value.
    Some(row.values[index - 1]? as f64 * unit)
}

/// The columns of all panels.
fn table(rows: &[&VmstatRow]) -> TextTable {
    let names = PANELS.iter().flat_map(|(_, columns, ..)| *columns).copied();
    let headings: Vec<&str> = std::iter::once("time").chain(names).collect();
    let row = |row: &&VmstatRow| {
        let of_panel = |(_, columns, quantity, unit): &Panel| {
            let cell = |name: &&str| TextCell::number(value(row, name, *unit), quantity.text);
            columns.iter().map(cell).collect::<Vec<_>>()
        };
        let time = TextCell::of(time(row.at_ns), row.at_ns as f64);
        std::iter::once(time).chain(PANELS.iter().flat_map(of_panel)).collect()
    };
    TextTable { rows: rows.iter().map(row).collect(), ..TextTable::of(&headings) }
}

fn of_panel(
    (label, columns, quantity, unit): &Panel,
    rows: &[&VmstatRow],
    conditions: String,
    table: TextTable,
) -> Plot {
    let series = columns.iter().map(|name| {
        let column = table.headings().position(|heading| heading == *name).expect("a column of the table");
        let mark = |(index, row): (usize, &&VmstatRow)| {
            let (y, text) = (value(row, name, *unit)?, MarkText::Cell(index, column));
            Some(Mark { x: row.at_ns as f64, y, text, ..Mark::default() })
        };
        let marks = rows.iter().enumerate().filter_map(mark).collect();
        Series { name: name.to_string(), marks, ..Series::default() }
    });
    Plot {
        id: "host",
        heading: "What did the host do, second by second?",
        conditions,
        form: Form::Lines,
        x: Axis::of("time since the run began", Scale::Linear, AxisQuantity::TIME),
        y: Axis::of(*label, Scale::Linear, *quantity),
        series: series.filter(|series: &Series| !series.marks.is_empty()).collect(),
        bands: Vec::new(),
        table,
    }
}
