//! The reads of one file of a trace as a table: entries, those of a thread together and in its
//! order.
//!
//! Threads of which one begins when the other has made its last read follow each other in one
//! thread of the table: side by side they would read what the program never read at the same time.
//! Calls that only move in turn between threads that are alive together (a pool that hands work
//! over) are not recognised.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{AccessKind, END_OF_ENTRIES, LONGEST_ENTRY, Trace, TraceAccess, entry};

/// The reads of a file of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTable {
    /// Reads ([`entry()`]), those that are longer than [`LONGEST_ENTRY`] in pieces.
    pub entries: Vec<u64>,
    /// Number of them that each thread does, one thread after the other.
    pub thread_reads: Vec<u64>,
    /// Requests to read ahead, those of a thread together and in its order.
    pub read_ahead: Vec<RecordedReadAhead>,
    /// Number of them that each thread makes.
    pub thread_read_ahead: Vec<u64>,
    /// Threads of the program that read the file.
    pub recorded_threads: u64,
    /// Threads that read while another one of the same thread of the table did, for want of
    /// threads.
    pub joined_threads: u64,
    /// Threads have descriptors of their own, as far as is known: they are of several
    /// processes, or most reads are where the descriptor stands, which threads do not share.
    pub own_descriptors: bool,
}

/// A request to read ahead, between reads of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedReadAhead {
    /// Index of the entry before which it is made.
    pub before: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// True if it was made by a mapping.
    pub mapped: bool,
}

/// When a thread read.
struct Life {
    thread: u32,
    first_ns: u64,
    last_ns: u64,
}

impl Trace {
    /// The largest number of entries of the reads of a file.
    pub fn entry_count(&self, file: u32) -> u64 {
        self.reads_of(file).fold(0, |all, access| all.saturating_add(access.len.div_ceil(LONGEST_ENTRY)))
    }

    /// The reads of a file as a table of at most so many threads; `None` if one of them ends behind
    /// [`END_OF_ENTRIES`].
    ///
    /// # Panics
    /// If there may be no thread.
    pub fn table(&self, file: u32, most_threads: usize) -> Option<RecordedTable> {
        let lives = self.lives(file);
        let recorded_threads = lives.len() as u64;
        let (replayers, joined_threads) = replayers(lives, most_threads);
        let count = replayers.values().max().map_or(0, |last| last + 1);
        let (mut thread_reads, mut processes) = (vec![0u64; count], vec![None; count]);
        let (mut reads, mut at_position) = (0u64, 0u64);
        for access in self.reads_of(file) {
            let replayer = replayers[&access.thread];
            if access.offset.checked_add(access.len)? > END_OF_ENTRIES {
                return None;
            }
            reads += 1;
            at_position += u64::from(access.kind == AccessKind::Read);
            thread_reads[replayer] += access.len.div_ceil(LONGEST_ENTRY);
            processes[replayer] =
                self.trailer.threads.get(access.thread as usize).map(|thread| thread.process);
        }
        processes.sort_unstable();
        processes.dedup();
        let mut next: Vec<usize> = thread_reads
            .iter()
            .scan(0, |end, reads| Some(std::mem::replace(end, *end + *reads as usize)))
            .collect();
        let mut entries = vec![0; thread_reads.iter().sum::<u64>() as usize];
        let mut read_ahead = vec![Vec::new(); count];
        // Who reads by calls what was asked for by a mapping keeps that mapping for it.
        let has_touches = self.reads_of(file).any(|read| matches!(read.kind, AccessKind::Touch { .. }));
        // Those of a thread that reads nothing are made before the next read of another.
        let mut waiting = Vec::new();
        let mut last = 0;
        for access in self.in_order(file) {
            if let AccessKind::ReadAhead { mapped } = access.kind {
                let mapped = mapped && has_touches;
                match replayers.get(&access.thread) {
                    Some(replayer) => read_ahead[*replayer].push(ahead(access, mapped, next[*replayer])),
                    None => waiting.push((access, mapped)),
                }
                continue;
            }
            let (replayer, end) = (replayers[&access.thread], access.offset + access.len);
            last = replayer;
            let before = next[replayer];
            read_ahead[replayer]
                .extend(waiting.drain(..).map(|(access, mapped)| ahead(access, mapped, before)));
            for offset in (access.offset..end).step_by(LONGEST_ENTRY as usize) {
                entries[next[replayer]] = entry(offset, (end - offset).min(LONGEST_ENTRY));
                next[replayer] += 1;
            }
        }
        if let (Some(of_last), Some(end)) = (read_ahead.get_mut(last), next.get(last)) {
            of_last.extend(waiting.into_iter().map(|(access, mapped)| ahead(access, mapped, *end)));
        }
        let own_descriptors = count > 1 && (processes.len() > 1 || at_position * 2 > reads);
        Some(RecordedTable {
            entries,
            thread_reads,
            thread_read_ahead: read_ahead.iter().map(|requests| requests.len() as u64).collect(),
            read_ahead: read_ahead.concat(),
            recorded_threads,
            joined_threads,
            own_descriptors,
        })
    }

    pub(super) fn reads_of(&self, file: u32) -> impl Iterator<Item = &TraceAccess> {
        // A read of nothing at the end of a file is no access.
        self.accesses.iter().filter(move |access| access.file == file && access.len > 0)
    }

    /// Reads of a file and requests to read it ahead, in the order of time.
    pub(super) fn in_order(&self, file: u32) -> impl Iterator<Item = &TraceAccess> {
        let mut requests = self.read_ahead.iter().filter(move |request| request.file == file).peekable();
        let mut reads = self.reads_of(file).peekable();
        std::iter::from_fn(move || match (requests.peek(), reads.peek()) {
            (Some(request), Some(read)) if request.time_ns > read.time_ns => reads.next(),
            (Some(_), _) => requests.next(),
            (None, _) => reads.next(),
        })
    }

    /// The threads that read a file, the first one first.
    fn lives(&self, file: u32) -> Vec<Life> {
        let mut known: HashMap<u32, Life> = HashMap::new();
        for &TraceAccess { thread, time_ns, .. } in self.reads_of(file) {
            let life = known.entry(thread).or_insert(Life { thread, first_ns: time_ns, last_ns: time_ns });
            life.first_ns = life.first_ns.min(time_ns);
            life.last_ns = life.last_ns.max(time_ns);
        }
        let mut lives: Vec<Life> = known.into_values().collect();
        lives.sort_unstable_by_key(|life| (life.first_ns, life.thread));
        lives
    }
}

fn ahead(access: &TraceAccess, mapped: bool, before: usize) -> RecordedReadAhead {
    RecordedReadAhead { before: before as u64, offset: access.offset, len: access.len, mapped }
}

/// The thread of the table that does the reads of each recorded one: one whose reads are over, else
/// a new one, else the one whose reads are over first. And the number of those that had to join
/// another.
fn replayers(lives: Vec<Life>, most_threads: usize) -> (HashMap<u32, usize>, u64) {
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let (mut replayers, mut joined) = (HashMap::with_capacity(lives.len()), 0);
    for Life { thread, first_ns, last_ns } in lives {
        let is_over = ends.peek().is_some_and(|Reverse((end, _))| *end < first_ns);
        let replayer = match is_over || ends.len() >= most_threads {
            false => ends.len(),
            true => {
                joined += u64::from(!is_over);
                let Reverse((_, replayer)) = ends.pop().expect("there may be a thread");
                replayer
            }
        };
        ends.push(Reverse((last_ns, replayer)));
        replayers.insert(thread, replayer);
    }
    (replayers, joined)
}

#[cfg(test)]
pub(super) mod tests;
