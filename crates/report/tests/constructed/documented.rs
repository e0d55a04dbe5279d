//! Every constructed run, and the document that a back end makes of one.

use pagewise_analysis::judge;
use pagewise_model::run::Run;
use pagewise_report::judged_run::JudgedRun;

use super::constructed;

/// Every constructed run, by name.
pub fn all() -> Vec<(&'static str, Run)> {
    vec![
        ("complete", constructed::complete()),
        ("killed", constructed::killed()),
        ("unclear", constructed::unclear()),
        ("settings", constructed::settings()),
        ("scan", constructed::scan()),
        ("append", constructed::append()),
        ("some", constructed::part(constructed::append(), &["mmap", "uring:depth=8"])),
        ("log", constructed::log()),
        ("fill", constructed::fill()),
        ("workers", constructed::workers()),
        ("method_tables", constructed::method_tables()),
        ("empty", empty()),
    ]
}

/// The document of a run.
pub fn document(
    run: &Run,
    write: fn(&mut dyn std::io::Write, &[JudgedRun<'_>]) -> std::io::Result<()>,
) -> String {
    let judged = judge(run);
    let mut out = Vec::new();
    write(&mut out, &[JudgedRun::of("run.jsonl", run, &judged)]).expect("memory");
    String::from_utf8(out).expect("text")
}

/// A run that was stopped before its first sample.
fn empty() -> Run {
    let mut run = constructed::complete();
    run.samples.clear();
    run.elapsed_ns = None;
    run
}
