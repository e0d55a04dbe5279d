//! Who wins, and by how much: the leader over each other method, with intervals.

use pagewise_analysis::judge::RatioToLeader;
use pagewise_model::format::MISSING;

use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use pagewise_report::table::columns::against_leader;
use pagewise_report::table::positions::Positions;
use pagewise_report::table::rows::sorted;
use pagewise_report::text_table::{TextCell, TextTable};
use pagewise_report::words;

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    let by_id = run.judged.by_id();
    let compared = run.judged.comparisons.iter().filter(|comparison| !comparison.ratios.is_empty());
    compared
        .map(|comparison| {
            let positions = Positions::of(comparison);
            let cells = sorted(&by_id, comparison, &positions);
            let is_ranked = |cell: &&&_| {
                positions.leads(cell) && !positions.is_unranked(cell) || positions.ratio(cell).is_some()
            };
            let ranked: Vec<_> = cells.iter().filter(is_ranked).collect();
            let mut series = Vec::new();
            // All else of a method is in the table of the verdict.
            let mut table = TextTable::of(&["method", "slowdown", "place"]);
            for (index, cell) in ranked.iter().enumerate() {
                let ratio = positions.ratio(cell);
                let against = ratio.map_or_else(|| MISSING.to_string(), against_leader);
                let place = positions.place(cell);
                let mark = Mark {
                    x: ratio.map_or(1.0, |ratio| ratio.ratio),
                    y: index as f64,
                    low: ratio.and_then(|ratio| ratio.low),
                    high: ratio.and_then(|ratio| ratio.high),
                    text: MarkText::Cell(index, 2),
                    invalid: false,
                };
                let slowdown = ratio.map(|ratio| TextCell::of(ratio_text(ratio), ratio.ratio));
                table.rows.push(vec![
                    TextCell::from(&cell.method),
                    slowdown.unwrap_or_else(|| MISSING.into()),
                    format!("{place} ({against})").into(),
                ]);
                Series::named(&mut series, &place).push(mark);
            }
            for series in &mut series {
                series.colour = Some(colour(&series.name));
            }
            Plot {
                id: "ratios",
                heading: "Which method is fastest, and by how much?",
                conditions: comparison.conditions.label.clone(),
                form: Form::Dots,
                x: Axis::of("slowdown against the leader", Scale::Log, AxisQuantity::RATIO),
                y: Axis::names("method", ranked.iter().map(|cell| cell.method.clone()).collect()),
                series,
                bands: Vec::new(),
                table,
            }
        })
        .collect()
}

/// The colour of a place, the same in all plots.
fn colour(place: &str) -> usize {
    match place {
        "best" | "ahead" => 0,
        "tie" => 5,
        "close" => 2,
        "open" => 6,
        _ => 1,
    }
}

/// `1.25x [1.18, 1.51]`.
fn ratio_text(ratio: &RatioToLeader) -> String {
    if ratio.changed { "changed during the run".to_string() } else { words::advice::distance(ratio) }
}
