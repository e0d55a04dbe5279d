//! Possible state directories of a run: `PAGEWISE_STATE_DIR`, `$XDG_STATE_HOME/pagewise`, `~/.local/state/pagewise`, or
//! one below the directory for temporary files. No other user may be able to write or exchange it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pagewise_host::accounts;
use pagewise_host::trusted::Directory;
use rustix::fs::{Access, AtFlags};

use super::NAMES;

const NAMED: &str = "PAGEWISE_STATE_DIR";

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// All except the one named by the user, best first.
fn candidates() -> Vec<PathBuf> {
    let own = format!("pagewise-{}", rustix::process::geteuid().as_raw());
    let candidates = [
        variable("XDG_STATE_HOME").filter(|base| base.is_absolute()).map(|base| base.join("pagewise")),
        accounts::home().map(|home| home.join(".local/state/pagewise")),
        Some(std::env::temp_dir().join(&own)),
        Some(PathBuf::from("/tmp").join(&own)),
    ];
    candidates.into_iter().flatten().collect()
}

/// The directory of a run, made if necessary.
pub fn usable() -> Result<Directory> {
    if let Some(named) = variable(NAMED) {
        return prepare(&named).with_context(|| format!("{NAMED} {} cannot be used", named.display()));
    }
    let mut refusal = None;
    for candidate in candidates() {
        match prepare(&candidate) {
            Ok(directory) => return Ok(directory),
            Err(error) => refusal = Some(error),
        }
    }
    Err(refusal.expect("there is a candidate")).context("no directory was found for the state of a run")
}

/// The existing directories, any of which a run may have used; nothing is made.
pub fn existing() -> Result<Vec<Directory>> {
    let mut found: Vec<Directory> = Vec::new();
    if let Some(named) = variable(NAMED) {
        match Directory::open(&named) {
            Ok(directory) => found.push(directory),
            Err(refusal) if refusal.is_missing() => {}
            Err(refusal) => {
                return Err(refusal).with_context(|| format!("{NAMED} {} cannot be used", named.display()));
            }
        }
    }
    // A refused one was never used.
    let own = candidates().into_iter().filter_map(|path| {
        let directory = Directory::open(&path).ok()?;
        directory.close_to_others(&NAMES).ok()?;
        Some(directory)
    });
    for directory in own {
        let key = directory.key()?;
        if !found.iter().any(|earlier| earlier.key().is_ok_and(|earlier| earlier == key)) {
            found.push(directory);
        }
    }
    Ok(found)
}

/// Make a directory that only this user can enter, or use the existing one if it belongs to the user.
fn prepare(path: &Path) -> Result<Directory> {
    let directory = Directory::make(path)?;
    rustix::fs::accessat(&directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())
        .with_context(|| format!("access {}", path.display()))?;
    Ok(directory)
}
