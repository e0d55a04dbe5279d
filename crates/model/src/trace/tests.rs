//! Traces that are read back, and ones that are refused.

use proptest::prelude::*;

use super::*;

fn first_line() -> TraceHeader {
    TraceHeader {
        command: vec!["a b".into(), "c\n".into()],
        memory_limit: Some(Bytes::mib(64)),
        ..TraceHeader::default()
    }
}

fn bytes_of(blocks: &[Vec<TraceAccess>]) -> Vec<u8> {
    let mut bytes = header(&first_line()).expect("json");
    let mut digest = TraceDigest::default();
    for accesses in blocks {
        let block = block(accesses);
        digest.add(&block);
        bytes.extend(block);
    }
    let all: Vec<&TraceAccess> = blocks.iter().flatten().collect();
    let file = TraceFile { path: "/data".into(), said_to_be_read: ReadOrder::Random, ..TraceFile::default() };
    let end = TraceTrailer {
        accesses: all.len() as u64,
        digest: digest.key(),
        files: vec![file; all.iter().map(|access| access.file as usize + 1).max().unwrap_or(0)],
        threads: vec![
            TraceThread::default();
            all.iter().map(|access| access.thread as usize + 1).max().unwrap_or(0)
        ],
        ..TraceTrailer::default()
    };
    bytes.extend(trailer(&end).expect("json"));
    bytes
}

fn access(index: u64) -> TraceAccess {
    TraceAccess {
        time_ns: index * 40_000,
        file: 0,
        thread: 0,
        offset: mix(index) % (256 << 20) / 4096 * 4096,
        len: 4096,
        kind: AccessKind::Pread,
    }
}

prop_compose! {
    fn any_access()(time_ns: u64, file in 0u32..9, thread in 0u32..9, offset in 0..u64::MAX / 2, len in 0..u64::MAX / 2, kind in 0u64..4) -> TraceAccess {
        TraceAccess { time_ns, file, thread, offset, len, kind: AccessKind::of_number(kind).expect("a kind") }
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(blocks in prop::collection::vec(prop::collection::vec(any_access(), 0..40), 0..4)) {
        let trace = Trace::parse(&bytes_of(&blocks)).expect("a trace");
        prop_assert_eq!(trace.header, first_line());
        prop_assert_eq!(trace.accesses, blocks.concat());
    }

    /// No byte of the blocks can change, and nothing can be cut off, without being noticed.
    #[test]
    fn a_changed_or_torn_trace_is_refused(count in 1u64..50, place: prop::sample::Index, bit in 0u8..8) {
        let accesses: Vec<TraceAccess> = (0..count).map(access).collect();
        let whole = bytes_of(std::slice::from_ref(&accesses));
        let first = whole.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
        let blocks = first..first + block(&accesses).len();
        let mut changed = whole.clone();
        changed[blocks.start + place.index(blocks.len())] ^= 1 << bit;
        prop_assert!(Trace::parse(&changed).is_err());
        prop_assert!(Trace::parse(&whole[..place.index(whole.len())]).is_err());
    }

    #[test]
    fn nonsense_is_refused(bytes: Vec<u8>, columns: Vec<u8>, count in 0usize..100) {
        prop_assert!(Trace::parse(&bytes).is_err());
        let _ = columns::decode(&columns, count, &mut Vec::new());
    }
}

#[test]
fn each_defect_has_its_sentence() {
    let whole = bytes_of(&[vec![access(1)]]);
    let text = String::from_utf8_lossy(&whole).into_owned();
    let refused = |bytes: &[u8]| Trace::parse(bytes).expect_err("refused");
    assert_eq!(refused(b""), "it is no trace of pagewise");
    assert_eq!(refused(b"{\"format\":2}\n"), "it is no trace of pagewise");
    let newer = text.replace("\"pagewise_trace\":2", "\"pagewise_trace\":9");
    assert_eq!(refused(newer.as_bytes()), "its format is 9, and this pagewise reads formats up to 2");
    assert_eq!(refused(&whole[..whole.len() - 1]), "it is torn: its end is missing");
    let mut twice = bytes_of(&[]);
    twice.splice(twice.len() - 1.., *b"x\n");
    assert!(refused(&twice).starts_with("it is damaged: its last line: "), "{}", refused(&twice));
}

/// The first format had no touches, and is a part of the second.
#[test]
fn a_trace_of_the_first_format_is_read() {
    let mut whole = bytes_of(&[vec![access(1)]]);
    let version = whole.iter().position(|byte| *byte == b'2').expect("the version is the first number");
    whole[version] = b'1';
    let trace = Trace::parse(&whole).expect("a trace");
    assert_eq!((trace.header.pagewise_trace, trace.accesses), (1, vec![access(1)]));
}

#[test]
fn an_access_takes_few_bytes() {
    let random: Vec<TraceAccess> = (0..BLOCK_ACCESSES as u64).map(access).collect();
    assert!(block(&random).len() <= 9 * BLOCK_ACCESSES, "{}", block(&random).len());
    let ordered: Vec<TraceAccess> = (0..BLOCK_ACCESSES as u64)
        .map(|index| TraceAccess { offset: index * 4096, ..access(index) })
        .collect();
    assert!(block(&ordered).len() <= 6 * BLOCK_ACCESSES, "{}", block(&ordered).len());
}

#[test]
fn a_read_is_an_entry_and_a_long_one_several() {
    for (offset, len) in [(0, 1), (END_OF_ENTRIES - 1, LONGEST_ENTRY), (12_345, 16)] {
        assert_eq!(range_of(entry(offset, len)), (offset, len as usize));
    }
    let long = TraceAccess { offset: 10, len: 2 * LONGEST_ENTRY + 5, ..access(1) };
    let mut trace = Trace::parse(&bytes_of(&[vec![access(1), long, TraceAccess { file: 1, ..access(2) }]]))
        .expect("a trace");
    let ranges = |trace: &Trace| {
        trace.table(0, 9).map(|all| all.entries.into_iter().map(range_of).collect::<Vec<_>>())
    };
    let most = LONGEST_ENTRY as usize;
    let pieces =
        [(access(1).offset, 4096), (10, most), (10 + LONGEST_ENTRY, most), (10 + 2 * LONGEST_ENTRY, 5)];
    assert_eq!(ranges(&trace).expect("entries"), pieces);
    trace.accesses[0].offset = END_OF_ENTRIES;
    assert_eq!(ranges(&trace), None);
}
