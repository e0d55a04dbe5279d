//! Preparation of the page cache as a cell requests, with the memory charged to the worker's group.
//!
//! Under a memory limit the file is evicted and then read by a process within the group ([`from_inside`]). If the span does not fit
//! the cache, the workload itself continues in windows until its reads from the device per operation are steady
//! (`pagewise_analysis::proof::steady`).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pagewise_host::cache;
use pagewise_model::{CacheState, Cell, Failure, FailureKind};
use pagewise_sys::AnonymousMemory;

use super::conditions::ConditionGuard;
use super::files::{Input, NoState, slowest};

/// Interval between checks of the stop flag.
const STOP_CHECK: Duration = Duration::from_millis(2);
/// Size of the reads that warm: large, so that the device is the limit.
const READ_BYTES: usize = 1 << 20;
/// Share of the limit left to the worker, so that it does not wait for reclaim when it starts.
const LEFT_SHARE: u64 = 16;

/// Bring the page cache of the span into the state of the cell.
pub fn prepare(
    cell: &Cell,
    input: &Input,
    guard: &ConditionGuard,
    drop_caches: bool,
    patience: Duration,
    stop: &AtomicBool,
) -> Result<(), NoState> {
    let conditions = &cell.conditions;
    // A file to write was made in its state.
    if !cell.depends_on_cache() || !conditions.workload().is_reading() {
        return Ok(());
    }
    let span = conditions.span_bytes.0;
    match (conditions.cache, conditions.cache_capacity()) {
        (CacheState::AsIs, _) => Ok(()),
        (CacheState::Cold | CacheState::ColdStart, _) => input.make_cold(span, drop_caches),
        (CacheState::ReadOnce, _) => {
            input.make_cold(span, drop_caches)?;
            from_inside(input, span, guard, patience, stop)
        }
        (CacheState::Warm, None) => input.make_warm(span, stop),
        (CacheState::Warm, Some(capacity)) => {
            // A file in memory cannot be evicted; its charge will show that it is not the worker's.
            if input.in_memory().is_none() {
                input.make_cold(span, drop_caches)?;
            }
            let fits = conditions.fits_memory();
            let most = if fits { span } else { span.min(capacity.0 - capacity.0 / LEFT_SHARE) };
            for passes in 1.. {
                from_inside(input, most, guard, patience, stop)?;
                let resident = input.residency(span).resident_bytes;
                let Some(resident) = resident.filter(|resident| fits && *resident < span) else { break };
                let Some(pause) = cache::pause_before_pass(passes, resident, span) else {
                    return Err(not_warm(format!(
                        "only {resident} of {span} bytes stay in the page cache under the memory limit, after {passes} passes"
                    )));
                };
                std::thread::sleep(pause);
            }
            Ok(())
        }
    }
}

fn not_warm(detail: String) -> NoState {
    NoState::Failed(Failure { kind: FailureKind::NotWarm, detail })
}

/// Let a process within the worker's group read the first `len` bytes, which charges them to the group.
fn from_inside(
    input: &Input,
    len: u64,
    guard: &ConditionGuard,
    patience: Duration,
    stop: &AtomicBool,
) -> Result<(), NoState> {
    let failed =
        |detail: String| not_warm(format!("the file could not be warmed from inside the limit: {detail}"));
    let mut command = Command::new("/proc/self/exe");
    command.args(["warm", &input.worker_path(), &len.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let command = guard.prepare(&mut command).map_err(|error| failed(error.to_string()))?;
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let deadline = Instant::now() + patience + slowest(len);
    let ended: io::Result<Option<ExitStatus>> = loop {
        match child.try_wait() {
            Ok(None) if stop.load(Ordering::Relaxed) => break Ok(None),
            Ok(None) if Instant::now() >= deadline => break Err(io::ErrorKind::TimedOut.into()),
            Ok(None) => std::thread::sleep(STOP_CHECK),
            ended => break ended,
        }
    };
    if !matches!(ended, Ok(Some(_))) {
        let _ = child.kill();
        let _ = child.wait();
    }
    match ended {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => {
            if let Some(reason) = guard.killed_for_memory() {
                return Err(NoState::Failed(Failure { kind: FailureKind::KilledForMemory, detail: reason }));
            }
            let mut text = String::new();
            let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut text));
            Err(failed(if text.is_empty() { status.to_string() } else { text.trim().to_string() }))
        }
        Ok(None) => Err(NoState::Stopped),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Read the first `len` bytes of the file; runs in the process within the group.
pub fn read_into_cache(path: &Path, len: u64) -> anyhow::Result<()> {
    let file = File::open(path)?;
    // No readahead, which would bring in more than the span.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
    let mut buffer = AnonymousMemory::new(READ_BYTES)?;
    Ok(cache::read_range(&file, 0..len, buffer.bytes_mut(), &AtomicBool::new(false))?)
}
