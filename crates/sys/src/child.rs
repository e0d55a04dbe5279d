//! Children that do not outlive their parent.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Has the kernel kill the child when the thread that spawns it ends (prctl(2), PR_SET_PDEATHSIG), so call
/// it from a thread that lives as long as the child should.
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    let parent = rustix::process::getpid();
    // SAFETY: the closure runs between fork and exec and calls only prctl(2) and getppid(2), which are
    // async-signal-safe; it allocates nothing.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the call above; then nobody will send the signal.
            if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from(rustix::io::Errno::SRCH)) }
        })
    }
}
