//! Rights of this user: events, descriptors, memory for rings; of a refusal the reason.

use std::io;

use pagewise_sys::perf::{Event, EventOptions, EventRing};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::{kernel_files, open_files};

/// Rings are as large as this user may lock, at most so many bytes for each CPU.
const MOST_RING_BYTES: usize = 8 << 20;
/// The smallest ring that is worth having.
const LEAST_RING_BYTES: usize = 32 << 10;
/// Descriptors that a watch leaves to the rest of the program.
const SPARE_DESCRIPTORS: u64 = 64;

/// The largest ring that this user may have for each CPU, and with `quick` a second, smaller one.
pub(super) fn ring_bytes(
    options: &EventOptions,
    thread: Pid,
    cpus: &[u32],
    quick: bool,
) -> Result<(usize, usize), String> {
    let mut bytes = MOST_RING_BYTES;
    loop {
        let quick_bytes = if quick { (bytes / 8).max(LEAST_RING_BYTES) } else { 0 };
        let sizes = [bytes, quick_bytes];
        let wanted = cpus.iter().flat_map(|cpu| sizes.map(|size| (*cpu, size))).filter(|(_, size)| *size > 0);
        let mapped = wanted.filter_map(|(cpu, size)| {
            // A CPU may be off.
            let event = Event::open(options, thread, cpu).ok()?;
            Some(EventRing::map(&event, size))
        });
        match mapped.collect::<io::Result<Vec<EventRing>>>() {
            Ok(_) => return Ok((bytes, quick_bytes)),
            Err(_) if bytes > LEAST_RING_BYTES => bytes /= 2,
            Err(error) => return Err(no_ring(&error)),
        }
    }
}

/// Reason that there is no ring.
pub(super) fn no_ring(error: &io::Error) -> String {
    format!("no memory for what is recorded ({error}): see kernel.perf_event_mlock_kb and ulimit -l")
}

/// Room for so many descriptors, up to the hard limit.
pub(super) fn room_for(events: u64) -> Result<(), String> {
    let needed = events + SPARE_DESCRIPTORS;
    open_files::room_for(needed).map_err(|reason| {
        format!("this needs {needed} open files, for each thread on each CPU, and {reason}")
    })
}

/// Reason that perf_event_open(2) was refused.
pub(super) fn refusal(error: &io::Error) -> String {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let paranoid = kernel_files::number::<i32>("/proc/sys/kernel/perf_event_paranoid");
    match (errno, paranoid) {
        (Some(Errno::ACCESS | Errno::PERM), Some(level)) if level > 2 => format!(
            "perf events are closed to this user (kernel.perf_event_paranoid is {level}); as root: sysctl \
             kernel.perf_event_paranoid=2"
        ),
        (Some(Errno::ACCESS), _) => {
            "this user may not watch that process: it is another user's, or has more \
                                      privileges"
                .to_string()
        }
        (Some(Errno::PERM | Errno::NOSYS), _) => {
            format!("perf events are closed here, as in most containers (perf_event_open: {error})")
        }
        (Some(Errno::MFILE | Errno::NFILE), _) => format!("too many open files (perf_event_open: {error})"),
        _ => format!("perf_event_open: {error}"),
    }
}

pub(super) fn is_any(error: &io::Error, errnos: &[Errno]) -> bool {
    errnos.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
