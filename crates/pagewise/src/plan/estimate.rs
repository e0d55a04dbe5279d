//! How long a plan will take and what it will write, told before it starts.

use pagewise_model::{CacheState, Plan, Source};

/// What a sample takes beside its phases: a process, set-up, evidence, verification, tear-down.
const OVERHEAD_NS: u64 = 45_000_000;
/// Writing or reading a dataset, a guess that a disk of 500 MB/s would meet.
const DATASET_NS_PER_BYTE: u64 = 2;

/// Samples that the plan takes.
pub fn samples(plan: &Plan) -> u64 {
    plan.cells.len() as u64 * u64::from(plan.rounds)
}

/// How long it takes, roughly.
pub fn duration_ns(plan: &Plan) -> u64 {
    let sampling = samples(plan) * (plan.sample_ns + plan.latency_ns + OVERHEAD_NS);
    let largest = plan.file_sizes().first().map_or(0, |size| size.0);
    let writing = match plan.source {
        Source::Dataset { .. } => plan.dataset_bytes().0 * DATASET_NS_PER_BYTE,
        Source::File { .. } => 0,
    };
    // Each round that goes from cold to warm reads the file once more.
    let states = |state| plan.cells.iter().any(|cell| cell.conditions.cache == state);
    let warmings = if states(CacheState::Warm) {
        if states(CacheState::Cold) { u64::from(plan.rounds) } else { 1 }
    } else {
        0
    };
    sampling + writing + warmings * largest * DATASET_NS_PER_BYTE
}

/// A duration as people say it.
pub fn humane(duration_ns: u64) -> String {
    let seconds = duration_ns.div_ceil(1_000_000_000);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}
