//! A trace to be replayed: read from its file, and checked against the file whose reads it holds.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pagewise_analysis::statistics::total;
use pagewise_host::files;
use pagewise_model::access_map::AccessMap;
use pagewise_model::limits::MAX_THREADS;
use pagewise_model::plan::PlannedTrace;
use pagewise_model::trace::{LONGEST_ENTRY, NoGaps, RecordedTable, Trace, TraceFile, WindowTally, range_of};
use pagewise_model::watched::{Missing, ObservationKind, ReadOrder};
use pagewise_model::work::MOST_GAPS_NS;
use pagewise_model::{Bytes, Consume, Descriptor, Replay, Untrusted, format};

/// A larger trace does not fit beside what is measured.
pub const MAX_TRACE_BYTES: u64 = 1 << 30;

/// The reads of a cache follow from windows if it holds so many times their pages.
const CACHES: u64 = 4;

/// Buffers of all threads of a replay.
const BUFFERS_BYTES: u64 = 256 << 20;

/// Reads of a table of a GiB. One that is longer than an entry counts more than once.
const MOST_ENTRIES: u64 = 1 << 27;

/// Read a trace.
pub fn read(path: &Path) -> Result<Trace> {
    let shown = path.display();
    let metadata = fs::metadata(path).with_context(|| format!("the trace {shown} cannot be read"))?;
    ensure!(metadata.is_file(), "{shown} is no trace: it is not a regular file");
    let (size, most) = (Bytes(metadata.len()), Bytes(MAX_TRACE_BYTES));
    ensure!(size <= most, "the trace {shown} has {size}: write one of at most {most}");
    let bytes = fs::read(path).with_context(|| format!("the trace {shown} cannot be read"))?;
    Trace::parse(&bytes).map_err(|reason| anyhow::anyhow!("{shown}: {reason}"))
}

/// Read the trace of a plan, which must be the one that the plan was made of.
pub fn of_plan(planned: &PlannedTrace, work: &Replay) -> Result<Trace> {
    let trace = read(Path::new(&planned.path))?;
    ensure!(trace.trailer.digest == work.trace, "{} is another trace than that of the plan", planned.path);
    Ok(trace)
}

/// The table of the reads of a file; `None` if one of them ends behind
/// [`pagewise_model::trace::END_OF_ENTRIES`].
///
/// The table has at most so many threads. Each has a buffer for the longest read, so long reads
/// have fewer.
pub fn table(trace: &Trace, file: u32, most_threads: u32) -> Option<RecordedTable> {
    let lens = trace.accesses.iter().filter(|access| access.file == file).map(|access| access.len);
    let longest = lens.max().unwrap_or(1).clamp(1, LONGEST_ENTRY);
    let threads = (BUFFERS_BYTES / longest).clamp(1, u64::from(most_threads));
    trace.table(file, threads as usize)
}

/// A trace with the file whose reads are replayed.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The file.
    pub file: PathBuf,
    /// The work.
    pub work: Replay,
    /// Sharing of a descriptor among threads.
    pub descriptor: Descriptor,
    /// The part of the recording that the plan keeps.
    pub planned: PlannedTrace,
    /// Notes on the accesses that the replay leaves out, in sentences.
    pub notes: Vec<String>,
    /// Reason that it cannot keep the gaps between the reads, if it cannot.
    pub no_gaps: Option<String>,
}

impl Traced {
    /// The trace at `path`, and the reads of `chosen`, or of the usual file; by one thread in
    /// the order of time, or by as many as read at once.
    pub fn load(path: &Path, chosen: Option<&Path>, by_one: bool) -> Result<Self> {
        let trace = read(path)?;
        let shown = path.display();
        let end = &trace.trailer;
        if let Some(why) = end.lacks() {
            bail!("{shown} is incomplete: {why}, so it does not stand for the program");
        }
        if let Some(windows) = &end.windows {
            check_windows(windows, path)?;
        }
        let (number, file) = match chosen {
            Some(chosen) => named(&trace, chosen, path)?,
            None => usual(&trace, path)?,
        };
        let Some(recorded) = &file.identity else {
            bail!(
                "{} was gone at the end of the recording, or another file: --file names another",
                Untrusted(&file.path)
            );
        };
        let file_path = PathBuf::from(&file.path);
        let (_, found) = files::identify(&file_path)?;
        ensure!(
            found == *recorded,
            "{} is not the file that was recorded: its size, its time of change or itself is another; record the program again",
            file_path.display()
        );
        let page_bytes = rustix::param::page_size() as u64;
        ensure!(
            trace.header.page_bytes == page_bytes,
            "{shown} was recorded with pages of {}, and this machine has pages of {}",
            Bytes(trace.header.page_bytes),
            Bytes(page_bytes)
        );
        let behind = reads_of(&trace, number).find(|(_, offset, len)| offset + len > recorded.file_bytes.0);
        if let Some((_, offset, len)) = behind {
            bail!(
                "{shown} has a read of {len} bytes at {offset} of {}, which ends at {}",
                file_path.display(),
                recorded.file_bytes.0
            );
        }
        check_resident(&trace, number, file, recorded.file_bytes.0, path)?;
        ensure!(
            trace.entry_count(number) <= MOST_ENTRIES,
            "{shown} has {} of {}: at most {} can be replayed",
            format::counted(trace.entry_count(number), "read"),
            file_path.display(),
            format::grouped(MOST_ENTRIES)
        );
        let most_threads = if by_one { 1 } else { MAX_THREADS };
        let Some(table) = table(&trace, number, most_threads) else {
            bail!("{shown} has a read behind 1 TiB of {}", file_path.display());
        };
        let gaps = trace.gaps(number).map(|gaps| total(&gaps));
        let kept = kept_gaps_ns(gaps, &table);
        let entries = &table.entries;
        let ranges = || entries.iter().map(|entry| range_of(*entry));
        let work = Replay {
            trace: end.digest,
            file: number,
            files: 1,
            reads: entries.len() as u64,
            read_bytes: Bytes(ranges().map(|(_, len)| len as u64).sum()),
            longest: Bytes(ranges().map(|(_, len)| len as u64).max().unwrap_or(1)),
            trace_threads: table.thread_reads.len() as u32,
            ballast: Bytes(end.program.anonymous_bytes.unwrap_or(0)),
            consume: Consume::Touch,
            gaps_ns: kept.as_ref().ok().copied(),
        };
        let planned = PlannedTrace {
            files: Vec::new(),
            path: path
                .canonicalize()
                .ok()
                .and_then(|path| path.to_str().map(str::to_string))
                .with_context(|| format!("the path {shown} is not UTF-8: run files need UTF-8"))?,
            command: trace.header.command.clone(),
            method: own_method(file, is_mapped(&trace, number)).parse().map_err(anyhow::Error::msg)?,
            memory_limit: trace.header.memory_limit,
            cold: file.resident_before == Some(0),
            cached_bytes: file.resident_before.map(Bytes),
            device_bytes: end.device_bytes(&[file]),
            windows: end.windows.is_some(),
            wall_ns: Some(end.program.wall_ns).filter(|wall_ns| *wall_ns > 0),
            gaps_ns: gaps.ok(),
            map: Some(AccessMap::of(reads_of(&trace, number), recorded.file_bytes.0)),
            inspection: end.inspection.clone(),
        };
        let descriptor = if table.own_descriptors { Descriptor::PerThread } else { Descriptor::Shared };
        let notes = notes(&trace, file, &table);
        Ok(Self { file: file_path, work, descriptor, planned, notes, no_gaps: kept.err() })
    }
}

/// Sum of the gaps between the reads of a file, or the reason that a replay cannot keep them.
fn kept_gaps_ns(gaps: Result<u64, NoGaps>, table: &RecordedTable) -> Result<u64, String> {
    let threads = table.thread_reads.len() as u64;
    if threads > 1 {
        return Err(format!(
            "{} replay the reads, each in its own order, so in a gap of one another would read ahead of it",
            format::counted(threads, "thread")
        ));
    }
    let all_ns = gaps.map_err(|reason| reason.to_string())?;
    if all_ns > MOST_GAPS_NS {
        let (all, most) = (format::time(all_ns), format::time(MOST_GAPS_NS));
        return Err(format!(
            "they are {all} in all, which each method would wait in each round: at most {most} are kept"
        ));
    }
    Ok(all_ns)
}

/// Time, offset and length of each read of a file.
fn reads_of(trace: &Trace, number: u32) -> impl Iterator<Item = (u64, u64, u64)> + Clone + '_ {
    let accesses = trace.accesses.iter().filter(move |access| access.file == number);
    accesses.map(|access| (access.time_ns, access.offset, access.len))
}

/// Least share of the windows that are proven, and of the touches that were seen, for a trace that
/// stands for its program.
const PROVEN: f64 = 0.99;

/// The error says why mapped accesses of the trace do not stand for the program.
fn check_windows(windows: &WindowTally, path: &Path) -> Result<()> {
    let WindowTally { windows: all, proven, touches, unseen_pages, .. } = *windows;
    ensure!(
        proven as f64 >= all as f64 * PROVEN && touches as f64 >= (touches + unseen_pages) as f64 * PROVEN,
        "{} does not stand for the program: of {} {} are proven, and {} were in place in the others that nobody had seen touched, beside \
         {}; of a process that was killed nothing is known",
        path.display(),
        format::counted(all, "window"),
        format::grouped(proven),
        format::counted(unseen_pages, "page"),
        format::counted(touches, "touched page")
    );
    Ok(())
}

/// Refuse pages in the page cache that are not of the file, or not those that the trace counts.
fn check_resident(trace: &Trace, number: u32, file: &TraceFile, file_bytes: u64, path: &Path) -> Result<()> {
    let Some(pages) = trace.resident.get(&number) else {
        ensure!(
            file.resident_before.is_none_or(|bytes| bytes == 0),
            "{} does not say which pages of {} were in the page cache",
            path.display(),
            Untrusted(&file.path)
        );
        return Ok(());
    };
    let page_bytes = trace.header.page_bytes;
    ensure!(
        pages.end() <= file_bytes.div_ceil(page_bytes),
        "{} says that page {} of {} was in the page cache, which ends at {file_bytes}",
        path.display(),
        pages.end() - 1,
        Untrusted(&file.path)
    );
    ensure!(
        file.resident_before == Some(pages.count() * page_bytes),
        "{} says that {} bytes of {} were in the page cache, and has {} of it",
        path.display(),
        file.resident_before.unwrap_or_default(),
        Untrusted(&file.path),
        format::counted(pages.count(), "page")
    );
    Ok(())
}

/// True if more of the accesses were through a mapping than by calls.
fn is_mapped(trace: &Trace, number: u32) -> bool {
    let of_file = trace.accesses.iter().filter(|access| access.file == number);
    let (touches, all) = of_file.fold((0u64, 0u64), |(touches, all), access| {
        (touches + if access.kind.is_touch() { access.len } else { 0 }, all + access.len)
    });
    touches > all / 2
}

/// The method by which the program read.
fn own_method(file: &TraceFile, is_mapped: bool) -> &'static str {
    if is_mapped {
        return match file.mapping_said_to_be_read {
            ReadOrder::Normal => "mmap",
            ReadOrder::Random => "mmap:random",
            ReadOrder::Sequential => "mmap:sequential",
        };
    }
    match (file.direct, file.said_to_be_read) {
        (true, _) => "pread:direct",
        (false, ReadOrder::Normal) => "pread",
        (false, ReadOrder::Random) => "pread:random",
        (false, ReadOrder::Sequential) => "pread:sequential",
    }
}

/// The file of which most bytes were read, of those that were named as they were recorded: a replay
/// drops its file from the page cache.
fn usual<'a>(trace: &'a Trace, path: &Path) -> Result<(u32, &'a TraceFile)> {
    let files = || (0u32..).zip(&trace.trailer.files);
    let most_read = |files: &mut dyn Iterator<Item = (u32, &'a TraceFile)>| {
        files.filter(|(_, file)| file.reads > 0).max_by_key(|(_, file)| file.read_bytes)
    };
    let named = || files().filter(|(_, file)| file.is_named());
    let shown = path.display();
    if let Some(found) = most_read(&mut named()) {
        return Ok(found);
    }
    if let Some((_, unread)) = named().max_by_key(|(_, file)| file.mapped_faults) {
        ensure!(unread.mapped_faults == 0, only_mapped(unread));
        bail!(
            "{shown} was recorded for {}, and holds no read of it: --file names another",
            Untrusted(&unread.path)
        );
    }
    match most_read(&mut files()) {
        None => bail!("{shown} holds no read: the program accessed no file by calls"),
        Some((_, file)) => bail!(
            "{shown} was recorded without --cold or --as-is, and a replay drops its file from the page cache: name it, as in --file {} (most was read \
             of it: {})",
            Untrusted(&file.path),
            Bytes(file.read_bytes)
        ),
    }
}

/// The error of a file whose accesses a trace does not hold.
fn only_mapped(file: &TraceFile) -> String {
    format!(
        "the program accessed {} through a mapping ({}), and the trace does not hold these accesses: record it with --windows",
        Untrusted(&file.path),
        format::counted(file.mapped_faults, "fault")
    )
}

fn named<'a>(trace: &'a Trace, chosen: &Path, path: &Path) -> Result<(u32, &'a TraceFile)> {
    let wanted = chosen.canonicalize().unwrap_or_else(|_| chosen.to_path_buf());
    let is_only_mapped =
        |file: &&TraceFile| Path::new(&file.path) == wanted && file.reads == 0 && file.mapped_faults > 0;
    if let Some(mapped) = trace.trailer.files.iter().find(is_only_mapped) {
        bail!(only_mapped(mapped));
    }
    let mut files = (0u32..).zip(&trace.trailer.files);
    files.find(|(_, file)| Path::new(&file.path) == wanted && file.reads > 0).with_context(|| {
        let known = trace.trailer.files.iter().filter(|file| file.reads > 0).take(5);
        let known: Vec<String> = known.map(|file| Untrusted(&file.path).to_string()).collect();
        if known.is_empty() {
            return format!("{} holds no read: the program accessed no file by calls", path.display());
        }
        format!(
            "{} holds no read of {}: its files are {}",
            path.display(),
            chosen.display(),
            known.join(", ")
        )
    })
}

/// Notes on the threads that replay the reads.
fn thread_notes(table: &RecordedTable) -> Vec<String> {
    let counted = |count: u64| format::counted(count, "thread");
    let (recorded, replaying) = (table.recorded_threads, table.thread_reads.len() as u64);
    let mut notes = Vec::new();
    if replaying > 1 {
        let descriptors =
            if table.own_descriptors { "each with a descriptor of its own" } else { "with one descriptor" };
        let side_by_side = counted(replaying);
        notes.push(format!(
            "{side_by_side} replay the reads, {descriptors}: the order is kept within a thread, and not between threads; with --threads 1 one \
             thread does all in the order of time"
        ));
    }
    let joined = table.joined_threads;
    if recorded > replaying && joined == 0 {
        notes.push(format!(
            "the program read the file by {}, of which at most {} were at it at once: those that began when others had ended are \
             replayed after them",
            counted(recorded),
            format::grouped(replaying)
        ));
    }
    if joined > 0 && replaying == 1 {
        notes.push(format!("one thread replays the reads of {} in the order of time", counted(recorded)));
    } else if joined > 0 {
        notes.push(format!(
            "more threads of the program read the file at once than are replayed: {} of {} follow others in their threads, in the order of \
             time",
            format::grouped(joined),
            counted(recorded)
        ));
    }
    notes
}

/// Notes on the accesses that the replay leaves out.
fn notes(trace: &Trace, file: &TraceFile, table: &RecordedTable) -> Vec<String> {
    let mut notes = thread_notes(table);
    let end = &trace.trailer;
    let all: u64 = end.files.iter().map(|file| file.read_bytes).sum();
    let others = all.saturating_sub(file.read_bytes);
    if others > 0 {
        notes.push(format!(
            "{} of {} that were read are of other files, which are not replayed",
            format::bytes(others),
            format::bytes(all)
        ));
    }
    if let Some(windows) = end.windows.as_ref().filter(|_| file.touched_pages > 0) {
        let page_bytes = trace.header.page_bytes;
        notes.push(format!(
            "accesses to its mapping are the first touches of each page in {} of up to {}: they hold for caches of {} and more",
            format::counted(windows.windows, "window"),
            format::counted(windows.longest_touches, "page"),
            format::bytes(windows.longest_touches * page_bytes * CACHES)
        ));
        notes.extend(windows.left_out.iter().map(|reason| format!("not in the trace: accesses to {reason}")));
    }
    if let Some(missing) = Missing::of(&end.missing, ObservationKind::Calls) {
        notes.push(format!(
            "reads by calls are not in the trace, since calls were not seen: {}",
            missing.reason
        ));
    }
    if file.mapped_faults > 0 {
        notes.push(format!(
            "the program also accessed a mapping of the file ({}), which is not replayed",
            format::counted(file.mapped_faults, "fault")
        ));
    }
    for (bytes, what) in [
        (file.left_out_bytes, "at offsets in memory of the program"),
        (end.unknown_bytes, "by descriptors that nobody could look at in time"),
    ] {
        if bytes > 0 {
            notes.push(format!("{} were moved {what}, which are not replayed", format::bytes(bytes)));
        }
    }
    if file.writes > 0 {
        notes.push(format!(
            "the program also wrote the file ({}), which is not replayed",
            format::counted(file.writes, "call")
        ));
    }
    if end.ring_requests > 0 {
        notes.push(format!(
            "{} of io_uring are not replayed: what they read is not known",
            format::counted(end.ring_requests, "request")
        ));
    }
    notes
}
