//! Everything between a question and its answer: a plan is made of it, prepared, measured in
//! rounds, and kept in a run file. Commands are thin wrappers around it.
//!
//! * [`plan`]: from text to a plan; [`traced`]: the trace that it replays;
//! * [`prepare`], [`rights`], [`consent`], [`planned`]: what is examined and said before a run;
//! * [`begin`], [`measure`], [`session`]: one run; [`series`]: the host meanwhile;
//! * [`supervise`]: one sample;
//! * [`store`], [`state`]: run files, and the files of a run, which outlive no run;
//! * [`answer`], [`output`], [`exit`], [`command_lines`], [`choices`]: what a user types and sees.

pub mod answer;
pub mod begin;
pub mod choices;
pub mod command_lines;
pub mod consent;
mod descriptors;
pub mod door;
pub mod exit;
pub mod format_door;
pub mod labels;
pub mod measure;
pub mod output;
pub mod plan;
pub mod planned;
pub mod prepare;
pub mod rights;
pub mod series;
pub mod session;
pub mod state;
pub mod store;
pub mod supervise;
pub mod traced;
pub mod worker_door;
