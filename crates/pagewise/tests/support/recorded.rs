//! Evidence of real samples, kept as fixtures for the unit tests of the checks
//! (`crates/analysis/recorded`).
//!
//! `PAGEWISE_RECORD_EVIDENCE=DIRECTORY` keeps there one sample for each worker or test, method and
//! cache state that a check failed, and one that none did, in the folders `caught` and `honest`.
//! Whoever records chooses the ones that show what they are named for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pagewise_model::run::Run;
use pagewise_model::{Cell, Outcome, Role};
use serde_json::{Value, json};

/// Keeps what a run shows, if the environment asks for it.
pub fn keep(run: &Run) {
    let Some(directory) = std::env::var_os("PAGEWISE_RECORD_EVIDENCE") else { return };
    for (index, sample) in run.samples.iter().enumerate() {
        let cell = run.header.plan.cells.iter().find(|cell| cell.id() == sample.cell);
        let Some(cell) = cell.filter(|cell| cell.role != Role::Ceiling) else { continue };
        let (Outcome::Taken { measurement, evidence, failures }, Some(context)) =
            (&sample.outcome, run.check_context(index))
        else {
            continue;
        };
        let found: BTreeSet<&str> = failures.iter().map(|failure| failure.kind.name()).collect();
        let folder = Path::new(&directory).join(if found.is_empty() { "honest" } else { "caught" });
        let path = folder.join(format!("{}.json", name_of(run, cell)));
        if !path.exists() {
            fs::create_dir_all(folder).expect("a folder");
            let parts = [
                ("title", json!(title_of(run, cell))),
                ("cell", without_nulls(json!(cell))),
                ("measurement", without_nulls(json!(measurement))),
                ("evidence", without_nulls(json!(evidence))),
                ("context", without_nulls(json!(context))),
                ("found", json!(found)),
            ];
            let lines: Vec<String> = parts.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
            fs::write(path, format!("{{\n{}\n}}\n", lines.join(",\n"))).expect("write");
        }
    }
}

/// The misbehaviour that a worker was asked for, or the name of the test.
fn source_of(run: &Run) -> String {
    let own = run.header.plan.workers.commands.values().next();
    match run.header.worker_command.as_ref().or(own).and_then(|command| command.rsplit(' ').next()) {
        Some(kind) if !kind.contains('/') => kind.to_string(),
        _ => {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("main");
            test.rsplit("::").next().unwrap_or(test).replace('_', "-")
        }
    }
}

fn title_of(run: &Run, cell: &Cell) -> String {
    format!("{}: {} {} ({})", source_of(run), cell.conditions.workload(), cell.method, cell.conditions.cache)
}

fn name_of(run: &Run, cell: &Cell) -> String {
    let name = format!("{}--{}--{}", source_of(run), cell.method, cell.conditions.cache);
    name.replace(['/', ':', '='], "-")
}

/// Fields that are unknown are left out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let known = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(known.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        other => other,
    }
}
