//! Detection of the environment of a run: machine, kernel, filesystem, device, and the settings
//! that affect results.
//!
//! Nothing is changed. Facts that the machine does not report stay unknown.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pagewise_model::{Bytes, CpuList, Environment, format};
use pagewise_sys::WallClock;
use rustix::fs::{AtFlags, StatxFlags};

use crate::boot;
use crate::container::container;
use crate::counters::CpuTicks;
use crate::damon;
use crate::device::BlockDevice;
use crate::kernel_files::{self, chosen, field, major_minor};
use crate::memory::Memory;
use crate::mounted;
use crate::mounts::{FilesystemKind, Mount};
use crate::scratch;
use crate::settings::{Readahead, mglru};

/// Examine the machine and the filesystem that holds `path`, a file or a directory.
pub fn detect(path: &Path) -> Environment {
    let memory = Memory::read();
    let cpuinfo = kernel_files::text("/proc/cpuinfo").unwrap_or_default();
    let mount = Mount::holding(path).ok().flatten();
    let number = fs::metadata(path).ok().map(|metadata| major_minor(metadata.dev()));
    let device = BlockDevice::behind(path);
    let known = device.as_ref().ok();
    let uname = rustix::system::uname();
    let clock = WallClock::read().ok();
    let mut environment = Environment {
        host_name: Some(boot::host_name()),
        boot_id: boot::boot(),
        kernel_command_line: kernel_files::text("/proc/cmdline"),
        kernel: uname.release().to_string_lossy().into_owned(),
        architecture: uname.machine().to_string_lossy().into_owned(),
        cpu_model: cpu_model(&cpuinfo).or_else(|| kernel_files::text("/proc/device-tree/model")),
        cpu_vulnerabilities: vulnerabilities(Path::new("/sys/devices/system/cpu/vulnerabilities")),
        variables: Some(affecting(std::env::vars_os())),
        cpus: cpus(),
        page_bytes: rustix::param::page_size() as u64,
        memory_bytes: memory.total_bytes.map(Bytes),
        // Of the group that this process is in, which the caller knows.
        memory_limit_bytes: None,
        container: container().map(str::to_string),
        clock: clock
            .map(|clock| if clock.is_synchronised { "synchronised" } else { "not synchronised" }.to_string()),
        clock_error_ns: clock.map(|clock| clock.max_error.as_nanos() as u64),
        memory_available_bytes: memory.available_bytes.map(Bytes),
        last_level_cache_bytes: last_level_cache(Path::new("/sys/devices/system/cpu/cpu0/cache")).map(Bytes),
        numa_nodes: kernel_files::text("/sys/devices/system/node/has_memory")
            .and_then(|list| Some(list.parse::<CpuList>().ok()?.numbers().len() as u32)),
        hypervisor: hypervisor(&cpuinfo),
        transparent_hugepage: kernel_files::text("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| chosen(&text).map(str::to_string)),
        mglru: kernel_files::text(mglru::FILE),
        swappiness: kernel_files::number("/proc/sys/vm/swappiness"),
        governor: kernel_files::text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        filesystem: mount.as_ref().map_or_else(|| "unknown".to_string(), |mount| mount.filesystem.clone()),
        mount_options: mount.as_ref().map(|mount| mount.options.clone()),
        device_number: number
            .map_or_else(|| "unknown".to_string(), |(major, minor)| format!("{major}:{minor}")),
        device: known.map(|device| device.partition.clone().unwrap_or_else(|| device.name.clone())),
        device_model: known.and_then(|device| device.model.clone()),
        device_rotational: known.and_then(|device| device.rotational),
        device_scheduler: known.and_then(|device| device.scheduler.clone()),
        readahead_bytes: readahead(path),
        direct_alignment_bytes: on_file_at(path, direct_alignment)
            .or_else(|| block_bytes_at(path).max(known.and_then(|device| device.logical_block_bytes))),
        atomic_write_bytes: on_file_at(path, atomic_write_bytes),
        worker_answer_ns: None,
        memory_control: None,
        device_control: None,
        pagewise_version: env!("CARGO_PKG_VERSION").to_string(),
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        warnings: Vec::new(),
    };
    let settings = Settings {
        steal_share: CpuTicks::read().and_then(|ticks| ticks.steal_share()),
        swap_used_bytes: memory.swap_used_bytes,
        damon_action: damon::reclaiming_action(Path::new("/sys"), Path::new("/proc")),
        mount,
        device_note: match device {
            Ok(device) => device.note,
            Err(reason) => {
                Some(format!("the block device is unknown, so its use by others is not visible: {reason}"))
            }
        },
    };
    environment.warnings = warnings(&environment, &settings);
    environment
}

/// CPUs that this process may run on (sched_getaffinity(2)).
fn cpus() -> u32 {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => set.count(),
        // EINVAL: more CPUs than the set of the system call wrapper holds.
        Err(_) => std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
    }
}

/// x86 and s390 name the model; ARM kernels give at best numbers of implementer and part.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let named = ["model name", "Model Name", "cpu model", "cpu", "machine"];
    if let Some(name) = named.iter().find_map(|name| field(cpuinfo, name)).filter(|name| !name.is_empty()) {
        return Some(name.to_string());
    }
    let (implementer, part) = (field(cpuinfo, "CPU implementer")?, field(cpuinfo, "CPU part")?);
    Some(format!("ARM implementer {implementer} part {part}"))
}

/// Vulnerabilities that affect the CPU, with their states, by name; `None` if the kernel does not
/// show them.
fn vulnerabilities(folder: &Path) -> Option<String> {
    let files = fs::read_dir(folder).ok()?.flatten();
    let affecting = files.filter_map(|file| {
        let state = kernel_files::text(file.path()).filter(|state| state != "Not affected")?;
        Some(format!("{}: {state}", file.file_name().to_string_lossy()))
    });
    let mut states: Vec<String> = affecting.collect();
    states.sort_unstable();
    Some(states.join("; "))
}

/// Beginnings of the names of variables that change how a worker loads, allocates or schedules.
const AFFECTING: [&str; 15] = [
    "GLIBC_TUNABLES",
    "GODEBUG",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_",
    "MALLOC_",
    "OMP_",
    "PYTHONHOME",
    "PYTHONMALLOC",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
    "PYTHON_GIL",
];

fn affecting(variables: impl Iterator<Item = (OsString, OsString)>) -> String {
    let shown = |(name, value): (OsString, OsString)| {
        let name = name.into_string().ok()?;
        let affects = AFFECTING.iter().any(|beginning| name.starts_with(beginning));
        affects.then(|| format!("{name}={}", value.to_string_lossy()))
    };
    let mut all: Vec<String> = variables.filter_map(shown).collect();
    all.sort_unstable();
    all.join("; ")
}

/// Hypervisor: the CPU flag, with the name in the firmware. On machines whose CPUs have no such
/// flag, only a firmware that is known to belong to a hypervisor counts.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    let flagged = flags.split_whitespace().any(|flag| flag == "hypervisor");
    let vendor = kernel_files::text("/sys/class/dmi/id/sys_vendor");
    let named = kernel_files::text("/sys/hypervisor/type")
        .or_else(|| kernel_files::text("/proc/device-tree/hypervisor/compatible"))
        .or_else(|| vendor.filter(|vendor| flagged || belongs_to_hypervisor(vendor)));
    named.or_else(|| flagged.then(|| "unknown hypervisor".to_string()))
}

fn belongs_to_hypervisor(vendor: &str) -> bool {
    ["QEMU", "VMware, Inc.", "Xen", "innotek GmbH", "Parallels", "Bochs"]
        .iter()
        .any(|known| vendor.starts_with(known))
}

/// Size of the largest cache of the highest level of CPU 0.
fn last_level_cache(directory: &Path) -> Option<u64> {
    let mut largest: Option<(u32, u64)> = None;
    for entry in fs::read_dir(directory).ok()?.flatten() {
        let path = entry.path();
        let level: Option<u32> = kernel_files::number(path.join("level"));
        let bytes = kernel_files::text(path.join("size")).and_then(|size| cache_bytes(&size));
        if let Some(cache) = level.zip(bytes) {
            largest = largest.max(Some(cache));
        }
    }
    largest.map(|(_, bytes)| bytes)
}

/// `36608K` or `32M`.
fn cache_bytes(text: &str) -> Option<u64> {
    let split = text.len().checked_sub(1)?;
    let factor = match text.get(split..)? {
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return text.parse().ok(),
    };
    text[..split].parse::<u64>().ok()?.checked_mul(factor)
}

/// Pass a text to every parser here.
#[cfg(test)]
pub(crate) fn read_anything(text: &str) {
    cpu_model(text);
    hypervisor(text);
    mglru::value(text);
    for line in text.lines() {
        cache_bytes(line);
    }
}

/// Readahead in force.
fn readahead(path: &Path) -> Option<Bytes> {
    Readahead::of(path).ok()?.read().ok()?.parse().ok().map(Bytes)
}

/// Alignment that O_DIRECT requires of offsets, lengths and memory for an open file: the larger of
/// STATX_DIOALIGN's two values (statx(2), Linux 6.1). `None`: the filesystem does not report it, or
/// has no O_DIRECT for this file.
pub fn direct_alignment(file: &File) -> Option<u64> {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    if stat.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return None;
    }
    let alignment = u64::from(stat.stx_dio_mem_align.max(stat.stx_dio_offset_align));
    (alignment > 0).then_some(alignment)
}

/// STATX_WRITE_ATOMIC (statx(2), Linux 6.11), which rustix does not name.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);

/// The most bytes that a write to an open file by RWF_ATOMIC may have; 0 if it takes none. `None`:
/// the kernel does not report it.
fn atomic_write_bytes(file: &File) -> Option<u64> {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, WRITE_ATOMIC).ok()?;
    let is_reported = stat.stx_mask & WRITE_ATOMIC.bits() != 0;
    is_reported.then_some(u64::from(stat.stx_atomic_write_unit_max))
}

/// A fact of files at a path; for a directory, of a nameless file in it.
fn on_file_at(path: &Path, fact: fn(&File) -> Option<u64>) -> Option<u64> {
    let file = if path.is_dir() { scratch::nameless_file(path) } else { File::open(path) };
    fact(&file.ok()?)
}

/// The largest block of a filesystem on a disk.
const MOST_BLOCK_BYTES: u64 = 64 << 10;

/// Size of the filesystem's blocks: where it is not the alignment of direct transfers, a
/// smaller one may be accepted and served through the page cache. Filesystems of a network report
/// sizes of messages.
fn block_bytes_at(path: &Path) -> Option<u64> {
    let block = rustix::fs::statvfs(path).ok()?.f_frsize;
    (block > 0).then_some(block.min(MOST_BLOCK_BYTES))
}

/// Settings that affect results and are not fields of the environment.
#[derive(Debug, Default)]
struct Settings {
    steal_share: Option<f64>,
    swap_used_bytes: Option<u64>,
    damon_action: Option<String>,
    mount: Option<Mount>,
    device_note: Option<String>,
}

/// One sentence for each peculiarity, with what to do about it.
fn warnings(environment: &Environment, settings: &Settings) -> Vec<String> {
    let mut warnings: Vec<String> =
        [mounted::proc_missing(), mounted::sys_missing()].into_iter().flatten().map(String::from).collect();
    if let Some(sentence) = settings.mount.as_ref().and_then(filesystem_warning) {
        warnings.push(sentence);
    }
    if let Some(note) = &settings.device_note {
        warnings.push(match &environment.device {
            Some(device) => format!("the device {device} is not the medium itself: {note}"),
            None => note.clone(),
        });
    }
    let command = environment.usual_readahead_command();
    let set_readahead = command.map_or_else(String::new, |command| format!("; try: {command}"));
    match environment.readahead_bytes {
        Some(Bytes(0)) => warnings.push(format!(
            "readahead is 0: sequential reads and plain mappings wait for every page{set_readahead}"
        )),
        Some(bytes) if bytes >= Bytes::mib(1) => warnings.push(format!(
            "readahead is {} (usually {}): a page fault of plain mmap may read that much{set_readahead}",
            format::bytes(bytes),
            format::bytes(Environment::USUAL_READAHEAD),
        )),
        _ => {}
    }
    if environment.transparent_hugepage.as_deref() == Some("always") {
        warnings.push(
            "transparent huge pages are 'always': memory may be mapped in huge pages without a request; try: \
             echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
                .to_string(),
        );
    }
    if let Some(state) = environment.mglru.as_deref().filter(|state| mglru::value(state) == Some("on")) {
        warnings.push(format!(
            "the multi-generational LRU is on ({state}): reclaim differs from kernels without it; compare with \
             --mglru on,off"
        ));
    }
    if let Some(action) = &settings.damon_action {
        warnings.push(format!(
            "DAMON is on ({action}): idle pages of a warm file may go while memory is free; stop it to measure without it"
        ));
    }
    if let Some(share) = settings.steal_share.filter(|share| *share > 0.01) {
        warnings.push(format!(
            "CPU steal is {:.1} % of the time since boot: the hypervisor gave it to others; measure when it is quiet",
            share * 100.0
        ));
    }
    if let Some(governor) = environment.governor.as_deref().filter(|governor| *governor != "performance") {
        warnings.push(format!(
            "the frequency governor is '{governor}': the CPU may be slow while it waits for storage; try: cpupower \
             frequency-set -g performance"
        ));
    }
    if let Some(bytes) = settings.swap_used_bytes.filter(|bytes| *bytes > 0) {
        warnings.push(format!(
            "{} MiB of swap are in use: memory is or was short; end what uses it",
            bytes.div_ceil(1 << 20)
        ));
    }
    if let Some(name) = &environment.hypervisor {
        warnings.push(format!(
            "virtual machine ({name}): its host may cache the device, and others share it; measure where the program \
             will run"
        ));
    }
    warnings
}

fn filesystem_warning(mount: &Mount) -> Option<String> {
    let name = &mount.filesystem;
    match mount.kind() {
        FilesystemKind::Memory => Some(format!(
            "{name} keeps its files in memory: nothing can be cold, and O_DIRECT \
            is served from memory"
        )),
        FilesystemKind::Network => Some(format!(
            "{name} gets its bytes from another machine, whose cache and \
            network are measured too"
        )),
        FilesystemKind::Fuse => {
            Some(format!("{name} is served by a program, whose speed and cache are measured too"))
        }
        FilesystemKind::Overlay => Some(format!(
            "{name} passes reads to another filesystem, and copies a file of a \
            lower layer when it is first written"
        )),
        FilesystemKind::Kernel => {
            Some(format!("{name} is generated by the kernel and has no bytes on storage"))
        }
        FilesystemKind::Block if name == "zfs" => Some(
            "zfs has its own cache besides the page cache, and may compress: cold and device bytes cannot be trusted"
                .to_string(),
        ),
        FilesystemKind::Block => mount
            .compresses()
            .then(|| format!("{name} compresses here: bytes of the device are not bytes of the file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts;

    const INTEL: &str = include_str!("../tests/fixtures/cpuinfo-x86.txt");
    const ARM: &str = include_str!("../tests/fixtures/cpuinfo-arm64.txt");

    #[test]
    fn the_cpu_is_named_on_x86_and_numbered_on_arm() {
        assert_eq!(cpu_model(INTEL).as_deref(), Some("Intel(R) Xeon(R) Processor @ 2.50GHz"));
        assert_eq!(cpu_model(ARM).as_deref(), Some("ARM implementer 0x41 part 0xd0b"));
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn a_virtual_cpu_says_so() {
        assert!(hypervisor(INTEL).is_some());
        assert!(belongs_to_hypervisor("QEMU") && !belongs_to_hypervisor("Dell Inc."));
    }

    #[test]
    fn sizes_of_sysfs() {
        assert_eq!(cache_bytes("36608K"), Some(36608 << 10));
        assert_eq!(cache_bytes("32M"), Some(32 << 20));
        assert_eq!((cache_bytes(""), cache_bytes("K")), (None, None));
    }

    #[test]
    fn the_last_level_is_the_highest() {
        let directory = tempfile::tempdir().expect("directory");
        for (index, level, size) in [("index0", "1", "32K"), ("index2", "2", "1024K"), ("index3", "3", "32M")]
        {
            let path = directory.path().join(index);
            fs::create_dir(&path).expect("directory");
            fs::write(path.join("level"), level).expect("write");
            fs::write(path.join("size"), size).expect("write");
        }
        assert_eq!(last_level_cache(directory.path()), Some(32 << 20));
        assert_eq!(last_level_cache(&directory.path().join("none")), None);
    }

    #[test]
    fn vulnerabilities_that_affect_the_cpu_are_named() {
        let folder = tempfile::tempdir().expect("directory");
        let state = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("write");
        state("spec_rstack_overflow", "Mitigation: Safe RET\n");
        state("meltdown", "Not affected\n");
        state("retbleed", "Vulnerable\n");
        let expected = "retbleed: Vulnerable; spec_rstack_overflow: Mitigation: Safe RET";
        assert_eq!(vulnerabilities(folder.path()).as_deref(), Some(expected));
        assert_eq!(vulnerabilities(&folder.path().join("none")), None);
    }

    #[test]
    fn variables_that_change_a_worker_are_named() {
        let set = [("LD_PRELOAD", "/lib/mine.so"), ("HOME", "/root"), ("GOMAXPROCS", "1"), ("PATH", "/bin")];
        let found = affecting(set.into_iter().map(|(name, value)| (name.into(), value.into())));
        assert_eq!(found, "GOMAXPROCS=1; LD_PRELOAD=/lib/mine.so");
        assert_eq!(affecting(std::iter::empty()), "");
    }

    #[test]
    fn an_ordinary_machine_has_no_warnings() {
        let environment = Environment {
            readahead_bytes: Some(Bytes::kib(128)),
            transparent_hugepage: Some("madvise".to_string()),
            mglru: Some("0x0000".to_string()),
            governor: Some("performance".to_string()),
            ..Environment::default()
        };
        let settings = Settings { steal_share: Some(0.001), swap_used_bytes: Some(0), ..Settings::default() };
        assert_eq!(warnings(&environment, &settings), Vec::<String>::new());
        assert_eq!(warnings(&Environment::default(), &Settings::default()), Vec::<String>::new());
    }

    #[test]
    fn every_oddity_has_a_sentence() {
        let environment = Environment {
            readahead_bytes: Some(Bytes::mib(8)),
            transparent_hugepage: Some("always".to_string()),
            mglru: Some("0x0007".to_string()),
            governor: Some("powersave".to_string()),
            hypervisor: Some("KVM".to_string()),
            ..Environment::default()
        };
        let mount = mounts::parse(include_str!("../tests/fixtures/mountinfo-laptop.txt"))
            .into_iter()
            .find(|mount| mount.filesystem == "btrfs");
        let settings = Settings {
            steal_share: Some(0.034),
            swap_used_bytes: Some(1),
            damon_action: Some("'pageout'".to_string()),
            mount,
            device_note: Some("no block device".to_string()),
        };
        let found = warnings(&environment, &settings);
        let expected = [
            "btrfs compresses",
            "no block device",
            "readahead is 8 MiB",
            "'always'",
            "(0x0007)",
            "DAMON is on ('pageout')",
            "3.4 %",
            "'powersave'",
            "1 MiB of swap",
            "virtual machine (KVM)",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (sentence, part) in found.iter().zip(expected) {
            assert!(sentence.contains(part), "{sentence:?} lacks {part:?}");
        }
        let none = Environment { readahead_bytes: Some(Bytes(0)), ..Environment::default() };
        assert!(warnings(&none, &Settings::default())[0].starts_with("readahead is 0"));
    }

    #[test]
    fn this_machine_is_described() {
        let directory = tempfile::tempdir().expect("directory");
        let environment = detect(directory.path());
        assert!(environment.cpus > 0 && environment.page_bytes >= 4096, "{environment:?}");
        assert!(!environment.kernel.is_empty() && environment.filesystem != "unknown", "{environment:?}");
        assert!(environment.memory_bytes.is_some() && environment.started_unix_s > 0, "{environment:?}");
        let most = environment.atomic_write_bytes;
        assert!(most.is_none_or(|bytes| bytes == 0 || bytes.is_power_of_two()), "{most:?}");
        let in_memory = rustix::fs::memfd_create("", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
        assert_eq!(
            atomic_write_bytes(&in_memory.into()),
            None,
            "memory has no such writes, and says nothing"
        );
        // The same path gives the same answer, so that a run can be resumed.
        assert_eq!(environment.difference(&detect(directory.path())), None);
        assert_eq!(fs::read_dir(directory.path()).expect("list").count(), 0);
    }
}
