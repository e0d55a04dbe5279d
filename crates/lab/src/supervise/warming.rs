//! Preparation of the page cache as a cell requests, with the memory charged to the worker's group.
//!
//! Under a memory limit the file is evicted and then read by a process within the group
//! (`from_inside`). If the span does not fit the cache, what is read first is as the workload
//! would leave it ([`CacheFill`]), and the workload itself continues in windows until its reads
//! from the device per operation are steady (`pagewise_analysis::proof::steady`).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pagewise_analysis::proof::steady;
use pagewise_host::steps::{RunStep, reached};
use pagewise_host::{Permutation, cache};
use pagewise_model::trace::ResidentPages;
use pagewise_model::{CacheState, Cell, Failure, FailureKind};
use pagewise_protocol::descriptor_path;
use pagewise_sys::AnonymousMemory;

use super::conditions::ConditionGuard;
use super::files::{Input, NoState, slowest};

/// Interval between checks of the stop flag.
const STOP_CHECK: Duration = Duration::from_millis(2);
/// Memory of the reads that warm: large, so that the device is the limit, and small compared with
/// the least memory limit.
const READ_MEMORY: u64 = 1 << 20;
/// Reads that warm at once: one in flight leaves most devices half idle.
const READERS: u64 = 4;
/// Share of the limit left to the worker, so that it does not wait for reclaim when it starts.
const LEFT_SHARE: u64 = 16;

/// Reads of a process within the group to warm the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub struct CacheFill {
    /// Number of bytes
    bytes: u64,
    /// Blocks of this size at random positions; without it, the beginning of the file
    #[arg(long, requires = "span", requires = "seed")]
    block: Option<u64>,
    /// The part of the file that has these blocks
    #[arg(long)]
    span: Option<u64>,
    /// Seed of their order
    #[arg(long)]
    seed: Option<u64>,
}

impl CacheFill {
    /// The beginning of the file.
    fn beginning(bytes: u64) -> Self {
        Self { bytes, block: None, span: None, seed: None }
    }

    /// Reads that leave a cache that cannot hold the span as uniform reads of `cell` without
    /// readahead leave it: full of blocks of their size. Other reads leave clusters. Those of
    /// random `pread` need as long if they are made here, by several reads at once.
    fn of(cell: &Cell, bytes: u64, page_bytes: u64, seed: u64) -> Self {
        match cell.conditions.reads().filter(|_| steady::has_prediction(cell, page_bytes)) {
            Some(reads) => Self {
                bytes,
                block: Some(reads.read_bytes.0),
                span: Some(cell.conditions.span_bytes.0),
                seed: Some(seed),
            },
            None => Self::beginning(bytes),
        }
    }

    fn arguments(&self) -> Vec<String> {
        let options = [("block", self.block), ("span", self.span), ("seed", self.seed)];
        let options = options.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?)));
        std::iter::once(self.bytes.to_string()).chain(options).collect()
    }

    /// Size and number of its reads, and their order if it is a random one.
    fn reads(&self) -> (u64, u64, Option<Permutation>) {
        match (self.block, self.span, self.seed) {
            (Some(block), Some(span), Some(seed)) if block > 0 && block <= span => {
                let blocks = span / block;
                (block, (self.bytes / block).min(blocks), Some(Permutation::new(blocks, seed)))
            }
            _ => (READ_MEMORY / READERS, self.bytes.div_ceil(READ_MEMORY / READERS), None),
        }
    }
}

/// Settings that the warming of any cell depends on.
#[derive(Clone, Copy)]
pub struct WarmSettings<'a> {
    /// True if the whole page cache may be dropped.
    pub drop_caches: bool,
    /// True if the file leaves the page cache before direct reads too: where device bytes do not
    /// prove them.
    pub evicts_direct: bool,
    /// Time limit, beyond that of reading.
    pub patience: Duration,
    /// Size of a page.
    pub page_bytes: u64,
    /// Seed of what is drawn.
    pub seed: u64,
    /// The pages that were in the page cache when each replayed file was recorded.
    pub recorded: Option<&'a [ResidentPages]>,
    /// The user's wish to end.
    pub stop: &'a AtomicBool,
}

/// Bring the page cache of the span into the state of the cell.
pub fn prepare(
    cell: &Cell,
    input: &Input,
    guard: &ConditionGuard,
    settings: &WarmSettings<'_>,
) -> Result<(), NoState> {
    let WarmSettings { drop_caches, stop, .. } = *settings;
    let conditions = &cell.conditions;
    // A file to write was made in its state.
    if !conditions.workload().is_reading() {
        return Ok(());
    }
    let span = conditions.span_bytes.0;
    if !cell.depends_on_cache() {
        // Pages that a direct read brings in prove that it was none, if they were not there before.
        if cell.method.is_direct() && settings.evicts_direct {
            // The check says so if pages stay.
            let _ = input.make_cold(span, drop_caches);
        }
        return Ok(());
    }
    match (conditions.cache, conditions.cache_capacity()) {
        // Files to update are made in their state.
        (CacheState::AsIs | CacheState::WarmSmall, _) => Ok(()),
        (CacheState::Cold | CacheState::ColdStart, _) => input.make_cold(span, drop_caches),
        (CacheState::Recorded, _) => {
            let recorded = settings.recorded.expect("a replay has a trace");
            input.make_as_recorded(span, recorded, drop_caches, stop)
        }
        (CacheState::ReadOnce, _) => {
            input.make_cold(span, drop_caches)?;
            from_inside(input, CacheFill::beginning(span), guard, settings)
        }
        (CacheState::Warm, None) => input.make_warm(span, stop),
        (CacheState::Warm, Some(capacity)) => {
            // A file in memory cannot be evicted; its charge will show that it is not the worker's.
            if input.in_memory().is_none() {
                input.make_cold(span, drop_caches)?;
            }
            let fits = conditions.fits_memory();
            let most = if fits { span } else { span.min(capacity.0 - capacity.0 / LEFT_SHARE) };
            let fill = match fits {
                true => CacheFill::beginning(most),
                false => CacheFill::of(cell, most, settings.page_bytes, settings.seed),
            };
            for passes in 1.. {
                from_inside(input, fill, guard, settings)?;
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

/// Let a process within the worker's group read, which charges what it reads to the group.
fn from_inside(
    input: &Input,
    fill: CacheFill,
    guard: &ConditionGuard,
    settings: &WarmSettings<'_>,
) -> Result<(), NoState> {
    let failed =
        |detail: String| not_warm(format!("the file could not be warmed from inside the limit: {detail}"));
    let mut command = Command::new("/proc/self/exe");
    command.arg("warm").args(fill.arguments());
    command.args(input.parts(fill.bytes).map(|(file, _)| descriptor_path(file)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let command = guard.prepare(&mut command).map_err(|error| failed(error.to_string()))?;
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    reached(RunStep::Warming);
    let deadline = Instant::now() + settings.patience + slowest(fill.bytes);
    let ended: io::Result<Option<ExitStatus>> = loop {
        match child.try_wait() {
            Ok(None) if settings.stop.load(Ordering::Relaxed) => break Ok(None),
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

/// Read what `fill` says of the file, or so many bytes of several, one after the other; runs in the
/// process within the group.
pub fn read_into_cache(paths: &[PathBuf], fill: &CacheFill) -> anyhow::Result<()> {
    if let [path] = paths {
        return read_file_into_cache(path, fill);
    }
    let mut left = fill.bytes;
    for path in paths {
        let bytes = std::fs::metadata(path)?.len().min(left);
        read_file_into_cache(path, &CacheFill::beginning(bytes))?;
        left -= bytes;
    }
    Ok(())
}

fn read_file_into_cache(path: &Path, fill: &CacheFill) -> anyhow::Result<()> {
    let (read_bytes, reads, order) = fill.reads();
    let next = AtomicU64::new(0);
    let read = || -> anyhow::Result<()> {
        let file = File::open(path)?;
        // No readahead, which would bring in more than that.
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
        let mut buffer = AnonymousMemory::new(read_bytes as usize)?;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= reads {
                return Ok(());
            }
            let (start, end) = match &order {
                Some(order) => (order.at(index) * read_bytes, u64::MAX),
                None => (index * read_bytes, fill.bytes),
            };
            let range = start..end.min(start + read_bytes);
            cache::read_range(&file, range, buffer.bytes_mut(), &AtomicBool::new(false))?;
        }
    };
    std::thread::scope(|scope| {
        let readers = (READ_MEMORY / read_bytes).clamp(1, READERS);
        let readers: Vec<_> = (0..readers).map(|_| scope.spawn(read)).collect();
        readers.into_iter().try_for_each(|reader| reader.join().expect("a reader does not panic"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_files_are_read_one_after_the_other() {
        let directory = tempfile::tempdir().expect("directory");
        let paths: Vec<PathBuf> = (0..3).map(|file| directory.path().join(file.to_string())).collect();
        for path in &paths {
            std::fs::write(path, vec![1; 300_000]).expect("write");
        }
        read_into_cache(&paths, &CacheFill::beginning(900_000)).expect("all of each");
        read_into_cache(&paths, &CacheFill::beginning(300_001)).expect("a byte of the second");
        std::fs::remove_file(&paths[1]).expect("remove");
        read_into_cache(&paths, &CacheFill::beginning(900_000)).expect_err("each is read");
    }

    #[test]
    fn a_fill_reads_each_of_its_blocks_once_and_no_more() {
        let fill = CacheFill { bytes: 100, block: Some(8), span: Some(163), seed: Some(7) };
        let (bytes, reads, order) = fill.reads();
        let order = order.expect("a random order");
        let mut starts: Vec<u64> = (0..reads).map(|read| order.at(read) * bytes).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!((bytes, reads, starts.len()), (8, 12, 12));
        assert!(starts.iter().all(|start| start % 8 == 0 && start + 8 <= 163));
        assert!(starts.iter().any(|start| *start >= 100), "not only the beginning");
        let (bytes, reads, order) = CacheFill::beginning((5 << 20) + 1).reads();
        assert_eq!((bytes, reads, order.is_none()), (256 << 10, 21, true));
        let whole = CacheFill { bytes: 1000, ..fill };
        assert_eq!(whole.reads().1, 20, "there are no more blocks");
    }
}
