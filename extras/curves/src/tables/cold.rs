//! Cold starts: the time until each method is fast, and the ratio of two such times.

use pagewise_model::CacheState;
use pagewise_model::counters::RateWindow;

use super::facts::{ColdRow, ColdStart, Data, not_ranked};
use super::ratio::PairedRatio;
use pagewise_analysis::judge::CellJudgement;
use pagewise_analysis::judge::Comparison;
use pagewise_analysis::judge::MedianInterval;
use pagewise_analysis::judge::collected::CellSamples;
use pagewise_analysis::proof::measured::duration_ns;
use pagewise_analysis::proof::steady::time_to_warm;
use pagewise_analysis::statistics::total;

const HALF: f64 = 0.5;
const NINETY: f64 = 0.9;

/// Every cold start of the run, in the order of the plan.
pub(super) fn cold_starts(data: &Data<'_>) -> Vec<ColdStart> {
    let cold = data.comparisons.iter().filter(|comparison| {
        let conditions = &comparison.conditions.conditions;
        conditions.cache == CacheState::ColdStart && conditions.reads().is_some()
    });
    cold.map(|comparison| cold_start(data, comparison)).collect()
}

fn cold_start(data: &Data<'_>, comparison: &Comparison) -> ColdStart {
    let conditions = &comparison.conditions.conditions;
    let found: Vec<(&CellSamples<'_>, &CellJudgement)> =
        comparison.cells.iter().filter_map(|id| Some((data.samples(id)?, data.judged(id)?))).collect();
    let methods: Vec<String> = found.iter().map(|(_, cell)| cell.method.clone()).collect();
    let pair = data.planned.pairs(&methods);
    let cell = |method: &str| found.iter().find(|(_, cell)| cell.method == method).copied();
    let both = pair.and_then(|(baseline, against)| Some((cell(baseline)?, cell(against[0])?)));
    let other_over_baseline = both.and_then(|((baseline, _), (other, _))| {
        PairedRatio::of(&other.rates(), &baseline.rates(), comparison.inflation)
    });
    ColdStart {
        label: comparison.conditions.label.clone(),
        workload: conditions.workload(),
        reads_per_op: conditions.reads_per_op(),
        threads: conditions.threads,
        span_bytes: conditions.span_bytes,
        rows: found.iter().map(|(samples, cell)| row(comparison, samples, cell)).collect(),
        baseline: both
            .map(|((_, baseline), _)| baseline.method.clone())
            .or_else(|| data.planned.baseline.clone()),
        other: both.map(|(_, (_, other))| other.method.clone()),
        other_over_baseline,
    }
}

fn row(comparison: &Comparison, samples: &CellSamples<'_>, cell: &CellJudgement) -> ColdRow {
    let op_bytes = samples.cell.conditions.op_bytes();
    let of_each = |figure: &dyn Fn(&[RateWindow], f64) -> Option<f64>| {
        let of_sample = |windows: &[RateWindow]| figure(windows, steady_rate(op_bytes, windows)?);
        let warms = samples.valid().filter(|_| samples.cell.depends_on_cache());
        let figures: Vec<f64> = warms.filter_map(|(_, seen)| of_sample(&seen.windows)).collect();
        MedianInterval::of(&figures)
    };
    let until = |share: f64| of_each(&|windows, steady| first_reached(windows, steady * share));
    ColdRow {
        method: cell.method.clone(),
        cell: cell.id.clone(),
        status: cell.status,
        reason: cell.reason.clone(),
        not_ranked: not_ranked(comparison, cell),
        samples: cell.samples,
        to_half_ns: until(HALF),
        to_ninety_ns: until(NINETY),
        to_steady_ns: cell.time_to_warm_ns,
        bytes_to_steady: cell.bytes_to_warm,
        steady_ops_per_ms: of_each(&|_, steady| Some(steady / 1e3)),
        windows: cell.cold_start.clone().unwrap_or_default(),
    }
}

/// Operations per second of the windows in which a sample is warm; `None` if it never became warm.
fn steady_rate(op_bytes: u64, windows: &[RateWindow]) -> Option<f64> {
    let warm = &windows[time_to_warm(op_bytes, windows)?.window..];
    let operations = total(warm.iter().map(|window| &window.operations));
    let elapsed = duration_ns(warm);
    (operations > 0 && elapsed > 0).then(|| operations as f64 * 1e9 / elapsed as f64)
}

/// Nanoseconds until the first window with a rate of at least `wanted` began; at least one window,
/// like the time to warm.
fn first_reached(windows: &[RateWindow], wanted: f64) -> Option<f64> {
    let first = windows.iter().position(|window| window.ops_per_second() >= wanted)?;
    Some(duration_ns(&windows[..first.max(1)]) as f64)
}
