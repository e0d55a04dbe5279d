//! Readahead of the device, set for cells that ask for one and put back.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use pagewise_host::readahead::{Readahead, ReadaheadError};
use pagewise_model::Bytes;
use rustix::fs::FlockOperation;

use super::files::NoState;
use super::setting::not_as_set;
use crate::state::State;

/// Sets the readahead of what lies at a path; puts it back when it is dropped.
pub struct ReadaheadSetter {
    setting: Result<Readahead, String>,
    /// Held where cells set it: another run, of any user, would take our setting for what was there before.
    claim: Option<File>,
    at_start: Option<u64>,
    /// What is to be there again.
    found: Option<u64>,
    /// What it was set to last, if it was.
    set: Option<u64>,
}

impl ReadaheadSetter {
    /// For what lies at `path`; where no cell `sets` it, it is only looked at.
    pub fn new(path: &Path, sets: bool) -> Self {
        let setting = Readahead::of(path).map_err(|reason| reason.to_string());
        let claimed = setting.and_then(|setting| match sets {
            true => claim(setting.setting_path()).map(|claim| (setting, Some(claim))),
            false => Ok((setting, None)),
        });
        let (setting, claim) = match claimed {
            Ok((setting, claim)) => (Ok(setting), claim),
            Err(reason) => (Err(reason), None),
        };
        let found = setting.as_ref().ok().and_then(|setting| setting.read().ok());
        Self { setting, claim, at_start: found, found, set: None }
    }

    /// What it was when the run began.
    pub fn at_start(&self) -> Option<u64> {
        self.at_start
    }

    /// What is in force.
    pub fn now(&self) -> Option<u64> {
        self.setting.as_ref().ok()?.read().ok()
    }

    /// Sets what a cell asks for, or what was found where it asks for nothing; announced in `journal` first.
    pub fn set(&mut self, wanted: Option<Bytes>, journal: &mut State) -> Result<(), NoState> {
        let setting = match (wanted, &self.setting) {
            (Some(wanted), Err(reason)) => {
                return Err(NoState::Unavailable(format!("readahead cannot be set to {wanted}: {reason}")));
            }
            // Where nobody holds the right to set it, nobody asks for it.
            (_, Ok(setting)) if self.claim.is_some() => setting,
            _ => return Ok(()),
        };
        let now = setting.read().map_err(refused)?;
        let ours = self.set.or(self.found);
        if ours != Some(now) {
            // Somebody else has set it meanwhile: that is what is to be there again.
            self.found = Some(now);
        }
        let found = self.found.unwrap_or(now);
        let wanted = wanted.map_or(found, |bytes| bytes.0);
        if now != wanted {
            journal
                .announce_setting(setting.setting_path(), found, wanted)
                .map_err(|error| not_as_set(format!("{error:#}")))?;
            setting.set(wanted).map_err(refused)?;
        }
        self.set = Some(wanted);
        Ok(())
    }
}

fn refused(error: ReadaheadError) -> NoState {
    let denied =
        matches!(&error, ReadaheadError::Io { error, .. } if error.kind() == ErrorKind::PermissionDenied);
    let hint = if denied { "; it takes root, as with sudo" } else { "" };
    NoState::Unavailable(format!("readahead cannot be set: {error}{hint}"))
}

/// The right to change a setting of the machine: a lock on its file, which goes with the process.
fn claim(path: &Path) -> Result<File, String> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(_) => Err(format!("another run sets {} at the moment", path.display())),
    }
}

impl Drop for ReadaheadSetter {
    fn drop(&mut self) {
        // The journal holds it too, for the case that this fails. What somebody else has set since is theirs.
        if let (Ok(setting), Some(found), Some(set)) = (&self.setting, self.found, self.set)
            && set != found
            && setting.read().is_ok_and(|now| now == set)
        {
            let _ = setting.set(found);
        }
    }
}
