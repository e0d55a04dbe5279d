//! The search for a toolchain: one list of candidates, each asked once for its version.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pagewise_model::WorkerChoices;

use super::Found;
use super::child::{self, Said};
use super::jvm::JDK;
use super::recipe::{Recipe, numbers};
use super::variables::{ToolchainVariables, is_program};

/// Fault of a program that is broken, or hangs.
const NO_VERSION: &str = "does not say its version";

impl ToolchainVariables {
    /// The first suitable candidate, or a sentence about all of them.
    pub fn find(&self, recipe: &'static Recipe, choices: &WorkerChoices) -> Result<Found, String> {
        if let (Some(jdk), Some(_)) = (choices.option(JDK), recipe.home) {
            let found = self.examine(recipe, &program_of(recipe, Path::new(jdk)));
            return found.map_err(|why| format!("--jdk {jdk}: {why}; a {} is needed", recipe.wanted));
        }
        let mut faults = Vec::new();
        for candidate in self.candidates(recipe) {
            let examined = candidate.and_then(|(origin, program)| {
                self.examine(recipe, &program).map_err(|why| format!("{origin}: {why}"))
            });
            match examined {
                Ok(found) => {
                    // A candidate deserves a note if the user has set it, or if it is broken.
                    let is_noted = |fault: &String| {
                        fault.contains(NO_VERSION)
                            || recipe.home.is_some_and(|name| fault.starts_with(&format!("{name}: ")))
                    };
                    return Ok(Found { notes: faults.into_iter().filter(is_noted).collect(), ..found });
                }
                Err(fault) => faults.push(fault),
            }
        }
        if !recipe.folders.is_empty() {
            faults.push(format!("none is in {}", recipe.folders.join(", ")));
        }
        Err(format!("no {} was found: {}{}", recipe.wanted, faults.join("; "), recipe.remedy))
    }

    /// Origins with their programs, in the order of preference, and sentences about origins that
    /// have none.
    fn candidates(&self, recipe: &Recipe) -> Vec<Result<(String, PathBuf), String>> {
        let mut candidates = Vec::new();
        if let Some(name) = recipe.home {
            let home = self.variable(name).ok_or(format!("{name} is not set"));
            candidates.push(home.map(|home| (name.to_string(), program_of(recipe, Path::new(home)))));
        }
        for name in recipe.programs {
            let programs = self.on_path(name);
            if programs.is_empty() {
                candidates.push(Err(format!("{name} is not on PATH")));
            }
            candidates.extend(programs.into_iter().map(|program| Ok((format!("{name} on PATH"), program))));
        }
        let folders = recipe.folders.iter();
        let programs = folders.flat_map(|pattern| self.in_folders(pattern, recipe.programs[0]));
        let mut programs: Vec<PathBuf> = programs.filter_map(|program| program.canonicalize().ok()).collect();
        programs.sort_by_key(|program| preference(program));
        candidates.extend(programs.into_iter().map(|program| Ok(("usual folders".to_string(), program))));
        let mut seen = BTreeSet::new();
        candidates.retain(|candidate| match candidate {
            // A virtual environment of Python is identified by the path by which it is started, not
            // by the file behind it.
            Ok((_, program)) if recipe.compiler.is_none() => seen.insert(program.clone()),
            Ok((_, program)) => seen.insert(program.canonicalize().unwrap_or_else(|_| program.clone())),
            Err(_) => true,
        });
        candidates
    }

    /// Check the program of a candidate; the error is its fault.
    fn examine(&self, recipe: &Recipe, program: &Path) -> Result<Found, String> {
        if !is_program(program) {
            let home = program.ancestors().nth(2).unwrap_or(program);
            return Err(match home.is_dir() {
                true => format!("{} has no bin/{}", home.display(), recipe.programs[0]),
                false => format!("{} is not a folder", home.display()),
            });
        }
        let mut command = self.command(program, recipe.unset);
        command.envs(recipe.set.iter().copied()).args(recipe.question);
        let said = child::run(&mut command, self.answer_within, &AtomicBool::new(false)).and_then(Said::well);
        let said = said.map_err(|why| format!("{} {NO_VERSION}: {why}", program.display()))?;
        let found =
            (recipe.answer)(&said, program).ok_or_else(|| format!("{} {NO_VERSION}", program.display()))?;
        let shown = format!("{} at {}", found.release, found.home.display());
        if *numbers(&found.release) < *recipe.oldest {
            return Err(format!("{shown} is too old"));
        }
        match recipe.compiler {
            Some(compiler) if !is_program(&found.home.join(compiler)) => {
                Err(format!("{shown} has no {compiler}: a runtime without the compiler"))
            }
            _ => Ok(found),
        }
    }
}

/// The program in a home.
fn program_of(recipe: &Recipe, home: &Path) -> PathBuf {
    std::path::absolute(home).unwrap_or_else(|_| home.to_path_buf()).join("bin").join(recipe.programs[0])
}

/// A home without a version in its name is the default of its machine and comes first; then the
/// newest.
fn preference(program: &Path) -> (bool, Reverse<Vec<u64>>) {
    let home = program.ancestors().nth(2).and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let version = numbers(home.trim_start_matches(|letter: char| !letter.is_ascii_digit()));
    (!version.is_empty(), Reverse(version))
}
