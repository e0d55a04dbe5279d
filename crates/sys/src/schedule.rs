//! The scheduling of threads (sched_setattr(2)).

use std::io;

use rustix::process::Pid;

/// The scheduling policy of a thread, with its attributes.
#[derive(Clone, Copy, Debug)]
pub struct Schedule(libc::sched_attr);

impl Schedule {
    /// SCHED_FIFO at its lowest priority: before all threads of the other policies. What the thread starts is scheduled as usual.
    pub fn before_others() -> Self {
        Self(libc::sched_attr {
            sched_policy: libc::SCHED_FIFO as u32,
            sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
            sched_priority: 1,
            ..none()
        })
    }

    /// The schedule of a thread.
    pub fn of(thread: Pid) -> io::Result<Self> {
        let mut attributes = none();
        let (thread, size) = (thread.as_raw_nonzero().get(), size_of::<libc::sched_attr>() as u32);
        // SAFETY: the kernel writes at most the size that is given with the memory.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attributes, size, 0u32) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(attributes)) }
    }

    /// True if the thread shares the CPUs with others by its nice value (SCHED_OTHER).
    pub fn is_ordinary(self) -> bool {
        self.0.sched_policy == libc::SCHED_OTHER as u32
    }

    /// This one with a slice of so many nanoseconds. A short slice lets an ordinary thread run soon when it wakes, from Linux 6.12 on;
    /// before that it changes nothing.
    pub fn with_slice(self, ns: u64) -> Self {
        Self(libc::sched_attr { sched_runtime: ns, ..self.0 })
    }

    /// Schedule the thread so.
    pub fn apply(mut self, thread: Pid) -> io::Result<()> {
        self.0.size = size_of::<libc::sched_attr>() as u32;
        let thread = thread.as_raw_nonzero().get();
        // SAFETY: the kernel reads the size that stands at the beginning of the memory.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const self.0, 0u32) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn none() -> libc::sched_attr {
    libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_applied_and_taken_back() {
        let thread = rustix::thread::gettid();
        let before = Schedule::of(thread).expect("a schedule");
        if before.is_ordinary() {
            before.with_slice(200_000).apply(thread).expect("a slice");
            let now = Schedule::of(thread).expect("a schedule");
            assert!([200_000, before.0.sched_runtime].contains(&now.0.sched_runtime), "{now:?}");
        }
        if Schedule::before_others().apply(thread).is_ok() {
            assert!(!Schedule::of(thread).expect("a schedule").is_ordinary());
        }
        before.apply(thread).expect("as it was");
        let after = Schedule::of(thread).expect("a schedule");
        assert_eq!(format!("{after:?}"), format!("{before:?}"));
    }
}
