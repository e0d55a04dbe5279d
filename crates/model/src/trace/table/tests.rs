//! Who does the reads of whom.

use std::collections::BTreeMap;

use super::*;
use crate::trace::{TraceHeader, TraceThread, TraceTrailer, range_of};

/// A trace of reads of 10 bytes: when, by which thread, of which file, where. Threads of a hundred
/// are a process.
pub(in crate::trace) fn trace(reads: &[(u64, u32, u32, u64)]) -> Trace {
    let accesses: Vec<TraceAccess> = reads
        .iter()
        .map(|(time_ns, thread, file, offset)| TraceAccess {
            time_ns: *time_ns,
            took_ns: None,
            file: *file,
            thread: *thread,
            offset: *offset,
            len: 10,
            kind: AccessKind::Pread,
        })
        .collect();
    let threads = reads.iter().map(|read| read.1 + 1).max().unwrap_or(0);
    let thread = |thread| TraceThread { process: thread / 100, thread, name: String::new(), accesses: 0 };
    Trace {
        header: TraceHeader::default(),
        read_ahead: Vec::new(),
        resident: BTreeMap::new(),
        trailer: TraceTrailer {
            accesses: accesses.len() as u64,
            threads: (0..threads).map(thread).collect(),
            ..TraceTrailer::default()
        },
        accesses,
    }
}

/// The offsets of each thread of the table of file 0.
fn parts(table: &RecordedTable) -> Vec<Vec<u64>> {
    let mut offsets = table.entries.iter().map(|entry| range_of(*entry).0);
    table.thread_reads.iter().map(|reads| offsets.by_ref().take(*reads as usize).collect()).collect()
}

#[test]
fn a_thread_owns_its_reads_in_its_order() {
    let reads = [(1, 2, 0, 20), (2, 0, 0, 1), (3, 2, 0, 5), (4, 1, 1, 99), (5, 0, 0, 2), (6, 2, 0, 7)];
    let table = trace(&reads).table(0, 9).expect("a table");
    assert_eq!(parts(&table), [vec![20, 5, 7], vec![1, 2]]);
    assert_eq!((table.recorded_threads, table.joined_threads, table.own_descriptors), (2, 0, false));
    let other = trace(&reads).table(1, 9).expect("a table");
    assert_eq!((parts(&other), other.recorded_threads), (vec![vec![99]], 1));
    let none = trace(&reads).table(7, 9).expect("a table");
    assert_eq!((none.entries.len(), none.thread_reads.len()), (0, 0));
}

/// A thread makes its own requests to read ahead, between the reads between which they were; those
/// of one that reads nothing come before the next read of another, or behind the last one.
#[test]
fn requests_to_read_ahead_are_between_reads() {
    let mut trace = trace(&[(10, 0, 0, 1), (20, 1, 0, 2), (30, 0, 0, 3), (40, 2, 1, 4), (50, 1, 0, 5)]);
    let request = |time_ns, thread, file, offset| TraceAccess {
        time_ns,
        thread,
        file,
        offset,
        kind: AccessKind::ReadAhead { mapped: thread == 1 },
        ..trace.accesses[0]
    };
    trace.read_ahead = vec![
        request(5, 1, 0, 100),
        request(10, 0, 0, 101),
        request(15, 7, 0, 102),
        request(25, 0, 0, 103),
        request(45, 0, 1, 104),
        request(46, 0, 0, 105),
        request(60, 7, 0, 106),
    ];
    let of = |table: &RecordedTable| {
        let of_each = |request: &RecordedReadAhead| (request.before, request.offset, request.mapped);
        table.read_ahead.iter().map(of_each).collect::<Vec<_>>()
    };
    let table = trace.table(0, 9).expect("a table");
    assert_eq!(parts(&table), [vec![1, 3], vec![2, 5]]);
    assert_eq!(table.thread_read_ahead, [3, 3]);
    let first = [(0, 101, false), (1, 103, false), (2, 105, false)];
    let second = |mapped| [(2, 100, mapped), (2, 102, false), (4, 106, false)];
    assert_eq!(of(&table), [first, second(false)].concat(), "who reads by calls keeps the mapping for it");
    let mut touching = trace.clone();
    touching.accesses[1].kind = AccessKind::Touch { opens_window: true };
    assert_eq!(of(&touching.table(0, 9).expect("a table")), [first, second(true)].concat());
    let by_one = trace.table(0, 1).expect("a table");
    assert_eq!((parts(&by_one), by_one.thread_read_ahead.clone()), (vec![vec![1, 2, 3, 5]], vec![6]));
    let places: Vec<u64> = by_one.read_ahead.iter().map(|request| request.before).collect();
    assert_eq!(places, [0, 0, 1, 2, 3, 4], "in the order of time");
    let none = trace.table(7, 9).expect("a table");
    assert_eq!((none.read_ahead.len(), none.thread_read_ahead.len()), (0, 0));
}

#[test]
fn threads_that_follow_one_another_are_one() {
    // Two that are alive all the time, and three of which each begins when the one before has
    // ended.
    let reads = [
        (1, 0, 0, 0),
        (2, 1, 0, 10),
        (3, 2, 0, 20),
        (4, 2, 0, 21),
        (5, 3, 0, 30),
        (6, 4, 0, 40),
        (7, 0, 0, 1),
    ];
    let later = [(8, 1, 0, 11)];
    let table = trace(&[&reads[..], &later].concat()).table(0, 9).expect("a table");
    assert_eq!(parts(&table), [vec![0, 1], vec![10, 11], vec![20, 21, 30, 40]]);
    assert_eq!((table.recorded_threads, table.joined_threads), (5, 0));
    // A read of the same moment is no end.
    let at_once = trace(&[(1, 0, 0, 0), (1, 1, 0, 1)]).table(0, 9).expect("a table");
    assert_eq!(at_once.thread_reads, [1, 1]);
}

#[test]
fn more_threads_than_there_may_be_join_others() {
    let first = (0..5).map(|thread| (1 + u64::from(thread), thread, 0, u64::from(thread)));
    let last = (0..5).map(|thread| (11 + u64::from(thread), thread, 0, 100 + u64::from(thread)));
    let table = trace(&first.chain(last).collect::<Vec<_>>()).table(0, 2).expect("a table");
    assert_eq!((table.recorded_threads, table.joined_threads), (5, 3));
    assert_eq!(parts(&table), [vec![0, 2, 4, 100, 102, 104], vec![1, 3, 101, 103]], "in the order of time");
}

#[test]
fn descriptors_are_own_in_several_processes_and_at_positions() {
    let two = [(1, 0, 0, 0), (2, 100, 0, 1), (3, 0, 0, 2), (4, 100, 0, 3)];
    assert!(trace(&two).table(0, 9).expect("a table").own_descriptors);
    let mut moved = trace(&[(1, 0, 0, 0), (2, 1, 0, 1), (3, 0, 0, 2), (4, 1, 0, 3)]);
    assert!(!moved.table(0, 9).expect("a table").own_descriptors);
    moved.accesses.iter_mut().for_each(|access| access.kind = AccessKind::Read);
    assert!(moved.table(0, 9).expect("a table").own_descriptors);
}

/// Numbers up to a million, of which every thousandth is a thread that reads; and 200,000 threads
/// that each read.
#[test]
fn many_threads_are_as_many_as_read_at_once() {
    let sparse: Vec<(u64, u32, u32, u64)> =
        (0..1000u32).map(|read| (u64::from(read), read * 1000, 0, u64::from(read))).collect();
    let table = trace(&sparse).table(0, 1024).expect("a table");
    assert_eq!((table.thread_reads.as_slice(), table.recorded_threads), (&[1000][..], 1000));
    let mut all = trace(&[(0, 0, 0, 0)]);
    let one = all.accesses[0];
    all.accesses = (0..400_000u32)
        .map(|read| TraceAccess { thread: read % 200_000, time_ns: u64::from(read), ..one })
        .collect();
    let table = all.table(0, 1024).expect("a table");
    assert_eq!((table.recorded_threads, table.joined_threads), (200_000, 200_000 - 1024));
    assert_eq!((table.thread_reads.len(), table.entries.len()), (1024, 400_000));
}

#[test]
fn reads_of_nothing_are_none_and_those_behind_the_end_are_refused() {
    let mut empty = trace(&[(1, 0, 0, 5), (2, 1, 0, 6)]);
    empty.accesses[1].len = 0;
    assert_eq!(empty.table(0, 9).expect("a table").thread_reads, [1]);
    empty.accesses[0].offset = END_OF_ENTRIES - 9;
    assert_eq!(empty.table(0, 9), None);
    empty.accesses[0].offset = u64::MAX;
    assert_eq!(empty.table(0, 9), None);
}
