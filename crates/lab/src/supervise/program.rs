//! The program of a worker, with its arguments and environment.

use std::io;
#[cfg(test)]
use std::io::{PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use pagewise_host::toolchain::Built;
use pagewise_host::trusted::Directory;
use pagewise_protocol::{Conversation, ConversationError, inherited_path};

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
    program: PathBuf,
    arguments: Vec<String>,
    /// Environment variables that are removed.
    pub unset: &'static [&'static str],
    /// Recorded command, if it differs from the executed one.
    shown: Option<Vec<String>>,
    /// The folder whose descriptor is in its path.
    _folder: Option<Arc<Directory>>,
    /// Memory for its log, which it inherits.
    log: Option<OwnedFd>,
}

impl Stated {
    /// A program with these arguments.
    pub fn new(program: impl Into<PathBuf>, arguments: &[String]) -> Self {
        let (program, arguments) = (program.into(), arguments.to_vec());
        Self { program, arguments, unset: &[], shown: None, _folder: None, log: None }
    }

    /// A built worker, executed by the descriptor of its folder and recorded with its path.
    pub fn built(built: &Built) -> Self {
        Self {
            unset: built.unset,
            shown: Some(built.command.clone()),
            _folder: Some(built.folder.clone()),
            ..Self::new(&built.by_descriptor[0], &built.by_descriptor[1..])
        }
    }

    /// Let a JVM log its safepoints into `memory`, where its worker reads them.
    pub fn log_safepoints(&mut self, memory: OwnedFd) {
        let path = inherited_path(&memory);
        let flags = [
            format!("-Xlog:safepoint=info:file={path}:uptimenanos:filecount=0"),
            format!("-Dpagewise.safepoint-log={path}"),
        ];
        if let Some(shown) = &mut self.shown {
            shown.splice(1..1, flags.clone());
        }
        self.arguments.splice(0..0, flags);
        self.log = Some(memory);
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
