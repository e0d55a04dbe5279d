//! A summary of a run in one or two sentences, made from its advice.

use pagewise_model::{CacheState, Workload};

use super::append::split;
use super::given::Recommendation;
use super::phrases::{capital, listed, slower, what};
use crate::judge::judged::Judged;
use pagewise_model::format::bytes;

/// Return the summary of a run, in at most two sentences: what to choose under which conditions, and what that means.
/// Random reads represent reads, and a cold scan represents scans. Empty if nothing was compared.
pub fn headline(judged: &Judged) -> Vec<String> {
    if let Some(cliff) = &judged.cliff {
        return cliff.groups.iter().flat_map(|group| group.sentences.first().cloned()).take(2).collect();
    }
    if let Some(pivot) = &judged.pivot {
        return pivot.sentences.iter().take(2).cloned().collect();
    }
    of_advice(&judged.advice)
}

pub(super) fn of_advice(advice: &[Recommendation]) -> Vec<String> {
    let told = told(advice);
    let Some(first) = told.first() else { return Vec::new() };
    let places = distinguishing(&told);
    let mut choices: Vec<(String, Vec<String>)> = Vec::new();
    for (advice, place) in told.iter().zip(&places) {
        add(&mut choices, choice(advice), place);
    }
    let choices = format!("{}: {}.", capital(subject(first)), joined(&choices));
    let mut insights: Vec<(String, Vec<String>)> = Vec::new();
    for (advice, place) in told.iter().zip(&places) {
        if let Some(insight) = &advice.insight {
            add(&mut insights, insight.clone(), place);
        }
    }
    let insights = (!insights.is_empty()).then(|| format!("{}.", joined(&insights)));
    std::iter::once(choices).chain(insights).collect()
}

fn subject(advice: &Recommendation) -> &'static str {
    let conditions = &advice.conditions.conditions;
    match (conditions.workload(), conditions.cache) {
        (Workload::Scan, CacheState::Cold) => "a cold scan",
        (workload, _) => what(workload),
    }
}

/// The advice that represents the run.
fn told(advice: &[Recommendation]) -> Vec<&Recommendation> {
    let workload = |advice: &Recommendation| advice.conditions.conditions.workload();
    let random = advice.iter().any(|advice| workload(advice) == Workload::RandomRead);
    let wanted = if random { Some(Workload::RandomRead) } else { advice.first().map(workload) };
    let of_workload = || advice.iter().filter(|advice| Some(workload(advice)) == wanted);
    let cold_scan = |advice: &&Recommendation| {
        workload(advice) == Workload::Scan && advice.conditions.conditions.cache == CacheState::Cold
    };
    let cold: Vec<&Recommendation> = of_workload().filter(cold_scan).collect();
    if cold.is_empty() { of_workload().collect() } else { cold }
}

/// The parts of each label that are not common to all; empty for a single label.
fn distinguishing(told: &[&Recommendation]) -> Vec<String> {
    let labels: Vec<Vec<&str>> =
        told.iter().map(|advice| advice.conditions.label.split(" · ").collect()).collect();
    let own = |label: &[&str]| {
        let own = label.iter().filter(|part| !labels.iter().all(|other| other.contains(part)));
        own.copied().collect::<Vec<_>>().join(", ")
    };
    // Usual conditions are left out of labels, so one of several may have no part of its own.
    let usual = if labels.len() > 1 { "otherwise" } else { "" };
    labels
        .iter()
        .map(|label| own(label))
        .map(|own| if own.is_empty() { usual.to_string() } else { own })
        .collect()
}

/// Add a place to the clause that says the same of other places.
fn add(clauses: &mut Vec<(String, Vec<String>)>, clause: String, place: &str) {
    match clauses.iter_mut().find(|(known, _)| *known == clause) {
        Some((_, places)) => places.push(place.to_string()),
        None => clauses.push((clause, vec![place.to_string()])),
    }
}

fn joined(clauses: &[(String, Vec<String>)]) -> String {
    let words: Vec<String> = clauses
        .iter()
        .map(|(clause, places)| match listed(places) {
            places if places.is_empty() => clause.clone(),
            places => format!("{places}: {clause}"),
        })
        .collect();
    words.join("; ")
}

fn choice(advice: &Recommendation) -> String {
    let Some(method) = &advice.recommended else {
        return format!(
            "no advice, because {}",
            advice.reason.as_deref().unwrap_or("the data do not support a verdict")
        );
    };
    let tie = match advice.alternatives.len() {
        0 => None,
        1 => Some(format!("{} is not shown to be behind", listed(&advice.alternatives))),
        2 => Some(format!("{} are not shown to be behind", listed(&advice.alternatives))),
        others => Some(format!("{others} others are not shown to be behind")),
    };
    let notes: Vec<String> = tie.into_iter().chain(buffer(advice, method)).collect();
    match notes.is_empty() {
        true => format!("choose {method}"),
        false => format!("choose {method} ({})", notes.join("; ")),
    }
}

/// The smallest buffer that is not shown to be behind.
fn buffer(advice: &Recommendation, method: &str) -> Option<String> {
    let (base, own) = split(method)?;
    let found = advice.buffers.iter().find(|found| found.base == base)?;
    if found.smallest_bytes >= own || own > found.largest_bytes {
        return None;
    }
    Some(match found.smallest_bytes.0 {
        0 => format!("without a buffer {}", slower(found.bound)),
        _ => format!("{} with a buffer of {}", slower(found.bound), bytes(found.smallest_bytes)),
    })
}
