//! The Go toolchain, and the worker that it builds: offline, with exactly the toolchain that was
//! found.

use std::path::Path;
use std::process::Command;

use rustix::fs::StatVfsMountFlags;

use super::Found;
use super::child::Said;
use super::recipe::{Build, Flags, Recipe, numbers};
use super::sources::GO;
use super::store::nearest;

const PROGRAM: &str = "worker";

pub(super) const RECIPE: Recipe = Recipe {
    name: "go",
    capability: "worker go",
    sources: GO,
    wanted: "Go 1.21 or newer",
    // The first version with GOTOOLCHAIN, and with the language version of the worker.
    oldest: &[1, 21],
    home: None,
    programs: &["go"],
    folders: &["/usr/local/go/bin", "~/go/bin", "~/sdk/go*/bin"],
    remedy: "",
    question: &["env", "GOVERSION", "GOROOT"],
    answer,
    // A surrounding go.mod must have no effect, and Go keeps counters of its calls in the folder of
    // settings.
    set: &[
        ("GOTOOLCHAIN", "local"),
        ("GO111MODULE", "off"),
        ("GOFLAGS", ""),
        ("XDG_CONFIG_HOME", "/dev/null"),
    ],
    unset: &[],
    instead: "",
    compiler: Some("bin/go"),
    // Version control of the surrounding folder is not queried, and no path of this build is in the
    // program.
    build_flags: &["build", "-trimpath", "-buildvcs=false"],
    compile,
    unsuitable,
    flags: |_| Ok(Flags::default()),
    start: |_, _, folder| vec![folder.join(PROGRAM).to_string_lossy().into_owned()],
};

/// A line for each variable; the program on PATH may be a script of a version manager, or a link.
fn answer(said: &Said, _: &Path) -> Option<Found> {
    let (version, root) = said.stdout.split_once('\n')?;
    let home = Path::new(root.trim());
    Some(Found::new(&RECIPE, home, home.join("bin/go"), parse_version(version)?))
}

/// `go1.26.8`, `devel go1.27-0123abc …`.
fn parse_version(text: &str) -> Option<String> {
    let version = text
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("go"))
        .find(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))?;
    Some(version.to_string())
}

/// None of the user's settings except the cache of compiled packages, and no network.
fn compile(command: &mut Command, build: &Build<'_>) -> Result<(), String> {
    let Build { variables, workshop, .. } = build;
    workshop.write(&workshop.work().join("go.mod"), &module(&build.found.release))?;
    for name in variables.variables.keys().filter(|name| name.to_string_lossy().starts_with("GO")) {
        command.env_remove(name);
    }
    let cache = match variables.absolute("GOCACHE") {
        Some(cache) => cache.to_path_buf(),
        None => variables.cache()?.join("go-build"),
    };
    command
        .envs(RECIPE.set.iter().copied())
        .env("GOCACHE", cache)
        .env("GOPATH", workshop.work().join("path"))
        .env("GOTMPDIR", workshop.work())
        .env("GOENV", "off")
        .env("GO111MODULE", "on")
        .env("GOWORK", "off")
        .env("GOPROXY", "off")
        .env("CGO_ENABLED", "0");
    command.arg("-o").arg(workshop.product().join(PROGRAM)).arg(".");
    Ok(())
}

/// The module names the language version of the toolchain itself. An older one would bring back
/// that version's runtime behaviour (go.dev/doc/godebug), and without a module it is that of Go
/// 1.20 at most.
fn module(version: &str) -> String {
    let minor = numbers(version).get(1).copied().unwrap_or(RECIPE.oldest[1]);
    format!("module pagewise\n\ngo 1.{minor}\n")
}

/// A filesystem on which no program can be executed.
fn unsuitable(folder: &Path) -> Option<String> {
    let stat = rustix::fs::statvfs(nearest(folder)).ok()?;
    stat.f_flag.contains(StatVfsMountFlags::NOEXEC).then(|| {
        format!(
            "the go worker cannot be run from {}: it is mounted noexec; set XDG_CACHE_HOME to a folder elsewhere",
            folder.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_go_prints() {
        let parsed = |text: &str| parse_version(text).expect(text);
        assert_eq!(parsed("go1.26.8"), "1.26.8");
        assert_eq!(parsed("go1.21rc2"), "1.21rc2");
        assert_eq!(parsed("devel go1.27-0123abc Mon"), "1.27-0123abc");
        assert_eq!(parse_version("gopher"), None);
        assert_eq!(parse_version(""), None);
        assert!(*numbers("1.9.7") < *RECIPE.oldest);
        assert!(*numbers("1.21rc2") >= *RECIPE.oldest);
    }

    #[test]
    fn the_module_has_the_version_of_the_toolchain() {
        assert_eq!(module("1.26.8"), "module pagewise\n\ngo 1.26\n");
        assert_eq!(module("1.27-0123abc"), "module pagewise\n\ngo 1.27\n");
    }
}
