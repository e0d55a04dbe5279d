//! Runs compared with runs: by two sides, before and after a change, or by a fact of the machines
//! they were made on.
//!
//! A run is reduced to a [`Digest`] first, so that hundreds need little memory. [`Difference`] is
//! the comparison of two sides, [`gate`] decides whether it fails a condition, [`Split`] is the
//! comparison of many runs by a fact, and [`missing`] names values without a run. [`Together`] is
//! of machines that measured at the same time: it needs the times of samples, which a [`Timeline`]
//! has. All of them are functions of the judged runs alone.

pub mod advice;
pub mod change;
pub mod crossing;
pub mod difference;
pub mod digest;
pub mod facts;
pub mod gate;
pub mod missing;
pub mod split;
#[cfg(test)]
mod tests;
pub mod together;
pub mod unpaired;

pub use difference::Difference;
pub use digest::Digest;
pub use gate::{Gate, Gated};
pub use missing::{ExpectedValues, MissingRun};
pub use split::Split;
pub use together::{Timeline, Together};
