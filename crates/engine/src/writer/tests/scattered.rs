//! Records in no order.

use super::*;

#[test]
fn each_record_is_at_its_position_and_no_other_is_written() {
    for folder in folders() {
        for method in ["mmap", "mmap:random+prealloc", "pwrite"] {
            let mut fixture = Fixture::new(&folder, 300, 60_100, 1);
            fixture.job.workload = "random-write".to_string();
            let ring = RecordRing::new(60_100, 300, 1).scattered();
            for records in [200, 120] {
                fs::write(&fixture.job.path, vec![0; 60_100]).expect("an empty file");
                assert_eq!(fixture.write(method, records), Ok(records * 300), "{method}");
                let mut expected = vec![0; 60_100];
                for record in (0..records).map(|index| ring.nth(index)) {
                    let at = record as usize * 300;
                    expected[at..at + 300].copy_from_slice(&fixture.source[ring.source_range(record)]);
                }
                assert!(fs::read(&fixture.job.path).expect("the file") == expected, "{method}, {records}");
            }
        }
    }
}

#[test]
fn what_collects_neighbours_is_refused() {
    let mut fixture = Fixture::new(&folders()[0], 300, 60_100, 1);
    fixture.job.workload = "random-write".to_string();
    for method in ["pwrite:buffer=4KiB", "mmap:pretouch=4KiB", "uring", "write", "pwrite:direct+buffer=4KiB"]
    {
        let failure = fixture.write(method, 1).expect_err(method);
        assert_eq!(failure.unavailable, 1, "{method}: {}", failure.detail);
    }
    assert_eq!(fixture.write("anonymous", 200), Ok(60_000));
}
