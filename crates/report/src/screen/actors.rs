//! Loss of the methods beside an actor.

use pagewise_analysis::judge::CellJudgement;
use pagewise_model::format::percent;

use super::situation::Situation;
use crate::document::Block;
use crate::words;

/// Actors that are named; the tables have all.
const MOST: usize = 3;

/// A line for each situation with an actor: the share of its figure that each method keeps, and of
/// its pages.
pub(super) fn blocks(situations: &[Situation<'_>]) -> Vec<Block> {
    let lines: Vec<String> = situations.iter().filter_map(line).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let more = words::in_tables(lines.len().saturating_sub(MOST)).map(Block::remark);
    let heading = Block::heading(3, "Beside an actor: share of the figure alone");
    std::iter::once(heading).chain(lines.into_iter().take(MOST).map(Block::paragraph)).chain(more).collect()
}

fn line(situation: &Situation<'_>) -> Option<String> {
    let actor = situation.comparison.conditions.conditions.beside.as_ref()?;
    let by_id = situation.judged.by_id();
    let cells = situation.comparison.cells.iter().filter_map(|id| by_id.get(id.as_str()).copied());
    let methods: Vec<String> = cells.filter_map(kept).collect();
    (!methods.is_empty()).then(|| format!("{actor}: {}", methods.join(", ")))
}

/// `pread 5 % (43 % of its data still cached)`.
fn kept(cell: &CellJudgement) -> Option<String> {
    let actor = cell.actor?;
    let left = actor.left_in_cache.filter(|_| cell.memory_limit_bytes.is_some());
    let left = left.map(|left| format!("{} of its data still cached", percent(left)));
    let of_alone = actor.of_alone.map(|share| percent(share.median));
    Some(match (of_alone, left) {
        (Some(share), Some(left)) => format!("{} {share} ({left})", cell.method),
        (Some(one), None) | (None, Some(one)) => format!("{} {one}", cell.method),
        (None, None) => return None,
    })
}
