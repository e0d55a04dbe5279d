//! Runs of one-shot work: scans, appends, fills.

use super::*;
use crate::judge::label::label;
use pagewise_model::{Evidence, Fill, Scan, Sync, Work};

/// A cell with a role, and its times in a sample: set-up, measured region and tear-down in ms.
pub(super) type Timed = (Cell, [u64; 3]);

pub(super) fn timed(role: Role, cell: Cell, ms: [u64; 3]) -> Timed {
    (Cell { role, ..cell }, ms)
}

/// A run whose samples take this long, a little more or less by round.
pub(super) fn run_of(cells: &[Timed]) -> Run {
    let entries: Vec<(Cell, u64)> = cells.iter().map(|(cell, _)| (cell.clone(), 1)).collect();
    let mut run = run(&entries);
    change(&mut run, |id, round, measurement, evidence| {
        let (cell, [setup, measured, teardown]) =
            cells.iter().find(|(cell, _)| cell.id() == id).expect("a cell of the run");
        *measurement = honest::measurement_of(cell);
        *evidence = honest::evidence(cell);
        measurement.setup_ns = setup * 1_000_000;
        measurement.measured_ns = measured * 1_000_000 + u64::from(round);
        measurement.teardown_ns = teardown * 1_000_000;
    });
    run
}

fn change(run: &mut Run, change: impl Fn(&str, u32, &mut Measurement, &mut Evidence)) {
    for sample in &mut run.samples {
        if let Outcome::Taken { measurement, evidence, .. } = &mut sample.outcome {
            change(&sample.cell, sample.round, measurement, evidence);
        }
    }
}

fn fills(first: [u64; 3], second: [u64; 3]) -> Vec<Timed> {
    let fill = |method| honest::fill(method, CacheState::Cold);
    vec![
        timed(Role::Measured, fill("mmap"), first),
        timed(Role::Control, fill("mmap"), first),
        timed(Role::Measured, fill("mmap:populate-write"), second),
    ]
}

#[test]
fn work_that_is_done_once_is_ranked_by_its_total() {
    // The fill alone is 2.5 times as fast; with its set-up it is slower.
    let judged = judge(&run_of(&fills([1, 100, 9], [90, 40, 10])));
    let comparison = &judged.comparisons[0];
    assert_eq!((comparison.verdict, comparison.best.as_deref()), (Verdict::Best, Some("mmap")));
    assert!((comparison.ratios[0].ratio - 140.0 / 110.0).abs() < 1e-6, "{:?}", comparison.ratios);
    let prepared = &judged.cells[2];
    assert_eq!((prepared.setup_ns, prepared.teardown_ns), (Some(90_000_000), Some(10_000_000)));
    assert_eq!(prepared.total_ns.map(|ns| ns / 1_000_000), Some(140));
    let sentence = sentence(&judged);
    assert!(
        sentence
            .starts_with("filling a file, blocks of 128 B, new file, 16 MiB: choose mmap (limited by cpu "),
        "{sentence}"
    );
}

#[test]
fn a_method_that_did_not_cover_its_ring_is_not_ranked() {
    let append = |method| honest::append(method, CacheState::Cold);
    let cells = |slow: u64| {
        [
            timed(Role::Measured, append("mmap"), [1, 100, 1]),
            timed(Role::Control, append("mmap"), [1, 100, 1]),
            timed(Role::Measured, append("pwrite"), [1, 120, 1]),
            timed(Role::Measured, append("uring:depth=1"), [1, slow, 1]),
        ]
    };
    let in_part = |rounds: u32, slow: u64| {
        let cells = cells(slow);
        let mut run = run_of(&cells);
        let id = cells[3].0.id();
        change(&mut run, |cell, round, measurement, evidence| {
            if cell == id && round < rounds {
                // 12.99 % of 104,857 records.
                measurement.operations = 13_620;
                evidence.requested_bytes = 1_362_000;
            }
        });
        judge(&run)
    };
    let judged = in_part(ROUNDS, 60_000);
    let unranked = &judged.comparisons[0].unranked[0];
    assert_eq!(
        (unranked.method.as_str(), reasons::unranked(&unranked.reason).as_str()),
        ("uring:depth=1", "covered 12 % of its ring in 60 s")
    );
    assert_eq!(judged.comparisons[0].best.as_deref(), Some("mmap"));
    assert_eq!((judged.cells[3].samples, judged.cells[3].invalid_samples), (8, 0));
    assert!((judged.cells[3].covered.expect("fixed work") - 0.1299).abs() < 1e-4);
    assert_eq!(judged.cells[0].covered, Some(1.0));
    assert!(judged.fell_short() && !in_part(0, 60_000).fell_short());
    let few = in_part(5, 250);
    let reason = reasons::unranked(&few.comparisons[0].unranked[0].reason);
    assert!(reason.ends_with("it covered 12 % of its ring in 250 ms in 5 more"), "{reason}");
    let gap = in_part(5, 60_000);
    assert_eq!(gap.comparisons[0].ratios.last().expect("two others").method, "uring:depth=1");
}

#[test]
fn a_cold_scan_counts_its_set_up() {
    let scan = |method| honest::scan(method, CacheState::Cold);
    let judged = judge(&run_of(&[
        timed(Role::Measured, scan("read"), [0, 100, 0]),
        timed(Role::Control, scan("read"), [0, 100, 0]),
        timed(Role::Measured, scan("mmap:populate"), [100, 20, 1]),
        timed(Role::Measured, scan("mmap:in-place"), [1, 80, 1]),
    ]));
    let comparison = &judged.comparisons[0];
    assert_eq!((comparison.unranked.len(), comparison.best.as_deref()), (0, Some("mmap:in-place")));
    let cell = &judged.cells[0];
    let per_second = cell.bytes_per_second.expect("a rate").median;
    assert!((per_second / (64.0 * 1024.0 * 1024.0 / 0.1) - 1.0).abs() < 1e-6, "{per_second}");
    assert_eq!((cell.reads_per_second, cell.missing_bytes), (None, None));
    assert_eq!(cell.ns_per_op.map(|ns| ns.median.round()), Some(100_000_004.0), "the middle of 8 rounds");
}

#[test]
fn touching_a_mapping_is_no_scan_of_it() {
    let scan = |method| {
        let mut cell = honest::scan(method, CacheState::Warm);
        cell.conditions.work = Work::Scan(Scan { consume: Consume::Touch });
        cell
    };
    let judged = judge(&run_of(&[
        timed(Role::Measured, scan("read"), [0, 100, 0]),
        timed(Role::Control, scan("read"), [0, 100, 0]),
        timed(Role::Measured, scan("mmap:in-place"), [1, 8, 1]),
    ]));
    let unranked = &judged.comparisons[0].unranked[0];
    assert_eq!(unranked.reason, UnrankedReason::TouchedInPlace);
}

#[test]
fn what_writing_costs_stands_in_the_json() {
    let append = |method| honest::synced(honest::append(method, CacheState::Cold), "end");
    let cells = [
        timed(Role::Measured, append("mmap:buffer=4KiB"), [2, 100, 50]),
        timed(Role::Control, append("mmap:buffer=4KiB"), [2, 100, 50]),
    ];
    let mut run = run_of(&cells);
    change(&mut run, |_, round, measurement, evidence| {
        measurement.sync_ns = 45_000_000;
        measurement.stalls = 3;
        measurement.stall_longest_ns = 7_000_000 + u64::from(round);
        evidence.device_written_bytes = Some(9 << 20);
        evidence.mapping_line = Some("7f00 rw-s 00000000 fe:00 12".to_string());
    });
    let json = json(&judge(&run));
    let cell = &json["cells"][0];
    let parameters = &cell["parameters"];
    assert_eq!(
        (&parameters["record_bytes"], &parameters["passes"], &parameters["sync"]),
        (&100.into(), &1.into(), &"end".into())
    );
    for absent in ["read_bytes", "reads_per_op", "align_bytes", "consume", "skew", "dependent", "block_bytes"]
    {
        assert!(parameters[absent].is_null(), "{absent}");
    }
    assert!(parameters["content"].is_null(), "it holds what is written");
    assert_eq!(cell["options"]["buffer"], 4096);
    assert_eq!((&cell["sync_ns"], &cell["stalls"]), (&45_000_000.into(), &3.into()));
    assert_eq!(cell["stall_longest_ns"], 7_000_007);
    assert_eq!(cell["latency_ns"]["max"], 7_000_007, "a stall is a latency, timed or not");
    assert_eq!((&cell["missing_bytes"], &cell["covered"]), (&0.into(), &1.0.into()));
    assert_eq!((&cell["dirty_after_bytes"], &cell["dirty_end_bytes"]), (&10_485_700.into(), &0.into()));
    assert_eq!((&cell["device_written_bytes"], &cell["setup_faults"]), (&(9 << 20).into(), &12.into()));
    assert_eq!(cell["evidence"]["mapping_line"], "7f00 rw-s 00000000 fe:00 12");
    let ns_per_op = cell["ns_per_op"]["median"].as_f64().expect("a number");
    assert!((ns_per_op - 100e6 / 104_857.0).abs() < 0.01, "{ns_per_op}");
    let per_second = cell["bytes_per_second"]["median"].as_f64().expect("a number");
    assert!((per_second - 104_857_000.0).abs() < 10.0, "{per_second}");
    assert!(cell["reads_per_second"].is_null());
}

#[test]
fn records_that_are_lost_are_counted_though_the_cell_is_invalid() {
    let append = |method| honest::append(method, CacheState::Cold);
    let mut run = run_of(&[timed(Role::Measured, append("mmap:buffer=200B"), [1, 50, 1])]);
    change(&mut run, |_, _, _, evidence| {
        evidence.written.as_mut().expect("read back").missing_bytes = 5_242_900;
    });
    spoil(&mut run, 0);
    let judged = judge(&run);
    let cell = &judged.cells[0];
    assert_eq!((cell.status, cell.missing_bytes), (Status::Invalid, Some(5_242_900)));
    assert_eq!((cell.ns_per_op, cell.total_ns, cell.covered), (None, None, None));
}

#[test]
fn labels_of_work_that_is_done_once() {
    let scan = |consume, cache| {
        let mut cell = honest::scan("read", cache);
        cell.conditions.work = Work::Scan(Scan { consume });
        cell
    };
    assert_eq!(
        label(&scan(Consume::Lines, CacheState::Cold).conditions),
        "scan · counting lines · cold · 64 MiB"
    );
    assert_eq!(
        label(&scan(Consume::Touch, CacheState::Warm).conditions),
        "scan · touching pages · warm · 64 MiB"
    );
    let mut random = scan(Consume::Sum, CacheState::AsIs);
    random.conditions.content = pagewise_model::Content::Random;
    assert_eq!(label(&random.conditions), "scan · all bytes summed · as-is · 64 MiB · random content");

    let mut append = honest::synced(honest::append("mmap", CacheState::Cold), "every:1MiB");
    assert_eq!(label(&append.conditions), "append · records of 100 B · new file · 10 MiB · sync every 1 MiB");
    if let Work::Append(work) = &mut append.conditions.work {
        (work.passes, work.sync) = (3, Sync::End);
    }
    append.conditions.cache = CacheState::Warm;
    append.conditions.host_settings.numa = Some(pagewise_model::Numa::Other);
    assert_eq!(
        label(&append.conditions),
        "append · records of 100 B · 3 passes · file written before · 10 MiB · sync at the end · \
         pages on the other node"
    );
    let mut fill = honest::fill("mmap", CacheState::Cold);
    assert_eq!(label(&fill.conditions), "fill · blocks of 128 B · new file · 16 MiB");
    fill.conditions.work = Work::Fill(Fill { block_bytes: Bytes::kib(4), sync: Sync::None, sync_call: None });
    assert!(label(&fill.conditions).contains("blocks of 4 KiB"));
}

/// A cold run of two scans of 64 MiB over a device measured at 1,600 MB a second; `read` takes
/// `ms`, `mmap` 42.
fn over_a_device(ms: u64) -> Judged {
    let mut ceiling = honest::cell("uring:direct+depth=8", CacheState::AsIs);
    let conditions = &mut ceiling.conditions;
    let reads = conditions.work.reads_mut().expect("it reads by the table");
    (reads.read_bytes, reads.align_bytes, reads.reads_per_op) = (Bytes::mib(1), Bytes::mib(1), 1);
    conditions.work = Work::SequentialRead(*reads);
    (conditions.threads, conditions.file_bytes, conditions.span_bytes) = (1, Bytes::mib(64), Bytes::mib(64));
    let scan = |method| honest::scan(method, CacheState::Cold);
    let mut run = run_of(&[
        timed(Role::Measured, scan("read:buffer=64KiB"), [0, ms, 0]),
        timed(Role::Control, scan("read:buffer=64KiB"), [0, ms, 0]),
        timed(Role::Measured, scan("mmap"), [0, 42, 0]),
        timed(Role::Ceiling, ceiling, [0, 100, 0]),
    ]);
    change(&mut run, |id, _, measurement, evidence| {
        measurement.latency_phase_ns = 0;
        let bytes = if id.contains("uring") { 160_000_000 } else { 64 << 20 };
        (evidence.device_read_bytes, evidence.device_read_requests) = (Some(bytes), Some(bytes >> 20));
        evidence.device_other_bytes = Some(0);
    });
    judge(&run)
}

#[test]
fn a_scan_that_outruns_the_ceiling_is_the_ceiling() {
    let within = json(&over_a_device(35));
    for cell in within["cells"].as_array().expect("cells").iter().take(3) {
        assert_eq!(cell["bound"], "device-bandwidth", "{}", cell["method"]);
        assert!(cell["of_device_bandwidth"].is_number());
    }
    let judged = over_a_device(27);
    let outrun = json(&judged);
    let (read, mmap) = (&outrun["cells"][0], &outrun["cells"][2]);
    assert_eq!(read["of_device_bandwidth"], serde_json::json!(1.0));
    assert!(read["bound"] != "device-bandwidth" && read["bound"] != "device-iops", "it may do more still");
    assert_eq!(mmap["of_device_bandwidth"].as_f64().map(|share| (share * 100.0).round()), Some(64.0));
    assert_eq!(outrun["ceilings"]["device"][1]["reached_by"], "read:buffer=64KiB");
    assert_eq!(
        notes(&judged, 0)[0],
        "read:buffer=64KiB runs at 100 % [100, 100] of the most that this device delivered in this run; no method here is \
         faster."
    );
    assert!(!sentence(&judged).contains("limited by device"), "{}", sentence(&judged));
}
