//! Facts of runs side by side: their values, and those that differ.

use std::collections::BTreeSet;

use pagewise_analysis::facts::{Facts, UNKNOWN};

/// The name of the fact that a user means; `None` if no run has it.
pub fn named<'a>(wanted: &str, all: impl IntoIterator<Item = &'a Facts>) -> Option<String> {
    let name = wanted.replace('_', "-");
    all.into_iter().any(|facts| facts.contains_key(&name)).then_some(name)
}

/// The value of a fact.
pub fn value<'a>(facts: &'a Facts, name: &str) -> &'a str {
    facts.get(name).map_or(UNKNOWN, String::as_str)
}

/// A fact in which two sides differ.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct ChangedFact {
    /// The fact.
    pub fact: String,
    /// Values on the first side.
    pub base: Vec<String>,
    /// Values on the second.
    pub new: Vec<String>,
}

/// The facts whose values are not the same on both sides.
pub fn changed<'a>(
    base: impl Iterator<Item = &'a Facts> + Clone,
    new: impl Iterator<Item = &'a Facts> + Clone,
) -> Vec<ChangedFact> {
    let names: BTreeSet<&String> = base.clone().chain(new.clone()).flat_map(Facts::keys).collect();
    let of = |name: &String| {
        let (base, new) = (values(base.clone(), name), values(new.clone(), name));
        (base != new).then(|| ChangedFact { fact: name.clone(), base, new })
    };
    names.into_iter().filter_map(of).collect()
}

/// The values of a fact on one side.
pub fn values<'a>(side: impl Iterator<Item = &'a Facts>, name: &str) -> Vec<String> {
    let mut values: Vec<String> = side.map(|facts| value(facts, name).to_string()).collect();
    values.sort_unstable();
    values.dedup();
    values
}
