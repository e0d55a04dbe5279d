//! Methods of a plan of which it is known before a run that they are unavailable here.
//!
//! Nothing is built, and no file of the user is tried: options that a filesystem may refuse are
//! tried where pagewise would make files.

use std::path::Path;

use pagewise_host::probe::{self, Availability, Capability};
use pagewise_model::groups::distinct;
use pagewise_model::{Access, Method, MethodOption, Plan, Worker, WorkerChoices};
use serde::Serialize;

use crate::worker_door::{self, WorkerDoor};

/// A method that is unavailable, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingMethod {
    /// The method.
    pub method: String,
    /// The reason.
    pub reason: String,
}

/// The methods of a plan that are known to be unavailable here.
pub(super) fn all(plan: &Plan, choices: &WorkerChoices) -> Vec<MissingMethod> {
    let directory = plan.source.directory().map(Path::new);
    all_by(plan, |method| {
        let door = worker_door::of(method.worker().name(), worker_door::offered());
        reason(method, directory, door, choices)
    })
}

fn all_by(plan: &Plan, reason: impl Fn(&Method) -> Option<String>) -> Vec<MissingMethod> {
    let methods = distinct(plan.cells.iter().map(|cell| &cell.method));
    let missing =
        |method: &Method| Some(MissingMethod { method: method.to_string(), reason: reason(method)? });
    methods.into_iter().filter_map(missing).collect()
}

fn reason(
    method: &Method,
    directory: Option<&Path>,
    door: Option<&WorkerDoor>,
    choices: &WorkerChoices,
) -> Option<String> {
    if *method.worker() != Worker::Native {
        return refused(&(door?.capability)(method.worker().name(), choices));
    }
    let temporary = std::env::temp_dir();
    let of_ring = (method.access() == Access::Uring)
        .then(|| probe::probe_access(method.access(), directory.unwrap_or(&temporary)));
    let entry = |option: &MethodOption| {
        MethodOption::TABLE.iter().find(|entry| entry.option.usage() == option.usage())
    };
    // Huge pages may be refused in one attempt and not in the next.
    let tried = method.options().iter().filter(|option| **option != MethodOption::HugePage);
    let of_options = tried.filter_map(|option| probe::probe_option(entry(option)?, directory?));
    of_ring.into_iter().chain(of_options).find_map(|capability| refused(&capability))
}

/// The reason of a refusal; an attempt that could not be made shows nothing.
fn refused(capability: &Capability) -> Option<String> {
    match &capability.state {
        Availability::Unavailable { reason } => Some(reason.clone()),
        Availability::Available | Availability::Unknown { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Layer;
    use crate::plan::resolve::Variant;
    use crate::plan::resolve::tests::resolved;

    #[test]
    fn a_method_is_named_once_with_its_reason() {
        let plan = resolved("read", Variant::Quick, &Layer::default());
        let is_ring = |method: &Method| method.access() == Access::Uring;
        let missing = all_by(&plan, |method| is_ring(method).then(|| "no rings".to_string()));
        let methods: Vec<&str> = missing.iter().map(|one| one.method.as_str()).collect();
        assert!(methods.contains(&"uring:depth=32") && missing[0].reason == "no rings", "{missing:?}");
        let mut once = methods.clone();
        once.dedup();
        assert_eq!(once, methods);
        assert_eq!(all_by(&plan, |_| None), []);
    }

    #[test]
    fn what_could_not_be_tried_is_not_refused() {
        let of = |state| refused(&Capability { name: "O_DIRECT", state, detail: String::new() });
        let reason = || "no room".to_string();
        assert_eq!(of(Availability::Unknown { reason: reason() }), None);
        assert_eq!(of(Availability::Available), None);
        assert_eq!(of(Availability::Unavailable { reason: reason() }), Some(reason()));
    }
}
