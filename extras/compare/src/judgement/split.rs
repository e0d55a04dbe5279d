//! Many runs by a fact of the machines: which method is advised where, which fact explains that
//! they disagree, and how fast each method is with each value.

use std::collections::{BTreeMap, BTreeSet};

use pagewise_analysis::facts::Facts;
use pagewise_analysis::judge::FigureKind;
use pagewise_analysis::judge::label::{LabelPart, label_without};
use pagewise_analysis::statistics::median;
use pagewise_model::groups;
use pagewise_model::run::SCHEMA_VERSION;
use pagewise_model::run_identity::refuse_twice;
use serde::Serialize;

use super::advice::{Advised, advised};
use super::change::{Change, Pair, Series, changes};
use super::digest::{Digest, SituationDigest};
use super::facts;
use super::missing::MissingRun;

/// The most facts that explain a disagreement.
const MOST_EXPLANATIONS: usize = 3;

/// The most values by which figures are compared.
const MOST_VALUES: usize = 20;

/// Runs by the values of a fact.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Split {
    /// Version of this JSON.
    pub schema: u32,
    /// The fact.
    pub fact: String,
    /// Values.
    pub values: Vec<ValueOfFact>,
    /// Every situation of any run. Sizes of files do not distinguish them, since they follow from
    /// the machine's memory.
    pub situations: Vec<SplitSituation>,
    /// Values and files without a run that counts, if values were expected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingRun>,
    /// Cautions before the numbers, one sentence each.
    pub warnings: Vec<String>,
}

/// A value of a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ValueOfFact {
    /// The value.
    pub value: String,
    /// Runs that have it.
    pub runs: usize,
    /// Hosts of those runs.
    pub hosts: usize,
}

/// A situation by the values of a fact.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SplitSituation {
    /// The conditions.
    pub label: String,
    /// Advice of the runs with each value; a value without such a run is left out.
    pub by_value: Vec<AdviceOfValue>,
    /// True if all runs that advise a method advise the same.
    pub agree: bool,
    /// Facts that explain who advises what, the best first; empty if they agree, or if no fact
    /// explains anything.
    pub explained_by: Vec<Explanation>,
    /// The figure that methods are ranked by.
    pub figure: FigureKind,
    /// Each method with each value; empty where figures are not compared.
    pub methods: Vec<MethodOfValue>,
    /// Reason that figures are not compared; `None` if they are.
    pub not_compared: Option<String>,
}

/// A method in the runs with one value of a fact.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MethodOfValue {
    /// The method.
    pub method: String,
    /// The value.
    pub value: String,
    /// Runs that have a figure.
    pub runs: usize,
    /// Geometric mean of the figures of these runs, in the unit of the situation; `None` without
    /// one. The ratio of a change is that of two of them.
    pub mean: Option<f64>,
    /// Median of the figures.
    pub median: Option<f64>,
    /// The least of them.
    pub least: Option<f64>,
    /// The most.
    pub most: Option<f64>,
    /// The change from the first value that the situation has; `None` for that value.
    pub change: Option<Change>,
}

/// Advice of the runs with one value of a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct AdviceOfValue {
    /// The value.
    pub value: String,
    /// Methods, the most frequent first.
    pub advised: Vec<Advised>,
}

/// The extent to which a fact explains a disagreement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Explanation {
    /// The fact.
    pub fact: String,
    /// Runs that advise what most runs with the same value advise.
    pub explained: usize,
    /// Runs with advice.
    pub runs: usize,
    /// The method that most runs with each value advise.
    pub values: Vec<(String, String)>,
}

impl Split {
    /// Runs by a fact. An error says in one sentence why not.
    pub fn by(fact: &str, runs: &[Digest]) -> Result<Self, String> {
        refuse_twice(runs.iter().map(Digest::named))?;
        let Some(name) = facts::named(fact, runs.iter().map(|run| &run.facts)) else {
            let known: BTreeSet<&str> =
                runs.iter().flat_map(|run| run.facts.keys()).map(String::as_str).collect();
            let known: Vec<&str> = known.into_iter().collect();
            return Err(format!("no run has the fact '{fact}': the facts are {}", known.join(", ")));
        };
        let mut values: BTreeMap<&str, Vec<&Digest>> = BTreeMap::new();
        for run in runs {
            values.entry(facts::value(&run.facts, &name)).or_default().push(run);
        }
        let mut situations: Vec<(String, Vec<Chosen<'_>>)> = Vec::new();
        for run in runs {
            for situation in &run.situations {
                let label = label_without(&situation.conditions, &[LabelPart::Size]);
                groups::add(&mut situations, label, Chosen { facts: &run.facts, situation });
            }
        }
        let mut split: Vec<SplitSituation> = situations
            .iter()
            .map(|(label, all)| SplitSituation::of(label.clone(), &name, values.len(), all))
            .collect();
        add_figures(&mut split, &name, &situations);
        Ok(Self {
            schema: SCHEMA_VERSION,
            values: values.iter().map(|(value, runs)| ValueOfFact::of(value, runs)).collect(),
            situations: split,
            missing: Vec::new(),
            warnings: runs.iter().flat_map(|run| run.doubts.iter().cloned()).collect(),
            fact: name,
        })
    }
}

impl ValueOfFact {
    fn of(value: &str, runs: &[&Digest]) -> Self {
        let hosts: BTreeSet<&str> = runs.iter().map(|run| facts::value(&run.facts, "host-name")).collect();
        Self { value: value.to_string(), runs: runs.len(), hosts: hosts.len() }
    }
}

/// A situation with the facts of its run.
struct Chosen<'a> {
    facts: &'a Facts,
    situation: &'a SituationDigest,
}

impl SplitSituation {
    fn of(label: String, fact: &str, values: usize, all: &[Chosen<'_>]) -> Self {
        let by_value = by_value(fact, all.iter()).into_iter();
        let by_value: Vec<AdviceOfValue> = by_value
            .map(|(value, situations)| AdviceOfValue {
                value: value.to_string(),
                advised: advised(&situations),
            })
            .collect();
        let methods: BTreeSet<&str> = all.iter().filter_map(Chosen::method).collect();
        let agree = methods.len() <= 1;
        let explained_by = if agree { Vec::new() } else { explanations(all) };
        let first = all[0].situation;
        let label = first.label_in(&label, all.iter().map(|one| one.situation));
        let not_compared = match by_value.len() {
            1 if values == 1 => Some(format!("all runs have the same {fact}")),
            1 => Some(format!("only runs with {fact} {} have these conditions", by_value[0].value)),
            ..=MOST_VALUES if all.iter().any(|one| one.situation.conditions != first.conditions) => {
                Some("the files have different sizes".to_string())
            }
            ..=MOST_VALUES => None,
            values => Some(format!("the fact has {values} values, and at most {MOST_VALUES} are compared")),
        };
        Self { label, by_value, agree, explained_by, figure: first.kind, methods: Vec::new(), not_compared }
    }
}

/// Add the figures of each method with each value. All intervals hold together.
fn add_figures(split: &mut [SplitSituation], fact: &str, situations: &[(String, Vec<Chosen<'_>>)]) {
    // The row of each pair, in the same order.
    let (mut pairs, mut rows) = (Vec::new(), Vec::new());
    for (index, (situation, (_, all))) in split.iter_mut().zip(situations).enumerate() {
        if situation.not_compared.is_some() {
            continue;
        }
        let values = by_value(fact, all.iter());
        let methods = all.iter().flat_map(|one| &one.situation.methods);
        for method in groups::distinct(methods.map(|(method, _)| method.as_str())) {
            let mut first = None;
            for (value, runs) in &values {
                let series = Series::of(runs.iter().copied(), method, None);
                situation.methods.push(MethodOfValue::of(method, value, &series));
                match &first {
                    None => first = Some(series),
                    Some(first) => {
                        rows.push(situation.methods.len() - 1);
                        pairs.push(Pair {
                            situation: index,
                            method: method.to_string(),
                            kind: situation.figure,
                            base: first.clone(),
                            new: series,
                            is_relative: false,
                        });
                    }
                }
            }
        }
    }
    for (row, (situation, change)) in rows.into_iter().zip(changes(pairs)) {
        split[situation].methods[row].change = Some(change);
    }
}

impl MethodOfValue {
    fn of(method: &str, value: &str, series: &Series) -> Self {
        let figures = series.medians();
        let end = |pick: fn(f64, f64) -> f64| figures.iter().copied().reduce(pick);
        Self {
            method: method.to_string(),
            value: value.to_string(),
            runs: figures.len(),
            mean: series.shown(),
            median: median(&figures),
            least: end(f64::min),
            most: end(f64::max),
            change: None,
        }
    }
}

impl<'a> Chosen<'a> {
    fn method(&self) -> Option<&'a str> {
        self.situation.recommended.as_deref()
    }
}

fn by_value<'a>(
    fact: &str,
    all: impl Iterator<Item = &'a Chosen<'a>>,
) -> BTreeMap<&'a str, Vec<&'a SituationDigest>> {
    let mut values: BTreeMap<&str, Vec<&SituationDigest>> = BTreeMap::new();
    for chosen in all {
        values.entry(facts::value(chosen.facts, fact)).or_default().push(chosen.situation);
    }
    values
}

/// The facts that explain more runs than no fact does. A fact that distinguishes nearly every run
/// from every other explains nothing.
fn explanations(all: &[Chosen<'_>]) -> Vec<Explanation> {
    let with_advice: Vec<&Chosen<'_>> = all.iter().filter(|chosen| chosen.method().is_some()).collect();
    let usual = |situations: &[&SituationDigest]| -> Option<(String, usize)> {
        let first = advised(situations).into_iter().find(|one| one.method.is_some())?;
        Some((first.method?, first.runs))
    };
    let situations: Vec<&SituationDigest> = with_advice.iter().map(|chosen| chosen.situation).collect();
    let without = usual(&situations).map_or(0, |(_, runs)| runs);
    let names: BTreeSet<&String> = with_advice.iter().flat_map(|chosen| chosen.facts.keys()).collect();
    let of = |name: &String| {
        let values = by_value(name, with_advice.iter().copied());
        let splits = values.len() > 1 && values.len() * 2 <= with_advice.len();
        let usual: Vec<(String, (String, usize))> =
            values.into_iter().filter_map(|(value, all)| Some((value.to_string(), usual(&all)?))).collect();
        let explained = usual.iter().map(|(_, (_, runs))| runs).sum();
        (splits && explained > without).then(|| Explanation {
            fact: name.clone(),
            explained,
            runs: with_advice.len(),
            values: usual.into_iter().map(|(value, (method, _))| (value, method)).collect(),
        })
    };
    let mut found: Vec<Explanation> = names.into_iter().filter_map(of).collect();
    found.sort_by_key(|one| (std::cmp::Reverse(one.explained), one.values.len()));
    found.truncate(MOST_EXPLANATIONS);
    found
}
