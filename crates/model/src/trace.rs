//! Traces: what calls a program made to read its files, in the order in which they began, what it
//! asked the kernel to read ahead, and which pages of its mapped files it touched, where it was
//! recorded in windows.
//!
//! A trace is a JSON line (the header), blocks of columns, blocks of pages that were in the page
//! cache, and a JSON line (the trailer). What a recording was is known at its end, so a trace is
//! readable only with its trailer: a torn one is refused.

mod columns;
pub mod entry;
mod gaps;
pub mod key;
mod resident;
mod span;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::format;
use crate::inspection::Inspection;
use crate::plan::FileIdentity;
use crate::random::{STEP, mix};
use crate::units::Bytes;
use crate::watched::{Missing, ReadOrder, Tally};
pub use entry::{END_OF_ENTRIES, LONGEST_ENTRY, entry, range_of};
pub use gaps::{Gaps, NoGaps};
pub use key::TraceKey;
pub use resident::{MOST_RUNS, ResidentPages};
pub use span::FileSpan;
pub use table::{RecordedReadAhead, RecordedTable};

/// Version of the format; traces of earlier ones can be read.
pub const FORMAT: u32 = 4;
/// The first format that has a digest of its lines.
const DIGEST_OF_LINES: u32 = 3;
/// The first format that has the durations of calls.
const DURATIONS: u32 = 3;
/// The first format that has requests to read ahead.
const READ_AHEAD: u32 = 4;
/// Accesses in a block.
pub const BLOCK_ACCESSES: usize = 8192;

const BLOCK: u8 = b'B';
const RESIDENT: u8 = b'R';
const TRAILER: u8 = b'T';

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// [`FORMAT`].
    pub pagewise_trace: u32,
    /// Version of pagewise that recorded it.
    pub pagewise: String,
    /// Size of a page.
    pub page_bytes: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// The command, in words.
    pub command: Vec<String>,
    /// The directory in which it was started.
    pub directory: String,
    /// Memory that it was limited to.
    pub memory_limit: Option<Bytes>,
}

impl Default for TraceHeader {
    /// The header of a recording of which nothing is known.
    fn default() -> Self {
        Self {
            pagewise_trace: FORMAT,
            pagewise: String::new(),
            page_bytes: 4096,
            kernel: String::new(),
            command: Vec::new(),
            directory: String::new(),
            memory_limit: None,
        }
    }
}

/// The last line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceTrailer {
    /// Accesses in all blocks, with the requests to read ahead.
    pub accesses: u64,
    /// The requests to read ahead among them.
    #[serde(default)]
    pub read_ahead: u64,
    /// [`TraceDigest`] of all blocks.
    pub digest: TraceKey,
    /// True if every record arrived: what was counted is what was recorded.
    pub complete: bool,
    /// Records that found no room.
    pub lost_records: u64,
    /// Counts of each event.
    pub events: Vec<Tally>,
    /// Observations that were missing, each with its reason.
    pub missing: Vec<Missing>,
    /// Files; an access has an index into them.
    pub files: Vec<TraceFile>,
    /// Threads; an access has an index into them.
    pub threads: Vec<TraceThread>,
    /// Bytes read by descriptors that were closed before anybody could look what they were.
    pub unknown_bytes: u64,
    /// Requests that were handed to io_uring, whose files and offsets are not seen.
    pub ring_requests: u64,
    /// Windows of mapped accesses; `None`: they were not recorded.
    #[serde(default)]
    pub windows: Option<WindowTally>,
    /// Cost of the program.
    pub program: ProgramCost,
    /// The inspection of the program: its files, and the waits of its threads.
    #[serde(default)]
    pub inspection: Option<Inspection>,
}

impl TraceTrailer {
    /// The reason, if something of the recording is not there.
    pub fn lacks(&self) -> Option<String> {
        let why = match self.lost_records {
            0 => "not every event that was counted was recorded, or is known to be of which file".to_string(),
            lost => format!("{} of the recording found no room", format::counted(lost, "record")),
        };
        (!self.complete).then_some(why)
    }

    /// Count what came into the page cache for faults, too.
    pub fn count_faults(&mut self, inspection: &Inspection) {
        for file in &mut self.files {
            let seen = inspection.files.iter().find(|seen| seen.path.as_deref() == Some(&*file.path));
            file.brought_in_bytes =
                seen.and_then(|seen| seen.brought_in.as_ref()).map(|brought| brought.bytes);
        }
    }

    /// Bytes that came from the device for the reads of these files: of them alone, or of the
    /// program where that is not seen of each.
    pub fn device_bytes(&self, files: &[&TraceFile]) -> Option<u64> {
        let of_file = |file: &&TraceFile| file.brought_in_bytes.filter(|_| !file.direct);
        let of_files = files.iter().map(of_file).try_fold(0u64, |all, bytes| all.checked_add(bytes?));
        of_files.or(self.program.device_read_bytes)
    }
}

impl Default for TraceTrailer {
    /// The trailer of a complete recording without an access.
    fn default() -> Self {
        Self {
            accesses: 0,
            read_ahead: 0,
            digest: TraceDigest::default().key(),
            complete: true,
            lost_records: 0,
            events: Vec::new(),
            missing: Vec::new(),
            files: Vec::new(),
            threads: Vec::new(),
            unknown_bytes: 0,
            ring_requests: 0,
            windows: None,
            program: ProgramCost::default(),
            inspection: None,
        }
    }
}

/// Windows: in each, the first touch of a mapped page is an access of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowTally {
    /// Touches after which a window was to end.
    pub most_touches: u64,
    /// Touches of the longest window.
    pub longest_touches: u64,
    /// Windows.
    pub windows: u64,
    /// Windows in which each page in place had been seen to be touched.
    pub proven: u64,
    /// Touches in all windows.
    #[serde(default)]
    pub touches: u64,
    /// Pages that were in place at the end of a window and had not been seen to be touched.
    #[serde(default)]
    pub unseen_pages: u64,
    /// Mappings of files that had no windows, each reason once.
    pub left_out: Vec<String>,
}

/// A file of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// The path that its descriptor showed.
    pub path: String,
    /// The file at the end of the recording; `None`: it was not there any more, or was another one.
    pub identity: Option<FileIdentity>,
    /// Accesses in this trace.
    pub reads: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of reads whose offsets are in memory of the program (sendfile, copy_file_range), which
    /// are not in this trace.
    pub left_out_bytes: u64,
    /// Calls that write.
    pub writes: u64,
    /// Past the page cache (O_DIRECT), by one of its descriptors.
    pub direct: bool,
    /// The read order that one of its descriptors was given, the last one that was.
    #[serde(default)]
    pub said_to_be_read: ReadOrder,
    /// Pages of its mappings that were touched, once in each window. Neighbours are one access of
    /// this trace.
    #[serde(default)]
    pub touched_pages: u64,
    /// The expected order of reads of a mapping (madvise(2)): the last one that was announced.
    #[serde(default)]
    pub mapping_said_to_be_read: ReadOrder,
    /// Faults of its mappings: accesses that this trace does not hold.
    pub mapped_faults: u64,
    /// Bytes brought into the page cache by reads, and by touches; `None`: it was not seen.
    pub brought_in_bytes: Option<u64>,
    /// Requests to the kernel to read a part of it ahead: by its descriptors (posix_fadvise(2),
    /// readahead(2)), and by its mappings (madvise(2)).
    #[serde(default)]
    pub read_ahead: u64,
    /// Other advice and locks that change which of its pages are cached, each once.
    #[serde(default)]
    pub other_advice: Vec<String>,
    /// Bytes of its pages in the page cache at the beginning, of a file that the user named: none,
    /// if it was dropped. A block of the trace has these pages.
    pub resident_before: Option<u64>,
}

impl TraceFile {
    /// True if the user named it, so that what was in the page cache of it is known.
    pub fn is_named(&self) -> bool {
        self.resident_before.is_some()
    }
}

/// A thread of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceThread {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// Name.
    pub name: String,
    /// Accesses in this trace.
    pub accesses: u64,
}

/// Cost of a program, with its children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCost {
    /// From its first instruction to its end.
    pub wall_ns: u64,
    /// Bytes read from devices.
    pub device_read_bytes: Option<u64>,
    /// The most memory without a file that was seen.
    pub anonymous_bytes: Option<u64>,
    /// End: exit status or signal.
    pub ended: String,
}

/// A read by a call, a touch of a mapping, or a request to read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceAccess {
    /// When the call was made, from the beginning of the recording on.
    pub time_ns: u64,
    /// Time until it returned; `None` of a touch, whose end is not seen, and in earlier formats.
    pub took_ns: Option<u64>,
    /// Index of the file.
    pub file: u32,
    /// Index of the thread.
    pub thread: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes that it returned, or that were to be read ahead.
    pub len: u64,
    /// The kind of the access.
    pub kind: AccessKind,
}

/// The way in which bytes were accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// By a call, at an offset that it was given (pread).
    Pread,
    /// By a call, at the descriptor's own offset (read).
    Read,
    /// Through a mapping: the first touch of these pages in their window.
    Touch {
        /// True for the first touch of its window.
        opens_window: bool,
    },
    /// Not accessed: the kernel was asked to read them ahead.
    ReadAhead {
        /// True if it was by a mapping (MADV_WILLNEED), false if by a descriptor
        /// (POSIX_FADV_WILLNEED, readahead(2)).
        mapped: bool,
    },
}

impl AccessKind {
    /// All kinds, by the number that stands for them in a trace.
    const ALL: [Self; 6] = [
        Self::Pread,
        Self::Read,
        Self::Touch { opens_window: false },
        Self::Touch { opens_window: true },
        Self::ReadAhead { mapped: false },
        Self::ReadAhead { mapped: true },
    ];

    fn number(self) -> u64 {
        Self::ALL.iter().position(|kind| *kind == self).map_or(0, |number| number as u64)
    }

    fn of_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// True if it was through a mapping.
    pub fn is_touch(self) -> bool {
        matches!(self, Self::Touch { .. })
    }

    /// True if it is a request to read ahead.
    pub fn is_ahead(self) -> bool {
        matches!(self, Self::ReadAhead { .. })
    }
}

/// A digest of the blocks of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceDigest(u64);

impl TraceDigest {
    /// Go on with these bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let word = u64::from_le_bytes(word) ^ (chunk.len() as u64) << 60;
            self.0 = mix(self.0.wrapping_add(STEP) ^ word);
        }
    }

    /// As it stands in the trailer.
    pub fn key(self) -> TraceKey {
        TraceKey::of(self.0)
    }
}

/// A trace, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The first line.
    pub header: TraceHeader,
    /// In the order of time.
    pub accesses: Vec<TraceAccess>,
    /// Requests to read ahead, in the order of time.
    pub read_ahead: Vec<TraceAccess>,
    /// Pages in the page cache at the beginning, by file; of one that had none, nothing.
    pub resident: BTreeMap<u32, ResidentPages>,
    /// The last line.
    pub trailer: TraceTrailer,
}

/// The bytes of the header.
pub fn header(header: &TraceHeader) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(header)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The bytes of a block. There are at most [`BLOCK_ACCESSES`] accesses in it.
pub fn block(accesses: &[TraceAccess]) -> Vec<u8> {
    let columns = columns::encode(accesses);
    let mut block = vec![BLOCK];
    block.extend((accesses.len() as u32).to_le_bytes());
    block.extend((columns.len() as u32).to_le_bytes());
    block.extend(columns);
    block
}

/// The bytes of a block of the pages of a file that were in the page cache.
pub fn resident_block(file: u32, pages: &ResidentPages) -> Vec<u8> {
    let runs = pages.encode();
    let mut block = vec![RESIDENT];
    block.extend(file.to_le_bytes());
    block.extend((runs.len() as u32).to_le_bytes());
    block.extend(runs);
    block
}

/// The bytes of the trailer of a trace that begins with this [`header`], and a digest of both.
pub fn trailer(header: &[u8], trailer: &TraceTrailer) -> serde_json::Result<Vec<u8>> {
    let mut bytes = vec![TRAILER];
    serde_json::to_writer(&mut bytes, trailer)?;
    bytes.push(b'\n');
    let lines = of_lines(header, &bytes);
    bytes.extend(format!("{lines}\n").into_bytes());
    Ok(bytes)
}

/// The digest of the first line and of the trailer, which has that of the blocks.
fn of_lines(header: &[u8], trailer: &[u8]) -> TraceKey {
    let mut digest = TraceDigest::default();
    [header, trailer].into_iter().for_each(|line| digest.add(line));
    digest.key()
}

/// The trailer's text and the digest behind it, which the first two formats did not have; `None` if
/// the end is missing.
fn ends(text: &[u8], format: u32) -> Option<(&[u8], Option<&[u8]>)> {
    let end = text.iter().position(|byte| *byte == b'\n')? + 1;
    let (trailer, lines) = text.split_at(end);
    match format {
        ..DIGEST_OF_LINES => Some((text, None)),
        _ => Some((trailer, Some(lines.strip_suffix(b"\n")?))),
    }
}

impl Trace {
    /// Accesses that the blocks of a trace say they have, which [`Trace::parse`] holds all at once.
    pub fn count(bytes: &[u8]) -> u64 {
        let first = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        let (mut rest, mut count) = (&bytes[first..], 0u64);
        while let Some((&kind @ (BLOCK | RESIDENT), behind)) = rest.split_first() {
            let number = |at: usize| Some(u32::from_le_bytes(*behind.get(at..)?.first_chunk()?));
            let Some((first, len)) = number(0).zip(number(4)) else { break };
            count += if kind == BLOCK { u64::from(first).min(BLOCK_ACCESSES as u64) } else { 0 };
            let Some(next) = behind.get(8..).and_then(|content| content.get(len as usize..)) else { break };
            rest = next;
        }
        count
    }

    /// Read a trace from its bytes; the error says what is wrong with them.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let no_trace = || "it is no trace of pagewise".to_string();
        let first = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(no_trace)?;
        let version: Version = serde_json::from_slice(&bytes[..first]).map_err(|_| no_trace())?;
        if !(1..=FORMAT).contains(&version.pagewise_trace) {
            let found = version.pagewise_trace;
            return Err(format!("its format is {found}, and this pagewise reads formats up to {FORMAT}"));
        }
        let damaged = |what: &str| format!("it is damaged: {what}");
        let header: TraceHeader = serde_json::from_slice(&bytes[..first])
            .map_err(|error| damaged(&format!("its first line: {error}")))?;
        let (mut rest, mut accesses, mut digest) = (&bytes[first + 1..], Vec::new(), TraceDigest::default());
        let (mut resident, mut runs) = (BTreeMap::new(), 0);
        let has_durations = version.pagewise_trace >= DURATIONS;
        let torn = || "it is torn: its end is missing".to_string();
        let no_pages = || damaged("the pages in the page cache are not those of a file");
        let trailer: TraceTrailer = loop {
            match rest.split_first().ok_or_else(torn)? {
                (&TRAILER, text) if text.last() == Some(&b'\n') => {
                    let (text, lines) = ends(text, version.pagewise_trace).ok_or_else(torn)?;
                    let found = of_lines(&bytes[..=first], &rest[..=text.len()]).to_string();
                    if lines.is_some_and(|lines| lines != found.as_bytes()) {
                        return Err(damaged("its first or last line is not that which was written"));
                    }
                    break serde_json::from_slice(text)
                        .map_err(|error| damaged(&format!("its last line: {error}")))?;
                }
                (&TRAILER, _) => return Err(torn()),
                (&kind @ (BLOCK | RESIDENT), behind) => {
                    let number = |at: usize| Some(u32::from_le_bytes(*behind.get(at..)?.first_chunk()?));
                    let (first, len) = number(0).zip(number(4)).ok_or_else(torn)?;
                    let len = len as usize;
                    let content = behind.get(8..8 + len).ok_or_else(torn)?;
                    if kind == BLOCK {
                        columns::decode(content, first as usize, has_durations, &mut accesses)
                            .ok_or_else(|| damaged("a block does not hold what it says"))?;
                    } else {
                        let pages = ResidentPages::decode(content, MOST_RUNS - runs);
                        let pages = pages.filter(|pages| pages.count() > 0).ok_or_else(no_pages)?;
                        runs += pages.runs().len();
                        if resident.insert(first, pages).is_some() {
                            return Err(no_pages());
                        }
                    }
                    let (block, behind) = rest.split_at(9 + len);
                    digest.add(block);
                    rest = behind;
                }
                _ => return Err(damaged("between two blocks is something else")),
            }
        };
        if trailer.digest != digest.key() || trailer.accesses != accesses.len() as u64 {
            return Err(damaged("its blocks are not those that were written"));
        }
        let (files, threads) = (trailer.files.len() as u32, trailer.threads.len() as u32);
        if accesses.iter().any(|access| access.file >= files || access.thread >= threads) {
            return Err(damaged("an access names a file or a thread that it does not have"));
        }
        if resident.keys().any(|file| *file >= files) {
            return Err(no_pages());
        }
        let read_ahead: Vec<_> = accesses.extract_if(.., |access| access.kind.is_ahead()).collect();
        if trailer.read_ahead != read_ahead.len() as u64
            || !read_ahead.is_empty() && version.pagewise_trace < READ_AHEAD
        {
            return Err(damaged("its requests to read ahead are not those that were written"));
        }
        let mut trace = Self { header, accesses, read_ahead, resident, trailer };
        trace.end_touches_with_files();
        Ok(trace)
    }

    /// True if it has what the program asked the kernel to read ahead.
    pub fn knows_read_ahead(&self) -> bool {
        self.header.pagewise_trace >= READ_AHEAD
    }

    /// The last page of a file may reach behind its end.
    fn end_touches_with_files(&mut self) {
        let page_bytes = self.header.page_bytes;
        let ends: Vec<Option<u64>> =
            self.trailer.files.iter().map(|file| Some(file.identity.as_ref()?.file_bytes.0)).collect();
        for access in self.accesses.iter_mut().filter(|access| access.kind.is_touch()) {
            let Some(end) = ends[access.file as usize] else { continue };
            let behind = (access.offset + access.len).saturating_sub(end);
            if behind < page_bytes && behind < access.len {
                access.len -= behind;
            }
        }
    }
}

#[derive(Deserialize)]
struct Version {
    pagewise_trace: u32,
}

#[cfg(test)]
mod tests;
