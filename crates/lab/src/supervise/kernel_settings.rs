//! Settings of the kernel, applied for cells that request them and restored.

use std::path::Path;

use pagewise_host::settings::SettingGuard;
use pagewise_model::{HostSettings, Plan, SettingsInForce};

use super::files::NoState;

/// Applies settings of the kernel to the device of a path; dropping it restores them.
pub struct KernelSetter {
    all: Vec<SettingGuard>,
    at_start: SettingsInForce,
}

impl KernelSetter {
    /// Settings for the file at `path`. Those that no cell of the plan sets are only read.
    pub fn new(path: &Path, plan: &Plan) -> Self {
        let sets = |name: &str| {
            let mut wanted = plan.cells.iter().flat_map(|cell| cell.conditions.host_settings.kernel.wanted());
            wanted.any(|(of, value)| of == name && value.is_some())
        };
        let mut all = Self { all: SettingGuard::all(path, sets), at_start: SettingsInForce::default() };
        all.at_start = all.now();
        all
    }

    /// Values in force at the start of the run.
    pub fn at_start(&self) -> &SettingsInForce {
        &self.at_start
    }

    /// Values in force.
    pub fn now(&self) -> SettingsInForce {
        SettingsInForce::read(|name| self.all.iter().find(|setting| setting.name() == name)?.read())
    }

    /// Apply the settings of a cell; those it does not request are set as found.
    pub fn set(&mut self, host_settings: &HostSettings) -> Result<(), NoState> {
        for (name, wanted) in host_settings.kernel.wanted() {
            if let Some(setting) = self.all.iter_mut().find(|setting| setting.name() == name) {
                setting.set(wanted.as_ref()).map_err(NoState::Unavailable)?;
            } else if wanted.is_some() {
                return Err(NoState::Unavailable(format!("{name} cannot be set: nothing here knows how")));
            }
        }
        Ok(())
    }
}
