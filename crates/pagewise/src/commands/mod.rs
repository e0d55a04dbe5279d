//! The commands, one file each.

mod begin;
pub mod clean;
pub mod conformance;
pub mod doctor;
pub mod report;
mod resume;
mod resume_line;
pub mod run;

/// Result of a command that was used correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// Exit 0.
    Done,
    /// Exit 1: something is invalid, or it stopped early.
    FellShort,
}

/// An error that is not the user's: exit 1 instead of 2.
#[derive(Debug)]
pub struct CommandError(pub anyhow::Error);

impl std::fmt::Display for CommandError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#}", self.0)
    }
}

impl std::error::Error for CommandError {}
