//! The commands, one file each.

pub mod clean;
pub mod doctor;
pub mod methods;
pub mod reference;
pub mod report;
mod resume;
pub mod run;
