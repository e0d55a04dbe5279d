//! The scheduling of threads (sched_setattr(2)), and the CPU time of processes.

use std::io;
use std::time::Duration;

use rustix::process::Pid;

use crate::checked;

/// The scheduling policy of a thread, with its attributes.
#[derive(Clone, Copy, Debug)]
pub struct Schedule(libc::sched_attr);

impl Schedule {
    /// SCHED_FIFO at its lowest priority: before all threads of the other policies. What the thread
    /// starts is scheduled as usual.
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
        checked(unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attributes, size, 0u32) })?;
        Ok(Self(attributes))
    }

    /// True if the thread shares the CPUs with others by its nice value (SCHED_OTHER).
    pub fn is_ordinary(self) -> bool {
        self.0.sched_policy == libc::SCHED_OTHER as u32
    }

    /// The policy with a slice of so many nanoseconds. A short slice lets an ordinary thread run
    /// soon when it wakes, from Linux 6.12 on; before that it changes nothing.
    pub fn with_slice(self, ns: u64) -> Self {
        Self(libc::sched_attr { sched_runtime: ns, ..self.0 })
    }

    /// Schedule the thread so.
    pub fn apply(mut self, thread: Pid) -> io::Result<()> {
        self.0.size = size_of::<libc::sched_attr>() as u32;
        let thread = thread.as_raw_nonzero().get();
        // SAFETY: the kernel reads the size that stands at the beginning of the memory.
        checked(unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const self.0, 0u32) }).map(drop)
    }
}

/// CPU time that a process has used until now, that of its ended threads too
/// (clock_getcpuclockid(3)). What a running thread used since the last tick of its CPU is not in
/// it.
pub fn cpu_time(process: Pid) -> io::Result<Duration> {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: the C library writes the number of a clock into `clock`.
    let found = unsafe { libc::clock_getcpuclockid(process.as_raw_nonzero().get(), &raw mut clock) };
    if found != 0 {
        return Err(io::Error::from_raw_os_error(found));
    }
    // SAFETY: the kernel writes a time into `time`.
    checked(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
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
    use rustix::time::{ClockId, clock_gettime};

    /// The time of a thread is in the account of its process when it has ended.
    #[test]
    fn the_time_of_a_process_has_that_of_its_threads() {
        const USED_NS: i64 = 3_000_000;
        let of_thread = || clock_gettime(ClockId::ThreadCPUTime).tv_nsec;
        let used = || cpu_time(rustix::process::getpid()).expect("a time");
        let before = used();
        let spinning = std::thread::spawn(move || while of_thread() < USED_NS {});
        spinning.join().expect("it ends");
        // Whoever joins a thread may see it before the kernel has taken its account over.
        let has_used = |_: &u32| used() - before >= Duration::from_nanos(USED_NS as u64);
        let used_it = (0..1_000_000).inspect(|_| std::thread::yield_now()).any(|look| has_used(&look));
        assert!(used_it, "{:?}", used() - before);
        assert!(cpu_time(Pid::from_raw(4_194_305).expect("more than there are")).is_err());
    }
}
