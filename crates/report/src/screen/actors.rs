//! Loss of the methods beside an actor.

use pagewise_analysis::Judged;
use pagewise_analysis::judge::{ActorRanking, CellJudgement, Comparison, FigureKind, LeftFigure};
use pagewise_model::format::{mebibytes, percent, time};

use super::situation::Situation;
use crate::document::Block;
use crate::table::columns::share_of_alone;
use crate::text_table::{TextCell, TextColumn, TextTable};
use crate::words::{self, figures};

/// Actors that are named; the tables have all.
const MOST: usize = 3;

/// A line for each situation with an actor: the share of its figure that each method keeps, and of
/// its pages.
pub(super) fn blocks(situations: &[Situation<'_>]) -> Vec<Block> {
    let shown = situations.iter().filter(|one| !one.is_of_a_victim());
    let lines: Vec<String> = shown.filter_map(|one| line(one, situations)).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let more = words::in_tables(lines.len().saturating_sub(MOST)).map(Block::remark);
    let heading = Block::heading(3, "Kept beside an actor, in pairs of rounds");
    std::iter::once(heading).chain(lines.into_iter().take(MOST).map(Block::paragraph)).chain(more).collect()
}

/// Actors ranked by what they leave; with its conditions where a method has several rankings. A
/// ranking is a table, or a sentence where several have to be short.
pub(crate) fn rankings<'a>(runs: impl Iterator<Item = &'a Judged>, is_short: bool) -> Vec<Block> {
    let all: Vec<(&Judged, &ActorRanking)> =
        runs.flat_map(|judged| judged.actors.iter().map(move |ranking| (judged, ranking))).collect();
    let blocks = |(judged, one): &(&Judged, &ActorRanking)| {
        let is_alone = all.iter().filter(|(_, other)| other.method == one.method).count() == 1;
        let name = |text: String| if is_alone { text } else { format!("{}: {text}", one.label) };
        if is_short && all.len() > 1 {
            return vec![Block::paragraph(name(words::actors::ranking(one)))];
        }
        let by_method = words::actors::by_method(one);
        let beside = by_method.as_ref().map_or_else(String::new, |(_, actor)| format!(" beside {actor}"));
        let of = name(format!("{}{beside}", words::actors::ranked_by(one)));
        vec![
            Block::paragraph(of.clone()),
            Block::Table(ranked(judged, one, by_method.map(|(methods, _)| methods)), of),
        ]
    };
    let heading = (!all.is_empty()).then(|| Block::heading(3, "What actors leave"));
    heading.into_iter().chain(all.iter().flat_map(blocks)).collect()
}

/// A row for each actor, by its method if they differ in that alone, and one without.
fn ranked(judged: &Judged, ranking: &ActorRanking, methods: Option<Vec<String>>) -> TextTable {
    let by_id = judged.by_id();
    let name = if methods.is_some() { "method" } else { "actor" };
    let mut columns: Vec<TextColumn> =
        [name, "left", "next to the most", "of alone", "p99", "actor MiB/s"].map(TextColumn::from).to_vec();
    (columns[3].spare, columns[4].spare, columns[5].spare) = (3, 1, 2);
    let row = |actor: &str, id: &str, left: TextCell, place: String| {
        let cell = by_id.get(id).copied();
        let p99 = cell.and_then(|cell| cell.latency_ns.as_ref()?.p99);
        let figures = cell.and_then(|cell| cell.actor);
        vec![
            actor.into(),
            left,
            place.into(),
            figures.as_ref().map_or_else(TextCell::missing, share_of_alone),
            TextCell::number(p99, time),
            TextCell::number(figures.map(|actor| actor.bytes_per_second), mebibytes),
        ]
    };
    let figure_of = |id: &str| figure(&judged.comparisons, by_id.get(id)?);
    let actors = ranking.actors.iter().enumerate().map(|(index, one)| {
        let left = match ranking.by {
            LeftFigure::Cached => {
                one.left.map(|left| TextCell::of(figures::interval(left, percent), left.median))
            }
            LeftFigure::Figure => figure_of(&one.cell),
        };
        let actor = methods.as_ref().map_or(&one.actor, |methods| &methods[index]);
        row(actor, &one.cell, left.unwrap_or_else(TextCell::missing), words::actors::place(one))
    });
    let alone = ranking.alone.iter().map(|id| {
        let left = figure_of(id).filter(|_| ranking.by == LeftFigure::Figure);
        row("none", id, left.unwrap_or_else(TextCell::missing), String::new())
    });
    TextTable { columns, rows: actors.chain(alone).collect() }
}

/// The figure by which a cell is ranked, with its unit.
fn figure(comparisons: &[Comparison], cell: &CellJudgement) -> Option<TextCell> {
    let its = comparisons.iter().find(|one| one.cells.contains(&cell.id))?;
    let kind = FigureKind::of(&its.conditions.conditions);
    let figure = cell.figure(kind)?;
    let unit = if kind.is_time() { "" } else { "/s" };
    Some(TextCell::of(
        figures::interval(figure, |value| format!("{}{unit}", figures::shown(kind, value))),
        figure.median,
    ))
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
    let of_alone =
        actor.of_alone.map(|share| format!("{} of its figure alone", figures::interval(share, percent)));
    let left = actor.left_in_cache.filter(|_| cell.memory_limit_bytes.is_some());
    let left = left.map(|left| format!("{} of its data in the cache", percent(left)));
    let parts: Vec<String> = [of_alone, left].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{} {}", cell.method, parts.join(", ")))
}
