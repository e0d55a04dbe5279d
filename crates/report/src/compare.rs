//! Runs compared with runs: as text, as Markdown, and as parts of a page.

use std::io::{self, Write};

use pagewise_analysis::compare::advice::{AdviceFinding, Advised, ChangedAdvice};
use pagewise_analysis::compare::change::{Change, ChangeFinding};
use pagewise_analysis::compare::crossing::{ChangedCrossing, CrossingFinding};
use pagewise_analysis::compare::difference::{ChangedSituation, Side};
use pagewise_analysis::compare::gate::GateFindings;
use pagewise_analysis::compare::split::{AdviceOfValue, Explanation, SplitSituation};
use pagewise_analysis::compare::{Difference, Gated, Split};
use pagewise_model::date;
use pagewise_model::format::{MISSING, counted, percent_up, times};

use crate::line::{Line, Span};
use crate::markdown::{text, write_table};
use crate::paragraph::{NARROWEST, WIDEST, wrapped};
use crate::plots::plot::{Axis, AxisQuantity, Form, Mark, Plot, Scale, Series};
use crate::text_table::{TextCell, TextTable};

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
        let crossings = difference.crossings.iter().map(crossing);
        lines.extend(crossings.flat_map(|crossing| wrapped("  ", &crossing, width)).map(Line::plain));
    }
    let unmatched = unmatched(difference);
    if !unmatched.is_empty() {
        lines.push(Line::new());
        lines.push(Line::strong("Not compared".to_string()));
        lines.extend(unmatched.iter().flat_map(|one| wrapped("  ", one, width)).map(Line::weak));
    }
    lines.push(Line::new());
    lines.extend(text(&summary(difference)));
    for findings in &gated.gates {
        let (head, sentences) = gate(findings);
        lines.push(if findings.failed.is_empty() { Line::strong(head) } else { Line::bad(head) });
        lines.extend(sentences.iter().flat_map(|sentence| wrapped("  ", sentence, width)).map(Line::plain));
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
        true => "What was recorded of the environments is the same.".to_string(),
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
            value.map_or_else(|| MISSING.to_string(), |value| situation.figure.text(value))
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
    let advice = advice(&situation.advice).into_iter().flat_map(|text| wrapped("  ", &text, width));
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
    match change.low {
        Some(_) => factor(ratio, change.bounds()),
        None => format!("{}x", times(ratio)),
    }
}

/// A factor with the ends of its interval, if they bound something.
fn factor(ratio: f64, bounds: Option<(f64, f64)>) -> String {
    let bounds = bounds.map(|(low, high)| format!("{}–{}", times(low), times(high)));
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

/// `pread (4 of 5 runs), mmap`.
pub(crate) fn methods(advised: &[Advised]) -> String {
    let runs: usize = advised.iter().map(|one| one.runs).sum();
    let text = advised.iter().map(|one| {
        let method = one.method.as_deref().unwrap_or("nothing");
        if one.runs == runs { method.to_string() } else { format!("{method} ({} of {runs} runs)", one.runs) }
    });
    text.collect::<Vec<_>>().join(", ")
}

fn crossing(crossing: &ChangedCrossing) -> String {
    let place =
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
        place(crossing.base),
        place(crossing.new),
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
    format!("{}{text}.{together}", counted(all as u64, "comparison"))
}

/// A situation of two sides as text.
pub(crate) struct SituationText {
    /// The conditions.
    pub(crate) label: String,
    /// Each method with its figures, the ratio, and what that says.
    pub(crate) table: TextTable,
    /// The advice, where there is any.
    pub(crate) advice: Option<String>,
}

/// Two sides as text, for a document.
pub(crate) struct DifferenceText {
    /// Sides and what differs between their environments.
    pub(crate) heading: Vec<String>,
    /// Cautions before the numbers.
    pub(crate) warnings: Vec<String>,
    /// The situations.
    pub(crate) situations: Vec<SituationText>,
    /// Crossings.
    pub(crate) crossings: Vec<String>,
    /// Methods and conditions of one side alone.
    pub(crate) unmatched: Vec<String>,
    /// The number of methods that changed.
    pub(crate) summary: String,
}

impl DifferenceText {
    pub(crate) fn of(difference: &Difference) -> Self {
        let relative_to = difference.relative_to.as_deref();
        Self {
            heading: vec![
                side("base", &difference.base),
                side("new", &difference.new),
                environment(difference),
            ],
            warnings: difference.warnings.clone(),
            situations: difference.situations.iter().map(|one| situation(one, relative_to)).collect(),
            crossings: difference.crossings.iter().map(crossing).collect(),
            unmatched: unmatched(difference),
            summary: summary(difference),
        }
    }
}

fn situation(situation: &ChangedSituation, relative_to: Option<&str>) -> SituationText {
    let unit = situation.figure.unit();
    let row = |change: &Change| {
        let figure = |value: Option<f64>| TextCell::number(value, |value| situation.figure.text(value));
        let reason = change.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        let said = format!("{}{reason}", word(change));
        let ratio = TextCell { text: ratio_of(change), value: change.ratio };
        vec![TextCell::from(&change.method), figure(change.base), figure(change.new), ratio, said.into()]
    };
    let headings =
        ["method".to_string(), format!("base {unit}"), format!("new {unit}"), ratio_heading(relative_to)];
    SituationText {
        label: situation.label.clone(),
        table: TextTable {
            headings: headings.into_iter().chain(["change".to_string()]).collect(),
            rows: situation.methods.iter().map(row).collect(),
        },
        advice: advice(&situation.advice),
    }
}

/// `failed: slower=5%`, and what it found, one sentence each.
pub(crate) fn gate(gate: &GateFindings) -> (String, Vec<String>) {
    let verdict = if gate.failed.is_empty() { "passed" } else { "failed" };
    let undecided = gate.undecided.iter().map(|one| format!("not decided: {one}"));
    (format!("{verdict}: {}", gate.gate), gate.failed.iter().cloned().chain(undecided).collect())
}

/// Write two sides as Markdown.
pub fn markdown(out: &mut dyn Write, gated: &Gated) -> io::Result<()> {
    let difference = DifferenceText::of(&gated.difference);
    difference.heading.iter().try_for_each(|line| writeln!(out, "{}  ", text(line)))?;
    difference.warnings.iter().try_for_each(|warning| writeln!(out, "\n> {}", text(warning)))?;
    for (verdict, sentences) in gated.gates.iter().map(gate) {
        writeln!(out, "\n**{}**", text(verdict))?;
        sentences.iter().try_for_each(|one| writeln!(out, "- {}", text(one)))?;
    }
    for SituationText { label, table, advice } in &difference.situations {
        writeln!(out, "\n#### {}\n", text(label))?;
        write_table(out, table)?;
        advice.iter().try_for_each(|advice| writeln!(out, "\n{}", text(advice)))?;
    }
    difference
        .crossings
        .iter()
        .chain(&difference.unmatched)
        .try_for_each(|one| writeln!(out, "\n- {}", text(one)))?;
    writeln!(out, "\n{}", text(difference.summary))
}

/// Which methods changed, and by how much, of each situation: ratios with intervals.
pub(crate) fn plots(difference: &Difference) -> Vec<Plot> {
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
            label: format!("{}: {} {}", change.method, ratio_of(change), word(change)),
            invalid: None,
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
        table: situation(changed, relative_to).table,
    }
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

/// `readahead explains 9 of 10 runs: 128 KiB → mmap; 8 MiB → pread`.
pub(crate) fn explained(Explanation { fact, explained, runs, values }: &Explanation) -> String {
    let values: Vec<String> = values.iter().map(|(value, method)| format!("{value} → {method}")).collect();
    format!("{fact} explains {explained} of {}: {}", counted(*runs as u64, "run"), values.join("; "))
}

fn of_split(situation: &SplitSituation, width: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = wrapped("", &situation.label, width).into_iter().map(Line::strong).collect();
    for AdviceOfValue { value, advised } in &situation.by_value {
        lines.extend(
            wrapped("  ", &format!("{value}: {}", methods(advised)), width).into_iter().map(Line::plain),
        );
    }
    for explanation in &situation.explained_by {
        lines.extend(wrapped("  ", &explained(explanation), width).into_iter().map(Line::plain));
    }
    if !situation.agree && situation.explained_by.is_empty() {
        lines.push(Line::weak("  no fact explains who advises what".to_string()));
    }
    lines
}
