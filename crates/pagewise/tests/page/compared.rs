//! Pages of `compare`: of two sides, and of many runs by a fact.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use pagewise_model::run::{Record, Run};
use serde_json::json;

use crate::browser::browser;
use crate::several::{expect_whole, other};
use crate::{constructed, folder};

fn file_of(run: &Run) -> String {
    let checks = run.checks.iter().map(|(_, context)| Record::Checks(*context));
    let samples = run.samples.iter().map(|sample| Record::Sample(Box::new(sample.clone())));
    let header = Record::Header(Box::new(run.header.clone()));
    let mut records: Vec<Record> = std::iter::once(header).chain(checks).chain(samples).collect();
    let samples = run.samples.len() as u64;
    records.push(Record::End { samples, elapsed_ns: 1, supervisor_peak_bytes: None });
    records.iter().map(Record::to_line).collect()
}

/// The page of a comparison: its words follow the files of runs that are so much slower, side by
/// side.
fn page_of(name: &str, words: &[&str], sides: &[(std::ops::Range<u64>, u64)]) -> PathBuf {
    let folder = folder("compared").join(name);
    let _ = fs::remove_dir_all(&folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    command.arg("compare");
    for (index, (numbers, slower_percent)) in sides.iter().enumerate() {
        let side = folder.join(index.to_string());
        fs::create_dir_all(&side).expect("a folder");
        for number in numbers.clone() {
            let run = other(&constructed::complete(), number, *slower_percent);
            fs::write(side.join(format!("{number}.jsonl")), file_of(&run)).expect("write");
        }
        command.args((index > 0).then_some("--")).arg(side);
    }
    let page = folder.join("page.html");
    let finished = command.args(words).arg("--html").arg(&page).output().expect("start");
    assert!(finished.status.success(), "{finished:?}");
    page
}

#[test]
fn a_page_of_two_sides_shows_what_changed() {
    let page = page_of("sides", &[], &[(0..4, 0), (4..8, 30)]);
    let Some(mut browser) = browser() else { return };
    expect_whole(&mut browser, &page, 1);
}

#[test]
fn a_page_of_many_runs_is_a_map() {
    let page = page_of("many", &["--by", "kernel"], &[(0..6, 0)]);
    let Some(mut browser) = browser() else { return };
    expect_whole(&mut browser, &page, 0);
    let rows = browser.evaluate("document.querySelector('table tbody').rows.length");
    assert_eq!(rows, json!(2), "a row for each kernel");
}
