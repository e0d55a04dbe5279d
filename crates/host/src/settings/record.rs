//! Records of the values that settings had before they were changed, one for the whole machine.
//!
//! A setting belongs to the machine rather than to a user or a state directory: the next run that
//! changes it must not mistake the value left by a killed run for the original one. The record is
//! therefore root's, in `/run`, which is as short-lived as the setting: a boot undoes both. It is
//! written before the setting is changed. A process that changes or restores a setting holds a lock
//! on its file ([`lock`]), which is released when the process ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{SettingError, SettingFile};
use crate::boot;
use crate::file_lock::try_lock;
use crate::kernel_files::{self, CallError};
use crate::steps::{RunStep, reached};
use crate::trusted::{Directory, Refusal};

const DIRECTORY: &str = "/run/pagewise";
const PREFIX: &str = "setting-";
/// Suffix while it is written.
const NEW: &str = ".new";
/// A longer file is not a record.
const MAX_BYTES: u64 = 64 << 10;
/// The run that undoes the last change also removes the directory, possibly at the same time.
const ATTEMPTS: u32 = 100;

/// Reason that a record cannot be kept, or a setting cannot be restored.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum RecordError {
    #[error("its previous value cannot be recorded: {0}")]
    Directory(#[from] Refusal),
    #[error("its previous value cannot be recorded: {0}")]
    Call(#[from] CallError),
    #[error("its previous value cannot be recorded: the kernel does not report the boot id")]
    NoBoot,
    #[error("{0}")]
    Setting(#[from] SettingError),
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SettingNote {
    setting: PathBuf,
    boot: String,
    /// The text of the file before the first change.
    before: String,
    /// Every value that pagewise may have set since; any other value was set by someone else.
    set: Vec<String>,
}

/// The right to change a setting, while this value lives.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code)] File);

/// Acquire the right to change a setting; `None`: another run has it.
pub fn lock(setting: &Path) -> io::Result<Option<Lock>> {
    let file = File::open(setting)?;
    Ok(try_lock(&file)?.then_some(Lock(file)))
}

/// Record that a setting, which has the text `before` without pagewise, is about to get the value
/// `wanted`.
pub fn note(_right: &Lock, setting: &SettingFile, before: &str, wanted: &str) -> Result<(), RecordError> {
    let boot = boot::boot().ok_or(RecordError::NoBoot)?;
    let name = name_of(setting.path());
    for attempt in 1.. {
        let noted =
            Directory::make(Path::new(DIRECTORY)).map_err(RecordError::Directory).and_then(|directory| {
                let earlier = SettingNote::load(&directory, &name).filter(|record| record.boot == boot);
                let earlier = earlier.filter(|record| record.before == before);
                let mut set = earlier.map_or(Vec::new(), |record| record.set);
                if !set.iter().any(|value| value == wanted) {
                    set.push(wanted.to_string());
                }
                let (setting, before) = (setting.path().to_path_buf(), before.to_string());
                SettingNote { setting, boot: boot.clone(), before, set }.store(&directory, &name)
            });
        match noted {
            Err(error) if attempt < ATTEMPTS && error.is_missing() => continue,
            other => return other,
        }
    }
    unreachable!("the last attempt returns")
}

/// Restore a setting if it still has a value set by pagewise, and delete its record; return the
/// value if it was restored.
pub fn restore(_right: &Lock, setting: &Path) -> Result<Option<String>, RecordError> {
    match Directory::open(Path::new(DIRECTORY)) {
        Ok(directory) => {
            restore_in(&directory, &name_of(setting)).map(|restored| restored.map(|(_, value)| value))
        }
        Err(refusal) if refusal.is_missing() => Ok(None),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Restore the settings left by dead runs, and leave those of live ones alone. Return each setting
/// with its value, or the reason that it could not be restored.
pub fn restore_all() -> Vec<Result<(PathBuf, String), String>> {
    let directory = match Directory::open(Path::new(DIRECTORY)) {
        Ok(directory) => directory,
        // Another user's, or missing: it contains nothing of ours.
        Err(_) => return Vec::new(),
    };
    let names = directory.names().unwrap_or_default();
    let names = names.iter().filter_map(|name| name.to_str()).filter(|name| name.starts_with(PREFIX));
    let restored = names.filter_map(|name| {
        let record = SettingNote::load(&directory, name)?;
        let failed = |error: String| format!("{} cannot be restored: {error}", record.setting.display());
        match lock(&record.setting) {
            Ok(Some(_right)) => {
                restore_in(&directory, name).map_err(|error| failed(error.to_string())).transpose()
            }
            Ok(None) => None,
            // The device is gone, and its setting with it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                forget(&directory, name);
                None
            }
            Err(error) => Some(Err(failed(error.to_string()))),
        }
    });
    restored.collect()
}

fn restore_in(directory: &Directory, name: &str) -> Result<Option<(PathBuf, String)>, RecordError> {
    let Some(record) = SettingNote::load(directory, name) else { return Ok(None) };
    let mut restored = None;
    // A boot has undone the change, and a value set by someone else since is theirs.
    let setting = SettingFile::of_path(&record.setting)
        .filter(|_| boot::boot().is_some_and(|boot| boot == record.boot));
    if let Some(setting) = setting {
        let now = match setting.read() {
            // The device is gone, and its setting with it.
            Err(SettingError::Call(error)) if error.kind() == io::ErrorKind::NotFound => None,
            now => Some(now?),
        };
        let is_ours = |now: &String| {
            Some(now) != setting.setting.value(&record.before).as_ref() && record.set.contains(now)
        };
        if now.as_ref().is_some_and(is_ours) {
            kernel_files::write(&setting.path, &record.before).map_err(SettingError::from)?;
            reached(RunStep::SettingRestored);
            restored = setting.setting.value(&record.before).map(|value| (record.setting, value));
        }
    }
    forget(directory, name);
    Ok(restored)
}

fn forget(directory: &Directory, name: &str) {
    let _ = rustix::fs::unlinkat(directory, name, rustix::fs::AtFlags::empty());
    // The directory stays while there are other records.
    let _ = std::fs::remove_dir(directory.path());
}

/// The path as a single name, such as `class-bdi-254:0-read_ahead_kb`.
fn name_of(setting: &Path) -> String {
    let parts: Vec<_> = setting.iter().skip(2).map(|part| part.to_string_lossy()).collect();
    format!("{PREFIX}{}", parts.join("-"))
}

impl RecordError {
    fn is_missing(&self) -> bool {
        match self {
            RecordError::Directory(refusal) => refusal.is_missing(),
            RecordError::Call(error) => error.kind() == io::ErrorKind::NotFound,
            RecordError::NoBoot | RecordError::Setting(_) => false,
        }
    }
}

impl SettingNote {
    fn text(&self) -> String {
        format!("{} {} {} {}\n", self.boot, self.before, self.set.join(","), self.setting.display())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.splitn(4, ' ');
        let mut word = || words.next().filter(|word| !word.is_empty()).map(str::to_string);
        let (boot, before) = (word()?, word()?);
        let set: Vec<String> = word()?.split(',').map(str::to_string).collect();
        let setting = PathBuf::from(word()?);
        let file = SettingFile::of_path(&setting)?;
        let is_value = |value: &String| file.setting.text(value).is_some();
        (file.setting.value(&before).is_some() && set.iter().all(is_value)).then_some(Self {
            setting,
            boot,
            before,
            set,
        })
    }

    /// `None`: there is none, or the file is not one of pagewise's and may be overwritten.
    fn load(directory: &Directory, name: &str) -> Option<Self> {
        let file = directory.file(name, OFlags::RDONLY).ok()?;
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        Self::parse(&text)
    }

    /// Written completely or not at all: under another name first.
    fn store(&self, directory: &Directory, name: &str) -> Result<(), RecordError> {
        let new = format!("{NEW}{name}");
        let failed = |call, error| CallError::at(call, directory.path().join(&new))(error);
        let mut file = directory.file(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        file.write_all(self.text().as_bytes()).map_err(|error| failed("write", error))?;
        file.sync_all().map_err(|error| failed("fsync", error))?;
        rustix::fs::renameat(directory, &*new, directory, name)
            .map_err(|errno| failed("rename", errno.into()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back() {
        let record = SettingNote {
            setting: "/sys/class/bdi/254:0/read_ahead_kb".into(),
            boot: "b00t".into(),
            before: "2560".into(),
            set: vec!["131072".into(), "0".into()],
        };
        assert_eq!(SettingNote::parse(&record.text()), Some(record.clone()));
        assert_eq!(name_of(&record.setting), "setting-class-bdi-254:0-read_ahead_kb");
        assert_eq!(
            name_of(Path::new("/sys/block/vda/queue/read_ahead_kb")),
            "setting-block-vda-queue-read_ahead_kb"
        );
        for text in ["", "\n", "boot 1 2 /etc/passwd\n", "boot 1 2,x /sys/class/bdi/1:0/read_ahead_kb\n"] {
            assert_eq!(SettingNote::parse(text), None, "{text}");
        }
        assert_eq!(SettingNote::parse(record.text().trim_end()), None, "it is torn");
    }
}
