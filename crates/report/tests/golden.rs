//! Table, CSV and JSON of a constructed run against files that a reader can judge.
//!
//! `PAGEWISE_BLESS=1 cargo test -p pagewise-report` writes them anew; read the difference before it is
//! committed.

mod constructed;

use std::path::PathBuf;

use pagewise_analysis::judge;
use pagewise_report::{csv, json, table};

fn assert_golden(name: &str, found: &[u8]) {
    let found = std::str::from_utf8(found).expect("text");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("PAGEWISE_BLESS").is_some() {
        std::fs::write(&path, found).expect("golden file is writable");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "{name} differs; PAGEWISE_BLESS=1 writes it anew. Found:\n{found}");
}

fn table_of(run: &pagewise_model::run::Run, width: usize) -> Vec<u8> {
    let mut out = Vec::new();
    table::write(&mut out, &judge(run), width).expect("memory");
    out
}

#[test]
fn the_table_at_100_columns() {
    assert_golden("complete-100.txt", &table_of(&constructed::complete(), 100));
}

#[test]
fn the_table_at_80_columns() {
    assert_golden("complete-80.txt", &table_of(&constructed::complete(), 80));
}

#[test]
fn the_table_at_140_columns() {
    assert_golden("complete-140.txt", &table_of(&constructed::complete(), 140));
}

#[test]
fn a_run_that_was_killed_says_so() {
    assert_golden("killed-100.txt", &table_of(&constructed::killed(), 100));
}

#[test]
fn a_tie_says_what_is_near_what_is_unclear_and_what_the_cache_held() {
    assert_golden("unclear-120.txt", &table_of(&constructed::unclear(), 120));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [80, 100, 120, 160, 200] {
        let text = String::from_utf8(table_of(&constructed::complete(), width)).expect("text");
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn the_judged_json() {
    let mut out = Vec::new();
    json::write(&mut out, &[judge(&constructed::complete())]).expect("memory");
    let text = String::from_utf8(out).expect("text");
    let rounded: String = text.lines().map(|line| rounded(line) + "\n").collect();
    assert_golden("complete.json", rounded.as_bytes());
}

/// A line of indented JSON with its fraction cut to nine digits: logarithms differ in the last one
/// between C libraries.
fn rounded(line: &str) -> String {
    let number = line.trim_end_matches(',').rsplit(' ').next().unwrap_or_default();
    match number.parse::<f64>() {
        Ok(value) if number.contains('.') => {
            let short: f64 = format!("{value:.8e}").parse().expect("a number");
            line.replace(number, &short.to_string())
        }
        _ => line.to_string(),
    }
}

#[test]
fn several_runs_are_an_array() {
    let mut out = Vec::new();
    let judged = judge(&constructed::killed());
    json::write(&mut out, &[judged.clone(), judged]).expect("memory");
    let value: serde_json::Value = serde_json::from_slice(&out).expect("json");
    assert_eq!(value.as_array().map(Vec::len), Some(2));
}

#[test]
fn the_csv() {
    let mut out = Vec::new();
    csv::write(&mut out, &[constructed::killed()]).expect("memory");
    assert_golden("killed.csv", &out);
    let text = String::from_utf8(out).expect("text");
    assert!(text.lines().next().expect("a header").starts_with("run,seed,cell,"));
}
