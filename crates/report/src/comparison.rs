//! A comparison as a table of text, for documents of any width.

use pagewise_analysis::judge::{ById, CellJudgement, Comparison, FigureKind, RatioToLeader};
use pagewise_model::format::{MISSING, time, times};

use crate::table::rows::sorted;
use crate::table::standing::{Standings, note};

/// Headings, and rows of as many texts. Text from outside is not escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextTable {
    /// Headings of the columns, with units.
    pub headings: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

/// A comparison for people.
pub(crate) struct ComparisonText {
    /// Method, ranked figure, ratio to the leader, place, p99, limit; the best first.
    pub(crate) table: TextTable,
    /// Methods without a place, figures or samples, with the reason.
    pub(crate) notes: Vec<String>,
}

impl ComparisonText {
    pub(crate) fn of(by_id: &ById<'_>, comparison: &Comparison) -> Self {
        let figure = FigureKind::of(&comparison.conditions.conditions);
        let standings = Standings::of(comparison);
        let cells = sorted(by_id, comparison, &standings);
        let missing = || MISSING.to_string();
        let row = |cell: &&CellJudgement| {
            let p99 = cell.latency_ns.as_ref().and_then(|latency| latency.p99);
            vec![
                cell.method.clone(),
                cell.figure(figure).map_or_else(missing, |value| value.told(|value| figure.told(value))),
                standings.ratio(cell).map_or_else(missing, ratio_told),
                standings.place(cell),
                p99.map_or_else(missing, time),
                cell.limit.told().unwrap_or_else(missing),
            ]
        };
        let headings = ["method", figure.unit(), "leader over it", "place", "p99", "limited by"];
        let table = TextTable {
            headings: headings.map(str::to_string).to_vec(),
            rows: cells.iter().map(row).collect(),
        };
        let note = |cell: &&CellJudgement| Some(format!("{}: {}", cell.method, note(&standings, cell)?));
        let notes = cells.iter().filter_map(note).collect();
        Self { table, notes }
    }
}

/// `1.25x [1.18x, 1.51x]`.
fn ratio_told(ratio: &RatioToLeader) -> String {
    if ratio.changed {
        return "changed during the run".to_string();
    }
    let middle = format!("{}x", times(ratio.ratio));
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{middle} [{}x, {}x]", times(low), times(high)),
        _ => middle,
    }
}
