//! The facts in which the languages differ.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use pagewise_model::WorkerChoices;

use super::child::Said;
use super::store::Workshop;
use super::variables::ToolchainVariables;
use super::{Found, SourceFile};

/// A language's toolchain, and the way from the sources of its worker to a command.
#[derive(Debug)]
pub(super) struct Recipe {
    /// Name of its worker in methods.
    pub name: &'static str,
    /// Line in `doctor`.
    pub capability: &'static str,
    /// The files of its worker.
    pub sources: &'static [SourceFile],
    /// A suitable toolchain in words.
    pub wanted: &'static str,
    /// The lowest suitable version.
    pub oldest: &'static [u64],
    /// The variable that names the home of one.
    pub home: Option<&'static str>,
    /// Names of its program on PATH.
    pub programs: &'static [&'static str],
    /// Patterns of other folders that may hold its program; `~` is the user's home.
    pub folders: &'static [&'static str],
    /// End of the sentence about a missing one.
    pub remedy: &'static str,
    /// Arguments with which its program describes itself.
    pub question: &'static [&'static str],
    /// The toolchain of the program at a path that gave this answer; `None` if that names no
    /// version.
    pub answer: fn(&Said, &Path) -> Option<Found>,
    /// Variables with which its program is asked.
    pub set: &'static [(&'static str, &'static str)],
    /// Variables that are kept from its programs and from the worker: they would change it without
    /// showing in its command.
    pub unset: &'static [&'static str],
    /// End of the sentence that one of them is set.
    pub instead: &'static str,
    /// The compiler below its home; a worker without one is its sources.
    pub compiler: Option<&'static str>,
    /// First arguments of the compiler.
    pub build_flags: &'static [&'static str],
    /// Completes the command of the compiler, which is started where the sources are.
    pub compile: fn(&mut Command, &Build<'_>) -> Result<(), String>,
    /// Reason that a worker in this folder could not be started.
    pub unsuitable: fn(&Path) -> Option<String>,
    /// Flags of its runtime, which the worker is started with.
    pub flags: fn(&WorkerChoices) -> Result<Flags, String>,
    /// Program and arguments of the worker in a folder, with these flags.
    pub start: fn(&Found, &[String], &Path) -> Vec<String>,
}

/// Flags of a runtime.
#[derive(Debug, Default)]
pub(super) struct Flags {
    pub words: Vec<String>,
    /// Memory for a log that they name, which the worker inherits.
    pub log: Option<OwnedFd>,
}

/// A worker that is being built.
pub(super) struct Build<'a> {
    pub variables: &'a ToolchainVariables,
    pub found: &'a Found,
    pub sources: &'a [SourceFile],
    pub workshop: &'a Workshop,
}

/// Numbers of a version, for comparison: `1.26.8` is 1, 26, 8. Suffixes (`-ea`, `rc1`) are left
/// out.
pub(super) fn numbers(version: &str) -> Vec<u64> {
    let end = version.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(version.len());
    version[..end].split('.').map_while(|part| part.parse().ok()).collect()
}
