//! Every shipped worker makes the same of the seeds and times in `workers/vectors.json`. (The
//! native one in `crates/engine/src/sampling/vectors.rs`.)

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::skipped;
use pagewise_host::toolchain::{self, Found, Language};
use pagewise_model::WorkerChoices;

fn workers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workers").canonicalize().expect("the workers")
}

fn found(language: Language) -> Option<Found> {
    let found = toolchain::find(language, &WorkerChoices::default());
    found.inspect_err(|reason| skipped(language.name(), &reason.to_string())).ok()
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_worker_in_go_reproduces_the_vectors() {
    let Some(found) = found(Language::Go) else { return };
    let mut go = Command::new(&found.program);
    // Built as the worker is, so that the packages that it needs are compiled once.
    go.args(["test", "-trimpath", "-count=1", "."]).current_dir(workers().join("go"));
    succeeds(go.env("GOWORK", "off").env("CGO_ENABLED", "0").env("GO111MODULE", "on"));
}

#[test]
fn the_worker_in_java_reproduces_the_vectors() {
    let Some(found) = found(Language::Jvm) else { return };
    let classes = tempfile::tempdir().expect("a folder");
    let sources = std::fs::read_dir(workers().join("jvm/pagewise")).expect("the folder");
    let mut javac = Command::new(found.home.join("bin/javac"));
    javac.arg("-d").arg(classes.path()).args(sources.map(|entry| entry.expect("an entry").path()));
    succeeds(javac.arg(workers().join("jvm/tests/Vectors.java")));
    let mut java = Command::new(&found.program);
    succeeds(java.arg("-cp").arg(classes.path()).arg("pagewise.Vectors").arg(workers().join("vectors.json")));
}

#[test]
fn the_worker_in_python_reproduces_the_vectors() {
    let Some(found) = found(Language::Python) else { return };
    let mut python = Command::new(&found.program);
    python.args(["-B", "vectors.py", "../vectors.json"]).current_dir(workers().join("python"));
    succeeds(&mut python);
}
