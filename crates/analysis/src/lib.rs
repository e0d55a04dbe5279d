//! Judgement: from samples to verdicts, as pure functions.
//!
//! Nothing here reads a file, a clock or the machine, so a run from one machine is judged alike on any
//! other. [`checks`] decides whether one sample can be believed, when it is taken. Everything else begins
//! with a whole run: [`judged::judge`] is the door, and what it returns is the judged JSON.

pub mod advice;
pub mod bound;
mod calls;
pub mod checks;
pub mod cliff;
pub mod collected;
pub mod judged;
pub mod latency;
pub mod lucene;
pub mod simulation;
pub mod statistics;
pub mod steady;
pub mod verdict;

pub use checks::{Beating, Context, failures, no_effect};
pub use judged::{Judged, judge};
