//! Judgement: from samples to verdicts, as pure functions.
//!
//! Nothing here reads a file, a clock or the machine, so the same run is judged alike on any
//! machine. [`proof`] decides whether one sample is valid: while it is taken, and again when a run
//! file is read. [`mod@judge`] begins with a whole run, and the report makes the judged JSON and
//! its sentences of the result of [`judge()`]. [`search`] decides which cells to measure next.
//! All of them use [`statistics`]. [`facts`] of a run are what its results depend on. [`inspect`]
//! needs no run: it concludes from what a watched program did.

// The report's words, which are tested here by what they are made of, name this crate.
#[cfg(test)]
extern crate self as pagewise_analysis;

pub mod facts;
pub mod inspect;
pub mod judge;
pub mod proof;
pub mod search;
pub mod statistics;

pub use judge::{Judged, judge, judge_at};
pub use pagewise_model::{Beating, CheckContext as Context};
pub use proof::{failures, no_effect};
