//! Cold starts that become warm: rates over time.

use pagewise_analysis::judge::Comparison;
use pagewise_model::format::{bytes, rate, time};

use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use pagewise_report::text_table::{TextCell, TextTable};

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    let by_id = run.judged.by_id();
    let of = |comparison: &Comparison| {
        let mut series = Vec::new();
        let names =
            ["method", "until", "operations/s", "read from the device", "in the page cache", "samples"];
        let mut table = TextTable::of(&names);
        for cell in comparison.cells.iter().filter_map(|id| by_id.get(id.as_str())) {
            let mut marks = Vec::new();
            for window in cell.cold_start.iter().flatten() {
                let (until, text) = (time(window.end_ns), rate(window.ops_per_second));
                marks.push(Mark {
                    x: window.end_ns as f64,
                    y: window.ops_per_second,
                    text: MarkText::Own(format!("{}, {until}: {text} operations/s", cell.method)),
                    ..Mark::default()
                });
                let size = |value: Option<u64>| TextCell::number(value.map(|value| value as f64), bytes);
                table.rows.push(vec![
                    TextCell::from(&cell.method),
                    TextCell::of(until, window.end_ns as f64),
                    TextCell::of(text, window.ops_per_second),
                    size(window.device_read_bytes),
                    size(window.resident_bytes),
                    TextCell::of(window.samples.to_string(), window.samples as f64),
                ]);
            }
            if !marks.is_empty() {
                series.push(Series { name: cell.method.clone(), marks, ..Series::default() });
            }
        }
        Plot {
            id: "warming",
            heading: "How does a cold start become warm?",
            conditions: comparison.conditions.label.clone(),
            form: Form::Lines,
            x: Axis::of("time since the start", Scale::Linear, AxisQuantity::TIME),
            y: Axis::of("operations/s", Scale::Log, AxisQuantity::RATE),
            series,
            bands: Vec::new(),
            table,
        }
    };
    run.judged.comparisons.iter().map(of).collect()
}
