//! The environment of toolchains: the variables of the process and the folders of the system, as
//! values.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::Access;

use pagewise_host::accounts;

/// A toolchain reports its version in well under a second; one on a network filesystem may take
/// longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// `go build` with an empty cache builds the standard library too: half a minute on two slow
/// processors.
const BUILT_WITHIN: Duration = Duration::from_secs(120);

/// Everything that determines which toolchain is found. Programs are started with these variables
/// and no others.
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

    /// The path in a variable, if it is absolute.
    pub fn absolute(&self, name: &str) -> Option<&Path> {
        self.variable(name).map(Path::new).filter(|path| path.is_absolute())
    }

    /// The cache folder: XDG_CACHE_HOME, which must be absolute by its specification, else
    /// `~/.cache`.
    pub fn cache(&self) -> Result<PathBuf, String> {
        let in_home = || self.absolute("HOME").map(|home| home.join(".cache"));
        let cache = self.absolute("XDG_CACHE_HOME").map(PathBuf::from).or_else(in_home).ok_or(
            "no folder was found to build the worker in: neither XDG_CACHE_HOME nor HOME is set to an absolute path; set \
             XDG_CACHE_HOME",
        )?;
        match cache.to_str() {
            Some(_) => Ok(cache),
            None => Err(format!(
                "the cache folder {} has a name that is not UTF-8; set XDG_CACHE_HOME",
                cache.display()
            )),
        }
    }

    /// Sentences about variables that were not followed to the cache folder.
    pub fn skipped_for_cache(&self) -> Vec<String> {
        let home = self.another_home.iter().map(|home| {
            format!("HOME is {}, which is another user's: root's own was used instead", home.display())
        });
        let relative =
            self.variable("XDG_CACHE_HOME").map(Path::new).filter(|path| path.is_relative()).map(|path| {
                format!("XDG_CACHE_HOME is {}, which is not absolute, and was skipped", path.display())
            });
        home.chain(relative).collect()
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

    /// All programs of this name in the folders of a pattern, in which `~` is the user's home.
    pub fn in_folders(&self, pattern: &str, program: &str) -> Vec<PathBuf> {
        let (folder, below) = match pattern.strip_prefix('~') {
            Some(below) => (self.absolute("HOME"), below),
            None => (Some(&*self.root), pattern),
        };
        let Some(folder) = folder.and_then(Path::to_str) else { return Vec::new() };
        let folder = glob::Pattern::escape(folder.trim_end_matches('/'));
        let found = glob::glob(&format!("{folder}{below}/{program}")).into_iter().flatten().flatten();
        found.filter(|path| is_program(path)).collect()
    }

    /// A command in its own process group, without input and these variables.
    pub fn command(&self, program: &Path, unset: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.variables).process_group(0);
        for name in unset {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// True if the file can be executed.
pub(super) fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}
