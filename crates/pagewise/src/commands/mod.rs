//! The commands, one file each.

pub mod advise;
pub mod clean;
pub mod compare;
pub mod doctor;
pub mod inspect;
pub mod methods;
pub mod record;
pub mod reference;
pub mod report;
mod resume;
pub mod run;
mod watched;
