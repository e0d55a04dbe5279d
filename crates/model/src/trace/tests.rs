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
    let of_block = |accesses: &Vec<TraceAccess>| block(accesses);
    bytes_with(&blocks.iter().map(of_block).collect::<Vec<_>>(), &blocks.concat())
}

/// A trace of these blocks, which hold these accesses.
fn bytes_with(blocks: &[Vec<u8>], all: &[TraceAccess]) -> Vec<u8> {
    let mut bytes = header(&first_line()).expect("json");
    let mut digest = TraceDigest::default();
    for block in blocks {
        digest.add(block);
        bytes.extend(block);
    }
    let file = TraceFile { path: "/data".into(), said_to_be_read: ReadOrder::Random, ..TraceFile::default() };
    let end = TraceTrailer {
        accesses: all.len() as u64,
        read_ahead: all.iter().filter(|access| access.kind.is_ahead()).count() as u64,
        digest: digest.key(),
        files: vec![file; all.iter().map(|access| access.file as usize + 1).max().unwrap_or(0)],
        threads: vec![
            TraceThread::default();
            all.iter().map(|access| access.thread as usize + 1).max().unwrap_or(0)
        ],
        ..TraceTrailer::default()
    };
    let end = trailer(&bytes[..=first_end(&bytes)], &end).expect("json");
    bytes.extend(end);
    bytes
}

/// The end of the first line.
fn first_end(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').expect("a line")
}

fn access(index: u64) -> TraceAccess {
    TraceAccess {
        time_ns: index * 40_000,
        took_ns: Some(35_000 - index % 1000),
        file: 0,
        thread: 0,
        offset: mix(index) % (256 << 20) / 4096 * 4096,
        len: 4096,
        kind: AccessKind::Pread,
    }
}

prop_compose! {
    fn any_access()(time_ns in 0..u64::MAX / 2, took_ns in prop::option::of(0..u64::MAX / 2), file in 0u32..9, thread in 0u32..9, offset in 0..u64::MAX / 2, len in 0..u64::MAX / 2, kind in 0..AccessKind::ALL.len() as u64) -> TraceAccess {
        TraceAccess { time_ns, took_ns, file, thread, offset, len, kind: AccessKind::of_number(kind).expect("a kind") }
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(blocks in prop::collection::vec(prop::collection::vec(any_access(), 0..40), 0..4)) {
        let bytes = bytes_of(&blocks);
        prop_assert_eq!(Trace::count(&bytes), blocks.concat().len() as u64);
        prop_assert!(Trace::count(&bytes[..bytes.len() / 2]) <= Trace::count(&bytes));
        let trace = Trace::parse(&bytes).expect("a trace");
        prop_assert_eq!(trace.header, first_line());
        let (read_ahead, accesses): (Vec<_>, Vec<_>) =
            blocks.concat().into_iter().partition(|access| access.kind.is_ahead());
        prop_assert_eq!(trace.accesses, accesses);
        prop_assert_eq!(trace.read_ahead, read_ahead);
    }

    /// No byte can change, and nothing can be cut off, without being noticed.
    #[test]
    fn a_changed_or_torn_trace_is_refused(count in 1u64..50, place: prop::sample::Index, bit in 0u8..8) {
        let accesses: Vec<TraceAccess> = (0..count).map(access).collect();
        let whole = bytes_of(std::slice::from_ref(&accesses));
        let mut changed = whole.clone();
        changed[place.index(whole.len())] ^= 1 << bit;
        prop_assert!(Trace::parse(&changed).is_err());
        prop_assert!(Trace::parse(&whole[..place.index(whole.len())]).is_err());
    }

    #[test]
    fn nonsense_is_refused(bytes: Vec<u8>, columns: Vec<u8>, count in 0usize..100, has_durations: bool) {
        prop_assert!(Trace::parse(&bytes).is_err());
        Trace::count(&bytes);
        let _ = columns::decode(&columns, count, has_durations, &mut Vec::new());
    }
}

#[test]
fn each_defect_has_its_sentence() {
    let whole = bytes_of(&[vec![access(1)]]);
    let text = String::from_utf8_lossy(&whole).into_owned();
    let refused = |bytes: &[u8]| Trace::parse(bytes).expect_err("refused");
    assert_eq!(refused(b""), "it is no trace of pagewise");
    assert_eq!(refused(b"{\"format\":2}\n"), "it is no trace of pagewise");
    let newer = text.replace("\"pagewise_trace\":4", "\"pagewise_trace\":9");
    assert_eq!(refused(newer.as_bytes()), "its format is 9, and this pagewise reads formats up to 4");
    assert_eq!(refused(&whole[..whole.len() - 1]), "it is torn: its end is missing");
    let without_blocks = String::from_utf8(bytes_of(&[])).expect("lines alone");
    let changed = without_blocks.replace("\"lost_records\":0", "\"lost_records\":7");
    assert_eq!(
        refused(changed.as_bytes()),
        "it is damaged: its first or last line is not that which was written"
    );
    let end = whole.len() - 17;
    assert_eq!(refused(&whole[..end]), "it is torn: its end is missing", "the digest of the lines");
}

/// The first format had no touches, the second no pages in the page cache; they are parts of this
/// one. Neither had durations.
#[test]
fn a_trace_of_an_earlier_format_is_read() {
    let first = TraceAccess { took_ns: None, ..access(0) };
    let mut without_durations = block(&[first]);
    // Behind the lengths of the block, three runs and the time.
    assert_eq!(without_durations.remove(9 + 7), 0);
    without_durations[5] -= 1;
    for format in [1, 2] {
        let mut whole = bytes_with(std::slice::from_ref(&without_durations), &[first]);
        let version = whole.iter().position(|byte| *byte == b'4').expect("the version is the first number");
        whole[version] = b'0' + format;
        // Nothing followed the last line.
        whole.truncate(whole.len() - 17);
        let trace = Trace::parse(&whole).expect("a trace");
        assert_eq!((trace.header.pagewise_trace, trace.accesses), (u32::from(format), vec![first]));
    }
    // The third had no requests to read ahead.
    let request = TraceAccess { kind: AccessKind::ReadAhead { mapped: true }, ..access(0) };
    for (entry, is_read) in [(access(0), true), (request, false)] {
        let text =
            String::from_utf8_lossy(&bytes_of(&[])).replace("\"pagewise_trace\":4", "\"pagewise_trace\":3");
        let first = &text.as_bytes()[..=first_end(text.as_bytes())];
        let (mut digest, of_entry) = (TraceDigest::default(), block(&[entry]));
        digest.add(&of_entry);
        let end = TraceTrailer {
            accesses: 1,
            read_ahead: u64::from(!is_read),
            digest: digest.key(),
            files: vec![TraceFile::default()],
            threads: vec![TraceThread::default()],
            ..TraceTrailer::default()
        };
        let whole = [first, &of_entry, &trailer(first, &end).expect("json")].concat();
        assert_eq!(Trace::parse(&whole).is_ok_and(|trace| !trace.knows_read_ahead()), is_read);
    }
    let of_this_format = bytes_with(&[without_durations], &[first]);
    assert!(Trace::parse(&of_this_format).is_err());
}

/// Nothing ends after the last moment that there is.
#[test]
fn a_duration_that_no_clock_can_show_is_refused() {
    let endless =
        |time_ns, took_ns| bytes_of(&[vec![TraceAccess { time_ns, took_ns: Some(took_ns), ..access(1) }]]);
    assert!(Trace::parse(&endless(5, 10_u64.pow(18))).is_ok());
    assert_eq!(
        Trace::parse(&endless(5, u64::MAX - 3)),
        Err("it is damaged: a block does not hold what it says".to_string())
    );
}

/// A trace of two files with these blocks of pages; its digest is that of what it holds.
fn with_resident(blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = header(&first_line()).expect("json");
    let mut digest = TraceDigest::default();
    blocks.iter().for_each(|block| digest.add(block));
    bytes.extend(blocks.concat());
    let files = vec![TraceFile::default(); 2];
    let end = TraceTrailer { digest: digest.key(), files, ..TraceTrailer::default() };
    bytes.extend(trailer(&header(&first_line()).expect("json"), &end).expect("json"));
    bytes
}

#[test]
fn pages_in_the_page_cache_are_read_back_or_refused() {
    let of = |pages: &[u64]| pages.iter().copied().collect::<ResidentPages>();
    let whole = with_resident(&[resident_block(0, &of(&[0, 1, 7])), resident_block(1, &of(&[3]))]);
    let found = Trace::parse(&whole).expect("a trace").resident;
    assert_eq!(found, BTreeMap::from([(0, of(&[0, 1, 7])), (1, of(&[3]))]));
    let mut absurd = resident_block(0, &of(&[1]));
    absurd[5..9].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut disordered = resident_block(0, &of(&[1, 3]));
    *disordered.iter_mut().rev().nth(1).expect("a byte") = 0;
    let no_pages = "it is damaged: the pages in the page cache are not those of a file";
    for (blocks, sentence) in [
        (vec![absurd], "it is torn: its end is missing"),
        (vec![disordered], no_pages),
        (vec![resident_block(0, &of(&[]))], no_pages),
        (vec![resident_block(2, &of(&[1]))], no_pages),
        (vec![resident_block(0, &of(&[1])), resident_block(0, &of(&[5]))], no_pages),
    ] {
        assert_eq!(Trace::parse(&with_resident(&blocks)).expect_err("refused"), sentence);
    }
}

#[test]
fn an_access_takes_few_bytes() {
    let random: Vec<TraceAccess> = (0..BLOCK_ACCESSES as u64).map(access).collect();
    assert!(block(&random).len() <= 11 * BLOCK_ACCESSES, "{}", block(&random).len());
    let ordered: Vec<TraceAccess> = (0..BLOCK_ACCESSES as u64)
        .map(|index| TraceAccess { offset: index * 4096, ..access(index) })
        .collect();
    assert!(block(&ordered).len() <= 8 * BLOCK_ACCESSES, "{}", block(&ordered).len());
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
