//! The page on paper.

use std::path::PathBuf;

use pagewise_analysis::{Judged, judge};
use pagewise_page::PAGE;
use pagewise_report::judged_run::JudgedRun;
use serde_json::json;

use crate::browser::{Browser, browser};
use crate::{constructed, file, written};

/// Sheets of an overview.
const MOST_SHEETS: usize = 5;
/// Width between the margins of an A4 sheet.
const SHEET_WIDTH: u32 = 718;

/// A page of the four runs of an overview, with so many samples that are invalid.
pub fn overview(invalid: usize) -> PathBuf {
    let runs = constructed::overview(invalid);
    let judged: Vec<Judged> = runs.iter().map(judge).collect();
    let both = runs.iter().zip(&judged);
    let path = |run: &pagewise_model::run::Run| {
        format!("pagewise-20261128-101112-{}.jsonl", run.header.plan.question)
    };
    let paths: Vec<String> = runs.iter().map(path).collect();
    let all: Vec<JudgedRun<'_>> =
        both.zip(&paths).map(|((run, judged), path)| JudgedRun::of(path, run, judged)).collect();
    file(&format!("overview-{invalid}"), |out| (PAGE.runs)(out, &all))
}

/// Sheets of A4 that the open page is printed on: no later one can be asked for.
fn sheets(browser: &mut Browser) -> usize {
    let mut printed = |number: usize| {
        let sheet = json!({ "paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": false,
                            "printBackground": true, "pageRanges": number.to_string() });
        browser.asked("Page.printToPDF", sheet)["error"].is_null()
    };
    (1..).find(|number| !printed(*number)).expect("an end") - 1
}

#[test]
fn an_overview_takes_few_sheets() {
    let Some(mut browser) = browser() else { return };
    for invalid in [0, 1_000] {
        browser.open(&overview(invalid));
        let sheets = sheets(&mut browser);
        assert!((2..=MOST_SHEETS).contains(&sheets), "{sheets} sheets with {invalid} invalid samples");
    }
    browser.expect_quiet();
}

#[test]
fn paper_has_every_number_of_the_answer() {
    let Some(mut browser) = browser() else { return };
    browser.open(&overview(1_000));
    browser.resize(SHEET_WIDTH, "light");
    browser.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    let found = browser.evaluate(
        "(() => { const hidden = one => one.getClientRects().length === 0;
           const cells = [...document.querySelectorAll('td')].filter(cell => !cell.closest('details'));
           const headings = [...document.querySelectorAll('h2, h3, h4')].filter(one => !hidden(one));
           const bare = headings.filter(one => { let next = one.nextElementSibling;
             while (next && hidden(next)) next = next.nextElementSibling;
             return !next || (next.matches('h2, h3, h4') && next.tagName <= one.tagName); });
           return [cells.length > 600, cells.filter(hidden).length, bare.map(one => one.textContent),
                   document.documentElement.scrollWidth <= innerWidth]; })()",
    );
    browser.call("Emulation.setEmulatedMedia", json!({ "media": "" }));
    assert_eq!(found, json!([true, 0, [], true]));
}

#[test]
fn on_paper_only_the_plots_of_the_answer_are_drawn() {
    let Some(mut browser) = browser() else { return };
    browser.open(&written("complete", &constructed::complete()));
    let shown = "(() => { const shown = one => one.getClientRects().length > 0;
        const headings = [...document.querySelectorAll('section h3')].filter(shown).map(one => one.textContent);
        return [shown(document.querySelector('.paper')),
                headings.includes('Which method is fastest, and by how much?'), headings.includes('Is it steady?')]; })()";
    assert_eq!(browser.evaluate(shown), json!([false, true, true]));
    browser.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    let on_paper = browser.evaluate(shown);
    browser.call("Emulation.setEmulatedMedia", json!({ "media": "" }));
    assert_eq!(on_paper, json!([true, true, false]));
}
