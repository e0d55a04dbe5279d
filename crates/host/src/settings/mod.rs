//! Settings of the kernel that are applied for cells that request them, read back in every sample,
//! and restored: one file each.
//!
//! A setting is a file of /sys that holds one value. The changes of a killed run are undone by the
//! next start ([`record`]).

use std::io;
use std::path::{Path, PathBuf};

use crate::kernel_files::{self, CallError};

mod guard;
pub(crate) mod mglru;
mod readahead;
pub mod record;

pub use guard::SettingGuard;
pub use readahead::Readahead;

/// Every setting, by its name in cells.
const ALL: &[&dyn HostSetting] = &[&Readahead, &mglru::Mglru];

/// A setting of the kernel.
pub trait HostSetting: Sync {
    /// Name in cells and evidence.
    fn name(&self) -> &'static str;

    /// Name in `doctor`.
    fn title(&self) -> &'static str;

    /// The file that applies to `at`; otherwise the reason that there is none.
    fn file(&self, at: &Path) -> Result<PathBuf, String>;

    /// True if `file` has the format of such a file: a note that names another one is not followed.
    fn is_file(&self, file: &Path) -> bool;

    /// The value that the text of the file represents.
    fn value(&self, text: &str) -> Option<String>;

    /// The text that sets a value.
    fn text(&self, value: &str) -> Option<String>;
}

/// Reason that a setting could not be read or set.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The kernel changed the value: it counts in pages, and has bounds.
    #[error("{name} cannot be {wanted}: the kernel changes it to {found}")]
    NotTaken {
        /// The setting.
        name: &'static str,
        /// Value requested.
        wanted: String,
        /// Value read back, before the setting was restored.
        found: String,
    },
}

/// A setting, and the file that applies.
#[derive(Clone)]
pub struct SettingFile {
    setting: &'static dyn HostSetting,
    path: PathBuf,
}

/// Every setting with its file for `at`, or the reason that there is none.
pub fn for_path(at: &Path) -> impl Iterator<Item = (&'static dyn HostSetting, Result<SettingFile, String>)> {
    ALL.iter()
        .map(move |setting| (*setting, setting.file(at).map(|path| SettingFile { setting: *setting, path })))
}

impl SettingFile {
    /// The setting of a file, by the format of its path.
    fn of_path(path: &Path) -> Option<Self> {
        let setting = ALL.iter().find(|setting| setting.is_file(path))?;
        Some(Self { setting: *setting, path: path.to_path_buf() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the setting.
    pub fn name(&self) -> &'static str {
        self.setting.name()
    }

    /// The value in force.
    pub fn read(&self) -> Result<String, SettingError> {
        self.read_with_text().map(|(value, _)| value)
    }

    /// The value in force, and the file's text for it.
    pub fn read_with_text(&self) -> Result<(String, String), SettingError> {
        let text = kernel_files::read(&self.path)?.trim().to_string();
        // A file without a value is treated as missing.
        let none = || self.failed("read", io::ErrorKind::InvalidData.into());
        Ok((self.setting.value(&text).ok_or_else(none)?, text))
    }

    /// Fail if this user may not set it.
    pub fn check_writable(&self) -> Result<(), SettingError> {
        rustix::fs::access(&self.path, rustix::fs::Access::WRITE_OK)
            .map_err(|errno| self.failed("write", errno.into()))
    }

    /// Set a value; if the kernel changes it, restore the previous one and fail.
    pub fn set(&self, wanted: &str) -> Result<(), SettingError> {
        let (_, before) = self.read_with_text()?;
        let malformed = || self.failed("write", io::ErrorKind::InvalidInput.into());
        kernel_files::write(&self.path, &self.setting.text(wanted).ok_or_else(malformed)?)?;
        let found = self.read()?;
        if found == wanted {
            return Ok(());
        }
        kernel_files::write(&self.path, &before)?;
        Err(SettingError::NotTaken { name: self.name(), wanted: wanted.to_string(), found })
    }

    fn failed(&self, call: &'static str, error: io::Error) -> SettingError {
        CallError::at(call, &self.path)(error).into()
    }
}

#[cfg(test)]
mod tests;
