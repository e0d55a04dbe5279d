//! The identity of a run, by which two copies of its file are known as one.

use std::collections::BTreeMap;

use crate::run::{Header, Run};

/// Facts that two copies of a run file share and two runs do not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunIdentity {
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// `uname -n`.
    pub host_name: Option<String>,
    /// The question or plan.
    pub question: String,
    /// Seed of everything drawn at random.
    pub seed: u64,
}

impl RunIdentity {
    /// Identity of a run.
    pub fn of(run: &Run) -> Self {
        let Header { environment, plan, .. } = &run.header;
        Self {
            started_unix_s: environment.started_unix_s,
            host_name: environment.host_name.clone(),
            question: plan.question.clone(),
            seed: plan.seed,
        }
    }
}

/// An error if a run is named twice, by its name or that of a copy: it would pass for two that
/// agree.
pub fn refuse_twice<'a>(runs: impl Iterator<Item = (&'a str, RunIdentity)>) -> Result<(), String> {
    let mut known: BTreeMap<RunIdentity, &str> = BTreeMap::new();
    for (name, identity) in runs {
        let Some(first) = known.insert(identity, name) else { continue };
        return Err(match first == name {
            true => format!("{first} is named twice: name each run once"),
            false => format!("{first} and {name} are the same run: name each run once"),
        });
    }
    Ok(())
}
