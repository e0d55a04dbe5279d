//! The program of a worker, with its arguments and environment.

use std::io;
#[cfg(test)]
use std::io::{PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use pagewise_protocol::{Conversation, ConversationError};

/// The program of a worker.
#[derive(Clone, Debug)]
pub enum Program {
    /// pagewise itself.
    Own,
    /// Another program.
    Stated(Arc<Stated>),
    /// A thread of this process that serves as a worker.
    #[cfg(test)]
    Thread(fn(PipeReader, PipeWriter) -> io::Result<()>),
}

/// A program with its arguments and environment.
#[derive(Debug)]
pub struct Stated {
    /// The program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Environment variables that are removed.
    pub unset: &'static [&'static str],
    /// Recorded command, if it differs from the executed one.
    pub shown: Option<Vec<String>>,
    /// Open files whose descriptors are in its command.
    pub held: Vec<OwnedFd>,
}

impl Stated {
    /// A program with these arguments.
    pub fn new(program: impl Into<PathBuf>, arguments: &[String]) -> Self {
        let (program, arguments) = (program.into(), arguments.to_vec());
        Self { program, arguments, unset: &[], shown: None, held: Vec::new() }
    }

    /// Recorded command.
    pub fn command(&self) -> Vec<String> {
        if let Some(shown) = &self.shown {
            return shown.clone();
        }
        let program = self.program.to_string_lossy().into_owned();
        std::iter::once(program).chain(self.arguments.iter().cloned()).collect()
    }
}

impl Program {
    /// A program with its arguments and environment.
    pub fn stated(stated: Stated) -> Self {
        Program::Stated(Arc::new(stated))
    }

    /// Start it, after `prepare` has completed the command.
    pub fn start(
        &self,
        prepare: impl FnOnce(&mut Command) -> io::Result<&mut Command>,
    ) -> Result<Conversation, ConversationError> {
        match self {
            Program::Own => {
                let mut command = Command::new("/proc/self/exe");
                command.arg("worker");
                Conversation::start(command, "the worker", prepare)
            }
            Program::Stated(stated) => {
                let mut command = Command::new(&stated.program);
                command.args(&stated.arguments);
                for variable in stated.unset {
                    command.env_remove(variable);
                }
                Conversation::start(command, &format!("the worker '{}'", stated.command()[0]), prepare)
            }
            #[cfg(test)]
            Program::Thread(serve) => Conversation::within(*serve),
        }
    }
}
