//! Columns of one-shot work: the times of its parts, its total, and its cost.

use pagewise_analysis::judge::{CellJudgement, EvidenceMedians};

use crate::text_table::TextCell;
use pagewise_model::format::{Number, plain};

/// A number of the evidence.
pub(super) fn seen<T: Number + Copy>(
    cell: &CellJudgement,
    figure: impl Fn(&EvidenceMedians) -> Option<T>,
    text: impl Fn(T) -> String,
) -> TextCell {
    TextCell::number(cell.evidence.as_ref().and_then(figure), text)
}

/// A time in units of `unit_ns`.
pub(super) fn in_units(nanoseconds: Option<u64>, unit_ns: f64) -> TextCell {
    TextCell::number(nanoseconds.map(|value| value as f64 / unit_ns), plain)
}

/// Bytes in MiB.
pub(super) fn mebi(bytes: u64) -> String {
    plain(bytes as f64 / f64::from(1 << 20))
}

/// Faults of both kinds.
pub(super) fn faults(seen: &EvidenceMedians) -> Option<u64> {
    Some(seen.minor_faults?.saturating_add(seen.major_faults?))
}
