//! The readahead that a filesystem gives to newly opened files: `read_ahead_kb` of its backing device info
//! (Documentation/ABI/testing/sysfs-class-bdi), in bytes. Open files keep theirs.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{HostSetting, SettingFile};
use crate::btrfs;
use crate::device::{BlockDevice, NoDevice, real_path};

/// The setting.
pub struct Readahead;

impl Readahead {
    /// The file for the filesystem that holds `place`.
    pub fn of(place: &Path) -> Result<SettingFile, String> {
        Readahead.file(place).map(|path| SettingFile { setting: &Readahead, path })
    }
}

impl HostSetting for Readahead {
    fn name(&self) -> &'static str {
        "readahead"
    }

    fn title(&self) -> &'static str {
        "readahead setting"
    }

    fn file(&self, place: &Path) -> Result<PathBuf, String> {
        in_sys(Path::new("/sys"), place).map_err(|reason| reason.to_string())
    }

    fn is_file(&self, file: &Path) -> bool {
        let parts: Option<Vec<&str>> = file
            .components()
            .map(|part| match part {
                Component::RootDir => Some("/"),
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        matches!(
            parts.as_deref(),
            Some(
                ["/", "sys", "class", "bdi", _, "read_ahead_kb"]
                    | ["/", "sys", "block", _, "queue", "read_ahead_kb"]
            )
        )
    }

    fn value(&self, text: &str) -> Option<String> {
        let kib: u64 = text.parse().ok()?;
        kib.checked_mul(1024).map(|bytes| bytes.to_string())
    }

    fn text(&self, value: &str) -> Option<String> {
        let bytes: u64 = value.parse().ok()?;
        Some((bytes / 1024).to_string())
    }
}

fn in_sys(sys: &Path, path: &Path) -> Result<PathBuf, NoDevice> {
    // Overlayfs opens the file of its layer, and uses that one's readahead.
    let (path, mount, number) = real_path(path)?;
    let named = |name: String| sys.join("class/bdi").join(name).join("read_ahead_kb");
    let mut candidates = vec![named(format!("{}:{}", number.0, number.1))];
    let mut none = NoDevice(format!("{} shows no setting of its readahead", mount.filesystem));
    if mount.filesystem == "btrfs" {
        // It has its own, independent of its devices.
        let information = btrfs::directory(sys, &mount.source)
            .and_then(|directory| fs::canonicalize(directory.join("bdi")).ok())
            .and_then(|information| Some(information.file_name()?.to_string_lossy().into_owned()));
        candidates.extend(information.map(named));
    } else {
        match BlockDevice::behind(&path) {
            // A partition uses the readahead of its disk.
            Ok(device) => {
                let number = device.number();
                candidates.push(named(format!("{}:{}", number.0, number.1)));
                candidates.push(sys.join("block").join(&device.name).join("queue/read_ahead_kb"));
            }
            Err(reason) => none = reason,
        }
    }
    candidates.into_iter().find(|path| path.exists()).ok_or(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_readahead_are_settings() {
        for path in ["/sys/class/bdi/254:0/read_ahead_kb", "/sys/block/vda/queue/read_ahead_kb"] {
            assert!(Readahead.is_file(Path::new(path)), "{path}");
        }
        for path in [
            "/sys/block/vda/queue/nr_requests",
            "/sys/class/bdi/../../block/vda/read_ahead_kb",
            "/sys/class/bdi/254:0/../read_ahead_kb",
            "sys/class/bdi/254:0/read_ahead_kb",
            "/tmp/sys/class/bdi/254:0/read_ahead_kb",
            "/etc/passwd",
            "",
        ] {
            assert!(!Readahead.is_file(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn the_filesystem_of_this_directory_has_a_setting() {
        let readahead = match Readahead::of(Path::new(".")) {
            Ok(readahead) => readahead,
            Err(reason) => {
                println!("skipped: readahead: {reason}");
                return;
            }
        };
        assert!(Readahead.is_file(readahead.path()), "{}", readahead.path().display());
        let bytes = readahead.read().expect("read");
        match readahead.set(&bytes) {
            Ok(()) => assert_eq!(readahead.read().expect("read"), bytes),
            Err(error) => println!("skipped: readahead: {error}"),
        }
    }

    #[test]
    fn memory_has_no_readahead() {
        let reason = Readahead::of(Path::new("/proc")).err().expect("none");
        assert_eq!(reason, "proc is made up by the kernel");
    }
}
