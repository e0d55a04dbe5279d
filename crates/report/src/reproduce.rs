//! Published claims with what was found of them: as text, and as Markdown.

use std::io::{self, Write};

use pagewise_analysis::reproduce::case::{Case, CaseFinding};
use pagewise_analysis::reproduce::judged::{Counters, JudgedClaim, JudgedDefect, JudgedTest};
use pagewise_analysis::reproduce::quantity::Unit;
use pagewise_analysis::reproduce::{Cases, Reproduced, Reproduction, Word};
use pagewise_model::format::{bytes, counted, factor, multiple, percent, plain, rate, time};

use crate::line::{Line, Span};
use crate::markdown::{text, write_table};
use crate::paragraph::{NARROWEST, WIDEST, wrapped};
use crate::text_table::TextTable;

/// Width of a claim's name.
const NAME: usize = 6;

/// The claims, for a terminal of `width` columns; with `all` cases, or only those that decide.
pub fn lines(reproduction: &Reproduction, width: usize, all: bool) -> Vec<Line> {
    let width = width.clamp(NARROWEST, WIDEST);
    let mut lines = Vec::new();
    for study in &reproduction.studies {
        lines.push(Line::strong(study.study.clone()));
        lines.extend(wrapped("  ", &study.published, width).into_iter().map(Line::weak));
        let missing = study.missing.iter().map(|missing| format!("! not measured: {missing}"));
        lines.extend(missing.flat_map(|text| wrapped("  ", &text, width)).map(Line::plain));
        for (index, claim) in study.claims.iter().enumerate() {
            lines.push(Line::new());
            lines.extend(of_claim(claim, &study.claims[..index], width, all));
        }
        lines.push(Line::new());
    }
    lines.push(Line::strong(summary(reproduction)));
    lines
}

/// The lines of a claim after others.
fn of_claim(claim: &JudgedClaim, before: &[JudgedClaim], width: usize, all: bool) -> Vec<Line> {
    let word = claim.word.text();
    let word = match claim.word {
        Word::Holds => Span::strong(word),
        Word::DoesNotHold => Span::bad(word),
        Word::CannotBeTested => Span::weak(word),
    };
    let mut lines = vec![Line(vec![Span::plain(format!("  {:NAME$} ", claim.id)), word])];
    let mut add = |text: &str| lines.extend(wrapped("    ", text, width).into_iter().map(Line::plain));
    add(&claim.says);
    add(&format!("published: {}", claim.published));
    for text in parts(claim, before) {
        add(&text);
    }
    if all {
        let cases = claim.tests.iter().flat_map(|test| test.cases.iter().map(move |case| (test, case)));
        for (test, case) in cases {
            add(&format!("- {}: {}", case.finding.text(), case_text(test, case)));
        }
    }
    lines
}

/// The finding, its cause, and the fault of the published method, unless one of the claims before
/// has it.
fn parts(claim: &JudgedClaim, before: &[JudgedClaim]) -> Vec<String> {
    let mut all: Vec<String> =
        claim.tests.iter().filter_map(found).map(|found| format!("here: {found}")).collect();
    all.extend(claim.reason.iter().map(|reason| format!("not tested: {reason}")));
    all.extend(claim.because.iter().map(counters));
    all.extend(claim.defects.iter().map(|one| {
        match before.iter().find(|earlier| earlier.defects.contains(one)) {
            Some(earlier) => format!("published method: as for {}", earlier.id),
            None => defect(one),
        }
    }));
    all
}

/// The case that decides a test, and how many others are like it.
fn found(test: &JudgedTest) -> Option<String> {
    let case = &test.cases[test.deciding?];
    let count = |finding: CaseFinding| test.cases.iter().filter(|case| case.finding == finding).count();
    let tally = match test.cases.len() {
        1 => String::new(),
        cases => format!(
            "; {} of {cases} cases agree{}",
            count(CaseFinding::Within),
            match count(CaseFinding::Beyond) {
                0 => String::new(),
                beyond => format!(", {beyond} contradict"),
            }
        ),
    };
    Some(format!("{}{tally}; the claim requires {}", case_text(test, case), bounds(test)))
}

/// `at least 1.05x in every case`.
fn bounds(test: &JudgedTest) -> String {
    let text = |bound: f64| if test.is_ratio { multiple(bound) } else { value(test, bound, None) };
    let bounds = match (test.at_least, test.at_most) {
        (Some(least), Some(most)) => format!("from {} to {}", text(least), text(most)),
        (Some(least), None) => format!("at least {}", text(least)),
        (_, most) => format!("at most {}", most.map(text).unwrap_or_default()),
    };
    let which = match test.of_cases {
        Cases::Every => "every case",
        Cases::Most => "most cases",
        Cases::Any => "one case or more",
    };
    match test.cases.len() {
        1 => bounds,
        _ => format!("{bounds} in {which}"),
    }
}

/// `mmap:buffer=4KiB over mmap: 1.13x [1.1, 1.16] in speed (append …)`.
fn case_text(test: &JudgedTest, case: &Case) -> String {
    let method = match (&case.against, test.is_ratio) {
        (Some(against), true) => format!("{} over {against}", case.method),
        (Some(against), false) => format!("{} less {against}", case.method),
        (None, _) => case.method.clone(),
    };
    let found = match (case.value, &case.reason) {
        (Some(found), _) => format!("{} {}", value(test, found, case.low.zip(case.high)), test.text),
        (None, Some(reason)) => reason.clone(),
        (None, None) => format!("no value {}", test.text),
    };
    format!("{method}: {found} ({})", case.conditions)
}

/// A value of a test with its interval.
fn value(test: &JudgedTest, value: f64, interval: Option<(f64, f64)>) -> String {
    if test.is_ratio {
        return factor(value, interval);
    }
    let text = |value: f64| match test.is_difference && test.unit == Unit::Share {
        true => format!("{} points", plain(value * 100.0)),
        false => in_unit(test.unit, value),
    };
    match interval {
        Some((low, high)) => format!("{} [{}, {}]", text(value), text(low), text(high)),
        None => text(value),
    }
}

fn in_unit(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Rate => rate(value),
        Unit::Time => time(value),
        Unit::Bandwidth => format!("{}/s", bytes(value)),
        Unit::Share => percent(value),
        Unit::Number => plain(value),
    }
}

/// `mmap (append …): 12 ms in total, 0.25 faults per operation`.
fn counters(counters: &Counters) -> String {
    let values: Vec<String> =
        counters.values.iter().map(|one| format!("{} {}", in_unit(one.unit, one.value), one.text)).collect();
    format!("counters of {}: {} ({})", counters.method, values.join(", "), counters.conditions)
}

fn defect(defect: &JudgedDefect) -> String {
    let here = match defect.here {
        None => "this run has no figure for it".to_string(),
        Some((least, most)) => {
            let (least, most) = (in_unit(defect.unit, least), in_unit(defect.unit, most));
            let range = if least == most { least } else { format!("{least} to {most}") };
            format!("here: {range} {}, in {}", defect.text, counted(defect.samples as u64, "sample"))
        }
    };
    format!("published method: {}; {here}", defect.says)
}

/// `55 claims: 20 hold, 18 do not hold, 17 cannot be tested here`.
fn summary(reproduction: &Reproduction) -> String {
    let claims: usize = Word::ALL.iter().map(|word| reproduction.count(*word)).sum();
    let [holds, fails, untested] = Word::ALL.map(|word| reproduction.count(word));
    let text =
        |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    format!(
        "{}: {}, {}, {untested} cannot be tested here",
        counted(claims as u64, "claim"),
        text(holds, "holds", "hold"),
        text(fails, "does not hold", "do not hold")
    )
}

/// Write a table for each study.
pub fn markdown(out: &mut dyn Write, reproduction: &Reproduction) -> io::Result<()> {
    writeln!(out, "{}", text(summary(reproduction)))?;
    for Reproduced { study, published, missing, claims } in &reproduction.studies {
        writeln!(out, "\n### {}\n\n{}\n", text(study), text(published))?;
        for missing in missing {
            writeln!(out, "- **Not measured:** {}", text(missing))?;
        }
        let row = |claim: &JudgedClaim| {
            let cells =
                [&claim.id, &claim.says, &claim.published, claim.word.text(), &parts(claim, &[]).join(" · ")];
            cells.iter().map(|cell| (*cell).into()).collect()
        };
        let empty = TextTable::of(&["claim", "says", "published", "here", "found"]);
        write_table(out, &TextTable { rows: claims.iter().map(row).collect(), ..empty })?;
    }
    Ok(())
}
