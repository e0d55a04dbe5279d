//! Workers that are offered, named, or neither.

use std::sync::LazyLock;

use super::*;

/// Nothing chosen of workers.
pub fn no_workers() -> &'static WorkerChoices {
    static NONE: LazyLock<WorkerChoices> = LazyLock::new(WorkerChoices::default);
    &NONE
}

/// Workers in other languages, none of which is found.
pub const OFFERED: &[WorkerDoor] = &[WorkerDoor {
    names: &["jvm", "go", "python"],
    options: &[],
    ready: |_, _, _| Err("no toolchain".into()),
    capability: |_, _| unreachable!("nothing is examined"),
    sweep: Vec::new,
}];

#[test]
fn a_worker_that_nobody_named_is_refused() {
    assert_eq!(
        refused("workload = \"random-read\"\nmethods = \"mine/get\""),
        "no worker is called 'mine': there are native, jvm, go and python; name the command of your own with --worker mine=COMMAND"
    );
    let plan = resolve_text("workload = \"random-read\"\nmethods = [\"go/pread\", \"pread\"]", dataset());
    let workers: Vec<String> = plan.expect("plan").workers().iter().map(ToString::to_string).collect();
    assert_eq!(workers, ["native", "go"]);
}

#[test]
fn a_worker_that_no_extra_offers_is_refused() {
    let environment = environment();
    let refused = |method: &str| {
        let text = format!("workload = \"random-read\"\nmethods = [\"pread\", \"{method}\"]");
        let text = text::parse("test", &text).expect("a plan");
        let machine = Machine { offered: &[], ..machine(&environment) };
        let resolved = resolve(&text, Variant::Standard, &Layer::default(), dataset(), &machine);
        resolved.expect_err(method).to_string()
    };
    for method in ["go/pread", "golang/pread"] {
        let sentence = "this build of pagewise is without the worker go: leave its methods out";
        assert_eq!(refused(method), sentence);
    }
    assert_eq!(
        refused("mine/get"),
        "no worker is called 'mine': there is native; name the command of your own with --worker mine=COMMAND"
    );
}
