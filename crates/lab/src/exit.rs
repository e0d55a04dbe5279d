//! Exit status of a command: its meanings in one table, from which help is printed, and the status
//! of an error.

use std::fmt;

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The question was answered, or the command did its work.
    Answered,
    /// Something is missing or failed.
    FellShort,
    /// The command line, a plan or a file is wrong.
    WrongUse,
    /// The machine or the user cannot measure what was asked.
    NotMeasurable,
    /// Another run has the right to run.
    Busy,
    /// An expectation is neither shown to hold nor not to.
    Open,
    /// A signal stopped it.
    Interrupted,
    /// The status of the command that was inspected.
    Program(u8),
}

impl Exit {
    /// Every status.
    pub const ALL: [Exit; 7] = [
        Exit::Answered,
        Exit::FellShort,
        Exit::WrongUse,
        Exit::NotMeasurable,
        Exit::Busy,
        Exit::Open,
        Exit::Interrupted,
    ];

    /// Code for the shell.
    pub fn code(self) -> u8 {
        match self {
            Exit::Answered => 0,
            Exit::FellShort => 1,
            Exit::WrongUse => 2,
            Exit::NotMeasurable => 3,
            Exit::Busy => 4,
            Exit::Open => 5,
            // What shells report of a command that Ctrl-C ended: 128 and the number of SIGINT.
            Exit::Interrupted => 130,
            Exit::Program(code) => code,
        }
    }

    /// Meaning, for help.
    pub fn meaning(self) -> &'static str {
        match self {
            Exit::Answered => "answered; of report and compare: printed",
            Exit::FellShort => {
                "fell short: too few valid samples or methods; or a check, gate, --expect or operation failed"
            }
            Exit::WrongUse => "wrong use: nothing was done",
            Exit::NotMeasurable => "nothing could be measured here: rights, kernel",
            Exit::Busy => "busy: another run is measuring, try again later",
            Exit::Open => "open: the run does not decide an --expect",
            Exit::Interrupted => "stopped by Ctrl-C or another signal; --resume goes on",
            Exit::Program(_) => "that of the command",
        }
    }

    /// Table of all, for help.
    pub fn table() -> String {
        let line = |exit: &Exit| format!("  {:<3}  {}\n", exit.code(), exit.meaning());
        format!("Exit status:\n{}", Exit::ALL.iter().map(line).collect::<String>())
    }

    /// An error with this status; without one an error is [`Exit::WrongUse`].
    pub fn because(self, error: impl Into<anyhow::Error>) -> anyhow::Error {
        ExitError { exit: self, error: error.into() }.into()
    }

    /// Status of an error.
    pub fn of(error: &anyhow::Error) -> Self {
        error.downcast_ref::<ExitError>().map_or(Exit::WrongUse, |error| error.exit)
    }
}

/// An error that is not the user's.
#[derive(Debug)]
struct ExitError {
    exit: Exit,
    error: anyhow::Error,
}

impl fmt::Display for ExitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&sentence(&self.error))
    }
}

impl std::error::Error for ExitError {}

/// The error and its causes; a cause whose text is part of the sentence before it is left out.
pub fn sentence(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.is_empty() {
        true => cause,
        false if text.contains(&cause) => text,
        false => format!("{text}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn codes_are_distinct_and_an_error_keeps_its_own() {
        for exit in Exit::ALL {
            let same = Exit::ALL.iter().filter(|other| other.code() == exit.code());
            assert_eq!(same.count(), 1);
            let error = Exit::because(exit, anyhow!("it is so"));
            assert_eq!((Exit::of(&error), sentence(&error)), (exit, "it is so".to_string()));
            let wrapped = Err::<(), _>(error).context("as asked").expect_err("an error");
            assert_eq!((Exit::of(&wrapped), sentence(&wrapped)), (exit, "as asked: it is so".to_string()));
        }
        assert_eq!(Exit::of(&anyhow!("typed")), Exit::WrongUse);
    }
}
