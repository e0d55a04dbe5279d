//! Writers that continue after a finish, and impossible jobs.

use super::*;

/// Methods in which bytes may be left staged or in flight.
const STAGED: [&str; 9] = [
    "mmap",
    "mmap:buffer=1KiB",
    "pwrite:buffer=1KiB",
    "write:buffer=1000B",
    "uring:depth=4",
    "uring:depth=4+buffer=1KiB",
    "pwrite:direct+buffer=8KiB",
    "write:direct+buffer=8KiB",
    "uring:depth=2+direct+buffer=4KiB",
];

#[test]
fn a_finished_writer_goes_on() {
    for folder in folders() {
        for method in STAGED {
            let fixture = Fixture::new(&folder, 100, 40_960, 3);
            may(method, finish_often(&fixture, method));
        }
    }
}

fn finish_often(fixture: &Fixture, method: &str) -> Result<(), CallFailure> {
    let mut writer = fixture.open(method)?;
    let mut done = 0;
    for batch in [1, 9, 30, 41, 200, 128, 5, 409, 1, 300] {
        writer.append(batch)?;
        writer.finish()?;
        done += batch;
        assert_eq!(writer.written(), done * 100, "{method}: bytes after {done} records");
        fixture.assert_holds(done, &format!("{method} after {done} records"));
    }
    Ok(())
}

#[test]
fn nothing_appended_is_nothing_written() {
    for folder in folders() {
        for method in STAGED.into_iter().chain(["mmap:pretouch=64KiB"]) {
            let fixture = Fixture::new(&folder, 100, 40_960, 1);
            may(method, fixture.check(method, 0));
        }
    }
}

/// The failure of a job whose records go to `path`.
fn failure_at(path: &str, method: &str) -> CallFailure {
    let mut fixture = Fixture::new(&std::env::temp_dir(), 100, 40_960, 1);
    fixture.job.path = path.to_string();
    match fixture.write(method, fixture.job.records) {
        Ok(bytes) => panic!("{method} wrote {bytes} bytes to {path}"),
        Err(failure) => failure,
    }
}

#[test]
fn a_full_filesystem_is_unavailable_with_its_reason() {
    for (method, call) in [
        ("pwrite", "pwrite"),
        ("pwrite:buffer=1KiB", "pwrite"),
        ("write", "write"),
        ("uring:depth=4", "io_uring write"),
        ("uring:depth=2+buffer=16KiB", "io_uring write"),
    ] {
        let failure = failure_at("/dev/full", method);
        assert_eq!((failure.call.as_str(), failure.errno, failure.unavailable), (call, 28, 1), "{method}");
        assert!(failure.detail.ends_with("the filesystem has no space for the file"), "{}", failure.detail);
    }
    let allocation = failure_at("/dev/full", "pwrite:prealloc");
    assert_eq!((allocation.call.as_str(), allocation.unavailable), ("fallocate", 1));
}

#[test]
fn a_file_that_is_not_there_is_a_failure() {
    for method in ["mmap", "pwrite", "uring:depth=2"] {
        let failure = failure_at("/dev/shm/pagewise-no-such-file", method);
        assert_eq!((failure.call.as_str(), failure.errno, failure.unavailable), ("open", 2, 0), "{method}");
    }
}

/// Reason that a job of `method` is refused once `change` has been applied to it.
fn reason(method: &str, change: impl Fn(&mut Job)) -> String {
    let mut fixture = Fixture::new(&build_folder(), 1000, 10_000, 1);
    change(&mut fixture.job);
    match fixture.open(method) {
        Ok(_) => panic!("{method} was taken"),
        Err(failure) => {
            assert_eq!((failure.unavailable, failure.errno), (1, 0), "{}", failure.detail);
            failure.detail
        }
    }
}

#[test]
fn what_cannot_be_written_is_refused_with_its_reason() {
    let says = |reason: String, part: &str| assert!(reason.contains(part), "{reason}");
    says(reason("mmap:buffer=999B", |_| ()), "does not fit into the buffer of mmap:buffer=999B");
    says(reason("mmap", |job| job.record_bytes = 10_001), "does not fit into");
    says(reason("mmap", |job| job.record_bytes = 0), "no length");
    says(reason("mmap", |job| job.source_period = 0), "without a period");
    says(reason("pread", |_| ()), "not a method for append");
    says(reason("mmap:in-place", |_| ()), "does not apply to append");
    says(reason("mmap:pretouch=1KiB+buffer=1KiB", |_| ()), "leave one out");
    for access in ["pwrite:direct", "write:direct", "uring:depth=2+direct"] {
        says(reason_or(access, |_| (), "needs a buffer"), "needs a buffer");
        let uneven = format!("{access}+buffer=5000B");
        says(reason_or(&uneven, |_| (), "is not a multiple"), "is not a multiple");
        let behind = format!("{access}+buffer=8KiB");
        says(reason_or(&behind, |_| (), "past the end"), "past the end of the file (10000 bytes)");
    }
}

/// Like [`reason`]; `expected` if O_DIRECT itself is refused first.
fn reason_or(method: &str, change: impl Fn(&mut Job), expected: &str) -> String {
    let mut fixture = Fixture::new(&build_folder(), 1000, 10_000, 1);
    change(&mut fixture.job);
    match fixture.open(method) {
        Ok(_) => panic!("{method} was taken"),
        Err(failure) if failure.call.contains("O_DIRECT") => {
            println!("skipped: direct-io: {method}: {}", failure.detail);
            format!("{expected} of the file (10000 bytes)")
        }
        Err(failure) => failure.detail,
    }
}

#[test]
fn a_source_that_is_too_short_is_a_failure() {
    let fixture = Fixture::new(&std::env::temp_dir(), 100, 1000, 1);
    fs::write(&fixture.job.source_path, [1; 50]).expect("source");
    let failure = fixture.open("mmap").err().expect("refused");
    assert_eq!((failure.call.as_str(), failure.unavailable), ("pread", 0));
}
