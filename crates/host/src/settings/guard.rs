//! A setting of the kernel that a run sets again and again: claimed, set, read back and restored.

use std::io::ErrorKind;
use std::path::Path;

use pagewise_model::host_settings::Wanted;

use super::record::{self, Lock, RecordError};
use super::{SettingError, SettingFile, for_path};
use crate::steps::{RunStep, reached};

/// Attempts before another program is taken to manage this setting.
const ATTEMPTS: u32 = 5;

/// One setting for as long as a run may set it; what was found is there again when it is dropped.
pub struct SettingGuard {
    name: &'static str,
    file: Result<SettingFile, String>,
    /// Held where cells set it: another run, of any user, would take our setting for what was there
    /// before.
    claim: Option<Lock>,
    /// The setting to be restored, and the text that does it.
    found: Option<(String, String)>,
    /// The value set last, if one was.
    set: Option<String>,
}

impl SettingGuard {
    /// Every setting for what lies at `path`; those that `sets` names are claimed, and the others
    /// only looked at.
    pub fn all(path: &Path, sets: impl Fn(&str) -> bool) -> Vec<Self> {
        for_path(path).map(|(setting, file)| Self::new(setting.name(), file, sets(setting.name()))).collect()
    }

    fn new(name: &'static str, file: Result<SettingFile, String>, sets: bool) -> Self {
        let claimed = file.and_then(|file| match sets {
            true => claim(file.path()).map(|claim| (file, Some(claim))),
            false => Ok((file, None)),
        });
        let (file, claim) = match claimed {
            Ok((file, claim)) => (Ok(file), claim),
            Err(reason) => (Err(reason), None),
        };
        let found = file.as_ref().ok().and_then(|file| file.read_with_text().ok());
        Self { name, file, claim, found, set: None }
    }

    /// Name in cells and evidence.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The value in force.
    pub fn read(&self) -> Option<String> {
        self.file.as_ref().ok()?.read().ok()
    }

    /// Check that it can be set to `wanted`, as far as its file says beforehand. The error is a
    /// sentence.
    pub fn check(&self, wanted: &Wanted) -> Result<(), String> {
        let file = self.file.as_ref().map_err(|reason| self.missing(wanted, reason))?;
        let (now, _) = file.read_with_text().map_err(|error| self.refused(error))?;
        if now == wanted.value { Ok(()) } else { file.check_writable().map_err(|error| self.refused(error)) }
    }

    /// Sets what is wanted, or what was found where nothing is. What is there is noted down for the
    /// whole machine before it is changed. The error is a sentence.
    pub fn set(&mut self, wanted: Option<&Wanted>) -> Result<(), String> {
        let (file, right) = match (wanted, &self.file) {
            (Some(wanted), Err(reason)) => return Err(self.missing(wanted, reason)),
            // Where nobody holds the right to set it, nobody asks for it.
            (_, Ok(file)) => match &self.claim {
                Some(right) => (file, right),
                None => return Ok(()),
            },
            (None, Err(_)) => return Ok(()),
        };
        for attempt in 1.. {
            let (now, text) = file.read_with_text().map_err(|error| self.refused(error))?;
            let ours = self.set.as_ref().or(self.found.as_ref().map(|(value, _)| value));
            if ours != Some(&now) {
                // Somebody else has set it meanwhile: that is what is to be there again.
                self.found = Some((now.clone(), text.clone()));
            }
            let (found, found_text) = self.found.clone().unwrap_or((now.clone(), text));
            let wanted = wanted.map_or(found, |wanted| wanted.value.clone());
            if now != wanted {
                file.check_writable().map_err(|error| self.refused(error))?;
                record::note(right, file, &found_text, &wanted).map_err(|error| self.unnoted(error))?;
                reached(RunStep::SettingRecorded);
                // A note waits for the disk: what somebody else sets in that time must not be lost.
                let is_same = file.read().is_ok_and(|value| value == now);
                if !is_same && attempt < ATTEMPTS {
                    continue;
                }
                file.set(&wanted).map_err(|error| self.refused(error))?;
                reached(RunStep::SettingChanged);
            }
            self.set = Some(wanted);
            break;
        }
        Ok(())
    }

    fn missing(&self, wanted: &Wanted, reason: &str) -> String {
        format!("{} cannot be set to {}: {reason}", self.name, wanted.typed)
    }

    fn refused(&self, error: SettingError) -> String {
        let denied =
            matches!(&error, SettingError::Call(error) if error.kind() == ErrorKind::PermissionDenied);
        let hint = if denied { "; it takes root, as with sudo" } else { "" };
        format!("{} cannot be set: {error}{hint}", self.name)
    }

    fn unnoted(&self, error: RecordError) -> String {
        format!("{} cannot be set: {error}", self.name)
    }

    /// Puts back what was found, if it was set.
    pub fn restore(&mut self) {
        if let (Ok(file), Some(right), Some(_)) = (&self.file, &self.claim, self.set.take()) {
            // What cannot be put back now stays noted down, and the next start tries again.
            let _ = record::restore(right, file.path());
        }
    }
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

impl Drop for SettingGuard {
    fn drop(&mut self) {
        self.restore();
    }
}
