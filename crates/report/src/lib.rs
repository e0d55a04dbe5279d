//! Runs as text, CSV, JSON and Markdown.
//!
//! Every function takes a writer, and the table a width; none opens a file or queries a terminal.
//! Numbers are judged by `pagewise-analysis`; only their presentation is decided here.

pub mod bar;
pub mod csv;
pub mod curves_door;
pub mod document;
pub mod inspect;
pub mod json;
pub mod judged_run;
pub mod line;
pub mod map;
pub mod markdown;
pub mod paragraph;
pub mod plot;
pub mod printed;
pub mod rows;
pub mod screen;
pub mod table;
pub mod text_table;
pub mod thread_plot;
pub mod vmstat;
pub mod words;
