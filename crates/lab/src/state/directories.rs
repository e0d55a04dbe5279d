//! Possible state directories of a run: `PAGEWISE_STATE_DIR`, or one for this host and boot below
//! `$XDG_STATE_HOME/pagewise`, `~/.local/state/pagewise` or the directory for temporary files. No
//! other user may be able to write or exchange it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use pagewise_host::trusted::Directory;
use pagewise_host::{accounts, boot};
use rustix::fs::{Access, AtFlags};

use super::{NAMES, journal};
use crate::output;

const NAMED: &str = "PAGEWISE_STATE_DIR";
const CHOSEN: &str = "XDG_STATE_HOME";

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The state directory of a run.
pub struct StateDirectories {
    /// The directory itself.
    pub directory: Directory,
    /// Directories of this host in earlier boots, beside it.
    pub earlier: Vec<Directory>,
}

/// The host's name as a part of file names: its first label, in letters, digits and hyphens.
pub fn host_word() -> String {
    word(&boot::host_name())
}

fn word(host: &str) -> String {
    let label = host.split('.').next().unwrap_or_default();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let word: String = label.chars().map(plain).take(63).collect();
    if word.is_empty() { "host".to_string() } else { word }
}

/// Prefix of the directories of this host. Hosts of a cluster may be copies of one image, so only
/// their names differ.
fn prefix() -> String {
    format!("{}.", boot::host_name().replace('/', "-"))
}

fn own_name() -> String {
    prefix() + &boot::boot().unwrap_or_else(|| "unknown".to_string())
}

/// The directories of this host below `base`.
fn of_host(base: &Directory) -> Result<Vec<Directory>> {
    let mut found = Vec::new();
    for name in base.names()? {
        let Some(name) = name.to_str().filter(|name| name.starts_with(&prefix())) else { continue };
        // A refused one was never used.
        found.extend(base.below(name).ok());
    }
    Ok(found)
}

/// Reason that a run cannot keep its state where `XDG_STATE_HOME` names a directory; nothing is
/// made.
fn refused_choice() -> Option<anyhow::Error> {
    let chosen = variable(CHOSEN)?;
    if chosen.is_relative() {
        return Some(relative_choice(&chosen));
    }
    match Directory::open(&chosen.join("pagewise")) {
        Ok(directory) => check_access(&directory).err(),
        Err(refusal) if refusal.is_missing() => {
            let access = rustix::fs::access(&chosen, Access::WRITE_OK | Access::EXEC_OK);
            access.with_context(|| format!("access {}", chosen.display())).err()
        }
        Err(refusal) => Some(refusal.into()),
    }
}

/// The specification of base directories asks to ignore a relative path.
fn relative_choice(chosen: &Path) -> anyhow::Error {
    anyhow!("'{}' is not an absolute path", chosen.display())
}

/// Directories that hold those of each host and boot, without the one named by the user; best
/// first.
fn candidates() -> Vec<PathBuf> {
    let own = format!("pagewise-{}", rustix::process::geteuid().as_raw());
    let candidates = [
        variable(CHOSEN).filter(|base| base.is_absolute()).map(|base| base.join("pagewise")),
        accounts::home().map(|home| home.join(".local/state/pagewise")),
        Some(std::env::temp_dir().join(&own)),
        Some(PathBuf::from("/tmp").join(&own)),
    ];
    candidates.into_iter().flatten().collect()
}

/// The directory of a run, made if necessary.
pub fn usable() -> Result<StateDirectories> {
    if let Some(named) = variable(NAMED) {
        let directory =
            prepare(&named).with_context(|| format!("{NAMED} {} cannot be used", named.display()))?;
        return Ok(StateDirectories { directory, earlier: Vec::new() });
    }
    let mut refusal = variable(CHOSEN).filter(|path| path.is_relative()).map(|path| relative_choice(&path));
    for candidate in candidates() {
        match prepare(&candidate.join(own_name())) {
            Ok(directory) => {
                let mut earlier = of_host(&Directory::open(&candidate)?)?;
                earlier.retain(|other| other.path() != directory.path());
                // That of the user's own choice comes first.
                if let Some(refusal) = refusal.filter(|_| variable(CHOSEN).is_some()) {
                    let used = candidate.display();
                    output::say(format_args!(
                        "note: {CHOSEN} cannot be used ({refusal:#}): the state is in {used}"
                    ));
                }
                return Ok(StateDirectories { directory, earlier });
            }
            Err(error) => refusal = refusal.or(Some(error)),
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
    if let Some(refusal) = refused_choice() {
        let others: Vec<String> = candidates().iter().map(|path| path.display().to_string()).collect();
        let others = others.join(", ");
        output::say(format_args!(
            "note: {CHOSEN} cannot be used ({refusal:#}): what runs left is looked for in {others}"
        ));
    }
    let mut own = Vec::new();
    for base in candidates().into_iter().filter_map(|path| Directory::open(&path).ok()) {
        own.extend(of_host(&base)?);
        // That of a pagewise which had one for all hosts.
        if base.path().join(journal::NAME).exists() {
            own.push(base);
        }
    }
    // A refused one was never used.
    own.retain(|directory| directory.close_to_others(&NAMES).is_ok());
    for directory in own {
        let key = directory.key()?;
        if !found.iter().any(|earlier| earlier.key().is_ok_and(|earlier| earlier == key)) {
            found.push(directory);
        }
    }
    Ok(found)
}

/// Make a directory that only this user can enter, or use the existing one if it belongs to the
/// user.
fn prepare(path: &Path) -> Result<Directory> {
    let directory = Directory::make(path)?;
    check_access(&directory)?;
    Ok(directory)
}

fn check_access(directory: &Directory) -> Result<()> {
    rustix::fs::accessat(directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())
        .with_context(|| format!("access {}", directory.path().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_plain_word() {
        for (host, wanted) in
            [("db17", "db17"), ("db17.example.org", "db17"), ("", "host"), ("a/b ü", "a-b--")]
        {
            assert_eq!(word(host), wanted);
        }
        assert!(own_name().starts_with(&prefix()) && !own_name().contains('/'));
    }

    #[test]
    fn hosts_that_share_a_directory_have_their_own_in_it() {
        let base = crate::state::tests::place();
        let make =
            |name: &str| Directory::make(&base.path().join(name)).expect("a directory").path().to_path_buf();
        let (own, earlier) = (make(&own_name()), make(&format!("{}earlier-boot", prefix())));
        make("another-host.its-boot");
        let found = of_host(&Directory::open(base.path()).expect("a directory of our own")).expect("names");
        let mut found: Vec<PathBuf> = found.iter().map(|directory| directory.path().to_path_buf()).collect();
        let mut wanted = vec![own, earlier];
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted);
    }
}
