//! Run files with made-up figures.

use pagewise_model::run::{Header, Record, RunStart};
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Bytes, CacheState, Cell, Conditions, Environment, Evidence, Outcome, Plan, Reads, Role, Sample, Work,
};

const ROUNDS: u32 = 7;

/// When made-up runs begin, in nanoseconds since 1970.
const BEGAN: u64 = 1_800_000_000_000_000_000;

/// A run with labels.
pub fn labelled_run(started_unix_s: u64, labels: &[(&str, &str)], methods: &[(&str, u64)]) -> String {
    MadeUp { started_unix_s, labels, methods, ..MadeUp::default() }.file()
}

/// A run of a machine, begun so many milliseconds after the others.
pub fn began_together(host: &str, after_ms: u64) -> MadeUp<'_> {
    let began_unix_ns = Some(BEGAN + after_ms * 1_000_000);
    MadeUp { host, began_unix_ns, plan: Some("1a2b3c4d"), ..MadeUp::default() }
}

/// A made-up run.
#[derive(Clone, Copy)]
pub struct MadeUp<'a> {
    pub started_unix_s: u64,
    pub host: &'a str,
    pub readahead: Bytes,
    /// CPUs, each with a thread; `None`: one thread on two of them.
    pub thread_per_cpu: Option<u32>,
    /// Hash of the plan as it was typed.
    pub plan: Option<&'a str>,
    pub is_complete: bool,
    /// When it began, of a run that was asked to begin at a time: a sample each 300 ms from there.
    pub began_unix_ns: Option<u64>,
    pub labels: &'a [(&'a str, &'a str)],
    /// Nanoseconds of an operation.
    pub methods: &'a [(&'a str, u64)],
}

impl Default for MadeUp<'_> {
    fn default() -> Self {
        Self {
            started_unix_s: 1_800_000_000,
            host: "vm",
            readahead: Bytes::kib(128),
            thread_per_cpu: None,
            plan: None,
            is_complete: true,
            began_unix_ns: None,
            labels: &[],
            methods: &[("mmap", 10_000), ("pread", 20_000)],
        }
    }
}

impl MadeUp<'_> {
    pub fn file(self) -> String {
        run_of(self)
    }
}

fn run_of(made_up: MadeUp<'_>) -> String {
    let MadeUp {
        started_unix_s, host, readahead, thread_per_cpu, plan, is_complete, labels, methods, ..
    } = made_up;
    let conditions = Conditions {
        cache: CacheState::Warm,
        threads: thread_per_cpu.unwrap_or(1),
        thread_per_cpu: thread_per_cpu.is_some(),
        ..Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(16))), Bytes::gib(1))
    };
    let cell = |method: &str| Cell {
        role: Role::Measured,
        method: method.parse().expect("a method"),
        conditions: conditions.clone(),
    };
    let cells: Vec<Cell> = methods.iter().map(|(method, _)| cell(method)).collect();
    let environment = Environment {
        page_bytes: 4096,
        cpus: thread_per_cpu.unwrap_or(2),
        host_name: Some(host.to_string()),
        kernel: "6.12".to_string(),
        readahead_bytes: Some(readahead),
        started_unix_s,
        ..Environment::default()
    };
    let plan = Plan {
        typed: plan.map(str::to_string),
        rounds: ROUNDS,
        sample_ns: 200_000_000,
        retakes: 2,
        seed: started_unix_s,
        ..Plan::of(cells.clone())
    };
    let labels = labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let header = Header { environment, labels, ..Header::of(plan) };
    let mut records = vec![Record::Header(Box::new(header))];
    records.extend(made_up.began_unix_ns.map(|began_unix_ns| {
        let (is_synchronised, clock_error_ns) = (Some(true), Some(1_000_000));
        let asked_unix_ns = began_unix_ns / 1_000_000_000 * 1_000_000_000;
        let prepared_unix_ns = asked_unix_ns;
        Record::Began(RunStart {
            asked_unix_ns,
            prepared_unix_ns,
            began_unix_ns,
            is_synchronised,
            clock_error_ns,
        })
    }));
    let mut started_ns = 0;
    for round in 0..ROUNDS {
        for (cell, (_, ns)) in cells.iter().zip(methods) {
            // Rounds differ by up to 0.6 %.
            let operations = 200_000_000 * 1000 / (ns * (1000 + u64::from(round)));
            let measurement = Measurement { measured_ns: 200_000_000, operations, ..Measurement::default() };
            let evidence = Evidence {
                wall_ns: 200_400_000,
                go_unix_ns: made_up.began_unix_ns.map(|began_ns| began_ns + started_ns + 50_000_000),
                requested_bytes: operations << 14,
                ..Evidence::default()
            };
            let outcome = Outcome::Taken {
                measurement: Box::new(measurement),
                evidence: Box::new(evidence),
                failures: Vec::new(),
            };
            let took_ns = 300_000_000;
            let sample = Sample { started_ns, took_ns, ..Sample::of(cell, round, outcome) };
            started_ns += took_ns;
            records.push(Record::Sample(Box::new(sample)));
        }
    }
    let samples = records.iter().filter(|record| matches!(record, Record::Sample(_))).count() as u64;
    if is_complete {
        records.push(Record::End { elapsed_ns: 3_000_000_000, samples, supervisor_peak_bytes: None });
    }
    records.iter().map(Record::to_line).collect()
}
