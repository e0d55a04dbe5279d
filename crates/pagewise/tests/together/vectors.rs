//! Every shipped worker makes the same of the seeds and times in `workers/vectors.json`. (The
//! native one in `crates/engine/src/sampling/vectors.rs`.)

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::needs::ready;

fn workers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workers").canonicalize().expect("the workers")
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_worker_in_go_reproduces_the_vectors() {
    let Some(ready) = ready("go") else { return };
    let mut go = Command::new(&ready.toolchain);
    // Built as the worker is, so that the packages that it needs are compiled once.
    go.args(["test", "-trimpath", "-count=1", "."]).current_dir(workers().join("go"));
    succeeds(go.env("GOWORK", "off").env("CGO_ENABLED", "0").env("GO111MODULE", "on"));
}

#[test]
fn the_worker_in_java_reproduces_the_vectors() {
    let Some(ready) = ready("jvm") else { return };
    let classes = tempfile::tempdir().expect("a folder");
    let sources = std::fs::read_dir(workers().join("jvm/pagewise")).expect("the folder");
    let mut javac = Command::new(ready.toolchain.with_file_name("javac"));
    javac.arg("-d").arg(classes.path()).args(sources.map(|entry| entry.expect("an entry").path()));
    succeeds(javac.arg(workers().join("jvm/tests/Vectors.java")));
    let mut java = Command::new(&ready.toolchain);
    succeeds(java.arg("-cp").arg(classes.path()).arg("pagewise.Vectors").arg(workers().join("vectors.json")));
}

#[test]
fn the_worker_in_python_reproduces_the_vectors() {
    let Some(ready) = ready("python") else { return };
    let mut python = Command::new(&ready.toolchain);
    python.args(["-B", "vectors.py", "../vectors.json"]).current_dir(workers().join("python"));
    succeeds(&mut python);
}
