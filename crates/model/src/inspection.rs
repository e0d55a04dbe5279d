//! The inspection of a program: its files and the waits of its threads, as printed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ProcessCounters;
use crate::format::processes;
use crate::watched::{Missing, ReadOrder, Tally};

/// Version of this document. Its fields only ever grow.
pub const SCHEMA: u32 = 1;

/// The watched program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// The command as a shell takes it, or the name of the process.
    pub command: String,
    /// pagewise started it by this command.
    #[serde(default)]
    pub started: bool,
    /// The lowest memory limit of its cgroups, if that is below the machine's memory.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// The process.
    pub process: u32,
    /// End, if it came while it was watched.
    pub ended: Option<String>,
}

/// A program, inspected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inspection {
    /// Version of this document.
    pub schema: u32,
    /// The watched program.
    pub subject: Subject,
    /// Time that it was watched.
    pub watched_ns: u64,
    /// Size of a page.
    pub page_bytes: u64,
    /// Processes that were seen.
    pub processes: u64,
    /// Processes that were watched only until they executed a program that gains privileges
    /// (setuid, capabilities of a file).
    pub cut_processes: u64,
    /// Observations that were missing, each with its reason.
    pub missing: Vec<Missing>,
    /// True if every record arrived: what was counted is what was recorded. Otherwise shares are
    /// not to be trusted.
    pub complete: bool,
    /// Records that found no room.
    pub lost_records: u64,
    /// Counts of each event.
    pub events: Vec<Tally>,
    /// Files, those that were waited for the longest first.
    pub files: Vec<InspectedFile>,
    /// Threads, those that waited the longest first.
    pub threads: Vec<InspectedThread>,
    /// Files and threads that are not listed, because there are too many.
    #[serde(default)]
    pub left_out: LeftOut,
    /// Calls whose descriptor is a pipe, a socket or another thing that is no file.
    pub no_file: Option<Unattributed>,
    /// Calls whose descriptor was closed before anybody could look what it was.
    pub unknown: Option<Unattributed>,
    /// Requests that were handed to io_uring, whose files and offsets are not seen.
    pub ring_requests: Option<u64>,
    /// Faults of memory without a file.
    pub memory_faults: u64,
    /// Counters of the process in /proc when it was looked at last, less those at the beginning.
    pub totals: ProcessCounters,
}

/// Items that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Files.
    pub files: u64,
    /// Threads.
    pub threads: u64,
}

/// Calls that belong to no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unattributed {
    /// Descriptors.
    pub descriptors: u64,
    /// Calls.
    pub calls: u64,
    /// Bytes that they returned.
    pub bytes: u64,
}

/// A file, and what the program did to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InspectedFile {
    /// Path; `None`: pages of it came in, and nobody saw it opened.
    pub path: Option<String>,
    /// Major number, minor number, inode.
    pub identity: (u32, u32, u64),
    /// Size when it was opened.
    pub file_bytes: Option<u64>,
    /// Type of its filesystem.
    pub filesystem: Option<String>,
    /// The device whose blocks these pages are, instead of a file's: metadata of a filesystem, such
    /// as directories.
    pub block_device: Option<String>,
    /// True if the file holds code of the program or a library.
    pub code: bool,
    /// Past the page cache (O_DIRECT), by one of its descriptors.
    pub direct: bool,
    /// The read order that one of its descriptors was given, the last one that was
    /// (posix_fadvise(2)).
    pub said_to_be_read: ReadOrder,
    /// The expected order of reads of a mapping (madvise(2)): the last one that was announced.
    #[serde(default)]
    pub mapping_said_to_be_read: ReadOrder,
    /// Other advice and locks that change which of its pages are cached, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_advice: Vec<String>,
    /// Reads by calls; `None`: none, or calls were not watched.
    pub reads: Option<Calls>,
    /// Writes by calls.
    pub writes: Option<Calls>,
    /// Calls that make data durable: fsync(2), fdatasync(2), syncfs(2), msync(2),
    /// sync_file_range(2).
    pub syncs: Option<Waits>,
    /// Calls that put pages of a mapping in place ahead of use: MAP_POPULATE, MADV_POPULATE_READ,
    /// mlock(2).
    #[serde(default)]
    pub prefaults: Option<Waits>,
    /// Accesses to a mapping that raised a fault.
    pub mapping: Option<Mapped>,
    /// Bytes brought into the page cache; `None`: none, or it was not watched.
    pub brought_in: Option<BroughtIn>,
}

/// Calls that read, or that write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    /// Calls.
    pub count: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Bytes that they returned.
    pub bytes: u64,
    /// The most frequent results, in bytes, and how many calls had them.
    pub sizes: Vec<(u64, u64)>,
    /// Calls that began where the one before had ended.
    pub in_order: u64,
    /// Calls whose offset in the file is known.
    pub located: u64,
    /// Threads that made them.
    pub threads: u64,
    /// Time in these calls, waits and what watching adds to each call included; `None`: it was not
    /// added up.
    #[serde(default)]
    pub in_calls_ns: Option<u64>,
    /// Calls in which the thread had to wait. The others were answered at once, by the page cache
    /// as a rule.
    pub waits: Waits,
    /// Bytes that the thread asked the device of the file for, while it was in them; `None`: that
    /// was not watched, or the filesystem does not show its device. Writes read what they change a
    /// part of.
    #[serde(default)]
    pub device_read_bytes: Option<u64>,
}

/// Faults of a mapping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mapped {
    /// Faults for which the page was there.
    pub minor_faults: u64,
    /// Faults for which the page had to be read.
    pub major_faults: u64,
    /// Different pages that faulted. Others may have been used without a fault.
    pub faulted_pages: u64,
    /// Faults shortly behind the one before, within what the kernel maps around a fault.
    pub in_order: u64,
    /// Pages from the fault before to each of these, all together.
    #[serde(default)]
    pub in_order_pages: u64,
    /// Threads that faulted.
    pub threads: u64,
    /// Waits of faults. A minor fault waits for a page that is on its way already.
    pub waits: Waits,
}

/// Pages that came into the page cache for the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BroughtIn {
    /// All of it.
    pub bytes: u64,
    /// By calls.
    pub by_calls_bytes: u64,
    /// By faults; of what was never mapped, by calls that are not watched, such as stat(2) and
    /// execve(2).
    pub by_faults_bytes: u64,
    /// Bytes that had come in before while the program was watched, and had gone.
    pub again_bytes: u64,
    /// Bytes that came in by calls over those that reads returned. Below 1 the rest was in the
    /// cache; readahead brings in more than is read.
    pub per_read: Option<f64>,
    /// Pages that came in by faults over those that faulted. One that was evicted and faulted from
    /// the device again counts each time.
    pub per_faulted: Option<f64>,
    /// The least share of what came in by faults that was never touched; `None`: it could be all or
    /// nothing, as where large pages are mapped at once.
    pub untouched_at_least: Option<f64>,
    /// The most: all but the pages that faulted.
    pub untouched_at_most: Option<f64>,
}

/// A thread, and what it waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InspectedThread {
    /// Process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// Name.
    pub name: String,
    /// Time that it was watched.
    pub watched_ns: u64,
    /// Waits for files, the longest first.
    pub waits: Vec<FileWait>,
    /// Other times off the CPU: sleeps, locks, sockets; and waits in what was not seen
    /// ([`Inspection::missing`]).
    pub blocked_elsewhere_ns: u64,
    /// Time that it could have run, while others had its CPU.
    pub preempted_ns: u64,
}

/// Time that a thread waited for a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileWait {
    /// Index of the file in [`Inspection::files`].
    pub file: usize,
    /// By what.
    pub by: By,
    /// Time of its waits.
    pub waited_ns: u64,
}

/// The activity of a thread during a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// An access to a mapping.
    Faults,
    /// A call that reads.
    Reads,
    /// A call that writes.
    Writes,
    /// A call that makes data durable.
    Syncs,
    /// A call that puts pages of a mapping in place ahead of use.
    Prefaults,
}

fn is_possible(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_u64().is_none_or(|number| number <= MOST),
        Value::Array(all) => all.iter().all(is_possible),
        Value::Object(all) => all.iter().all(|(key, value)| {
            let too_many = key.ends_with("pages") && value.as_u64().is_some_and(|pages| pages > MOST_PAGES);
            !too_many && (ANY.contains(&key.as_str()) || is_possible(value))
        }),
        _ => true,
    }
}

/// Waits of threads for a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// Number of waits.
    pub count: u64,
    /// All together.
    pub total_ns: u64,
    /// Half of them were shorter, to within 6 %.
    pub median_ns: Option<u64>,
    /// 99 of 100 were shorter, to within 6 %; of fewer than 1,000 waits there is none.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub longest_ns: Option<u64>,
}

/// Fields of which any number is possible: an inode, and the memory of a machine.
const ANY: [&str; 2] = ["identity", "memory_limit_bytes"];
/// Waits of a thread: of each kind for each file.
const MOST_WAITS: usize = Inspection::KEPT * 5;
/// No program has more of anything, and the sum over all waits of a thread fits into 64 bits. Of
/// nanoseconds it is seven months.
const MOST: u64 = 1 << 54;
/// Pages of a file, which are multiplied by their size.
const MOST_PAGES: u64 = 1 << 40;
/// Products with it fit into 64 bits.
const MOST_PAGE_BYTES: u64 = 1 << 22;

impl Inspection {
    /// Files and threads that a trace and a run file keep.
    pub const KEPT: usize = 64;

    /// True if its numbers are possible and its threads waited for files of it: a run file may come
    /// from anybody.
    pub fn is_sound(&self) -> bool {
        let few = self.files.len() <= Self::KEPT && self.threads.len() <= Self::KEPT;
        if !few || self.page_bytes > MOST_PAGE_BYTES {
            return false;
        }
        let of_files = |thread: &InspectedThread| {
            thread.waits.len() <= MOST_WAITS && thread.waits.iter().all(|wait| wait.file < self.files.len())
        };
        self.threads.iter().all(of_files) && serde_json::to_value(self).is_ok_and(|value| is_possible(&value))
    }

    /// Bytes moved by descriptors that were closed before anybody saw of what files they are.
    pub fn unassigned_bytes(&self) -> u64 {
        self.unknown.map_or(0, |unknown| unknown.bytes)
    }

    /// The processes that were not watched to their end, in words; `None`: all were.
    pub fn not_watched(&self) -> Option<String> {
        if self.cut_processes == 0 {
            return None;
        }
        let cut = processes(self.cut_processes);
        Some(format!(
            "{cut}, from the execution of a program that gains privileges on (setuid, capabilities of a file)"
        ))
    }

    /// The inspection with at most [`Self::KEPT`] files and threads, the first ones.
    pub fn shortened(&self) -> Self {
        let (mut short, most) = (self.clone(), Self::KEPT);
        short.left_out.files += self.files.len().saturating_sub(most) as u64;
        short.left_out.threads += self.threads.len().saturating_sub(most) as u64;
        short.files.truncate(most);
        short.threads.truncate(most);
        for thread in &mut short.threads {
            thread.waits.retain(|wait| wait.file < most);
        }
        short
    }
}

impl InspectedFile {
    /// Time that threads waited for it.
    pub fn waited_ns(&self) -> u64 {
        let of_calls = self.reads.iter().chain(&self.writes).map(|calls| calls.waits.total_ns);
        let of_faults = self.mapping.iter().map(|mapping| mapping.waits.total_ns);
        let of_others = self.syncs.iter().chain(&self.prefaults).map(|waits| waits.total_ns);
        of_calls.chain(of_faults).chain(of_others).sum()
    }

    /// Bytes that calls moved or that came in.
    pub fn bytes(&self) -> u64 {
        let of_calls = self.reads.iter().chain(&self.writes).map(|calls| calls.bytes);
        of_calls.sum::<u64>().max(self.brought_in.iter().map(|brought| brought.bytes).sum())
    }
}

impl InspectedThread {
    /// Time that it waited for files.
    pub fn waited_ns(&self) -> u64 {
        self.waits.iter().map(|wait| wait.waited_ns).sum()
    }

    /// Time that it was blocked, for whatever reason.
    pub fn blocked_ns(&self) -> u64 {
        self.waited_ns().saturating_add(self.blocked_elsewhere_ns)
    }

    /// The share of its time that it was blocked.
    pub fn blocked(&self) -> f64 {
        self.blocked_ns() as f64 / self.watched_ns.max(1) as f64
    }

    /// The share of its time that a wait took.
    pub fn share(&self, wait: &FileWait) -> f64 {
        wait.waited_ns as f64 / self.watched_ns.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_watch_is_possible_and_what_would_overflow_is_not() {
        let empty = InspectedFile {
            path: None,
            identity: (8, 1, u64::MAX),
            file_bytes: Some(1 << 50),
            filesystem: None,
            block_device: None,
            code: false,
            direct: false,
            said_to_be_read: ReadOrder::Normal,
            mapping_said_to_be_read: ReadOrder::Normal,
            other_advice: Vec::new(),
            reads: None,
            writes: None,
            syncs: None,
            prefaults: None,
            mapping: None,
            brought_in: None,
        };
        let mapping = |faulted_pages| Mapped {
            minor_faults: 1,
            major_faults: 1,
            faulted_pages,
            in_order: 0,
            in_order_pages: 0,
            threads: 1,
            waits: Waits::default(),
        };
        let of = |watched_ns, pages| Inspection {
            schema: SCHEMA,
            subject: Subject::default(),
            watched_ns,
            page_bytes: MOST_PAGE_BYTES,
            processes: 1,
            cut_processes: 0,
            missing: Vec::new(),
            complete: true,
            lost_records: 0,
            events: Vec::new(),
            files: vec![InspectedFile { mapping: Some(mapping(pages)), ..empty.clone() }],
            threads: Vec::new(),
            left_out: LeftOut::default(),
            no_file: None,
            unknown: None,
            ring_requests: None,
            memory_faults: 0,
            totals: ProcessCounters::default(),
        };
        let month_ns = 30 * 24 * 3600 * 1_000_000_000;
        assert!(of(month_ns, MOST_PAGES).is_sound());
        assert!(!of(MOST + 1, 1).is_sound());
        assert!(!of(month_ns, MOST_PAGES + 1).is_sound());
        let thread = |waits| InspectedThread {
            process: 1,
            thread: 1,
            name: String::new(),
            watched_ns: 1,
            waits: vec![FileWait { file: 0, by: By::Reads, waited_ns: MOST }; waits],
            blocked_elsewhere_ns: 0,
            preempted_ns: 0,
        };
        let waiting = |waits| Inspection { threads: vec![thread(waits)], ..of(month_ns, 1) };
        assert!(waiting(MOST_WAITS).is_sound() && waiting(MOST_WAITS).threads[0].waited_ns() > MOST);
        assert!(!waiting(MOST_WAITS + 1).is_sound());
    }
}
