//! A run with heartbeats over workers of several languages, one of which could not be had.

use pagewise_model::{Delays, GroupCounters, Heartbeat, HostSettings, WorkerFound, WorkerWarmup};

use super::*;

/// A method under memory pressure or under a cap.
fn figures_of(role: Role, method: &'static str, operations: u64, is_capped: bool) -> Figures {
    let mut figures = warm(role, method, operations);
    figures.conditions.span_bytes = Bytes::mib(192);
    figures.conditions.host_settings = match is_capped {
        true => {
            HostSettings { device_cap: Some("microsd".parse().expect("a cap")), ..HostSettings::default() }
        }
        false => HostSettings { memory_limit_bytes: Some(Bytes::mib(128)), ..HostSettings::default() },
    };
    if is_capped {
        figures.conditions.cache = CacheState::Cold;
    }
    Figures { amplification: 0.3, cpu_share: 0.2, ..figures }
}

fn figures() -> Vec<Figures> {
    use Role::{Control, Measured};
    vec![
        figures_of(Measured, "mmap:random", 140, false),
        figures_of(Measured, "pread", 300, false),
        figures_of(Control, "pread", 301, false),
        figures_of(Measured, "jvm/mmap", 120, false),
        figures_of(Measured, "jvm/pread", 290, false),
        figures_of(Measured, "python/mmap", 110, false),
        figures_of(Measured, "go/pread", 1, false),
        figures_of(Measured, "mine/lsm-get", 299, false),
        figures_of(Measured, "jvm/mmap", 17, true),
        figures_of(Measured, "pread", 18, true),
        figures_of(Control, "pread", 18, true),
    ]
}

/// Beats of which one in fifty is late by `late_ns`, and one by four times that.
fn beats(kind: &str, late_ns: u64) -> Heartbeat {
    Heartbeat {
        kind: kind.to_string(),
        idle: Delays { ns: vec![60_000, 200_000], counts: vec![190, 2] },
        busy: Delays { ns: vec![70_000, late_ns, 4 * late_ns], counts: vec![145, 3, 1] },
    }
}

fn heartbeats(method: &str) -> Vec<Heartbeat> {
    match method {
        "jvm/mmap" => {
            vec![beats("thread", 150_000), beats("virtual-thread", 160_000), beats("safepoint", 3_100_000)]
        }
        "jvm/pread" => {
            vec![beats("thread", 140_000), beats("virtual-thread", 150_000), beats("safepoint", 310_000)]
        }
        "python/mmap" => vec![beats("thread", 5_200_000)],
        "mine/lsm-get" => Vec::new(),
        _ => vec![beats("thread", 180_000)],
    }
}

fn taken(figures: &Figures, index: usize, round: u32) -> Sample {
    let mut sample = sample(figures, index, round, 0);
    if let Outcome::Taken { evidence, failures, .. } = &mut sample.outcome {
        evidence.heartbeats = heartbeats(figures.method);
        evidence.group = Some(GroupCounters { version: "v2".into(), ..GroupCounters::default() });
        if figures.method.starts_with("jvm/") {
            let steady = (figures.method, round) != ("jvm/pread", 2);
            let elapsed_ns =
                if steady { 1_400_000_000 + u64::from(round) * 10_000_000 } else { 8_000_000_000 };
            evidence.worker_warmup = Some(WorkerWarmup { rates: vec![90, 120, 121], elapsed_ns, steady });
            if !steady {
                let detail =
                    "jvm was still getting faster after 8.0 s of warm-up, in 80 intervals".to_string();
                failures.push(Failure { kind: FailureKind::NotSettled, detail });
            }
        }
    }
    if figures.method.starts_with("go/") {
        sample.outcome = Outcome::Unavailable { reason: "no go in PATH or /usr/local/go/bin".to_string() };
    }
    sample
}

/// The run.
pub fn workers() -> Run {
    let all = figures();
    let samples = (0..ROUNDS)
        .flat_map(|round| {
            all.iter()
                .enumerate()
                .map(move |(index, figures)| taken(figures, index, round))
                .collect::<Vec<_>>()
        })
        .collect();
    let header = header();
    let found = |name: &str, version: &str, command: &[&str]| WorkerFound {
        name: name.into(),
        version: version.into(),
        command: command.iter().map(ToString::to_string).collect(),
        ..WorkerFound::default()
    };
    let flags =
        ["java", "-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-cp", "workers/jvm-0a1b", "PagewiseWorker"];
    let workers = vec![
        WorkerFound {
            notes: vec!["JAVA_HOME is /opt/jdk-17, which is older than 22 and was skipped".into()],
            ..found("jvm", "OpenJDK 25.0.1", &flags)
        },
        WorkerFound {
            unavailable: Some("no go in PATH or /usr/local/go/bin".into()),
            ..found("go", "", &[])
        },
        found("mine", "1.0", &["./my-reader"]),
        found("python", "3.11.2", &["python3", "worker.py"]),
    ];
    let mut plan = Plan { cells: all.iter().map(cell).collect(), ..header.plan };
    plan.workers.heartbeat_ns = 1_000_000;
    Run { elapsed_ns: Some(30_000_000_000), ..Run::of(Header { plan, workers, ..header }, samples) }
}
