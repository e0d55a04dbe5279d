//! Table, CSV and JSON of constructed runs: one file of JSON and one of CSV, two tables of each
//! kind, and values of the others. One new field so changes two files at most.
//!
//! `PAGEWISE_BLESS=1 cargo test -p pagewise-report` writes them anew; read the difference before it
//! is committed.

mod constructed;
#[path = "golden/mod.rs"]
mod goldens;
#[path = "golden/screens.rs"]
mod screens;

use pagewise_analysis::judge;
use pagewise_model::run::Run;
use pagewise_model::sample::Outcome;
use pagewise_model::{CacheState, Cell, Failure, FailureKind, HostCounters, HostSecond};
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::printed::{Escape, Printed};
use pagewise_report::{csv, json, screen, table, vmstat};
use serde_json::{Value, json};
use std::io::Write;

fn assert_golden(name: &str, found: &[u8]) {
    goldens::assert_golden(name, std::str::from_utf8(found).expect("text"));
}

fn table_of(run: &Run, width: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut out = Printed::new(&mut text, Escape::Shown);
    let lines = table::document(&JudgedRun::of("run.jsonl", run, &judge(run))).lines(width);
    out.lines(&lines, false).expect("memory");
    out.flush().expect("memory");
    text
}

/// The text of a run at a width has each of `parts`, wherever lines end and columns begin.
#[track_caller]
fn expect_parts(run: &Run, width: usize, parts: &[&str]) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = String::from_utf8(table_of(run, width)).expect("text");
    for part in parts {
        assert!(words(&text).contains(&words(part)), "'{part}' is not in:\n{text}");
    }
}

/// Values of the judged JSON by their pointers.
#[track_caller]
fn expect_values(run: &Run, values: &[(&str, Value)]) {
    let judged: Value = serde_json::from_str(&json_of(run)).expect("json");
    for (pointer, value) in values {
        assert_eq!(judged.pointer(pointer), Some(value), "{pointer}");
    }
}

#[test]
fn the_table_at_80_columns() {
    assert_golden("complete-80.txt", &table_of(&constructed::complete(), 80));
}

#[test]
fn a_wider_terminal_shows_more_columns() {
    let run = constructed::complete();
    expect_parts(&run, 80, &["columns that do not fit: ", "memory-copy 96 %"]);
    expect_parts(&run, 100, &["columns that do not fit: 95 % interval, ", "(a wider terminal shows them"]);
    expect_parts(&run, 160, &["MiB/s      p50      p99       longest of", "memory-copy 96 %"]);
    let wide = String::from_utf8(table_of(&run, 160)).expect("text");
    assert!(!wide.contains("do not fit"), "{wide}");
}

#[test]
fn a_run_that_was_killed_says_so() {
    let parts = [
        "the samples come from another worker, 'scripted-worker'",
        "the run is not complete: 6 of 96 planned samples so far",
        "the run was interrupted and resumed once",
        "3 of 5 samples valid (60 %); some failed several checks · 1 cell unavailable on this machine",
        "1 x false-time, first: 9 ns, 10 ns",
        "pread: not ranked: 1 round has a valid sample, and a verdict needs 5",
        "the end of its stderr: 'line one | line two'",
    ];
    expect_parts(&constructed::killed(), 120, &parts);
}

#[test]
fn what_is_open_has_a_bound_each_and_says_what_the_cache_held() {
    let parts = [
        "mmap:random      open      522k   520k to 720k  0.67x to 1.58x",
        "pread            close     594k   593k to 595k      within 9 %",
        "mmap:sequential: unavailable in 1 of 9 attempts: no byte of the mapping is in huge pages",
        "the samples filled the page cache from 0 % to 100 %; judged are the 8 of 9 rounds from then on",
        "Verdict: open: mmap is ahead, not for certain of pread (within 9 %), mmap:sequential (within 2 %) and mmap:random (0.67x to 1.58x)",
        "choose mmap (limited by cpu 99 % [99, 99]); simpler and not shown to be behind is pread (at most 9 % slower).",
    ];
    expect_parts(&constructed::unclear(), 200, &parts);
}

#[test]
fn limits_caps_and_cold_starts_say_what_was_set() {
    let run = constructed::settings();
    let parts = [
        "· zipf 0.99 · memory 128 MiB · data 1.54x the cache · readahead 128 KiB · CPUs 0-1",
        "· as-is · 1 thread · 1 GiB · cap microsd",
        "no latency: a cap limits the rate",
        "80 ms         50.1 MiB  80 ms to 80 ms  2.00x to 2.00x",
        "pread:direct: not ranked: it bypasses the page cache, so nothing becomes warm",
        "device under the cap microsd, 1 thread, 32 in flight each, 1 MiB a request: 20.0 requests/s, 20 MiB/s",
    ];
    expect_parts(&run, 200, &parts);
    let values = [
        ("/cells/0/data_over_cache", json!(1.536)),
        ("/cells/0/memory_limit_bytes", json!(128 << 20)),
        ("/cells/0/latency_reason", Value::Null),
        ("/cells/4/bound", json!("device-bandwidth")),
        ("/cells/4/latency_ns", Value::Null),
        ("/cells/8/time_to_warm_ns/median", json!(80_000_000)),
        ("/comparisons/0/best", json!("pread")),
        ("/comparisons/1/verdict", json!("not-comparable")),
        ("/validity/as_of", json!("measurement")),
    ];
    expect_values(&run, &values);
}

#[test]
fn workers_are_named_and_what_they_hold_up_is_reported() {
    let run = constructed::workers();
    assert_golden("workers-160.txt", &table_of(&run, 160));
    assert_golden("workers.json", json_of(&run).as_bytes());
    let mut part = run;
    part.samples.retain(|sample| sample.round == 2);
    let mut out = Vec::new();
    csv::samples::write(&mut out, &[part]).expect("memory");
    assert_golden("workers.csv", &out);
}

#[test]
fn work_that_is_done_once_has_tables_of_its_own() {
    assert_golden("scan-100.txt", &table_of(&constructed::scan(), 100));
    assert_golden("append-100.txt", &table_of(&constructed::append(), 100));
    assert_golden("fill-100.txt", &table_of(&constructed::fill(), 100));
}

#[test]
fn records_in_the_judged_json_and_the_csv() {
    let methods = ["mmap", "mmap:buffer=1MiB", "uring:depth=8", "anonymous"];
    let mut part = constructed::part(constructed::append(), &methods);
    expect_values(
        &part,
        &[
            ("/cells/0/method", json!("mmap")),
            ("/cells/0/status", json!("ok")),
            ("/cells/0/sync_ns", json!(45750000)),
            ("/cells/0/total_ns", json!(109153333)),
            ("/cells/0/dirty_end_bytes", json!(0)),
            ("/cells/0/device_written_bytes", json!(104857600)),
            ("/cells/0/missing_bytes", json!(0)),
            ("/cells/1/method", json!("mmap:buffer=1MiB")),
            ("/cells/1/status", json!("invalid")),
            ("/cells/1/missing_bytes", json!(44040100)),
            ("/cells/2/method", json!("uring:depth=8")),
            ("/cells/2/status", json!("ok")),
            ("/cells/2/sync_ns", json!(9000000)),
            ("/cells/2/total_ns", json!(60_162_200_000_u64)),
            ("/cells/2/dirty_end_bytes", json!(0)),
            ("/cells/2/device_written_bytes", json!(104857600)),
            ("/cells/2/missing_bytes", json!(0)),
            ("/cells/3/method", json!("anonymous")),
            ("/cells/3/status", json!("ok")),
            ("/cells/3/sync_ns", json!(0)),
            ("/cells/3/total_ns", json!(9022500)),
            ("/cells/3/dirty_end_bytes", json!(0)),
            ("/cells/3/device_written_bytes", json!(104857600)),
            ("/cells/3/missing_bytes", json!(0)),
            ("/cells/4/method", json!("mmap")),
            ("/cells/4/status", json!("ok")),
            ("/cells/4/sync_ns", json!(0)),
            ("/cells/4/total_ns", json!(75175333)),
            ("/cells/4/dirty_end_bytes", json!(62914560)),
            ("/cells/4/missing_bytes", json!(0)),
            ("/comparisons/0/verdict", json!("not-comparable")),
            ("/comparisons/1/verdict", json!("not-comparable")),
        ],
    );
    part.samples.retain(|sample| sample.round == 2);
    let mut out = Vec::new();
    csv::samples::write(&mut out, &[part]).expect("memory");
    let text = String::from_utf8(out).expect("text");
    // The label of a cell and a reason hold commas. Both come before the columns that matter here.
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.rsplit(',').collect()).collect();
    let found = |row: usize, column: &str| {
        let place = rows[0].iter().position(|name| *name == column).expect("a column");
        rows[row][place]
    };
    for (row, column, value) in [
        (1, "record_bytes", "100"),
        (1, "passes", "1"),
        (1, "sync", "end"),
        (1, "sync_ns", "45750000"),
        (1, "operations", "1048576"),
        (1, "device_written_bytes", "104857600"),
        (1, "written_allocated_before_bytes", "0"),
        (1, "written_dirty_after_bytes", "52428800"),
        (1, "written_dirty_before_bytes", "0"),
        (1, "written_dirty_end_bytes", "0"),
        (1, "written_expected_bytes", "104857600"),
        (1, "written_stray_bytes", "0"),
        (1, "written_missing_bytes", "0"),
        (1, "written_read_back", "pread"),
        (2, "sync_ns", "45750000"),
        (2, "operations", "1048576"),
        (2, "device_written_bytes", "104857600"),
        (2, "written_allocated_before_bytes", "0"),
        (2, "written_dirty_after_bytes", "52428800"),
        (2, "written_dirty_before_bytes", "0"),
        (2, "written_dirty_end_bytes", "0"),
        (2, "written_expected_bytes", "104857600"),
        (2, "written_first_missing_at", "1048500"),
        (2, "written_stray_bytes", "0"),
        (2, "written_missing_bytes", "44040100"),
        (2, "written_read_back", "pread"),
    ] {
        assert_eq!(found(row, column), value, "{column} in row {row}");
    }
}

#[test]
fn a_note_names_methods_with_slow_processes() {
    let mut run = constructed::unclear();
    let mmap = run.header.plan.cells[0].id();
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == mmap && sample.round % 4 == 3) {
        if let Outcome::Taken { measurement, .. } = &mut sample.outcome {
            measurement.measured_ns *= 2;
        }
    }
    expect_parts(&run, 200, &["processes that took over 1.5x the median: 2 of 9 of mmap"]);
    let usual = String::from_utf8(table_of(&constructed::unclear(), 200)).expect("text");
    assert!(!usual.contains("processes that took"));
}

#[test]
fn an_order_that_medians_contradict_is_explained() {
    let mut run = constructed::part(constructed::complete(), &["mmap", "pread"]);
    let id = |method: &str| {
        let mut cells = run.header.plan.cells.iter();
        cells.find(|cell| cell.method.to_string() == method).map(Cell::id).expect("a cell")
    };
    let [first, second] = ["mmap", "pread"].map(id);
    // The second has no sample in the rounds that were slow for all, and a median that is above
    // that of the first.
    run.samples.retain(|sample| sample.cell != second || sample.round >= 2);
    for sample in run.samples.iter_mut().filter(|sample| [&first, &second].contains(&&sample.cell)) {
        if let Outcome::Taken { measurement, .. } = &mut sample.outcome {
            let slow = if sample.round < 4 { 4 } else { 1 };
            measurement.operations = if sample.cell == first { 8_000 } else { 7_500 } / slow;
        }
    }
    let why = "the order is that of ratios within rounds; by their medians pread is ahead of mmap";
    expect_parts(&run, 200, &[why]);
    let screen = screen_of(std::slice::from_ref(&run), 100);
    assert!(screen.contains(why), "{screen}");
    let usual = String::from_utf8(table_of(&constructed::complete(), 200)).expect("text");
    assert!(!usual.contains("the order is"));
}

#[test]
fn a_scan_and_a_fill_in_the_judged_json() {
    let scan =
        constructed::part(constructed::scan(), &["mmap", "read:buffer=64KiB", "uring:direct+depth=32"]);
    let values = [
        ("/cells/0/total_ns", json!(752_825_000)),
        ("/cells/1/bound", json!("device-bandwidth")),
        ("/cells/1/of_ceiling", json!(0.99726853)),
        ("/cells/0/covered", json!(1)),
        ("/comparisons/0/best", json!("read:buffer=64KiB")),
        ("/comparisons/1/verdict", json!("best")),
    ];
    expect_values(&scan, &values);
    let methods = ["mmap", "mmap:hugepage+populate-write", "mmap:hugepage"];
    let fill = constructed::part(constructed::fill(), &methods);
    let values = [
        ("/cells/0/bound", json!("cpu")),
        ("/cells/2/total_ns", json!(71_575_000)),
        ("/cells/3/status", json!("unavailable")),
        ("/comparisons/0/best", json!("mmap:hugepage+populate-write")),
        ("/comparisons/0/conditions/block_bytes", json!(128)),
    ];
    expect_values(&fill, &values);
}

#[test]
fn a_cap_has_no_latency_in_the_csv() {
    let mut out = Vec::new();
    csv::samples::write(&mut out, &[constructed::settings()]).expect("memory");
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
        ] {
            let text = String::from_utf8(table_of(&run, width)).expect("text");
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn ceilings_bounds_and_verdicts_in_the_judged_json() {
    let values = [
        ("/schema", json!(1)),
        ("/run/question", json!("read")),
        ("/ceilings/device_iops", json!(120_080)),
        ("/cells/3/bound", json!("memory-copy")),
        ("/cells/3/of_ceiling", json!(0.883922788)),
        ("/cells/4/status", json!("unavailable")),
        ("/cells/5/ops_per_second/median", json!(37_090)),
        ("/cells/12/bound", json!("device-iops")),
        ("/comparisons/0/best", json!("pread")),
        ("/comparisons/0/ratios/0/place", json!("behind")),
        ("/validity/valid", json!(105)),
        ("/validity/reasons/0/kind", json!("contaminated")),
    ];
    expect_values(&constructed::complete(), &values);
}

fn json_of(run: &Run) -> String {
    let mut out = Vec::new();
    json::write(&mut out, &[JudgedRun::of("run.jsonl", run, &judge(run))]).expect("memory");
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
    let run = constructed::killed();
    let judged = judge(&run);
    let judged = JudgedRun::of("run.jsonl", &run, &judged);
    json::write(&mut out, &[judged.clone(), judged]).expect("memory");
    let value: serde_json::Value = serde_json::from_slice(&out).expect("json");
    assert_eq!(value.as_array().map(Vec::len), Some(2));
}

#[test]
fn the_csv_says_of_each_attempt_what_became_of_it() {
    let mut out = Vec::new();
    csv::samples::write(&mut out, &[constructed::killed()]).expect("memory");
    let text = String::from_utf8(out).expect("text");
    assert!(text.lines().next().expect("a header").starts_with("run,seed,cell,"));
    assert_eq!(text.lines().count(), 1 + 6);
    for (word, count) in [
        (",valid,measurement,", 3),
        (",invalid,measurement,wrong-checksum false-time,", 1),
        (",unavailable,,", 1),
    ] {
        assert_eq!(text.matches(word).count(), count, "{word}: {text}");
    }
    assert!(text.contains("worker-died,") && text.contains("line one"), "{text}");
}

/// A machine with two CPUs, read a little late each second; its third second is missing, and the
/// run was resumed once.
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
    // Another kernel after a boot: no steal, no count of swapping, idle time that it took back.
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
fn syncs_have_columns_and_a_line_of_the_screen() {
    let run = constructed::log();
    assert_golden("log-140.txt", &table_of(&run, 140));
    let text = screen_of(std::slice::from_ref(&run), 100);
    assert!(text.lines().count() <= screen::MOST_LINES);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "pwrite:direct+buffer=8KiB: 3,997 records/s; fdatasync ",
        "/s of 8 KiB each, p50 225 µs, p99 750 µs, longest 5 ms of ",
        "pwrite: 73.0k records/s; sync_file_range (not durable) ",
        "records/s",
    ] {
        assert!(text.contains(part), "'{part}' is not in:\n{text}");
    }
    let judged = json_of(&run);
    let cell = |index: usize, name: &str| format!("/cells/{index}/syncs/{name}");
    let judged: Value = serde_json::from_str(&judged).expect("json");
    assert_eq!(judged.pointer(&cell(0, "call")), Some(&json!("msync")));
    assert_eq!(judged.pointer(&cell(4, "is_durable")), Some(&json!(false)));
    assert_eq!(judged.pointer(&cell(4, "p50")), Some(&json!(450_000)));
}

/// With one method there is nothing to choose, and conditions are what differs.
#[test]
fn syncs_of_one_method_are_a_table_of_its_calls_and_threads() {
    let run = constructed::part(constructed::log(), &["pwrite"]);
    let text = screen_of(std::slice::from_ref(&run), 100);
    let expected = "
Syncs of pwrite
  conditions                            records/s  syncs/s  bytes/sync     p50     p99
  1 thread, each record committed           2,499    2,499       8 KiB  360 µs  1.2 ms
  sync every 64 KiB by sync_file_range      73.0k    9,120      64 KiB  360 µs       –
  conditions                            call
  1 thread, each record committed       fdatasync
  sync every 64 KiB by sync_file_range  sync_file_range (not durable)
";
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("pwrite: 73.0k records/s"), "{text}");
    for width in [80, 100] {
        let text = screen_of(std::slice::from_ref(&run), width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    }
}

#[test]
fn where_no_method_has_figures_nothing_is_said_to_limit_one() {
    for run in [constructed::scan(), constructed::append(), constructed::fill()] {
        let text = |run: &Run| String::from_utf8(table_of(run, 80)).expect("text");
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

/// The screen of runs as text without emphasis.
fn screen_of(runs: &[Run], width: usize) -> String {
    let judged: Vec<_> = runs.iter().map(judge).collect();
    let paths: Vec<String> = (0..runs.len()).map(|index| format!("run-{index}.jsonl")).collect();
    let both = runs.iter().zip(&judged).zip(&paths);
    let shown: Vec<JudgedRun<'_>> =
        both.map(|((run, judged), path)| JudgedRun::of(path, run, judged)).collect();
    screen::lines(&shown, width).iter().map(|line| line.text() + "\n").collect()
}

fn all_runs() -> Vec<Run> {
    vec![constructed::complete(), constructed::scan(), constructed::append(), constructed::fill()]
}

#[test]
fn a_narrow_heading_of_bars_keeps_what_distinguishes_them_from_others() {
    let mut run = constructed::part(constructed::complete(), &["mmap", "pread"]);
    run.header.plan.cells.retain(|cell| cell.conditions.cache == CacheState::Warm);
    let more = run.header.plan.cells.clone().into_iter().map(|mut cell| {
        cell.conditions.threads = 2;
        cell
    });
    run.header.plan.cells.extend(more);
    let heading = |width| {
        let screen = screen_of(std::slice::from_ref(&run), width);
        screen.lines().find(|line| line.ends_with("how much slower")).map(String::from)
    };
    let text = |condition: &str| {
        format!("random-read, batches of 16 reads of 16 KiB, {condition}: reads/s, and how much slower")
    };
    assert_eq!(heading(100), Some(text("warm, 1 thread")));
    assert_eq!(heading(80).as_deref(), Some("random-read, 1 thread: reads/s, and how much slower"));
}

#[test]
fn a_run_that_was_stopped_lacks_no_samples_of_rounds_that_it_did_not_reach() {
    let mut run = constructed::complete();
    let is_reported = |run: &Run| screen_of(std::slice::from_ref(run), 80).contains(" of 7 samples");
    run.samples.retain(|sample| sample.round < 6 || sample.cell != run.header.plan.cells[0].id());
    assert!(is_reported(&run));
    run.samples.retain(|sample| sample.round < 3);
    run.elapsed_ns = None;
    let screen = screen_of(std::slice::from_ref(&run), 80);
    assert!(!screen.contains("samples than rounds") && !is_reported(&run), "{screen}");
}
