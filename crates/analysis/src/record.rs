//! A recording: the reads of a watched program, numbered for a trace and put into blocks.

use std::collections::HashMap;

use pagewise_model::plan::FileIdentity;
use pagewise_model::trace::{
    self, BLOCK_ACCESSES, ProgramCost, TraceAccess, TraceDigest, TraceFile, TraceThread, TraceTrailer,
};

use crate::inspect::{Accessed, Inspection};

/// Major number, minor number, inode.
type Identity = (u32, u32, u64);

/// The reads of a program so far.
#[derive(Debug)]
pub struct Recording {
    began_ns: u64,
    files: Numbered<usize>,
    identities: Vec<Identity>,
    threads: Numbered<(u32, u32)>,
    pending: Vec<TraceAccess>,
    digest: TraceDigest,
    accesses: u64,
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

    fn count(&mut self, key: K, bytes: u64) -> u32 {
        let number = *self.numbers.entry(key).or_insert_with(|| {
            self.counts.push((key, 0, 0));
            (self.counts.len() - 1) as u32
        });
        let (_, reads, all) = &mut self.counts[number as usize];
        *reads += 1;
        *all += bytes;
        number
    }
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
            digest: TraceDigest::default(),
            accesses: 0,
        }
    }

    /// Add a read of the file with this identity; returns a block whenever one is full.
    pub fn add(&mut self, identity: Identity, access: Accessed) -> Option<Vec<u8>> {
        let Accessed { time_ns, process, thread, file, offset, len, at_position } = access;
        let file = self.files.count(file, len);
        if self.identities.len() <= file as usize {
            self.identities.push(identity);
        }
        let thread = self.threads.count((process, thread), len);
        let time_ns = time_ns.saturating_sub(self.began_ns);
        self.pending.push(TraceAccess { time_ns, file, thread, offset, len, at_position });
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
        Some(block)
    }

    /// The trailer, once all blocks are taken. `identify` looks what file a path is now.
    pub fn trailer(
        self,
        inspection: &Inspection,
        program: ProgramCost,
        identify: impl Fn(&str) -> Option<FileIdentity>,
        resident_before: impl Fn(&FileIdentity) -> Option<u64>,
    ) -> TraceTrailer {
        let mut files = Vec::new();
        let read = self.files.counts.iter().zip(&self.identities);
        let read = read.map(|((_, reads, bytes), identity)| (*reads, *bytes, *identity));
        // Files that were only mapped have no reads here, and their faults are told.
        let mapped = inspection.files.iter().filter(|file| file.mapping.is_some() && !file.code);
        let mapped =
            mapped.map(|file| (0, 0, file.identity)).filter(|file| !self.identities.contains(&file.2));
        for (reads, read_bytes, identity) in read.chain(mapped) {
            let seen = inspection.files.iter().find(|file| file.identity == identity);
            let path = seen.and_then(|file| file.path.clone()).unwrap_or_default();
            let found = identify(&path).filter(|found| found.inode == identity.2);
            let all_bytes = seen.and_then(|file| file.reads.as_ref()).map_or(0, |reads| reads.bytes);
            let mapping = seen.and_then(|file| file.mapping.as_ref());
            files.push(TraceFile {
                path,
                reads,
                read_bytes,
                left_out_bytes: all_bytes.saturating_sub(read_bytes),
                writes: seen.and_then(|file| file.writes.as_ref()).map_or(0, |writes| writes.count),
                direct: seen.is_some_and(|file| file.direct),
                said_to_be_read: seen.map(|file| file.said_to_be_read).unwrap_or_default(),
                mapped_faults: mapping.map_or(0, |mapped| mapped.minor_faults + mapped.major_faults),
                brought_in_bytes: seen
                    .and_then(|file| file.brought_in.as_ref())
                    .map(|brought| brought.by_calls_bytes),
                resident_before: found.as_ref().and_then(&resident_before),
                identity: found,
            });
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
        TraceTrailer {
            accesses: self.accesses,
            digest: self.digest.key(),
            complete: inspection.complete,
            lost_records: inspection.lost_records,
            events: inspection.events.clone(),
            missing: inspection.missing.clone(),
            files,
            threads: threads.collect(),
            unknown_bytes: inspection.unknown.map_or(0, |unknown| unknown.bytes),
            ring_requests: inspection.ring_requests.unwrap_or(0),
            program,
            inspection: Some(inspection.shortened()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::{Accounts, Subject};
    use pagewise_model::watched::{
        Call, DescriptorBinding, Happening, Position, Transfer, WatchedFile, What,
    };

    /// Two threads that read two files, one of them at its own position.
    #[test]
    fn what_a_program_read_is_in_the_trace() {
        let mut accounts = Accounts::new(4096);
        let mut recording = Recording::new(1000);
        let mut add = |time_ns, thread, what| {
            let happening = Happening { time_ns, process: 1, thread, what };
            if let Some(access) = accounts.add(happening) {
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
        let subject = Subject { command: "c".into(), process: 1, ended: None };
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
        let end = recording.trailer(&inspection, ProgramCost::default(), identify, |_| Some(9));
        let mut bytes = trace::header(&trace::TraceHeader::default()).expect("json");
        bytes.extend(block);
        bytes.extend(trace::trailer(&end).expect("json"));
        let found = trace::Trace::parse(&bytes).expect("a trace");
        let access = |time_ns, file, offset, len, at_position| TraceAccess {
            time_ns,
            file,
            thread: file,
            offset,
            len,
            at_position,
        };
        // In the order of calls; files and threads are numbered as their first reads ended.
        assert_eq!(
            found.accesses,
            [access(1000, 1, 4096, 50, false), access(1100, 0, 0, 100, true), access(1400, 0, 100, 7, true)]
        );
        let [second, first] = &found.trailer.files[..] else { panic!("two files") };
        assert_eq!((first.path.as_str(), first.reads, first.read_bytes, first.direct), ("/10", 1, 50, false));
        assert_eq!((second.path.as_str(), second.reads, second.read_bytes), ("/20", 2, 107));
        assert_eq!((second.left_out_bytes, second.direct, second.resident_before), (300, true, Some(9)));
        assert_eq!((&first.identity, first.resident_before), (&None, None), "it is another file now");
        let threads: Vec<(u32, u64)> =
            found.trailer.threads.iter().map(|thread| (thread.thread, thread.accesses)).collect();
        assert_eq!(threads, [(2, 2), (1, 1)]);
    }
}
