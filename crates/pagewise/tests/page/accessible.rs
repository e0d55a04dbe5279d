//! The page for everyone: rules of axe-core in light and dark, and widths without a horizontal
//! scroll.

use std::path::Path;

use serde_json::json;

use crate::browser::{Browser, browser};
use crate::printed::overview;
use crate::{constructed, written};

#[test]
fn axe_finds_nothing_serious() {
    let Some(mut browser) = browser() else { return };
    expect_accessible(&mut browser, &written("accessible", &constructed::complete()));
}

/// Rules of axe-core, in light and dark, with everything open.
pub fn expect_accessible(browser: &mut Browser, page: &Path) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/check-axe/node_modules/axe-core/axe.min.js");
    let Ok(axe) = std::fs::read_to_string(&path) else {
        println!("skipped: axe-core: axe-core is not in target/check-axe, where ./check puts it");
        return;
    };
    for scheme in ["light", "dark"] {
        browser.resize(1280, scheme);
        browser.open(page);
        browser.draw_all();
        browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)");
        browser.evaluate(&format!("{axe}; null"));
        let found = browser.evaluate(
            "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations
               .filter(one => ['serious', 'critical'].includes(one.impact))
               .map(one => `${one.id}: ${one.nodes[0].html.slice(0, 200)}: ${one.nodes[0].failureSummary}`))",
        );
        assert_eq!(found, json!([]), "{scheme}");
    }
}

#[test]
fn nothing_is_wider_than_the_window() {
    let Some(mut browser) = browser() else { return };
    for (name, run) in [
        ("complete", constructed::complete()),
        ("method_tables", constructed::method_tables()),
        ("hostile", constructed::hostile()),
    ] {
        expect_narrow(&mut browser, &written(name, &run));
    }
    browser.expect_quiet();
}

/// No horizontal scroll on a desk and on a telephone.
pub fn expect_narrow(browser: &mut Browser, page: &Path) {
    for width in [1280, 400] {
        browser.resize(width, "light");
        browser.open(page);
        browser.draw_all();
        browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)");
        let found = browser.evaluate("[document.documentElement.scrollWidth, innerWidth]");
        assert_eq!(found, json!([width, width]), "{}", page.display());
    }
}

#[test]
fn a_telephone_shows_the_certainty_of_each_answer() {
    let Some(mut browser) = browser() else { return };
    browser.resize(400, "light");
    browser.open(&overview(0));
    let found = browser.evaluate(
        "(() => { const table = document.querySelector('table'), rows = [...table.tBodies[0].rows];
           const isWhole = cell => { const box = cell.getBoundingClientRect();
             return box.width > 0 && box.left >= 0 && box.right <= innerWidth && cell.scrollWidth <= cell.clientWidth; };
           const { scrollWidth, clientWidth } = table.closest('.scroll');
           return [table.textContent.includes('how sure that is'), rows.length, scrollWidth <= clientWidth,
                   rows.every(row => [...row.cells].every(isWhole))]; })()",
    );
    assert_eq!(found, json!([true, 9, true, true]));
    browser.expect_quiet();
}
