//! Settings of the kernel, set for cells that ask for one and put back.

use std::io::ErrorKind;
use std::path::Path;

use pagewise_host::settings::record::{self, Lock, RecordError};
use pagewise_host::settings::{self, SettingError, SettingFile};
use pagewise_model::host_settings::Wanted;
use pagewise_model::{HostSettings, Plan, SettingsInForce};

use super::files::NoState;

/// Sets the kernel for what lies at a path; puts everything back when it is dropped.
pub struct KernelSetter {
    all: Vec<Setter>,
    at_start: SettingsInForce,
}

impl KernelSetter {
    /// For what lies at `path`. What no cell of the plan sets is only looked at.
    pub fn new(path: &Path, plan: &Plan) -> Self {
        let sets = |name: &str| {
            let mut wanted = plan.cells.iter().flat_map(|cell| cell.conditions.host_settings.kernel.wanted());
            wanted.any(|(of, value)| of == name && value.is_some())
        };
        let setters = settings::for_place(path)
            .map(|(setting, file)| Setter::new(setting.name(), file, sets(setting.name())));
        let mut all = Self { all: setters.collect(), at_start: SettingsInForce::default() };
        all.at_start = all.now();
        all
    }

    /// What was in force when the run began.
    pub fn at_start(&self) -> &SettingsInForce {
        &self.at_start
    }

    /// What is in force.
    pub fn now(&self) -> SettingsInForce {
        SettingsInForce::read(|name| {
            let setter = self.all.iter().find(|setter| setter.name == name)?;
            setter.file.as_ref().ok()?.read().ok()
        })
    }

    /// Sets what a cell asks for, or what was found where it asks for nothing.
    pub fn set(&mut self, host_settings: &HostSettings) -> Result<(), NoState> {
        for (name, wanted) in host_settings.kernel.wanted() {
            if let Some(setter) = self.all.iter_mut().find(|setter| setter.name == name) {
                setter.set(wanted.as_ref())?;
            } else if wanted.is_some() {
                return Err(NoState::Unavailable(format!("{name} cannot be set: nothing here knows how")));
            }
        }
        Ok(())
    }
}

struct Setter {
    name: &'static str,
    file: Result<SettingFile, String>,
    /// Held where cells set it: another run, of any user, would take our setting for what was there before.
    claim: Option<Lock>,
    /// What is to be there again, and the text that makes it so.
    found: Option<(String, String)>,
    /// What it was set to last, if it was.
    set: Option<String>,
}

impl Setter {
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

    /// What is there is noted down for the whole machine before it is changed.
    fn set(&mut self, wanted: Option<&Wanted>) -> Result<(), NoState> {
        let (file, right) = match (wanted, &self.file) {
            (Some(wanted), Err(reason)) => {
                return Err(NoState::Unavailable(format!(
                    "{} cannot be set to {}: {reason}",
                    self.name, wanted.typed
                )));
            }
            // Where nobody holds the right to set it, nobody asks for it.
            (_, Ok(file)) => match &self.claim {
                Some(right) => (file, right),
                None => return Ok(()),
            },
            (None, Err(_)) => return Ok(()),
        };
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
            file.set(&wanted).map_err(|error| self.refused(error))?;
        }
        self.set = Some(wanted);
        Ok(())
    }

    fn refused(&self, error: SettingError) -> NoState {
        let denied =
            matches!(&error, SettingError::Io { error, .. } if error.kind() == ErrorKind::PermissionDenied);
        let hint = if denied { "; it takes root, as with sudo" } else { "" };
        NoState::Unavailable(format!("{} cannot be set: {error}{hint}", self.name))
    }

    fn unnoted(&self, error: RecordError) -> NoState {
        NoState::Unavailable(format!("{} cannot be set: {error}", self.name))
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

impl Drop for Setter {
    fn drop(&mut self) {
        if let (Ok(file), Some(right), Some(_)) = (&self.file, &self.claim, &self.set) {
            // What cannot be put back now stays noted down, and the next start tries again.
            let _ = record::restore(right, file.path());
        }
    }
}
