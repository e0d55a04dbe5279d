//! Records in no order: each at its position, no other, and synced when it is due.

use super::*;

const METHODS: [&str; 7] = [
    "mmap",
    "mmap:random+prealloc",
    "pwrite",
    "pwrite:direct",
    "pwrite:dontcache",
    "uring:depth=3",
    "uring:direct+depth=3",
];

/// True if `method` may be refused by a filesystem or a kernel.
fn is_refusable(method: &str) -> bool {
    method.contains("direct") || method.contains("dontcache")
}

/// Updates of blocks of 4 KiB in a file of 50 blocks and a part of one.
fn fixture(folder: &Path, updates: u64) -> Fixture {
    let mut fixture = Fixture::new(folder, 4096, 50 * 4096 + 100, 1);
    (fixture.job.workload, fixture.job.records) = ("update".to_string(), updates);
    fixture
}

/// The file once the first `records` were written.
fn expected(fixture: &Fixture, records: u64) -> Vec<u8> {
    let size = fixture.job.record_bytes as usize;
    let ring = RecordRing::new(fixture.job.file_bytes, size as u64, 1).scattered(fixture.job.records);
    let mut expected = vec![0; fixture.job.file_bytes as usize];
    for record in (0..records).map(|index| ring.nth(index)) {
        let at = record as usize * size;
        expected[at..at + size].copy_from_slice(&fixture.source[ring.source_range(record)]);
    }
    expected
}

#[test]
fn each_record_is_at_its_position_and_no_other_is_written() {
    for folder in folders() {
        for method in METHODS {
            for (updates, records) in [(50, 50), (50, 20), (20, 20)] {
                let fixture = fixture(&folder, updates);
                match fixture.write(method, records) {
                    Ok(bytes) => assert_eq!(bytes, records * 4096, "{method}"),
                    Err(failure) => {
                        assert!(is_refusable(method) && failure.unavailable == 1, "{method}: {failure:?}");
                        continue;
                    }
                }
                assert!(fixture.file() == expected(&fixture, records), "{method}, {records} of {updates}");
            }
        }
    }
}

#[test]
fn records_of_any_size_are_updated() {
    for folder in folders() {
        for method in ["mmap", "pwrite", "uring:depth=3"] {
            let mut fixture = Fixture::new(&folder, 300, 60_100, 1);
            (fixture.job.workload, fixture.job.records) = ("update".to_string(), 150);
            assert_eq!(fixture.write(method, 120), Ok(36_000), "{method}");
            assert!(fixture.file() == expected(&fixture, 120), "{method}");
        }
    }
}

#[test]
fn a_sync_follows_each_interval() {
    for method in METHODS {
        // Two intervals of 16 KiB, and a part of one.
        let mut fixture = fixture(&build_folder(), 10);
        fixture.job.sync = "every:16KiB".to_string();
        let mut writer = match fixture.open(method) {
            Ok(writer) => writer,
            Err(failure) => {
                assert!(is_refusable(method) && failure.unavailable == 1, "{method}: {failure:?}");
                continue;
            }
        };
        if let Err(failure) = append(&mut *writer, 9) {
            assert!(is_refusable(method) && failure.unavailable == 1, "{method}: {failure:?}");
            continue;
        }
        assert_eq!(writer.take_sync_durations().expect("measured").len(), 2, "{method}");
        must(append(&mut *writer, 1));
        must(writer.finish());
        let durations = writer.take_sync_durations().expect("measured");
        assert_eq!(durations.len(), 1, "{method}: the rest is synced at the end");
        assert!(fixture.file() == expected(&fixture, 10), "{method}");
    }
}

#[test]
fn what_collects_neighbours_is_refused() {
    let fixture = fixture(&folders()[0], 50);
    for method in ["pwrite:buffer=4KiB", "mmap:pretouch=4KiB", "write", "pwrite:direct+buffer=4KiB"] {
        let failure = fixture.write(method, 1).expect_err(method);
        assert_eq!(failure.unavailable, 1, "{method}: {}", failure.detail);
    }
    assert_eq!(fixture.write("anonymous", 50), Ok(50 * 4096));
    assert!(fixture.write("pwrite", 51).is_err(), "there is no such update");
    let mut uneven = Fixture::new(&build_folder(), 300, 60_100, 1);
    (uneven.job.workload, uneven.job.records) = ("update".to_string(), 10);
    for method in ["pwrite:direct", "uring:direct"] {
        let failure = uneven.write(method, 1).expect_err(method);
        assert!(failure.detail.contains("is not a multiple of the 4KiB"), "{method}: {}", failure.detail);
    }
}

/// The checksum of reads of a file of zeros in which records are written meanwhile, word 16 of each
/// touched.
fn expected_sum(fixture: &Fixture, reads_each: u32) -> u64 {
    let size = fixture.job.record_bytes as usize;
    let ring = RecordRing::new(fixture.job.file_bytes, size as u64, 1);
    let ring = ring.scattered(fixture.job.records).reading(reads_each);
    let mut file = vec![0; fixture.job.file_bytes as usize];
    let (mut sum, mut number) = (0u64, 0u64);
    for index in 0..ring.records() {
        for nth in 0..reads_each {
            let at = ring.read(index, nth) as usize * size + 16;
            let word = u64::from_le_bytes(file[at..at + 8].try_into().expect("a word"));
            sum = sum.wrapping_add(word.wrapping_mul(2 * number + 1));
            number += 1;
        }
        let at = ring.nth(index) as usize * size;
        file[at..at + size].copy_from_slice(&fixture.source[ring.source_range(ring.nth(index))]);
    }
    sum
}

#[test]
fn reads_between_see_what_was_written() {
    for folder in folders() {
        for method in METHODS {
            let mut fixture = fixture(&folder, 40);
            fixture.job.reads_per_op = 6;
            fixture.renew();
            let summed = fixture.open(method).and_then(|mut writer| {
                writer.begin(16);
                append(&mut *writer, 40)?;
                writer.finish()?;
                Ok((writer.take_checksum(), writer.take_checksum()))
            });
            match summed {
                Err(failure) => {
                    assert!(is_refusable(method) && failure.unavailable == 1, "{method}: {failure:?}");
                }
                Ok(sums) => {
                    let wanted = expected_sum(&fixture, 6);
                    assert!(wanted != 0, "no read saw a record");
                    assert_eq!(sums, (wanted, 0), "{method}");
                    assert!(fixture.file() == expected(&fixture, 40), "{method}");
                }
            }
        }
    }
}

#[test]
fn more_in_flight_than_are_apart_is_refused() {
    let mut fixture = fixture(&build_folder(), 40);
    fixture.job.reads_per_op = 1;
    assert!(fixture.open("uring:depth=12").is_ok());
    let refused = fixture.open("uring:depth=13").err().expect("13 of 50 blocks");
    assert_eq!(refused.unavailable, 1);
    assert!(refused.detail.contains("13 accesses under way at once"), "{}", refused.detail);
}
