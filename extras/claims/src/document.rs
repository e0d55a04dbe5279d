//! Published claims with what was found of them, as a document.

use pagewise_model::format::{bytes, counted, factor, multiple, percent, plain, rate, time};
use pagewise_report::document::{Block, Document};
use pagewise_report::line::{Line, Span};

use crate::judgement::case::{Case, CaseFinding};
use crate::judgement::judged::{Counters, JudgedClaim, JudgedDefect, JudgedTest};
use crate::judgement::quantity::Unit;
use crate::judgement::{Cases, Reproduced, Reproduction, Word};

/// The claims; with `all` cases, or only those that decide.
pub fn document(reproduction: &Reproduction, all: bool) -> Document {
    Document {
        conclusion: vec![Block::Paragraph(Line::strong(summary(reproduction)))],
        body: reproduction.studies.iter().flat_map(|study| of_study(study, all)).collect(),
        ..Document::default()
    }
}

fn of_study(Reproduced { study, published, missing, claims }: &Reproduced, all: bool) -> Vec<Block> {
    let mut blocks = vec![Block::heading(2, study.as_str()), Block::remark(published.as_str())];
    blocks.extend(missing.iter().map(|missing| Block::Warning(format!("not measured: {missing}"))));
    let claims = claims.iter().enumerate().map(|(index, claim)| of_claim(claim, &claims[..index], all));
    blocks.extend(claims.flatten());
    blocks
}

/// A claim after others.
fn of_claim(claim: &JudgedClaim, before: &[JudgedClaim], all: bool) -> Vec<Block> {
    let word = claim.word.text();
    let word = match claim.word {
        Word::Holds => Span::strong(word),
        Word::DoesNotHold => Span::bad(word),
        Word::CannotBeTested => Span::weak(word),
    };
    let heading = Line(vec![Span::plain(format!("{} ", claim.id)), word]);
    let published = format!("published: {}", claim.published);
    let said = std::iter::once(claim.says.clone()).chain([published]).chain(parts(claim, before));
    let cases = claim.tests.iter().flat_map(|test| test.cases.iter().map(move |case| (test, case)));
    let cases = cases.map(|(test, case)| format!("{}: {}", case.finding.text(), case_text(test, case)));
    let cases = if all { cases.collect() } else { Vec::new() };
    vec![Block::Heading(3, heading), Block::List(said.collect()), Block::List(cases)]
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
            "; {} of {cases} cases agree and {} contradict",
            count(CaseFinding::Within),
            count(CaseFinding::Beyond)
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
