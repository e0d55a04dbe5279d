//! Names of situations, for a list of recommendations.

use pagewise_model::Workload;

use super::given::Recommendation;
use crate::judge::label::{shared, texts};

/// The situation of each recommendation: the work, and the conditions in which it differs from
/// others of that work.
pub fn situations<'a>(advice: impl Iterator<Item = &'a Recommendation> + Clone) -> Vec<String> {
    advice
        .clone()
        .map(|one| {
            let workload = |advice: &Recommendation| advice.conditions.conditions.workload();
            let alike = advice.clone().filter(|other| workload(other) == workload(one));
            let shared = shared(alike.map(|other| &other.conditions.conditions));
            let own = texts(&one.conditions.conditions, &[]);
            let own = own.into_iter().filter(|part| !shared.contains(part));
            let work = name(workload(one)).to_string();
            std::iter::once(work).chain(own).collect::<Vec<_>>().join(", ")
        })
        .collect()
}

fn name(workload: Workload) -> &'static str {
    match workload {
        Workload::RandomRead => "random reads",
        Workload::SequentialRead => "sequential reads",
        Workload::Scan => "scan",
        Workload::Append => "append",
        Workload::Fill => "fill",
        Workload::Replay => "replay",
    }
}
