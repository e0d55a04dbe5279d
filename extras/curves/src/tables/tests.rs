//! Tables of runs with given rates.

use super::*;
use pagewise_analysis::judge;
use pagewise_analysis::judge::Status;
use pagewise_analysis::judge::verdict::Finding;
use pagewise_model::counters::RateWindow;
use pagewise_model::planned_table::{PlannedTable, TableColumn, TableColumns};
use pagewise_model::run::Header;
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Bytes, CacheState, Cell, Conditions, Environment, Evidence, Failure, FailureKind, Outcome, Plan, Reads,
    Role, Sample, Work,
};
use pagewise_report::words::reasons;

const ROUNDS: u32 = 8;
const MIB: u64 = 1 << 20;

/// A cell with its rate in operations per second.
#[derive(Clone)]
struct Rated {
    cell: Cell,
    rate: f64,
}

/// A cell that reads 16 KiB sixteen times per operation, from 256 MiB, on two threads.
fn cell_of(method: &str, cache: CacheState) -> Cell {
    let work = Work::RandomRead(Reads { reads_per_op: 16, ..Reads::of(Bytes::kib(16)) });
    let conditions = Conditions { threads: 2, cache, ..Conditions::of(work, Bytes::mib(256)) };
    Cell { role: Role::Measured, method: method.parse().expect(method), conditions }
}

/// Evidence of 160 operations; of a cold start in eight windows.
fn evidence(cell: &Cell) -> Evidence {
    let window = RateWindow { elapsed_ns: 20_000_000, ..RateWindow::default() };
    let windows = if cell.conditions.cache == CacheState::ColdStart { vec![window; 8] } else { Vec::new() };
    Evidence {
        wall_ns: 161_000_000,
        requested_bytes: cell.conditions.bytes_of(160),
        device_read_bytes: Some(0),
        cpu_ns: Some(120_000_000),
        windows,
        ..Evidence::default()
    }
}

/// Data as a multiple of the cache under 256 MiB; 0: without a limit.
fn rated(method: &str, ratio: f64, threads: u32, rate: f64) -> Rated {
    let mut cell = cell_of(method, CacheState::Warm);
    cell.conditions.threads = threads;
    if ratio > 0.0 {
        cell.conditions.host_settings.memory_limit_bytes = Some(Bytes::mib(256));
        let capacity = cell.conditions.cache_capacity().expect("a limit").0;
        cell.conditions.span_bytes = Bytes((capacity as f64 * ratio) as u64 / MIB * MIB);
    }
    Rated { cell, rate }
}

fn sample(rated: &Rated, index: usize, round: u32) -> Sample {
    // Each round differs a little, in its own way for each cell, so that intervals have a width.
    let scatter = 1.0 + 1e-3 * ((index as u32 * 7 + round * 5) % 11) as f64;
    let operations = (rated.rate * scatter / 10.0) as u64;
    let measurement = Measurement { measured_ns: 100_000_000, operations, ..Measurement::default() };
    let outcome = Outcome::Taken {
        measurement: Box::new(measurement),
        evidence: Box::new(evidence(&rated.cell)),
        failures: Vec::new(),
    };
    Sample::of(&rated.cell, round, outcome)
}

/// The table that `lucene` asks for.
fn asked() -> PlannedTable {
    PlannedTable {
        columns: TableColumns::Threads,
        baseline: Some("pread".into()),
        against: vec!["mmap".into(), "filechannel:direct-buffer".into()],
        explain: vec!["filechannel:direct-buffer".into(), "filechannel:heap-buffer".into()],
    }
}

/// The run of these cells; the first of each comparison has a control.
fn run_of(mut cells: Vec<Rated>, change: impl Fn(&Cell, &mut Sample)) -> Run {
    let mut controls: Vec<Rated> = Vec::new();
    for rated in &cells {
        if controls.iter().all(|control| control.cell.conditions != rated.cell.conditions) {
            controls
                .push(Rated { cell: Cell { role: Role::Control, ..rated.cell.clone() }, rate: rated.rate });
        }
    }
    cells.extend(controls);
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        for (index, rated) in cells.iter().enumerate() {
            let mut sample = sample(rated, index, round);
            change(&rated.cell, &mut sample);
            samples.push(sample);
        }
    }
    let plan = Plan {
        question: "mine".into(),
        rounds: ROUNDS,
        table: Some(asked()),
        ..Plan::of(cells.into_iter().map(|rated| rated.cell).collect())
    };
    let environment = Environment { cpus: 2, ..Environment::default() };
    Run { elapsed_ns: Some(1), ..Run::of(Header { environment, ..Header::of(plan) }, samples) }
}

fn tables_of(cells: Vec<Rated>, change: impl Fn(&Cell, &mut Sample)) -> Tables {
    found_in(&run_of(cells, change))
}

fn found_in(run: &Run) -> Tables {
    of(run, run.header.plan.table.as_ref().expect("the plan asks for it"), &judge(run))
}

fn evidence_of(sample: &mut Sample) -> &mut Evidence {
    match &mut sample.outcome {
        Outcome::Taken { evidence, .. } => evidence,
        _ => panic!("it was taken"),
    }
}

/// pread and mmap at 1 and 16 threads.
fn pair(ratio: f64) -> Vec<Rated> {
    vec![
        rated("jvm/mmap", ratio, 1, 30_000.0),
        rated("jvm/pread", ratio, 1, 20_000.0),
        rated("jvm/mmap", ratio, 16, 50_000.0),
        rated("jvm/pread", ratio, 16, 50_100.0),
    ]
}

#[test]
fn a_plan_that_asks_for_no_table_has_none() {
    let mut run = run_of(pair(0.5), |_, _| {});
    run.header.plan.table = None;
    assert!(crate::answer::of(&run, &judge(&run)).is_none());
}

#[test]
fn sizes_of_the_data_are_columns_where_a_plan_asks_for_them() {
    let mut run = run_of([pair(2.0), pair(0.5)].concat(), |_, _| {});
    run.header.plan.table = Some(PlannedTable { columns: TableColumns::Data, ..asked() });
    let found = found_in(&run);
    assert_eq!((found.tables.len(), found.falls.len()), (2, 0), "one for each number of threads");
    for table in &found.tables {
        let words: Vec<String> = table.columns.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["data 0.5x the cache", "data 2x the cache"]);
        assert_eq!((table.advantages.len(), table.scaling[0].ratios.len()), (1, 1));
        assert!(!table.label.contains("the cache"), "{}", table.label);
    }
}

#[test]
fn threads_are_columns_though_they_leave_less_cache() {
    let found = tables_of(pair(0.5), |_, _| {});
    assert_eq!(found.tables.len(), 1);
    let matrix = &found.tables[0];
    assert_eq!(matrix.columns, [TableColumn::Threads(1), TableColumn::Threads(16)]);
    let spans: Vec<Bytes> = pair(0.5).iter().map(|rated| rated.cell.conditions.span_bytes).collect();
    assert_ne!(spans[0], spans[2], "16 threads have buffers of their own");
    let methods: Vec<&str> = matrix.rows.iter().map(|row| row.method.as_str()).collect();
    assert_eq!(methods, ["jvm/mmap", "jvm/pread"]);
    let score = matrix.rows[1].scores[0].as_ref().and_then(|score| score.ops_per_ms).expect("a score");
    assert!((score.median - 20.1).abs() < 0.1 && score.low.is_some(), "{score:?}");
    let findings: Vec<Finding> =
        matrix.advantages[0].ratios.iter().map(|ratio| ratio.as_ref().expect("both").finding).collect();
    assert_eq!(findings, [Finding::Lower, Finding::Indistinguishable]);
    assert_eq!(matrix.fastest[0].methods, ["jvm/mmap"]);
    assert_eq!(matrix.fastest[1].methods.len(), 2);
    assert!(found.falls.is_empty(), "there is one size");
}

#[test]
fn sizes_are_tables_of_their_own_and_the_largest_is_held_against_the_smallest() {
    let cells: Vec<Rated> = [pair(0.5), pair(1.0), pair(2.0).into_iter().map(slowed).collect()].concat();
    let found = tables_of(cells, |_, _| {});
    assert_eq!(found.tables.len(), 3);
    let [fall] = found.falls.as_slice() else { panic!("{:?}", found.falls) };
    assert!((fall.from - 0.5).abs() < 0.01 && (fall.to - 2.0).abs() < 0.01);
    assert_eq!(fall.columns, [TableColumn::Threads(1), TableColumn::Threads(16)]);
    let ratio = fall.rows[0].ratios[0].as_ref().expect("both sizes");
    assert!((ratio.ratio - 0.01).abs() < 0.001 && ratio.finding == Finding::Lower, "{ratio:?}");
    // Without a limit there is no pressure.
    let unlimited = tables_of(pair(0.0), |_, _| {});
    assert_eq!((unlimited.tables.len(), unlimited.falls.len()), (1, 0));
    assert_eq!(unlimited.tables[0].data_over_cache, None);
}

fn slowed(rated: Rated) -> Rated {
    Rated { rate: rated.rate / 100.0, ..rated }
}

#[test]
fn cells_that_are_missing_invalid_or_refused_leave_the_others_alone() {
    let mut cells = pair(0.5);
    // The plan has no pread at one thread.
    cells.remove(1);
    let found = tables_of(cells, |cell, sample| {
        if cell.method.to_string() == "jvm/mmap" && cell.conditions.threads == 16 {
            let Outcome::Taken { failures, .. } = &mut sample.outcome else { panic!("it was taken") };
            failures.push(Failure { kind: FailureKind::NotWarm, detail: "9 bytes".into() });
        }
    });
    let matrix = &found.tables[0];
    let row = |method: &str| matrix.rows.iter().find(|row| row.method == method).expect(method);
    assert!(row("jvm/pread").scores[0].is_none());
    let invalid = row("jvm/mmap").scores[1].as_ref().expect("it is in the plan");
    assert_eq!((invalid.status, invalid.ops_per_ms, invalid.invalid_samples), (Status::Invalid, None, 8));
    assert_eq!(reasons::cell(invalid.reason.as_ref()), "not-warm: 9 bytes");
    assert!(invalid.waits.is_none());
    assert_eq!(matrix.advantages[0].ratios, [None, None]);
    assert_eq!(matrix.scaling.iter().map(|own| own.ratios.len()).sum::<usize>(), 2);
}

#[test]
fn a_round_fewer_is_paired_and_too_few_rounds_decide_nothing() {
    let lost = |count: u32| {
        let found = tables_of(pair(0.5), move |cell, sample| {
            if cell.method.to_string() == "jvm/pread" && cell.role == Role::Measured && sample.round < count {
                sample.outcome = Outcome::Broken { failures: Vec::new(), stderr_tail: String::new() };
            }
        });
        *found.tables[0].advantages[0].ratios[0].as_ref().expect("both")
    };
    let (whole, fewer, few) = (lost(0), lost(1), lost(4));
    assert_eq!((whole.rounds, fewer.rounds, few.rounds), (8, 7, 4));
    assert_eq!(
        (whole.finding, fewer.finding, few.finding),
        (Finding::Lower, Finding::Lower, Finding::TooFewRounds)
    );
    assert!((few.ratio - whole.ratio).abs() < 0.01);
}

#[test]
fn what_scatter_hides_is_not_said() {
    let cells = vec![rated("jvm/mmap", 0.5, 1, 21_000.0), rated("jvm/pread", 0.5, 1, 20_000.0)];
    let findings = |scatter: f64| {
        let found = tables_of(cells.clone(), move |cell, sample| {
            let Outcome::Taken { measurement, .. } = &mut sample.outcome else { panic!("it was taken") };
            if cell.method.to_string() == "jvm/mmap" && sample.round % 2 == 0 {
                measurement.operations = (measurement.operations as f64 * (1.0 - scatter)) as u64;
            }
        });
        found.tables[0].advantages[0].ratios[0].as_ref().expect("both").finding
    };
    assert_eq!((findings(0.0), findings(0.2)), (Finding::Lower, Finding::Indistinguishable));
}

/// Reported waits of the threads of a channel.
fn waits_of(threads: u32, change: impl Fn(&mut Evidence)) -> ThreadWaits {
    let method = "jvm/filechannel:direct-buffer";
    let cells = vec![rated(method, 0.5, 1, 20_000.0), rated(method, 0.5, threads, 21_000.0)];
    let found = tables_of(cells, move |cell, sample| {
        let seen = evidence_of(sample);
        seen.wall_ns = 100_000_000;
        if cell.conditions.threads == threads {
            change(seen);
        }
    });
    let score = found.tables[0].rows[0].scores.last().cloned().flatten().expect("a score");
    assert!(found.tables[0].rows[0].explained);
    score.waits.expect("valid samples")
}

#[test]
fn what_a_channel_waits_for_follows_from_its_counters() {
    let with = |cpu_ms: u64, queue_ms: u64, switches: u64, device: u64| {
        waits_of(8, move |seen| {
            seen.cpu_ns = Some(cpu_ms * 1_000_000);
            seen.run_queue_ns = Some(queue_ms * 1_000_000);
            seen.voluntary_switches = Some(switches);
            (seen.user_ns, seen.system_ns) = (Some(40_000_000), Some(60_000_000));
            seen.device_read_bytes = Some(device);
        })
    };
    // 100 ms on two CPUs; about 2,200 operations of 40 MiB in all.
    let busy = with(195, 600, 10, 0);
    assert_eq!(busy.cause, Cause::CpusBusy);
    assert_eq!((busy.threads, busy.cpus, busy.kernel_share), (8, 2, Some(0.6)));
    let device = with(40, 10, 20_000, 30 << 20);
    assert_eq!(device.cause, Cause::Device);
    let lock = with(100, 10, 5_000, 0);
    assert_eq!(lock.cause, Cause::AnotherThread);
    assert_eq!(lock.cpu_share, Some(0.5));
    assert!(lock.voluntary_switches_per_op.is_some_and(|times| (2.3..2.4).contains(&times)));
    assert_eq!(with(100, 690, 0, 0).cause, Cause::OtherProcesses);
    assert_eq!(with(100, 10, 3, 0).cause, Cause::Unknown, "it waits, and does not switch");
}

#[test]
fn what_is_not_known_is_not_said() {
    let unknown = waits_of(8, |seen| seen.cpu_ns = None);
    assert_eq!((unknown.cause, unknown.cpu_share), (Cause::Unknown, None));
    let no_device = waits_of(8, |seen| {
        (seen.cpu_ns, seen.run_queue_ns, seen.device_read_bytes) = (Some(50_000_000), Some(0), None);
        seen.voluntary_switches = Some(50_000);
    });
    assert_eq!(no_device.cause, Cause::Unknown, "it may be the device");
    let beating = waits_of(8, |seen| {
        (seen.cpu_ns, seen.run_queue_ns, seen.device_read_bytes) = (Some(50_000_000), Some(0), Some(0));
        seen.voluntary_switches = Some(50_000);
        seen.heartbeats = vec![pagewise_model::Heartbeat::default()];
    });
    assert_eq!((beating.cause, beating.voluntary_switches_per_op), (Cause::Unknown, None));
}

#[test]
fn threads_that_never_stop_are_limited_by_their_cpu() {
    let alone = rated("jvm/filechannel:heap-buffer", 0.5, 1, 20_000.0);
    let found = tables_of(vec![alone], |_, sample| {
        let seen = evidence_of(sample);
        (seen.wall_ns, seen.cpu_ns, seen.run_queue_ns) = (100_000_000, Some(99_000_000), Some(0));
    });
    let row = &found.tables[0].rows[0];
    let waits = row.scores[0].as_ref().and_then(|score| score.waits.as_ref()).expect("valid samples");
    assert!(row.explained && found.tables[0].scaling[0].ratios.is_empty());
    assert_eq!((waits.cause, waits.threads, waits.cpus), (Cause::CpusBusy, 1, 2));
}

/// Cold starts of both, which are warm after the given numbers of eight windows.
fn cold(mmap: usize, pread: usize) -> ColdStart {
    let cell = |method: &str| Rated { cell: cell_of(method, CacheState::ColdStart), rate: 1600.0 };
    let found = tables_of(vec![cell("jvm/mmap"), cell("jvm/pread")], move |cell, sample| {
        let windows = if cell.method.to_string() == "jvm/mmap" { mmap } else { pread };
        let round = u64::from(sample.round);
        let seen = evidence_of(sample);
        let total: u64 = 40 << 20;
        for (index, window) in seen.windows.iter_mut().enumerate() {
            let is_cold = index < windows;
            window.operations = if is_cold { 10 } else { 24 };
            window.device_read_bytes = Some(if is_cold { total / windows as u64 } else { 0 });
            window.resident_bytes = Some(total / windows as u64 * (index + 1).min(windows) as u64);
            window.elapsed_ns = 20_000_000 + round * 1000;
        }
    });
    found.cold_starts.into_iter().next().expect("a cold start")
}

#[test]
fn which_one_warms_faster_is_known_where_it_can_be() {
    let sooner = cold(2, 4);
    assert_eq!(sooner.other_over_baseline.map(|ratio| ratio.finding), Some(Finding::Higher));
    assert_eq!((sooner.baseline.as_deref(), sooner.other.as_deref()), (Some("jvm/pread"), Some("jvm/mmap")));
    assert!(sooner.other_over_baseline.is_some_and(|ratio| (ratio.ratio - 2.0).abs() < 0.005));
    let figures = |row: &ColdRow| {
        let [ns, read] = [row.to_steady_ns, row.bytes_to_steady].map(|figure| figure.expect("warm").median);
        (pagewise_model::format::time(ns), pagewise_model::format::bytes(read))
    };
    assert_eq!(figures(&sooner.rows[0]), ("40 ms".to_string(), "40 MiB".to_string()));
    assert_eq!(figures(&sooner.rows[1]), ("80 ms".to_string(), "40 MiB".to_string()));
    let row = &sooner.rows[0];
    let [half, ninety, steady] =
        [row.to_half_ns, row.to_ninety_ns, row.to_steady_ns].map(|time| time.expect("warm").median);
    assert_eq!(half, ninety);
    assert_eq!(ninety, steady);
    assert_eq!(row.windows.len(), 8);
    assert_eq!(cold(4, 2).other_over_baseline.map(|ratio| ratio.finding), Some(Finding::Lower));
    let alike = cold(3, 3).other_over_baseline.map(|ratio| ratio.finding);
    assert_eq!(alike, Some(Finding::Indistinguishable));
}

#[test]
fn one_that_is_not_there_is_not_compared() {
    let cell = |method: &str| Rated { cell: cell_of(method, CacheState::ColdStart), rate: 1600.0 };
    let found = tables_of(vec![cell("jvm/mmap"), cell("jvm/pread")], |cell, sample| {
        if cell.method.to_string() == "jvm/pread" {
            sample.outcome = Outcome::Unavailable { reason: "no JDK 22 or newer".into() };
        }
    });
    let start = &found.cold_starts[0];
    assert_eq!((start.other.as_deref(), start.other_over_baseline), (Some("jvm/mmap"), None));
    assert_eq!(reasons::cell(start.rows[1].reason.as_ref()), "no JDK 22 or newer");
    assert_eq!((start.rows[1].status, start.rows[1].windows.len()), (Status::Unavailable, 0));
    let alone = tables_of(vec![cell("jvm/mmap")], |_, _| {});
    let start = &alone.cold_starts[0];
    assert_eq!((start.baseline.as_deref(), start.other.as_deref()), (Some("pread"), None));
}

#[test]
fn a_run_that_has_only_begun_has_tables_without_scores() {
    let mut run = run_of(pair(0.5), |_, _| {});
    run.samples.clear();
    run.elapsed_ns = None;
    let lucene = found_in(&run);
    assert!(lucene.tables[0].rows.iter().flat_map(|row| row.scores.iter().flatten()).all(|score| {
        score.status == Status::NotMeasured && score.ops_per_ms.is_none() && score.waits.is_none()
    }));
    assert_eq!((lucene.tables[0].advantages.len(), lucene.cold_starts.len()), (1, 0));
}
