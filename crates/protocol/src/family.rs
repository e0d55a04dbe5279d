//! The processes that a worker forked, which end with it.
//!
//! A worker leads a process group of its own, which is killed when the worker has ended. A process
//! that left the group, as a daemon does, loses its parent sooner or later and becomes a child of
//! this process (PR_SET_CHILD_SUBREAPER, Linux 3.4). Once the last worker has ended, this process
//! has no other children, so those are killed too; their own children follow in turn.
//!
//! A process that was started with children of somebody else, as by a shell that replaced itself,
//! adopts nobody, because it could not distinguish them from those of a worker. The same holds for
//! the first process of a PID namespace, to which all orphans come.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group, set_child_subreaper, waitid,
};

/// Maximum time for killed processes to end.
const GONE_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

static ADOPTS: OnceLock<bool> = OnceLock::new();

/// Run something that is no worker and may leave processes behind, which are not to end with the
/// workers. There is none meanwhile.
pub fn without_adopting<T>(run: impl FnOnce() -> T) -> T {
    let adopts = ADOPTS.get() == Some(&true);
    // What this kernel does not know it did not do before.
    let _ = adopts.then(|| set_child_subreaper(None));
    let ran = run();
    let _ = adopts.then(|| set_child_subreaper(Some(getpid())));
    ran
}

/// Let orphans of workers become children of this process. Called before the first worker is
/// started.
pub(crate) fn adopt() -> bool {
    *ADOPTS
        .get_or_init(|| !getpid().is_init() && !has_children() && set_child_subreaper(Some(getpid())).is_ok())
}

/// Kill the group of a worker whose status was not collected, so that its id belongs to nobody else
/// yet.
pub(crate) fn kill_group(leader: Pid) {
    // An empty group is an error.
    let _ = kill_process_group(leader, Signal::KILL);
}

/// Workers whose status was not collected.
static LIVING: AtomicUsize = AtomicUsize::new(0);

/// Count a worker that was started.
pub(crate) fn begun() {
    LIVING.fetch_add(1, Ordering::AcqRel);
}

/// Kill the orphans of the workers, if that whose status was just collected is the last: while
/// another one lives, nobody knows whose they are, and it is a child too.
pub(crate) fn ended() {
    if LIVING.fetch_sub(1, Ordering::AcqRel) == 1 {
        kill_orphans();
    }
}

fn kill_orphans() {
    let deadline = Instant::now() + GONE_WITHIN;
    while adopt() && has_children() && Instant::now() < deadline {
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
            let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        std::thread::sleep(PAUSE);
    }
}

/// True if a process has ended; its status is not collected.
pub(crate) fn has_ended(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(child), options) {
            Err(Errno::INTR) => {}
            // An error: it was collected.
            ended => return !matches!(ended, Ok(None)),
        }
    }
}

fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::All, options) {
            Err(Errno::INTR) => {}
            found => return !matches!(found, Err(Errno::CHILD)),
        }
    }
}

/// Processes whose parent is this one.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_pid();
    all().filter(|process| process.parent == own).filter_map(|process| Pid::from_raw(process.pid)).collect()
}

/// Processes of a group that have not ended.
pub(crate) fn of_group(group: u32) -> Vec<u32> {
    let living =
        all().filter(|process| process.group == group as i32 && !["Z", "X"].contains(&&*process.state));
    living.map(|process| process.pid as u32).collect()
}

/// Facts from /proc/PID/stat about a process (proc_pid_stat(5)).
struct Process {
    pid: i32,
    state: String,
    parent: i32,
    group: i32,
}

fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?))
}

/// The name of a program may hold anything, so what comes behind it counts: `1 (name) S 2 3 …`.
fn process(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.to_string();
    Some(Process { pid, state, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
}
