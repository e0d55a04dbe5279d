//! Search environment of toolchains: the variables of the process and the folders of the system, as values.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::Access;

use crate::accounts;

/// A toolchain reports its version in well under a second; one on a network filesystem may take longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// `go build` with an empty cache builds the standard library too: half a minute on two slow processors.
const BUILT_WITHIN: Duration = Duration::from_secs(120);

/// Everything that determines which toolchain is found. Programs are started with these variables and no others.
#[derive(Clone, Debug)]
pub(super) struct ToolchainVariables {
    /// The environment.
    pub variables: BTreeMap<OsString, OsString>,
    /// Root of the system's folders: `/`.
    pub root: PathBuf,
    /// Time limit for a toolchain to report its version.
    pub answer_within: Duration,
    /// The HOME that was skipped because it belongs to another user.
    pub another_home: Option<PathBuf>,
    /// Time limit for a build, and for waiting for another one.
    pub built_within: Duration,
}

impl ToolchainVariables {
    /// The environment of this process.
    pub fn here() -> Self {
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        // Toolchains write below HOME and run files from it; as root, not below another user's.
        let (named, home) = (variables.remove(OsStr::new("HOME")), accounts::home());
        let another_home = named.filter(|named| home.as_deref() != Some(Path::new(named))).map(PathBuf::from);
        variables.extend(home.map(|home| ("HOME".into(), home.into_os_string())));
        Self {
            variables,
            another_home,
            root: "/".into(),
            answer_within: ANSWER_WITHIN,
            built_within: BUILT_WITHIN,
        }
    }

    /// A variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The user's home.
    pub fn home(&self) -> Option<&Path> {
        self.variable("HOME").map(Path::new).filter(|home| home.is_absolute())
    }

    /// A path of the system.
    pub fn system(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// All programs of this name on PATH, in its order.
    pub fn on_path(&self, program: &str) -> Vec<PathBuf> {
        let folders = self.variable("PATH").map(std::env::split_paths).into_iter().flatten();
        folders
            .filter_map(|folder| std::path::absolute(folder).ok())
            .map(|folder| folder.join(program))
            .filter(|path| is_program(path))
            .collect()
    }

    /// A command in its own process group, without input.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.variables).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// True if the file can be executed.
pub(super) fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

/// Content of a folder, in the order of names; empty if there is no folder.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Numbers of a version, for comparison: `1.26.8` is 1, 26, 8. Suffixes (`-ea`, `rc1`) are left out.
pub(super) fn numbers(version: &str) -> Vec<u64> {
    let end = version.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(version.len());
    version[..end].split('.').map_while(|part| part.parse().ok()).collect()
}
