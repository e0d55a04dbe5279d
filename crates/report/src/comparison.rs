//! A comparison as a table of text, for documents of any width.

use pagewise_analysis::judge::advice::Recommendation;
use pagewise_analysis::judge::{ById, CellJudgement, Comparison, FigureKind, RatioToLeader};
use pagewise_model::format::{MISSING, time, times};

use crate::document::Block;
use crate::line::Line;
use crate::table::rows::{order, sorted};
use crate::table::said;
use crate::table::standing::{Standings, note};
use crate::text_table::{TextCell, TextTable};

/// A comparison for a document: its conditions below a heading of this level, what is said of it,
/// a table of its methods, the best first, and notes on those without a place.
pub(crate) fn blocks(
    by_id: &ById<'_>,
    comparison: &Comparison,
    advice: Option<&Recommendation>,
    level: u8,
) -> Vec<Block> {
    let figure = FigureKind::of(&comparison.conditions.conditions);
    let standings = Standings::of(comparison);
    let cells = sorted(by_id, comparison, &standings);
    let row = |cell: &&CellJudgement| {
        let p99 = cell.latency_ns.as_ref().and_then(|latency| latency.p99);
        let value = cell.figure(figure);
        vec![
            TextCell::from(&cell.method),
            value.map_or_else(
                || MISSING.into(),
                |value| TextCell::of(value.text(|value| figure.text(value)), value.median),
            ),
            standings
                .ratio(cell)
                .map_or_else(|| MISSING.into(), |ratio| TextCell::of(ratio_text(ratio), ratio.ratio)),
            standings.place(cell).into(),
            TextCell::number(p99.map(|p99| p99 as f64), time),
            cell.limit.text().unwrap_or_else(|| MISSING.to_string()).into(),
        ]
    };
    let headings = ["method", figure.unit(), "slowdown", "place", "p99", "limited by"];
    let table = TextTable { rows: cells.iter().map(row).collect(), ..TextTable::of(&headings) };
    let note = |cell: &&CellJudgement| Some(format!("{}: {}", cell.method, note(&standings, cell)?));
    let notes = cells.iter().filter_map(note).chain(order(&standings, &cells)).collect();
    let conditions = comparison.conditions.label.as_str();
    let mut said = said(comparison, advice);
    let choice = advice.and_then(|_| said.pop()).map(|choice| Block::Paragraph(Line::strong(choice)));
    let said = said.into_iter().map(Block::paragraph).chain(choice);
    std::iter::once(Block::heading(level, conditions))
        .chain(said)
        .chain([Block::Table(table, conditions.to_string()), Block::List(notes)])
        .collect()
}

/// `1.25x [1.18x, 1.51x]`.
pub(crate) fn ratio_text(ratio: &RatioToLeader) -> String {
    if ratio.changed {
        return "changed during the run".to_string();
    }
    let middle = format!("{}x", times(ratio.ratio));
    match (ratio.low, ratio.high) {
        _ if ratio.is_gap() => format!("{middle} in {} rounds", ratio.rounds),
        (Some(low), Some(high)) => format!("{middle} [{}x, {}x]", times(low), times(high)),
        _ => middle,
    }
}
