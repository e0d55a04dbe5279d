//! What a worker process did, as the kernel counted it: /proc/PID, read by the supervisor.
//!
//! Each number stands alone: one that this kernel or user cannot have is `None`, the others stay.

use std::io;
use std::path::Path;
use std::{fs, path::PathBuf};

use pagewise_model::counters::ThreadCounters;
use rustix::fs::OFlags;

use crate::counters::{CpuTicks, tick_ns};
use crate::files::FileKey;
use crate::kernel_files::{self, field, kib_field};

/// Running totals of a process and its threads. `None`: could not be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCounters {
    /// Bytes that storage read for it: /proc/PID/io read_bytes.
    pub device_read_bytes: Option<u64>,
    /// Bytes that came through read calls: rchar.
    pub read_call_bytes: Option<u64>,
    /// Read calls: syscr.
    pub read_calls: Option<u64>,
    /// Faults served without the device.
    pub minor_faults: Option<u64>,
    /// Faults that waited for the device.
    pub major_faults: Option<u64>,
    /// CPU time in user mode; whole clock ticks.
    pub user_ns: Option<u64>,
    /// CPU time in the kernel; whole clock ticks.
    pub system_ns: Option<u64>,
    /// CPU time of the threads that live: /proc/PID/task/*/schedstat.
    pub cpu_ns: Option<u64>,
    /// Time that they were runnable and not running.
    pub run_queue_ns: Option<u64>,
    /// Context switches of the threads that live because they waited.
    pub voluntary_switches: Option<u64>,
    /// Context switches because they were preempted.
    pub involuntary_switches: Option<u64>,
    /// Peak resident memory: VmHWM.
    pub peak_bytes: Option<u64>,
}

impl ProcessCounters {
    /// What the process has done so far.
    pub fn read(pid: u32) -> Self {
        Self::read_with_threads(pid).0
    }

    /// The same, and what each of its threads has done: every file is read once.
    pub fn read_with_threads(pid: u32) -> (Self, Vec<ThreadCounters>) {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let io = kernel_files::text(process.join("io")).map(|text| parse_io(&text)).unwrap_or_default();
        let stat = kernel_files::text(process.join("stat")).and_then(|text| parse_stat(&text));
        let status = kernel_files::text(process.join("status"));
        let threads = read_threads(&process);
        let (sums, tick_ns) = (sum(&threads), tick_ns());
        let counters = Self {
            device_read_bytes: io.read_bytes,
            read_call_bytes: io.rchar,
            read_calls: io.syscr,
            minor_faults: stat.map(|stat| stat.minor_faults),
            major_faults: stat.map(|stat| stat.major_faults),
            user_ns: stat.and_then(|stat| stat.user_ticks.checked_mul(tick_ns)),
            system_ns: stat.and_then(|stat| stat.system_ticks.checked_mul(tick_ns)),
            cpu_ns: sums.cpu_ns,
            run_queue_ns: sums.run_queue_ns,
            voluntary_switches: sums.voluntary_switches,
            involuntary_switches: sums.involuntary_switches,
            peak_bytes: status.and_then(|text| kib_field(&text, "VmHWM")),
        };
        (counters, threads.into_iter().map(|thread| thread.counters).collect())
    }

    /// What was done between two readings; the peak is that of the later one. A total that went back, as when
    /// a thread ended, is unknown.
    pub fn difference(before: &Self, after: &Self) -> Self {
        let less = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
        Self {
            device_read_bytes: less(before.device_read_bytes, after.device_read_bytes),
            read_call_bytes: less(before.read_call_bytes, after.read_call_bytes),
            read_calls: less(before.read_calls, after.read_calls),
            minor_faults: less(before.minor_faults, after.minor_faults),
            major_faults: less(before.major_faults, after.major_faults),
            user_ns: less(before.user_ns, after.user_ns),
            system_ns: less(before.system_ns, after.system_ns),
            cpu_ns: less(before.cpu_ns, after.cpu_ns),
            run_queue_ns: less(before.run_queue_ns, after.run_queue_ns),
            voluntary_switches: less(before.voluntary_switches, after.voluntary_switches),
            involuntary_switches: less(before.involuntary_switches, after.involuntary_switches),
            peak_bytes: after.peak_bytes,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Io {
    read_bytes: Option<u64>,
    rchar: Option<u64>,
    syscr: Option<u64>,
}

fn parse_io(text: &str) -> Io {
    let number = |name| field(text, name).and_then(|value| value.parse().ok());
    Io { read_bytes: number("read_bytes"), rchar: number("rchar"), syscr: number("syscr") }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    minor_faults: u64,
    major_faults: u64,
    user_ticks: u64,
    system_ticks: u64,
}

/// /proc/PID/stat (proc_pid_stat(5)). The name of the command may hold spaces and parentheses, so fields are
/// counted from the last closing one, behind which stands field 3.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |position: usize| fields.get(position - 3)?.parse().ok();
    Some(Stat {
        minor_faults: number(10)?,
        major_faults: number(12)?,
        user_ticks: number(14)?,
        system_ticks: number(15)?,
    })
}

/// One thread, with what only sums are kept of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    counters: ThreadCounters,
    run_queue_ns: Option<u64>,
}

/// What each thread of process `pid` that lives has done so far, in the order of their ids; none where the process
/// cannot be seen.
pub fn threads(pid: u32) -> Vec<ThreadCounters> {
    let threads = read_threads(&PathBuf::from(format!("/proc/{pid}")));
    threads.into_iter().map(|thread| thread.counters).collect()
}

/// What each thread of the later reading did since the earlier one, matched by id. One that was not there before has
/// done all of it since; what one did that has ended meanwhile nobody can say, and it is left out. A process
/// without threads in the earlier reading was not read at all: then nothing is known.
pub fn thread_differences(before: &[ThreadCounters], after: &[ThreadCounters]) -> Vec<ThreadCounters> {
    if before.is_empty() {
        return Vec::new();
    }
    let less = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
    let difference = |after: &ThreadCounters| match before.iter().find(|one| one.thread == after.thread) {
        None => *after,
        Some(before) => ThreadCounters {
            thread: after.thread,
            minor_faults: less(before.minor_faults, after.minor_faults),
            major_faults: less(before.major_faults, after.major_faults),
            user_ns: less(before.user_ns, after.user_ns),
            system_ns: less(before.system_ns, after.system_ns),
            cpu_ns: less(before.cpu_ns, after.cpu_ns),
            voluntary_switches: less(before.voluntary_switches, after.voluntary_switches),
            involuntary_switches: less(before.involuntary_switches, after.involuntary_switches),
        },
    };
    after.iter().map(difference).collect()
}

/// A thread that ends between being listed and being read spoils the sums: then all are read again.
const THREAD_LISTINGS: u32 = 3;

fn read_threads(process: &Path) -> Vec<Thread> {
    let mut threads = Vec::new();
    for _ in 0..THREAD_LISTINGS {
        let Ok(entries) = fs::read_dir(process.join("task")) else { return Vec::new() };
        let mut listed: Vec<(u32, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
            .collect();
        listed.sort_unstable();
        threads = listed.iter().map(|(id, directory)| read_thread(*id, directory)).collect();
        if listed.iter().all(|(_, directory)| directory.exists()) {
            break;
        }
    }
    threads
}

fn read_thread(id: u32, directory: &Path) -> Thread {
    let text = |name| kernel_files::text(directory.join(name));
    thread(id, text("stat").as_deref(), text("schedstat").as_deref(), text("status").as_deref(), tick_ns())
}

/// schedstat: time on CPU, time waiting for one, time slices (Documentation/scheduler/sched-stats.rst).
fn thread(
    id: u32,
    stat: Option<&str>,
    schedstat: Option<&str>,
    status: Option<&str>,
    tick_ns: u64,
) -> Thread {
    let stat = stat.and_then(parse_stat);
    let mut times = schedstat.unwrap_or_default().split_whitespace().map(|word| word.parse().ok());
    let switches = |name| field(status?, name)?.parse().ok();
    let counters = ThreadCounters {
        thread: id,
        minor_faults: stat.map(|stat| stat.minor_faults),
        major_faults: stat.map(|stat| stat.major_faults),
        user_ns: stat.and_then(|stat| stat.user_ticks.checked_mul(tick_ns)),
        system_ns: stat.and_then(|stat| stat.system_ticks.checked_mul(tick_ns)),
        cpu_ns: times.next().flatten(),
        voluntary_switches: switches("voluntary_ctxt_switches"),
        involuntary_switches: switches("nonvoluntary_ctxt_switches"),
    };
    Thread { counters, run_queue_ns: times.next().flatten() }
}

/// Sums over threads; unknown where one of them is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    cpu_ns: Option<u64>,
    run_queue_ns: Option<u64>,
    voluntary_switches: Option<u64>,
    involuntary_switches: Option<u64>,
}

fn sum(threads: &[Thread]) -> Sums {
    let total = |part: fn(&Thread) -> Option<u64>| {
        let add = |left: Option<u64>, right: Option<u64>| left?.checked_add(right?);
        threads.iter().map(part).reduce(add).flatten()
    };
    Sums {
        cpu_ns: total(|thread| thread.counters.cpu_ns),
        run_queue_ns: total(|thread| thread.run_queue_ns),
        voluntary_switches: total(|thread| thread.counters.voluntary_switches),
        involuntary_switches: total(|thread| thread.counters.involuntary_switches),
    }
}

/// The CPUs that process `pid` may use, as the kernel writes them: Cpus_allowed_list of its first thread.
pub fn cpus_allowed(pid: u32) -> Option<String> {
    let status = kernel_files::text(format!("/proc/{pid}/status"))?;
    field(&status, "Cpus_allowed_list").filter(|list| !list.is_empty()).map(str::to_string)
}

/// How a process has a file mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappingState {
    /// Bytes of address space.
    pub mapped_bytes: u64,
    /// Bytes mapped by huge pages: FilePmdMapped, ShmemPmdMapped and AnonHugePages. A kernel that has none of
    /// these lines leaves it unknown.
    pub huge_mapped_bytes: Option<u64>,
    /// The VmFlags that all parts of the mapping have, such as `rr` for MADV_RANDOM.
    pub vm_flags: Option<String>,
}

/// How process `pid` has the file mapped: /proc/PID/smaps. `Ok(None)`: it has not.
pub fn mapping(pid: u32, file: &FileKey) -> io::Result<Option<MappingState>> {
    let smaps = fs::read(format!("/proc/{pid}/smaps"))?;
    Ok(parse_smaps(&String::from_utf8_lossy(&smaps), file))
}

/// Whether a line of maps or the first of an smaps entry shows a mapping of the file:
/// `55c8f6884000-55c8f6886000 r--p 00000000 fe:00 247026    /usr/bin/cat`, the device in hexadecimal.
pub(crate) fn maps_file(line: &str, file: &FileKey) -> bool {
    let mut rest = line;
    let mut words = std::iter::from_fn(|| {
        rest = rest.trim_start_matches(' ');
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        (!word.is_empty()).then_some(word)
    });
    let (Some(device), Some(inode)) = (words.nth(3), words.next()) else { return false };
    if inode.parse() != Ok(file.inode) || file.inode == 0 {
        return false;
    }
    let number = device.split_once(':').and_then(|(major, minor)| {
        Some((u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?))
    });
    number == Some((rustix::fs::major(file.device), rustix::fs::minor(file.device)))
        || Path::new(rest.trim_start()) == file.path
}

fn parse_smaps(text: &str, file: &FileKey) -> Option<MappingState> {
    let mut state: Option<MappingState> = None;
    let mut flags: Option<Vec<&str>> = None;
    let mut ours = false;
    for line in text.lines() {
        // An entry begins with an address range; its fields begin with a capital letter.
        if line.starts_with(|first: char| first.is_ascii_digit() || first.is_ascii_lowercase()) {
            ours = maps_file(line, file);
            if ours {
                state.get_or_insert_default().mapped_bytes += range_bytes(line).unwrap_or(0);
            }
            continue;
        }
        let (true, Some(state), Some((name, value))) = (ours, state.as_mut(), line.split_once(':')) else {
            continue;
        };
        match name {
            "FilePmdMapped" | "ShmemPmdMapped" | "AnonHugePages" => {
                let kib = value.trim().strip_suffix("kB").and_then(|kib| kib.trim().parse::<u64>().ok());
                if let Some(kib) = kib {
                    state.huge_mapped_bytes = Some(state.huge_mapped_bytes.unwrap_or(0) + kib * 1024);
                }
            }
            "VmFlags" => {
                let here: Vec<&str> = value.split_whitespace().collect();
                flags = Some(match flags {
                    None => here,
                    Some(earlier) => earlier.into_iter().filter(|flag| here.contains(flag)).collect(),
                });
            }
            _ => {}
        }
    }
    let mut state = state?;
    state.vm_flags = flags.map(|flags| flags.join(" "));
    Some(state)
}

fn range_bytes(line: &str) -> Option<u64> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    u64::from_str_radix(end, 16).ok()?.checked_sub(u64::from_str_radix(start, 16).ok()?)
}

/// Whether all descriptors that process `pid` has of the file carry O_DIRECT: /proc/PID/fdinfo.
/// `None`: it has none, or they cannot be seen.
pub fn descriptor_direct(pid: u32, file: &FileKey) -> Option<bool> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let mut direct = None;
    for entry in fs::read_dir(process.join("fd")).ok()?.flatten() {
        use std::os::unix::fs::MetadataExt;
        let Ok(metadata) = fs::metadata(entry.path()) else { continue };
        if (metadata.dev(), metadata.ino()) != (file.device, file.inode) {
            continue;
        }
        let flags = parse_fdinfo_flags(&kernel_files::text(process.join("fdinfo").join(entry.file_name()))?)?;
        // The value of O_DIRECT differs by architecture; the worker runs on ours.
        let one = flags & OFlags::DIRECT.bits() != 0;
        direct = Some(direct.unwrap_or(true) && one);
    }
    direct
}

fn parse_fdinfo_flags(text: &str) -> Option<u32> {
    u32::from_str_radix(field(text, "flags")?, 8).ok()
}

/// Time that the hypervisor gave to others while a CPU of ours wanted to run, all CPUs, since boot.
pub fn host_steal_ns() -> Option<u64> {
    CpuTicks::read()?.steal.checked_mul(tick_ns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    const SMAPS: &str = include_str!("../tests/fixtures/smaps-6.18.txt");
    const SMAPS_OLD: &str = include_str!("../tests/fixtures/smaps-3.10.txt");

    fn key(inode: u64, path: &str) -> FileKey {
        FileKey { device: rustix::fs::makedev(0xfe, 0), inode, path: PathBuf::from(path) }
    }

    #[test]
    fn a_command_may_hold_spaces_and_parentheses() {
        let fields = "R 5710 5710 4574 0 -1 4194304 101 7 3 9 11 12 0 0 20 0 1 0 138501 3133440 407";
        for command in ["cat", "a b", "x) R 1 2 (y", ")(", ""] {
            let stat = parse_stat(&format!("5721 ({command}) {fields}")).expect("stat");
            assert_eq!(
                stat,
                Stat { minor_faults: 101, major_faults: 3, user_ticks: 11, system_ticks: 12 },
                "{command:?}"
            );
        }
        assert_eq!(parse_stat("5721 (cat) R 5710"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn io_lines_may_be_missing() {
        let text = "rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 0\n";
        assert_eq!(parse_io(text), Io { read_bytes: Some(4096), rchar: Some(6976), syscr: Some(10) });
        // A kernel without CONFIG_TASK_IO_ACCOUNTING.
        assert_eq!(parse_io("rchar: 6976\nsyscr: 10\n").read_bytes, None);
    }

    const TICK_NS: u64 = 10_000_000;
    const STATUS: &str = "Name:\tx\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n";
    const STAT: &str = "7 (x) S 1 7 7 0 -1 4194304 101 7 3 9 11 12 0 0 20 0 2 0 138501 3133440 407";

    #[test]
    fn threads_are_summed_and_a_gap_is_unknown() {
        let one = thread(7, Some(STAT), Some("100 20 3"), Some(STATUS), TICK_NS);
        let two = thread(8, None, Some("50 1 1"), Some(STATUS), TICK_NS);
        let total = sum(&[one, two]);
        assert_eq!((total.cpu_ns, total.run_queue_ns), (Some(150), Some(21)));
        assert_eq!((total.voluntary_switches, total.involuntary_switches), (Some(6), Some(8)));
        let unknown = sum(&[one, thread(9, None, None, Some(STATUS), TICK_NS)]);
        assert_eq!((unknown.cpu_ns, unknown.voluntary_switches), (None, Some(6)));
        assert_eq!(sum(&[]), Sums::default());
    }

    #[test]
    fn a_thread_has_its_own_faults_times_and_switches() {
        let full = thread(7, Some(STAT), Some("100 20 3"), Some(STATUS), TICK_NS).counters;
        let wanted = ThreadCounters {
            thread: 7,
            minor_faults: Some(101),
            major_faults: Some(3),
            user_ns: Some(110_000_000),
            system_ns: Some(120_000_000),
            cpu_ns: Some(100),
            voluntary_switches: Some(3),
            involuntary_switches: Some(4),
        };
        assert_eq!(full, wanted);
        // A kernel without CONFIG_SCHED_INFO; a thread that ended before it was read.
        assert_eq!(thread(7, Some(STAT), None, Some(STATUS), TICK_NS).counters.cpu_ns, None);
        let gone = ThreadCounters { thread: 7, ..Default::default() };
        assert_eq!(thread(7, None, None, None, TICK_NS).counters, gone);
    }

    #[test]
    fn threads_are_matched_by_their_ids() {
        let counted = |thread, cpu_ns, minor_faults| ThreadCounters {
            thread,
            cpu_ns: Some(cpu_ns),
            minor_faults,
            ..Default::default()
        };
        let before = [counted(7, 100, Some(5)), counted(8, 10, Some(9)), counted(9, 50, None)];
        let after = [counted(7, 130, Some(4)), counted(9, 70, Some(2)), counted(12, 6, Some(1))];
        // 7: faults went back; 8 has ended; 9 had none before; 12 is new.
        let wanted = [counted(7, 30, None), counted(9, 20, None), counted(12, 6, Some(1))];
        assert_eq!(thread_differences(&before, &after), wanted);
        assert_eq!(thread_differences(&[], &after), []);
        assert_eq!(thread_differences(&before, &[]), []);
    }

    #[test]
    fn our_own_threads_are_listed() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let (started, is_running) = std::sync::mpsc::channel();
        let helper = std::thread::spawn(move || {
            started.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).expect("listened to");
            let _ = wait.recv();
        });
        let id = is_running.recv().expect("started");
        let found = threads(std::process::id());
        drop(stop);
        helper.join().expect("ended");
        let first = found.iter().find(|thread| thread.thread == std::process::id()).expect("the first");
        let other = found.iter().find(|thread| thread.thread == id).expect("the other");
        assert!(first.minor_faults.is_some() && other.user_ns.is_some(), "{found:?}");
        assert!(found.is_sorted_by_key(|thread| thread.thread));
        assert_eq!(threads(u32::MAX), []);
    }

    #[test]
    fn allowed_cpus_are_those_of_the_affinity() {
        let list = cpus_allowed(std::process::id()).expect("status");
        assert!(list.parse::<pagewise_model::CpuList>().is_ok(), "{list}");
        assert_eq!(cpus_allowed(u32::MAX), None);
    }

    #[test]
    fn smaps_of_the_file_only() {
        // A mapping of 8 MiB with MADV_HUGEPAGE on ext4, whose second half has MADV_RANDOM too.
        let state = parse_smaps(SMAPS, &key(3_366_913, "/var/tmp/pagewise data")).expect("mapped");
        assert_eq!(state.mapped_bytes, 8 << 20);
        assert_eq!(state.huge_mapped_bytes, Some(8 << 20));
        assert_eq!(state.vm_flags.as_deref(), Some("rd mr me ms hg"));
        assert_eq!(parse_smaps(SMAPS, &key(1, "/nothing")), None);
        assert_eq!(parse_smaps("", &key(1, "/nothing")), None);
    }

    #[test]
    fn an_old_kernel_leaves_unknown_what_it_does_not_say() {
        let state = parse_smaps(SMAPS_OLD, &key(77, "/data")).expect("mapped");
        assert_eq!((state.huge_mapped_bytes, state.vm_flags), (None, None));
    }

    #[test]
    fn a_mapping_is_known_by_its_path_where_the_device_differs() {
        let line = "7f00-7f01 r--s 00000000 00:2b 42                       /home/me/a file";
        let file = FileKey { device: 45, inode: 42, path: PathBuf::from("/home/me/a file") };
        assert!(maps_file(line, &file));
        assert!(!maps_file(line, &FileKey { inode: 43, ..file.clone() }));
        assert!(!maps_file(line, &FileKey { path: PathBuf::from("/other"), ..file.clone() }));
        assert!(maps_file(line, &FileKey { device: 0x2b, path: PathBuf::from("/other"), ..file }));
        assert!(!maps_file("7f00-7f01 rw-p 00000000 00:00 0", &key(0, "")));
    }

    #[test]
    fn fdinfo_flags_are_octal() {
        assert_eq!(parse_fdinfo_flags("pos:\t0\nflags:\t0140000\nmnt_id:\t24\n"), Some(0o140_000));
        assert_eq!(parse_fdinfo_flags("pos:\t0\n"), None);
    }

    #[test]
    fn a_total_that_went_back_is_unknown_and_the_peak_is_the_later() {
        let before = ProcessCounters { cpu_ns: Some(5), read_calls: Some(5), ..Default::default() };
        let after = ProcessCounters {
            cpu_ns: Some(4),
            read_calls: Some(7),
            minor_faults: Some(1),
            peak_bytes: Some(9),
            ..Default::default()
        };
        let difference = ProcessCounters::difference(&before, &after);
        assert_eq!((difference.cpu_ns, difference.read_calls), (None, Some(2)));
        assert_eq!((difference.minor_faults, difference.peak_bytes), (None, Some(9)));
    }

    #[test]
    fn our_own_process_is_counted() {
        use std::os::unix::fs::FileExt;
        let file = tempfile::NamedTempFile::new().expect("file");
        file.as_file().write_all_at(&[1; 65536], 0).expect("write");
        let pid = std::process::id();
        let before = ProcessCounters::read(pid);
        let mut bytes = vec![0; 65536];
        for _ in 0..16 {
            file.as_file().read_exact_at(&mut bytes, 0).expect("read");
        }
        let done = ProcessCounters::difference(&before, &ProcessCounters::read(pid));
        match done.read_call_bytes {
            Some(read) => assert!(read >= 16 * 65536, "{done:?}"),
            None => println!("skipped: /proc/self/io is missing"),
        }
        assert!(done.minor_faults.is_some() && done.user_ns.is_some(), "{done:?}");
        assert_eq!(ProcessCounters::read(u32::MAX), ProcessCounters::default());
    }

    #[test]
    fn a_mapping_and_its_advice_are_seen() {
        let file = tempfile::NamedTempFile::new().expect("file");
        file.as_file().set_len(1 << 20).expect("size");
        let key = FileKey::of(file.as_file()).expect("key");
        let pid = std::process::id();
        assert_eq!(mapping(pid, &key).expect("smaps"), None);
        let mapped = pagewise_sys::FileMapping::new(file.as_file(), 1 << 20, false).expect("map");
        mapped.advise(0..1 << 20, pagewise_sys::Advice::Random).expect("advise");
        let state = mapping(pid, &key).expect("smaps").expect("mapped");
        assert_eq!(state.mapped_bytes, 1 << 20);
        assert!(state.vm_flags.expect("flags").split(' ').any(|flag| flag == "rr"));
        assert!(mapping(u32::MAX, &key).is_err());
    }

    #[test]
    fn direct_descriptors_are_told_from_others() {
        use std::os::unix::fs::OpenOptionsExt;
        let file = tempfile::NamedTempFile::new().expect("file");
        let key = FileKey::of(file.as_file()).expect("key");
        let pid = std::process::id();
        assert_eq!(descriptor_direct(pid, &key), Some(false));
        let path = file.into_temp_path();
        assert_eq!(descriptor_direct(pid, &key), None);
        let flags = OFlags::DIRECT.bits() as i32;
        let Ok(direct) = File::options().read(true).custom_flags(flags).open(&path) else {
            println!("skipped: the filesystem of {} has no O_DIRECT", path.display());
            return;
        };
        assert_eq!(descriptor_direct(pid, &key), Some(true));
        let buffered = File::open(&path).expect("open");
        assert_eq!(descriptor_direct(pid, &key), Some(false));
        drop((direct, buffered));
    }
}
