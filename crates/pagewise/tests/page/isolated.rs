//! The page alone: without scripts, without network, and with texts that are markup.

use serde_json::json;

use crate::browser::browser;
use crate::{constructed, written};

#[test]
fn without_scripts_everything_is_there() {
    let Some(mut browser) = browser() else { return };
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    browser.open(&written("complete", &constructed::complete()));
    let found = browser.evaluate(
        "[document.querySelectorAll('.interactive, button, input').length,
          document.querySelectorAll('figure').length > 0,
          [...document.querySelectorAll('figure')].every(figure => {
            const marks = figure.querySelector('.drawing svg').querySelectorAll('.series :is(circle, rect, .bars, path:not([class]))');
            // A dot is the round end of a line: it has no size of its own.
            const isDrawn = mark => mark.matches('path:not([class])') ? getComputedStyle(mark).strokeLinecap === 'round' : mark.getBoundingClientRect().width > 0;
            const count = mark => mark.getAttribute('d')?.match(/m/g).length ?? 1;
            const values = Number(figure.querySelector('desc').textContent.match(/(\\d+) values, /)[1]);
            return [...marks].reduce((sum, mark) => sum + count(mark), 0) === values && [...marks].every(isDrawn)
              && figure.querySelector('table') !== null; })]",
    );
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": false }));
    assert_eq!(found, json!([0, true, true]));
}

#[test]
fn nothing_is_asked_of_a_network() {
    let Some(mut browser) = browser() else { return };
    let offline = json!({ "offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0 });
    browser.call("Network.emulateNetworkConditions", offline);
    browser.open(&written("complete", &constructed::complete()));
    browser.draw_all();
    assert_eq!(browser.events("Network.requestWillBeSent").len(), 1, "the page itself");
    browser.expect_quiet();
}

#[test]
fn hostile_texts_stay_texts() {
    let Some(mut browser) = browser() else { return };
    let run = constructed::hostile();
    // The name of the file is a part of the page too.
    browser.open(&written("hostile <img src=x onerror=alert(2)>", &run));
    browser.draw_all();
    browser.evaluate(
        "(() => { for (const one of document.querySelectorAll('.interactive')) {
           one.focus();
           for (const key of ['End', 'Home']) one.dispatchEvent(new KeyboardEvent('keydown', { key })); }
           document.querySelectorAll('th button').forEach(button => button.click()); })()",
    );
    let found = browser.evaluate(
        "[document.querySelectorAll('img').length,
          document.querySelectorAll('script').length,
          document.querySelectorAll('.legend, .tip, figcaption').length > 0,
          document.body.innerText.includes('</td><script>alert(1)</script>&amp;'),
          document.body.innerText.includes('<img src=x onerror=alert(2)>')]",
    );
    assert_eq!(found, json!([0, 2, true, true, true]));
    // No dialog was opened, no script was refused, nothing was loaded.
    browser.expect_quiet();
}

#[test]
fn two_thousand_cells_open() {
    let Some(mut browser) = browser() else { return };
    let path = written("many", &constructed::many(2000));
    assert!(std::fs::metadata(&path).expect("a page").len() <= 1_000_000);
    browser.open(&path);
    browser.evaluate("document.querySelector('figure').scrollIntoView()");
    let found = browser.evaluate(
        "(async () => { const figure = document.querySelector('figure');
           while (!figure.querySelector('.interactive')) await new Promise(requestAnimationFrame);
           return document.body.innerText.includes('left out of this page'); })()",
    );
    assert_eq!(found, json!(true));
    browser.expect_quiet();
}
