//! Many runs by a fact, as a page shows them: by a map.

use pagewise_model::format::counted;
use pagewise_report::document::{Block, Document};
use pagewise_report::map::MethodMap;
use pagewise_report::text_table::{TextCell, TextTable};
use pagewise_report::words::left_out;

use super::words::{explained, methods, missing};
use crate::judgement::Split;
use crate::judgement::split::{SplitSituation, ValueOfFact};

/// Situations that are listed with what explains them.
const MOST_LISTED: usize = 500;

/// The title of their page.
pub fn split_title(split: &Split) -> String {
    format!("pagewise: {} runs by {}", runs(split), split.fact)
}

/// Many runs by a fact, for a page.
pub fn split_page(split: &Split) -> Document {
    let disagreeing = split.situations.iter().filter(|one| !one.agree).count();
    let mut body = vec![Block::paragraph(format!(
        "{} by {}, {}: the runs disagree in {disagreeing}.",
        counted(runs(split) as u64, "run"),
        split.fact,
        counted(split.situations.len() as u64, "situation")
    ))];
    if !split.warnings.is_empty() {
        body.extend([Block::heading(2, "Warnings"), Block::List(split.warnings.clone())]);
    }
    // Where the runs disagree comes first.
    let mut situations: Vec<&SplitSituation> = split.situations.iter().collect();
    situations.sort_by_key(|situation| situation.agree);
    body.extend([Block::heading(2, "Which method is best where?"), Block::Map(map(split, &situations))]);
    let label = "What explains it";
    body.extend([
        Block::heading(2, format!("{label}?")),
        Block::Table(explanations(&situations), label.to_string()),
    ]);
    if situations.len() > MOST_LISTED {
        body.push(Block::paragraph(left_out(situations.len() - MOST_LISTED, "situation")));
    }
    let label = "The runs";
    body.push(Block::heading(2, label));
    if !split.missing.is_empty() {
        body.extend([Block::paragraph("Missing:"), Block::List(missing(split))]);
    }
    body.push(Block::Table(values(split), label.to_string()));
    Document { body, ..Document::default() }
}

fn runs(split: &Split) -> usize {
    split.values.iter().map(|one| one.runs).sum()
}

fn map(split: &Split, situations: &[&SplitSituation]) -> MethodMap {
    let column = |situation: &&SplitSituation| {
        let cell = |value: &str| {
            let of_value = situation.by_value.iter().find(|one| one.value == value)?;
            let first = of_value.advised.iter().find_map(|one| one.method.clone());
            Some((first.unwrap_or_default(), methods(&of_value.advised)))
        };
        split.values.iter().map(|one| cell(&one.value)).collect()
    };
    MethodMap {
        of: split.fact.clone(),
        rows: split.values.iter().map(|one| one.value.clone()).collect(),
        labels: situations.iter().map(|situation| situation.label.clone()).collect(),
        columns: situations.iter().map(column).collect(),
    }
}

/// The facts that explain each situation, as far as they are listed.
fn explanations(situations: &[&SplitSituation]) -> TextTable {
    let row = |situation: &&SplitSituation| {
        let facts: Vec<String> = situation.explained_by.iter().map(explained).collect();
        let facts = match (situation.agree, facts.is_empty()) {
            (true, _) => String::new(),
            (false, true) => "no fact explains it".to_string(),
            (false, false) => facts.join(". "),
        };
        let word = if situation.agree { "agree" } else { "disagree" };
        vec![TextCell::from(&situation.label), word.into(), facts.into()]
    };
    TextTable {
        rows: situations.iter().take(MOST_LISTED).map(row).collect(),
        ..TextTable::of(&["situation", "the runs", "facts that explain who advises what"])
    }
}

fn values(split: &Split) -> TextTable {
    let row = |one: &ValueOfFact| {
        vec![TextCell::from(&one.value), TextCell::count(one.runs), TextCell::count(one.hosts)]
    };
    TextTable {
        rows: split.values.iter().map(row).collect(),
        ..TextTable::of(&[&split.fact, "runs", "hosts"])
    }
}
