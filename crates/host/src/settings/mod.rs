//! Settings of the kernel that are set for cells that ask for it, read back in every sample, and put back: one file each.
//!
//! A setting is a file of /sys that holds one value. What a killed run made of it is undone by the next start ([`record`]).

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::kernel_files;

mod mglru;
mod readahead;
pub mod record;

pub use readahead::Readahead;

/// Every setting, by the names that cells use.
const ALL: &[&dyn HostSetting] = &[&Readahead, &mglru::Mglru];

/// A setting of the kernel.
pub trait HostSetting: Sync {
    /// Its name in cells and evidence.
    fn name(&self) -> &'static str;

    /// Its name in `doctor`.
    fn title(&self) -> &'static str;

    /// The file that decides for what lies at `place`; else why there is none.
    fn file(&self, place: &Path) -> Result<PathBuf, String>;

    /// True if `file` has the shape of such a file: a note that names another one is not followed.
    fn is_file(&self, file: &Path) -> bool;

    /// The value that the text of the file stands for.
    fn value(&self, text: &str) -> Option<String>;

    /// The text that makes the kernel take a value.
    fn text(&self, value: &str) -> Option<String>;
}

/// Why a setting could not be read or set.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// A call failed.
    #[error("{call} of {}: {error}", path.display())]
    Io {
        /// What was tried.
        call: &'static str,
        /// On what.
        path: PathBuf,
        /// With which errno.
        #[source]
        error: io::Error,
    },
    /// The kernel counts in pages, and has bounds.
    #[error("{name} {wanted} cannot be had: the kernel makes {found} of it")]
    NotTaken {
        /// The setting.
        name: &'static str,
        /// What was asked for.
        wanted: String,
        /// What it became, before the setting was put back.
        found: String,
    },
}

/// A setting, and the file that decides.
#[derive(Clone)]
pub struct SettingFile {
    setting: &'static dyn HostSetting,
    path: PathBuf,
}

/// Every setting with its file for what lies at `place`, or why there is none.
pub fn for_place(
    place: &Path,
) -> impl Iterator<Item = (&'static dyn HostSetting, Result<SettingFile, String>)> {
    ALL.iter().map(move |setting| {
        (*setting, setting.file(place).map(|path| SettingFile { setting: *setting, path }))
    })
}

impl SettingFile {
    /// The setting that a file decides, by the shape of its path.
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

    /// The value in force, and the text of the file that stands for it.
    pub fn read_with_text(&self) -> Result<(String, String), SettingError> {
        let text = fs::read_to_string(&self.path).map_err(|error| self.failed("read", error))?;
        let text = text.trim().to_string();
        // A file that holds no value is as good as none.
        let none = || self.failed("read", io::ErrorKind::InvalidData.into());
        Ok((self.setting.value(&text).ok_or_else(none)?, text))
    }

    /// Refuses if this user may not set it.
    pub fn check_writable(&self) -> Result<(), SettingError> {
        rustix::fs::access(&self.path, rustix::fs::Access::WRITE_OK)
            .map_err(|errno| self.failed("write", errno.into()))
    }

    /// Sets a value; what the kernel does not take as it is, is put back.
    pub fn set(&self, wanted: &str) -> Result<(), SettingError> {
        let (_, before) = self.read_with_text()?;
        let malformed = || self.failed("write", io::ErrorKind::InvalidInput.into());
        self.write(&self.setting.text(wanted).ok_or_else(malformed)?)?;
        let found = self.read()?;
        if found == wanted {
            return Ok(());
        }
        self.write(&before)?;
        Err(SettingError::NotTaken { name: self.name(), wanted: wanted.to_string(), found })
    }

    /// Writes the text of the file.
    fn write(&self, text: &str) -> Result<(), SettingError> {
        kernel_files::write(&self.path, text).map_err(|error| self.failed("write", error))
    }

    fn failed(&self, call: &'static str, error: io::Error) -> SettingError {
        SettingError::Io { call, path: self.path.clone(), error }
    }
}

#[cfg(test)]
mod tests;
