//! Words from outside: whatever a file name, a worker, the environment or a run file holds, no
//! terminal obeys it, no line of it stands by itself, and no spreadsheet takes it for a formula.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::{Finished, Place, whole_lines};
use pagewise_model::run::Record;
use pagewise_model::untrusted::is_printed;
use serde_json::Value;

/// A text that tries it all: a formula, colours of two kinds, the clipboard, a line of its own, an
/// order turned round, what is not seen, a line of Unicode's, a tab, a character from beyond the
/// first plane.
const HOSTILE: &str = "=1+1\u{1b}[31m\u{9b}2J\u{1b}]52;c;aGk=\u{7}\r\nFORGED: mmap wins\u{202e}\u{200b}\u{2028}FORGED\t\u{e0041}";

/// As much of it as a name of a file may hold.
const HOSTILE_NAME: &str = "=1+1\u{1b}[31m\u{9b}2J\u{7}\r\nFORGED: mmap wins\u{202e}\u{200b}\u{2028}FORGED\t";

const BRIEF: [&str; 9] = [
    "run",
    "read",
    "--workload=random-read",
    "--threads=1",
    "--cache=warm",
    "--rounds=7",
    "--sample=1ms",
    "--file-size=1MiB",
    "--no-ceilings",
];

fn brief(more: &[&str]) -> Vec<String> {
    BRIEF.iter().chain(more).map(ToString::to_string).collect()
}

/// Only printed characters and line ends, and no line that begins with what is not pagewise's own.
#[track_caller]
fn expect_inert(text: &str) {
    for line in text.replace("\r\n", "\n").split('\n') {
        assert!(line.chars().all(is_printed), "{line:?}");
        assert!(!line.trim_start().starts_with("FORGED"), "{line:?} in\n{text}");
    }
}

#[track_caller]
fn expect_both_inert(finished: &Finished) {
    expect_inert(&finished.stdout);
    expect_inert(&finished.stderr);
}

/// The fields of CSV (RFC 4180).
fn fields(csv: &str) -> Vec<Vec<String>> {
    csv.split("\r\n").filter(|row| !row.is_empty()).map(fields_of_row).collect()
}

fn fields_of_row(row: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = row.chars().peekable();
    while let Some(character) = characters.next() {
        let field = fields.last_mut().expect("one at least");
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => field.push(other),
        }
    }
    assert!(!quoted, "a quote is open at the end of {row:?}");
    fields
}

#[track_caller]
fn expect_no_formula(csv: &str) {
    expect_inert(csv);
    let rows = fields(csv);
    assert!(rows.len() > 1, "{csv}");
    for row in &rows {
        assert_eq!(row.len(), rows[0].len());
        for field in row {
            let is_number = field.parse::<f64>().is_ok();
            assert!(is_number || !field.starts_with(['=', '+', '-', '@', '\t', '\r']), "{field:?}");
        }
    }
}

/// Puts the hostile text into every string of `value` that may hold it: `read` says whether it
/// still is what it was.
fn poison(value: &Value, path: &mut Vec<String>, whole: &mut Value, read: &dyn Fn(&Value) -> bool) -> usize {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                path.push(key.clone());
                let poisoned = poison(value, path, whole, read);
                path.pop();
                poisoned
            })
            .sum(),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .map(|(index, value)| {
                path.push(index.to_string());
                let poisoned = poison(value, path, whole, read);
                path.pop();
                poisoned
            })
            .sum(),
        // Samples find their cell by it.
        Value::String(_) if path.last().is_some_and(|key| key == "cell") => 0,
        // An option that says nothing may hold a text.
        Value::String(_) | Value::Null => {
            let pointer = format!("/{}", path.join("/"));
            let place = whole.pointer_mut(&pointer).expect("it is there");
            let before = std::mem::replace(place, Value::from(HOSTILE));
            if read(whole) {
                return 1;
            }
            *whole.pointer_mut(&pointer).expect("it is there") = before;
            0
        }
        _ => 0,
    }
}

/// A record with a hostile text wherever one may stand, and in how many places that is.
fn poisoned(record: &Value) -> (String, usize) {
    let mut whole = record.clone();
    let read = |value: &Value| serde_json::from_value::<Record>(value.clone()).is_ok();
    let places = poison(record, &mut Vec::new(), &mut whole, &read);
    (serde_json::from_value::<Record>(whole).expect("a record").to_line(), places)
}

fn records(path: &Path) -> Vec<Value> {
    let record = |line: &String| serde_json::from_str::<Value>(line).expect("a line")["record"].clone();
    whole_lines(path).iter().map(record).collect()
}

/// A worker that says `script`.
fn worker(place: &Place, script: &str) -> PathBuf {
    let path = place.write("worker.sh", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    path
}

/// What `printf` writes as the hostile text.
fn octal(text: &str) -> String {
    text.bytes().map(|byte| format!("\\{byte:03o}")).collect()
}

#[test]
fn a_run_file_with_hostile_words_everywhere_is_shown_and_does_nothing() {
    let place = Place::new();
    let script = format!("printf '{}'; printf '{0}' >&2", octal(HOSTILE));
    let own = format!("--worker=mine={}", worker(&place, &script).display());
    place.run(&brief(&["--methods=pread,mmap,mine/get", "--stall", "--out=run.jsonl", &own]));
    let mut all = records(&place.file("run.jsonl"));
    // What a sample may say besides, and what the machine here does not.
    let mut refused = all.iter().find(|record| record["kind"] == "sample").expect("a sample").clone();
    refused["outcome"] = serde_json::json!({ "outcome": "unavailable", "reason": "" });
    all.insert(1, refused);
    let warnings = &mut all[0]["environment"]["warnings"];
    *warnings = serde_json::json!(["one", "two"]);
    let workers = &mut all[0]["workers"][0];
    workers["notes"] = serde_json::json!(["one"]);
    workers["command"] = serde_json::json!(["one", "two"]);
    if let Some(end) = all.last_mut().filter(|record| record["kind"] == "end") {
        end["samples"] = Value::from(end["samples"].as_u64().expect("a number") + 1);
    }
    let (lines, places): (Vec<String>, Vec<usize>) = all.iter().map(poisoned).unzip();
    assert!(places[0] > 15 && places.iter().sum::<usize>() > 30, "{places:?}");
    place.write("hostile.jsonl", lines.concat());
    let table = place.run(&["report", "hostile.jsonl"]);
    expect_both_inert(&table);
    assert!(table.stdout.contains(r"=1+1\u{1b}[31m\u{9b}2J"), "{table:?}");
    assert!(table.stdout.contains("Verdict: "), "{}", table.stdout);
    let answer = place.run(&["report", "hostile.jsonl", "--answer"]);
    expect_both_inert(&answer);
    assert!(answer.stdout.contains("What to use"), "{}", answer.stdout);
    let json = place.run(&["report", "hostile.jsonl", "--json"]);
    expect_both_inert(&json);
    let judged = json.judged();
    assert_eq!(judged["run"]["question"], HOSTILE, "the data are kept");
    assert_eq!(judged["environment"]["kernel"], HOSTILE);
    let csv = place.run(&["report", "hostile.jsonl", "--csv=samples"]);
    expect_no_formula(&csv.stdout);
    assert!(csv.stdout.contains(r"'=1+1\u{1b}"), "{}", csv.stdout);
    place.run(&["report", "hostile.jsonl", "--csv=samples", "--out=rows.csv"]);
    assert_eq!(fs::read_to_string(place.file("rows.csv")).expect("the file"), csv.stdout);
    expect_no_formula(&place.run(&["report", "hostile.jsonl", "--csv"]).stdout);
    place.run(&["report", "hostile.jsonl", "--html=page.html"]).expect_code(0);
    let page = fs::read_to_string(place.file("page.html")).expect("the page");
    assert!(page.chars().all(|letter| letter == '\n' || !letter.is_control()), "{page}");
    assert!(page.contains(r"=1+1\u{1b}[31m"), "{page}");
    let markdown = place.run(&["report", "hostile.jsonl", "--markdown"]);
    expect_both_inert(&markdown);
    assert!(markdown.stdout.contains(r"### =1+1\\u{1b}"), "{}", markdown.stdout);
    let resumed = place.run(&["run", "--resume", "--out=hostile.jsonl", "--dry-run"]);
    expect_both_inert(&resumed);
}

#[test]
fn a_worker_talks_to_nobodys_terminal() {
    let place = Place::new();
    let script = format!("printf '{}'; printf '{0}' >&2", octal(&format!("{HOSTILE}\n")));
    let own = format!("--worker=mine={}", worker(&place, &script).display());
    let table = place.run(&brief(&["--methods=mine/get", "--out=run.jsonl", &own]));
    expect_both_inert(&table);
    assert!(table.stdout.contains(r"\u{1b}]52;c;aGk=\u{7}"), "{}", table.stdout);
    let program = place.file("worker.sh");
    let tried = place.run(&["conformance", "--dir=.", "--", program.to_str().expect("text")]);
    expect_both_inert(&tried);
    assert!(format!("{}{}", tried.stdout, tried.stderr).contains(r"\u{1b}]52"), "{tried:?}");
    let as_json = place.run(&["conformance", "--dir=.", "--json", "--", program.to_str().expect("text")]);
    expect_both_inert(&as_json);
}

#[test]
fn names_of_files_and_folders_stay_on_their_line() {
    let place = Place::new();
    let folder = place.file(HOSTILE_NAME);
    fs::create_dir(&folder).expect("a folder of any name");
    let folder_text = folder.to_str().expect("text");
    let out = folder.join(format!("{HOSTILE_NAME}.jsonl"));
    let out_text = out.to_str().expect("text");
    let directory = format!("--dir={folder_text}");
    let run = brief(&["--methods=pread", &directory, "--out", out_text]);
    let table = place.run(&run);
    expect_both_inert(&table);
    assert!(table.stdout.contains(r"=1+1\u{1b}[31m"), "{}", table.stdout);
    let shown: [&[&str]; 9] = [
        &["report", out_text],
        &["report", out_text, "--json"],
        &["report", out_text, "--vmstat"],
        &["report", folder_text],
        &["report", HOSTILE],
        &["doctor", &directory],
        &["doctor", &directory, "--json"],
        &["run", HOSTILE],
        &["run", "read", "--dry-run", &directory, "--file-size=64MiB"],
    ];
    for arguments in shown {
        expect_both_inert(&place.run(arguments));
    }
    let again = place.run(&run).expect_code(2);
    expect_both_inert(&again);
    assert_eq!(again.stderr.lines().count(), 1, "one sentence: {again:?}");
    let plan = folder.join(format!("{HOSTILE_NAME}.toml"));
    fs::write(&plan, format!("workload = \"random-read\"\nmethods = [\"pread\"]\n\"{HOSTILE_KEY}\" = 1\n"))
        .expect("write");
    let refused = place.run(&["run", plan.to_str().expect("text")]).expect_code(2);
    expect_both_inert(&refused);
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    fs::write(&plan, "workload = \"random-read\"\nmethods = [\"pread\"]\nfile_size = \"1MiB\"\n")
        .expect("write");
    expect_both_inert(&place.run(&["run", plan.to_str().expect("text"), "--dry-run"]));
}

/// A key of a plan as TOML writes it.
const HOSTILE_KEY: &str = "key\\u001b[31m\\r\\nFORGED";

#[test]
fn the_environment_is_no_terminal_either() {
    let place = Place::new();
    let mut looking = place.command(&["doctor"]);
    looking.env("JAVA_HOME", format!("/{HOSTILE}")).env("PATH", format!("/{HOSTILE}:/usr/bin:/bin"));
    expect_both_inert(&place.finish(looking.spawn().expect("start")));
    let mut lost = place.command(&["run", "read", "--methods=pread", "--file-size=1MiB"]);
    lost.env("PAGEWISE_STATE_DIR", format!("/proc/{HOSTILE}"));
    let lost = place.finish(lost.spawn().expect("start")).expect_code(2);
    expect_both_inert(&lost);
    assert_eq!(lost.stderr.lines().count(), 1, "{lost:?}");
}
