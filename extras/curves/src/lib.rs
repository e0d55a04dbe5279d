//! An extra: crossings of methods as the data grow, and tables of methods by threads or by size of
//! the data.
//!
//! [`CURVES`] is the only door.

mod answer;
mod cliff;
mod json;
mod tables;
#[cfg(test)]
mod tests;

use pagewise_report::curves_door::CurvesDoor;

/// The answer to a run whose plan has a search or a table.
pub const CURVES: CurvesDoor = CurvesDoor { answer: answer::of, next: cliff::search::next, keys: json::KEYS };
