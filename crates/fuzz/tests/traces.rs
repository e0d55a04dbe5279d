//! Traces of anybody: read, or refused with one sentence. Those that are read hold what was
//! written.

use pagewise_fuzz::Campaign;
use pagewise_model::Bytes;
use pagewise_model::access_map::AccessMap;
use pagewise_model::random::Random;
use pagewise_model::trace::{
    self, AccessKind, ResidentPages, Trace, TraceAccess, TraceDigest, TraceFile, TraceHeader, TraceThread,
    TraceTrailer,
};

/// A trace of a few KiB; a number in it could ask for GiB.
const DATA_BYTES: u64 = 32 << 20;

/// Entries of a table that fits into that memory.
const MOST_ENTRIES: u64 = 1 << 20;

/// A number of any size.
fn number(random: &mut Random) -> u64 {
    random.next_u64() >> random.below(64)
}

fn accesses(random: &mut Random) -> Vec<TraceAccess> {
    let count = random.below(200);
    let mut all = Vec::new();
    for _ in 0..count {
        let offset = number(random);
        let len = number(random).min(u64::MAX - offset);
        let (file, thread) = (random.below(3) as u32, random.below(2) as u32);
        let time_ns = number(random) / 2;
        let took_ns = (random.below(4) > 0).then(|| number(random) / 2);
        let kind = match random.below(4) {
            0 | 1 => AccessKind::Read,
            2 => AccessKind::Touch { opens_window: false },
            _ => AccessKind::ReadAhead { mapped: random.below(2) == 0 },
        };
        all.push(TraceAccess { time_ns, took_ns, file, thread, offset, len, kind });
    }
    all
}

/// Accesses of a block.
const OF_BLOCK: usize = 50;

/// Pages in the page cache, at least one.
fn resident(random: &mut Random) -> ResidentPages {
    let (mut pages, mut page) = (ResidentPages::default(), number(random) / 2);
    for _ in 0..=random.below(50) {
        pages.add(page);
        page += 1 + random.below(3);
    }
    pages
}

/// The bytes of a trace of these accesses and pages in the page cache, whose digest is that of what
/// it holds.
fn written(
    accesses: &[TraceAccess],
    resident: &ResidentPages,
    mut change: impl FnMut(&mut Vec<u8>),
) -> Vec<u8> {
    let header = TraceHeader {
        command: vec!["reader".into()],
        memory_limit: Some(Bytes::mib(64)),
        ..TraceHeader::default()
    };
    let mut blocks: Vec<Vec<u8>> = accesses.chunks(OF_BLOCK).map(trace::block).collect();
    blocks.push(trace::resident_block(1, resident));
    blocks.iter_mut().for_each(&mut change);
    let mut digest = TraceDigest::default();
    blocks.iter().for_each(|block| digest.add(block));
    let trailer = TraceTrailer {
        accesses: accesses.len() as u64,
        read_ahead: accesses.iter().filter(|access| access.kind.is_ahead()).count() as u64,
        digest: digest.key(),
        files: vec![TraceFile::default(); 3],
        threads: vec![TraceThread::default(); 2],
        ..TraceTrailer::default()
    };
    let mut bytes = trace::header(&header).expect("json");
    bytes.extend(blocks.concat());
    let first = trace::header(&header).expect("json");
    bytes.extend(trace::trailer(&first, &trailer).expect("json"));
    bytes
}

/// Flip, cut, double or insert.
fn change(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(4) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => bytes.extend_from_within(at..),
            _ => bytes.insert(at, random.next_u64() as u8),
        }
    }
}

#[test]
fn changed_traces_are_read_or_refused() {
    let campaign =
        Campaign { test: "changed_traces_are_read_or_refused", target: "traces", data_bytes: DATA_BYTES };
    campaign.run(|case| {
        let random = &mut case.random;
        let (accesses, resident) = (accesses(random), resident(random));
        // Whole, changed as a file, or changed in its blocks by somebody who knows the digest.
        let kind = random.below(4);
        let bytes = match kind {
            0 => written(&accesses, &resident, |_| ()),
            1 => {
                let mut bytes = written(&accesses, &resident, |_| ());
                change(random, &mut bytes);
                bytes
            }
            _ => written(&accesses, &resident, |blocks| change(random, blocks)),
        };
        case.input(&bytes);
        match Trace::parse(&bytes) {
            Ok(trace) => {
                let (read_ahead, read): (Vec<_>, Vec<_>) =
                    accesses.into_iter().partition(|access| access.kind.is_ahead());
                assert!(kind > 0 || trace.accesses == read && trace.resident == [(1, resident)].into());
                assert!(kind > 0 || trace.read_ahead == read_ahead);
                let reads = trace.accesses.iter().map(|access| (access.time_ns, access.offset, access.len));
                assert!(AccessMap::of(reads, 1 << 20).is_sound());
                for file in (0..4).filter(|file| trace.entry_count(*file) <= MOST_ENTRIES) {
                    let Some(table) = trace.table(file, 2) else { continue };
                    assert_eq!(table.entries.len() as u64, trace.entry_count(file));
                    assert_eq!(table.thread_reads.iter().sum::<u64>(), trace.entry_count(file));
                    assert!(table.thread_reads.len() <= 2 && !table.thread_reads.contains(&0));
                    let requests = trace.read_ahead.iter().filter(|request| request.file == file).count();
                    assert!([0, requests].contains(&table.read_ahead.len()));
                    assert_eq!(table.thread_read_ahead.len(), table.thread_reads.len());
                    let (mut rest, mut end) = (&table.read_ahead[..], 0);
                    for (reads, requests) in table.thread_reads.iter().zip(&table.thread_read_ahead) {
                        let (of_thread, behind) = rest.split_at(*requests as usize);
                        let begin = end;
                        end += reads;
                        assert!(of_thread.iter().all(|request| (begin..=end).contains(&request.before)));
                        assert!(of_thread.is_sorted_by_key(|request| request.before));
                        rest = behind;
                    }
                    assert!(rest.is_empty());
                    if let Ok(gaps) = trace.gaps(file) {
                        assert_eq!(gaps.before_reads.len(), table.entries.len());
                        assert_eq!(gaps.before_read_ahead.len(), requests);
                    }
                }
            }
            Err(reason) => {
                assert!(kind > 0, "{reason}");
                assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
            }
        }
    });
}
