//! A published study as data: its claims, how each is decided, and the defects of its method.

use std::collections::BTreeSet;

use pagewise_model::format::counted;
use pagewise_model::{Bytes, CacheState, DeviceCap, Environment, Numa, Role, Workload};
use serde::{Deserialize, Deserializer, Serialize};

use super::quantity::{Quantity, Unit};

/// A published study, without the plans that measure it again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Subject, machine and date of the published measurement.
    pub published: String,
    /// Claims, in the order of the study.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    /// Faults of its method.
    #[serde(rename = "defect", default)]
    pub defects: Vec<Defect>,
}

/// One claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Name, unique in the study.
    pub id: String,
    /// The claim in one sentence.
    pub says: String,
    /// The figures that were published for it.
    pub published: String,
    /// Tests; it holds if every one does.
    #[serde(rename = "test", default)]
    pub tests: Vec<Test>,
    /// Requirements on a machine that tests it.
    #[serde(default)]
    pub needs: Needs,
    /// Reason that no run can test it.
    #[serde(default)]
    pub untestable: Option<String>,
    /// Counters that explain what is found.
    #[serde(default)]
    pub because: Vec<Quantity>,
}

/// Requirements on a machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// CPUs.
    pub cpus: Option<u32>,
    /// NUMA nodes.
    pub numa_nodes: Option<u32>,
}

/// A quantity of some cells, alone or compared with that of others, and its bounds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// The run, by the name of its plan in the study.
    pub run: String,
    /// The quantity.
    pub quantity: Quantity,
    /// The cells.
    pub of: Cells,
    /// The quantity is divided by that of these cells.
    pub over: Option<Cells>,
    /// The quantity of these cells is subtracted.
    pub minus: Option<Cells>,
    /// Conditions of both.
    #[serde(default)]
    pub at: Cells,
    /// The least with which it holds.
    pub at_least: Option<f64>,
    /// The most.
    pub at_most: Option<f64>,
    /// The number of cases that must be within the bounds.
    #[serde(default)]
    pub cases: Cases,
}

/// Cases that must be within the bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cases {
    /// All of them.
    #[default]
    Every,
    /// Four of five.
    Most,
    /// One.
    Any,
}

/// Cells of a run, by method and conditions. A condition that is not named is the same on both
/// sides of a test; methods that are not named are those of the other side.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cells {
    /// Methods, each a case of its own; `*` stands for anything.
    pub each: Vec<String>,
    /// Methods of which the best one counts.
    pub best: Vec<String>,
    /// Methods that are left out.
    pub but: Vec<String>,
    /// Accesses and their order.
    pub workload: Option<Workload>,
    /// Page cache at the start.
    pub cache: Option<CacheState>,
    /// Threads.
    pub threads: Option<Vec<u32>>,
    /// Size of the data.
    pub data: Option<SizeRank>,
    /// Sizes of a record.
    #[serde(deserialize_with = "sizes")]
    pub record: Option<Vec<Bytes>>,
    /// Rate limit of the device, or `none`.
    #[serde(deserialize_with = "cap")]
    pub device: Option<Option<DeviceCap>>,
    /// Node of the pages, relative to the worker.
    pub numa: Option<Numa>,
    /// A method, or its control.
    pub role: Option<Role>,
}

/// A size among those of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeRank {
    /// The smallest one.
    Smallest,
    /// The largest one.
    Largest,
}

/// Something wrong with the method of the study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defect {
    /// The claims that rest on it.
    pub claims: Vec<String>,
    /// The fault.
    pub says: String,
    /// The figure of this run in its place.
    pub here: ShownQuantity,
}

/// A quantity that is shown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownQuantity {
    /// The run, by the name of its plan in the study.
    pub run: String,
    /// The quantity.
    pub quantity: Quantity,
    /// The cells.
    pub of: Cells,
}

fn sizes<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Vec<Bytes>>, D::Error> {
    let texts = Vec::<String>::deserialize(source)?;
    texts
        .iter()
        .map(|text| text.parse().map_err(serde::de::Error::custom))
        .collect::<Result<_, _>>()
        .map(Some)
}

fn cap<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Option<DeviceCap>>, D::Error> {
    match String::deserialize(source)?.as_str() {
        "none" => Ok(Some(None)),
        text => text.parse().map(|cap| Some(Some(cap))).map_err(serde::de::Error::custom),
    }
}

impl Needs {
    /// Requirements that a machine does not meet.
    pub fn lacking(&self, environment: &Environment) -> Option<String> {
        let Needs { cpus, numa_nodes } = self;
        let has = environment.cpus;
        if let Some(cpus) = cpus.filter(|cpus| has < *cpus) {
            return Some(format!(
                "it is about {cpus} threads that run at once, and this machine has {}",
                counted(u64::from(has), "CPU")
            ));
        }
        let has = environment.numa_nodes.unwrap_or(1);
        let needed = numa_nodes.filter(|needed| has < *needed)?;
        Some(format!("it is about {needed} NUMA nodes, and this machine has {has}"))
    }
}

impl Study {
    /// Requirements that a machine does not meet, of every claim that a run tests.
    pub fn lacking(&self, run: &str, environment: &Environment) -> Option<String> {
        let mut claims = self.claims.iter().filter(|claim| claim.tests.iter().any(|test| test.run == run));
        let first = claims.next()?.needs.lacking(environment)?;
        claims.all(|claim| claim.needs.lacking(environment).is_some()).then_some(first)
    }

    /// Check that every claim can be judged, with these runs.
    pub fn check(&self, runs: &[&str]) -> Result<(), String> {
        let mut ids = BTreeSet::new();
        for claim in &self.claims {
            if !ids.insert(&claim.id) {
                return Err(format!("the claim {} is there twice", claim.id));
            }
            if claim.tests.is_empty() != claim.untestable.is_some() {
                return Err(format!(
                    "the claim {} needs tests, or a reason that no run can test it",
                    claim.id
                ));
            }
            for test in &claim.tests {
                test.check(runs).map_err(|why| format!("in the claim {}: {why}", claim.id))?;
            }
        }
        for defect in &self.defects {
            if let Some(id) = defect.claims.iter().find(|id| !ids.contains(id)) {
                return Err(format!("a defect is one of the claim {id}, which is missing"));
            }
            known(&defect.here.run, runs)?;
        }
        Ok(())
    }
}

impl Test {
    fn check(&self, runs: &[&str]) -> Result<(), String> {
        known(&self.run, runs)?;
        if self.at_least.is_none() && self.at_most.is_none() {
            return Err("a test needs at_least or at_most".to_string());
        }
        if self.over.is_some() && self.minus.is_some() {
            return Err("a test has either 'over' or 'minus'".to_string());
        }
        if self.of.each.is_empty() == self.of.best.is_empty() {
            return Err("'of' needs methods: each = [...] or best = [...]".to_string());
        }
        if self.over.iter().chain(&self.minus).any(|side| !side.each.is_empty()) {
            return Err("'over' and 'minus' have best = [...], or the methods of 'of'".to_string());
        }
        let sides = [&self.of].into_iter().chain(&self.over).chain(&self.minus);
        let mut best = sides.map(|side| &side.best);
        let of_several = best.any(|best| best.len() > 1 || best.iter().any(|method| method.contains('*')));
        if of_several && self.quantity.definition().unit != Unit::Rate {
            return Err(
                "the best of several methods has the highest value, which suits a rate alone".to_string()
            );
        }
        let Cells { each, best, but, role, .. } = &self.at;
        if !each.is_empty() || !best.is_empty() || !but.is_empty() || role.is_some() {
            return Err("'at' has conditions alone".to_string());
        }
        Ok(())
    }
}

fn known(run: &str, runs: &[&str]) -> Result<(), String> {
    match runs.contains(&run) {
        true => Ok(()),
        false => Err(format!("there is no run '{run}': write one of {}", runs.join(", "))),
    }
}
