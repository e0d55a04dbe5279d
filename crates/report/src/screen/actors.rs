//! Loss of the methods beside an actor.

use pagewise_analysis::Judged;
use pagewise_analysis::judge::{ActorRanking, CellJudgement};
use pagewise_model::format::percent;

use super::situation::Situation;
use crate::document::Block;
use crate::words;

/// Actors that are named; the tables have all.
const MOST: usize = 3;

/// A line for each situation with an actor: the share of its figure that each method keeps, and of
/// its pages.
pub(super) fn blocks(situations: &[Situation<'_>]) -> Vec<Block> {
    let lines: Vec<String> = situations.iter().filter_map(|one| line(one, situations)).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let more = words::in_tables(lines.len().saturating_sub(MOST)).map(Block::remark);
    let heading = Block::heading(3, "Kept beside an actor, in pairs of rounds");
    std::iter::once(heading).chain(lines.into_iter().take(MOST).map(Block::paragraph)).chain(more).collect()
}

/// Actors ranked by what they leave; with its conditions where a method has several rankings.
pub(crate) fn rankings<'a>(runs: impl Iterator<Item = &'a Judged>) -> Vec<Block> {
    let all: Vec<&ActorRanking> = runs.flat_map(|judged| &judged.actors).collect();
    let sentence = |one: &&ActorRanking| {
        let is_alone = all.iter().filter(|other| other.method == one.method).count() == 1;
        let sentence = words::actors::ranking(one);
        Block::paragraph(if is_alone { sentence } else { format!("{}: {sentence}", one.label) })
    };
    let heading = (!all.is_empty()).then(|| Block::heading(3, "What actors leave"));
    heading.into_iter().chain(all.iter().map(sentence)).collect()
}

fn line(situation: &Situation<'_>, all: &[Situation<'_>]) -> Option<String> {
    let actor_of = |one: &Situation<'_>| one.comparison.conditions.conditions.beside.clone();
    let actor = actor_of(situation)?;
    // Where its name would stand twice, that of the situation says more.
    let is_alone = all.iter().filter(|one| actor_of(one).as_ref() == Some(&actor)).count() == 1;
    let name = if is_alone { actor.to_string() } else { situation.name.clone() };
    let by_id = situation.judged.by_id();
    let cells = situation.comparison.cells.iter().filter_map(|id| by_id.get(id.as_str()).copied());
    let methods: Vec<String> = cells.filter_map(kept).collect();
    (!methods.is_empty()).then(|| format!("{name}: {}", methods.join("; ")))
}

/// `pread 5 % [4 %, 6 %] of its figure alone, 43 % of its data in the cache`.
fn kept(cell: &CellJudgement) -> Option<String> {
    let actor = cell.actor?;
    let of_alone = actor.of_alone.map(|share| format!("{} of its figure alone", share.text(percent)));
    let left = actor.left_in_cache.filter(|_| cell.memory_limit_bytes.is_some());
    let left = left.map(|left| format!("{} of its data in the cache", percent(left)));
    let parts: Vec<String> = [of_alone, left].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{} {}", cell.method, parts.join(", ")))
}
