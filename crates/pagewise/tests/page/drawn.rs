//! Plots: each is drawn with the marks of its data, and shows its values to a pointer and to the
//! keyboard.

use pagewise_analysis::judge;
use pagewise_model::run::Run;
use pagewise_model::{HostCounters, HostSecond};
use pagewise_page::PAGE;
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::{Plot, Scale};
use serde_json::json;

use crate::browser::browser;
use crate::{CURVES, constructed, curves_door, written};

/// Runs of every question and with every kind of plot.
fn runs() -> Vec<(&'static str, Run)> {
    curves_door::offer(&[CURVES]);
    let cliff = include_bytes!("../../../fuzz/corpus/run-files/cliff.jsonl");
    vec![
        ("complete", constructed::complete()),
        ("killed", constructed::killed()),
        ("settings", constructed::settings()),
        ("scan", constructed::scan()),
        ("append", constructed::append()),
        ("log", constructed::log()),
        ("fill", constructed::fill()),
        ("workers", constructed::workers()),
        ("method_tables", constructed::method_tables()),
        ("cliff", Run::parse(cliff).expect("a run file")),
    ]
}

/// The marks that have a place on their axes.
fn marks(plot: &Plot) -> usize {
    let has_place = |scale: &Scale, value: f64| *scale != Scale::Log || value > 0.0;
    let marks = plot.series.iter().flat_map(|series| &series.marks);
    marks.filter(|mark| has_place(&plot.x.scale, mark.x) && has_place(&plot.y.scale, mark.y)).count()
}

#[test]
fn every_plot_has_the_marks_of_its_data() {
    let Some(mut browser) = browser() else { return };
    for (name, run) in runs() {
        let judged = judge(&run);
        let shown = JudgedRun::of("run.jsonl", &run, &judged);
        let plots = (PAGE.plots)(std::slice::from_ref(&shown));
        let wanted: Vec<usize> = plots.iter().map(|drawn| marks(&drawn.plot)).collect();
        browser.open(&written(name, &run));
        browser.draw_all();
        let found = browser.evaluate(
            "[...document.querySelectorAll('figure')].map(figure => {
               const marks = [...figure.querySelectorAll('.interactive .series :is(circle, rect)')];
               return marks.filter(mark => mark.getBoundingClientRect().width > 0).length; })",
        );
        assert_eq!(found, json!(wanted), "{name}");
        assert!(wanted.iter().all(|count| *count > 0), "{name}");
        browser.expect_quiet();
    }
}

#[test]
fn a_pointer_shows_the_sample_and_its_conditions() {
    let Some(mut browser) = browser() else { return };
    browser.open(&written("complete", &constructed::complete()));
    browser.draw_all();
    let count = browser.evaluate("document.querySelectorAll('figure').length").as_u64().expect("a count");
    for index in 0..count {
        let figure = format!("document.querySelectorAll('figure')[{index}]");
        browser.point_at(&format!("{figure}.querySelector('.series :is(circle, rect)')"));
        let tip =
            browser.evaluate(&format!("{figure}.querySelector('.tip:not([hidden])')?.textContent ?? ''"));
        let tip = tip.as_str().expect("a text");
        let texts = browser.evaluate(&format!(
            "[figure => figure.querySelector('figcaption').textContent,
              figure => [...figure.querySelectorAll('.series :is(circle, rect)')].map(mark => mark.dataset.label)]
               .map(of => of({figure}))"
        ));
        assert!(tip.ends_with(texts[0].as_str().expect("conditions")), "{tip}");
        let labels: Vec<&str> =
            texts[1].as_array().expect("labels").iter().filter_map(|one| one.as_str()).collect();
        assert!(labels.iter().all(|label| !label.is_empty()), "{labels:?}");
        assert!(labels.iter().any(|label| tip.starts_with(label)), "{tip}: {labels:?}");
    }
    // An invalid sample says why, to the keyboard: no plot is under the pointer.
    browser.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": 0, "y": 0 }));
    let invalid = browser.evaluate(
        "(() => { for (const [index, figure] of document.querySelectorAll('figure').entries()) {
           const at = [...figure.querySelectorAll('.series :is(circle, rect)')].findIndex(mark => mark.classList.contains('invalid'));
           if (at >= 0) return [index, at]; } })()",
    );
    browser.evaluate(&format!(
        "document.querySelectorAll('figure')[{}].querySelector('.interactive').focus()",
        invalid[0]
    ));
    (0..=invalid[1].as_u64().expect("an index")).for_each(|_| browser.press("ArrowRight"));
    let tip = "document.activeElement.closest('figure').querySelector('.tip')";
    let tip_text = browser.evaluate(&format!("{tip}.hidden || {tip}.textContent"));
    assert!(
        tip_text.as_str().is_some_and(|tip_text| tip_text.contains("(invalid: contaminated)")),
        "{tip_text}"
    );
    browser.press("Escape");
    assert_eq!(browser.evaluate(&format!("{tip}.hidden")), json!(true));
    browser.expect_quiet();
}

#[test]
fn each_second_of_the_host_is_named() {
    let Some(mut browser) = browser() else { return };
    let mut run = constructed::complete();
    // So many that their lines have no dots.
    run.seconds = (0..60)
        .map(|step| HostSecond {
            at_ns: step * 1_000_000_000,
            begins: step == 0,
            host: HostCounters {
                free_bytes: Some(step << 30),
                block_in_bytes: Some(step << 20),
                ..HostCounters::default()
            },
        })
        .collect();
    browser.open(&written("host", &run));
    let named = browser.evaluate(
        "(() => { const drawings = [...document.querySelectorAll('figure')].at(-1).querySelectorAll('.drawing');
           const press = (drawing, key) => drawing.dispatchEvent(new KeyboardEvent('keydown', { key }));
           return [...drawings].map(drawing => ['Home', 'End'].map(key => {
             press(drawing, key);
             const mark = drawing.querySelector('.chosen');
             return [drawing.nextElementSibling.querySelector('strong').textContent, getComputedStyle(mark).opacity,
               getComputedStyle(mark.nextElementSibling ?? mark.previousElementSibling).opacity]; })); })()",
    );
    let named = named.as_array().expect("drawings");
    assert_eq!(named[0], json!([["1 s, bi: 1,024", "1", "0"], ["59 s, bi: 1,024", "1", "0"]]));
    assert_eq!(
        named.last(),
        Some(&json!([["1 s, free: 1 GiB", "1", "0"], ["59 s, free: 59 GiB", "1", "0"]]))
    );
    browser.expect_quiet();
}

#[test]
fn a_series_can_be_hidden() {
    let Some(mut browser) = browser() else { return };
    browser.open(&written("complete", &constructed::complete()));
    browser.draw_all();
    let counts = browser.evaluate(
        "(() => { const figure = document.querySelector('figure'), button = figure.querySelector('.legend button');
           const shown = mark => mark.getBoundingClientRect().width > 0;
           const count = () => [...figure.querySelectorAll('.series :is(circle, rect)')].filter(shown).length;
           const own = figure.querySelector('.series > g').querySelectorAll('circle, rect').length;
           const all = count(); button.click(); const fewer = count(), pressed = button.ariaPressed; button.click();
           return [all - own === fewer && own > 0, pressed, count() === all]; })()",
    );
    assert_eq!(counts, json!([true, "false", true]));
    browser.expect_quiet();
}
