//! Columns of one-shot work: the times of its parts, its total, and its cost.

use pagewise_analysis::judge::latency::Latency;
use pagewise_analysis::judge::{CellJudgement, EvidenceMedians};

use super::grid::or_missing;
use pagewise_model::format::{grouped, plain, rate, time};

/// A number of the evidence.
pub(super) fn seen<T>(
    cell: &CellJudgement,
    figure: impl Fn(&EvidenceMedians) -> Option<T>,
    text: impl Fn(T) -> String,
) -> String {
    or_missing(cell.evidence.as_ref().and_then(figure), text)
}

/// A time in units of `unit_ns`.
pub(super) fn in_units(nanoseconds: Option<u64>, unit_ns: f64) -> String {
    or_missing(nanoseconds, |value| plain(value as f64 / unit_ns))
}

/// Bytes in MiB.
pub(super) fn mebi(bytes: u64) -> String {
    plain(bytes as f64 / f64::from(1 << 20))
}

/// Faults of both kinds.
pub(super) fn faults(seen: &EvidenceMedians) -> Option<u64> {
    Some(seen.minor_faults?.saturating_add(seen.major_faults?))
}

/// A quantile of the latencies.
pub(super) fn quantile(cell: &CellJudgement, pick: impl Fn(&Latency) -> Option<u64>) -> String {
    or_missing(cell.latency_ns.as_ref().and_then(pick), time)
}

/// The p99.9 latency.
pub(super) fn p999(cell: &CellJudgement) -> String {
    quantile(cell, |latency| latency.p999)
}

/// The longest operation or stall, with the number of operations, since it grows with them.
pub(super) fn longest(cell: &CellJudgement) -> String {
    let count = |operations: u64| match operations {
        0..10_000 => grouped(operations),
        many => rate(many as f64),
    };
    let told = |latency: &Latency| format!("{} of {}", time(latency.max), count(latency.operations));
    or_missing(cell.latency_ns.as_ref(), told)
}
