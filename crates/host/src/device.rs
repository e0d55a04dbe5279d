//! The block device of a path, and its counters: /sys/dev/block and its `stat` file (Documentation/block/stat.rst).
//!
//! Counters are those of the whole disk, because use of another partition affects it too.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::kernel_files::{self, chosen};
use crate::mounts::{FilesystemKind, Mount};
use crate::{btrfs, overlay};

/// Sector size of the block layer's counters, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;

/// A disk, or a device that represents one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its name below /dev, such as `nvme0n1`.
    pub name: String,
    /// The partition of it that holds the filesystem, such as `nvme0n1p2`.
    pub partition: Option<String>,
    /// The model that it reports.
    pub model: Option<String>,
    /// True if it reports that it rotates.
    pub rotational: Option<bool>,
    /// I/O scheduler in force.
    pub scheduler: Option<String>,
    /// Readahead of its queue.
    pub readahead_bytes: Option<u64>,
    /// Size of a logical block, which O_DIRECT must respect.
    pub logical_block_bytes: Option<u64>,
    /// Other layers between the filesystem and the medium, one sentence.
    pub note: Option<String>,
    number: (u32, u32),
    sysfs: PathBuf,
}

/// Reason that the block device is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoDevice(pub String);

impl BlockDevice {
    /// Find the device of the filesystem that holds `path`; for overlayfs, of the layer that holds it.
    pub fn behind(path: &Path) -> Result<Self, NoDevice> {
        let (_, mount, number) = real_path(path)?;
        Self::of_mount(Path::new("/sys"), &mount, number)
    }

    /// Major and minor number of the whole device, as used by a throttle, which every read of the filesystem passes
    /// through. For a mapped or loop device its own, for a partition its disk's.
    pub fn number(&self) -> (u32, u32) {
        self.number
    }

    fn of_mount(sys: &Path, mount: &Mount, number: (u32, u32)) -> Result<Self, NoDevice> {
        if mount.filesystem == "btrfs"
            && let Some(devices) = btrfs::directory(sys, &mount.source).map(|found| btrfs::devices(&found))
            && devices.len() > 1
        {
            return Err(NoDevice(format!("btrfs spreads its files over {}", devices.join(", "))));
        }
        if let Some(device) = Self::numbered(sys, number) {
            return Ok(device);
        }
        // The device number of files on btrfs, bcachefs and others belongs to no device; the mount names the device.
        if let Some(device) = fs::metadata(&mount.source)
            .ok()
            .filter(|source| mount.source.starts_with("/dev/") && source.file_type().is_block_device())
            .map(|source| (rustix::fs::major(source.rdev()), rustix::fs::minor(source.rdev())))
            .and_then(|number| Self::numbered(sys, number))
        {
            return Ok(device);
        }
        Err(NoDevice(match mount.kind() {
            FilesystemKind::Memory => format!("{} keeps its files in memory", mount.filesystem),
            FilesystemKind::Network => format!("{} gets its bytes from another machine", mount.filesystem),
            FilesystemKind::Fuse => format!("{} is served by a program", mount.filesystem),
            FilesystemKind::Overlay => format!("{} hides which filesystem holds a file", mount.filesystem),
            FilesystemKind::Kernel => format!("{} is made up by the kernel", mount.filesystem),
            FilesystemKind::Block => format!("{} does not say which devices it uses", mount.filesystem),
        }))
    }

    fn numbered(sys: &Path, (major, minor): (u32, u32)) -> Option<Self> {
        let node = fs::canonicalize(sys.join(format!("dev/block/{major}:{minor}"))).ok()?;
        let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        // A partition is below its disk (Documentation/ABI/stable/sysfs-block).
        let (disk, partition, number) = if node.join("partition").exists() {
            let disk = node.parent()?.to_path_buf();
            let number = kernel_files::device_number(&kernel_files::text(disk.join("dev"))?)?;
            (disk, name(&node), number)
        } else {
            (node, None, (major, minor))
        };
        let queue = disk.join("queue");
        let scheduler = kernel_files::text(queue.join("scheduler"));
        Some(Self {
            name: name(&disk)?,
            partition,
            model: kernel_files::text(disk.join("device/model")),
            rotational: kernel_files::number::<u8>(queue.join("rotational")).map(|flag| flag == 1),
            scheduler: scheduler.map(|text| chosen(&text).unwrap_or(&text).to_string()),
            readahead_bytes: kernel_files::number::<u64>(queue.join("read_ahead_kb"))
                .and_then(|kib| kib.checked_mul(1024)),
            logical_block_bytes: kernel_files::number(queue.join("logical_block_size")),
            note: note(&disk),
            number,
            sysfs: disk,
        })
    }

    /// Its counters since it appeared.
    pub fn counters(&self) -> Option<DeviceCounters> {
        DeviceCounters::parse(&kernel_files::text(self.sysfs.join("stat"))?)
    }
}

/// Overlays may be stacked, as with containers in containers; the kernel stacks two at most.
const OVERLAYS_MAX: u32 = 4;

/// The path below all overlays, its mount, and the device number of its files.
pub(crate) fn real_path(path: &Path) -> Result<(PathBuf, Mount, (u32, u32)), NoDevice> {
    let mut path = path.to_path_buf();
    for _ in 0..OVERLAYS_MAX {
        let metadata =
            fs::metadata(&path).map_err(|error| NoDevice(format!("stat of {}: {error}", path.display())))?;
        let mount = Mount::holding(&path)
            .map_err(|error| NoDevice(format!("/proc/self/mountinfo: {error}")))?
            .ok_or_else(|| NoDevice("no mount in /proc/self/mountinfo holds the path".to_string()))?;
        if mount.filesystem != "overlay" {
            let number = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
            return Ok((path, mount, number));
        }
        path = overlay::layer_path(&mount, &path).map_err(NoDevice)?;
    }
    Err(NoDevice("more overlays lie on each other than Linux allows".to_string()))
}

/// A description of a device's layers, for one made of other devices.
fn note(disk: &Path) -> Option<String> {
    let below = fs::read_dir(disk.join("slaves")).ok().map(|entries| {
        let mut names: Vec<_> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names.join(", ")
    });
    let over = below.filter(|names| !names.is_empty()).unwrap_or_else(|| "unknown devices".to_string());
    if disk.join("dm").exists() {
        let name = kernel_files::text(disk.join("dm/name")).unwrap_or_else(|| "without a name".to_string());
        Some(format!("device mapper '{name}' over {over}"))
    } else if disk.join("loop").exists() {
        let file = kernel_files::text(disk.join("loop/backing_file"));
        Some(format!("loop device over the file {}", file.as_deref().unwrap_or("(unknown)")))
    } else if disk.join("md").exists() {
        Some(format!("software RAID over {over}"))
    } else if disk.file_name().is_some_and(|name| name.to_string_lossy().starts_with("zram")) {
        Some("compressed memory".to_string())
    } else {
        None
    }
}

/// Running totals of a block device, over all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Read requests completed.
    pub read_requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Sum of the durations of read requests.
    pub read_ns: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl DeviceCounters {
    /// Parse the text of a `stat` file: reads, merged, sectors, ms, then the same for writes, then more.
    pub fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<u64> = stat.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self {
            read_requests: *fields.first()?,
            read_bytes: fields.get(2)?.checked_mul(SECTOR_BYTES)?,
            read_ns: fields.get(3)?.checked_mul(NS_PER_MS)?,
            written_bytes: fields.get(6)?.checked_mul(SECTOR_BYTES)?,
        })
    }

    /// Difference of two readings; `None` if the device was replaced between them.
    pub fn difference(before: &Self, after: &Self) -> Option<Self> {
        Some(Self {
            read_requests: after.read_requests.checked_sub(before.read_requests)?,
            read_bytes: after.read_bytes.checked_sub(before.read_bytes)?,
            read_ns: after.read_ns.checked_sub(before.read_ns)?,
            written_bytes: after.written_bytes.checked_sub(before.written_bytes)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_files_of_old_and_new_kernels() {
        // 11 fields until Linux 4.17, 15 with discards, 17 with flushes since 5.5.
        for text in [
            "   58249     7571  7227074    64734     9046    12084  3946936    26177        0    17792    \
                93504",
            "   58249     7571  7227074    64734     9046    12084  3946936    26177        0    17792    \
                93504     3854        3  2676384     2573      862       19",
        ] {
            assert_eq!(
                DeviceCounters::parse(text),
                Some(DeviceCounters {
                    read_requests: 58249,
                    read_bytes: 7_227_074 * 512,
                    read_ns: 64_734_000_000,
                    written_bytes: 3_946_936 * 512
                })
            );
        }
        assert_eq!(DeviceCounters::parse(""), None);
        assert_eq!(DeviceCounters::parse("1 2 3 4 5 6"), None);
        assert_eq!(DeviceCounters::parse("1 2 x 4 5 6 7"), None);
    }

    #[test]
    fn a_counter_that_went_back_is_unknown() {
        let before = DeviceCounters { read_requests: 5, read_bytes: 5, read_ns: 5, written_bytes: 5 };
        let after = DeviceCounters { read_bytes: 4, ..before };
        assert_eq!(DeviceCounters::difference(&before, &after), None);
        assert_eq!(DeviceCounters::difference(&before, &before).expect("same").read_bytes, 0);
    }

    /// A /sys with a disk, a partition of it, a mapped device and a loop device.
    fn fake_sys() -> tempfile::TempDir {
        let sys = tempfile::tempdir().expect("directory");
        let write = |path: &str, text: &str| {
            let path = sys.path().join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("directory");
            fs::write(path, text).expect("write");
        };
        let disk = "devices/pci0000:00/nvme/nvme0/nvme0n1";
        write(&format!("{disk}/dev"), "259:0\n");
        write(&format!("{disk}/stat"), "1 0 8 0 2 0 16 0 0 0 0");
        write(&format!("{disk}/device/model"), "Fast Disk 9000          \n");
        write(&format!("{disk}/queue/rotational"), "0\n");
        write(&format!("{disk}/queue/scheduler"), "[none] mq-deadline\n");
        write(&format!("{disk}/queue/read_ahead_kb"), "128\n");
        write(&format!("{disk}/queue/logical_block_size"), "4096\n");
        write(&format!("{disk}/nvme0n1p2/partition"), "2\n");
        let mapped = "devices/virtual/block/dm-0";
        write(&format!("{mapped}/dm/name"), "home\n");
        write(&format!("{mapped}/slaves/nvme0n1p3/stat"), "0\n");
        write("devices/virtual/block/loop0/loop/backing_file", "/tmp/image\n");
        fs::create_dir_all(sys.path().join("dev/block")).expect("directory");
        for (number, node) in [
            ("259:0", disk.to_string()),
            ("259:2", format!("{disk}/nvme0n1p2")),
            ("253:0", mapped.to_string()),
            ("7:0", "devices/virtual/block/loop0".to_string()),
        ] {
            let link = sys.path().join("dev/block").join(number);
            std::os::unix::fs::symlink(sys.path().join(node), link).expect("link");
        }
        sys
    }

    #[test]
    fn a_partition_leads_to_its_disk() {
        let sys = fake_sys();
        let device = BlockDevice::numbered(sys.path(), (259, 2)).expect("device");
        assert_eq!((device.name.as_str(), device.partition.as_deref()), ("nvme0n1", Some("nvme0n1p2")));
        assert_eq!(device.model.as_deref(), Some("Fast Disk 9000"));
        assert_eq!(device.rotational, Some(false));
        assert_eq!(device.scheduler.as_deref(), Some("none"));
        assert_eq!(device.readahead_bytes, Some(128 * 1024));
        assert_eq!(device.counters().expect("stat").written_bytes, 8192);
        // A partition cannot be throttled.
        assert_eq!(device.number(), (259, 0));
        let disk = BlockDevice::numbered(sys.path(), (259, 0)).expect("disk");
        assert_eq!((disk.partition.as_deref(), disk.number()), (None, (259, 0)));
    }

    #[test]
    fn a_device_made_of_others_says_so() {
        let sys = fake_sys();
        let mapped = BlockDevice::numbered(sys.path(), (253, 0)).expect("device");
        assert_eq!(mapped.note.as_deref(), Some("device mapper 'home' over nvme0n1p3"));
        assert_eq!(mapped.number(), (253, 0));
        assert_eq!((mapped.model, mapped.rotational), (None, None));
        let image = BlockDevice::numbered(sys.path(), (7, 0)).expect("device");
        assert_eq!(image.note.as_deref(), Some("loop device over the file /tmp/image"));
        assert_eq!(BlockDevice::numbered(sys.path(), (9, 9)), None);
    }

    #[test]
    fn a_filesystem_without_a_device_says_why() {
        match BlockDevice::behind(Path::new("/proc")) {
            Err(NoDevice(reason)) => assert_eq!(reason, "proc is made up by the kernel"),
            Ok(device) => panic!("/proc lies on {device:?}"),
        }
    }
}
