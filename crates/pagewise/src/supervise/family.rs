//! What a worker forks ends with it.
//!
//! A worker leads a process group of its own, which is killed when the worker has ended. What left the group, as a daemon
//! does, loses its parent sooner or later and then becomes a child of this process (PR_SET_CHILD_SUBREAPER, Linux 3.4),
//! which has no other children at that time: those are killed too, and what they forked becomes children in turn. A
//! process that was started with children of somebody else's, as by a shell that replaced itself, or that is the first one
//! of a PID namespace, to which all orphans come, adopts nobody: it could not tell those of a worker from theirs.

use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group, set_child_subreaper, waitid,
};

/// How long killed processes may take to end.
const GONE_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

/// Has orphans of workers become children of this process. Called before the first one is started.
pub fn adopt() -> bool {
    static ADOPTS: OnceLock<bool> = OnceLock::new();
    *ADOPTS
        .get_or_init(|| !getpid().is_init() && !has_children() && set_child_subreaper(Some(getpid())).is_ok())
}

/// Kills the group of a worker that has not been waited for, so that its number is nobody else's yet.
pub fn kill_group(leader: Pid) {
    // It is an error that there is nobody to be killed.
    let _ = kill_process_group(leader, Signal::KILL);
}

/// Kills what a worker left that has been waited for.
pub fn kill_orphans() {
    let deadline = Instant::now() + GONE_WITHIN;
    while adopt() && has_children() && Instant::now() < deadline {
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
            let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether a process has ended, without collecting it.
pub fn has_ended(child: Pid) -> bool {
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
    let own = getpid().as_raw_pid().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent_of(*pid).as_ref() == Some(&own)).filter_map(Pid::from_raw).collect()
}

/// The name of a program may hold anything, so what comes behind it counts: `1 (name) S 2 …`.
fn parent_of(pid: i32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    stat.rsplit_once(')')?.1.split_whitespace().nth(1).map(str::to_string)
}
