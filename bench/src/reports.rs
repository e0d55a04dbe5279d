//! `reports`: how long `pagewise report` takes over large run files, as table, JSON and CSV.
//!
//! The files are made up: cells under as many conditions as there are eights of them, samples of
//! the size that those of a real run have. What is timed is the whole command, from its start to
//! the last byte of its output.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use pagewise_model::run::{Header, Record};
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Bytes, CacheState, Cell, Conditions, Environment, Evidence, Method, Outcome, Plan, Reads, Role, Sample,
    ThreadCounters, Work,
};

use crate::dataset::Scratch;
use crate::pagewise::Place;

/// How long `pagewise report` takes over large run files.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    place: Place,
    /// How often each is timed; the median is printed.
    #[arg(long, default_value_t = 5)]
    times: usize,
}

/// Cells, samples, methods of a comparison, and the bar in seconds.
const SHAPES: [(usize, usize, usize, f64); 4] =
    [(5_000, 1_500, 8, 1.0), (5_000, 1_500, 5_000, 1.0), (1_000, 100_000, 8, 2.0), (5_000, 100_000, 8, 2.0)];

const FORMS: [(&str, &[&str]); 3] = [("table", &[]), ("JSON", &["--json"]), ("CSV", &["--csv=samples"])];

/// Prints the time of each file in each form.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    writeln!(
        out,
        "| cells | samples | methods of a comparison | MiB | table, s | JSON, s | CSV, s | bar, s |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    for (cells, samples, methods, bar) in SHAPES {
        let path = scratch.path("large.jsonl");
        write_run(&path, cells, samples, methods)?;
        let mebibytes = std::fs::metadata(&path)?.len() as f64 / f64::from(1 << 20);
        let mut row = format!("| {cells} | {samples} | {methods} | {mebibytes:.1} |");
        for (form, arguments) in FORMS {
            let mut times = Vec::new();
            for _ in 0..options.times.max(1) {
                let mut command = pagewise.command();
                command.arg("report").arg(&path).args(arguments);
                command.stdout(File::create(scratch.path("out"))?).stderr(Stdio::piped());
                let started = Instant::now();
                let output = command.spawn()?.wait_with_output()?;
                times.push(started.elapsed().as_secs_f64());
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                ensure!(matches!(output.status.code(), Some(0 | 1)), "{form}: {} {said}", output.status);
            }
            times.sort_by(f64::total_cmp);
            row.push_str(&format!(" {:.2} |", times[times.len() / 2]));
        }
        writeln!(out, "{row} {bar:.0} |")?;
        out.flush()?;
    }
    Ok(())
}

/// A run of the user's that is not complete: `samples` go round the cells.
fn write_run(path: &Path, cells: usize, samples: usize, methods: usize) -> Result<()> {
    let cells: Vec<Cell> = (0..cells).map(|index| cell(index, methods)).collect::<Result<_>>()?;
    let rounds = samples.div_ceil(cells.len()).max(7) as u32;
    let header = Header {
        environment: Environment { page_bytes: 4096, cpus: 4, ..Environment::default() },
        ..Header::of(Plan { rounds, sample_ns: 200_000_000, retakes: 2, ..Plan::of(cells.clone()) })
    };
    let mut file = BufWriter::new(File::create(path).with_context(|| path.display().to_string())?);
    file.write_all(Record::Header(Box::new(header)).to_line().as_bytes())?;
    // Few samples fill some cells rather than touch all of them.
    let sampled = cells.len().min(samples.div_ceil(rounds as usize));
    let ids: Vec<String> = cells.iter().map(Cell::id).collect();
    for index in 0..samples {
        let (cell, round) = (index % sampled, (index / sampled) as u32);
        let sample = sample(&cells[cell], &ids[cell], cell, round);
        file.write_all(Record::Sample(Box::new(sample)).to_line().as_bytes())?;
    }
    file.flush()?;
    Ok(())
}

fn cell(index: usize, methods: usize) -> Result<Cell> {
    let (comparison, method) = (index / methods, index % methods);
    let role = match method {
        1 => Role::Control,
        2 if methods < 10 => Role::Ceiling,
        _ => Role::Measured,
    };
    let method: Method = match method {
        0 | 1 => "pread".to_string(),
        2 => "uring:direct+depth=32".to_string(),
        3 => "mmap".to_string(),
        4 => "mmap:random".to_string(),
        other if other < 4096 => format!("mmap:prefetch={other}"),
        other => format!("mmap:random+prefetch={}", other - 4095),
    }
    .parse()
    .map_err(|error| anyhow::anyhow!("{error}"))?;
    let conditions = Conditions {
        threads: 1 + (comparison as u32 / 128) % 8,
        span_bytes: Bytes::gib(1),
        cache: CacheState::Warm,
        ..Conditions::of(
            Work::RandomRead(Reads {
                reads_per_op: 1 + (comparison as u32 / 16) % 8,
                align_bytes: Bytes::kib(4),
                ..Reads::of(Bytes::kib(4 * (1 + comparison as u64 % 16)))
            }),
            Bytes::gib(1 + comparison as u64 / 1024),
        )
    };
    Ok(Cell { role, method, conditions })
}

fn sample(cell: &Cell, id: &str, index: usize, round: u32) -> Sample {
    let operations = 5_000 + (index as u64 * 7 + u64::from(round) * 5) % 211;
    let buckets = 24;
    let requested = operations * cell.conditions.op_bytes();
    let measurement = Measurement {
        setup_ns: 23_000,
        measured_ns: 200_000_000,
        operations,
        teardown_ns: 11_000,
        thread_operations: vec![operations],
        latency_ns: (0..buckets).map(|bucket| 20_000 + bucket * 1_171).collect(),
        latency_counts: (0..buckets).map(|bucket| 1 + operations / (bucket + 2)).collect(),
        ..Measurement::default()
    };
    let evidence = Evidence {
        wall_ns: 200_400_000,
        requested_bytes: requested,
        device_read_bytes: Some(requested / 3),
        device_other_bytes: Some(0),
        device_read_requests: Some(operations / 3),
        read_call_bytes: Some(requested),
        read_calls: Some(operations),
        minor_faults: Some(40),
        major_faults: Some(0),
        cpu_ns: Some(199_000_000),
        user_ns: Some(90_000_000),
        system_ns: Some(100_000_000),
        voluntary_switches: Some(3),
        resident_before_bytes: Some(cell.conditions.span_bytes.0),
        resident_after_bytes: Some(cell.conditions.span_bytes.0),
        residency_source: "cachestat".into(),
        expected_checksum: Some(7),
        checksum: 7,
        threads: vec![ThreadCounters::default()],
        verified_reads: 64,
        ..Evidence::default()
    };
    Sample {
        cell: id.to_string(),
        round,
        attempt: 0,
        block: 0,
        started_ns: u64::from(round) * 4_000_000_000 + index as u64 * 250_000_000,
        took_ns: 250_000_000,
        outcome: Outcome::Taken {
            measurement: Box::new(measurement),
            evidence: Box::new(evidence),
            failures: Vec::new(),
        },
    }
}
