//! Toolchains of other languages, and the shipped workers built with them.
//!
//! The sources of the workers are part of the program. A toolchain is the user's own: it is
//! located, asked for its version, and its worker is built once into a folder of the user's cache.
//! Each candidate that is skipped leaves a sentence. Nothing is downloaded, and the user's choice
//! is never replaced by another toolchain.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pagewise_host::{Availability, Capability};
use pagewise_lab::supervise::program::Stated;
use pagewise_lab::worker_door::ReadyWorker;
use pagewise_model::WorkerChoices;

mod child;
mod go;
mod jvm;
mod python;
mod recipe;
mod search;
mod sources;
mod store;
#[cfg(test)]
mod tests;
mod variables;

use child::Said;
pub use jvm::OPTIONS;
use recipe::{Build, Flags, Recipe};
use sources::SourceFile;
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

    /// Name of the worker in methods.
    pub const fn name(self) -> &'static str {
        match self {
            Language::Jvm => "jvm",
            Language::Go => "go",
            Language::Python => "python",
        }
    }

    /// The language of a worker.
    fn of_name(name: &str) -> Self {
        let language = Self::ALL.into_iter().find(|language| language.name() == name);
        language.expect("only workers that are offered are asked for")
    }

    fn recipe(self) -> &'static Recipe {
        match self {
            Language::Jvm => &jvm::RECIPE,
            Language::Go => &go::RECIPE,
            Language::Python => &python::RECIPE,
        }
    }
}

/// A suitable toolchain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Language.
    pub language: Language,
    /// The home of the JDK, GOROOT, or the Python that runs.
    pub home: PathBuf,
    /// The program to start: `java`, `go`, `python3`.
    pub program: PathBuf,
    /// Version as text: `25.0.1 (Temurin)`, `1.26.8`, `3.11.7, without numpy`.
    pub version: String,
    /// Sentences about candidates that the user had set but that were skipped.
    pub notes: Vec<String>,
    /// The part of the version that a built worker depends on, without optional packages.
    release: String,
}

impl Found {
    fn new(language: Language, home: &Path, program: PathBuf, release: String) -> Self {
        Self { language, home: home.into(), program, version: release.clone(), notes: Vec::new(), release }
    }
}

/// Find the toolchain of a worker, and build the worker or use the one built before. An error is
/// one sentence with the candidates, their paths, and their faults.
pub fn ready(name: &str, choices: &WorkerChoices, stop: &AtomicBool) -> Result<ReadyWorker, String> {
    let (variables, language) = (ToolchainVariables::here(), Language::of_name(name));
    let found = variables.find(language, choices)?;
    variables.build(&found, choices, language.recipe().sources, stop)
}

/// Remove the remains of killed builds, and return their paths. Builds in progress are left alone.
pub fn sweep() -> Vec<PathBuf> {
    WorkerStore::of(&ToolchainVariables::here()).map_or(Vec::new(), |store| store.sweep_dead())
}

/// The line of a worker in `doctor`. Its toolchain is asked for its version, and nothing is built.
pub fn capability(name: &str, choices: &WorkerChoices) -> Capability {
    ToolchainVariables::here().capability(Language::of_name(name), choices)
}

impl ToolchainVariables {
    /// Build a worker, or use the one built before. It is executed by the descriptor of its folder,
    /// and recorded with its path. (A JVM makes a path of it again, whose steps nobody else can
    /// exchange.)
    fn build(
        &self,
        found: &Found,
        choices: &WorkerChoices,
        sources: &[SourceFile],
        stop: &AtomicBool,
    ) -> Result<ReadyWorker, String> {
        let (recipe, language) = (found.language.recipe(), found.language.name());
        let Flags { words, log } = (recipe.flags)(choices)?;
        let (store, folder) = self.folder_for(found, sources)?;
        let made = store.worker(&folder, stop, |workshop| {
            let build = Build { variables: self, found, sources, workshop };
            self.make(&build, stop)
        });
        let made = made.map_err(|why| format!("the {language} worker cannot be built: {why}"))?;
        let set = recipe.unset.iter().filter(|name| self.variable(name).is_some());
        let kept =
            set.map(|name| format!("{name} is set and is kept from the {language} worker{}", recipe.instead));
        let notes = found.notes.iter().cloned().chain(kept).chain(self.skipped_for_cache()).collect();
        let [shown, executed] =
            [made.path(), &made.through("")].map(|folder| (recipe.start)(found, &words, folder));
        let held = std::iter::once(made.into()).chain(log).collect();
        let stated = Stated::new(&executed[0], &executed[1..]);
        Ok(ReadyWorker {
            program: Stated { unset: recipe.unset, shown: Some(shown), held, ..stated },
            toolchain: found.program.clone(),
            version: found.version.clone(),
            notes,
        })
    }

    /// The folder of a toolchain's built worker, which the worker can be started from.
    fn folder_for(&self, found: &Found, sources: &[SourceFile]) -> Result<(WorkerStore, PathBuf), String> {
        let (recipe, language) = (found.language.recipe(), found.language.name());
        let store = WorkerStore::of(self)?;
        let folder = store.folder(language, &found.release, recipe.build_flags, sources);
        match (recipe.unsuitable)(&folder) {
            Some(why) => Err(why),
            None => Ok((store, folder)),
        }
    }

    /// Make the product of a worker.
    fn make(&self, build: &Build<'_>, stop: &AtomicBool) -> Result<(), String> {
        let (recipe, workshop) = (build.found.language.recipe(), build.workshop);
        let folder = if recipe.compiler.is_some() { workshop.work() } else { workshop.product() };
        for source in build.sources {
            workshop.write(&folder.join(source.name), source.text)?;
        }
        let Some(compiler) = recipe.compiler else { return Ok(()) };
        let compiler = build.found.home.join(compiler);
        let mut command = self.command(&compiler, recipe.unset);
        command.args(recipe.build_flags).current_dir(&folder).stdin(workshop.lock()?);
        (recipe.compile)(&mut command, build)?;
        let said = child::run(&mut command, self.built_within, stop).and_then(Said::well);
        said.map(drop).map_err(|why| {
            store::of_compiler(format!("{} in {}: {why}", compiler.display(), folder.display()))
        })
    }

    fn capability(&self, language: Language, choices: &WorkerChoices) -> Capability {
        let recipe = language.recipe();
        let usable = self.find(language, choices).and_then(|found| {
            let (store, folder) = self.folder_for(&found, recipe.sources)?;
            store.check(&folder).map_err(|why| format!("its worker cannot be built: {why}"))?;
            Ok(found)
        });
        let (state, detail) = match usable {
            Ok(found) => {
                let version = format!("{} at {}", found.version, found.home.display());
                (Availability::Available, [&[version], &*found.notes].concat().join("; "))
            }
            Err(reason) => (Availability::Unavailable { reason }, String::new()),
        };
        Capability { name: recipe.capability, state, detail }
    }
}
