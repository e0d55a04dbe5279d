//! A recording: the reads of a watched program, numbered for a trace and put into blocks.

use std::collections::HashMap;

use pagewise_model::plan::FileIdentity;
use pagewise_model::trace::{
    self, AccessKind, BLOCK_ACCESSES, LONGEST_ENTRY, ProgramCost, ResidentPages, TraceAccess, TraceDigest,
    TraceFile, TraceThread, TraceTrailer, WindowTally,
};

use pagewise_model::inspection::{InspectedFile, Inspection};

use crate::observed::Accessed;

/// Major number, minor number, inode.
type Identity = (u32, u32, u64);

/// Pages that are touched one after the other are one access of this many bytes at most, the usual
/// readahead, or of what the thread asked to be read ahead by its mapping: its unit of reading.
const MOST_TOUCHED: u64 = 128 << 10;

/// The reads of a program so far.
#[derive(Debug)]
pub struct Recording {
    began_ns: u64,
    files: Numbered<usize>,
    identities: Vec<Identity>,
    threads: Numbered<(u32, u32)>,
    pending: Vec<TraceAccess>,
    /// Index of the last access of each thread among those.
    last: HashMap<u32, usize>,
    window: Option<u32>,
    /// Number of touches so far, and before this window.
    touches: u64,
    touches_before: u64,
    /// The last touch of each thread: file, offset, and number.
    last_touch: HashMap<u32, (u32, u64, u64)>,
    /// Touched pages by file.
    touched: HashMap<Identity, Touched>,
    /// The last request of each thread to read a mapping ahead: file, offset and end.
    asked: HashMap<u32, (u32, u64, u64)>,
    /// Requests to read ahead, by file.
    read_ahead: HashMap<Identity, u64>,
    digest: TraceDigest,
    accesses: u64,
}

/// A file that the user named, before the recording.
#[derive(Debug)]
pub struct NamedFile {
    /// Path.
    pub path: String,
    /// Identity.
    pub identity: FileIdentity,
    /// Pages of the file in the page cache: none, if it was dropped.
    pub resident: ResidentPages,
}

/// Keys, numbered as they come, with reads and bytes.
#[derive(Debug)]
struct Numbered<K> {
    numbers: HashMap<K, u32>,
    counts: Vec<(K, u64, u64)>,
}

impl<K: Copy + Eq + std::hash::Hash> Numbered<K> {
    fn new() -> Self {
        Self { numbers: HashMap::new(), counts: Vec::new() }
    }

    fn number(&mut self, key: K) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.counts.push((key, 0, 0));
            (self.counts.len() - 1) as u32
        })
    }

    fn add(&mut self, number: u32, is_new: bool, bytes: u64) {
        let (_, reads, all) = &mut self.counts[number as usize];
        *reads += u64::from(is_new);
        *all += bytes;
    }
}

/// Touches of a file's mappings.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    /// With those that a thread repeats because it was stopped.
    faults: u64,
    pages: u64,
}

impl Recording {
    /// Nothing yet; times count from `began_ns`.
    pub fn new(began_ns: u64) -> Self {
        Self {
            began_ns,
            files: Numbered::new(),
            identities: Vec::new(),
            threads: Numbered::new(),
            pending: Vec::new(),
            last: HashMap::new(),
            window: None,
            touches: 0,
            touches_before: 0,
            last_touch: HashMap::new(),
            touched: HashMap::new(),
            asked: HashMap::new(),
            read_ahead: HashMap::new(),
            digest: TraceDigest::default(),
            accesses: 0,
        }
    }

    /// Add an access to the file with this identity; returns a block whenever one is full. Pages
    /// that a thread touches one after the other are one access.
    pub fn add(&mut self, identity: Identity, access: Accessed) -> Option<Vec<u8>> {
        let Accessed { time_ns, took_ns, process, thread, file, offset, len, mut kind, window } = access;
        let file = self.files.number(file);
        if self.identities.len() <= file as usize {
            self.identities.push(identity);
        }
        let thread = self.threads.number((process, thread));
        if let AccessKind::Touch { opens_window } = &mut kind {
            let touched = self.touched.entry(identity).or_default();
            touched.faults += 1;
            if self.window != window {
                self.touches_before = self.touches;
            }
            self.touches += 1;
            // A thread that is stopped between a fault and its access faults again. For no cache is
            // that another access.
            let last = self.last_touch.insert(thread, (file, offset, self.touches));
            let stopped = self.touches_before.saturating_sub(self.threads.counts.len() as u64);
            if last.is_some_and(|last| (last.0, last.1) == (file, offset) && last.2 > stopped) {
                return None;
            }
            touched.pages += 1;
            *opens_window = self.window.replace(window.unwrap_or(0)) != window;
        }
        if kind.is_ahead() {
            *self.read_ahead.entry(identity).or_default() += 1;
            if kind == (AccessKind::ReadAhead { mapped: true }) {
                self.asked.insert(thread, (file, offset, offset.saturating_add(len)));
            }
        }
        let merged = self.last.get(&thread).is_some_and(|last| {
            let last = &mut self.pending[*last];
            let is_asked = self.asked.get(&thread).is_some_and(|(of_file, start, end)| {
                *of_file == file && *start <= last.offset && offset + len <= *end
            });
            let is_short = last.len + len <= if is_asked { LONGEST_ENTRY } else { MOST_TOUCHED };
            let is_behind = last.file == file && last.offset + last.len == offset && is_short;
            let is_same_run = last.kind.is_touch() && kind == (AccessKind::Touch { opens_window: false });
            if is_behind && is_same_run {
                last.len += len;
            }
            is_behind && is_same_run
        });
        if !kind.is_ahead() {
            self.files.add(file, !merged, len);
            self.threads.add(thread, !merged, len);
        }
        if merged {
            return None;
        }
        let time_ns = time_ns.saturating_sub(self.began_ns);
        self.last.insert(thread, self.pending.len());
        self.pending.push(TraceAccess { time_ns, took_ns, file, thread, offset, len, kind });
        if self.pending.len() == BLOCK_ACCESSES { self.block() } else { None }
    }

    /// The block of what is left.
    pub fn block(&mut self) -> Option<Vec<u8>> {
        if self.pending.is_empty() {
            return None;
        }
        // Calls of several threads end in another order than they begin.
        self.pending.sort_by_key(|access| access.time_ns);
        let block = trace::block(&self.pending);
        self.accesses += self.pending.len() as u64;
        self.digest.add(&block);
        self.pending.clear();
        self.last.clear();
        Some(block)
    }

    /// The last blocks, of pages in the page cache, and the trailer, once all other blocks are
    /// taken. `identify` looks what file a path is now. The files that the user `named` are in it,
    /// also those that nobody read.
    pub fn trailer(
        mut self,
        inspection: &Inspection,
        windows: Option<WindowTally>,
        program: ProgramCost,
        identify: impl Fn(&str) -> Option<FileIdentity>,
        named: &[NamedFile],
    ) -> (Vec<u8>, TraceTrailer) {
        let mut files: Vec<TraceFile> = Vec::new();
        let read = self.files.counts.iter().zip(&self.identities);
        let read = read.map(|((_, reads, bytes), identity)| (*reads, *bytes, *identity));
        // Files that were only mapped have no reads here, and their faults are reported.
        let mapped = inspection.files.iter().filter(|file| file.mapping.is_some() && !file.code);
        let mapped =
            mapped.map(|file| (0, 0, file.identity)).filter(|file| !self.identities.contains(&file.2));
        // Whatever else the program did to a file that was named is reported too.
        let is_named = |file: &&InspectedFile| {
            let is_it = |one: &NamedFile| {
                file.path.as_ref() == Some(&one.path) && file.identity.2 == one.identity.inode
            };
            named.iter().any(is_it)
        };
        let in_mapped = |file: &&InspectedFile| file.mapping.is_some() && !file.code;
        let named_files = inspection.files.iter().filter(|file| is_named(file) && !in_mapped(file));
        let named_files =
            named_files.map(|file| (0, 0, file.identity)).filter(|file| !self.identities.contains(&file.2));
        for (reads, read_bytes, identity) in read.chain(mapped).chain(named_files) {
            let seen = inspection.files.iter().find(|file| file.identity == identity);
            let path = seen.and_then(|file| file.path.clone()).unwrap_or_default();
            let found = identify(&path).filter(|found| found.inode == identity.2);
            let touched = self.touched.get(&identity).copied().unwrap_or_default();
            let read_ahead = self.read_ahead.get(&identity).copied().unwrap_or_default();
            let by_calls = read_bytes.saturating_sub(touched.pages * inspection.page_bytes);
            let all_bytes = seen.and_then(|file| file.reads.as_ref()).map_or(0, |reads| reads.bytes);
            let mapping = seen.and_then(|file| file.mapping.as_ref());
            let faults = mapping.map_or(0, |mapped| mapped.minor_faults + mapped.major_faults);
            let brought_in = seen.and_then(|file| file.brought_in.as_ref());
            files.push(TraceFile {
                path,
                reads,
                read_bytes,
                left_out_bytes: all_bytes.saturating_sub(by_calls),
                writes: seen.and_then(|file| file.writes.as_ref()).map_or(0, |writes| writes.count),
                direct: seen.is_some_and(|file| file.direct),
                said_to_be_read: seen.map(|file| file.said_to_be_read).unwrap_or_default(),
                touched_pages: touched.pages,
                mapping_said_to_be_read: seen.map(|file| file.mapping_said_to_be_read).unwrap_or_default(),
                mapped_faults: faults.saturating_sub(touched.faults),
                read_ahead,
                other_advice: seen.map(|file| file.other_advice.clone()).unwrap_or_default(),
                brought_in_bytes: brought_in.map(|brought| {
                    brought.by_calls_bytes + if touched.pages > 0 { brought.by_faults_bytes } else { 0 }
                }),
                resident_before: None,
                identity: found,
            });
        }
        let mut blocks = Vec::new();
        for NamedFile { path, identity: before, resident } in named {
            let is_it = |file: &TraceFile| match &file.identity {
                Some(now) => (now.device, now.inode) == (before.device, before.inode),
                None => file.path == *path,
            };
            let number = files.iter().position(is_it).unwrap_or_else(|| {
                files.push(TraceFile {
                    path: path.clone(),
                    identity: identify(path).filter(|now| now.inode == before.inode),
                    ..TraceFile::default()
                });
                files.len() - 1
            });
            files[number].resident_before = Some(resident.count() * inspection.page_bytes);
            if resident.count() > 0 {
                let block = trace::resident_block(number as u32, resident);
                self.digest.add(&block);
                blocks.extend(block);
            }
        }
        let name = |number: u32| {
            let found = inspection.threads.iter().find(|thread| thread.thread == number);
            found.map(|thread| thread.name.clone()).unwrap_or_default()
        };
        let threads = self.threads.counts.iter().map(|((process, thread), accesses, _)| TraceThread {
            process: *process,
            thread: *thread,
            name: name(*thread),
            accesses: *accesses,
        });
        let trailer = TraceTrailer {
            accesses: self.accesses,
            read_ahead: self.read_ahead.values().sum(),
            digest: self.digest.key(),
            complete: inspection.complete,
            lost_records: inspection.lost_records,
            events: inspection.events.clone(),
            missing: inspection.missing.clone(),
            files,
            threads: threads.collect(),
            unknown_bytes: inspection.unknown.map_or(0, |unknown| unknown.bytes),
            ring_requests: inspection.ring_requests.unwrap_or(0),
            windows,
            program,
            inspection: Some(inspection.shortened()),
        };
        (blocks, trailer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::Accounts;
    use pagewise_model::inspection::Subject;
    use pagewise_model::watched::{
        Call, DescriptorBinding, Observation, Position, Transfer, WatchedFile, What,
    };

    /// Two threads that read two files, one of them at its own position.
    #[test]
    fn what_a_program_read_is_in_the_trace() {
        let mut accounts = Accounts::new(4096);
        let mut recording = Recording::new(1000);
        let mut add = |time_ns, thread, what| {
            let observation = Observation { time_ns, process: 1, thread, what };
            if let Some(access) = accounts.add(observation) {
                assert_eq!(recording.add(accounts.identity(access.file), access), None);
            }
        };
        for (descriptor, inode) in [(3, 10), (4, 20)] {
            let file = WatchedFile { device: (8, 1), inode, path: format!("/{inode}") };
            let to = DescriptorBinding::File { file, len: 1 << 20, direct: inode == 20 };
            add(0, 1, What::Bound { descriptor, to, anew: true });
        }
        let read = |descriptor, at| What::Called(Call::Read(Transfer { descriptor, at }));
        add(2000, 1, read(3, Position::Offset(4096)));
        add(2100, 2, read(4, Position::Current));
        add(2200, 2, What::Returned(100));
        add(2300, 1, What::Returned(50));
        add(2400, 2, read(4, Position::Current));
        add(2500, 2, What::Returned(7));
        for (at, result) in [(Position::Current, 0), (Position::Offset(0), -5), (Position::Hidden, 300)] {
            add(2600, 2, read(4, at));
            add(2700, 2, What::Returned(result));
        }
        let subject = Subject { command: "c".into(), process: 1, ..Subject::default() };
        let inspection = accounts.inspection(subject, (1000, 3000), &[], (Vec::new(), 0));
        let block = recording.block().expect("a block");
        let identify = |path: &str| {
            (path == "/20").then_some(FileIdentity {
                device: 0,
                inode: 20,
                file_bytes: pagewise_model::Bytes(5),
                modified_ns: 0,
            })
        };
        let unread = FileIdentity { inode: 30, ..identify("/20").expect("a file") };
        let resident = |pages: &[u64]| pages.iter().copied().collect::<ResidentPages>();
        let file = |path: &str, identity: FileIdentity, pages: &[u64]| NamedFile {
            path: path.into(),
            identity,
            resident: resident(pages),
        };
        let named = [
            file("/20", identify("/20").expect("a file"), &[]),
            file("/10", FileIdentity { inode: 10, ..unread }, &[0, 1, 5]),
            file("/30", unread, &[2]),
        ];
        let (resident_blocks, end) =
            recording.trailer(&inspection, None, ProgramCost::default(), identify, &named);
        let mut bytes = trace::header(&trace::TraceHeader::default()).expect("json");
        bytes.extend(block);
        bytes.extend(resident_blocks);
        let first = trace::header(&trace::TraceHeader::default()).expect("json");
        bytes.extend(trace::trailer(&first, &end).expect("json"));
        let found = trace::Trace::parse(&bytes).expect("a trace");
        let access = |(time_ns, took_ns), file, offset, len, kind| TraceAccess {
            time_ns,
            took_ns: Some(took_ns),
            file,
            thread: file,
            offset,
            len,
            kind,
        };
        // In the order of calls; files and threads are numbered as their first reads ended.
        assert_eq!(
            found.accesses,
            [
                access((1000, 300), 1, 4096, 50, AccessKind::Pread),
                access((1100, 100), 0, 0, 100, AccessKind::Read),
                access((1400, 100), 0, 100, 7, AccessKind::Read)
            ]
        );
        let [second, first, unread] = &found.trailer.files[..] else { panic!("three files") };
        assert_eq!((first.path.as_str(), first.reads, first.read_bytes, first.direct), ("/10", 1, 50, false));
        assert_eq!((second.path.as_str(), second.reads, second.read_bytes), ("/20", 2, 107));
        assert_eq!((second.left_out_bytes, second.direct), (300, true));
        assert_eq!((unread.path.as_str(), unread.reads), ("/30", 0), "who drops a file asks for it");
        assert!(found.trailer.files.iter().all(TraceFile::is_named));
        assert_eq!(found.resident, [(1, resident(&[0, 1, 5])), (2, resident(&[2]))].into());
        assert_eq!((first.resident_before, second.resident_before), (Some(3 * 4096), Some(0)));
        assert_eq!(first.identity, None, "it is another file now");
        let threads: Vec<(u32, u64)> =
            found.trailer.threads.iter().map(|thread| (thread.thread, thread.accesses)).collect();
        assert_eq!(threads, [(2, 2), (1, 1)]);
    }
}
