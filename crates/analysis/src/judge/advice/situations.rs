//! Names of situations, for a list of recommendations.

use pagewise_model::Workload;

use super::given::Recommendation;

/// The situation of each recommendation: the work, and the conditions in which it differs from others of that work.
pub fn situations(advice: &[Recommendation]) -> Vec<String> {
    advice
        .iter()
        .map(|one| {
            let workload = |advice: &Recommendation| advice.conditions.conditions.workload();
            let alike = advice.iter().filter(|other| workload(other) == workload(one));
            let own = distinguishing(one, &alike.collect::<Vec<_>>());
            let work = name(workload(one));
            if own.is_empty() { work.to_string() } else { format!("{work}, {own}") }
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
    }
}

/// The parts of its label that not all of these have.
fn distinguishing(one: &Recommendation, alike: &[&Recommendation]) -> String {
    let has = |other: &Recommendation, part: &str| other.conditions.label.split(" · ").any(|own| own == part);
    let parts = one.conditions.label.split(" · ");
    let own = parts.filter(|part| !alike.iter().all(|other| has(other, part)));
    own.collect::<Vec<_>>().join(", ")
}
