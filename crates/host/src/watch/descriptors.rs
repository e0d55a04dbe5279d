//! Descriptors of other processes. Only /proc shows them, as they are now: a descriptor
//! that was bound anew between the call and the look is unknown.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use pagewise_model::watched::{DescriptorBinding, WatchedFile};
use rustix::fs::OFlags;

use crate::kernel_files;
use crate::process::descriptor_flags;

/// A descriptor of a process.
pub(super) type Key = (u32, i32);

/// The descriptors that were looked at, and when descriptors were bound anew or closed.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    known: HashSet<Key>,
    changes: HashMap<Key, Vec<u64>>,
}

impl Descriptors {
    /// True if the descriptor is used for the first time.
    pub(super) fn is_new(&mut self, key: Key) -> bool {
        self.known.insert(key)
    }

    /// A descriptor was bound anew at this time.
    pub(super) fn bound(&mut self, key: Key, time_ns: u64) {
        self.known.insert(key);
        self.changes.entry(key).or_default().push(time_ns);
    }

    /// A descriptor was closed at this time.
    pub(super) fn closed(&mut self, key: Key, time_ns: u64) {
        self.known.remove(&key);
        self.changes.entry(key).or_default().push(time_ns);
    }

    /// True if the descriptor was closed or bound anew after `from_ns`, and not after `to_ns`.
    pub(super) fn changed(&self, key: Key, from_ns: u64, to_ns: u64) -> bool {
        let changes = self.changes.get(&key);
        changes.is_some_and(|times| times.iter().any(|time| *time > from_ns && *time <= to_ns))
    }

    /// Forget changes before this time.
    pub(super) fn forget_before(&mut self, time_ns: u64) {
        self.changes.retain(|_, times| {
            times.retain(|time| *time >= time_ns);
            !times.is_empty()
        });
    }
}

/// The present binding of a descriptor.
pub(super) fn look((process, descriptor): Key) -> DescriptorBinding {
    let link = format!("/proc/{process}/fd/{descriptor}");
    let Ok(path) = fs::read_link(&link) else { return DescriptorBinding::Unknown };
    let Ok(found) = fs::metadata(&link) else { return DescriptorBinding::Unknown };
    if !found.is_file() {
        return DescriptorBinding::NoFile;
    }
    let Some(flags) = descriptor_flags(process, descriptor) else { return DescriptorBinding::Unknown };
    let file = WatchedFile {
        device: kernel_files::major_minor(found.dev()),
        inode: found.ino(),
        path: path.to_string_lossy().into_owned(),
    };
    DescriptorBinding::File { file, len: found.len(), direct: flags.contains(OFlags::DIRECT) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_descriptor_of_this_process_is_what_it_is() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), [0; 100]).expect("write");
        let key = (std::process::id(), file.as_file().as_raw_fd());
        let DescriptorBinding::File { file: found, len, direct } = look(key) else { panic!("a file") };
        assert_eq!((found.path.as_str(), len, direct), (file.path().to_str().expect("a path"), 100, false));
        let (read, _write) = rustix::pipe::pipe().expect("a pipe");
        assert_eq!(look((key.0, read.as_raw_fd())), DescriptorBinding::NoFile);
        assert_eq!(look((key.0, 100_000)), DescriptorBinding::Unknown);
    }

    #[test]
    fn a_look_after_a_change_is_worth_nothing() {
        let mut descriptors = Descriptors::default();
        assert!(descriptors.is_new((1, 3)) && !descriptors.is_new((1, 3)));
        descriptors.bound((1, 3), 10);
        descriptors.closed((1, 3), 20);
        assert!(descriptors.is_new((1, 3)));
        assert!(!descriptors.changed((1, 3), 10, 19), "the binding itself is no change");
        assert!(descriptors.changed((1, 3), 10, 20));
        assert!(!descriptors.changed((1, 4), 0, 99));
        descriptors.forget_before(21);
        assert!(!descriptors.changed((1, 3), 0, 99));
    }
}
