//! Settings of the kernel, set for cells that ask for one and put back.

use std::path::Path;

use pagewise_host::settings::SettingGuard;
use pagewise_model::{HostSettings, Plan, SettingsInForce};

use super::files::NoState;

/// Sets the kernel for what lies at a path; puts everything back when it is dropped.
pub struct KernelSetter {
    all: Vec<SettingGuard>,
    at_start: SettingsInForce,
}

impl KernelSetter {
    /// For what lies at `path`. What no cell of the plan sets is only looked at.
    pub fn new(path: &Path, plan: &Plan) -> Self {
        let sets = |name: &str| {
            let mut wanted = plan.cells.iter().flat_map(|cell| cell.conditions.host_settings.kernel.wanted());
            wanted.any(|(of, value)| of == name && value.is_some())
        };
        let mut all = Self { all: SettingGuard::all(path, sets), at_start: SettingsInForce::default() };
        all.at_start = all.now();
        all
    }

    /// What was in force when the run began.
    pub fn at_start(&self) -> &SettingsInForce {
        &self.at_start
    }

    /// What is in force.
    pub fn now(&self) -> SettingsInForce {
        SettingsInForce::read(|name| self.all.iter().find(|setting| setting.name() == name)?.read())
    }

    /// Sets what a cell asks for, or what was found where it asks for nothing.
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
