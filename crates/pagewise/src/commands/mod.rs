//! The commands, one file each.

mod begin;
pub mod clean;
pub mod conformance;
pub mod doctor;
pub mod planned;
mod prepare;
pub mod report;
mod resume;
mod resume_line;
pub mod run;
