//! What is shown of a search for crossings, byte for byte.

#[path = "constructed/cliff.rs"]
mod cliff_run;
#[path = "golden/mod.rs"]
mod goldens;

use goldens::assert_golden;
use pagewise_analysis::judge::cliff::{Cliff, crossings};
use pagewise_analysis::judge::judge;
use pagewise_report::document::Document;
use pagewise_report::json::JudgedJson;
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::line::{Emphasis, Line};
use pagewise_report::paragraph::NARROWEST;
use pagewise_report::{cliff, screen};

fn text(cliff: &Cliff, width: usize) -> String {
    let document = Document { body: cliff::blocks(cliff), ..Document::default() };
    let lines: Vec<String> = document.lines(width).iter().map(Line::text).collect();
    lines.join("\n") + "\n"
}

#[test]
fn a_wider_terminal_has_all_ratios_in_one_table() {
    let (narrow, wide) =
        (text(&crossings(&cliff_run::cliff()), 80), text(&crossings(&cliff_run::cliff()), 100));
    assert!(narrow.matches("of the limit").count() >= wide.matches("of the limit").count());
    assert_eq!(wide.matches("of the limit").count(), 1, "{wide}");
    assert!(wide.lines().any(|line| line.chars().count() > 80), "{wide}");
}

#[test]
fn the_cliff_at_80_columns() {
    assert_golden("cliff-80.txt", &text(&crossings(&cliff_run::cliff()), 80));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let cliff = crossings(&cliff_run::cliff());
    for width in [0, 40, 41, 60, 80, 120, 200, 1000] {
        for line in text(&cliff, width).lines() {
            assert!(line.chars().count() <= width.clamp(NARROWEST, 200), "{width}: {line}");
        }
    }
}

#[test]
fn a_run_cut_short_is_shown_as_far_as_it_goes() {
    let whole = cliff_run::cliff();
    for samples in [0, 1, 5, 20, 60, 130, 141, 150] {
        let mut cut = whole.clone();
        cut.samples.truncate(samples);
        cut.elapsed_ns = None;
        let text = text(&crossings(&cut), 80);
        assert!(text.contains("memory 128 MiB"), "{samples}: {text}");
    }
}

#[test]
fn the_bars_of_the_leaders_are_the_longest() {
    let document = Document { body: cliff::blocks(&crossings(&cliff_run::cliff())), ..Document::default() };
    let lines = document.lines(80);
    let leads = |method: &str| -> String {
        let row = lines.iter().find(|line| line.text().starts_with(&format!("  {method} "))).expect("a row");
        let strong = row.0.iter().filter(|span| span.emphasis == Emphasis::Strong);
        strong.map(|span| span.text.as_str()).collect()
    };
    assert_eq!(leads("mmap").matches("571k █████ ").count(), 3);
    assert_eq!(leads("pread:random").trim(), "192k █████");
    assert_eq!(leads("pread").trim(), "32.6k █████");
}

#[test]
fn rates_of_too_few_samples_are_marked() {
    let mut cliff = crossings(&cliff_run::cliff());
    assert!(!text(&cliff, 100).contains('~'));
    let point = &mut cliff.groups[0].curves[0].points[0];
    point.samples = 4;
    let text = text(&cliff, 100);
    assert!(text.contains("~571k █"), "{text}");
    assert!(text.contains("~: fewer than 5 valid samples"), "{text}");
    assert_eq!(text.matches('~').count(), 2, "{text}");
}

#[test]
fn a_run_without_a_limit_has_no_ratio() {
    let nothing = Cliff { tolerance: None, groups: Vec::new() };
    assert_eq!(text(&nothing, 80), "no cell has a memory limit, so there is no ratio of data to cache\n");
}

#[test]
fn the_json_has_units_in_its_keys() {
    let run = cliff_run::cliff();
    let judged = JudgedRun { path: "run.jsonl", run: &run, judged: &judge(&run) };
    let value = serde_json::to_value(JudgedJson::of(&judged)).expect("json");
    let group = &value["cliff"]["groups"][0];
    assert_eq!(group["capacity"]["source"], "measured");
    assert_eq!(group["capacity"]["bytes"], 126 << 20);
    let point = &group["curves"][3]["points"].as_array().expect("points").last().expect("4x").clone();
    assert_eq!(
        (point["ops_per_second"].is_null(), point["reason"].as_str()),
        (true, Some("not offered here"))
    );
    assert_eq!(group["crossings"][0]["precision"], "reached");
    assert!(group["crossings"][0]["low_span_bytes"].is_u64());
    let first = group["sentences"][0].as_str().expect("a sentence");
    assert!(first.starts_with("fastest up to "), "{first}");
}

#[test]
fn the_screen_has_the_first_conclusion_and_the_bars() {
    let run = cliff_run::cliff();
    let lines = screen::lines(&[JudgedRun { path: "run.jsonl", run: &run, judged: &judge(&run) }], 80);
    let text: Vec<String> = lines.iter().map(pagewise_report::line::Line::text).collect();
    assert!(lines.len() <= screen::MOST_LINES, "{text:#?}");
    assert!(text.iter().any(|line| line.starts_with("  Fastest up to ")), "{text:#?}");
    assert!(text.iter().any(|line| line.starts_with("  reads/s at ")), "{text:#?}");
    assert!(text.iter().any(|line| line.starts_with("  pread ") && line.contains('█')), "{text:#?}");
}

#[test]
fn a_narrow_screen_has_the_ratios_around_the_crossing() {
    let run = cliff_run::cliff();
    let mut judged = judge(&run);
    judged.cliff.as_mut().expect("curves").groups[0].curves[0].method = "mmap:random+prefetch=64".to_string();
    let lines = screen::lines(&[JudgedRun { path: "run.jsonl", run: &run, judged: &judged }], 80);
    let text: Vec<String> = lines.iter().map(Line::text).collect();
    let heading = text.iter().find(|line| line.starts_with("  reads/s at ")).expect("a heading");
    let shown: Vec<&str> = heading.split_whitespace().skip(2).collect();
    assert_eq!(shown, ["0.50x", "0.99x", "1.08x", "4.00x"]);
    assert!(text.iter().any(|line| line.contains("columns that do not fit: 0.90x")), "{text:#?}");
}
