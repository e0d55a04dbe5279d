//! Lookups in /sys about a mounted btrfs (the device number of its files belongs to no device).

use std::fs;
use std::path::{Path, PathBuf};

/// The directory below `sys` of the filesystem that uses this device, such as `/dev/sda2`.
pub(crate) fn directory(sys: &Path, source: &str) -> Option<PathBuf> {
    let device = fs::canonicalize(source).unwrap_or_else(|_| PathBuf::from(source));
    let name = device.file_name()?;
    let filesystems = fs::read_dir(sys.join("fs/btrfs")).ok()?;
    filesystems.flatten().map(|entry| entry.path()).find(|path| path.join("devices").join(name).exists())
}

/// The devices that it distributes its files over.
pub(crate) fn devices(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory.join("devices"));
    let mut names: Vec<String> = entries
        .map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}
