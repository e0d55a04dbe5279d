//! Values of a fact that lack a run which counts: complete, with valid samples, and of the plan
//! that most runs have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pagewise_analysis::facts::PLAN;
use serde::Serialize;

use super::digest::Digest;
use super::facts;

/// Values that must have a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedValues {
    /// These.
    Named(Vec<String>),
    /// So many, whichever.
    Number(usize),
}

/// A value without a run that counts, or a file that may have been its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MissingRun {
    /// The value; `None`: unknown.
    pub value: Option<String>,
    /// File of the run; `None` without one.
    pub file: Option<String>,
    /// Reason that it does not count.
    pub reason: String,
}

/// `n3: runs/n3.jsonl is not complete`.
impl fmt::Display for MissingRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = [
            self.value.as_ref().map(|value| format!("{value}: ")),
            self.file.as_ref().map(|file| format!("{file} ")),
        ];
        write!(formatter, "{}{}", of.into_iter().flatten().collect::<String>(), self.reason)
    }
}

/// Name what is missing of the values that are expected of a fact.
pub fn missing(fact: &str, expected: &ExpectedValues, runs: &[Digest]) -> Vec<MissingRun> {
    let plan = |run: &Digest| facts::value(&run.facts, PLAN).to_string();
    let mut plans: BTreeMap<String, usize> = BTreeMap::new();
    runs.iter().for_each(|run| *plans.entry(plan(run)).or_default() += 1);
    let usual = plans.into_iter().max_by_key(|(_, runs)| *runs).map_or_else(String::new, |(plan, _)| plan);
    let reason = |run: &Digest| match plan(run) {
        _ if !run.is_complete => Some("is not complete".to_string()),
        _ if !run.has_figure() => Some("has no valid sample".to_string()),
        plan if plan != usual => Some(format!("has the plan {plan}, and most have {usual}")),
        _ => None,
    };
    let mut values: BTreeMap<&str, Vec<&Digest>> = BTreeMap::new();
    for run in runs {
        values.entry(facts::value(&run.facts, fact)).or_default().push(run);
    }
    let absent = |value, reason: String| MissingRun { value, file: None, reason };
    let mut missing = match expected {
        ExpectedValues::Named(named) => {
            let named: BTreeSet<&String> = named.iter().collect();
            let without = named.into_iter().filter(|value| !values.contains_key(value.as_str()));
            without.map(|value| absent(Some(value.clone()), "no run".to_string())).collect()
        }
        ExpectedValues::Number(number) => match number.saturating_sub(values.len()) {
            0 => Vec::new(),
            without => vec![absent(None, format!("{without} of {number} values have no run"))],
        },
    };
    for (value, runs) in values {
        let reasons = runs.iter().map(|run| (*run, reason(run)));
        if reasons.clone().all(|(_, reason)| reason.is_some()) {
            missing.extend(reasons.filter_map(|(run, reason)| {
                Some(MissingRun {
                    value: Some(value.to_string()),
                    file: Some(run.name.clone()),
                    reason: reason?,
                })
            }));
        }
    }
    missing
}
