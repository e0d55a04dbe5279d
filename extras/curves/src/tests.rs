//! Documents of a search for crossings and of tables of methods, byte for byte.

mod cliff_run;
#[path = "../../../crates/report/tests/constructed/mod.rs"]
mod constructed;
#[path = "../../../crates/report/tests/golden/mod.rs"]
mod goldens;

use crate::CURVES;
use crate::cliff::blocks::{answer, blocks};
use crate::cliff::{Cliff, crossings};
use goldens::assert_golden;
use pagewise_analysis::judge;
use pagewise_model::run::Run;
use pagewise_report::document::{Block, Document};
use pagewise_report::json::JudgedJson;
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::line::{Emphasis, Line};
use pagewise_report::paragraph::NARROWEST;
use pagewise_report::{curves_door, markdown, screen, table};
use serde_json::{Value, json};

fn text(cliff: &Cliff, width: usize) -> String {
    let document = Document { body: blocks(cliff), ..Document::default() };
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
    let document = Document { body: blocks(&crossings(&cliff_run::cliff())), ..Document::default() };
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

/// The run with its judgement, answered as a whole.
fn with_answer<T>(run: &Run, shown: impl FnOnce(&JudgedRun<'_>) -> T) -> T {
    curves_door::offer(&[CURVES]);
    shown(&JudgedRun::of("run.jsonl", run, &judge(run)))
}

fn json_of(run: &Run) -> Value {
    with_answer(run, |run| serde_json::to_value(JudgedJson::of(run)).expect("json"))
}

fn screen_of(run: &Run) -> Vec<String> {
    with_answer(run, |run| screen::lines(std::slice::from_ref(run), 80).iter().map(Line::text).collect())
}

fn table_of(run: &Run, width: usize) -> String {
    let lines = with_answer(run, |run| table::document(run).lines(width));
    lines.iter().map(|line| line.text() + "\n").collect()
}

#[test]
fn the_json_has_units_in_its_keys() {
    let value = json_of(&cliff_run::cliff());
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
    assert!(value["tables"].is_null(), "the plan asks for none");
    let neither = json_of(&constructed::complete());
    assert!(neither["cliff"].is_null() && neither["tables"].is_null());
    assert!(
        neither.as_object().is_some_and(|keys| keys.contains_key("cliff") && keys.contains_key("tables"))
    );
}

#[test]
fn the_screen_has_the_first_conclusion_and_the_bars() {
    let text = screen_of(&cliff_run::cliff());
    assert!(text.len() <= screen::MOST_LINES, "{text:#?}");
    assert!(text.iter().any(|line| line.starts_with("  Fastest up to ")), "{text:#?}");
    assert!(text.iter().any(|line| line.starts_with("  reads/s at ")), "{text:#?}");
    assert!(text.iter().any(|line| line.starts_with("  pread ") && line.contains('█')), "{text:#?}");
}

#[test]
fn a_narrow_screen_has_the_ratios_around_the_crossing() {
    let mut cliff = crossings(&cliff_run::cliff());
    cliff.groups[0].curves[0].method = "mmap:random+prefetch=64".to_string();
    let body = vec![Block::Table(answer(&cliff.groups[0]), String::new())];
    let lines = Document { body, ..Document::default() }.lines(80);
    let text: Vec<String> = lines.iter().map(Line::text).collect();
    let heading = text.iter().find(|line| line.starts_with("  reads/s at ")).expect("a heading");
    let shown: Vec<&str> = heading.split_whitespace().skip(2).collect();
    assert_eq!(shown, ["0.50x", "0.99x", "1.08x", "4.00x"]);
    assert!(text.iter().any(|line| line.contains("columns that do not fit: 0.90x")), "{text:#?}");
}

#[test]
fn methods_by_threads_with_a_baseline_scaling_and_cold_starts() {
    let run = constructed::method_tables();
    assert_golden("method-tables-100.txt", &table_of(&run, 100));
    let found = json_of(&run);
    let value = |pointer: &str| found.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
    let near = |pointer: &str, wanted: f64| {
        let found = value(pointer).as_f64().expect("a number");
        assert!((found / wanted - 1.0).abs() < 1e-8, "{pointer}: {found}");
    };
    assert_eq!(value("/tables/tables/0/columns"), &json!([1, 4, 16]));
    near("/tables/tables/0/rows/1/scores/0/ops_per_ms/median", 24.7642264);
    near("/tables/tables/0/advantages/0/ratios/0/ratio", 0.646917555);
    assert_eq!(value("/tables/tables/0/advantages/0/ratios/0/finding"), "lower");
    near("/tables/tables/0/scaling/1/ratios/0/ratio", 1.90170592);
    near("/tables/falls/0/rows/1/ratios/0/ratio", 0.00931027256);
    assert_eq!(value("/tables/cold_starts/0/other_over_baseline/finding"), "higher");
    near("/tables/cold_starts/0/rows/1/to_steady_ns/median", 1_003_000_000.0);
    for width in [80, 100, 120, 160, 200] {
        for line in table_of(&run, width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    let screen = screen_of(&run);
    assert!(screen.len() <= screen::MOST_LINES, "{screen:#?}");
    let has = |words: &str| screen.iter().any(|line| line.contains(words));
    for words in
        ["What to use", "and 5 more: the tables have them", "jvm/pread against jvm/mmap", "Without figures"]
    {
        assert!(has(words), "{words}: {screen:#?}");
    }
}

#[test]
fn a_table_cut_short_is_shown_as_far_as_it_goes() {
    let whole = constructed::method_tables();
    for samples in [0, 1, 40, 77, 200] {
        let mut cut = whole.clone();
        cut.samples.truncate(samples);
        cut.elapsed_ns = None;
        let text = table_of(&cut, 100);
        assert!(text.contains("data 0.5x the cache"), "{samples}: {text}");
        assert!(text.contains("unknown"), "{samples}: {text}");
    }
    let mut none = whole;
    none.header.plan.cells.clear();
    none.samples.clear();
    let text = table_of(&none, 100);
    assert!(text.contains("there is no table"), "{text}");
}

#[test]
fn markdown_has_the_comparisons_too() {
    for run in [cliff_run::cliff(), constructed::method_tables()] {
        let mut out = Vec::new();
        with_answer(&run, |run| markdown::write(&mut out, std::slice::from_ref(run)).expect("memory"));
        let text = String::from_utf8(out).expect("text");
        let comparisons = judge(&run).comparisons.len();
        assert!(comparisons > 1 && text.matches("| method ").count() >= comparisons, "{text}");
    }
}
