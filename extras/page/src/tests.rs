//! Pages and plots of constructed runs.

#[path = "../../../crates/report/tests/constructed/mod.rs"]
mod constructed;
mod document;
#[path = "../../../crates/report/tests/constructed/documented.rs"]
mod documented;
mod page;
mod plots;
mod scripts;
mod well_formed;

use constructed::hostile;
use documented::document;
use pagewise_model::run::Run;
use pagewise_report::curves_door;

/// Every constructed run, by name, those that are answered as a whole among them.
fn all() -> Vec<(&'static str, Run)> {
    curves_door::offer(&[pagewise_curves::CURVES]);
    let mut runs = documented::all();
    let recorded = include_bytes!("../../../crates/fuzz/corpus/run-files/cliff.jsonl");
    runs.push(("cliff", Run::parse(recorded).expect("a run file")));
    runs
}
