//! The answer of one or several runs on one screen: what to use, how sure that is, and what to do
//! next.
//!
//! At most [`MOST_LINES`] lines. The tables have the numbers behind it.

pub(crate) mod actors;
mod bars;
mod choices;
mod expected;
mod situation;
mod syncs;

use pagewise_analysis::Judged;
use pagewise_analysis::judge::advice::WorstCase;
use pagewise_analysis::judge::{CellJudgement, Status, label};
use pagewise_model::date;
use pagewise_model::format::{bytes, counted, listed, percent_down, rate, time, times};
use pagewise_model::groups;
use pagewise_model::untrusted::shell_word;
use pagewise_model::{CacheState, Environment, Role};

use crate::document::{Block, Document};
use crate::judged_run::JudgedRun;
pub use crate::line::{Emphasis, Line, Span};
use crate::paragraph::{NARROWEST, WIDEST, shortened, wrapped};
use crate::words;
use situation::{AMPLIFIED, Situation};

/// Height of a screen.
pub const MOST_LINES: usize = 40;
/// Wider lines are hard to read.
const COMFORTABLE: usize = 100;
/// Directories and files of runs that are named.
const MOST_SOURCES: usize = 2;
/// Situations that are listed; the tables have all.
const MOST_SITUATIONS: usize = 12;
/// Situations that are listed of a run that is answered as a whole, whose conclusions follow.
const MOST_BESIDE_CURVES: usize = 6;
/// Lines of the findings that an answer to a run as a whole leaves.
const MOST_RESERVED: usize = 8;
/// Warnings that are shown; the tables have all.
const MOST_WARNINGS: usize = 2;
/// Run files of the command at the end.
const MOST_PATHS: usize = 4;
/// Reasons for missing figures that are shown, and characters of each; the tables have all.
const MOST_REASONS: usize = 2;
const MOST_OF_REASON: usize = 280;

/// A date with a time of day.
const DIGITS_OF_TIME: usize = 14;

/// The lines of a screen for a terminal of `width` columns.
pub fn lines(runs: &[JudgedRun<'_>], width: usize) -> Vec<Line> {
    let width = width.clamp(NARROWEST, WIDEST).min(COMFORTABLE);
    let situations = situation::all(runs);
    let mut chosen = choices::all(&situations);
    let is_beside = |run: &JudgedRun<'_>| run.curves().is_some_and(|curves| !curves.is_alone());
    let most_choices = if runs.iter().any(is_beside) { MOST_BESIDE_CURVES } else { MOST_SITUATIONS };
    let more = chosen.len().saturating_sub(most_choices);
    chosen.truncate(most_choices);
    let mut body = Vec::new();
    if !chosen.is_empty() {
        body.push(Block::heading(2, "What to use"));
        body.push(Block::Lines(choices::lines(&chosen, width)));
        if let [JudgedRun { judged, .. }] = runs {
            body.push(Block::remark(shared(judged)));
        }
        body.extend(words::in_tables(more).map(Block::remark));
    }
    let shown = |head, body| Document { head, body, ..Document::default() }.lines(width);
    let head = heading(runs, width);
    let head_len = shown(head.clone(), Vec::new()).len();
    let mut answer = shown(head.clone(), body.clone());
    body.extend(findings(runs, &situations));
    let found = shown(head, body).split_off(answer.len());
    let mut tail = warnings(runs, &situations);
    if !tail.is_empty() {
        tail.push(Block::Lines(vec![Line::new()]));
    }
    tail.push(footer(runs));
    let tail = shown(tail, Vec::new());
    let most = MOST_LINES.saturating_sub(tail.len() + 1).max(head_len);
    let reserved = found.len().min(MOST_RESERVED);
    for run in runs {
        answer.extend(as_a_whole(run, width, most.saturating_sub(answer.len() + reserved)));
    }
    answer.extend(found);
    if answer.len() > most {
        answer.truncate(most.saturating_sub(1));
        answer.push(Line::weak("  …".to_string()));
    }
    let room = most.saturating_sub(answer.len());
    answer.extend(runs.iter().find_map(|run| bars::lines(run, width, room)).into_iter().flatten());
    answer.push(Line::new());
    answer.extend(tail);
    answer
}

/// The answer for a page, which has no rows and columns.
pub fn document(runs: &[JudgedRun<'_>], most_choices: usize) -> Document {
    let situations = situation::all(runs);
    let mut choices = choices::table(&choices::all(&situations));
    let more = choices.rows.len().saturating_sub(most_choices);
    choices.rows.truncate(most_choices);
    let name = "What to use";
    let more = (more > 0).then(|| Block::paragraph(words::left_out(more, "situation")));
    let table = (!choices.rows.is_empty()).then(|| Block::Table(choices, name.to_string()));
    let head = heading(runs, usize::MAX).into_iter().chain([Block::heading(2, name)]);
    let head = head.chain(table).chain(more).collect();
    Document { head, body: findings(runs, &situations), ..Document::default() }
}

/// All that is said below the choices.
fn findings(runs: &[JudgedRun<'_>], situations: &[Situation<'_>]) -> Vec<Block> {
    let mut blocks = proven(runs);
    blocks.extend(expected::blocks(situations));
    blocks.extend(actors::rankings(runs.iter().map(|run| run.judged), true));
    blocks.extend(actors::blocks(situations));
    blocks.extend(syncs::blocks(situations));
    blocks.extend(without_figures(situations));
    blocks.extend(cache_unknown(runs));
    blocks
}

/// Traces that stand for their programs, and what those could gain; traces that do not have a
/// warning.
fn proven(runs: &[JudgedRun<'_>]) -> Vec<Block> {
    let of_run = |JudgedRun { judged, .. }: &JudgedRun<'_>| {
        let stands = judged.self_replay.iter().filter(|replay| replay.stands);
        let stands = stands.map(|replay| Block::remark(words::replay::proof(replay)));
        let gain = judged.gain.iter().map(|gain| Block::paragraph(words::replay::gain(gain)));
        stands.chain(gain).collect::<Vec<Block>>()
    };
    runs.iter().flat_map(of_run).collect()
}

/// The conditions that all comparisons of a run have.
fn shared(judged: &Judged) -> String {
    let conditions = judged.comparisons.iter().map(|comparison| &comparison.conditions.conditions);
    format!("all: {}", label::shared(conditions).join(" · "))
}

/// Machine, data and validity; each part of a line is shown whole or not at all.
fn heading(runs: &[JudgedRun<'_>], width: usize) -> Vec<Block> {
    let Some(JudgedRun { judged: first, .. }) = runs.first() else { return Vec::new() };
    let environment = &first.environment;
    let elapsed = runs.iter().filter_map(|JudgedRun { judged, .. }| judged.run.elapsed_ns);
    let took = elapsed.fold(0, u64::saturating_add);
    let mut parts = vec![format!("pagewise {}", environment.pagewise_version)];
    parts.extend(environment.host_name.clone());
    parts.push(date::utc(environment.started_unix_s));
    if runs.iter().all(|JudgedRun { judged, .. }| judged.run.elapsed_ns.is_some()) {
        parts.push(format!("took {}", time(took)));
    }
    parts.push(format!("Linux {}", environment.kernel));
    let mut machine = vec![counted(u64::from(environment.cpus), "CPU")];
    machine.extend(environment.cpu_model.clone());
    machine.extend(environment.memory_bytes.map(|memory| format!("memory {}", bytes(memory))));
    let mut lines =
        vec![Block::paragraph(clipped(&parts, width)), Block::paragraph(clipped(&machine, width))];
    let sources = groups::distinct(runs.iter().map(|JudgedRun { judged, .. }| source(judged)));
    let shown = sources.iter().take(MOST_SOURCES);
    lines.extend(shown.map(|source| Block::paragraph(clipped(std::slice::from_ref(source), width))));
    if sources.len() > MOST_SOURCES {
        lines.push(Block::remark(format!("and {} more files or directories", sources.len() - MOST_SOURCES)));
    }
    let machine_of = |judged: &Judged| {
        let Environment { host_name, kernel, cpu_model, memory_bytes, .. } = &judged.environment;
        (host_name.clone(), kernel.clone(), cpu_model.clone(), *memory_bytes)
    };
    if runs.iter().any(|JudgedRun { judged, .. }| machine_of(judged) != machine_of(first)) {
        let text = "these runs are of several machines: only the first is named".to_string();
        lines.push(Block::Paragraph(Line::bad(text)));
    }
    let valid: usize = runs.iter().map(|JudgedRun { judged, .. }| judged.validity.valid).sum();
    let samples: usize = runs.iter().map(|JudgedRun { judged, .. }| judged.validity.samples).sum();
    if samples > 0 {
        let share = percent_down(valid as f64 / samples as f64);
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for reason in runs.iter().flat_map(|JudgedRun { judged, .. }| &judged.validity.reasons) {
            let name = reason.kind.name();
            match reasons.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += reason.count,
                None => reasons.push((name.to_string(), reason.count)),
            }
        }
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let why: Vec<String> =
            reasons.iter().take(3).map(|(name, count)| format!("{count} {name}")).collect();
        let several = runs.iter().any(|run| run.judged.validity.some_failed_several());
        let several = if several { " (some failed several)" } else { "" };
        let why = match why.is_empty() {
            true => String::new(),
            false => format!("; failed checks: {}{several}", why.join(", ")),
        };
        let samples = counted(samples as u64, "sample");
        let refused = runs.iter().map(|JudgedRun { judged, .. }| judged.validity.refused).sum();
        let refused = words::refused(refused).unwrap_or_default();
        lines.push(Block::paragraph(format!("{valid} of {samples} valid ({share}){refused}{why}")));
    }
    lines
}

/// Filesystem and device of a run.
fn source(judged: &Judged) -> String {
    let environment = &judged.environment;
    let file = judged.run.source.shown();
    let device = environment.device.as_deref().map_or_else(String::new, |device| format!(" on {device}"));
    let readahead = environment
        .readahead_bytes
        .map_or_else(String::new, |readahead| format!(" · readahead {}", bytes(readahead)));
    format!("{file} · {}{device}{readahead}", environment.filesystem)
}

/// As many parts as fit, at least one.
fn clipped(parts: &[String], width: usize) -> String {
    let mut text = String::new();
    for part in parts {
        let longer = if text.is_empty() { part.clone() } else { format!("{text} · {part}") };
        if !text.is_empty() && longer.chars().count() > width {
            break;
        }
        text = longer;
    }
    text.chars().take(width).collect()
}

/// Methods that have no figures, with their conditions and the reason.
fn without_figures(situations: &[Situation<'_>]) -> Vec<Block> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for situation in situations {
        let by_id = situation.judged.by_id();
        let cells = situation.comparison.cells.iter().filter_map(|id| by_id.get(id.as_str()));
        let misses_rate =
            |cell: &CellJudgement| cell.parameters.rate.is_some() && cell.usual_latency_ns.is_none();
        for cell in cells.filter(|cell| cell.status != Status::Ok || misses_rate(cell)) {
            let why = words::reasons::cell(cell.reason.as_ref());
            let key = match cell.status {
                Status::Ok => format!("({}) {why}", situation.name),
                status => format!("({}) {}: {why}", situation.name, status.name()),
            };
            groups::add(&mut reasons, key, &cell.method);
        }
    }
    if reasons.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::heading(3, "Without figures")];
    let shown = reasons.iter().take(MOST_REASONS);
    blocks.extend(
        shown.map(|(why, methods)| beginning(&format!("{} {why}", listed(methods)))).map(Block::paragraph),
    );
    if reasons.len() > MOST_REASONS {
        blocks.push(Block::remark(format!("and {} more, as the tables say", reasons.len() - MOST_REASONS)));
    }
    blocks
}

/// The methods to use and to avoid if it is not known whether the data are cached, for the first
/// work that was measured both ways.
fn cache_unknown(runs: &[JudgedRun<'_>]) -> Vec<Block> {
    let judged = runs.iter().map(|run| run.judged);
    let mut all = judged.flat_map(|judged| judged.cache_unknown.iter().map(move |one| (judged, one)));
    let found = all.find_map(|(judged, unknown)| Some((judged, unknown, unknown.safest.as_ref()?)));
    let Some((judged, unknown, safest)) = found else { return Vec::new() };
    let mut blocks = vec![
        Block::heading(3, "If you do not know whether the data are cached"),
        Block::remark(&unknown.label),
        Block::Paragraph(Line(vec![
            Span::plain("use    "),
            Span::strong(safest.method.clone()),
            Span::plain(format!(", {}", at_worst(safest))),
        ])),
    ];
    let Some(avoid) = unknown.avoid.as_ref().filter(|avoid| avoid.method != safest.method) else {
        return blocks;
    };
    blocks.push(Block::Paragraph(Line(vec![
        Span::plain("avoid  "),
        Span::bad(avoid.method.clone()),
        Span::plain(format!(", {}x slower than the best {}", about(avoid), state(avoid.cache))),
    ])));
    blocks.extend(amplification(judged, avoid).map(Block::paragraph));
    blocks
}

/// The distance that a method may be behind in its worst case.
fn at_worst(case: &WorstCase) -> String {
    match case.most {
        Some(most) if times(most) == times(1.0) => "as good as the best, cached or cold".to_string(),
        Some(most) => format!("at most {}x slower than the best, cached or cold", times(most)),
        None => format!("{}x slower than the best {}", about(case), state(case.cache)),
    }
}

/// The ratio to the best, with a mark if it is not certain.
fn about(case: &WorstCase) -> String {
    format!("{}{}", if case.is_certain { "" } else { "~" }, times(case.ratio))
}

fn state(cache: CacheState) -> &'static str {
    if cache == CacheState::Warm { "when cached" } else { "when cold" }
}

/// Reason that a method reads more than it is asked for, and the setting to change.
fn amplification(judged: &Judged, case: &WorstCase) -> Option<String> {
    let amplification = case.read_amplification.filter(|times| *times >= AMPLIFIED)?;
    let environment = &judged.environment;
    let by = environment
        .readahead_bytes
        .map_or_else(String::new, |readahead| format!(", with readahead {}", bytes(readahead)));
    let is_large = environment.readahead_bytes > Some(Environment::USUAL_READAHEAD);
    let command = environment.usual_readahead_command().filter(|_| is_large);
    // A warning may say so already.
    let is_known = |command: &String| environment.warnings.iter().any(|warning| warning.contains(command));
    let cure = command.filter(|command| !is_known(command));
    let cure = cure.map_or_else(String::new, |command| format!("; try: {command}"));
    Some(format!("{} reads {} bytes for each byte used{by}{cure}", case.method, rate(amplification)))
}

/// The answer to a run as a whole in at most `room` lines: the first conclusion and the table, then
/// as many of the others as fit.
fn as_a_whole(run: &JudgedRun<'_>, width: usize, room: usize) -> Vec<Line> {
    let Some(shown) = run.curves().and_then(|curves| curves.on_screen()) else { return Vec::new() };
    let mut text = shown.sentences.iter().map(|sentence| wrapped("  ", sentence, width));
    let mut lines = vec![Line::new()];
    lines.extend(shown.table.iter().map(|(label, _)| Line::strong(label.clone())));
    lines.extend(text.next().into_iter().flatten().map(Line::plain));
    if let Some((label, table)) = &shown.table {
        let body = vec![Block::Table(table.clone(), label.clone())];
        lines.extend(Document { body, ..Document::default() }.lines(width));
    }
    let mut left_out = 0;
    for sentence in text {
        if left_out > 0 || lines.len() + sentence.len() + 1 > room {
            left_out += 1;
        } else {
            lines.extend(sentence.into_iter().map(Line::plain));
        }
    }
    if left_out > 0 {
        lines.push(Line::weak(format!("  and {left_out} more conclusions: the tables have them")));
    }
    lines
}

/// The beginning of a reason; the whole is in the tables.
fn beginning(text: &str) -> String {
    shortened(text, MOST_OF_REASON)
}

/// Cautions about the machine, once for all runs.
fn warnings(runs: &[JudgedRun<'_>], situations: &[Situation<'_>]) -> Vec<Block> {
    let known =
        groups::distinct(runs.iter().flat_map(|JudgedRun { judged, .. }| words::warnings::all(judged)));
    let short = short(runs, situations).map(|text| Block::Warning(beginning(&text)));
    let mut blocks: Vec<Block> = short.into_iter().collect();
    blocks.extend(known.iter().take(MOST_WARNINGS).cloned().map(Block::Warning));
    if known.len() > MOST_WARNINGS {
        blocks.push(Block::Warning(format!("and {} more", known.len() - MOST_WARNINGS)));
    }
    blocks
}

/// The cell with the smallest share of its samples, and the reason; `None` if all have a sample of
/// each round that was tried.
fn short(runs: &[JudgedRun<'_>], situations: &[Situation<'_>]) -> Option<String> {
    let short = || runs.iter().flat_map(|run| run.judged.short_cells().map(move |cell| (run.judged, cell)));
    let share =
        |(run, cell): &(&Judged, &CellJudgement)| cell.samples as f64 / run.rounds_due(cell).max(1) as f64;
    // Controls and ceilings carry no verdict.
    let first = |cell: &(&Judged, &CellJudgement)| cell.1.role != Role::Measured;
    let (run, worst) = short()
        .min_by(|left, right| first(left).cmp(&first(right)).then(share(left).total_cmp(&share(right))))?;
    let due = run.rounds_due(worst);
    let why = worst
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {}", words::reasons::of_cell(reason)));
    let of = match worst.role {
        Role::Measured => "",
        Role::Control => "the control of ",
        Role::Ceiling => "the ceiling by ",
    };
    let question = &run.run.question;
    let is_its =
        |one: &&Situation<'_>| std::ptr::eq(one.judged, run) && one.comparison.cells.contains(&worst.id);
    let its = situations.iter().find(is_its).filter(|_| run.comparisons.len() > 1);
    let conditions = its.map_or_else(String::new, |one| format!(" ({})", one.name));
    let (method, samples) = (&worst.method, worst.samples);
    let one = format!("{question}: {of}{method}{conditions} has {samples} of {due} samples{why}");
    Some(match short().count() {
        1 => one,
        cells => format!("{cells} cells have fewer samples than rounds; {one}"),
    })
}

/// The command that shows all numbers.
fn footer(runs: &[JudgedRun<'_>]) -> Block {
    let paths: Vec<&str> = runs.iter().map(|run| run.path).collect();
    let each = || {
        let more = if paths.len() > MOST_PATHS { " …" } else { "" };
        let words = paths.iter().take(MOST_PATHS).map(|path| shell_word(path));
        words.collect::<Vec<_>>().join(" ") + more
    };
    Block::paragraph(format!("All numbers: pagewise report {}", pattern(&paths).unwrap_or_else(each)))
}

/// Several paths as one pattern of a shell, if their beginning distinguishes them from other files:
/// it has the time of the run.
fn pattern(paths: &[&str]) -> Option<String> {
    let (first, others) = paths.split_first().filter(|(_, others)| !others.is_empty())?;
    let common = |one: &str, other: &str| {
        one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
    };
    let start = others.iter().map(|other| common(first, other)).min()?;
    let start = first.get(..start)?;
    let is_unique = start.chars().filter(char::is_ascii_digit).count() >= DIGITS_OF_TIME;
    let is_safe = shell_word(start) == start && paths.iter().all(|path| path.ends_with(".jsonl"));
    (is_unique && is_safe).then(|| format!("{start}*.jsonl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_run_are_one_pattern() {
        let of = |paths: &[&str]| pattern(paths);
        let run = ["pagewise-20261123-072654-vm-read.jsonl", "pagewise-20261123-072654-vm-scan.jsonl"];
        assert_eq!(of(&run).as_deref(), Some("pagewise-20261123-072654-vm-*.jsonl"));
        assert_eq!(of(&run[..1]), None);
        assert_eq!(of(&["a.jsonl", "b.jsonl"]), None);
        assert_eq!(of(&["x y-20261123-072654-a.jsonl", "x y-20261123-072654-b.jsonl"]), None);
    }
}
