//! Figures as they are shown, with their intervals.

use pagewise_analysis::judge::{FigureKind, MedianInterval};
use pagewise_model::format::{rate, time};

/// A figure of a kind, in the unit of the kind.
pub fn shown(kind: FigureKind, value: f64) -> String {
    if kind.is_time() { time(value) } else { rate(value) }
}

/// The unit of a kind, as a heading.
pub fn unit(kind: FigureKind) -> &'static str {
    match kind {
        FigureKind::ReadsPerSecond => "reads/s",
        FigureKind::RecordsPerSecond => "records/s",
        FigureKind::TimeToWarm => "time to warm",
        FigureKind::TimeInTotal => "time in total",
        FigureKind::UsualLatency => "mean latency of the fastest 95 %",
    }
}

/// `12.3k [12.1k, 12.6k]`, with each number formatted by `form`.
pub fn interval(figure: MedianInterval, form: impl Fn(f64) -> String) -> String {
    let middle = form(figure.median);
    match (figure.low, figure.high) {
        (Some(low), Some(high)) => format!("{middle} [{}, {}]", form(low), form(high)),
        _ => middle,
    }
}
