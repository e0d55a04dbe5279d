//! A trace to be replayed: read from its file, and checked against the files whose reads it holds.

mod chosen;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pagewise_analysis::statistics::total;
use pagewise_host::memory::Memory;
use pagewise_model::access_map::AccessMap;
use pagewise_model::inspection::Inspection;
use pagewise_model::limits::MAX_THREADS;
use pagewise_model::plan::PlannedTrace;
use pagewise_model::trace::{
    FileSpan, LONGEST_ENTRY, NoGaps, RecordedTable, Trace, TraceAccess, TraceFile, WindowTally, range_of,
};
use pagewise_model::watched::{Missing, ObservationKind};
use pagewise_model::work::{MOST_GAPS_NS, USUAL_GAPS_NS};
use pagewise_model::{Bytes, Consume, Descriptor, Plan, Replay, Untrusted, format};

use chosen::{chosen, own_method};

/// A larger trace does not fit beside what is measured.
pub const MAX_TRACE_BYTES: u64 = 1 << 30;

/// Memory for an access of a trace that is replayed: itself, its entry, its gap and its checksum.
const BYTES_OF_ACCESS: u64 = size_of::<TraceAccess>() as u64 + 24;

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
    let count = Trace::count(&bytes);
    let (needed, available) = (Bytes(count.saturating_mul(BYTES_OF_ACCESS)), Memory::read().available_bytes);
    ensure!(
        available.is_none_or(|available| needed.0 <= available),
        "the trace {shown} has {}, which take {needed} of memory to be replayed, and {} are available: record less of the program",
        format::counted(count, "read"),
        Bytes(available.unwrap_or_default())
    );
    Trace::parse(&bytes).map_err(|reason| anyhow::anyhow!("{shown}: {reason}"))
}

/// Read the trace of a plan, which must be the one that the plan was made of.
pub fn of_plan(planned: &PlannedTrace, work: &Replay) -> Result<Trace> {
    let trace = read(Path::new(&planned.path))?;
    ensure!(trace.trailer.digest == work.trace, "{} is another trace than that of the plan", planned.path);
    Ok(trace)
}

/// The files of a plan in its trace, by their indexes in it.
pub fn files_of_plan(trace: &Trace, plan: &Plan, work: &Replay) -> Result<Vec<u32>> {
    let planned = plan.trace.as_ref().map_or(&[][..], |planned| &planned.files);
    let numbers = if planned.is_empty() { vec![work.file] } else { planned.to_vec() };
    let of_plan = plan.source.own_files().map(|(_, identity)| Some(identity));
    let of_trace = |number: &u32| trace.trailer.files.get(*number as usize)?.identity.as_ref();
    ensure!(
        numbers.len() == work.files as usize && numbers.iter().map(of_trace).eq(of_plan),
        "the trace has other files than the plan"
    );
    Ok(numbers)
}

/// The table of the reads of the files that a trace was left with ([`Trace::keep_in_span`]); `None`
/// if one of them ends behind [`pagewise_model::trace::END_OF_ENTRIES`].
///
/// The table has at most so many threads. Each has a buffer for the longest read, so long reads
/// have fewer.
pub fn table(trace: &Trace, most_threads: u32) -> Option<RecordedTable> {
    let longest = trace.accesses.iter().map(|access| access.len).max().unwrap_or(1).clamp(1, LONGEST_ENTRY);
    let threads = (BUFFERS_BYTES / longest).clamp(1, u64::from(most_threads));
    trace.table(0, threads as usize)
}

/// A trace with the files whose reads are replayed.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The files.
    pub files: Vec<PathBuf>,
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
    /// The trace at `path`, and the reads of the files that are `named`, or of the usual ones; by
    /// one thread in the order of time, or by as many as read at once. Long gaps between the reads
    /// are kept on request.
    pub fn load(path: &Path, named: &[PathBuf], by_one: bool, long_gaps: bool) -> Result<Self> {
        let mut trace = read(path)?;
        let shown = path.display();
        if let Some(why) = trace.trailer.lacks() {
            bail!("{shown} is incomplete: {why}, so it does not stand for the program");
        }
        if let Some(windows) = &trace.trailer.windows {
            check_windows(windows, path)?;
        }
        let page_bytes = rustix::param::page_size() as u64;
        ensure!(
            trace.header.page_bytes == page_bytes,
            "{shown} was recorded with pages of {}, and this machine has pages of {}",
            Bytes(trace.header.page_bytes),
            Bytes(page_bytes)
        );
        let files = chosen(&trace, named, path)?;
        let method = own_method(&trace, &files, path)?;
        let numbers: Vec<u32> = files.iter().map(|chosen| chosen.number).collect();
        let sizes = files.iter().map(|chosen| chosen.recorded.file_bytes.0);
        let span = FileSpan::of(sizes, page_bytes)
            .with_context(|| format!("the files of {shown} are too large to be replayed together"))?;
        trace.keep_in_span(&numbers, &span);
        let end = &trace.trailer;
        let files: Vec<&TraceFile> = numbers.iter().map(|number| &end.files[*number as usize]).collect();
        let of_files = format::only_or_counted(files.iter().map(|file| Untrusted(&file.path)), "file");
        ensure!(
            trace.entry_count(0) <= MOST_ENTRIES,
            "{shown} has {} of {of_files}: at most {} can be replayed",
            format::counted(trace.entry_count(0), "read"),
            format::grouped(MOST_ENTRIES)
        );
        let most_threads = if by_one { 1 } else { MAX_THREADS };
        let Some(table) = table(&trace, most_threads) else {
            bail!("{shown} has a read behind 1 TiB of {of_files}");
        };
        let gaps = trace.gaps(0).map(|gaps| total(gaps.each()));
        let kept = kept_gaps_ns(gaps, &table, long_gaps);
        let entries = &table.entries;
        let ranges = || entries.iter().map(|entry| range_of(*entry));
        let work = Replay {
            trace: end.digest,
            file: numbers[0],
            files: numbers.len() as u32,
            reads: entries.len() as u64,
            read_bytes: Bytes(ranges().map(|(_, len)| len as u64).sum()),
            longest: Bytes(ranges().map(|(_, len)| len as u64).max().unwrap_or(1)),
            trace_threads: table.thread_reads.len() as u32,
            ballast: Bytes(end.program.anonymous_bytes.unwrap_or(0)),
            consume: Consume::Touch,
            read_ahead: table.read_ahead.len() as u64,
            gaps_ns: kept.as_ref().ok().copied(),
        };
        let resident = |file: &&TraceFile| file.resident_before;
        let planned = PlannedTrace {
            path: path
                .canonicalize()
                .ok()
                .and_then(|path| path.to_str().map(str::to_string))
                .with_context(|| format!("the path {shown} is not UTF-8: run files need UTF-8"))?,
            files: if numbers.len() > 1 { numbers } else { Vec::new() },
            command: trace.header.command.clone(),
            method,
            memory_limit: trace.header.memory_limit,
            cold: files.iter().map(resident).all(|bytes| bytes == Some(0)),
            cached_bytes: files.iter().map(resident).sum::<Option<u64>>().map(Bytes),
            device_bytes: end.device_bytes(&files),
            windows: end.windows.is_some(),
            wall_ns: Some(end.program.wall_ns).filter(|wall_ns| *wall_ns > 0),
            gaps_ns: gaps.ok(),
            map: Some(AccessMap::of(reads_end_to_end(&trace, &span), span.sizes().iter().sum())),
            inspection: end.inspection.clone(),
        };
        let descriptor = if table.own_descriptors { Descriptor::PerThread } else { Descriptor::Shared };
        let notes = notes(&trace, &files, &table);
        let files = files.iter().map(|file| PathBuf::from(&file.path)).collect();
        Ok(Self { files, work, descriptor, planned, notes, no_gaps: kept.err() })
    }
}

/// Sum of the gaps between the reads of a file, or the reason that a replay cannot keep them.
fn kept_gaps_ns(gaps: Result<u64, NoGaps>, table: &RecordedTable, long_gaps: bool) -> Result<u64, String> {
    let threads = table.thread_reads.len() as u64;
    if threads > 1 {
        return Err(format!(
            "{} replay the reads, each in its own order, so in a gap of one another would read ahead of it",
            format::counted(threads, "thread")
        ));
    }
    let all_ns = gaps.map_err(|reason| reason.to_string())?;
    if all_ns > if long_gaps { MOST_GAPS_NS } else { USUAL_GAPS_NS } {
        let [all, usual, most] = [all_ns, USUAL_GAPS_NS, MOST_GAPS_NS].map(format::time);
        return Err(format!(
            "they are {all} in all, which each method would wait in each round: at most {usual} are kept, and {most} with \
             --as-fast-as-possible=false"
        ));
    }
    Ok(all_ns)
}

/// Time, offset and length of each read, where the files lie end to end.
fn reads_end_to_end<'a>(
    trace: &'a Trace,
    span: &'a FileSpan,
) -> impl Iterator<Item = (u64, u64, u64)> + Clone + 'a {
    let offset = |offset| {
        let (index, within) = span.locate(0, offset);
        span.before(index) + within
    };
    trace.accesses.iter().map(move |access| (access.time_ns, offset(access.offset), access.len))
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

/// Notes on what the program asked the kernel to do with its files.
fn advice_notes(trace: &Trace, files: &[&TraceFile], table: &RecordedTable) -> Vec<String> {
    let mut notes = Vec::new();
    for (mapped, how, which) in [
        (true, "of a mapping (madvise(2))", "as methods that map do at the same places, and others do not"),
        (
            false,
            "of a file (posix_fadvise(2), readahead(2), or madvise(2) where it reads by calls)",
            "as all methods do at the same places, but those past the page cache",
        ),
    ] {
        let count = table.read_ahead.iter().filter(|request| request.mapped == mapped).count() as u64;
        if count > 0 {
            let times = format::counted(count, "time");
            notes.push(format!("the program asked the kernel {times} to read a part {how} ahead, {which}"));
        }
    }
    if !trace.knows_read_ahead() {
        notes.push(
            "the trace has an earlier format, without what the program asked the kernel to read ahead: that is not replayed".to_string(),
        );
    }
    let mut others: Vec<&str> =
        files.iter().flat_map(|file| &file.other_advice).map(String::as_str).collect();
    others.sort_unstable();
    others.dedup();
    notes.extend(
        others.iter().map(|advice| format!("not replayed, of what the program asked the kernel: {advice}")),
    );
    notes
}

/// Notes on the accesses that the replay leaves out.
fn notes(trace: &Trace, files: &[&TraceFile], table: &RecordedTable) -> Vec<String> {
    let mut notes = thread_notes(table);
    notes.extend(advice_notes(trace, files, table));
    let end = &trace.trailer;
    let sum = |of: fn(&TraceFile) -> u64| files.iter().map(|file| of(file)).fold(0, u64::saturating_add);
    let the_file = if files.len() == 1 { "the file" } else { "the files" };
    let all = end.files.iter().map(|file| file.read_bytes).fold(0, u64::saturating_add);
    let others = all.saturating_sub(sum(|file| file.read_bytes));
    if others > 0 {
        notes.push(format!(
            "{} of {} that were read are of other files, which are not replayed",
            format::bytes(others),
            format::bytes(all)
        ));
    }
    if let Some(windows) = end.windows.as_ref().filter(|_| sum(|file| file.touched_pages) > 0) {
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
            "reads by calls, and requests to read ahead, are not in the trace, since calls were not seen: {}",
            missing.reason
        ));
    }
    let unread = |file: &&TraceFile| file.is_named() && file.reads == 0 && file.mapped_faults > 0;
    let only_mapped = end.files.iter().filter(unread).count() as u64;
    if only_mapped > 0 {
        notes.push(format!(
            "the program accessed {} of those named by mappings alone, which are not replayed",
            format::counted(only_mapped, "file")
        ));
    }
    let cut = end.inspection.as_ref().and_then(Inspection::not_watched);
    notes.extend(cut.map(|cut| format!("reads of {cut}, are not replayed: nobody watched them")));
    let faults = sum(|file| file.mapped_faults);
    if faults > 0 {
        notes.push(format!(
            "the program also accessed a mapping of {the_file} ({}), which is not replayed",
            format::counted(faults, "fault")
        ));
    }
    for (bytes, what) in [
        (sum(|file| file.left_out_bytes), "at offsets in memory of the program"),
        (end.unknown_bytes, "by descriptors that nobody could look at in time"),
    ] {
        if bytes > 0 {
            notes.push(format!("{} were moved {what}, which are not replayed", format::bytes(bytes)));
        }
    }
    let writes = sum(|file| file.writes);
    if writes > 0 {
        notes.push(format!(
            "the program also wrote {the_file} ({}), which is not replayed",
            format::counted(writes, "call")
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
