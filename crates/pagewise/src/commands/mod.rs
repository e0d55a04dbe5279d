//! The commands, one file each.

pub mod advise;
mod begin;
pub mod clean;
mod command_lines;
pub mod compare;
pub mod conformance;
mod consent;
pub mod doctor;
pub mod inspect;
pub mod methods;
pub mod planned;
mod prepare;
pub mod record;
pub mod reference;
pub mod report;
pub mod reproduce;
mod resume;
mod rights;
pub mod run;
mod watched;
