//! Probes of the machine's capabilities, each by one real use.
//!
//! An accepted call is not enough: a direct read must have come from the device, and advice must be
//! in force. Probes use nameless files in the given directory and groups that they remove, so that
//! nothing is left over, and change no setting.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use pagewise_model::method::options::{MethodOption, OptionEntry, Since};
use pagewise_model::watched::{Missing, ObservationKind};
use pagewise_model::{Access, ProcessCounters};
use pagewise_sys::{Advice, AnonymousMemory, FileMapping, Ring, RingOptions, pread_dontcache};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::device::BlockDevice;
use crate::environment::direct_alignment;
use crate::files::FileKey;
use crate::kernel_files;

use crate::process::{self, mapping};
use crate::{cache, scratch, watch};

mod limits;

pub use limits::{probe_device_cap, probe_drop_caches, probe_memory_limit, probe_numa, probe_settings};

/// Size of the probe files.
const FILE_BYTES: usize = 64 << 10;
/// Huge pages up to this size are tried; some ARM kernels have 512 MiB.
const HUGE_BYTES_MAX: usize = 32 << 20;

/// State of a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The capability works.
    Available,
    /// The attempt was refused, or had no effect.
    Unavailable {
        /// The refused call, with errno or the evidence.
        reason: String,
    },
    /// The capability could not be tried, or not be verified.
    Unknown {
        /// The reason.
        reason: String,
    },
}

/// A capability of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Name in methods or in the manual.
    pub name: &'static str,
    /// State.
    pub state: Availability,
    /// Further findings; may be empty.
    pub detail: String,
}

impl Capability {
    fn available(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: Availability::Available, detail: detail.into() }
    }

    fn unavailable(name: &'static str, reason: impl Into<String>) -> Self {
        Self { name, state: Availability::Unavailable { reason: reason.into() }, detail: String::new() }
    }

    /// Available with these findings, or unavailable for this reason.
    fn tried(name: &'static str, tried: Result<String, String>) -> Self {
        tried.map_or_else(|reason| Self::unavailable(name, reason), |detail| Self::available(name, detail))
    }

    fn unknown(name: &'static str, reason: impl Into<String>) -> Self {
        Self { name, state: Availability::Unknown { reason: reason.into() }, detail: String::new() }
    }

    /// True if it works.
    pub fn is_available(&self) -> bool {
        self.state == Availability::Available
    }

    /// Reason that it does not work or is unknown.
    pub fn reason(&self) -> Option<&str> {
        match &self.state {
            Availability::Available => None,
            Availability::Unavailable { reason } | Availability::Unknown { reason } => Some(reason),
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, text) = match &self.state {
            Availability::Available => ("available", &self.detail),
            Availability::Unavailable { reason } => ("unavailable", reason),
            Availability::Unknown { reason } => ("unknown", reason),
        };
        write!(formatter, "{}: {word}", self.name)?;
        if text.is_empty() { Ok(()) } else { write!(formatter, " ({text})") }
    }
}

/// Probe everything, for `doctor`; capabilities that depend on the filesystem are tried in
/// `directory`.
pub fn probe_all(directory: &Path) -> Vec<Capability> {
    let mut capabilities = vec![
        probe_mmap(directory),
        probe_populate_read(directory),
        probe_direct(directory),
        probe_dontcache(directory),
        probe_uring(directory),
        probe_cachestat(directory),
        probe_mincore(directory),
        probe_eviction(directory),
        probe_process_io(),
        probe_cpu_waits(),
        probe_smaps(directory),
        probe_device_counters(directory),
        probe_huge_pages(directory),
        probe_memory_limit(),
        probe_device_cap(directory),
    ];
    capabilities.extend(probe_settings(directory));
    capabilities.extend([probe_numa(), probe_drop_caches()]);
    capabilities
}

/// Observations of another program, which `inspect`, `record` and `advise` need.
pub fn observations() -> Vec<Capability> {
    const KINDS: [(ObservationKind, &str, &str); 5] = [
        (ObservationKind::Faults, "page faults of programs", "inspect, advise --windows"),
        (ObservationKind::MinorFaultWaits, "waits in minor faults", "inspect"),
        (ObservationKind::Calls, "calls of programs", "inspect, record, advise"),
        (ObservationKind::PageCache, "page cache of programs", "inspect: bytes that come in"),
        (ObservationKind::MappedAround, "pages mapped around", "inspect: bytes that are never touched"),
    ];
    let missing = watch::missing_observations();
    let of = |(kind, name, detail): (ObservationKind, &'static str, &str)| match &missing {
        Err(reason) => Capability::unavailable(name, reason.clone()),
        Ok(missing) => match Missing::of(missing, kind) {
            Some(missing) => Capability::unavailable(name, missing.reason.clone()),
            None => Capability::available(name, detail),
        },
    };
    KINDS.map(of).to_vec()
}

/// The options that an older kernel accepts and ignores: only its version shows whether they have
/// an effect.
pub fn options() -> Vec<Capability> {
    let ignorable = MethodOption::TABLE.iter().filter(|entry| matches!(entry.since, Since::Ignored(_)));
    let named = |entry: &OptionEntry| {
        let capability = of_kernel(entry)?;
        // By the name of its advice, as the others have those of their calls.
        let name = if entry.word == "noreuse" { "POSIX_FADV_NOREUSE" } else { capability.name };
        Some(Capability { name, ..capability })
    };
    ignorable.filter_map(named).collect()
}

/// Capability of the kernel's version to have an option; `None`: all have it.
fn of_kernel(entry: &OptionEntry) -> Option<Capability> {
    let version = entry.since.version()?;
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    Some(match Since::Ignored(version).acts_on(&release) {
        true => Capability::available(entry.word, format!("needs Linux {version}")),
        false => Capability::unavailable(
            entry.word,
            format!("it came with Linux {version}; this is Linux {release}"),
        ),
    })
}

/// The native access tried in `directory`.
pub fn probe_access(access: Access, directory: &Path) -> Capability {
    match access {
        Access::Mmap => probe_mmap(directory),
        Access::Uring => probe_uring(directory),
        other => Capability::available(other.name(), ""),
    }
}

/// An option tried in `directory`, or at least its kernel's version; `None`: every kernel has it,
/// and no filesystem refuses it.
pub fn probe_option(entry: &OptionEntry, directory: &Path) -> Option<Capability> {
    match entry.option {
        MethodOption::Direct => Some(probe_direct(directory)),
        MethodOption::DontCache => Some(probe_dontcache(directory)),
        MethodOption::HugePage => Some(probe_huge_pages(directory)),
        MethodOption::PopulateRead => Some(probe_populate_read(directory)),
        _ => of_kernel(entry),
    }
}

/// Make a file of known bytes, which are on the device if there is one.
fn probe_file(directory: &Path) -> io::Result<File> {
    let file = scratch::nameless_file(directory)?;
    file.write_all_at(&pattern(), 0)?;
    file.sync_all()?;
    Ok(file)
}

fn pattern() -> Vec<u8> {
    (0..FILE_BYTES).map(|index| (index / 512) as u8 ^ index as u8).collect()
}

/// Run `probe` with a file, or report that there is none.
fn with_file(
    name: &'static str,
    directory: &Path,
    probe: impl FnOnce(&File) -> Result<Capability, String>,
) -> Capability {
    match probe_file(directory) {
        Ok(file) => probe(&file).unwrap_or_else(|reason| Capability::unavailable(name, reason)),
        Err(error) => {
            Capability::unknown(name, format!("cannot make a file in {}: {error}", directory.display()))
        }
    }
}

/// A mapped file shows its bytes.
pub fn probe_mmap(directory: &Path) -> Capability {
    with_file("mmap", directory, |file| {
        let mapping = FileMapping::new(file, FILE_BYTES, false).map_err(|error| format!("mmap: {error}"))?;
        if mapping.bytes() != pattern() {
            return Err("the mapping does not show the written bytes".to_string());
        }
        Ok(Capability::available("mmap", ""))
    })
}

/// MADV_POPULATE_READ.
pub fn probe_populate_read(directory: &Path) -> Capability {
    let name = "MADV_POPULATE_READ";
    with_file(name, directory, |file| {
        let mapping = FileMapping::new(file, FILE_BYTES, false).map_err(|error| format!("mmap: {error}"))?;
        mapping
            .advise(0..FILE_BYTES, Advice::PopulateRead)
            .map_err(|error| format!("madvise: {error}; it came with Linux 5.14"))?;
        Ok(Capability::available(name, ""))
    })
}

/// One aligned direct read with all bytes from the device.
pub fn probe_direct(directory: &Path) -> Capability {
    let name = "O_DIRECT";
    with_file(name, directory, |file| {
        let direct = File::options()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(scratch::reopen_path(file))
            .map_err(|error| format!("open: {error}"))?;
        let mut buffer = AnonymousMemory::new(FILE_BYTES).map_err(|error| format!("mmap: {error}"))?;
        let pid = std::process::id();
        let before = process::totals(pid);
        let read = direct
            .read_at(buffer.bytes_mut(), 0)
            .map_err(|error| format!("accepted at open, but pread: {error}"))?;
        let done = ProcessCounters::difference(&before, &process::totals(pid));
        if read != FILE_BYTES || buffer.bytes()[..FILE_BYTES] != pattern() {
            return Err(format!(
                "pread returned {read} of {FILE_BYTES} bytes, or bytes other than the written ones"
            ));
        }
        match done.device_read_bytes {
            Some(bytes) if bytes >= FILE_BYTES as u64 => {
                let alignment = direct_alignment(&direct)
                    .map_or_else(|| "alignment unknown".to_string(), |bytes| format!("alignment {bytes}"));
                Ok(Capability::available(name, alignment))
            }
            Some(bytes) => Err(format!(
                "accepted, but served from memory: the device delivered {bytes} of {FILE_BYTES} bytes"
            )),
            None => Ok(Capability::unknown(
                name,
                "accepted, but /proc/self/io does not show whether the device delivered the bytes",
            )),
        }
    })
}

/// preadv2(2) with RWF_DONTCACHE.
pub fn probe_dontcache(directory: &Path) -> Capability {
    let name = "RWF_DONTCACHE";
    with_file(name, directory, |file| {
        let mut bytes = vec![0; FILE_BYTES];
        match pread_dontcache(file, &mut bytes, 0) {
            Ok(read) if bytes[..read] == pattern()[..read] && read > 0 => Ok(Capability::available(name, "")),
            Ok(read) => Err(format!("preadv2 returned {read} bytes that differ from the written ones")),
            Err(Errno::OPNOTSUPP) => Err(format!(
                "preadv2: {}; it came with Linux 6.14, and only some filesystems support it",
                Errno::OPNOTSUPP
            )),
            Err(errno) => Err(format!("preadv2: {errno}")),
        }
    })
}

/// A ring with a read.
pub fn probe_uring(directory: &Path) -> Capability {
    let name = "io_uring";
    with_file(name, directory, |file| {
        let duplicate = file.try_clone().map_err(|error| format!("dup: {error}"))?;
        let options = RingOptions { depth: 1, slot_bytes: FILE_BYTES, fixed: false, dsync: false };
        let mut ring = Ring::new(duplicate.into(), options)
            .map_err(|refused| uring_reason(refused.call, &refused.error, disabled_setting()))?;
        ring.queue_read(0, 0, FILE_BYTES);
        ring.submit(1).map_err(|error| uring_reason("io_uring_enter", &error, disabled_setting()))?;
        match ring.complete() {
            Some(completion)
                if completion.result == FILE_BYTES as i32 && ring.buffer(0)[..FILE_BYTES] == pattern() =>
            {
                Ok(Capability::available(name, ""))
            }
            Some(completion) => Err(format!("a read ended with {}", completion.result)),
            None => Err("a read did not complete".to_string()),
        }
    })
}

fn disabled_setting() -> Option<u32> {
    kernel_files::number("/proc/sys/kernel/io_uring_disabled")
}

/// kernel.io_uring_disabled (Documentation/admin-guide/sysctl/kernel.rst).
fn uring_reason(call: &str, error: &io::Error, disabled: Option<u32>) -> String {
    let why = match (error.raw_os_error().map(Errno::from_raw_os_error), disabled) {
        (_, Some(2)) => "; kernel.io_uring_disabled is 2: no user may use it",
        (Some(Errno::PERM), Some(1)) => {
            "; kernel.io_uring_disabled is 1: only its group and CAP_SYS_ADMIN may use it"
        }
        (Some(Errno::PERM), _) => "; a seccomp filter, as in containers, may forbid it",
        (Some(Errno::NOSYS), _) => "; the kernel was built without it, or a seccomp filter hides it",
        _ => "",
    };
    format!("{call}: {error}{why}")
}

/// cachestat(2) of a probe file.
pub fn probe_cachestat(directory: &Path) -> Capability {
    let name = "cachestat";
    with_file(name, directory, |file| {
        use std::os::fd::AsFd;
        match pagewise_sys::residency::cachestat(file.as_fd(), 0, FILE_BYTES as u64) {
            Ok(_) => Ok(Capability::available(name, "for files that this user owns or may write")),
            Err(error) => Err(format!("{error}; it came with Linux 6.5")),
        }
    })
}

/// mincore(2) of a probe file, before and after it is evicted.
pub fn probe_mincore(directory: &Path) -> Capability {
    let name = "mincore";
    with_file(name, directory, |file| {
        use std::os::fd::AsFd;
        let honest = pagewise_sys::residency::mincore_is_honest(file.as_fd());
        let pages =
            pagewise_sys::residency::mincore_pages(file, FILE_BYTES).map_err(|error| error.to_string())?;
        match honest {
            Ok(true) if pages > 0 => {
                Ok(Capability::available(name, "truthful for files that this user owns or may write"))
            }
            Ok(true) => Err("it reports no page of a file that was just written".to_string()),
            Ok(false) => Err("it reports everything as resident to this user".to_string()),
            Err(error) => Err(format!("fstat: {error}")),
        }
    })
}

/// posix_fadvise(2) that evicts a probe file.
pub fn probe_eviction(directory: &Path) -> Capability {
    let name = "eviction";
    with_file(name, directory, |file| match cache::evict(file, FILE_BYTES as u64) {
        Ok(evicted) if evicted.after.resident_bytes == Some(0) => {
            Ok(Capability::available(name, format!("proven by {}", evicted.after.source)))
        }
        Ok(evicted) => Ok(Capability::unknown(name, evicted.after.source)),
        Err(error) => Err(error.to_string()),
    })
}

/// /proc/PID/io with read_bytes.
pub fn probe_process_io() -> Capability {
    let name = "/proc/PID/io";
    let counters = process::totals(std::process::id());
    match (counters.device_read_bytes, counters.read_call_bytes) {
        (Some(_), Some(_)) => Capability::available(name, ""),
        (None, Some(_)) => {
            Capability::unavailable(name, "no read_bytes; the kernel lacks CONFIG_TASK_IO_ACCOUNTING")
        }
        _ => Capability::unavailable(name, "missing or unreadable"),
    }
}

/// /proc/PID/schedstat that counts.
pub fn probe_cpu_waits() -> Capability {
    let name = "/proc/PID/schedstat";
    let counters = process::totals(std::process::id());
    match (counters.cpu_ns, counters.run_queue_ns) {
        (Some(1..), Some(_)) => Capability::available(name, ""),
        _ => Capability::unavailable(
            name,
            "missing or all zeros; the kernel lacks CONFIG_SCHED_INFO: samples that wait for a CPU cannot be distinguished from \
             false times",
        ),
    }
}

/// /proc/PID/smaps that shows advice on a mapping.
pub fn probe_smaps(directory: &Path) -> Capability {
    let name = "/proc/PID/smaps";
    with_file(name, directory, |file| {
        let key = FileKey::of(file).map_err(|error| error.to_string())?;
        let mapped = FileMapping::new(file, FILE_BYTES, false).map_err(|error| format!("mmap: {error}"))?;
        mapped.advise(0..FILE_BYTES, Advice::Random).map_err(|error| format!("madvise: {error}"))?;
        let state = mapping(std::process::id(), &key).map_err(|error| error.to_string())?;
        let flags = state.ok_or("it does not show an existing mapping")?.vm_flags;
        match flags.ok_or("it has no VmFlags")? {
            flags if flags.split(' ').any(|flag| flag == "rr") => Ok(Capability::available(name, "")),
            flags => Err(format!("MADV_RANDOM does not show in its VmFlags '{flags}'")),
        }
    })
}

/// Counters of the block device behind the directory.
pub fn probe_device_counters(directory: &Path) -> Capability {
    let name = "device counters";
    let found = BlockDevice::behind(directory).map_err(|reason| reason.to_string());
    let counts = found.and_then(|device| match device.counters() {
        Some(_) => Ok(device.name + &device.note.map(|note| format!(", {note}")).unwrap_or_default()),
        None => Err(format!("{} has no readable stat file", device.name)),
    });
    Capability::tried(name, counts)
}

/// A mapping with MADV_HUGEPAGE that got huge pages according to smaps; madvise(2) succeeds even on
/// filesystems that never have any.
pub fn probe_huge_pages(directory: &Path) -> Capability {
    let name = "huge pages of files";
    let settings = Path::new("/sys/kernel/mm/transparent_hugepage");
    let Some(huge_bytes) = kernel_files::number::<usize>(settings.join("hpage_pmd_size")) else {
        return Capability::unavailable(name, "the kernel lacks CONFIG_TRANSPARENT_HUGEPAGE");
    };
    if huge_bytes > HUGE_BYTES_MAX {
        return Capability::unknown(
            name,
            format!("a huge page has {huge_bytes} bytes, too many for a probe"),
        );
    }
    with_file(name, directory, |file| {
        let len = 2 * huge_bytes;
        file.write_all_at(&vec![1; len], 0).map_err(|error| format!("pwrite: {error}"))?;
        // Folios get their size when they are read; if they stay in memory, the size of the writes.
        let _ = cache::evict(file, len as u64);
        let mapped = FileMapping::new(file, len, false).map_err(|error| format!("mmap: {error}"))?;
        mapped
            .advise(0..len, Advice::HugePage)
            .map_err(|error| format!("madvise(MADV_HUGEPAGE): {error}"))?;
        let ones = mapped.bytes().iter().step_by(4096).filter(|byte| **byte == 1).count();
        let key = FileKey::of(file).map_err(|error| error.to_string())?;
        let state =
            mapping(std::process::id(), &key).map_err(|error| format!("/proc/self/smaps: {error}"))?;
        match state.and_then(|state| state.huge_mapped_bytes) {
            Some(0) => Err(format!("madvise is accepted, but none of {len} bytes was mapped by a huge page")),
            Some(bytes) if ones > 0 => {
                Ok(Capability::available(name, format!("{bytes} of {len} bytes with MADV_HUGEPAGE")))
            }
            _ => Ok(Capability::unknown(name, "/proc/self/smaps does not show it")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::Mount;

    #[test]
    fn nothing_is_left_of_the_probes() {
        let directory = tempfile::tempdir().expect("directory");
        let capabilities = probe_all(directory.path());
        assert_eq!(std::fs::read_dir(directory.path()).expect("list").count(), 0);
        for capability in &capabilities {
            println!("{capability}");
            assert!(capability.reason() != Some(""), "{capability:?}");
        }
        let names: std::collections::HashSet<_> =
            capabilities.iter().map(|capability| capability.name).collect();
        assert_eq!(names.len(), capabilities.len());
        assert!(capabilities[0].is_available(), "{}", capabilities[0]);
    }

    #[test]
    fn direct_reads_of_memory_are_no_direct_reads() {
        let shm = Path::new("/dev/shm");
        if !Mount::holding(shm).is_ok_and(|mount| mount.is_some_and(|mount| mount.filesystem == "tmpfs")) {
            println!("skipped: tmpfs: /dev/shm is no tmpfs");
            return;
        }
        let capability = probe_direct(shm);
        match &capability.state {
            // Linux 6.6 accepts O_DIRECT on tmpfs; before, open(2) refuses it.
            Availability::Unavailable { reason } => {
                assert!(reason.contains("served from memory") || reason.starts_with("open: "), "{reason}");
            }
            Availability::Unknown { reason } => println!("skipped: direct-io: {reason}"),
            Availability::Available => panic!("{capability}"),
        }
    }

    #[test]
    fn without_a_directory_nothing_is_known() {
        for capability in [probe_mmap, probe_direct, probe_uring].map(|probe| probe(Path::new("/nowhere"))) {
            assert!(matches!(capability.state, Availability::Unknown { .. }), "{capability}");
        }
    }

    #[test]
    fn a_ring_refused_says_who_refused() {
        let refused = |errno: Errno, disabled| uring_reason("io_uring_setup", &errno.into(), disabled);
        assert!(refused(Errno::PERM, Some(2)).ends_with("no user may use it"));
        assert!(refused(Errno::PERM, Some(1)).ends_with("CAP_SYS_ADMIN may use it"));
        assert!(refused(Errno::PERM, Some(0)).contains("seccomp"));
        assert!(refused(Errno::NOSYS, None).contains("built without"));
        assert!(refused(Errno::NOMEM, Some(0)).starts_with("io_uring_setup: "));
    }
}
