//! Runs as text, CSV, JSON, Markdown, SVG and HTML.
//!
//! Every function takes a writer, and the table a width; none opens a file or queries a terminal.
//! Numbers are judged by `pagewise-analysis`; only their presentation is decided here.

mod bar;
pub mod cliff;
pub mod csv;
pub mod document;
pub mod inspect;
pub mod json;
pub mod judged_run;
pub mod line;
pub mod map;
pub mod markdown;
pub mod markup;
pub mod method_tables;
pub mod page;
pub mod paragraph;
pub mod plots;
pub mod printed;
pub mod rows;
pub mod screen;
pub mod svg;
pub mod table;
pub mod text_table;
pub mod vmstat;
pub mod words;
