//! Runs compared with runs, as a document.

mod map;
mod together;
mod words;

use std::collections::BTreeMap;

use pagewise_model::date;
use pagewise_model::format::{MISSING, counted, grouped, percent_up, times, times_interval};
use pagewise_report::document::{Block, Document};
use pagewise_report::line::{Emphasis, Line};
use pagewise_report::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use pagewise_report::text_table::{TextCell, TextTable};
use pagewise_report::words::figures;

use crate::judgement::advice::{AdviceFinding, ChangedAdvice};
use crate::judgement::change::{Change, ChangeFinding};
use crate::judgement::crossing::{ChangedCrossing, CrossingFinding};
use crate::judgement::difference::{ChangedSituation, Side};
use crate::judgement::gate::GateFindings;
use crate::judgement::split::{AdviceOfValue, MethodOfValue, SplitSituation};
use crate::judgement::{Difference, Gated, Split};
use words::{explained, methods, missing};

pub use map::{split_page, split_title};
pub use together::together_document;

/// Values of a fact that are named on one line.
const MOST_VALUES: usize = 3;

/// Values of a fact whose advice is listed one by one.
const MOST_NAMED: usize = 20;
/// Warnings about single runs that are shown.
const MOST_WARNINGS: usize = 3;

/// Two sides.
pub fn document(gated: &Gated) -> Document {
    let difference = &gated.difference;
    let relative_to = difference.relative_to.as_deref();
    let head = [side("base", &difference.base), side("new", &difference.new), environment(difference)];
    let warnings = difference.warnings.iter().cloned().map(Block::Warning);
    let mut body = vec![Block::Plots(plots(difference))];
    body.extend(difference.situations.iter().flat_map(|one| of_situation(one, relative_to)));
    let crossings = difference.crossings.iter().map(crossing).collect();
    body.extend(listed("Data over page cache at which the order changes", crossings));
    body.extend(listed("Not compared", unmatched(difference)));
    let mut conclusion = vec![Block::paragraph(summary(difference))];
    conclusion.extend(gated.gates.iter().flat_map(of_gate));
    Document { head: head.into_iter().map(Block::paragraph).chain(warnings).collect(), conclusion, body }
}

/// Sentences below a heading; nothing if there are none.
fn listed(heading: &str, items: Vec<String>) -> Vec<Block> {
    if items.is_empty() {
        return Vec::new();
    }
    vec![Block::heading(2, heading), Block::List(items)]
}

/// `base: 5 runs of ci-07, 2026-11-20 10:00 UTC to 2026-11-20 10:20 UTC`.
fn side(name: &str, side: &Side) -> String {
    let (first, last) = (date::utc(side.first_unix_s), date::utc(side.last_unix_s));
    let when = if first == last { first } else { format!("{first} to {last}") };
    format!("{name}: {} of {}, {when}", counted(side.files.len() as u64, "run"), side.hosts.join(", "))
}

fn environment(difference: &Difference) -> String {
    let values = |values: &[String]| match values.len() {
        ..=MOST_VALUES => values.join(", "),
        more => format!("{} and {} more", values[..MOST_VALUES].join(", "), more - MOST_VALUES),
    };
    let changed = difference.environment.iter();
    let changed: Vec<String> =
        changed.map(|one| format!("{} {} → {}", one.fact, values(&one.base), values(&one.new))).collect();
    match changed.is_empty() {
        true => "What was recorded of the environments is the same.".to_string(),
        false => format!("The environments differ: {}.", changed.join("; ")),
    }
}

fn of_situation(situation: &ChangedSituation, relative_to: Option<&str>) -> Vec<Block> {
    let label = &situation.label;
    let mut blocks =
        vec![Block::heading(3, label.as_str()), Block::Table(table(situation, relative_to), label.clone())];
    blocks.extend(advice(&situation.advice).map(Block::paragraph));
    blocks
}

fn ratio_heading(relative_to: Option<&str>) -> String {
    match relative_to {
        Some(method) => format!("time, new over base, relative to {method}"),
        None => "time, new over base".to_string(),
    }
}

/// `1.14x [1.10–1.18]`.
fn ratio_of(change: &Change) -> String {
    let Some(ratio) = change.ratio else { return MISSING.to_string() };
    match change.low {
        Some(_) => factor(ratio, change.bounds()),
        None => format!("{}x", times(ratio)),
    }
}

/// A factor with the ends of its interval, if they bound something.
fn factor(ratio: f64, bounds: Option<(f64, f64)>) -> String {
    let bounds = bounds.map(|(low, high)| times_interval(low, high));
    let bounds = bounds.map(|(low, high)| format!("{low}–{high}"));
    format!("{}x [{}]", times(ratio), bounds.as_deref().unwrap_or("no bound"))
}

fn word(change: &Change) -> String {
    match change.finding {
        ChangeFinding::Same => "same, within 2 %".to_string(),
        ChangeFinding::Close => format!("close, within {}", percent_up(change.distance().unwrap_or(0.0))),
        finding => finding.name().to_string(),
    }
}

/// The advice, where there is any: `advice: pread, as before`.
fn advice(advice: &ChangedAdvice) -> Option<String> {
    let (then, now) = (methods(&advice.base), methods(&advice.new));
    match advice.finding {
        AdviceFinding::NoAdvice => None,
        AdviceFinding::Same => Some(format!("advice: {now}, as before")),
        AdviceFinding::Changed => Some(format!("advice: {now}; before: {then}, which is behind now")),
        AdviceFinding::Open => {
            Some(format!("advice: {now}; before: {then}, which is not behind for certain"))
        }
    }
}

fn crossing(crossing: &ChangedCrossing) -> String {
    let shown =
        |ratio: Option<f64>| ratio.map_or_else(|| "none".to_string(), |ratio| format!("{}x", times(ratio)));
    let interval = match (crossing.ratio, crossing.low) {
        (Some(ratio), Some(_)) => format!(", {}", factor(ratio, crossing.bounds())),
        _ => String::new(),
    };
    let word = match crossing.finding {
        CrossingFinding::Moved => "moved",
        CrossingFinding::Gone => "gone",
        CrossingFinding::Appeared => "appeared",
        CrossingFinding::NotMoved => "not moved for certain",
        CrossingFinding::NoiseUnknown => "noise between runs unknown",
    };
    format!(
        "{} to {}: {} → {}{interval}: {word} ({})",
        crossing.before,
        crossing.after,
        shown(crossing.base),
        shown(crossing.new),
        crossing.label
    )
}

fn unmatched(difference: &Difference) -> Vec<String> {
    let text = difference.unmatched.iter().map(|one| {
        let side = if one.is_base { "base" } else { "new" };
        match &one.method {
            Some(method) => format!("{side} only: {method} ({})", one.label),
            None => format!("{side} only: {}", one.label),
        }
    });
    text.collect()
}

/// `12 methods: 1 slower, 9 close, 2 open.`
fn summary(difference: &Difference) -> String {
    let changes = || difference.situations.iter().flat_map(|one| &one.methods);
    let of = |finding: &ChangeFinding| changes().filter(|change| change.finding == *finding).count();
    let all = changes().count();
    let text = ChangeFinding::ALL.iter().map(|finding| (of(finding), finding.name()));
    let text: Vec<String> =
        text.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let text = if text.is_empty() { String::new() } else { format!(": {}", text.join(", ")) };
    let together = match difference.noise_is_known && all > 1 {
        true => " The intervals hold together with 95 %.",
        false => "",
    };
    let has_several = difference.base.files.len().max(difference.new.files.len()) > 1;
    let figures = match (&difference.relative_to, has_several) {
        (Some(method), true) => format!(
            " Figures are geometric means over runs; the ratio is of the times relative to {method} within rounds."
        ),
        (Some(method), false) => format!(" The ratio is of the times relative to {method} within rounds."),
        (None, true) => {
            " Figures are geometric means over runs, and the ratio is that of the two.".to_string()
        }
        (None, false) => String::new(),
    };
    format!("{}{text}.{together}{figures}", counted(all as u64, "comparison"))
}

fn table(situation: &ChangedSituation, relative_to: Option<&str>) -> TextTable {
    let unit = figures::unit(situation.figure);
    let row = |change: &Change| {
        let figure =
            |value: Option<f64>| TextCell::number(value, |value| figures::shown(situation.figure, value));
        let reason = change.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        let emphasis = match change.finding {
            ChangeFinding::Slower => Emphasis::Bad,
            ChangeFinding::Faster => Emphasis::Strong,
            _ => Emphasis::Weak,
        };
        let said = TextCell::from(format!("{}{reason}", word(change))).with(emphasis);
        let ratio = TextCell { value: change.ratio, ..ratio_of(change).into() };
        vec![TextCell::from(&change.method), figure(change.base), figure(change.new), ratio, said]
    };
    let headings =
        ["method".to_string(), format!("base {unit}"), format!("new {unit}"), ratio_heading(relative_to)];
    TextTable {
        columns: headings.into_iter().chain(["change".to_string()]).map(Into::into).collect(),
        rows: situation.methods.iter().map(row).collect(),
    }
}

/// `failed: slower=5%`, and what it found, one sentence each.
fn of_gate(gate: &GateFindings) -> Vec<Block> {
    let passed = gate.failed.is_empty();
    let open = match gate.undecided.len() {
        0 => String::new(),
        some => format!(", {some} not decided"),
    };
    let verdict = format!("{}{open}: {}", if passed { "passed" } else { "failed" }, gate.gate);
    let undecided = gate.undecided.iter().map(|one| format!("not decided: {one}"));
    let found: Vec<String> = gate.failed.iter().cloned().chain(undecided).collect();
    let heading = Block::Heading(3, if passed { Line::strong(verdict) } else { Line::bad(verdict) });
    vec![heading, Block::List(found)]
}

/// Which methods changed, and by how much, of each situation: ratios with intervals.
fn plots(difference: &Difference) -> Vec<Plot> {
    let relative_to = difference.relative_to.as_deref();
    let compared =
        difference.situations.iter().filter(|one| one.methods.iter().any(|change| change.ratio.is_some()));
    compared.map(|one| plot(one, relative_to)).collect()
}

fn plot(changed: &ChangedSituation, relative_to: Option<&str>) -> Plot {
    let shown: Vec<(&Change, f64)> =
        changed.methods.iter().filter_map(|change| Some((change, change.ratio?))).collect();
    let mut series = Vec::new();
    for (index, (change, ratio)) in shown.iter().enumerate() {
        let mark = Mark {
            x: *ratio,
            y: index as f64,
            low: change.bounds().map(|(low, _)| low),
            high: change.bounds().map(|(_, high)| high),
            text: MarkText::Own(format!("{}: {} {}", change.method, ratio_of(change), word(change))),
            invalid: false,
        };
        Series::named(&mut series, change.finding.name()).push(mark);
    }
    Plot {
        id: "changes",
        heading: "Which methods changed, and by how much?",
        conditions: changed.label.clone(),
        form: Form::Dots,
        x: Axis::of(ratio_heading(relative_to), Scale::Log, AxisQuantity::RATIO),
        y: Axis::names("method", shown.iter().map(|(change, _)| change.method.clone()).collect()),
        series,
        bands: Vec::new(),
        table: table(changed, relative_to),
    }
}

/// Many runs by a fact.
pub fn split_document(split: &Split) -> Document {
    let values =
        split.values.iter().map(|one| format!("{} ({})", one.value, counted(one.runs as u64, "run")));
    let head = match split.values.len() {
        ..=MOST_NAMED => format!("{}: {}", split.fact, values.collect::<Vec<_>>().join(", ")),
        many => {
            let runs = split.values.iter().map(|one| one.runs as u64).sum();
            format!("{}: {} of {}", split.fact, counted(many as u64, "value"), counted(runs, "run"))
        }
    };
    let warnings = split.warnings.iter().take(MOST_WARNINGS).cloned().map(Block::Warning);
    let others = split.warnings.len().saturating_sub(MOST_WARNINGS) as u64;
    let others = (others > 0).then(|| Block::Warning(format!("and {} like these", counted(others, "run"))));
    let mut changes =
        split.situations.iter().flat_map(|one| &one.methods).filter_map(|one| one.change.as_ref());
    let is_compared =
        changes.any(|change| change.bounds().is_some() && change.finding != ChangeFinding::NoiseUnknown);
    let together = if is_compared { " The intervals hold together with 95 %." } else { "" };
    let has_several = split.situations.iter().flat_map(|one| &one.methods).any(|one| one.runs > 1);
    let figures = if has_several { " Figures are geometric means over runs." } else { "" };
    let disagreeing = split.situations.iter().filter(|one| !one.agree).count();
    let situations = counted(split.situations.len() as u64, "situation");
    let missing = listed("Missing", missing(split));
    let head = std::iter::once(Block::paragraph(head)).chain(warnings).chain(others);
    Document {
        head: head.chain(missing).collect(),
        conclusion: vec![Block::paragraph(format!(
            "{situations}: the runs disagree in {disagreeing}.{together}{figures}"
        ))],
        body: split.situations.iter().flat_map(|one| of_split(one, &split.fact)).collect(),
    }
}

/// `mmap: 612 values (host001, host002, host003 …)`, the most frequent advice first.
fn grouped_advice(by_value: &[AdviceOfValue]) -> Vec<String> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for AdviceOfValue { value, advised } in by_value {
        let method = advised.first().and_then(|one| one.method.as_deref()).unwrap_or("nothing");
        groups.entry(method.to_string()).or_default().push(value);
    }
    let mut groups: Vec<(String, Vec<&str>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, values)| std::cmp::Reverse(values.len()));
    let text = groups.into_iter().map(|(method, values)| {
        let more = if values.len() > MOST_VALUES { " …" } else { "" };
        let named = values[..values.len().min(MOST_VALUES)].join(", ");
        format!("{method}: {} ({named}{more})", counted(values.len() as u64, "value"))
    });
    text.collect()
}

/// The figures of each method with each value.
fn figures(situation: &SplitSituation, fact: &str) -> TextTable {
    let figure =
        |value: Option<f64>| TextCell::number(value, |value| figures::shown(situation.figure, value));
    let row = |one: &MethodOfValue| {
        let change = one.change.as_ref();
        let ratio = change.map_or_else(
            || TextCell::from("–"),
            |change| TextCell { value: change.ratio, ..ratio_of(change).into() },
        );
        vec![
            TextCell::from(&one.method),
            TextCell::from(&one.value),
            TextCell::number(Some(one.runs as u64), grouped),
            figure(one.mean),
            figure(one.least),
            figure(one.most),
            ratio,
            TextCell::from(change.map_or_else(String::new, word)),
        ]
    };
    let first = situation.methods.first().map_or("", |one| one.value.as_str());
    let unit = figures::unit(situation.figure);
    let headings = ["method", fact, "runs", unit, "least", "most"].map(str::to_string);
    let headings = headings.into_iter().chain([format!("time over {first}"), "change".to_string()]);
    TextTable {
        columns: headings.map(Into::into).collect(),
        rows: situation.methods.iter().map(row).collect(),
    }
}

fn of_split(situation: &SplitSituation, fact: &str) -> Vec<Block> {
    let advised: Vec<String> = match situation.by_value.len() {
        ..=MOST_NAMED => {
            let by_value = situation.by_value.iter();
            by_value
                .map(|AdviceOfValue { value, advised }| format!("{value}: {}", methods(advised)))
                .collect()
        }
        _ => grouped_advice(&situation.by_value),
    };
    let mut blocks = vec![Block::heading(3, situation.label.as_str())];
    let explained = situation.explained_by.iter().map(explained);
    blocks.push(Block::List(advised.into_iter().chain(explained).collect()));
    match &situation.not_compared {
        None => blocks.push(Block::Table(figures(situation, fact), situation.label.clone())),
        Some(reason) => blocks.push(Block::remark(format!("figures are not compared: {reason}"))),
    }
    if !situation.agree && situation.explained_by.is_empty() {
        blocks.push(Block::remark("no fact explains who advises what"));
    }
    blocks
}
