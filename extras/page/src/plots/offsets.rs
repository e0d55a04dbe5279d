//! Reads of a recorded program over offset and time.

use pagewise_model::access_map::{AccessMap, COLUMNS, ROWS};
use pagewise_model::format::{bytes, counted, time};

use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use pagewise_report::text_table::{TextCell, TextTable};

/// Series by the reads of a mark, and the most of each.
const SERIES: [(&str, u64); 4] =
    [("1 read", 1), ("2 to 9 reads", 9), ("10 to 99 reads", 99), ("100 reads or more", u64::MAX)];

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    let trace = run.run.header.plan.trace.as_ref();
    let map = trace.and_then(|trace| trace.map.as_ref()).filter(|map| map.is_sound());
    map.map(|map| plot(map, run)).into_iter().collect()
}

fn plot(map: &AccessMap, run: &JudgedRun<'_>) -> Plot {
    let mut series: Vec<Series> = Vec::new();
    let mut table = TextTable::of(&["offsets from", "to", "reads", "first", "last"]);
    let time_at = |column: f64| map.until_ns as f64 * column / COLUMNS as f64;
    let offset_at = |row: f64| map.file_bytes as f64 * row / ROWS as f64;
    for (index, (name, most)) in SERIES.into_iter().enumerate() {
        let least = index.checked_sub(1).map_or(1, |before| SERIES[before].1 + 1);
        let mut marks = Vec::new();
        for (row, counts) in map.rows.iter().enumerate() {
            let found = counts.iter().enumerate().filter(|(_, count)| (least..=most).contains(*count));
            marks.extend(found.map(|(column, count)| {
                let (x, y) = (time_at(column as f64 + 0.5), offset_at(row as f64 + 0.5));
                let text = format!("{} about {}, at about {}", counted(*count, "read"), bytes(y), time(x));
                Mark { x, y, text: MarkText::Own(text), ..Mark::default() }
            }));
        }
        if !marks.is_empty() {
            series.push(Series { name: name.to_string(), marks, colour: Some(index) });
        }
    }
    for (row, counts) in map.rows.iter().enumerate() {
        let read = |column: &usize| counts[*column] > 0;
        let (first, last) = ((0..COLUMNS).find(read), (0..COLUMNS).rev().find(read));
        let reads: u64 = counts.iter().sum();
        let size = |row: usize| TextCell::of(bytes(offset_at(row as f64)), offset_at(row as f64));
        let at = |column: Option<usize>| TextCell::number(column.map(|column| time_at(column as f64)), time);
        table.rows.push(vec![
            size(row),
            size(row + 1),
            TextCell::of(reads.to_string(), reads as f64),
            at(first),
            at(last.map(|column| column + 1)),
        ]);
    }
    Plot {
        id: "offsets",
        heading: "Where in its file does the program read, and when?",
        conditions: run.run.header.plan.source.shown(),
        form: Form::Dots,
        x: Axis::of("time since the start", Scale::Linear, AxisQuantity::TIME),
        y: Axis::of("offset", Scale::Linear, AxisQuantity::BYTES),
        series,
        bands: Vec::new(),
        table,
    }
}
