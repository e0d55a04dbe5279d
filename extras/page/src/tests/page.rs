//! The page of constructed runs.

use std::collections::HashSet;

use crate::page;
use pagewise_analysis::{Judged, judge};
use pagewise_model::FailureKind;
use pagewise_model::run::Run;
use pagewise_model::sample::Sample;
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::words::warnings;

use super::plots::{plots_of, seconds};
use super::well_formed::elements;
use super::{all, constructed, hostile};

fn page_of(runs: &[(&str, &Run)]) -> String {
    let judged: Vec<Judged> = runs.iter().map(|(_, run)| judge(run)).collect();
    let both = runs.iter().zip(&judged);
    let runs: Vec<JudgedRun<'_>> =
        both.map(|((path, run), judged)| JudgedRun::of(path, run, judged)).collect();
    let mut out = Vec::new();
    page::write(&mut out, &runs).expect("memory");
    String::from_utf8(out).expect("text")
}

/// Values of an attribute.
fn values<'a>(text: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    let ends = text.split(start.as_str()).skip(1);
    ends.map(|rest| rest.split('"').next().expect("an end")).collect()
}

#[test]
fn a_page_has_every_plot_and_its_table() {
    for (name, run) in all() {
        let text = page_of(&[("run.jsonl", &run)]);
        let names = elements(&text);
        let judged = judge(&run);
        let plots = plots_of(&run, &judged).len();
        let count = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
        assert_eq!((count("svg"), count("figure")), (plots, plots), "{name}");
        assert!(count("table") >= plots + judged.comparisons.len(), "{name}");
        // That of tables, and that of plots.
        let scripts = if plots == 0 { 1 } else { 2 };
        assert_eq!((count("script"), count("link"), count("img")), (scripts, 0, 0), "{name}");
        for (advice, comparison) in judged.advice.iter().zip(&judged.comparisons) {
            let sentence = pagewise_report::words::advice::sentence(advice, comparison);
            assert!(text.contains(&crate::markup::escaped(&sentence)), "{name}");
        }
        for warning in warnings::all(&judged) {
            assert!(text.contains(&crate::markup::escaped(&warning)), "{name}: {warning}");
        }
        // Every check, with how often it failed.
        for kind in FailureKind::ALL {
            let count = judged.validity.reasons.iter().find(|reason| reason.kind == *kind);
            let count = count.map_or(0, |reason| reason.count);
            assert!(text.contains(&format!("<td>{kind}<td>{count}<td>")), "{name}: {kind}");
        }
        assert!(!text.split("<script>").next().expect("a page").contains("NaN"), "{name}");
    }
}

#[test]
fn plots_of_the_host_share_a_table() {
    let mut run = constructed::complete();
    run.seconds = seconds(4);
    let text = page_of(&[("run.jsonl", &run)]);
    let figures = text.split("<figure>").filter_map(|rest| rest.split("</figure>").next());
    let figures: Vec<&str> = figures.filter(|figure| figure.contains("second by second?</title>")).collect();
    assert_eq!(figures.len(), 1);
    assert!(figures[0].matches("<svg ").count() > 3);
    assert_eq!(figures[0].matches("<table").count(), 1);
    // A column of the table for each line, and the time.
    let lines = figures[0].matches("class=\"line\"").count();
    assert!(figures[0].matches("<th").count() > lines, "{lines}");
}

#[test]
fn what_several_runs_have_in_common_stands_once() {
    let (read, mut scan) = (constructed::complete(), constructed::scan());
    scan.header.environment.kernel = "6.1.0".to_string();
    let text = page_of(&[("one.jsonl", &read), ("two.jsonl", &scan)]);
    assert_eq!(text.matches("aria-label=\"Every check\"").count(), 1);
    assert!(text.contains("attempts that failed it, scan"), "{text}");
    let fields = |name: &str| text.matches(&format!("<dt>{name}</dt>")).count();
    assert_eq!((fields("kernel"), fields("page_bytes")), (2, 1));
}

#[test]
fn a_page_of_many_plots_has_the_first_ones() {
    let mut run = constructed::complete();
    let cells = run.header.plan.cells.clone();
    let samples = run.samples.clone();
    for threads in 2..30 {
        for cell in &cells {
            let mut other = cell.clone();
            other.conditions.threads = threads;
            let of_cell = samples.iter().filter(|sample| sample.cell == cell.id());
            run.samples.extend(of_cell.map(|sample| Sample { cell: other.id(), ..sample.clone() }));
            run.header.plan.cells.push(other);
        }
    }
    let text = page_of(&[("run.jsonl", &run)]);
    elements(&text);
    assert!(text.len() < page::USUAL_BYTES, "{} bytes", text.len());
    assert!(text.contains("There is no room for ") && text.matches("<svg ").count() > 15, "{}", text.len());
    for question in
        ["fastest", "Do more threads help?", "What limited it?", "single operations", "Is it steady?"]
    {
        let (_, section) = text.split_once(question).expect(question);
        assert!(section.split("<h3>").next().expect("a section").contains("<svg "), "{question}");
    }
}

#[test]
fn an_overview_with_a_thousand_invalid_samples_is_small() {
    for invalid in [0, 1_000] {
        let runs = constructed::overview(invalid);
        let judged: Vec<Judged> = runs.iter().map(judge).collect();
        let failed: usize = judged.iter().map(|judged| judged.validity.samples - judged.validity.valid).sum();
        assert_eq!(failed, invalid);
        assert_eq!(judged.iter().map(|judged| judged.comparisons.len()).sum::<usize>(), 9);
        let text = page_of(&runs.iter().map(|run| ("run.jsonl", run)).collect::<Vec<_>>());
        assert!(text.len() < page::USUAL_BYTES, "{} bytes", text.len());
        // Each question of each run is drawn, and no verdict is left out.
        for run in text.split("<section").skip(1) {
            for question in ["fastest", "What limited it?", "Is it steady?", "What did the host do"] {
                let (_, section) = run.split_once(question).expect(question);
                assert!(section.split("<h3>").next().expect("a section").contains("<svg "), "{question}");
            }
        }
        assert_eq!(text.matches("Verdict: ").count(), 9);
    }
}

#[test]
fn reasons_for_invalid_samples_stand_once() {
    let runs = constructed::overview(1_000);
    let text = page_of(&[("run.jsonl", &runs[0])]);
    let (_, steady) = text.split_once("<h3>Is it steady?</h3>").expect("a question");
    let first = steady.split("</figure>").next().expect("a figure");
    // Eight methods, each invalid for three reasons.
    assert_eq!(first.matches("(invalid: ").count(), 24);
    assert!(first.contains("(invalid: not-warm; as "), "{first}");
    assert!(text.contains("pagewise report --csv=samples has each failed attempt"), "{text}");
    let (_, verdicts) = text.split_once("<h3>Verdicts</h3>").expect("verdicts");
    let first = verdicts.split("<h4>").nth(1).expect("a verdict");
    assert!(first.matches(" invalid: ").count() <= 3, "{first}");
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let text = page_of(&[("run.jsonl", &constructed::complete())]);
    assert!(text.contains("default-src 'none'"), "{text}");
    // The scripts are held by their hashes.
    let (text, _) = text.split_once("<script>").expect("scripts");
    assert_eq!(values(text, "src"), Vec::<&str>::new());
    assert!(values(text, "href").iter().all(|link| link.starts_with('#')));
    assert!(!text.contains("url(") && !text.contains("@import"), "{text}");
}

#[test]
fn several_runs_have_a_section_each_and_ids_of_their_own() {
    let (read, scan) = (constructed::complete(), constructed::scan());
    let text = page_of(&[("one.jsonl", &read), ("two.jsonl", &scan)]);
    elements(&text);
    assert_eq!(text.matches("<section id=").count(), 2);
    let ids = values(&text, "id");
    let known: HashSet<&str> = ids.iter().copied().collect();
    assert_eq!(known.len(), ids.len(), "{ids:?}");
    for named in values(&text, "aria-labelledby").into_iter().flat_map(str::split_whitespace) {
        assert!(known.contains(named), "{named}");
    }
    for link in values(&text, "href") {
        assert!(known.contains(link.trim_start_matches('#')), "{link}");
    }
}

#[test]
fn a_hostile_run_is_text() {
    let mut run = hostile();
    run.header.typed = vec!["read".to_string(), "<script>'\"\n".to_string()];
    let names = elements(&page_of(&[("</h2><script>alert(1)</script>\u{1b}.jsonl", &run)]));
    assert_eq!(names.iter().filter(|name| *name == "script").count(), 2, "{names:?}");
}

#[test]
fn the_command_is_the_one_that_was_typed() {
    let mut run = constructed::complete();
    assert!(
        page_of(&[("run.jsonl", &run)]).contains("The run file does not have the command. Its seed is 42.")
    );
    run.header.typed = ["read", "/data", "--time", "20 s"].map(str::to_string).to_vec();
    let text = page_of(&[("my run.jsonl", &run)]);
    assert!(text.contains("<pre>pagewise read /data --time &#39;20 s&#39;</pre>"), "{text}");
    assert!(text.contains("<pre>pagewise report &#39;my run.jsonl&#39;</pre>"), "{text}");
}

#[test]
fn a_page_of_many_cells_says_what_it_left_out() {
    // 10,000 are no larger, and take a test long.
    let run = constructed::many(2_000);
    let text = page_of(&[("run.jsonl", &run)]);
    assert!(text.len() < page::USUAL_BYTES, "{} bytes", text.len());
    for what in ["more situations are left out", "more verdicts are left out", "There is no room for "] {
        assert!(text.contains(what), "{what}");
    }
    assert!(text.matches("<figure>").count() > 10);
}

#[test]
fn runs_without_room_are_refused_in_one_sentence() {
    let run = constructed::complete();
    let judged = judge(&run);
    let path = "x".repeat(4_000);
    let runs = vec![JudgedRun::of(&path, &run, &judged); 100];
    let refused = page::write(&mut std::io::sink(), &runs).expect_err("no room");
    let text = refused.to_string();
    assert!(
        text.starts_with("the page would have ") && text.ends_with("at most 1 MB: name fewer runs"),
        "{text}"
    );
}
