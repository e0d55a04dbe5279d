//! Runs compared with runs, as text and as Markdown.

use pagewise_analysis::compare::advice::{AdviceFinding, Advised, ChangedAdvice};
use pagewise_analysis::compare::change::{Change, ChangeFinding};
use pagewise_analysis::compare::crossing::{ChangedCrossing, CrossingFinding};
use pagewise_analysis::compare::difference::{ChangedSituation, Side};
use pagewise_analysis::compare::split::{AdviceOfValue, Explanation, SplitSituation};
use pagewise_analysis::compare::{Difference, Gated, Split};
use pagewise_model::date;
use pagewise_model::format::{MISSING, counted, percent_up, times};

use crate::line::{Line, Span};
use crate::markdown::text as escaped;
use crate::paragraph::{NARROWEST, WIDEST, wrapped};

/// Values of a fact that are named on one line.
const MOST_VALUES: usize = 3;
/// Width of the figure of a side.
const FIGURE: usize = 9;
/// Longer names of methods push the figures aside.
const WIDEST_METHOD: usize = 32;

/// Two sides, as lines for a terminal of `width` columns.
pub fn lines(gated: &Gated, width: usize) -> Vec<Line> {
    let width = width.clamp(NARROWEST, WIDEST);
    let difference = &gated.difference;
    let text = |text: &str| wrapped("", text, width).into_iter().map(Line::plain).collect::<Vec<_>>();
    let mut lines = text(&side("base", &difference.base));
    lines.extend(text(&side("new", &difference.new)));
    lines.extend(text(&environment(difference)));
    lines.extend(difference.warnings.iter().flat_map(|warning| text(&format!("! {warning}"))));
    for situation in &difference.situations {
        lines.push(Line::new());
        lines.extend(of_situation(situation, difference.relative_to.as_deref(), width));
    }
    if !difference.crossings.is_empty() {
        lines.push(Line::new());
        lines.push(Line::strong("Data over page cache at which the order changes".to_string()));
        let told = difference.crossings.iter().map(crossing);
        lines.extend(told.flat_map(|told| wrapped("  ", &told, width)).map(Line::plain));
    }
    let unmatched = unmatched(difference);
    if !unmatched.is_empty() {
        lines.push(Line::new());
        lines.push(Line::strong("Not compared".to_string()));
        lines.extend(unmatched.iter().flat_map(|told| wrapped("  ", told, width)).map(Line::weak));
    }
    lines.push(Line::new());
    lines.extend(text(&summary(difference)));
    for gate in &gated.gates {
        let verdict = if gate.failed.is_empty() { "passed" } else { "failed" };
        let head = format!("{verdict}: {}", gate.gate);
        lines.push(if gate.failed.is_empty() { Line::strong(head) } else { Line::bad(head) });
        let undecided = gate.undecided.iter().map(|one| format!("not decided: {one}"));
        let told: Vec<String> = gate.failed.iter().cloned().chain(undecided).collect();
        lines.extend(told.iter().flat_map(|told| wrapped("  ", told, width)).map(Line::plain));
    }
    lines
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
        true => "The environments are the same.".to_string(),
        false => format!("The environments differ: {}.", changed.join("; ")),
    }
}

fn of_situation(situation: &ChangedSituation, relative_to: Option<&str>, width: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = wrapped("", &situation.label, width).into_iter().map(Line::strong).collect();
    let longest = situation.methods.iter().map(|change| change.method.chars().count()).max().unwrap_or(0);
    let name = longest.clamp("method".len(), WIDEST_METHOD);
    let (unit, ratio) = (situation.figure.unit(), ratio_heading(relative_to));
    lines.push(Line::weak(format!(
        "  {:name$} {:>FIGURE$} {:>FIGURE$}  {ratio} ({unit})",
        "method", "base", "new"
    )));
    for change in &situation.methods {
        let figure = |value: Option<f64>| {
            value.map_or_else(|| MISSING.to_string(), |value| situation.figure.told(value))
        };
        let (base, new) = (figure(change.base), figure(change.new));
        let mut spans = vec![Span::plain(format!(
            "  {:name$} {base:>FIGURE$} {new:>FIGURE$}  {:22} ",
            change.method,
            ratio_of(change)
        ))];
        let word = word(change);
        spans.push(match change.finding {
            ChangeFinding::Slower => Span::bad(word),
            ChangeFinding::Faster => Span::strong(word),
            _ => Span::weak(word),
        });
        lines.push(Line(spans));
        let reason = change.reason.iter().flat_map(|reason| wrapped("      ", reason, width));
        lines.extend(reason.map(Line::weak));
    }
    let advice = advice(&situation.advice).into_iter().flat_map(|told| wrapped("  ", &told, width));
    lines.extend(advice.map(Line::plain));
    lines
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
    match (change.low, change.high) {
        (Some(low), Some(high)) => format!("{}x [{}–{}]", times(ratio), times(low), times(high)),
        _ => format!("{}x", times(ratio)),
    }
}

fn word(change: &Change) -> String {
    match change.finding {
        ChangeFinding::Slower => "slower".to_string(),
        ChangeFinding::Faster => "faster".to_string(),
        ChangeFinding::Same => "same, within 2 %".to_string(),
        ChangeFinding::Close => format!("close, within {}", percent_up(change.distance().unwrap_or(0.0))),
        ChangeFinding::Open => "open".to_string(),
        ChangeFinding::NoiseUnknown => "noise unknown".to_string(),
        ChangeFinding::NotMeasured => "no figure".to_string(),
    }
}

/// The advice, where there is any: `advice: pread, as before`.
fn advice(advice: &ChangedAdvice) -> Option<String> {
    let (then, now) = (methods(&advice.base), methods(&advice.new));
    match advice.finding {
        AdviceFinding::NoAdvice => None,
        AdviceFinding::Same => Some(format!("advice: {now}, as before")),
        AdviceFinding::Changed => Some(format!("advice: {now} in place of {then}, which is behind now")),
        AdviceFinding::Open => {
            Some(format!("advice: {now}; before: {then}, which is not behind for certain"))
        }
    }
}

/// `pread (4 of 5 runs), mmap`.
fn methods(advised: &[Advised]) -> String {
    let runs: usize = advised.iter().map(|one| one.runs).sum();
    let told = advised.iter().map(|one| {
        let method = one.method.as_deref().unwrap_or("nothing");
        if one.runs == runs { method.to_string() } else { format!("{method} ({} of {runs} runs)", one.runs) }
    });
    told.collect::<Vec<_>>().join(", ")
}

fn crossing(crossing: &ChangedCrossing) -> String {
    let place =
        |ratio: Option<f64>| ratio.map_or_else(|| "none".to_string(), |ratio| format!("{}x", times(ratio)));
    let interval = match (crossing.ratio, crossing.low, crossing.high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!(", {}x [{}–{}]", times(ratio), times(low), times(high))
        }
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
        place(crossing.base),
        place(crossing.new),
        crossing.label
    )
}

fn unmatched(difference: &Difference) -> Vec<String> {
    let told = difference.unmatched.iter().map(|one| {
        let side = if one.is_base { "base" } else { "new" };
        match &one.method {
            Some(method) => format!("{side} only: {method} ({})", one.label),
            None => format!("{side} only: {}", one.label),
        }
    });
    told.collect()
}

/// `12 methods: 1 slower, 9 close, 2 open.`
fn summary(difference: &Difference) -> String {
    let of = |finding| {
        difference
            .situations
            .iter()
            .flat_map(|one| &one.methods)
            .filter(|change| change.finding == finding)
            .count()
    };
    let words = [
        (ChangeFinding::Slower, "slower"),
        (ChangeFinding::Faster, "faster"),
        (ChangeFinding::Same, "same"),
        (ChangeFinding::Close, "close"),
        (ChangeFinding::Open, "open"),
        (ChangeFinding::NoiseUnknown, "of unknown noise"),
        (ChangeFinding::NotMeasured, "without a figure"),
    ];
    let all: usize = words.iter().map(|(finding, _)| of(*finding)).sum();
    let told = words.iter().map(|(finding, word)| (of(*finding), word)).filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, word)| format!("{count} {word}")).collect();
    let told = if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) };
    let together = match difference.noise_is_known && all > 1 {
        true => " The intervals hold together with 95 %.",
        false => "",
    };
    format!("{}{told}.{together}", counted(all as u64, "comparison"))
}

/// Two sides as Markdown.
pub fn markdown(gated: &Gated) -> String {
    let difference = &gated.difference;
    let mut text = format!(
        "{}  \n{}  \n",
        escaped(side("base", &difference.base)),
        escaped(side("new", &difference.new))
    );
    text.push_str(&format!("{}\n", escaped(environment(difference))));
    difference.warnings.iter().for_each(|warning| text.push_str(&format!("\n> {}\n", escaped(warning))));
    for gate in &gated.gates {
        let verdict = if gate.failed.is_empty() { "passed" } else { "**failed**" };
        text.push_str(&format!("\n{verdict}: `{}`\n", gate.gate));
        gate.failed.iter().for_each(|one| text.push_str(&format!("- {}\n", escaped(one))));
        gate.undecided.iter().for_each(|one| text.push_str(&format!("- not decided: {}\n", escaped(one))));
    }
    for situation in &difference.situations {
        let ratio = escaped(ratio_heading(difference.relative_to.as_deref()));
        text.push_str(&format!(
            "\n**{}**\n\n| method | base {unit} | new {unit} | {ratio} | |\n|---|---:|---:|---|---|\n",
            escaped(&situation.label),
            unit = situation.figure.unit()
        ));
        for change in &situation.methods {
            let figure = |value: Option<f64>| {
                value.map_or_else(|| MISSING.to_string(), |value| situation.figure.told(value))
            };
            let reason = change.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} |\n",
                escaped(&change.method),
                figure(change.base),
                figure(change.new),
                ratio_of(change),
                escaped(format!("{}{reason}", word(change)))
            ));
        }
        if let Some(told) = advice(&situation.advice) {
            text.push_str(&format!("\n{}\n", escaped(&told)));
        }
    }
    for told in difference.crossings.iter().map(crossing).chain(unmatched(difference)) {
        text.push_str(&format!("\n- {}\n", escaped(&told)));
    }
    text.push_str(&format!("\n{}\n", escaped(summary(difference))));
    text
}

/// Many runs by a fact, as lines for a terminal of `width` columns.
pub fn split_lines(split: &Split, width: usize) -> Vec<Line> {
    let width = width.clamp(NARROWEST, WIDEST);
    let values =
        split.values.iter().map(|one| format!("{} ({})", one.value, counted(one.runs as u64, "run")));
    let head = format!("{}: {}", split.fact, values.collect::<Vec<_>>().join(", "));
    let mut lines: Vec<Line> = wrapped("", &head, width).into_iter().map(Line::plain).collect();
    let warnings = split.warnings.iter().flat_map(|warning| wrapped("", &format!("! {warning}"), width));
    lines.extend(warnings.map(Line::plain));
    for situation in &split.situations {
        lines.push(Line::new());
        lines.extend(of_split(situation, width));
    }
    let disagreeing = split.situations.iter().filter(|one| !one.agree).count();
    lines.push(Line::new());
    lines.push(Line::plain(format!(
        "{}: the runs disagree in {disagreeing}.",
        counted(split.situations.len() as u64, "situation")
    )));
    lines
}

fn of_split(situation: &SplitSituation, width: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = wrapped("", &situation.label, width).into_iter().map(Line::strong).collect();
    for AdviceOfValue { value, advised } in &situation.by_value {
        lines.extend(
            wrapped("  ", &format!("{value}: {}", methods(advised)), width).into_iter().map(Line::plain),
        );
    }
    for Explanation { fact, explained, runs, values } in &situation.explained_by {
        let values: Vec<String> =
            values.iter().map(|(value, method)| format!("{value} → {method}")).collect();
        let told =
            format!("{fact} explains {explained} of {}: {}", counted(*runs as u64, "run"), values.join("; "));
        lines.extend(wrapped("  ", &told, width).into_iter().map(Line::plain));
    }
    if !situation.agree && situation.explained_by.is_empty() {
        lines.push(Line::weak("  no fact explains who advises what".to_string()));
    }
    lines
}
