//! The advice of one situation on two sides.

use serde::Serialize;

use super::digest::SituationDigest;

/// The advice of both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ChangedAdvice {
    /// Methods that runs of the first side advise, the most frequent first.
    pub base: Vec<Advised>,
    /// Methods that runs of the second side advise.
    pub new: Vec<Advised>,
    /// The finding.
    pub finding: AdviceFinding,
}

/// A method and the number of runs that advise it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Advised {
    /// The method; `None`: no advice.
    pub method: Option<String>,
    /// Runs that advise it.
    pub runs: usize,
}

/// Finding from the advice of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdviceFinding {
    /// Most runs of both sides advise the same method.
    Same,
    /// The method that most runs of the first side advise is behind in most runs of the second,
    /// which advise another.
    Changed,
    /// The sides differ, and the first side's method is not behind for certain.
    Open,
    /// A side has no run with advice.
    NoAdvice,
}

impl ChangedAdvice {
    pub(super) fn of(base: &[&SituationDigest], new: &[&SituationDigest]) -> Self {
        let (advised, advised_now) = (advised(base), advised(new));
        let is_behind =
            |method: &str| new.iter().filter(|one| one.behind.iter().any(|other| other == method)).count();
        let finding = match (usual(&advised, base.len()), usual(&advised_now, new.len())) {
            _ if [&advised, &advised_now]
                .into_iter()
                .any(|side| side.iter().all(|one| one.method.is_none())) =>
            {
                AdviceFinding::NoAdvice
            }
            (Some(then), Some(now)) if then == now => AdviceFinding::Same,
            (Some(then), Some(_)) if is_behind(then) * 2 > new.len() => AdviceFinding::Changed,
            _ => AdviceFinding::Open,
        };
        Self { base: advised, new: advised_now, finding }
    }
}

pub(super) fn advised(side: &[&SituationDigest]) -> Vec<Advised> {
    let mut all: Vec<Advised> = Vec::new();
    for situation in side {
        match all.iter_mut().find(|known| known.method == situation.recommended) {
            Some(known) => known.runs += 1,
            None => all.push(Advised { method: situation.recommended.clone(), runs: 1 }),
        }
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.runs));
    all
}

/// The method that more than half of the runs advise.
fn usual(advised: &[Advised], runs: usize) -> Option<&str> {
    advised.first().filter(|first| first.runs * 2 > runs)?.method.as_deref()
}
