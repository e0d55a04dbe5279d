//! Runs of work that is done once: a scan of a file, records into a ring file, blocks into a new
//! one.

use pagewise_model::sample::Written;
use pagewise_model::{Append, Fill, Scan, Sync, SyncCall};

use super::*;

/// How a method does in the made-up run.
struct Times {
    role: Role,
    method: &'static str,
    conditions: Conditions,
    setup_ns: u64,
    measured_ns: u64,
    teardown_ns: u64,
}

fn times(role: Role, method: &'static str, conditions: &Conditions, phases_ns: [u64; 3]) -> Times {
    let [setup_ns, measured_ns, teardown_ns] = phases_ns;
    Times { role, method, conditions: conditions.clone(), setup_ns, measured_ns, teardown_ns }
}

fn once(work: Work, file_bytes: u64, content: Content) -> Conditions {
    Conditions { content, cache: CacheState::Cold, ..Conditions::of(work, Bytes(file_bytes)) }
}

fn cell_of(times: &Times) -> Cell {
    Cell { role: times.role, method: method(times.method), conditions: times.conditions.clone() }
}

/// A sample of all of the work, a little slower from cell to cell and round to round.
fn whole(times: &Times, index: usize, round: u32) -> Sample {
    let operations = times.conditions.fixed_operations().unwrap_or(0);
    let measured_ns = scattered(times.measured_ns, index, round);
    let bytes = operations * times.conditions.op_bytes();
    let measurement = Measurement {
        setup_ns: times.setup_ns,
        measured_ns,
        operations,
        teardown_ns: times.teardown_ns,
        thread_operations: vec![operations],
        ..Measurement::default()
    };
    let evidence = Evidence {
        wall_ns: measured_ns + 400_000,
        requested_bytes: bytes,
        device_read_bytes: Some(0),
        device_other_bytes: Some(0),
        minor_faults: Some(40),
        major_faults: Some(0),
        setup_faults: Some(12),
        cpu_ns: Some(measured_ns / 100 * 99),
        user_ns: Some(measured_ns / 20_000_000 * 10_000_000),
        system_ns: Some(measured_ns / 20_000_000 * 10_000_000),
        residency_source: "cachestat".to_string(),
        ..Evidence::default()
    };
    let started_ns = u64::from(round) * 40_000_000_000 + index as u64 * 2_500_000_000;
    let outcome = Outcome::Taken {
        measurement: Box::new(measurement),
        evidence: Box::new(evidence),
        failures: Vec::new(),
    };
    Sample { started_ns, ..Sample::of(&cell_of(times), round, outcome) }
}

fn taken(sample: &mut Sample) -> (&mut Measurement, &mut Evidence) {
    match &mut sample.outcome {
        Outcome::Taken { measurement, evidence, .. } => (measurement, evidence),
        other => panic!("a sample that was taken, not {other:?}"),
    }
}

fn refuse(sample: &mut Sample, reason: &str) {
    sample.outcome = Outcome::Unavailable { reason: reason.to_string() };
}

fn run_of(question: &str, all: &[Times], sample: impl Fn(&Times, usize, u32) -> Sample) -> Run {
    let samples = (0..ROUNDS)
        .flat_map(|round| all.iter().enumerate().map(move |(index, times)| (times, index, round)))
        .map(|(times, index, round)| sample(times, index, round))
        .collect();
    let header = header();
    let cells = all.iter().map(cell_of).collect();
    Run {
        elapsed_ns: Some(90_000_000_000),
        ..Run::of(
            Header { plan: Plan { question: question.into(), cells, ..header.plan }, ..header },
            samples,
        )
    }
}

/// The part of a run that these methods did.
pub fn part(mut run: Run, methods: &[&str]) -> Run {
    let is_kept = |cell: &Cell| methods.contains(&cell.method.to_string().as_str());
    run.header.plan.cells.retain(is_kept);
    let kept: Vec<String> = run.header.plan.cells.iter().map(Cell::id).collect();
    run.samples.retain(|sample| kept.contains(&sample.cell));
    run
}

const MS: u64 = 1_000_000;

/// Lines counted in the smallest file of the published study: on the device, and in the page cache.
/// One method is not there, one brings what it must not, and the bandwidth of the device is known.
pub fn scan() -> Run {
    use Role::{Ceiling, Control, Measured};
    let cold = once(Work::Scan(Scan { consume: Consume::Lines }), 866_782_000, Content::Text);
    let warm = Conditions { cache: CacheState::Warm, ..cold.clone() };
    let large = Reads::of(Bytes::mib(1));
    let device = once(Work::SequentialRead(large), 866_782_000, Content::Text);
    let all = [
        times(Measured, "mmap", &cold, [MS / 40, 720 * MS, 31 * MS]),
        times(Measured, "mmap:in-place", &cold, [MS / 40, 668 * MS, 31 * MS]),
        times(Measured, "mmap:populate", &cold, [592 * MS, 95 * MS, 30 * MS]),
        times(Measured, "read:buffer=4KiB", &cold, [MS / 50, 571 * MS, MS / 100]),
        times(Measured, "read:buffer=64KiB", &cold, [MS / 50, 401 * MS, MS / 100]),
        times(Control, "read:buffer=64KiB", &cold, [MS / 50, 402 * MS, MS / 100]),
        times(Measured, "read:direct", &cold, [MS / 50, 1_490 * MS, MS / 100]),
        times(Measured, "pread:dontcache", &cold, [0, 0, 0]),
        times(Measured, "uring:depth=8", &cold, [MS / 5, 640 * MS, MS / 10]),
        times(Measured, "mmap", &warm, [MS / 40, 131 * MS, 30 * MS]),
        times(Measured, "mmap:in-place", &warm, [MS / 40, 90 * MS, 30 * MS]),
        times(Measured, "read:buffer=64KiB", &warm, [MS / 50, 142 * MS, MS / 100]),
        times(Control, "read:buffer=64KiB", &warm, [MS / 50, 142 * MS, MS / 100]),
        times(Ceiling, "uring:direct+depth=32", &device, [MS / 10, 400 * MS, MS / 10]),
    ];
    run_of("scan", &all, |times, index, round| {
        let mut sample = whole(times, index, round);
        let (measurement, evidence) = taken(&mut sample);
        (evidence.checksum, evidence.expected_checksum) = (7_128_441, Some(7_128_441));
        if times.conditions == device {
            measurement.operations = 826;
            evidence.requested_bytes = 826 << 20;
        }
        if times.conditions.cache == CacheState::Cold && times.method != "mmap:populate" {
            evidence.device_read_bytes = Some(evidence.requested_bytes);
            evidence.device_read_requests = Some(evidence.requested_bytes >> 20);
            evidence.cpu_ns = Some(measurement.measured_ns / 3);
            evidence.user_ns = Some(70 * MS);
            let cpu_ns = measurement.measured_ns / 3 / (10 * MS) * (10 * MS);
            evidence.system_ns = Some(cpu_ns.saturating_sub(70 * MS));
        }
        if times.method == "read:direct" {
            evidence.user_ns = None;
            evidence.system_ns = Some(20 * MS);
        }
        if times.method.starts_with("mmap") {
            evidence.minor_faults = Some(13_226);
            evidence.mapping_line =
                Some("7f12a4000000-7f12d7aa3000 r--s 00000000 103:01 4711 /data/scan.txt".into());
        }
        match times.method {
            "pread:dontcache" => refuse(&mut sample, "preadv2: Operation not supported (errno 95)"),
            "uring:depth=8" => {
                let detail =
                    "4096 of 866782000 bytes of the file were in the page cache before the clock started";
                fail(&mut sample, FailureKind::NotCold, detail);
            }
            _ => {}
        }
        sample
    })
}

/// Latencies of some records, and what the file holds afterwards.
fn write(sample: &mut Sample, record_ns: u64, ring_bytes: u64) {
    let (measurement, evidence) = taken(sample);
    measurement.latency_ns = vec![record_ns, record_ns * 3, 900_000];
    measurement.latency_counts = vec![19_900, 90, 10];
    evidence.device_written_bytes = Some(ring_bytes);
    evidence.written = Some(Written {
        read_back: "pread".into(),
        expected_bytes: ring_bytes,
        missing_bytes: 0,
        first_missing_at: None,
        stray_bytes: 0,
        dirty_before_bytes: Some(0),
        polls: 0,
        dirty_most_bytes: None,
        dirty_after_bytes: Some(ring_bytes / 2),
        dirty_end_bytes: Some(0),
        allocated_before_bytes: Some(0),
        folio_bytes: None,
    });
}

/// Records of 100 bytes that are on the device at the end, and ones of 1 KiB that need not be. One
/// method loses records, one lost some once, one is not offered, one did not get round its ring,
/// and one stalls.
pub fn append() -> Run {
    use Role::{Ceiling, Control, Measured};
    let of = |record_bytes, passes, sync| {
        let append = Append { record_bytes: Bytes(record_bytes), passes, sync, sync_call: None };
        once(Work::Append(append), 100 << 20, Content::Random)
    };
    let (small, large) = (of(100, 1, Sync::End), of(1024, 2, Sync::None));
    let all = [
        times(Measured, "mmap", &small, [MS / 30, 48 * MS, 61 * MS]),
        times(Measured, "mmap:populate", &small, [39 * MS, 13 * MS, 61 * MS]),
        times(Measured, "mmap:buffer=16KiB", &small, [MS / 30, 42 * MS, 61 * MS]),
        times(Control, "mmap:buffer=16KiB", &small, [MS / 30, 42 * MS, 61 * MS]),
        times(Measured, "mmap:buffer=1MiB", &small, [MS / 30, 44 * MS, 61 * MS]),
        times(Measured, "pwrite", &small, [MS / 60, 330 * MS, 58 * MS]),
        times(Measured, "pwrite:buffer=16KiB", &small, [MS / 60, 31 * MS, 58 * MS]),
        times(Measured, "pwrite:direct+buffer=4KiB", &small, [0, 0, 0]),
        times(Measured, "uring:depth=8", &small, [MS / 5, 60_000 * MS, 12 * MS]),
        times(Ceiling, "anonymous", &small, [0, 9 * MS, 0]),
        times(Measured, "mmap", &large, [MS / 30, 71 * MS, 4 * MS]),
        times(Measured, "pwrite", &large, [MS / 60, 72 * MS, MS / 60]),
        times(Control, "pwrite", &large, [MS / 60, 72 * MS, MS / 60]),
    ];
    run_of("append", &all, |times, index, round| {
        let mut sample = whole(times, index, round);
        let ring = times.conditions.ring().expect("a ring");
        write(&mut sample, times.measured_ns / ring.records(), ring.bytes());
        let (measurement, evidence) = taken(&mut sample);
        let written = evidence.written.as_mut().expect("a file that was written");
        if times.conditions == large {
            written.dirty_end_bytes = Some(60 << 20);
            evidence.device_written_bytes = None;
        } else {
            measurement.sync_ns = measurement.teardown_ns / 4 * 3;
        }
        match (times.method, round) {
            ("mmap", 1..4) => (measurement.stalls, measurement.stall_longest_ns) = (3, 11 * MS + MS / 2),
            ("mmap:buffer=1MiB", _) | ("mmap:populate", 2) => {
                (written.missing_bytes, written.first_missing_at) = (44_040_100, Some(1_048_500));
                let detail =
                    "44040100 of 104857600 bytes of records are not in the file, the first at 1048500";
                fail(&mut sample, FailureKind::LostRecords, detail);
            }
            ("uring:depth=8", _) => {
                measurement.operations = ring.records() / 8;
                evidence.requested_bytes = ring.bytes() / 8;
            }
            ("pwrite:direct+buffer=4KiB", _) => {
                refuse(&mut sample, "the last block would go past the end of the file")
            }
            _ => {}
        }
        sample
    })
}

/// A write-ahead log: records of 8 KiB that are committed, and ones synced at intervals by a call
/// that is not durable.
pub fn log() -> Run {
    use Role::{Control, Measured};
    let of = |sync, sync_call| {
        let append = Append { record_bytes: Bytes::kib(8), passes: 1, sync, sync_call };
        once(Work::Append(append), 4 << 20, Content::Random)
    };
    let committed = of(Sync::Commit, None);
    let ranges = of(Sync::Every(Bytes::kib(64)), Some(SyncCall::SyncFileRange));
    let all = [
        times(Measured, "mmap", &committed, [MS / 30, 200 * MS, MS / 30]),
        times(Measured, "pwrite", &committed, [MS / 60, 200 * MS, MS / 60]),
        times(Control, "pwrite", &committed, [MS / 60, 200 * MS, MS / 60]),
        times(Measured, "pwrite:direct+buffer=8KiB", &committed, [MS / 60, 200 * MS, MS / 60]),
        times(Measured, "mmap", &ranges, [MS / 30, 9 * MS, MS / 30]),
        times(Measured, "pwrite", &ranges, [MS / 60, 7 * MS, MS / 60]),
    ];
    run_of("append", &all, |times, index, round| {
        let mut sample = whole(times, index, round);
        let ring = times.conditions.ring().expect("a ring");
        write(&mut sample, 1000, ring.bytes());
        let (measurement, evidence) = taken(&mut sample);
        let sync_ns = match times.method {
            "mmap" => 500_000,
            "pwrite" => 400_000,
            _ => 250_000,
        };
        let syncs = match times.conditions.is_committing() {
            true => measurement.measured_ns / sync_ns,
            false => 64,
        };
        if times.conditions.is_committing() {
            measurement.operations = syncs;
            measurement.thread_operations = vec![syncs];
            evidence.requested_bytes = syncs * 8192;
        }
        measurement.sync_duration_ns = vec![sync_ns / 10 * 9, sync_ns * 3, 20 * sync_ns];
        measurement.sync_duration_counts = vec![syncs - syncs / 50 - 1, syncs / 50, 1];
        sample
    })
}

/// The published study's file, with some of its methods, one in huge pages and one that has none.
pub fn fill() -> Run {
    use Role::{Ceiling, Control, Measured};
    let fill = Fill { block_bytes: Bytes(128), sync: Sync::None, sync_call: None };
    let conditions = once(Work::Fill(fill), 256 << 20, Content::Random);
    let all = [
        times(Measured, "mmap", &conditions, [MS / 40, 187 * MS, 6 * MS]),
        times(Control, "mmap", &conditions, [MS / 40, 187 * MS, 6 * MS]),
        times(Measured, "mmap:prealloc", &conditions, [58 * MS, 96 * MS, 6 * MS]),
        times(Measured, "mmap:populate", &conditions, [131 * MS, 31 * MS, 6 * MS]),
        times(Measured, "mmap:hugepage+populate-write", &conditions, [41 * MS, 30 * MS, MS / 2]),
        times(Measured, "mmap:hugepage", &conditions, [0, 0, 0]),
        times(Measured, "mmap:pretouch=1MiB", &conditions, [MS / 20, 133 * MS, 6 * MS]),
        times(Measured, "pwrite:buffer=64KiB", &conditions, [MS / 60, 152 * MS, MS / 60]),
        times(Ceiling, "anonymous", &conditions, [0, 29 * MS, 0]),
    ];
    run_of("fill", &all, |times, index, round| {
        let mut sample = whole(times, index, round);
        write(&mut sample, times.measured_ns / (2 << 20), 256 << 20);
        let (measurement, evidence) = taken(&mut sample);
        evidence.device_written_bytes = None;
        match times.method {
            "mmap" | "mmap:prealloc" => {
                evidence.minor_faults = Some(65_536);
                if round < 2 {
                    (measurement.stalls, measurement.stall_longest_ns) = (2, 3 * MS);
                }
            }
            "mmap:populate" => evidence.setup_faults = Some(65_548),
            "mmap:pretouch=1MiB" if round > 3 => {
                let detail = "0 of 131072 pages were touched ahead of the writer";
                fail(&mut sample, FailureKind::NotInForce, detail);
            }
            "mmap:hugepage+populate-write" => {
                evidence.huge_mapped_bytes = Some(256 << 20);
                evidence.setup_faults = None;
                measurement.latency_counts = vec![900, 9, 0];
            }
            "mmap:hugepage" => refuse(&mut sample, "no byte of the mapping is in huge pages"),
            _ => {}
        }
        sample
    })
}
