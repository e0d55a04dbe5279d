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
    all.sort_by_key(|(verdict, _)| match verdict {
        Fulfilment::DoesNotHold => 0,
        Fulfilment::Open => 1,
        Fulfilment::Holds => 2,
    });
    let sentences: Vec<String> = all.into_iter().map(|(_, sentence)| sentence).collect();
    if sentences.is_empty() {
        return Vec::new();
    }
    let more = sentences.len().saturating_sub(MOST);
    let shown = sentences.into_iter().take(MOST).map(Block::paragraph);
    let rest = (more > 0).then(|| Block::remark(format!("and {more} more: the tables have them")));
    std::iter::once(Block::heading(3, "Expected")).chain(shown).chain(rest).collect()
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
