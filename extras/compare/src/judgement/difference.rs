//! Two sides of runs, before and after a change.

use std::collections::HashSet;

use pagewise_analysis::judge::FigureKind;
use pagewise_model::groups;
use pagewise_model::run::SCHEMA_VERSION;
use pagewise_model::run_identity::refuse_twice;
use serde::Serialize;

use super::advice::ChangedAdvice;
use super::change::{Change, Pair, Series, changes, show_noise};
use super::crossing::{self, ChangedCrossing};
use super::digest::{Digest, SituationDigest};
use super::facts::{self, ChangedFact};

/// Differences between two sides.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Difference {
    /// Version of this JSON.
    pub schema: u32,
    /// The first side.
    pub base: Side,
    /// The second side.
    pub new: Side,
    /// The method whose time others are divided by, round by round; `None`: they stand by
    /// themselves.
    pub relative_to: Option<String>,
    /// True if both sides have enough runs to show the noise between runs.
    pub noise_is_known: bool,
    /// Facts in which the sides differ.
    pub environment: Vec<ChangedFact>,
    /// Cautions before the numbers, one sentence each.
    pub warnings: Vec<String>,
    /// The situations that both sides have.
    pub situations: Vec<ChangedSituation>,
    /// The crossings of searches that both sides have made.
    pub crossings: Vec<ChangedCrossing>,
    /// Methods and conditions of one side alone.
    pub unmatched: Vec<Unmatched>,
}

/// The runs of one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Side {
    /// Files of the runs.
    pub files: Vec<String>,
    /// Hosts that they were made on.
    pub hosts: Vec<String>,
    /// When the first began, seconds since 1970.
    pub first_unix_s: u64,
    /// When the last began.
    pub last_unix_s: u64,
}

/// Methods under one set of conditions on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ChangedSituation {
    /// The conditions.
    pub label: String,
    /// The figure that methods are compared by.
    pub figure: FigureKind,
    /// Each method that both sides have.
    pub methods: Vec<Change>,
    /// The advice.
    pub advice: ChangedAdvice,
}

/// Conditions, or a method under conditions that both have, that one side lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Unmatched {
    /// True if the first side has it, false if the second does.
    pub is_base: bool,
    /// The conditions.
    pub label: String,
    /// The method; `None`: all of them.
    pub method: Option<String>,
}

impl Difference {
    /// Compare two sides. An error says in one sentence why they cannot be compared.
    pub fn of(base: &[Digest], new: &[Digest], relative_to: Option<&str>) -> Result<Self, String> {
        refuse_twice(base.iter().chain(new).map(Digest::named))?;
        let (of_base, of_new) = (distinct(base), distinct(new));
        let of_one = |one: &SituationDigest| one.label_in(&one.label, std::iter::once(one));
        let mut unmatched = Vec::new();
        let mut situations = Vec::new();
        let mut pairs = Vec::new();
        for known in &of_base {
            if !of_new.iter().any(|other| other.conditions == known.conditions) {
                unmatched.push(Unmatched { is_base: true, label: of_one(known), method: None });
                continue;
            }
            let (then, now) = (in_runs(base, known), in_runs(new, known));
            let label = known.label_in(&known.label, then.iter().chain(&now).copied());
            let methods = (methods(&then), methods(&now));
            let alone = |is_base, method: &&str| Unmatched {
                is_base,
                label: label.clone(),
                method: Some(method.to_string()),
            };
            unmatched
                .extend(methods.0.iter().filter(|one| !methods.1.contains(one)).map(|one| alone(true, one)));
            unmatched
                .extend(methods.1.iter().filter(|one| !methods.0.contains(one)).map(|one| alone(false, one)));
            for method in methods.0.iter().filter(|one| methods.1.contains(one) && Some(**one) != relative_to)
            {
                pairs.push(Pair {
                    situation: situations.len(),
                    method: method.to_string(),
                    kind: known.kind,
                    base: Series::of(then.iter().copied(), method, relative_to),
                    new: Series::of(now.iter().copied(), method, relative_to),
                    is_relative: relative_to.is_some(),
                });
            }
            situations.push(ChangedSituation {
                label: label.clone(),
                figure: known.kind,
                methods: Vec::new(),
                advice: ChangedAdvice::of(&then, &now),
            });
        }
        let is_new =
            |one: &&&SituationDigest| !of_base.iter().any(|other| other.conditions == one.conditions);
        let only_new = of_new.iter().filter(is_new);
        unmatched.extend(only_new.map(|one| Unmatched { is_base: false, label: of_one(one), method: None }));
        if let Some(reference) = relative_to
            && !of_base
                .iter()
                .chain(&of_new)
                .any(|one| one.methods.iter().any(|(method, _)| method == reference))
        {
            return Err(format!("no run has the method '{reference}' that others are to be compared with"));
        }
        for (situation, change) in changes(pairs) {
            situations[situation].methods.push(change);
        }
        let crossings = crossing::changes(base, new);
        if situations.is_empty() && crossings.is_empty() {
            return Err("the two sides have no conditions in common: nothing can be compared".to_string());
        }
        Ok(Self {
            schema: SCHEMA_VERSION,
            base: Side::of(base),
            new: Side::of(new),
            relative_to: relative_to.map(str::to_string),
            noise_is_known: show_noise(base.len(), new.len()),
            environment: facts::changed(base.iter().map(|run| &run.facts), new.iter().map(|run| &run.facts)),
            warnings: warnings(base, new),
            situations,
            crossings,
            unmatched,
        })
    }
}

impl Side {
    fn of(runs: &[Digest]) -> Self {
        let started = runs.iter().map(|run| run.identity.started_unix_s);
        Self {
            files: runs.iter().map(|run| run.name.clone()).collect(),
            hosts: facts::values(runs.iter().map(|run| &run.facts), "host-name"),
            first_unix_s: started.clone().min().unwrap_or(0),
            last_unix_s: started.max().unwrap_or(0),
        }
    }
}

/// The situations of a side, each as its first run has it.
fn distinct(side: &[Digest]) -> Vec<&SituationDigest> {
    let mut known = HashSet::new();
    let all = side.iter().flat_map(|run| &run.situations);
    all.filter(|situation| known.insert(&situation.conditions)).collect()
}

fn in_runs<'a>(side: &'a [Digest], wanted: &SituationDigest) -> Vec<&'a SituationDigest> {
    let all = side.iter().flat_map(|run| &run.situations);
    all.filter(|situation| situation.conditions == wanted.conditions).collect()
}

fn methods<'a>(situations: &[&'a SituationDigest]) -> Vec<&'a str> {
    let methods = situations.iter().flat_map(|situation| &situation.methods);
    groups::distinct(methods.map(|(method, _)| method.as_str()))
}

fn warnings(base: &[Digest], new: &[Digest]) -> Vec<String> {
    let mut warnings = Vec::new();
    if !show_noise(base.len(), new.len()) {
        warnings.push(
            "the noise between runs is unknown: measure each side three times or more, and no interval here covers it until then"
                .to_string(),
        );
    }
    let started =
        |side: &[Digest]| -> Vec<u64> { side.iter().map(|run| run.identity.started_unix_s).collect() };
    let (then, now) = (started(base), started(new));
    let is_before = |first: &[u64], second: &[u64]| first.iter().max() < second.iter().min();
    if is_before(&then, &now) || is_before(&now, &then) {
        warnings.push(
            "one side was measured after the other: what changed on the machine in between counts as a change, so measure them in \
             turn"
            .to_string(),
        );
    }
    warnings.extend(base.iter().chain(new).flat_map(|run| run.doubts.iter().cloned()));
    warnings
}
