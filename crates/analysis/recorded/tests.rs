//! The checks, applied to recorded evidence of real samples.
//!
//! `caught` holds what a cheat, an outsider or a disturbance left, `honest` what honest workers
//! did. A file has the cell, the worker's measurement, the supervisor's evidence, the context of
//! the checks, and the checks that fail. docs/development.md says how they were recorded.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pagewise_model::sample::Measurement;
use pagewise_model::{Cell, CheckContext, Evidence};
use serde::Deserialize;

use super::failures;

#[derive(Deserialize)]
struct Recorded {
    title: String,
    cell: Cell,
    measurement: Measurement,
    evidence: Evidence,
    context: CheckContext,
    found: BTreeSet<String>,
}

/// Every file of a folder, in the order of names.
fn recorded(folder: &str) -> Vec<(PathBuf, Recorded)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort_unstable();
    let read = |path: PathBuf| {
        let text = fs::read(&path).expect("read");
        let recorded = serde_json::from_slice(&text);
        let recorded = recorded.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, recorded)
    };
    paths.into_iter().map(read).collect()
}

/// The checks that fail, as they were found when it was recorded.
#[track_caller]
fn expect_as_recorded(path: &Path, recorded: &Recorded) {
    let Recorded { title, cell, measurement, evidence, context, found } = recorded;
    let failures = failures(cell, measurement, evidence, context);
    let now: BTreeSet<String> = failures.iter().map(|failure| failure.kind.name().to_string()).collect();
    assert_eq!(&now, found, "{title} ({}): {failures:?}", path.display());
}

#[test]
fn each_recorded_cheat_and_disturbance_is_caught_by_its_checks() {
    for (path, recorded) in recorded("caught") {
        assert!(!recorded.found.is_empty(), "{}", path.display());
        expect_as_recorded(&path, &recorded);
    }
}

#[test]
fn no_recorded_honest_sample_is_accused() {
    for (path, recorded) in recorded("honest") {
        assert!(recorded.found.is_empty(), "{}", path.display());
        expect_as_recorded(&path, &recorded);
    }
}
