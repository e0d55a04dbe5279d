//! How a cold start becomes warm: rates over time.

use pagewise_analysis::judge::Comparison;
use pagewise_model::format::{MISSING, bytes, rate, time};

use super::plot::{Axis, Form, Mark, Plot, Scale, Series, headings};
use crate::comparison::TextTable;
use crate::judged_run::JudgedRun;

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    let by_id = run.judged.by_id();
    let of = |comparison: &Comparison| {
        let mut series = Vec::new();
        let names =
            ["method", "until", "operations/s", "read from the device", "in the page cache", "samples"];
        let mut table = TextTable { headings: headings(&names), rows: Vec::new() };
        for cell in comparison.cells.iter().filter_map(|id| by_id.get(id.as_str())) {
            let mut marks = Vec::new();
            for window in cell.cold_start.iter().flatten() {
                let (until, told) = (time(window.end_ns), rate(window.ops_per_second));
                marks.push(Mark {
                    x: window.end_ns as f64,
                    y: window.ops_per_second,
                    label: format!("{}, {until}: {told} operations/s", cell.method),
                    ..Mark::default()
                });
                let size = |value: Option<u64>| value.map_or_else(|| MISSING.to_string(), bytes);
                table.rows.push(vec![
                    cell.method.clone(),
                    until,
                    told,
                    size(window.device_read_bytes),
                    size(window.resident_bytes),
                    window.samples.to_string(),
                ]);
            }
            if !marks.is_empty() {
                series.push(Series { name: cell.method.clone(), marks });
            }
        }
        Plot {
            id: "warming",
            heading: "How does a cold start become warm?",
            conditions: comparison.conditions.label.clone(),
            form: Form::Lines,
            x: Axis::of("time since the start", "", Scale::Linear, time),
            y: Axis::of("operations/s", "", Scale::Log, rate),
            series,
            bands: Vec::new(),
            table,
        }
    };
    run.judged.comparisons.iter().map(of).collect()
}
