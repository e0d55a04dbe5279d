//! `pagewise doctor` lists what conditions can be had here, in the table and as JSON, and leaves
//! nothing of its trials.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{OWN_FILESYSTEM, Place, in_own_mounts, skipped};
use pagewise_host::Readahead;
use pagewise_host::cgroup::Control;
use serde_json::Value;

/// What conditions need, by the names in the list.
const CONDITIONS: [&str; 5] =
    ["memory limit", "device cap", "readahead setting", "NUMA placement", "dropping all caches"];

#[track_caller]
fn capability(findings: &Value, name: &str) -> Value {
    let capabilities = findings["capabilities"].as_array().expect("a list");
    capabilities.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
}

/// Groups below `parent` that the probes of process `pid` made.
fn groups(parent: &Path, pid: u32) -> Vec<PathBuf> {
    let ending = format!("{pid:08x}");
    let entries = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("pagewise-") && name.ends_with(&ending)
    };
    entries.filter(named).collect()
}

/// A row of the table, whose last cell may go on below.
#[track_caller]
fn expect_row(table: &str, cells: &[&str]) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let row = words(&cells.join(" "));
    assert!(words(table).contains(&row), "{row} is not in: {table}");
}

#[test]
fn conditions_are_listed_and_nothing_is_left() {
    const TEST: &str = "conditions_are_listed_and_nothing_is_left";
    let control = Control::detect();
    let (memory, device) = match (control.memory(), control.device()) {
        (Ok(memory), Ok(device)) => (memory, device),
        (memory, device) => {
            let refused = memory.err().or(device.err()).expect("one was refused");
            return skipped("cgroup", &refused.to_string());
        }
    };
    if !in_own_mounts(TEST, OWN_FILESYSTEM) {
        return;
    }
    let place = Place::new();
    let readahead = Readahead::of(&place.path()).expect("a setting of readahead");
    let before = readahead.read().expect("read");
    let doctor = place.command(&["doctor", "--json"]).spawn().expect("start");
    let pid = doctor.id();
    let findings = place.finish(doctor).expect_code(0).judged();
    let table = place.run(&["doctor"]).expect_code(0).stdout;
    assert_eq!(readahead.read().expect("read"), before);
    assert!(place.entries().is_empty());
    for parent in [memory.parent(), device.parent()] {
        assert_eq!(groups(parent, pid), Vec::<PathBuf>::new());
    }
    for name in CONDITIONS {
        let found = capability(&findings, name);
        let state = found["state"].as_str().expect("a state");
        let text = found["reason"].as_str().or(found["detail"].as_str()).expect("a reason or a detail");
        assert!(["available", "unavailable"].contains(&state) && !text.is_empty(), "{found}");
        expect_row(&table, &[name, state, text]);
    }
    for (name, place) in [("memory limit", memory), ("device cap", device)] {
        let found = capability(&findings, name);
        assert_eq!(found["state"], "available", "{found}");
        let detail = found["detail"].as_str().expect("a detail");
        let said = format!("cgroup {}, groups below {}", place.version(), place.parent().display());
        assert!(detail.starts_with(&said), "{detail}");
    }
    let setting = capability(&findings, "readahead setting");
    assert_eq!(setting["state"], "available", "{setting}");
    assert_eq!(setting["detail"].as_str(), readahead.path().to_str());
    let environment = &findings["environment"];
    assert!(
        environment["memory_control"].as_str().is_some_and(|text| text.starts_with("cgroup v")),
        "{environment}"
    );
    assert!(
        environment["device_control"].as_str().is_some_and(|text| text.starts_with("cgroup v")),
        "{environment}"
    );
    assert!(environment["numa_nodes"].as_u64().is_some_and(|nodes| nodes > 0), "{environment}");
}

#[test]
fn workers_of_other_languages_are_listed() {
    let place = Place::new();
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("PATH", place.root()).env("HOME", place.root()).env("JAVA_HOME", "/nowhere/jdk");
        let doctor = command.env_remove("XDG_CACHE_HOME").spawn().expect("start");
        place.finish(doctor).expect_code(0)
    };
    let findings = run(&["doctor", "--json"]).judged();
    let table = run(&["doctor"]).stdout;
    for name in ["worker jvm", "worker go", "worker python"] {
        let found = capability(&findings, name);
        let state = found["state"].as_str().expect("a state");
        let text = found["reason"].as_str().or(found["detail"].as_str()).expect("a reason or a detail");
        assert!(["available", "unavailable"].contains(&state) && !text.is_empty(), "{found}");
        expect_row(&table, &[name, state, text]);
    }
    // A JDK may be in the usual folders; the one that was asked for is reported as broken in any
    // case.
    let jvm = capability(&findings, "worker jvm").to_string();
    assert!(jvm.contains("JAVA_HOME: /nowhere/jdk is not a folder"), "{jvm}");
    let python = capability(&findings, "worker python");
    assert_eq!(
        python["reason"],
        "no Python 3.8 or newer was found: python3 is not on PATH; python is not on PATH"
    );
    assert!(!place.root().join(".cache").exists(), "nothing is built");
}

#[test]
fn rights_that_are_missing_are_reported() {
    if !rustix::process::geteuid().is_root() {
        return skipped("root", "only root can become another user");
    }
    let place = Place::on(&std::env::temp_dir());
    let Some(mut command) = place.command_as(65_534, &["doctor", "--json"]) else { return };
    command.env_remove("XDG_RUNTIME_DIR");
    let findings = place.finish(command.spawn().expect("start")).expect_code(0).judged();
    for name in CONDITIONS.into_iter().filter(|name| *name != "NUMA placement") {
        let found = capability(&findings, name);
        assert_eq!(found["state"], "unavailable", "{found}");
        assert!(found["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{found}");
    }
    assert!(place.entries().is_empty());
}
