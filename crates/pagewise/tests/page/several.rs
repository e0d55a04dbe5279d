//! A page of several runs.

use std::path::Path;

use pagewise_analysis::{Judged, judge};
use pagewise_model::run::Run;
use pagewise_page::PAGE;
use pagewise_report::judged_run::JudgedRun;
use serde_json::json;

use crate::accessible::{expect_accessible, expect_narrow};
use crate::browser::{Browser, browser};
use crate::{constructed, file};

/// A run like this one, of another start, kernel and speed.
pub fn other(run: &Run, number: u64, slower_percent: u64) -> Run {
    let mut run = run.clone();
    run.header.environment.kernel = format!("6.{}.0", number % 2);
    run.header.environment.started_unix_s += number * 1000;
    run.header.plan.seed += number;
    for sample in &mut run.samples {
        if let pagewise_model::Outcome::Taken { measurement, .. } = &mut sample.outcome {
            // Some of what separates two runs, and more or less of the rest.
            measurement.measured_ns = measurement.measured_ns * (100 + slower_percent + number % 3) / 100;
        }
    }
    run
}

/// Every plot shows as many marks as its description counts values, and every table can be sorted.
#[track_caller]
pub fn expect_whole(browser: &mut Browser, page: &Path, least_figures: u64) {
    browser.open(page);
    browser.draw_all();
    let found = browser.evaluate(
        "[...document.querySelectorAll('figure')].map(figure => {
           const marks = [...figure.querySelectorAll('.interactive .series :is(circle, rect)')];
           const values = Number(figure.querySelector('desc').textContent.match(/(\\d+) values, /)[1]);
           return [values, marks.filter(mark => mark.getBoundingClientRect().width > 0).length]; })",
    );
    let figures = found.as_array().expect("figures");
    assert!(figures.len() as u64 >= least_figures, "{}: {found}", page.display());
    for figure in figures {
        assert!(figure[0] == figure[1] && figure[0].as_u64() > Some(0), "{}: {found}", page.display());
    }
    let tables = browser.evaluate(
        "[...document.querySelectorAll('table')].filter(table => table.rows.length > 1 && !table.textContent.trim()).length",
    );
    assert_eq!(tables, json!(0), "{}: a table is empty", page.display());
    expect_narrow(browser, page);
    expect_accessible(browser, page);
    browser.expect_quiet();
}

#[test]
fn a_page_of_several_runs_has_each_of_them_and_a_map() {
    let Some(mut browser) = browser() else { return };
    let runs = [constructed::complete(), constructed::append(), other(&constructed::complete(), 1, 0)];
    let judged: Vec<Judged> = runs.iter().map(judge).collect();
    let all: Vec<JudgedRun<'_>> =
        runs.iter().zip(&judged).map(|(run, judged)| JudgedRun::of("run.jsonl", run, judged)).collect();
    let page = file("several", |out| (PAGE.runs)(out, &all));
    browser.open(&page);
    let links = browser.evaluate(
        "[...document.querySelectorAll('nav a')].map(link => document.querySelector(link.getAttribute('href')) !== null)",
    );
    assert_eq!(links, json!([true, true, true]));
    expect_whole(&mut browser, &page, 6);
}
