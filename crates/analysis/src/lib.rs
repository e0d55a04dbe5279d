//! Judgement: from samples to verdicts, as pure functions, in three rooms.
//!
//! Nothing here reads a file, a clock or the machine, so a run from one machine is judged alike on any
//! other. [`proof`] says whether one sample can be believed: while it is taken, and again when a run file is read. [`mod@judge`] begins
//! with a whole run, and what [`judge()`] returns is the judged JSON. [`search`] says which cells to measure next. [`statistics`] is
//! what all of them count with.

pub mod judge;
pub mod proof;
pub mod search;
pub mod statistics;

pub use judge::{Judged, judge};
pub use pagewise_model::{Beating, CheckContext as Context};
pub use proof::{failures, no_effect};
