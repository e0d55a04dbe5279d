//! What holds between the crates and in every source file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which crate may see which (normal dependencies; tests may see more).
const ARROWS: &[(&str, &[&str])] = &[
    ("pagewise", &["report", "analysis", "host", "engine", "model", "sys"]),
    ("report", &["analysis", "model"]),
    ("analysis", &["model"]),
    ("engine", &["sys", "model"]),
    ("host", &["sys", "model"]),
    ("fuzz", &["model"]),
    ("model", &[]),
    ("sys", &[]),
];

/// Longer files have two subjects.
const MAX_LINES: usize = 600;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = ["util", "utils", "common", "helper", "helpers", "manager", "misc", "stuff"];

/// What is left standing when work was not finished. Written in pieces, so that this file does not hold them.
const UNFINISHED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("dbg", "!("),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Files of the repository with this ending, and their text.
fn files(ending: &str) -> BTreeMap<PathBuf, String> {
    fn collect(directory: &Path, ending: &str, found: &mut BTreeMap<PathBuf, String>) {
        for entry in fs::read_dir(directory).expect("list").flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || name == "target" {
                continue;
            }
            if entry.file_type().expect("type").is_dir() {
                collect(&path, ending, found);
            } else if name.ends_with(ending) {
                let text =
                    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                found.insert(path, text);
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(&root(), ending, &mut found);
    assert!(!found.is_empty());
    found
}

#[test]
fn crates_see_only_what_the_design_says() {
    let crates: BTreeSet<String> = fs::read_dir(root().join("crates"))
        .expect("list")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    let known: BTreeSet<String> = ARROWS.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(crates, known, "a crate without arrows");
    for (name, allowed) in ARROWS {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).expect("manifest");
        let manifest: toml::Table = text.parse().expect("toml");
        let seen = |section: &str| -> BTreeSet<String> {
            let table = manifest.get(section).and_then(toml::Value::as_table);
            let names = table.into_iter().flat_map(toml::Table::keys);
            names.filter_map(|name| name.strip_prefix("pagewise-")).map(str::to_string).collect()
        };
        for section in ["dependencies", "build-dependencies"] {
            for other in seen(section) {
                assert!(allowed.contains(&&*other), "{name} must not depend on {other}");
            }
        }
        assert!(manifest.get("target").is_none(), "{name}: arrows hold for all targets alike");
    }
}

#[test]
fn the_words_know_no_machine() {
    // model, analysis and report are pure: no file, no clock, no process.
    let machine = ["std::fs", "std::process", "std::net", "std::env", "std::time", "rustix"];
    for (path, text) in files(".rs") {
        let pure = ["crates/model/src", "crates/analysis/src", "crates/report/src"]
            .iter()
            .any(|directory| path.starts_with(root().join(directory)));
        for word in machine.iter().filter(|_| pure) {
            assert!(!text.contains(word), "{} uses {word}", path.display());
        }
    }
}

#[test]
fn unsafe_code_is_in_sys_only() {
    let allowed = [root().join("crates/sys"), root().join("bench")];
    for (path, text) in files(".rs") {
        if allowed.iter().any(|directory| path.starts_with(directory)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let found = [concat!("un", "safe {"), concat!("un", "safe fn"), concat!("un", "safe impl")]
                .iter()
                .any(|block| code.contains(block));
            assert!(!found, "{}:{}: {line}", path.display(), index + 1);
            assert!(
                !code.contains(concat!("allow(un", "safe_code)")),
                "{}:{}: {line}",
                path.display(),
                index + 1
            );
        }
    }
}

#[test]
fn unsafe_code_is_denied_elsewhere() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("manifest");
    assert!(manifest.contains("unsafe_code = \"deny\""), "the workspace denies unsafe code");
    for (name, _) in ARROWS {
        let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect("manifest");
        assert!(
            text.contains("[lints]\nworkspace = true") || *name == "sys",
            "{name} takes the workspace's lints"
        );
    }
}

#[test]
fn every_unsafe_block_says_why_it_holds() {
    for (path, text) in files(".rs") {
        if !path.starts_with(root().join("crates/sys/src")) {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if !code.contains(concat!("un", "safe {")) && !code.contains(concat!("un", "safe impl")) {
                continue;
            }
            let above = &lines[index.saturating_sub(6)..index];
            assert!(
                above.iter().any(|line| line.trim_start().starts_with("// SAFETY:")),
                "{}:{}: no SAFETY line above {line}",
                path.display(),
                index + 1
            );
        }
    }
}

#[test]
fn a_file_has_one_subject_and_a_name_that_says_it() {
    for (path, text) in files(".rs") {
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines, more than {MAX_LINES}", path.display());
        let within = path.strip_prefix(root()).expect("within the repository");
        for part in within.iter() {
            let part = part.to_string_lossy();
            let name = part.split('.').next().unwrap_or_default();
            assert!(!EMPTY_NAMES.contains(&name), "{}: '{name}' says nothing", within.display());
        }
        assert!(text.starts_with("//!"), "{} does not say what it is for", within.display());
    }
}

/// The code of a file, without its tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

#[test]
fn one_room_prints() {
    // Anywhere else a broken pipe would be a panic, and an escape sequence in a name would reach the terminal.
    let room = root().join("crates/pagewise/src/output");
    let ways = [
        concat!("print", "ln!("),
        concat!("print", "!("),
        concat!("io::std", "out("),
        concat!("io::std", "err("),
        concat!("use std::io::{std", "out"),
        concat!("ProgressDraw", "Target"),
    ];
    let mut rooms = 0;
    for (path, text) in files(".rs") {
        let is_source = path.strip_prefix(root().join("crates")).is_ok_and(|within| {
            let parts: Vec<_> = within.iter().map(|part| part.to_string_lossy()).collect();
            // What is in the crate of fuzzers is run as tests.
            parts.get(1).is_some_and(|part| part == "src")
                && parts.first().is_some_and(|part| part != "fuzz")
                && !parts.iter().any(|part| part == "tests" || part == "tests.rs")
        });
        let found = ways.iter().find(|way| code(&text).contains(*way));
        match path.starts_with(&room) {
            true => rooms += usize::from(found.is_some()),
            false if is_source => assert_eq!(found, None, "{} prints by itself", path.display()),
            false => {}
        }
    }
    assert_eq!(rooms, 2, "the room prints documents and lines, and a line of progress");
}

#[test]
fn nothing_is_left_unfinished() {
    for ending in [".rs", ".toml", ".md"] {
        for (path, text) in files(ending) {
            for word in UNFINISHED {
                assert!(!text.contains(word), "{} holds '{word}'", path.display());
            }
        }
    }
}
