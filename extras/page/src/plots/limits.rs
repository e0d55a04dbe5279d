//! Limit of each method: the share of the ceiling that it reached, or of the time that it spent.

use pagewise_analysis::judge::Comparison;
use pagewise_model::format::{MISSING, percent, rate};

use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use pagewise_report::table::positions::Positions;
use pagewise_report::table::rows::sorted;
use pagewise_report::text_table::{TextCell, TextTable};
use pagewise_report::words;

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    let by_id = run.judged.by_id();
    let of = |comparison: &Comparison| {
        let cells = sorted(&by_id, comparison, &Positions::of(comparison));
        let limited: Vec<_> = cells.into_iter().filter(|cell| cell.limit.of_ceiling.is_some()).collect();
        let mut series = Vec::new();
        let names = [
            "method",
            "limited by",
            "share",
            "low",
            "high",
            "ceiling per second",
            "reached by",
            "of device bandwidth",
        ];
        let mut table = TextTable::of(&names);
        let text = |share: Option<f64>| TextCell::number(share, percent);
        for (index, cell) in limited.iter().enumerate() {
            let limit = &cell.limit;
            let (Some(name), Some(share)) = (limit.bound, limit.of_ceiling) else { continue };
            let words = words::limit::text(limit).unwrap_or_default();
            Series::named(&mut series, name.name()).push(Mark {
                x: share,
                y: index as f64,
                low: limit.of_ceiling_low,
                high: limit.of_ceiling_high,
                text: MarkText::Cell(table.rows.len(), 1),
                invalid: false,
            });
            table.rows.push(vec![
                TextCell::from(&cell.method),
                words.into(),
                text(Some(share)),
                text(limit.of_ceiling_low),
                text(limit.of_ceiling_high),
                TextCell::number(limit.ceiling, rate),
                limit.ceiling_reached_by.as_deref().unwrap_or(MISSING).into(),
                text(cell.of_device_bandwidth),
            ]);
        }
        Plot {
            id: "limits",
            heading: "What limited it?",
            conditions: comparison.conditions.label.clone(),
            form: Form::Dots,
            x: Axis::of("share of the ceiling, or of the time", Scale::Linear, AxisQuantity::SHARE),
            y: Axis::names("method", limited.iter().map(|cell| cell.method.clone()).collect()),
            series,
            bands: Vec::new(),
            table,
        }
    };
    run.judged.comparisons.iter().map(of).collect()
}
