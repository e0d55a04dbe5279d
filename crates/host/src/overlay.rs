//! The file behind a path of overlayfs (Documentation/filesystems/overlayfs.rst).
//!
//! The mount names its layers by paths as seen by the process that mounted it: in a container they
//! may not exist, or lead elsewhere. Files found there are therefore compared with those that the
//! overlay shows.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::mounts::{Mount, unescape};

/// The path in the layer that holds `path`, or in which a file made in the directory `path` would
/// be stored.
pub(crate) fn layer_path(mount: &Mount, path: &Path) -> Result<PathBuf, String> {
    let unseen = |error: &dyn std::fmt::Display| format!("overlay: {}: {error}", path.display());
    let path = fs::canonicalize(path).map_err(|error| unseen(&error))?;
    let shown = fs::metadata(&path).map_err(|error| unseen(&error))?;
    let below = path.strip_prefix(&mount.mount_point).map_err(|error| unseen(&error))?;
    let root = mount.root.strip_prefix("/").unwrap_or(&mount.root);
    let inside = root.join(below);
    let layers = Layers::of(&mount.options);
    if shown.is_dir() {
        let Some(upper) = &layers.upper else {
            return Err("overlay without an upper layer: nothing can be written to it".to_string());
        };
        return upper_directory(upper, &inside, mount, &shown);
    }
    for layer in layers.upper.iter().chain(&layers.lower) {
        let candidate: PathBuf = layer.join(&inside).components().collect();
        let Ok(found) = fs::symlink_metadata(&candidate) else { continue };
        // The upper layer may hold only the attributes, and a lower one the data.
        if has_no_data(&candidate) {
            continue;
        }
        if is_same(&shown, &found) {
            return Ok(candidate);
        }
        break;
    }
    Err("overlay hides which filesystem holds a file: its layers are not seen from here".to_string())
}

/// The nearest directory that already exists in the upper layer; others are made there when they
/// are needed.
fn upper_directory(upper: &Path, inside: &Path, mount: &Mount, shown: &Metadata) -> Result<PathBuf, String> {
    let root = mount.root.strip_prefix("/").unwrap_or(&mount.root);
    for (depth, directory) in inside.ancestors().enumerate() {
        let candidate: PathBuf = upper.join(directory).components().collect();
        let Ok(found) = fs::symlink_metadata(&candidate) else { continue };
        // The directory as the mount shows it; above its root, there is nothing to compare.
        let merged = match directory.strip_prefix(root) {
            Ok(below) => fs::metadata(mount.mount_point.join(below)).ok(),
            Err(_) => None,
        };
        let shown = if depth == 0 { Some(shown.clone()) } else { merged };
        if found.is_dir() && shown.is_some_and(|shown| is_same(&shown, &found)) {
            return Ok(candidate);
        }
        break;
    }
    Err("overlay hides which filesystem holds a directory: its layers are not seen from here".to_string())
}

/// The overlay shows the attributes of the layer's file or directory, except for the inode number,
/// which remains that of the lower layer after a copy. Times count nanoseconds, and ctime cannot be
/// set.
fn is_same(shown: &Metadata, found: &Metadata) -> bool {
    let facts = |metadata: &Metadata| {
        let size = if metadata.is_dir() { 0 } else { metadata.len() };
        let times = (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec());
        (metadata.mode(), metadata.uid(), metadata.gid(), size, times)
    };
    facts(shown) == facts(found)
}

/// A copy of the attributes alone is marked by an attribute that only root can see. Without root,
/// its size and times are those of the data, so the answer may be the upper layer.
fn has_no_data(path: &Path) -> bool {
    let mut value = [0u8; 64];
    ["trusted.overlay.metacopy", "user.overlay.metacopy"]
        .iter()
        .any(|name| rustix::fs::lgetxattr(path, *name, &mut value[..]).is_ok())
}

/// The directories named in the options of a mount, upper ones first.
#[derive(Debug, Default, PartialEq, Eq)]
struct Layers {
    upper: Option<PathBuf>,
    lower: Vec<PathBuf>,
}

impl Layers {
    fn of(options: &str) -> Self {
        let mut layers = Self::default();
        for option in split(options.as_bytes(), b',') {
            let Some(at) = option.iter().position(|byte| *byte == b'=') else { continue };
            // Comma and colon are escaped by a backslash, and the result as in the rest of
            // mountinfo.
            let value = unescape(&String::from_utf8_lossy(&option[at + 1..]));
            match &option[..at] {
                b"upperdir" => layers.upper = Some(plain(value.as_bytes())),
                // A colon separates layers, two colons those that hold only data.
                b"lowerdir" => layers
                    .lower
                    .extend(split(value.as_bytes(), b':').filter(|layer| !layer.is_empty()).map(plain)),
                // Linux 6.8: one option for each.
                b"lowerdir+" | b"datadir+" => layers.lower.push(plain(value.as_bytes())),
                _ => {}
            }
        }
        layers
    }
}

/// Split at `separator` unless a backslash precedes it.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut is_escaped = false;
    text.split(move |byte| {
        let parts = *byte == separator && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        parts
    })
}

fn plain(escaped: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.iter();
    while let Some(byte) = rest.next() {
        bytes.push(if *byte == b'\\' { *rest.next().unwrap_or(byte) } else { *byte });
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

/// Pass options of a mount to their parser.
#[cfg(test)]
pub(crate) fn read_anything(options: &str) {
    Layers::of(options);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_read_from_the_options() {
        let docker = "rw,relatime,lowerdir=/d/l/A:/d/l/B,upperdir=/d/x/diff,workdir=/d/x/work";
        assert_eq!(
            Layers::of(docker),
            Layers { upper: Some("/d/x/diff".into()), lower: vec!["/d/l/A".into(), "/d/l/B".into()] }
        );
        let odd = "ro,lowerdir=/a\\134:b:/c::/data,redirect_dir=on";
        assert_eq!(
            Layers::of(odd),
            Layers { upper: None, lower: vec!["/a:b".into(), "/c".into(), "/data".into()] }
        );
        let new = "rw,lowerdir+=/a,lowerdir+=/b\\040c,datadir+=/d,upperdir=/u";
        assert_eq!(
            Layers::of(new),
            Layers { upper: Some("/u".into()), lower: vec!["/a".into(), "/b c".into(), "/d".into()] }
        );
        assert_eq!(Layers::of("rw"), Layers::default());
    }
}
