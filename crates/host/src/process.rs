//! Counters of a worker process: /proc/PID, read by the supervisor.
//!
//! Counters are independent: one that is unavailable to this kernel or user is `None`, the others
//! are kept.

mod smaps;

use std::fmt::Display;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pagewise_model::counters::{ProcessCounters, ThreadCounters};
use pagewise_sys::schedule;
use rustix::fs::OFlags;
use rustix::process::Pid;

use crate::counters::tick_ns;
use crate::files::{FileKey, FileKeys};
use crate::kernel_files::{self, field, kib_field, numbered};
pub(crate) use smaps::MapsLine;
pub use smaps::{MappingState, mapping, mapping_of_any, mappings, mappings_of_any};

/// The processes that /proc shows.
pub fn all() -> impl Iterator<Item = u32> {
    numbered("/proc")
}

/// A field of /proc/PID/status of a process or thread.
pub(crate) fn status_field(process: impl Display, name: &str) -> Option<String> {
    field(&kernel_files::text(format!("/proc/{process}/status"))?, name).map(str::to_string)
}

/// True if a signal is in this mask of a process or thread: `SigIgn`, `SigCgt`.
pub fn has_signal(process: u32, mask: &str, signal: i32) -> bool {
    let mask = status_field(process, mask).and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Memory of a process without a file that is in place (RssAnon).
pub fn anonymous_bytes(pid: u32) -> Option<u64> {
    kib_field(&kernel_files::text(format!("/proc/{pid}/status"))?, "RssAnon")
}

/// The cgroups of a process, as the kernel writes them.
pub fn cgroups(pid: u32) -> Option<String> {
    kernel_files::text(format!("/proc/{pid}/cgroup"))
}

/// Read the totals of process `pid`.
pub fn totals(pid: u32) -> ProcessCounters {
    totals_with_threads(pid).0
}

/// Read the totals of process `pid` and of each of its threads: every file is read once.
pub fn totals_with_threads(pid: u32) -> (ProcessCounters, Vec<ThreadCounters>) {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let stat = kernel_files::text(process.join("stat")).and_then(|text| parse_stat(&text));
    let status = kernel_files::text(process.join("status"));
    let threads = read_threads(&process);
    let tick_ns = tick_ns();
    let mut counters = ProcessCounters {
        minor_faults: stat.map(|stat| stat.minor_faults),
        major_faults: stat.map(|stat| stat.major_faults),
        user_ns: stat.and_then(|stat| stat.user_ticks.checked_mul(tick_ns)),
        system_ns: stat.and_then(|stat| stat.system_ticks.checked_mul(tick_ns)),
        peak_bytes: status.as_ref().and_then(|text| kib_field(text, "VmHWM")),
        locked_bytes: status.and_then(|text| kib_field(&text, "VmLck")),
        ..ProcessCounters::of_threads(&threads)
    };
    if let Some(text) = kernel_files::text(process.join("io")) {
        add_io(&mut counters, &text);
    }
    (counters, threads)
}

/// Add the counters of /proc/PID/io (proc_pid_io(5)). A kernel without CONFIG_TASK_IO_ACCOUNTING
/// has a part of them.
fn add_io(counters: &mut ProcessCounters, text: &str) {
    let number = |name| field(text, name).and_then(|value| value.parse().ok());
    counters.device_read_bytes = number("read_bytes");
    counters.read_call_bytes = number("rchar");
    counters.read_calls = number("syscr");
    counters.write_call_bytes = number("wchar");
    counters.write_calls = number("syscw");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    minor_faults: u64,
    major_faults: u64,
    user_ticks: u64,
    system_ticks: u64,
}

/// /proc/PID/stat (proc_pid_stat(5)). The name of the command may contain spaces and parentheses,
/// so fields are counted from the last closing one, which precedes field 3.
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

/// Read the totals of each live thread of process `pid`, in the order of their ids; none if the
/// process is not visible.
pub fn threads(pid: u32) -> Vec<ThreadCounters> {
    read_threads(&PathBuf::from(format!("/proc/{pid}")))
}

/// Time that the calling thread was runnable but not running, since it began; `None` if the kernel
/// does not count it.
pub fn own_run_queue_ns() -> Option<u64> {
    parse_schedstat(&kernel_files::text("/proc/thread-self/schedstat")?).1
}

/// Let the peak of a process's memory (VmHWM) begin anew with what it has now
/// (proc_pid_clear_refs(5)). Where that is refused, it stays the peak of its life.
pub fn begin_peak_anew(pid: u32) {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// True if no thread of a process is running, or waiting for a CPU. Then its CPU time is up to
/// date.
pub fn is_asleep(pid: u32) -> bool {
    let is_running = |thread: u32| {
        let stat = kernel_files::text(format!("/proc/{pid}/task/{thread}/stat"));
        // Behind the name, which may hold anything.
        stat.is_some_and(|text| text.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('R')))
    };
    !numbered(format!("/proc/{pid}/task")).any(is_running)
}

/// CPU time of a process until now, that of its ended threads too: at this very moment, while
/// counters take time to be read. A thread that is running is behind by up to a tick of its CPU.
pub fn cpu_ns(pid: u32) -> Option<u64> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    u64::try_from(schedule::cpu_time(pid).ok()?.as_nanos()).ok()
}

/// Difference of each thread of the later reading since the earlier one, matched by id. For a
/// thread that is new, it is the whole count; a thread that has ended is left out, as its final
/// count is unknown. A process without threads in the earlier reading was not read at all: the
/// result is empty then.
pub fn thread_differences(before: &[ThreadCounters], after: &[ThreadCounters]) -> Vec<ThreadCounters> {
    if before.is_empty() {
        return Vec::new();
    }
    let difference = |after: &ThreadCounters| match before.iter().find(|one| one.thread == after.thread) {
        None => *after,
        Some(before) => ThreadCounters::difference(before, after),
    };
    after.iter().map(difference).collect()
}

/// A thread that ends between being listed and being read spoils the sums: all are read again then.
const THREAD_LISTINGS: u32 = 3;

fn read_threads(process: &Path) -> Vec<ThreadCounters> {
    let directory = process.join("task");
    let mut threads = Vec::new();
    for _ in 0..THREAD_LISTINGS {
        let mut listed: Vec<(u32, PathBuf)> =
            numbered(&directory).map(|id: u32| (id, directory.join(id.to_string()))).collect();
        listed.sort_unstable();
        threads = listed.iter().map(|(id, directory)| read_thread(*id, directory)).collect();
        if listed.iter().all(|(_, directory)| directory.exists()) {
            break;
        }
    }
    threads
}

fn read_thread(id: u32, directory: &Path) -> ThreadCounters {
    let text = |name| kernel_files::text(directory.join(name));
    let (stat, schedstat, status) = (text("stat"), text("schedstat"), text("status"));
    let read_calls = text("io").and_then(|text| field(&text, "syscr")?.parse().ok());
    let counters = thread(id, stat.as_deref(), schedstat.as_deref(), status.as_deref(), tick_ns());
    ThreadCounters { read_calls, ..counters }
}

/// schedstat of a thread: time on a CPU and time waiting for one
/// (Documentation/scheduler/sched-stats.rst). The file of a process is that of its first thread.
fn parse_schedstat(text: &str) -> (Option<u64>, Option<u64>) {
    let mut times = text.split_whitespace().map(|word| word.parse().ok());
    (times.next().flatten(), times.next().flatten())
}

fn thread(
    id: u32,
    stat: Option<&str>,
    schedstat: Option<&str>,
    status: Option<&str>,
    tick_ns: u64,
) -> ThreadCounters {
    let stat = stat.and_then(parse_stat);
    let (cpu_ns, run_queue_ns) = parse_schedstat(schedstat.unwrap_or_default());
    let switches = |name| field(status?, name)?.parse().ok();
    ThreadCounters {
        thread: id,
        minor_faults: stat.map(|stat| stat.minor_faults),
        major_faults: stat.map(|stat| stat.major_faults),
        user_ns: stat.and_then(|stat| stat.user_ticks.checked_mul(tick_ns)),
        system_ns: stat.and_then(|stat| stat.system_ticks.checked_mul(tick_ns)),
        cpu_ns,
        run_queue_ns,
        voluntary_switches: switches("voluntary_ctxt_switches"),
        involuntary_switches: switches("nonvoluntary_ctxt_switches"),
        read_calls: None,
    }
}

/// The kind of a process number, to somebody who wants to watch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessKind {
    /// A program.
    Program,
    /// Nothing.
    Missing,
    /// A thread of a process.
    Thread {
        /// The process.
        of: u32,
    },
    /// A thread of the kernel.
    Kernel,
    /// A process that has ended, and whose parent has not asked how.
    Ended,
    /// A process of another user, which this one may not watch.
    OfOther {
        /// The user.
        user: u32,
    },
}

/// The kind of the number `pid`.
pub fn kind(pid: u32) -> ProcessKind {
    let Some(status) = kernel_files::text(format!("/proc/{pid}/status")) else { return ProcessKind::Missing };
    kind_of(pid, &status, rustix::process::geteuid().as_raw())
}

fn kind_of(pid: u32, status: &str, own_user: u32) -> ProcessKind {
    let first = |name| field(status, name)?.split_whitespace().next()?.parse::<u32>().ok();
    if let Some(of) = first("Tgid").filter(|group| *group != pid) {
        return ProcessKind::Thread { of };
    }
    if field(status, "State").is_some_and(|state| state.starts_with(['Z', 'X'])) {
        return ProcessKind::Ended;
    }
    // Threads of the kernel have no memory of their own.
    if field(status, "VmSize").is_none() {
        return ProcessKind::Kernel;
    }
    match first("Uid") {
        Some(user) if own_user != 0 && user != own_user => ProcessKind::OfOther { user },
        _ => ProcessKind::Program,
    }
}

/// The name of a process; empty if it has ended.
pub fn name(pid: u32) -> String {
    kernel_files::text(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// The CPUs that process `pid` may use, in the kernel's format: Cpus_allowed_list of its first
/// thread.
pub fn cpus_allowed(pid: u32) -> Option<String> {
    status_field(pid, "Cpus_allowed_list").filter(|list| !list.is_empty())
}

/// Descriptors in process `pid`, each with its file: /proc/PID/fd. None if they are not visible.
fn open_files(pid: u32) -> impl Iterator<Item = (i32, Metadata)> {
    let numbers = numbered::<i32>(format!("/proc/{pid}/fd"));
    numbers.filter_map(move |number| Some((number, fs::metadata(format!("/proc/{pid}/fd/{number}")).ok()?)))
}

/// Number of descriptors of a file in process `pid`.
pub fn descriptors(pid: u32, file: &FileKey) -> usize {
    let is_of_it = |metadata: &Metadata| (metadata.dev(), metadata.ino()) == (file.device, file.inode);
    open_files(pid).filter(|(_, metadata)| is_of_it(metadata)).count()
}

/// True if all descriptors of these files in process `pid` have O_DIRECT: /proc/PID/fdinfo. `None`:
/// one of the files has none, or they are not visible.
pub fn descriptors_direct(pid: u32, files: &FileKeys) -> Option<bool> {
    let (mut direct, mut open) = (true, vec![false; files.count()]);
    for (descriptor, metadata) in open_files(pid) {
        if let Some(index) = files.find(metadata.ino(), |file| file.device == metadata.dev()) {
            direct &= descriptor_flags(pid, descriptor)?.contains(OFlags::DIRECT);
            open[index] = true;
        }
    }
    (!open.is_empty() && open.into_iter().all(|open| open)).then_some(direct)
}

/// The flags of a descriptor of a process or thread: /proc/PID/fdinfo. The values of some differ by
/// architecture; the process runs on this one.
pub(crate) fn descriptor_flags(process: impl Display, descriptor: i32) -> Option<OFlags> {
    parse_fdinfo_flags(&kernel_files::text(format!("/proc/{process}/fdinfo/{descriptor}"))?)
}

fn parse_fdinfo_flags(text: &str) -> Option<OFlags> {
    u32::from_str_radix(field(text, "flags")?, 8).ok().map(OFlags::from_bits_retain)
}

/// Pass a text to every parser here.
#[cfg(test)]
pub(crate) fn read_anything(text: &str, file: &crate::files::FileKey) {
    parse_fdinfo_flags(text);
    add_io(
        &mut ProcessCounters::of_threads(&[thread(1, Some(text), Some(text), Some(text), 10_000_000); 2]),
        text,
    );
    smaps::read_anything(text, file);
}

/// Assert that /proc/PID/stat of a process with these faults, times and this name is parsed
/// correctly.
#[cfg(test)]
#[track_caller]
pub(crate) fn expect_stat(fields: [u64; 4], name: &str) {
    let [minor_faults, major_faults, user_ticks, system_ticks] = fields;
    let text = format!(
        "7 ({name}) ({name}) S 1 7 7 0 -1 4194304 {minor_faults} 7 {major_faults} 9 {user_ticks} {system_ticks} 0 0 20"
    );
    assert_eq!(
        parse_stat(&text),
        Some(Stat { minor_faults, major_faults, user_ticks, system_ticks }),
        "{text}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_process_that_looks_at_itself_does_not_sleep() {
        assert!(!is_asleep(std::process::id()));
        assert!(is_asleep(u32::MAX), "there is no such process");
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
        let text = "rchar: 6976\nwchar: 77\nsyscr: 10\nsyscw: 3\nread_bytes: 4096\nwrite_bytes: 0\n";
        let parsed = |text| {
            let mut counters = ProcessCounters::default();
            add_io(&mut counters, text);
            counters
        };
        let wanted = ProcessCounters {
            device_read_bytes: Some(4096),
            read_call_bytes: Some(6976),
            read_calls: Some(10),
            write_call_bytes: Some(77),
            write_calls: Some(3),
            ..ProcessCounters::default()
        };
        assert_eq!(parsed(text), wanted);
        assert_eq!(parsed("rchar: 6976\nsyscr: 10\n").device_read_bytes, None);
    }

    const TICK_NS: u64 = 10_000_000;
    const STATUS: &str = "Name:\tx\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n";
    const STAT: &str = "7 (x) S 1 7 7 0 -1 4194304 101 7 3 9 11 12 0 0 20 0 2 0 138501 3133440 407";

    #[test]
    fn threads_are_summed_and_a_gap_is_unknown() {
        let one = thread(7, Some(STAT), Some("100 20 3"), Some(STATUS), TICK_NS);
        let two = thread(8, None, Some("50 1 1"), Some(STATUS), TICK_NS);
        let total = ProcessCounters::of_threads(&[one, two]);
        assert_eq!((total.cpu_ns, total.run_queue_ns), (Some(150), Some(21)));
        assert_eq!((total.voluntary_switches, total.involuntary_switches), (Some(6), Some(8)));
        let unknown = ProcessCounters::of_threads(&[one, thread(9, None, None, Some(STATUS), TICK_NS)]);
        assert_eq!((unknown.cpu_ns, unknown.voluntary_switches), (None, Some(6)));
        assert_eq!(ProcessCounters::of_threads(&[]), ProcessCounters::default());
    }

    #[test]
    fn a_thread_has_its_own_faults_times_and_switches() {
        let full = thread(7, Some(STAT), Some("100 20 3"), Some(STATUS), TICK_NS);
        let wanted = ThreadCounters {
            thread: 7,
            minor_faults: Some(101),
            major_faults: Some(3),
            user_ns: Some(110_000_000),
            system_ns: Some(120_000_000),
            cpu_ns: Some(100),
            run_queue_ns: Some(20),
            voluntary_switches: Some(3),
            involuntary_switches: Some(4),
            read_calls: None,
        };
        assert_eq!(full, wanted);
        // A kernel without CONFIG_SCHED_INFO; a thread that ended before it was read.
        let uncounted = thread(7, Some(STAT), None, Some(STATUS), TICK_NS);
        assert_eq!((uncounted.cpu_ns, uncounted.run_queue_ns), (None, None));
        let gone = ThreadCounters { thread: 7, ..Default::default() };
        assert_eq!(thread(7, None, None, None, TICK_NS), gone);
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
        // 7: faults decreased; 8 has ended; 9 had none before; 12 is new.
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
    fn time_waited_for_a_cpu_is_that_of_the_calling_thread() {
        assert_eq!(parse_schedstat("100 20 3\n"), (Some(100), Some(20)));
        assert_eq!(parse_schedstat(""), (None, None));
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let listed = threads(std::process::id()).into_iter().find(|thread| thread.thread == own);
        let (before, after) = (listed.and_then(|thread| thread.run_queue_ns), own_run_queue_ns());
        assert_eq!(before.is_some(), after.is_some());
        assert!(before <= after, "{before:?} {after:?}");
    }

    #[test]
    fn allowed_cpus_are_those_of_the_affinity() {
        let list = cpus_allowed(std::process::id()).expect("status");
        assert!(list.parse::<pagewise_model::CpuList>().is_ok(), "{list}");
        assert_eq!(cpus_allowed(u32::MAX), None);
    }

    #[test]
    fn fdinfo_flags_are_octal() {
        assert_eq!(
            parse_fdinfo_flags("pos:\t0\nflags:\t0140000\nmnt_id:\t24\n").map(|flags| flags.bits()),
            Some(0o140_000)
        );
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
        let before = totals(pid);
        let mut bytes = vec![0; 65536];
        for _ in 0..16 {
            file.as_file().read_exact_at(&mut bytes, 0).expect("read");
        }
        for _ in 0..8 {
            file.as_file().write_all_at(&bytes, 0).expect("write");
        }
        let done = ProcessCounters::difference(&before, &totals(pid));
        match done.read_call_bytes {
            Some(read) => {
                assert!(read >= 16 * 65536, "{done:?}");
                assert!(done.write_call_bytes >= Some(8 * 65536) && done.write_calls >= Some(8), "{done:?}");
            }
            None => println!("skipped: proc-io: /proc/self/io is missing"),
        }
        assert!(done.minor_faults.is_some() && done.user_ns.is_some(), "{done:?}");
        assert_eq!(totals(u32::MAX), ProcessCounters::default());
        let page_bytes = rustix::param::page_size();
        let mapping =
            pagewise_sys::WritableMapping::new(file.as_file(), page_bytes, false).expect("a mapping");
        mapping.lock().expect("a page may be locked");
        let locked = totals(pid).locked_bytes;
        assert!(locked >= Some(page_bytes as u64), "{locked:?}");
    }

    #[test]
    fn direct_descriptors_are_distinguished_from_others() {
        use std::os::unix::fs::OpenOptionsExt;
        let file = tempfile::NamedTempFile::new().expect("file");
        let keys = FileKeys::of([crate::files::FileKey::of(file.as_file()).expect("key")]);
        let pid = std::process::id();
        assert_eq!(descriptors_direct(pid, &keys), Some(false));
        let path = file.into_temp_path();
        assert_eq!(descriptors_direct(pid, &keys), None);
        let flags = OFlags::DIRECT.bits() as i32;
        let Ok(direct) = File::options().read(true).custom_flags(flags).open(&path) else {
            println!("skipped: direct-io: the filesystem of {} has no O_DIRECT", path.display());
            return;
        };
        assert_eq!(descriptors_direct(pid, &keys), Some(true));
        let buffered = File::open(&path).expect("open");
        assert_eq!(descriptors_direct(pid, &keys), Some(false));
        drop((direct, buffered));
    }
}
