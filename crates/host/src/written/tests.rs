//! Written records are found and missing ones counted, by both accesses.

use std::collections::BTreeSet;

use super::*;
use pagewise_model::{Content, random::Random};
use proptest::prelude::*;

const WAYS: [ReadBack; 2] = [ReadBack::Pread, ReadBack::Mapping];

fn source(ring: &RecordRing) -> Vec<u8> {
    let mut source = vec![0; ring.source_bytes() as usize];
    Content::Random.fill(21, 0, &mut source);
    source
}

fn new_file(directory: &tempfile::TempDir, file_bytes: u64) -> WrittenFile {
    let path = directory.path().join("written");
    let _ = std::fs::remove_file(&path);
    WrittenFile::create(&path, file_bytes).expect("create")
}

/// Write the first `records` records as an honest worker does.
fn write(file: &WrittenFile, ring: &RecordRing, source: &[u8], records: u64) {
    let record_bytes = ring.record_bytes();
    for index in 0..records {
        let record = if ring.is_scattered() { ring.nth(index) } else { index };
        let at = record % ring.slots() * record_bytes;
        file.file().write_all_at(&source[ring.source_range(record)], at).expect("write");
    }
}

fn read_back(file: &WrittenFile, ring: &RecordRing, source: &[u8], records: u64, by: ReadBack) -> Written {
    let mut written = Written::default();
    let records = FirstRecords { ring, source, count: records };
    file.read_back(records, by, &mut written).expect("read");
    written
}

/// Missing bytes, the offset of the first, others bytes.
fn found(file: &WrittenFile, ring: &RecordRing, source: &[u8], records: u64) -> (u64, Option<u64>, u64) {
    let [one, other] = WAYS.map(|way| {
        let written = read_back(file, ring, source, records, way);
        assert_eq!(written.read_back, way.name());
        assert_eq!(written.expected_bytes, records.min(ring.slots()) * ring.record_bytes());
        (written.missing_bytes, written.first_missing_at, written.stray_bytes)
    });
    assert_eq!(one, other);
    one
}

const NOTHING_WRONG: (u64, Option<u64>, u64) = (0, None, 0);

#[test]
fn a_new_file_is_sparse_private_and_new() {
    let directory = tempfile::tempdir().expect("directory");
    let file = new_file(&directory, 10 << 20);
    let metadata = file.file().metadata().expect("fstat");
    assert_eq!((metadata.len(), metadata.mode() & 0o7777), (10 << 20, 0o600));
    assert_eq!((file.allocated_bytes(), file.file_bytes()), (Some(0), 10 << 20));
    let state = file.state_before();
    assert_eq!(state.allocated_before_bytes, Some(0));
    assert!(state.dirty_before_bytes.is_none_or(|bytes| bytes == 0));
    let again = WrittenFile::create(file.path(), 1).expect_err("taken");
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    let path = file.path().to_path_buf();
    drop(file);
    assert!(path.exists(), "a drop removes nothing");
}

#[test]
fn a_size_that_cannot_be_leaves_nothing() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("written");
    assert!(WrittenFile::create(&path, u64::MAX).is_err());
    assert!(!path.exists());
}

#[test]
fn only_what_was_made_here_is_removed() {
    let directory = tempfile::tempdir().expect("directory");
    let file = new_file(&directory, 4096);
    std::fs::rename(file.path(), directory.path().join("moved")).expect("rename");
    std::fs::write(file.path(), "mine").expect("write");
    file.remove().expect("nothing to do");
    assert_eq!(std::fs::read(file.path()).expect("read"), b"mine");
    std::fs::rename(directory.path().join("moved"), file.path()).expect("rename");
    file.remove().expect("remove");
    assert!(!file.path().exists());
    file.remove().expect("nothing to do");
}

#[test]
fn a_warm_file_is_there_and_clean_and_holds_the_complement() {
    // Records smaller and larger than the source's period, and a tail.
    for (record, file_bytes) in [(10u64, (1 << 20) + 7), (4096, 2 << 20), (100_000, (2 << 20) + 5000)] {
        let directory = tempfile::tempdir().expect("directory");
        let ring = RecordRing::new(file_bytes, record, 2);
        let source = source(&ring);
        let mut file = new_file(&directory, file_bytes);
        file.make_warm(&ring, &source).expect("warm");
        assert!(file.dirty_bytes().is_none_or(|bytes| bytes == 0));
        assert!(file.allocated_bytes().expect("blocks") >= file_bytes);
        let resident = cache::residency(file.file(), file_bytes).resident_bytes;
        assert!(resident.is_none_or(|bytes| bytes == file_bytes));
        let bytes = std::fs::read(file.path()).expect("read");
        for slot in [0, 1, ring.slots() / 2, ring.slots() - 1] {
            let place = &bytes[(slot * record) as usize..][..record as usize];
            let expected = &source[ring.source_range(slot)];
            assert!(
                place.iter().zip(expected).all(|(byte, expected)| *byte == !*expected),
                "{record} {slot}"
            );
        }
        assert!(bytes[ring.bytes() as usize..].iter().all(|byte| *byte == 0));
        // Nothing was written by a worker: everything is as before, and everything is missing.
        assert_eq!(found(&file, &ring, &source, 0), NOTHING_WRONG);
        assert_eq!(found(&file, &ring, &source, ring.records()), (ring.bytes(), Some(0), 0));
    }
}

#[test]
fn a_file_is_read_into_folios_of_one_page() {
    // Not in memory: there is nothing to evict.
    let folder = std::env::current_exe().expect("the test itself").with_file_name("");
    let directory = tempfile::tempdir_in(folder).expect("directory");
    let mut file = new_file(&directory, 4 << 20);
    let ring = RecordRing::new(4 << 20, 4096, 1);
    let source = source(&ring);
    file.make_warm(&ring, &source).expect("warm");
    if cache::in_memory(file.file()).is_some() || file.dirty_bytes().is_none() {
        eprintln!("skipped: the filesystem keeps files in memory, or there is no cachestat(2)");
        return;
    }
    let folio = |file: &mut WrittenFile| {
        file.find_folio_bytes().expect("written over itself");
        file.state_before().folio_bytes.expect("cachestat is there")
    };
    let page = rustix::param::page_size() as u64;
    let written = folio(&mut file);
    assert!(written >= page && written.is_power_of_two(), "{written}");
    cache::evict(file.file(), 4 << 20).expect("evicted");
    file.read_into_small_folios().expect("read");
    assert_eq!(folio(&mut file), page);
    assert_eq!(cache::residency(file.file(), 4 << 20).resident_bytes, Some(4 << 20));
    assert_eq!(file.dirty_bytes(), Some(0));
    assert_eq!(found(&file, &ring, &source, 0), NOTHING_WRONG);
}

#[test]
fn a_scattered_ring_is_read_back_at_each_of_its_positions() {
    for warm in [false, true] {
        let ring = RecordRing::new(400_100, 4000, 1).scattered(60);
        let source = source(&ring);
        for records in [60, 50, 1] {
            let directory = tempfile::tempdir().expect("directory");
            let mut file = new_file(&directory, 400_100);
            if warm {
                file.make_warm(&ring, &source).expect("warm");
            }
            write(&file, &ring, &source, records);
            assert_eq!(found(&file, &ring, &source, records), NOTHING_WRONG);
            // A record less than it says, and one more.
            let last = ring.nth(records - 1);
            assert!(found(&file, &ring, &source, records - 1).2 > 3900);
            if records < ring.records() {
                let next = ring.nth(records) * 4000;
                assert_eq!(found(&file, &ring, &source, records + 1), (4000, Some(next), 0));
            } else {
                let all = RecordRing::new(400_100, 4000, 1).scattered(100);
                assert_eq!(found(&file, &all, &source, 100).0, 160_000, "40 were never to be written");
            }
            // The end of the file is gone, in the middle of a record.
            file.file().set_len(last * 4000 + 100).expect("truncate");
            let (missing, first, _) = found(&file, &ring, &source, records);
            let after = (0..records).filter(|index| ring.nth(*index) >= last).count() as u64;
            assert_eq!((missing, first), (after * 4000, Some(last * 4000)));
        }
    }
}

#[test]
fn an_honest_worker_misses_nothing() {
    for (record, file_bytes, passes) in
        [(10u64, 200_000u64, 1), (100, 200_000, 3), (70_000, 3 << 20, 2), (16_381, 1 << 20, 1)]
    {
        for warm in [false, true] {
            let ring = RecordRing::new(file_bytes, record, passes);
            let source = source(&ring);
            // A worker that is stopped early, in the first pass and in the last.
            for records in [ring.records(), ring.slots() / 2, ring.records() - 1, 1] {
                let directory = tempfile::tempdir().expect("directory");
                let mut file = new_file(&directory, file_bytes);
                if warm {
                    file.make_warm(&ring, &source).expect("warm");
                }
                write(&file, &ring, &source, records);
                assert_eq!(found(&file, &ring, &source, records), NOTHING_WRONG, "{record} {records}");
            }
        }
    }
}

#[test]
fn a_record_left_out_is_named_by_its_place() {
    let directory = tempfile::tempdir().expect("directory");
    let ring = RecordRing::new(3 << 20, 100, 1);
    let source = source(&ring);
    for warm in [false, true] {
        let mut file = new_file(&directory, 3 << 20);
        if warm {
            file.make_warm(&ring, &source).expect("warm");
        }
        for record in (0..ring.slots()).filter(|record| ![7777, 20_000].contains(record)) {
            let bytes = &source[ring.source_range(record)];
            file.file().write_all_at(bytes, record * 100).expect("write");
        }
        assert_eq!(found(&file, &ring, &source, ring.records()), (200, Some(777_700), 0));
    }
}

#[test]
fn the_published_defects_are_counted() {
    // A cursor that moves by the record's size while seven records are flushed: all but the first
    // are overwritten.
    let ring = RecordRing::new(1 << 20, 1024, 1);
    let source = source(&ring);
    let directory = tempfile::tempdir().expect("directory");
    let file = new_file(&directory, 1 << 20);
    for (cursor, buffer) in (0..ring.slots()).step_by(8).enumerate() {
        for (index, record) in (buffer..buffer + 7).enumerate() {
            let at = (cursor + index) as u64 * 1024;
            file.file().write_all_at(&source[ring.source_range(record)], at).expect("write");
        }
    }
    // One record of the first flush stays at its position.
    assert_eq!(found(&file, &ring, &source, ring.records()), ((1 << 20) - 1024, Some(1024), 0));
}

#[test]
fn a_single_byte_shows_wherever_it_is() {
    let directory = tempfile::tempdir().expect("directory");
    let ring = RecordRing::new((2 << 20) + 50, 1000, 1);
    let source = source(&ring);
    let half = ring.slots() / 2;
    for warm in [false, true] {
        let mut file = new_file(&directory, (2 << 20) + 50);
        if warm {
            file.make_warm(&ring, &source).expect("warm");
        }
        write(&file, &ring, &source, half);
        let flip = |at: u64| {
            let mut byte = [0];
            file.file().read_exact_at(&mut byte, at).expect("read");
            file.file().write_all_at(&[byte[0] ^ 1], at).expect("write");
        };
        let mut random = Random::for_purpose(5, "bytes to flip");
        for _ in 0..20 {
            let at = random.below(half * 1000);
            flip(at);
            let wrong = (1000, Some(at / 1000 * 1000), 0);
            assert_eq!(found(&file, &ring, &source, half), wrong, "{at}");
            flip(at);
            let beyond = half * 1000 + random.below((2 << 20) + 50 - half * 1000);
            flip(beyond);
            assert_eq!(found(&file, &ring, &source, half), (0, None, 1), "{beyond}");
            flip(beyond);
        }
        assert_eq!(found(&file, &ring, &source, half), NOTHING_WRONG);
    }
}

#[test]
fn a_file_of_another_size_lacks_bytes_or_has_stray_ones() {
    let directory = tempfile::tempdir().expect("directory");
    let ring = RecordRing::new(100_050, 1000, 1);
    let source = source(&ring);
    let file = new_file(&directory, 100_050);
    write(&file, &ring, &source, 100);
    file.file().set_len(100_060).expect("grow");
    assert_eq!(found(&file, &ring, &source, 100), (0, None, 10));
    file.file().set_len(100_020).expect("shrink");
    assert_eq!(found(&file, &ring, &source, 100), (0, None, 30));
    file.file().set_len(50_500).expect("shrink");
    assert_eq!(found(&file, &ring, &source, 100), (50_000, Some(50_000), 50));
    assert_eq!(found(&file, &ring, &source, 60), (10_000, Some(50_000), 40_050));
    file.file().set_len(0).expect("shrink");
    assert_eq!(found(&file, &ring, &source, 100), (100_000, Some(0), 50));
}

#[test]
fn holes_are_not_filled_by_looking_at_them() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        println!("skipped: tmpfs: there is no /dev/shm");
        return;
    };
    let ring = RecordRing::new(16 << 20, 4096, 1);
    let source = source(&ring);
    let file = new_file(&directory, 16 << 20);
    write(&file, &ring, &source, 300);
    let before = file.allocated_bytes();
    assert_eq!(found(&file, &ring, &source, 300), NOTHING_WRONG);
    assert_eq!(found(&file, &ring, &source, 301), (4096, Some(300 * 4096), 0));
    assert_eq!(file.allocated_bytes(), before);
}

#[test]
fn a_ring_without_a_place_is_zeros() {
    let directory = tempfile::tempdir().expect("directory");
    let ring = RecordRing::new(50, 100, 1);
    let source = source(&ring);
    let mut file = new_file(&directory, 50);
    file.make_warm(&ring, &source).expect("warm");
    assert_eq!(found(&file, &ring, &source, 0), NOTHING_WRONG);
    file.file().write_all_at(b"x", 3).expect("write");
    assert_eq!(found(&file, &ring, &source, 0), (0, None, 1));
}

#[test]
fn this_filesystem_is_not_full() {
    let directory = tempfile::tempdir().expect("directory");
    assert!(!is_full(new_file(&directory, 4096).file()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Compared with a check of one position after the other.
    #[test]
    fn any_damage_is_counted_as_it_is(
        record in prop_oneof![1u64..40, 900u64..1100, 16_370u64..16_390, 60_000u64..80_000],
        file_bytes in 1u64..400_000,
        passes in 1u64..4,
        share in 0u64..=1000,
        warm: bool,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let ring = RecordRing::new(file_bytes, record, passes);
        let source = source(&ring);
        let records = ring.records() * share / 1000;
        // Expected content, position by position.
        let mut expected = vec![0u8; file_bytes as usize];
        for slot in 0..ring.slots() {
            let place = &mut expected[(slot * record) as usize..][..record as usize];
            match ring.record_in(slot, records) {
                Some(index) => place.copy_from_slice(&source[ring.source_range(index)]),
                None if warm => {
                    place.copy_from_slice(&source[ring.source_range(slot)]);
                    place.iter_mut().for_each(|byte| *byte = !*byte);
                }
                None => {}
            }
        }
        let mut bytes = expected.clone();
        for (at, change) in &damage {
            bytes[at.index(file_bytes as usize)] ^= change;
        }
        let (mut missing, mut others) = (BTreeSet::new(), 0);
        for at in (0..file_bytes).filter(|at| bytes[*at as usize] != expected[*at as usize]) {
            let slot = at / record;
            if ring.record_in(slot, records).is_some() { missing.insert(slot); } else { others += 1; }
        }
        let directory = tempfile::tempdir().expect("directory");
        let mut file = new_file(&directory, file_bytes);
        if warm {
            file.make_warm(&ring, &source).expect("warm");
        }
        file.file().write_all_at(&bytes, 0).expect("write");
        let wanted = (missing.len() as u64 * record, missing.first().map(|slot| slot * record), others);
        prop_assert_eq!(found(&file, &ring, &source, records), wanted);
        for by in [ReadBack::Pread, ReadBack::Mapping] {
            let first = FirstRecords { ring: &ring, source: &source, count: records };
            let missing = missing_records(file.file(), first, by).expect("read");
            prop_assert_eq!(missing, (wanted.0, wanted.1), "damage elsewhere is not looked at");
        }
    }
}
