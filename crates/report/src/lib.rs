//! Runs as text, CSV and JSON.
//!
//! Every function takes a writer, and the table a width; none opens a file or looks at a terminal. Numbers
//! come judged from `pagewise-analysis`: nothing is decided here but how they are shown.

pub mod chart;
pub mod cliff;
pub mod csv;
pub mod json;
pub mod paragraph;
pub mod pivot;
pub mod printed;
pub mod table;
pub mod vmstat;
