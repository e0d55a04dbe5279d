//! Processes of a killed run, identified by a mark in their environment, which their descendants
//! inherit.
//!
//! A worker dies with the run, but processes that it forked may not. A mark holds 64 random bits,
//! so a process with it descends from a worker of that run. A process that has cleared its
//! environment is not found.

use std::ffi::OsString;
use std::fs;

use pagewise_host::process;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The variable that holds the mark.
pub const VARIABLE: &str = "PAGEWISE_RUN";
/// A killed process forks no more, but may have done so during the search.
const PASSES: u32 = 3;

/// Kill all processes with this mark; return their ids.
pub fn kill_marked(mark: &str) -> Vec<u32> {
    let wanted = OsString::from(format!("{VARIABLE}={mark}")).into_encoded_bytes();
    let mut killed = Vec::new();
    for _ in 0..PASSES {
        let found: Vec<u32> = process::all().filter(|pid| kill_if(*pid, &wanted)).collect();
        if found.is_empty() {
            break;
        }
        killed.extend(found);
    }
    killed.sort_unstable();
    killed.dedup();
    killed
}

/// The process is held before it is examined, so that its id cannot be reused before it is killed.
fn kill_if(pid: u32, wanted: &[u8]) -> bool {
    let Some(held) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let Ok(held) = pidfd_open(held, PidfdFlags::empty()) else { return false };
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
        && pidfd_send_signal(held, Signal::KILL).is_ok()
}
