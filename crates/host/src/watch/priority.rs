//! The priority of the thread that watches. A descriptor is looked at before the program closes it,
//! or never.

use pagewise_sys::Schedule;
use rustix::process::Pid;
use rustix::thread::gettid;

/// A slice that is shorter than those of other threads.
const SLICE_NS: u64 = 200_000;

/// The priority of a thread, raised until this is dropped: as far as this user may.
#[derive(Debug)]
pub(super) struct RaisedPriority {
    thread: Pid,
    before: Option<Schedule>,
}

impl RaisedPriority {
    /// Raise the priority of this thread.
    pub(super) fn of_this_thread() -> Self {
        let thread = gettid();
        let before = Schedule::of(thread).ok().filter(|before| {
            let short = before.with_slice(SLICE_NS);
            before.is_ordinary()
                && (Schedule::before_others().apply(thread).is_ok() || short.apply(thread).is_ok())
        });
        Self { thread, before }
    }
}

impl Drop for RaisedPriority {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = before.apply(self.thread);
        }
    }
}
