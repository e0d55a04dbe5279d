//! The filesystem of a path: /proc/self/mountinfo (proc_pid_mountinfo(5)), and the meaning of its
//! type for measurements.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::kernel_files::{device_number, major_minor};
use crate::scratch;

/// One mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of the superblock; st_dev of its files, except for btrfs and the
    /// like.
    pub number: (u32, u32),
    /// The directory of the filesystem that is visible at the mount point: `/`, except for bind
    /// mounts and subvolumes.
    pub root: PathBuf,
    /// The directory on which it is mounted.
    pub mount_point: PathBuf,
    /// Type, such as `ext4`.
    pub filesystem: String,
    /// The mounted device or export, such as `/dev/sda2` or `server:/export`.
    pub source: String,
    /// Options of the mount and of the superblock, without repetition.
    pub options: String,
}

/// Kind of storage of a filesystem, as far as it affects measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesystemKind {
    /// On a block device of its own.
    Block,
    /// Files are stored in memory; nothing can be cold.
    Memory,
    /// Bytes come from another machine or the hypervisor's host.
    Network,
    /// A program serves it.
    Fuse,
    /// Layers over other filesystems.
    Overlay,
    /// The kernel generates the files.
    Kernel,
}

impl Mount {
    /// The filesystem that holds `path`.
    pub fn holding(path: &Path) -> io::Result<Option<Self>> {
        let path = fs::canonicalize(path)?;
        let number = major_minor(fs::metadata(&path)?.dev());
        let mountinfo = fs::read("/proc/self/mountinfo")?;
        Ok(choose(parse(&String::from_utf8_lossy(&mountinfo)), &path, number))
    }

    /// The filesystem that holds an open file; `None` also for a file without a name.
    pub fn of(file: &File) -> Option<Self> {
        Self::holding(&scratch::reopen_path(file)).ok().flatten()
    }

    /// The kind of its type.
    pub fn kind(&self) -> FilesystemKind {
        match self.filesystem.as_str() {
            "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => FilesystemKind::Memory,
            "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "9p" | "ceph" | "lustre" | "afs" | "gpfs"
            | "beegfs" | "virtiofs" | "ocfs2" | "gfs2" | "orangefs" => FilesystemKind::Network,
            "overlay" | "aufs" | "ecryptfs" => FilesystemKind::Overlay,
            "proc" | "sysfs" | "debugfs" | "tracefs" | "cgroup" | "cgroup2" | "securityfs" | "configfs"
            | "devpts" | "mqueue" | "bpf" | "pstore" | "efivarfs" => FilesystemKind::Kernel,
            "fuseblk" => FilesystemKind::Fuse,
            name if name == "fuse" || name.starts_with("fuse.") => FilesystemKind::Fuse,
            _ => FilesystemKind::Block,
        }
    }

    /// True if it may store files compressed.
    pub fn compresses(&self) -> bool {
        match self.filesystem.as_str() {
            "btrfs" => self.has_option("compress") || self.has_option("compress-force"),
            "bcachefs" => self.has_option("compression"),
            "f2fs" => self.has_option("compress_algorithm"),
            "squashfs" | "erofs" | "zfs" => true,
            _ => false,
        }
    }

    /// True if the bytes that a process reads are not those that a device moves for it: they are
    /// compressed, or another program gets them.
    pub fn hides_bytes(&self) -> bool {
        self.compresses() || self.kind() == FilesystemKind::Fuse || self.filesystem == "virtiofs"
    }

    /// True if the mount has the option, with or without a value.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.split(',').any(|option| option.split('=').next() == Some(name))
    }
}

/// Parse the text of mountinfo. Lines of another format are left out.
pub fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // `36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda2 rw,errors=continue`; the
    // number of fields before the lone hyphen varies.
    let (mount, superblock) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(2);
    let number = device_number(mount.next()?)?;
    let root = unescape(mount.next()?).into();
    let mount_point = unescape(mount.next()?).into();
    let mount_options = mount.next()?;
    let mut superblock = superblock.split(' ');
    let filesystem = superblock.next()?.to_string();
    let source = unescape(superblock.next()?).to_string_lossy().into_owned();
    let mut options: Vec<&str> = mount_options.split(',').collect();
    for option in superblock.next().unwrap_or_default().split(',') {
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount { number, root, mount_point, filesystem, source, options: options.join(",") })
}

/// Space, tab, newline and backslash are written as three octal digits.
pub(crate) fn unescape(text: &str) -> OsString {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let octal = bytes
            .get(index + 1..index + 4)
            .filter(|_| bytes[index] == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(octal.unwrap_or(bytes[index]));
        index += if octal.is_some() { 4 } else { 1 };
    }
    OsString::from_vec(plain)
}

/// The mount with `number` at the longest mount point above `path`; of two at the same point the
/// later hides the earlier. Subvolumes of btrfs have a st_dev that is not in mountinfo: the longest
/// mount point is used then.
fn choose(mounts: Vec<Mount>, path: &Path, number: (u32, u32)) -> Option<Mount> {
    let depth = |mount: &Mount| mount.mount_point.components().count();
    let above: Vec<Mount> = mounts.into_iter().filter(|mount| path.starts_with(&mount.mount_point)).collect();
    let same = above.iter().filter(|mount| mount.number == number).max_by_key(|mount| depth(mount)).cloned();
    same.or_else(|| above.into_iter().max_by_key(depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAPTOP: &str = include_str!("../tests/fixtures/mountinfo-laptop.txt");

    fn holding(path: &str, number: (u32, u32)) -> Mount {
        choose(parse(LAPTOP), Path::new(path), number).expect("mount")
    }

    #[test]
    fn the_longest_mount_point_wins() {
        assert_eq!(holding("/var/lib/x", (259, 2)).source, "/dev/nvme0n1p2");
        let home = holding("/home/me/data", (0, 45));
        assert_eq!((home.filesystem.as_str(), home.source.as_str()), ("btrfs", "/dev/mapper/home"));
        assert!(home.has_option("compress") && !home.has_option("comp"));
    }

    #[test]
    fn the_later_of_two_mounts_at_a_point_hides_the_earlier() {
        assert_eq!(holding("/dev/shm/file", (0, 27)).options, "rw,relatime,size=24683656k");
        // Neither number is known: still the upper one.
        assert_eq!(holding("/dev/shm/file", (0, 99)).number, (0, 27));
    }

    #[test]
    fn escapes_and_optional_fields_are_read() {
        let mount = holding("/mnt/my disk/file", (8, 17));
        assert_eq!(mount.mount_point, Path::new("/mnt/my disk"));
        assert_eq!(mount.filesystem, "ntfs3");
        assert_eq!(unescape("a\\134b\\"), "a\\b\\");
    }

    #[test]
    fn types_are_distinguished() {
        let kind = |path: &str, number| holding(path, number).kind();
        assert_eq!(kind("/dev/shm", (0, 27)), FilesystemKind::Memory);
        assert_eq!(kind("/net/data", (0, 60)), FilesystemKind::Network);
        assert_eq!(kind("/home/me/cloud", (0, 61)), FilesystemKind::Fuse);
        assert_eq!(kind("/var/lib/docker/overlay2/abc/merged", (0, 62)), FilesystemKind::Overlay);
        assert_eq!(kind("/", (259, 2)), FilesystemKind::Block);
    }

    #[test]
    fn a_broken_line_is_left_out() {
        assert_eq!(parse("\nnonsense\n36 35 98:0 / /mnt rw\n36 35 98 / /m rw - ext4 /dev/a rw\n"), vec![]);
    }

    #[test]
    fn this_machine_has_a_root() {
        let root = Mount::holding(Path::new("/")).expect("read").expect("mount");
        assert_eq!(root.mount_point, Path::new("/"));
        assert_eq!(
            Mount::holding(Path::new("/proc/self/stat")).expect("read").expect("mount").kind(),
            FilesystemKind::Kernel
        );
    }
}
