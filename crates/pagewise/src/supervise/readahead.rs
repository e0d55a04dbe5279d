//! Readahead of the device, set for cells that ask for one and put back.

use std::io::ErrorKind;
use std::path::Path;

use pagewise_host::readahead::record::{self, Lock, RecordError};
use pagewise_host::readahead::{Readahead, ReadaheadError};
use pagewise_model::Bytes;

use super::files::NoState;

/// Sets the readahead of what lies at a path; puts it back when it is dropped.
pub struct ReadaheadSetter {
    setting: Result<Readahead, String>,
    /// Held where cells set it: another run, of any user, would take our setting for what was there before.
    claim: Option<Lock>,
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

    /// Sets what a cell asks for, or what was found where it asks for nothing; what is there is noted down
    /// for the whole machine first.
    pub fn set(&mut self, wanted: Option<Bytes>) -> Result<(), NoState> {
        let (setting, right) = match (wanted, &self.setting) {
            (Some(wanted), Err(reason)) => {
                return Err(NoState::Unavailable(format!("readahead cannot be set to {wanted}: {reason}")));
            }
            // Where nobody holds the right to set it, nobody asks for it.
            (_, Ok(setting)) => match &self.claim {
                Some(right) => (setting, right),
                None => return Ok(()),
            },
            (None, Err(_)) => return Ok(()),
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
            setting.check_writable().map_err(refused)?;
            record::note(right, setting.setting_path(), found, wanted).map_err(unnoted)?;
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

fn unnoted(error: RecordError) -> NoState {
    NoState::Unavailable(format!("readahead cannot be set: {error}"))
}

/// The right to change a setting of the machine; what a killed run made of it is undone first.
fn claim(path: &Path) -> Result<Lock, String> {
    match record::lock(path) {
        Ok(Some(right)) => {
            record::restore(&right, path).map_err(|error| error.to_string())?;
            Ok(right)
        }
        Ok(None) => Err(format!("another run sets {} at the moment", path.display())),
        Err(error) => Err(format!("flock {}: {error}", path.display())),
    }
}

impl Drop for ReadaheadSetter {
    fn drop(&mut self) {
        if let (Ok(setting), Some(right), Some(_)) = (&self.setting, &self.claim, self.set) {
            // What cannot be put back now stays noted down, and the next start tries again.
            let _ = record::restore(right, setting.setting_path());
        }
    }
}
