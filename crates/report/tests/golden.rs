//! Table, CSV and JSON of a constructed run against files that a reader can judge.
//!
//! `PAGEWISE_BLESS=1 cargo test -p pagewise-report` writes them anew; read the difference before it is
//! committed.

mod constructed;

use std::path::PathBuf;

use pagewise_analysis::judge;
use pagewise_model::sample::Outcome;
use pagewise_model::{Failure, FailureKind, HostCounters, HostSecond};
use pagewise_report::{csv, json, table, vmstat};

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
fn limits_caps_and_cold_starts_say_what_was_set() {
    assert_golden("settings-140.txt", &table_of(&constructed::settings(), 140));
}

#[test]
fn workers_are_named_and_what_they_hold_up_is_told() {
    let run = constructed::workers();
    assert_golden("workers-100.txt", &table_of(&run, 100));
    assert_golden("workers-160.txt", &table_of(&run, 160));
    assert_golden("workers.json", json_of(&run).as_bytes());
    let mut part = run;
    part.samples.retain(|sample| sample.round == 2);
    let mut out = Vec::new();
    csv::write(&mut out, &[part]).expect("memory");
    assert_golden("workers.csv", &out);
}

#[test]
fn the_tables_of_the_study() {
    let run = constructed::lucene();
    assert_golden("lucene-100.txt", &table_of(&run, 100));
    assert_golden("lucene-140.txt", &table_of(&run, 140));
    let judged = judge(&run);
    let lucene = serde_json::to_string_pretty(&judged.pivot).expect("json");
    let lucene: String = lucene.lines().map(|line| rounded(line) + "\n").collect();
    assert_golden("lucene.json", lucene.as_bytes());
}

#[test]
fn a_study_cut_short_is_shown_as_far_as_it_goes() {
    let whole = constructed::lucene();
    for samples in [0, 1, 40, 77, 200, 400] {
        let mut cut = whole.clone();
        cut.samples.truncate(samples);
        cut.elapsed_ns = None;
        let text = String::from_utf8(table_of(&cut, 100)).expect("text");
        assert!(text.contains("data 0.5x of the cache"), "{samples}: {text}");
        assert!(text.contains("cannot be told"), "{samples}: {text}");
    }
    let mut none = whole;
    none.header.plan.cells.clear();
    none.samples.clear();
    let text = String::from_utf8(table_of(&none, 100)).expect("text");
    assert!(text.contains("nothing to lay out"), "{text}");
}

#[test]
fn a_scan_shows_seconds_waiting_and_what_the_mapping_saves() {
    assert_golden("scan-100.txt", &table_of(&constructed::scan(), 100));
    assert_golden("scan-140.txt", &table_of(&constructed::scan(), 140));
}

#[test]
fn records_show_stalls_debts_and_losses() {
    assert_golden("append-100.txt", &table_of(&constructed::append(), 100));
    assert_golden("append-140.txt", &table_of(&constructed::append(), 140));
}

#[test]
fn a_fill_shows_set_up_and_fill_apart() {
    assert_golden("fill-100.txt", &table_of(&constructed::fill(), 100));
    assert_golden("fill-140.txt", &table_of(&constructed::fill(), 140));
}

#[test]
fn work_that_is_done_once_in_the_judged_json_and_the_csv() {
    let runs = [
        ("scan", constructed::scan(), &["mmap", "read:buffer=64KiB", "uring:direct+depth=32"][..]),
        ("append", constructed::append(), &["mmap", "mmap:buffer=1MiB", "uring:depth=8", "anonymous"][..]),
        ("fill", constructed::fill(), &["mmap", "mmap:hugepage+populate-write", "mmap:hugepage"][..]),
    ];
    for (name, run, methods) in runs {
        let mut part = constructed::part(run, methods);
        assert_golden(&format!("{name}.json"), json_of(&part).as_bytes());
        part.samples.retain(|sample| sample.round == 2);
        let mut out = Vec::new();
        csv::write(&mut out, &[part]).expect("memory");
        assert_golden(&format!("{name}.csv"), &out);
    }
}

#[test]
fn limits_caps_and_cold_starts_in_the_judged_json() {
    assert_golden("settings.json", json_of(&constructed::settings()).as_bytes());
}

#[test]
fn a_cap_has_no_latency_in_the_csv() {
    let mut out = Vec::new();
    csv::write(&mut out, &[constructed::settings()]).expect("memory");
    let text = String::from_utf8(out).expect("text");
    let header: Vec<&str> = text.lines().next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|column| *column == name).expect(name);
    // Commas stand in no field behind the id of the cell.
    let field = |line: &str, name: &str| {
        line.split(',').rev().nth(header.len() - 1 - column(name)).expect(name).to_string()
    };
    let capped: Vec<&str> = text.lines().filter(|line| line.contains(",cap=microsd/")).collect();
    assert_eq!(capped.len(), 4 * 7);
    for name in ["latency_ns", "latency_counts", "stalls", "stall_longest_ns"] {
        assert!(capped.iter().all(|line| field(line, name).is_empty()), "{name}");
    }
    assert!(capped.iter().all(|line| field(line, "device_cap") == "microsd"));
    let limited = text.lines().find(|line| line.contains(",memory=128MiB")).expect("a limited cell");
    assert_eq!(field(limited, "memory_limit_bytes"), "134217728");
    assert_eq!(field(limited, "group_peak_bytes"), "134217728");
    assert_eq!(field(limited, "host_tlb_shootdowns"), "2004");
    assert!(!field(limited, "latency_ns").is_empty());
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [80, 100, 120, 160, 200] {
        for run in [
            constructed::complete(),
            constructed::settings(),
            constructed::scan(),
            constructed::append(),
            constructed::fill(),
            constructed::workers(),
            constructed::lucene(),
        ] {
            let text = String::from_utf8(table_of(&run, width)).expect("text");
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn the_judged_json() {
    assert_golden("complete.json", json_of(&constructed::complete()).as_bytes());
}

fn json_of(run: &pagewise_model::run::Run) -> String {
    let mut out = Vec::new();
    json::write(&mut out, &[judge(run)]).expect("memory");
    let text = String::from_utf8(out).expect("text");
    text.lines().map(|line| rounded(line) + "\n").collect()
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

/// A machine with two CPUs, read a little late each second; its third second is missing, and the run was resumed once.
#[test]
fn the_seconds_as_vmstat_prints_them() {
    let host = |step: u64| HostCounters {
        running: Some(step % 3),
        blocked: Some(1),
        free_bytes: Some((5_837_492 << 10) - step * 4096),
        buffer_bytes: Some(65_916 << 10),
        cached_bytes: Some((17_788_796 << 10) + step * 4096),
        swapped_bytes: Some(0),
        swap_in_bytes: Some(8192 * step),
        swap_out_bytes: Some(0),
        block_in_bytes: Some(step * (100 << 20) + 512),
        block_out_bytes: Some(step * 5 * 1024),
        interrupts: Some(16_105_766 + step * 1_234),
        context_switches: Some(26_724_688 + step * 2_345),
        user_ns: Some(step * 1_110_000_000),
        system_ns: Some(step * 420_000_000),
        idle_ns: Some(step * 300_000_000),
        wait_ns: Some(step * 150_000_000),
        steal_ns: Some(step * 20_000_000),
        ..HostCounters::default()
    };
    let second = |at_ms: u64, begins, step| HostSecond { at_ns: at_ms * 1_000_000, begins, host: host(step) };
    // Another kernel after a boot in between: no steal, no count of swapping, and idle time that it took back.
    let booted = |at_ms, begins, idle_ns| {
        let mut second = second(at_ms, begins, at_ms / 1000);
        second.host.swap_in_bytes = None;
        second.host.steal_ns = None;
        second.host.idle_ns = Some(idle_ns);
        second
    };
    let seconds = [
        second(0, true, 10),
        second(1_000, false, 11),
        second(2_002, false, 12),
        second(4_000, false, 14),
        booted(4_321, true, 1_000_000_000),
        booted(5_000, false, 1_600_000_000),
        booted(6_000, false, 1_599_000_000),
    ];
    let mut out = Vec::new();
    vmstat::write(&mut out, &vmstat::rows(&seconds)).expect("memory");
    assert_golden("vmstat.csv", &out);
}

#[test]
fn where_no_method_has_figures_nothing_is_said_to_limit_one() {
    for run in [constructed::scan(), constructed::append(), constructed::fill()] {
        let text = |run: &pagewise_model::run::Run| String::from_utf8(table_of(run, 80)).expect("text");
        assert!(text(&run).contains("  limited by: "));
        let mut none = run;
        for sample in &mut none.samples {
            if let Outcome::Taken { failures, .. } = &mut sample.outcome {
                failures.push(Failure { kind: FailureKind::Contaminated, detail: "others".to_string() });
            }
        }
        assert!(!text(&none).contains("limited by:"), "{}", text(&none));
    }
}
