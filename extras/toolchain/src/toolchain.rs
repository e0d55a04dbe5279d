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
const RECIPES: [&Recipe; 3] = [&jvm::RECIPE, &go::RECIPE, &python::RECIPE];
/// Workers of the recipes, as methods name them.
pub const NAMES: &[&str] = &[RECIPES[0].name, RECIPES[1].name, RECIPES[2].name];

/// The recipe of a worker.
fn recipe_of(name: &str) -> &'static Recipe {
    let recipe = RECIPES.into_iter().find(|recipe| recipe.name == name);
    recipe.expect("only workers that are offered are asked for")
}

/// A suitable toolchain.
#[derive(Clone, Debug)]
struct Found {
    /// Recipe of the toolchain.
    recipe: &'static Recipe,
    /// The home of the JDK, GOROOT, or the Python that runs.
    home: PathBuf,
    /// The program to start: `java`, `go`, `python3`.
    program: PathBuf,
    /// Version as text: `25.0.1 (Temurin)`, `1.26.8`, `3.11.7, without numpy`.
    version: String,
    /// Sentences about candidates that the user had set but that were skipped.
    notes: Vec<String>,
    /// The part of the version that a built worker depends on, without optional packages.
    release: String,
}

impl Found {
    fn new(recipe: &'static Recipe, home: &Path, program: PathBuf, release: String) -> Self {
        Self { recipe, home: home.into(), program, version: release.clone(), notes: Vec::new(), release }
    }
}

/// Find the toolchain of a worker, and build the worker or use the one built before. An error is
/// one sentence with the candidates, their paths, and their faults.
pub fn ready(name: &str, choices: &WorkerChoices, stop: &AtomicBool) -> Result<ReadyWorker, String> {
    let (variables, recipe) = (ToolchainVariables::here(), recipe_of(name));
    let found = variables.find(recipe, choices)?;
    variables.build(&found, choices, recipe.sources, stop)
}

/// Remove the remains of killed builds, and return their paths. Builds in progress are left alone.
pub fn sweep() -> Vec<PathBuf> {
    WorkerStore::of(&ToolchainVariables::here()).map_or(Vec::new(), |store| store.sweep_dead())
}

/// The line of a worker in `doctor`. Its toolchain is asked for its version, and nothing is built.
pub fn capability(name: &str, choices: &WorkerChoices) -> Capability {
    ToolchainVariables::here().capability(recipe_of(name), choices)
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
        let (recipe, language) = (found.recipe, found.recipe.name);
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
        let (recipe, store) = (found.recipe, WorkerStore::of(self)?);
        let folder = store.folder(recipe.name, &found.release, recipe.build_flags, sources);
        match (recipe.unsuitable)(&folder) {
            Some(why) => Err(why),
            None => Ok((store, folder)),
        }
    }

    /// Make the product of a worker.
    fn make(&self, build: &Build<'_>, stop: &AtomicBool) -> Result<(), String> {
        let (recipe, workshop) = (build.found.recipe, build.workshop);
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

    fn capability(&self, recipe: &'static Recipe, choices: &WorkerChoices) -> Capability {
        let usable = self.find(recipe, choices).and_then(|found| {
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
