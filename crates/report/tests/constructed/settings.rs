//! A run under a memory limit, a device cap, and from a cold start.

use pagewise_model::{Cell, GroupCounters, HostCounters, HostSettings, RateWindow, Skew};

use super::*;

const SPAN: u64 = 192 << 20;

fn limited(role: Role, method: &'static str, operations: u64, amplification: f64, issued: u64) -> Figures {
    let mut figures = warm(role, method, operations);
    figures.conditions.span_bytes = Bytes(SPAN);
    let reads = figures.conditions.work.reads_mut().expect("reads");
    reads.skew = Skew::Zipf { theta_thousandths: 990 };
    figures.conditions.host_settings = HostSettings {
        memory_limit_bytes: Some(Bytes::mib(128)),
        kernel: pagewise_model::KernelSettings {
            readahead_bytes: Some(Bytes::kib(128)),
            ..Default::default()
        },
        cpus: Some("0-1".parse().expect("CPUs")),
        ..HostSettings::default()
    };
    Figures { amplification, issued_bytes: issued, cpu_share: 0.2, ..figures }
}

fn capped(
    role: Role,
    method: &'static str,
    read_bytes: Bytes,
    operations: u64,
    amplification: f64,
) -> Figures {
    let mut figures = device(method, read_bytes, operations);
    figures.conditions.host_settings.device_cap = Some("microsd".parse().expect("a cap"));
    Figures { role, amplification, ..figures }
}

fn cold_start(role: Role, method: &'static str, operations: u64) -> Figures {
    let mut figures = cold(role, method, operations, 0.5, 16 << 10);
    figures.conditions.cache = CacheState::ColdStart;
    figures
}

fn figures() -> Vec<Figures> {
    use Role::{Ceiling, Control, Measured};
    vec![
        limited(Measured, "mmap", 20, 5.5, 128 << 10),
        limited(Measured, "mmap:random", 150, 0.3, 4 << 10),
        limited(Measured, "pread", 300, 0.3, 16 << 10),
        limited(Control, "pread", 301, 0.3, 16 << 10),
        capped(Measured, "mmap", Bytes::kib(16), 1, 17.0),
        capped(Measured, "pread:direct", Bytes::kib(16), 17, 1.0),
        capped(Control, "pread:direct", Bytes::kib(16), 17, 1.0),
        capped(Ceiling, "uring:direct+depth=32", Bytes::kib(1024), 4, 1.0),
        cold_start(Measured, "mmap:random", 400),
        cold_start(Measured, "pread", 800),
        cold_start(Control, "pread", 800),
        cold_start(Measured, "pread:direct", 300),
    ]
}

/// Ten windows of 20 ms: the first `cold` at a tenth of the rate of the others.
fn windows(cold: u64, operations: u64, device_bytes: u64) -> Vec<RateWindow> {
    let warm = operations * 10 / (cold + 10 * (10 - cold));
    let left = operations - warm * (9 - cold) - warm / 10 * cold;
    (0..10)
        .map(|index| RateWindow {
            elapsed_ns: 20_000_000,
            operations: if index < cold {
                warm / 10
            } else if index < 9 {
                warm
            } else {
                left
            },
            device_read_bytes: Some(if index < cold { device_bytes / cold } else { 0 }),
            resident_bytes: Some(device_bytes / cold * (index + 1).min(cold)),
            ..RateWindow::default()
        })
        .collect()
}

fn group(conditions: &Conditions, requested: u64) -> Option<GroupCounters> {
    let limit = conditions.host_settings.memory_limit_bytes.map(|limit| limit.0);
    let usage = limit.map_or(3 << 20, |limit| limit - (1 << 20));
    conditions.host_settings.needs_group().then(|| GroupCounters {
        version: "v2".into(),
        limit_bytes: limit,
        peak_bytes: Some(limit.unwrap_or(usage)),
        usage_bytes: Some(usage),
        file_bytes: Some(usage - (3 << 20)),
        anonymous_bytes: Some(2 << 20),
        kernel_bytes: Some(1 << 20),
        refaults: limit.map(|_| requested / 16384),
        scanned_pages: limit.map(|_| requested / 4096),
        reclaimed_pages: limit.map(|_| requested / 8192),
        ..GroupCounters::default()
    })
}

fn sample_of(figures: &Figures, index: usize, round: u32) -> Sample {
    let mut sample = sample(figures, index, round, 0);
    if let Outcome::Taken { measurement, evidence, .. } = &mut sample.outcome {
        evidence.group = group(&figures.conditions, evidence.requested_bytes);
        evidence.host = HostCounters {
            tlb_shootdowns: Some(2004),
            scanned_directly: Some(900),
            reclaimed_directly: Some(800),
            ..HostCounters::default()
        };
        let read = evidence.device_read_bytes.unwrap_or(0);
        if figures.method == "mmap:random" {
            evidence.major_faults = Some(read / 4096);
        }
        if figures.conditions.cache == CacheState::ColdStart {
            measurement.latency_ns.clear();
            measurement.latency_counts.clear();
            let cold = if figures.method == "pread" { 2 } else { 4 };
            evidence.windows = windows(cold, measurement.operations, read);
        }
    }
    sample
}

/// A run whose cells have what the machine was set to, and one method that never becomes warm.
pub fn settings() -> Run {
    let all = figures();
    let samples = (0..ROUNDS)
        .flat_map(|round| {
            all.iter()
                .enumerate()
                .map(move |(index, figures)| sample_of(figures, index, round))
                .collect::<Vec<_>>()
        })
        .collect();
    let header = header();
    let cells: Vec<Cell> = all.iter().map(cell).collect();
    Run {
        elapsed_ns: Some(30_000_000_000),
        ..Run::of(Header { plan: Plan { cells, ..header.plan }, ..header }, samples)
    }
}
