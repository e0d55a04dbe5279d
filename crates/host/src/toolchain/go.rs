//! The Go toolchain, and the worker that it builds: offline, with exactly the toolchain that was found.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::child::{self, Said};
use super::store::{BuildError, WorkerStore, Workshop};
use super::variables::{ToolchainVariables, entries, is_program, numbers};
use super::{Built, Found, Language, SourceFile, ToolchainError};

/// The first version with GOTOOLCHAIN, and with the language version of the worker.
const MIN_VERSION: [u64; 2] = [1, 21];
const WANTED: &str = "Go 1.21 or newer";
const PROGRAM: &str = "worker";
/// Version control of the surrounding folder is not queried, and no path of this build is in the program.
pub(super) const BUILD_FLAGS: [&str; 3] = ["build", "-trimpath", "-buildvcs=false"];

pub(super) fn find(toolchain_variables: &ToolchainVariables) -> Result<Found, ToolchainError> {
    let on_path = toolchain_variables.on_path("go");
    let mut passed = Vec::new();
    if on_path.is_empty() {
        passed.push("go is not on PATH".to_string());
    }
    let mut seen = BTreeSet::new();
    for program in on_path.into_iter().chain(usual_programs(toolchain_variables)) {
        if !seen.insert(program.canonicalize().unwrap_or_else(|_| program.clone())) {
            continue;
        }
        match check(toolchain_variables, &program) {
            Ok(found) => return Ok(found),
            Err(why) => passed.push(why),
        }
    }
    Err(ToolchainError(format!(
        "no {WANTED} was found: {}; none is in /usr/local/go/bin, ~/go/bin, ~/sdk/go*/bin",
        passed.join("; ")
    )))
}

fn usual_programs(toolchain_variables: &ToolchainVariables) -> Vec<PathBuf> {
    let mut programs = vec![toolchain_variables.system("/usr/local/go/bin/go")];
    if let Some(home) = toolchain_variables.home() {
        programs.push(home.join("go/bin/go"));
        let mut sdks: Vec<(Vec<u64>, PathBuf)> = entries(&home.join("sdk"))
            .into_iter()
            .filter_map(|folder| {
                Some((numbers(folder.file_name()?.to_str()?.strip_prefix("go")?), folder.join("bin/go")))
            })
            .collect();
        sdks.sort_by(|one, other| other.0.cmp(&one.0));
        programs.extend(sdks.into_iter().map(|(_, program)| program));
    }
    programs.retain(|program| is_program(program));
    programs
}

/// Check a `go` program; the error is its fault.
fn check(toolchain_variables: &ToolchainVariables, program: &Path) -> Result<Found, String> {
    let said = ask(toolchain_variables, program, &["version"])?;
    let version = parse_version(&said.stdout)
        .ok_or_else(|| format!("{} version names no version", program.display()))?;
    if numbers(&version).as_slice() < MIN_VERSION.as_slice() {
        return Err(format!("{version} at {} is too old", program.display()));
    }
    // The program on PATH may be a script of a version manager that depends on the current folder.
    let said = ask(toolchain_variables, program, &["env", "GOROOT"])?;
    let home = PathBuf::from(said.stdout.trim());
    let own = home.join("bin/go");
    let program = if is_program(&own) { own } else { program.to_path_buf() };
    Ok(Found { language: Language::Go, home, program, release: version.clone(), version, notes: Vec::new() })
}

/// `go version go1.26.8 linux/amd64`, `go version devel go1.27-0123abc …`.
fn parse_version(text: &str) -> Option<String> {
    let version = text
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("go"))
        .find(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))?;
    Some(version.to_string())
}

fn ask(toolchain_variables: &ToolchainVariables, program: &Path, arguments: &[&str]) -> Result<Said, String> {
    let mut command = toolchain_variables.command(program);
    command.args(arguments);
    // A surrounding go.mod must have no effect.
    command.env("GOTOOLCHAIN", "local").env("GO111MODULE", "off").env("GOFLAGS", "");
    let said = child::run(&mut command, toolchain_variables.answer_within, &AtomicBool::new(false));
    said.and_then(Said::well).map_err(|why| format!("{} {}: {why}", program.display(), arguments.join(" ")))
}

pub(super) fn build(
    toolchain_variables: &ToolchainVariables,
    store: &WorkerStore,
    found: &Found,
    sources: &[SourceFile],
    stop: &AtomicBool,
) -> Result<Built, ToolchainError> {
    store.check_executable(Language::Go)?;
    let folder = store.worker(Language::Go, super::folder(store, found, sources), stop, |workshop| {
        let work = workshop.work();
        workshop.write_all(&work, sources)?;
        workshop.write(&work.join("go.mod"), &module(&found.release))?;
        let mut command = toolchain_variables.command(&found.program);
        settle(&mut command, toolchain_variables, found, workshop)?;
        command.args(BUILD_FLAGS).arg("-o").arg(workshop.product().join(PROGRAM)).arg(".").current_dir(&work);
        let said = child::run(&mut command, toolchain_variables.built_within, stop).and_then(Said::well);
        said.map(drop).map_err(|why| {
            BuildError::said(format!("{} build in {}: {why}", found.program.display(), work.display()))
        })
    })?;
    let start = |folder: &Path| vec![folder.join(PROGRAM).to_string_lossy().into_owned()];
    Ok(Built::of(found, folder, &[], start))
}

/// The module names the language version of the toolchain itself. An older one would bring back that version's runtime
/// behaviour (go.dev/doc/godebug), and without a module it is that of Go 1.20 at most.
fn module(version: &str) -> String {
    let numbers = numbers(version);
    let minor = numbers.get(1).copied().unwrap_or(MIN_VERSION[1]);
    format!("module pagewise\n\ngo 1.{minor}\n")
}

/// Set the environment of a build: none of the user's settings except the cache of compiled packages, and no network.
fn settle(
    command: &mut Command,
    toolchain_variables: &ToolchainVariables,
    found: &Found,
    workshop: &Workshop,
) -> Result<(), BuildError> {
    let said = ask(toolchain_variables, &found.program, &["env", "GOCACHE"]).map_err(BuildError::said)?;
    // It is "off" if no variable names a folder.
    let cache = Some(PathBuf::from(said.stdout.trim())).filter(|cache| cache.is_absolute());
    for name in toolchain_variables.variables.keys().filter(|name| name.to_string_lossy().starts_with("GO")) {
        command.env_remove(name);
    }
    let work = workshop.work();
    let temporary = work.join("temporary");
    std::fs::create_dir(workshop.reach(&temporary))
        .map_err(|error| BuildError::call("mkdir", &temporary, &error))?;
    command
        .env("GOCACHE", cache.unwrap_or_else(|| work.join("cache")))
        .env("GOPATH", work.join("path"))
        .env("GOTMPDIR", &temporary)
        .env("GOENV", "off")
        .env("GOFLAGS", "")
        .env("GO111MODULE", "on")
        .env("GOWORK", "off")
        .env("GOPROXY", "off")
        .env("GOTOOLCHAIN", "local")
        .env("CGO_ENABLED", "0")
        .stdin(workshop.lock_as_stdin()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_go_prints() {
        let parsed = |text: &str| parse_version(text).expect(text);
        assert_eq!(parsed("go version go1.26.8 linux/amd64\n"), "1.26.8");
        assert_eq!(parsed("go version go1.21rc2 linux/arm64\n"), "1.21rc2");
        assert_eq!(parsed("go version devel go1.27-0123abc Mon linux/amd64\n"), "1.27-0123abc");
        assert_eq!(parse_version("gopher\n"), None);
        assert!(numbers("1.9.7").as_slice() < MIN_VERSION.as_slice());
        assert!(numbers("1.21rc2").as_slice() >= MIN_VERSION.as_slice());
    }

    #[test]
    fn the_module_has_the_version_of_the_toolchain() {
        assert_eq!(module("1.26.8"), "module pagewise\n\ngo 1.26\n");
        assert_eq!(module("1.27-0123abc"), "module pagewise\n\ngo 1.27\n");
    }
}
