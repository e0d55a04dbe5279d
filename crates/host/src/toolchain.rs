//! Toolchains of other languages, and the shipped workers built with them.
//!
//! The sources of the workers are part of the program. A toolchain is the user's own: it is located, asked for its
//! version, and its worker is built once into a folder of the user's cache. Each candidate that is skipped leaves a
//! sentence. Nothing is downloaded, and the user's choice is never replaced by another toolchain.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pagewise_model::WorkerChoices;

use crate::probe::{Availability, Capability};
use crate::trusted::Directory;

mod child;
mod go;
mod jvm;
mod python;
mod shell_words;
mod sources;
mod store;
#[cfg(test)]
mod tests;
mod variables;

pub use shell_words::{UnclosedQuote, split_words};
pub use sources::SourceFile;
use store::WorkerStore;
use variables::ToolchainVariables;

/// The languages with a shipped worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Java, built by `javac`.
    Jvm,
    /// Go, built by `go build`.
    Go,
    /// Python, used as it is.
    Python,
}

impl Language {
    /// All of them.
    pub const ALL: [Language; 3] = [Language::Jvm, Language::Go, Language::Python];

    /// Its worker's name in methods.
    pub fn name(self) -> &'static str {
        match self {
            Language::Jvm => "jvm",
            Language::Go => "go",
            Language::Python => "python",
        }
    }

    /// The language of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.name() == name)
    }

    /// The files of its worker.
    pub fn sources(self) -> &'static [SourceFile] {
        sources::of(self)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A suitable toolchain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its language.
    pub language: Language,
    /// JAVA_HOME, GOROOT, or the Python that runs.
    pub home: PathBuf,
    /// The program to start: `java`, `go`, `python3`.
    pub program: PathBuf,
    /// Its version as text: `25.0.1 (Temurin)`, `1.26.8`, `3.11.7, without numpy`.
    pub version: String,
    /// Sentences about candidates that the user had set but that were skipped.
    pub notes: Vec<String>,
    /// The part of the version that a built worker depends on, without optional packages.
    release: String,
}

/// Reason that a worker is unavailable: one sentence with the candidates, their places, and their faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolchainError(pub String);

/// The command of a worker that is ready to start.
#[derive(Debug)]
pub struct Built {
    /// Program and arguments, with the path of its folder. More options of a JVM may be inserted after the program.
    pub command: Vec<String>,
    /// The same by the descriptor of its folder, while that is held open. (A JVM makes a path of it again, whose steps
    /// nobody else can exchange.)
    pub by_descriptor: Vec<String>,
    /// Variables that must not reach the worker: they would change it without showing in its command.
    pub unset: &'static [&'static str],
    /// Version of the toolchain, as in [`Found`].
    pub version: String,
    /// Its folder, held open.
    pub folder: Arc<Directory>,
    /// Sentences about skipped candidates, including those of [`Found`].
    pub notes: Vec<String>,
}

impl Built {
    /// The worker in `folder`, which `start` begins with the path that leads there.
    fn of(
        found: &Found,
        folder: Directory,
        unset: &'static [&'static str],
        start: impl Fn(&Path) -> Vec<String>,
    ) -> Self {
        Self {
            command: start(folder.path()),
            by_descriptor: start(&folder.through("")),
            unset,
            version: found.version.clone(),
            folder: Arc::new(folder),
            notes: found.notes.clone(),
        }
    }
}

/// Look for a toolchain.
pub fn find(language: Language, choices: &WorkerChoices) -> Result<Found, ToolchainError> {
    ToolchainVariables::here().find(language, choices)
}

/// Build the worker, or use the one built before. Ends soon after `stop` is set.
pub fn build(found: &Found, choices: &WorkerChoices, stop: &AtomicBool) -> Result<Built, ToolchainError> {
    ToolchainVariables::here().build(found, choices, found.language.sources(), stop)
}

/// Remove the remains of killed builds, and return their paths. Builds in progress are left alone.
pub fn sweep() -> Vec<PathBuf> {
    let toolchain_variables = ToolchainVariables::here();
    WorkerStore::of(&toolchain_variables).map_or(Vec::new(), |store| store.sweep_dead())
}

/// Capabilities for `doctor`: one line for each worker. Toolchains are asked for their version, and nothing is built.
pub fn capabilities(choices: &WorkerChoices) -> Vec<Capability> {
    let toolchain_variables = ToolchainVariables::here();
    Language::ALL.into_iter().map(|language| toolchain_variables.capability(language, choices)).collect()
}

impl ToolchainVariables {
    fn find(&self, language: Language, choices: &WorkerChoices) -> Result<Found, ToolchainError> {
        match language {
            Language::Jvm => jvm::find(self, choices),
            Language::Go => go::find(self),
            Language::Python => python::find(self),
        }
    }

    fn build(
        &self,
        found: &Found,
        choices: &WorkerChoices,
        sources: &[SourceFile],
        stop: &AtomicBool,
    ) -> Result<Built, ToolchainError> {
        let store = WorkerStore::of(self)?;
        let mut built = match found.language {
            Language::Jvm => jvm::build(self, &store, found, choices, sources, stop)?,
            Language::Go => go::build(self, &store, found, sources, stop)?,
            Language::Python => python::build(&store, found, sources, stop)?,
        };
        built.notes.extend(store.notes);
        Ok(built)
    }

    fn capability(&self, language: Language, choices: &WorkerChoices) -> Capability {
        let name = match language {
            Language::Jvm => "worker jvm",
            Language::Go => "worker go",
            Language::Python => "worker python",
        };
        let usable = self.find(language, choices).and_then(|found| {
            let store = WorkerStore::of(self)?;
            store.check(&folder(&store, &found, language.sources()))?;
            Ok(found)
        });
        match usable {
            Ok(found) => {
                let mut detail = format!("{} at {}", found.version, found.home.display());
                for note in &found.notes {
                    detail.push_str("; ");
                    detail.push_str(note);
                }
                Capability { name, state: Availability::Available, detail }
            }
            Err(ToolchainError(reason)) => {
                Capability { name, state: Availability::Unavailable { reason }, detail: String::new() }
            }
        }
    }
}

/// Folder of a toolchain's built worker.
fn folder(store: &WorkerStore, found: &Found, sources: &[SourceFile]) -> PathBuf {
    let flags: &[&str] = match found.language {
        Language::Jvm => &jvm::BUILD_FLAGS,
        Language::Go => &go::BUILD_FLAGS,
        Language::Python => &[],
    };
    store.folder(found, &flags.join(" "), sources)
}
