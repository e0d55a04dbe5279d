//! Runs with made-up numbers, the same ones each time.

#![allow(dead_code, unused_imports)] // Each test uses a part of it.

mod hostile;
mod many;
mod method_tables;
mod one_shot;
mod overview;
mod settings;
mod workers;

use pagewise_model::run::{Header, Run};
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Bytes, CacheState, Cell, Conditions, Consume, Content, Environment, Evidence, Failure, FailureKind,
    Method, Outcome, Plan, Reads, Role, Sample, Source, Work,
};

pub use hostile::{HOSTILE, hostile};
pub use many::many;
pub use method_tables::method_tables;
pub use one_shot::{append, fill, log, part, scan};
pub use overview::overview;
pub use settings::settings;
pub use workers::workers;

const ROUNDS: u32 = 7;

/// How a method does in the made-up run.
struct Figures {
    role: Role,
    method: &'static str,
    conditions: Conditions,
    /// Operations in 200 ms.
    operations: u64,
    /// Device bytes per byte asked for.
    amplification: f64,
    /// Mean size of a request to the device.
    issued_bytes: u64,
    setup_ns: u64,
    cpu_share: f64,
}

fn conditions(cache: CacheState, read_bytes: Bytes) -> Conditions {
    Conditions {
        cache,
        ..Conditions::of(
            Work::RandomRead(Reads {
                reads_per_op: if read_bytes.0 == 16 << 10 { 16 } else { 1 },
                ..Reads::of(read_bytes)
            }),
            Bytes::gib(1),
        )
    }
}

fn warm(role: Role, method: &'static str, operations: u64) -> Figures {
    let conditions = conditions(CacheState::Warm, Bytes::kib(16));
    let (issued_bytes, setup_ns) = (16 << 10, if method == "mmap:populate" { 61_400_000 } else { 23_000 });
    Figures {
        role,
        method,
        conditions,
        operations,
        amplification: 0.0,
        issued_bytes,
        setup_ns,
        cpu_share: 0.99,
    }
}

fn cold(role: Role, method: &'static str, operations: u64, amplification: f64, issued_bytes: u64) -> Figures {
    let conditions = conditions(CacheState::Cold, Bytes::kib(16));
    let (setup_ns, cpu_share) = (23_000, 0.21);
    Figures { role, method, conditions, operations, amplification, issued_bytes, setup_ns, cpu_share }
}

fn device(method: &'static str, read_bytes: Bytes, operations: u64) -> Figures {
    let conditions = conditions(CacheState::AsIs, read_bytes);
    let (role, issued_bytes, setup_ns) = (Role::Ceiling, read_bytes.0, 90_000);
    Figures {
        role,
        method,
        conditions,
        operations,
        amplification: 1.0,
        issued_bytes,
        setup_ns,
        cpu_share: 0.3,
    }
}

fn figures() -> Vec<Figures> {
    use Role::{Ceiling, Control, Measured};
    vec![
        warm(Measured, "mmap", 5_900),
        warm(Measured, "mmap:random", 5_910),
        warm(Measured, "mmap:in-place", 90_000),
        warm(Measured, "mmap:populate", 6_800),
        warm(Measured, "mmap:hugepage", 1),
        warm(Measured, "pread", 7_400),
        warm(Control, "pread", 7_420),
        warm(Ceiling, "anonymous", 7_700),
        cold(Measured, "mmap", 7, 272.0, 1 << 20),
        cold(Measured, "pread:random", 116, 1.0, 16 << 10),
        cold(Measured, "pread", 118, 1.007, 16 << 10),
        cold(Control, "pread", 117, 1.007, 16 << 10),
        cold(Measured, "uring:direct+depth=32", 1_500, 1.0, 16 << 10),
        device("uring:direct+depth=1", Bytes::kib(16), 120),
        device("uring:direct+depth=32", Bytes::kib(16), 1_500),
        device("uring:direct+depth=32", Bytes::kib(1024), 490),
    ]
}

fn method(text: &str) -> Method {
    if text == "anonymous" { Method::anonymous() } else { text.parse().expect("a method") }
}

fn cell(figures: &Figures) -> Cell {
    Cell { role: figures.role, method: method(figures.method), conditions: figures.conditions.clone() }
}

/// The made-up scatter of a round: known, small, different for each cell.
fn scattered(operations: u64, index: usize, round: u32) -> u64 {
    let step = (index as u64 * 7 + u64::from(round) * 5) % 11;
    operations + operations * step / 2000
}

fn outcome(figures: &Figures, index: usize, round: u32) -> Outcome {
    if figures.method == "mmap:hugepage" {
        return Outcome::Unavailable { reason: "no byte of the mapping is in huge pages".to_string() };
    }
    let operations = scattered(figures.operations, index, round);
    let measurement = Measurement {
        setup_ns: figures.setup_ns,
        measured_ns: 200_000_000,
        operations,
        teardown_ns: 11_000,
        thread_operations: vec![operations],
        latency_ns: vec![200_000_000 / figures.operations, 400_000_000 / figures.operations],
        latency_counts: vec![operations - operations / 50, operations / 50],
        ..Measurement::default()
    };
    let requested = operations * figures.conditions.op_bytes();
    let device = (requested as f64 * figures.amplification) as u64;
    let evidence = Evidence {
        wall_ns: 200_400_000,
        requested_bytes: requested,
        device_read_bytes: Some(device),
        device_other_bytes: Some(0),
        device_read_requests: Some(device / figures.issued_bytes),
        minor_faults: Some(40),
        major_faults: Some(0),
        cpu_ns: Some((200_000_000.0 * figures.cpu_share) as u64),
        residency_source: "cachestat".to_string(),
        expected_checksum: Some(7),
        checksum: 7,
        verified_reads: 64,
        ..Evidence::default()
    };
    Outcome::Taken { measurement: Box::new(measurement), evidence: Box::new(evidence), failures: Vec::new() }
}

fn sample(figures: &Figures, index: usize, round: u32, attempt: u32) -> Sample {
    let started_ns = u64::from(round) * 4_000_000_000 + index as u64 * 250_000_000;
    let outcome = outcome(figures, index, round);
    Sample { attempt, started_ns, ..Sample::of(&cell(figures), round, outcome) }
}

fn fail(sample: &mut Sample, kind: FailureKind, detail: &str) {
    if let Outcome::Taken { failures, .. } = &mut sample.outcome {
        failures.push(Failure { kind, detail: detail.to_string() });
    }
}

fn environment() -> Environment {
    Environment {
        kernel: "6.12.0".into(),
        architecture: "x86_64".into(),
        cpu_model: Some("Example CPU 3.0 GHz".into()),
        cpus: 4,
        page_bytes: 4096,
        memory_bytes: Some(Bytes::gib(16)),
        filesystem: "ext4".into(),
        device_number: "259:1".into(),
        device: Some("nvme0n1".into()),
        device_model: Some("Example SSD".into()),
        readahead_bytes: Some(Bytes::kib(8192)),
        pagewise_version: "0.1.0".into(),
        started_unix_s: 1_700_000_000,
        warnings: vec!["readahead is 8 MiB, most machines have 128 KiB".into()],
        ..Environment::default()
    }
}

fn header() -> Header {
    Header {
        environment: environment(),
        ..Header::of(Plan {
            source: Source::Dataset { directory: "data".into() },
            seed: 42,
            rounds: ROUNDS,
            sample_ns: 200_000_000,
            ..Plan::of(figures().iter().map(cell).collect())
        })
    }
}

/// A run that got to its end, with one sample that was taken again.
pub fn complete() -> Run {
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        for (index, figures) in figures().iter().enumerate() {
            if figures.method == "mmap:hugepage" && round > 0 {
                continue;
            }
            if (index, round) == (10, 3) {
                let mut first = sample(figures, index, round, 0);
                let detail = "others moved 9437184 bytes on the device while the worker read 31457280";
                fail(&mut first, FailureKind::Contaminated, detail);
                samples.push(first);
            }
            samples.push(sample(figures, index, round, u32::from((index, round) == (10, 3))));
        }
    }
    let elapsed_ns = Some(61_000_000_000);
    Run { elapsed_ns, ..Run::of(header(), samples) }
}

/// A run with another worker that was killed in its second round, with a sample of each outcome.
pub fn killed() -> Run {
    let all = figures();
    let mut samples: Vec<Sample> =
        all[..6].iter().enumerate().map(|(index, cell)| sample(cell, index, 0, 0)).collect();
    fail(
        &mut samples[0],
        FailureKind::WrongChecksum,
        "the bytes have checksum \"07\", they must have \"09\"",
    );
    fail(&mut samples[0], FailureKind::FalseTime, "9 ns, 10 ns");
    samples[1].outcome = Outcome::Broken {
        failures: vec![Failure {
            kind: FailureKind::WorkerDied,
            detail: "the worker was killed by signal 9".into(),
        }],
        stderr_tail: "line one\nline two".into(),
    };
    let header = Header { worker_command: Some("scripted-worker".into()), ..header() };
    Run { resumptions: 1, ..Run::of(header, samples) }
}

/// A run of the cache as it was found, which it filled in its first round. Nothing wins: one method
/// is near the leader, one scatters, one was refused in a round, and one lost samples.
pub fn unclear() -> Run {
    use Role::{Control, Measured};
    let as_is = |role, method, operations| Figures {
        conditions: conditions(CacheState::AsIs, Bytes::kib(16)),
        ..warm(role, method, operations)
    };
    let all = [
        as_is(Measured, "mmap", 7_440),
        as_is(Measured, "mmap:sequential", 7_400),
        as_is(Measured, "mmap:random", 6_500),
        as_is(Measured, "pread", 7_400),
        as_is(Control, "pread", 7_420),
    ];
    let mut samples = Vec::new();
    for round in 0..9 {
        for (index, figures) in all.iter().enumerate() {
            let mut sample = sample(figures, index, round, 0);
            if let Outcome::Taken { measurement, evidence, .. } = &mut sample.outcome {
                let resident = if (index, round) == (0, 0) { Bytes(0) } else { Bytes::gib(1) };
                evidence.resident_before_bytes = Some(resident.0);
                if figures.method == "mmap:random" && round % 3 == 1 {
                    measurement.operations = 9_000;
                }
            }
            if (index, round) == (1, 8) {
                let reason = "no byte of the mapping is in huge pages".to_string();
                sample.outcome = Outcome::Unavailable { reason };
            }
            samples.push(sample);
        }
    }
    let header = header();
    let plan = Plan { rounds: 9, cells: all.iter().map(cell).collect(), ..header.plan };
    let elapsed_ns = Some(9_000_000_000);
    Run { elapsed_ns, ..Run::of(Header { plan, ..header }, samples) }
}
