//! The readahead that a filesystem gives to files opened from now on: `read_ahead_kb` of its backing device
//! info (Documentation/ABI/testing/sysfs-class-bdi). Files that are open keep what they have.

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use crate::btrfs;
use crate::device::{BlockDevice, NoDevice, real_path};
use crate::kernel_files;

pub mod record;

/// The setting that decides for one filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readahead {
    path: PathBuf,
}

/// Why readahead could not be read or set.
#[derive(Debug, thiserror::Error)]
pub enum ReadaheadError {
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
    /// The kernel counts in pages and, for some filesystems, has bounds.
    #[error("a readahead of {wanted_bytes} bytes cannot be had: the kernel makes {found_bytes} of it")]
    NotTaken {
        /// What was asked for.
        wanted_bytes: u64,
        /// What it became, before the setting was put back.
        found_bytes: u64,
    },
}

impl Readahead {
    /// The setting for the filesystem that holds `path`.
    pub fn of(path: &Path) -> Result<Self, NoDevice> {
        Self::in_sys(Path::new("/sys"), path)
    }

    fn in_sys(sys: &Path, path: &Path) -> Result<Self, NoDevice> {
        // Overlayfs opens the file of its layer, and reads ahead as that does.
        let (path, mount, number) = real_path(path)?;
        let named = |name: String| sys.join("class/bdi").join(name).join("read_ahead_kb");
        let mut candidates = vec![named(format!("{}:{}", number.0, number.1))];
        let mut none = NoDevice(format!("{} shows no setting of its readahead", mount.filesystem));
        if mount.filesystem == "btrfs" {
            // It has one of its own, whatever its devices have.
            let information = btrfs::directory(sys, &mount.source)
                .and_then(|directory| fs::canonicalize(directory.join("bdi")).ok())
                .and_then(|information| Some(information.file_name()?.to_string_lossy().into_owned()));
            candidates.extend(information.map(named));
        } else {
            match BlockDevice::behind(&path) {
                // A partition has the readahead of its disk.
                Ok(device) => {
                    let number = device.number();
                    candidates.push(named(format!("{}:{}", number.0, number.1)));
                    candidates.push(sys.join("block").join(&device.name).join("queue/read_ahead_kb"));
                }
                Err(reason) => none = reason,
            }
        }
        candidates.into_iter().find(|path| path.exists()).map(|path| Self { path }).ok_or(none)
    }

    /// The file of the setting.
    pub fn setting_path(&self) -> &Path {
        &self.path
    }

    /// What it is.
    pub fn read(&self) -> Result<u64, ReadaheadError> {
        read(&self.path)
    }

    /// Whether this user may set it.
    pub fn check_writable(&self) -> Result<(), ReadaheadError> {
        rustix::fs::access(&self.path, rustix::fs::Access::WRITE_OK).map_err(|errno| ReadaheadError::Io {
            call: "write",
            path: self.path.clone(),
            error: errno.into(),
        })
    }

    /// Sets it; what the kernel does not take as it is, is put back.
    pub fn set(&self, bytes: u64) -> Result<(), ReadaheadError> {
        set(&self.path, bytes)
    }
}

fn read(path: &Path) -> Result<u64, ReadaheadError> {
    let failed = |error| ReadaheadError::Io { call: "read", path: path.to_path_buf(), error };
    // A file that holds no number is as good as none.
    let text = fs::read_to_string(path).map_err(failed)?;
    let kib = text.trim().parse::<u64>().ok().and_then(|kib| kib.checked_mul(1024));
    kib.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))
}

fn set(path: &Path, wanted_bytes: u64) -> Result<(), ReadaheadError> {
    let failed = |error| ReadaheadError::Io { call: "write", path: path.to_path_buf(), error };
    let before_bytes = read(path)?;
    kernel_files::write(path, &(wanted_bytes / 1024).to_string()).map_err(failed)?;
    let found_bytes = read(path)?;
    if found_bytes == wanted_bytes {
        return Ok(());
    }
    kernel_files::write(path, &(before_bytes / 1024).to_string()).map_err(failed)?;
    Err(ReadaheadError::NotTaken { wanted_bytes, found_bytes })
}

/// Whether a file has the shape of [`Readahead::setting_path`].
fn is_setting(path: &Path) -> bool {
    let parts: Option<Vec<&str>> = path
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_readahead_are_settings() {
        for path in ["/sys/class/bdi/254:0/read_ahead_kb", "/sys/block/vda/queue/read_ahead_kb"] {
            assert!(is_setting(Path::new(path)), "{path}");
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
            assert!(!is_setting(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn what_the_kernel_rounds_is_refused_and_put_back() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("read_ahead_kb");
        fs::write(&path, "8192\n").expect("write");
        set(&path, 131_072).expect("set");
        assert_eq!(read(&path).expect("read"), 131_072);
        // Here a plain file plays the kernel: it keeps whole KiB.
        let error = set(&path, 1000).expect_err("rounded");
        assert!(matches!(error, ReadaheadError::NotTaken { wanted_bytes: 1000, found_bytes: 0 }), "{error}");
        assert_eq!(read(&path).expect("read"), 131_072);
        fs::write(&path, "many\n").expect("write");
        assert!(read(&path).is_err() && set(&path, 4096).is_err());
        assert_eq!(fs::read_to_string(&path).expect("read"), "many\n");
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
        assert!(is_setting(readahead.setting_path()), "{readahead:?}");
        let bytes = readahead.read().expect("read");
        match readahead.set(bytes) {
            Ok(()) => assert_eq!(readahead.read().expect("read"), bytes),
            Err(error) => println!("skipped: readahead: {error}"),
        }
    }

    #[test]
    fn memory_has_no_readahead() {
        let reason = Readahead::of(Path::new("/proc")).expect_err("none").to_string();
        assert_eq!(reason, "proc is made up by the kernel");
    }
}
