//! Warnings of constructed runs, in their order.

use pagewise_analysis::judge;
use pagewise_analysis::judge::UnlikeItself;
use pagewise_model::{Failure, FailureKind, Outcome};
use pagewise_report::words::warnings::all;

use crate::constructed;

/// A whole run on a machine that is warned of.
fn run() -> pagewise_model::run::Run {
    let mut run = constructed::complete();
    run.header.environment.warnings = vec!["readahead is large".into()];
    run
}

#[test]
fn a_control_that_differs_comes_before_what_is_general() {
    let mut judged = judge(&run());
    let is_reported =
        |warning: &String| warning.starts_with("two series of pread differ by 25 %, more than chance");
    assert!(!all(&judged).iter().any(is_reported));
    judged.unlike_itself = Some(UnlikeItself { method: "pread".into(), by: 0.25 });
    let warnings = all(&judged);
    let [.., unlike, last] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(is_reported(unlike), "{warnings:?}");
    assert_eq!(last, "readahead is large", "what is general comes last");
}

#[test]
fn a_file_that_changed_is_the_first_warning() {
    let mut run = run();
    let taken = run.samples.iter_mut().find_map(|sample| match &mut sample.outcome {
        Outcome::Taken { failures, .. } => Some(failures),
        _ => None,
    });
    let detail = "f.bin was written to during the run".into();
    taken.expect("a sample").push(Failure { kind: FailureKind::FileChanged, detail });
    let first = all(&judge(&run)).remove(0);
    assert_eq!(first, "f.bin was written to during the run: no sample after that is valid");
}

#[test]
fn a_run_that_ended_early_or_had_another_worker_says_so() {
    let mut run = run();
    run.elapsed_ns = None;
    run.resumptions = 1;
    run.samples.truncate(5);
    run.header.worker_command = Some("cheat".into());
    let warnings = all(&judge(&run));
    assert!(warnings[0].contains("'cheat'"), "{warnings:?}");
    let planned = run.header.plan.first_samples();
    assert_eq!(warnings[1], format!("the run is not complete: 5 of {planned} planned samples so far"));
    assert_eq!(warnings[2], "the run was interrupted and resumed once");
}
