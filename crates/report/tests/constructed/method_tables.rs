//! A run of the methods of `lucene` on a machine with two CPUs, with figures after those of the
//! study.

use pagewise_model::planned_table::{PlannedTable, TableColumns};
use pagewise_model::{Cell, GroupCounters, HostSettings, RateWindow};

use super::*;

const MIB: u64 = 1 << 20;
const LIMIT: Bytes = Bytes::mib(256);
const STRATEGIES: [&str; 6] = [
    "jvm/pread:direct",
    "jvm/pread",
    "jvm/filechannel:direct-buffer",
    "jvm/filechannel:heap-buffer",
    "jvm/mmap",
    "jvm/mmap:random",
];
const WALL_NS: u64 = 200_000_000;

/// What a cell does, and what its threads do meanwhile.
struct Doing {
    ops_per_ms: f64,
    cpu_share: f64,
    run_queue_share: f64,
    switches_per_op: f64,
    device_share: f64,
}

fn cell_of(role: Role, method: &str, sequential: bool, cache: CacheState, ratio: f64, threads: u32) -> Cell {
    let mut conditions = conditions(cache, Bytes::kib(16));
    if sequential {
        conditions.work = match conditions.work {
            Work::RandomRead(reads) => Work::SequentialRead(reads),
            other => other,
        };
    }
    conditions.threads = threads;
    conditions.file_bytes = Bytes::mib(512);
    conditions.host_settings = HostSettings {
        worker_bytes: Some(Bytes::mib(96)),
        memory_limit_bytes: (cache != CacheState::ColdStart).then_some(LIMIT),
        ..HostSettings::default()
    };
    let capacity = conditions.cache_capacity().map_or(128 * MIB, |capacity| capacity.0);
    conditions.span_bytes = Bytes(((ratio * capacity as f64) as u64 + MIB / 2) / MIB * MIB);
    Cell { role, method: method.parse().expect(method), conditions }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |sequential, cache, ratio, threads| {
        let of = |role, method: &str| cell_of(role, method, sequential, cache, ratio, threads);
        cells.extend(STRATEGIES.map(|method| of(Role::Measured, method)));
        cells.push(of(Role::Control, "jvm/pread"));
    };
    for threads in [1, 4, 16] {
        for ratio in [0.5, 2.0] {
            add(false, CacheState::Warm, ratio, threads);
        }
        add(true, CacheState::ReadOnce, 0.5, threads);
    }
    for threads in [1, 4] {
        add(false, CacheState::ColdStart, 1.0, threads);
    }
    cells
}

/// Two CPUs: threads beyond two gain nothing, and channels lose by them.
fn doing(cell: &Cell) -> Doing {
    let (threads, method) = (cell.conditions.threads, cell.method.to_string());
    let pressed =
        cell.conditions.host_settings.memory_limit_bytes.is_some() && !cell.conditions.fits_memory();
    let by_threads = if threads == 1 { 1.0 } else { 1.9 };
    let busy = |ops_per_ms: f64| Doing {
        ops_per_ms: ops_per_ms * by_threads,
        cpu_share: 0.99,
        run_queue_share: if threads == 1 { 0.0 } else { 1.0 - 2.0 / f64::from(threads) },
        switches_per_op: 0.001,
        device_share: 0.0,
    };
    let waiting = |ops_per_ms: f64, device_share| Doing {
        ops_per_ms: ops_per_ms * f64::from(threads).sqrt(),
        cpu_share: 0.2,
        run_queue_share: 0.01,
        switches_per_op: 9.0,
        device_share,
    };
    match (method.as_str(), pressed) {
        ("jvm/pread:direct", _) => waiting(0.147, 1.0),
        ("jvm/mmap", true) => waiting(0.12, 8.0),
        ("jvm/mmap:random", true) => waiting(0.19, 0.6),
        ("jvm/pread", true) => waiting(0.23, 0.6),
        (_, true) => waiting(0.20, 0.6),
        ("jvm/mmap", false) => busy(38.2),
        ("jvm/mmap:random", false) => busy(38.1),
        ("jvm/pread", false) => busy(24.7),
        ("jvm/filechannel:direct-buffer", false) if threads == 16 => Doing {
            ops_per_ms: 21.0,
            cpu_share: 0.55,
            run_queue_share: 0.02,
            switches_per_op: 2.4,
            device_share: 0.0,
        },
        ("jvm/filechannel:direct-buffer", false) => busy(23.8),
        (_, false) => busy(19.7),
    }
}

/// Twelve windows: the first few fill the cache, at a tenth of the rate that follows.
fn course(cold: u64, operations: u64, device_bytes: u64) -> Vec<RateWindow> {
    let warm = operations / (12 - cold);
    let window = |index: u64| RateWindow {
        elapsed_ns: WALL_NS,
        operations: if index < cold { warm / 10 } else { warm },
        device_read_bytes: Some(if index < cold { device_bytes / cold } else { 0 }),
        resident_bytes: Some(device_bytes / cold * (index + 1).min(cold)),
        ..RateWindow::default()
    };
    (0..12).map(window).collect()
}

fn table_sample(cell: &Cell, index: usize, round: u32) -> Sample {
    let doing = doing(cell);
    let operations = scattered((doing.ops_per_ms * WALL_NS as f64 / 1e6 * 20.0) as u64, index, round);
    let threads = u64::from(cell.conditions.threads);
    let wall_ns = WALL_NS * 20;
    let cpus = threads.min(2);
    let requested = operations * cell.conditions.op_bytes();
    let mut measurement = Measurement {
        setup_ns: 40_000,
        measured_ns: wall_ns - 400_000,
        operations,
        teardown_ns: 20_000,
        thread_operations: vec![operations],
        ..Measurement::default()
    };
    let mut evidence = Evidence {
        wall_ns,
        requested_bytes: requested,
        device_read_bytes: Some((requested as f64 * doing.device_share) as u64),
        cpu_ns: Some(((wall_ns * cpus) as f64 * doing.cpu_share) as u64),
        run_queue_ns: Some(((wall_ns * threads) as f64 * doing.run_queue_share) as u64),
        user_ns: Some(400_000_000),
        system_ns: Some(600_000_000),
        voluntary_switches: Some((operations as f64 * doing.switches_per_op) as u64),
        involuntary_switches: Some(operations / 500),
        residency_source: "cachestat".to_string(),
        verified_reads: 64,
        group: cell.conditions.host_settings.memory_limit_bytes.map(|limit| GroupCounters {
            version: "v2".into(),
            limit_bytes: Some(limit.0),
            usage_bytes: Some(limit.0 - MIB),
            file_bytes: Some(limit.0 - 92 * MIB),
            ..GroupCounters::default()
        }),
        ..Evidence::default()
    };
    if cell.conditions.cache == CacheState::ColdStart {
        let cold = match (cell.method.to_string().as_str(), cell.conditions.threads) {
            ("jvm/mmap" | "jvm/mmap:random", 1) => 3,
            (_, 1) => 5,
            _ => 2,
        };
        // A little longer in some rounds, so that intervals have a width.
        evidence.windows = course(cold, operations, 128 * MIB);
        evidence.windows[0].elapsed_ns += u64::from(round) * 1_000_000;
        measurement.measured_ns = evidence.windows.iter().map(|window| window.elapsed_ns).sum();
        measurement.operations = evidence.windows.iter().map(|window| window.operations).sum();
    }
    let outcome = Outcome::Taken {
        measurement: Box::new(measurement),
        evidence: Box::new(evidence),
        failures: Vec::new(),
    };
    let started_ns = u64::from(round) * 100_000_000_000 + index as u64 * 1_000_000_000;
    Sample { started_ns, ..Sample::of(cell, round, outcome) }
}

/// A whole run. The filesystem refuses O_DIRECT at 16 threads, one cell has no valid sample, and
/// one lost two rounds.
pub fn method_tables() -> Run {
    let cells = cells();
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        for (index, cell) in cells.iter().enumerate() {
            let mut sample = table_sample(cell, index, round);
            let (method, threads) = (cell.method.to_string(), cell.conditions.threads);
            let random = matches!(cell.conditions.work, Work::RandomRead(_));
            match (method.as_str(), threads, random, cell.conditions.fits_memory()) {
                ("jvm/pread:direct", 16, ..) => {
                    let reason = "open: EINVAL (22): the filesystem refuses O_DIRECT".to_string();
                    sample.outcome = Outcome::Unavailable { reason };
                }
                ("jvm/mmap:random", 4, false, _) => {
                    fail(&mut sample, FailureKind::NotInForce, "MADV_RANDOM is not in force");
                }
                ("jvm/filechannel:heap-buffer", 4, true, true) if round < 2 => {
                    fail(&mut sample, FailureKind::Contaminated, "others moved 9437184 bytes on the device");
                }
                _ => {}
            }
            samples.push(sample);
        }
    }
    let mut header = header();
    header.environment.cpus = 2;
    let table = PlannedTable {
        columns: TableColumns::Threads,
        baseline: Some("pread".into()),
        against: vec!["mmap".into(), "filechannel:direct-buffer".into()],
        explain: vec!["filechannel:direct-buffer".into(), "filechannel:heap-buffer".into()],
    };
    let plan = Plan { question: "mine".into(), sample_ns: WALL_NS, table: Some(table), cells, ..header.plan };
    Run { elapsed_ns: Some(900_000_000_000), ..Run::of(Header { plan, ..header }, samples) }
}
