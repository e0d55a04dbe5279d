//! Expectations of methods, and what became of them.

use pagewise_analysis::judge::CellJudgement;
use pagewise_analysis::judge::expectations::{Fulfilment, JudgedExpectation};

use super::situation::Situation;
use crate::document::Block;
use crate::words;

/// Sentences that are shown; the tables have all.
const MOST: usize = 8;

/// A sentence for each expectation of each method.
pub(super) fn blocks(situations: &[Situation<'_>]) -> Vec<Block> {
    let mut all: Vec<(Fulfilment, String)> =
        situations.iter().flat_map(|one| of(one, situations.len() == 1)).collect();
    // A limit that is not kept is never among those that are left out.
    all.sort_by_key(|(verdict, _)| *verdict);
    if all.is_empty() {
        return Vec::new();
    }
    let more = words::in_tables(all.len().saturating_sub(MOST)).map(Block::remark);
    let shown = all.into_iter().take(MOST).map(|(_, sentence)| Block::paragraph(sentence));
    std::iter::once(Block::heading(3, "Expected")).chain(shown).chain(more).collect()
}

/// One situation needs no name.
fn of(situation: &Situation<'_>, is_alone: bool) -> Vec<(Fulfilment, String)> {
    let name = if is_alone { String::new() } else { format!("{}: ", situation.name) };
    let compared = |cell: &&CellJudgement| situation.comparison.cells.contains(&cell.id);
    let cells = situation.judged.cells.iter().filter(compared);
    let sentences = cells.flat_map(|cell| cell.expected.iter().map(move |one| (cell, one)));
    let sentence = |cell: &CellJudgement, one: &JudgedExpectation| {
        format!("{name}{}", words::expected::sentence(cell, one))
    };
    sentences.map(|(cell, one)| (one.verdict, sentence(cell, one))).collect()
}
