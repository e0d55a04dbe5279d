//! Every sync call, their number and durations, and records that are committed by several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::group::{Group, SharedSink, committers};
use super::super::open_threads;
use super::*;
use crate::sampling::ThreadWork;

/// Methods that write with these calls, and the bytes of their writes for records of 4096 B.
const METHODS: [&str; 6] =
    ["pwrite", "write", "mmap", "pwrite:direct+buffer=4KiB", "uring:depth=4", "write:buffer=4KiB"];

fn fixture_of(call: SyncCall, sync: &str) -> Fixture {
    let mut fixture = Fixture::new(&std::env::temp_dir(), 4096, 40_960, 2);
    fixture.job.sync = sync.to_string();
    fixture.job.sync_call = call.to_string();
    fixture
}

#[test]
fn each_call_syncs_and_is_timed() {
    for call in SyncCall::ALL {
        for method in METHODS {
            let fixture = fixture_of(*call, "every:4KiB");
            let mut writer = match fixture.open(method) {
                Ok(writer) => writer,
                Err(failure) => {
                    let of_mappings = method == "mmap" && call.is_write();
                    let of_calls = method != "mmap" && *call == SyncCall::Msync;
                    assert!(of_mappings || of_calls, "{method} by {call}: {}", failure.detail);
                    assert_eq!(failure.unavailable, 1);
                    continue;
                }
            };
            must(append(&mut *writer, fixture.job.records));
            must(writer.finish());
            let durations = writer.take_sync_durations().expect("they are measured");
            assert_eq!(durations.len(), fixture.job.records, "{method} by {call}");
            assert!(durations.min() > 0, "{method} by {call}: {}", durations.min());
            fixture.assert_holds(fixture.job.records, &format!("{method} by {call}"));
        }
    }
}

#[test]
fn a_write_that_syncs_is_as_long_as_the_interval() {
    for (method, sync, wanted) in [
        ("pwrite", "every:8KiB", "write --sync every:4KiB"),
        ("pwrite", "end", "in place of end"),
        ("write:buffer=10KiB", "every:12KiB", "write --sync every:8KiB"),
        ("pwrite:direct+buffer=8KiB", "every:4KiB", "write --sync every:8KiB"),
        ("uring", "commit", "nothing but one record would be in flight"),
        ("pwrite:buffer=8KiB", "commit", "leave it out"),
        ("pwrite:direct+buffer=8KiB", "commit", "write buffer=4KiB"),
        ("mmap:pretouch=8KiB", "commit", "a thread that runs ahead"),
    ] {
        let refused = fixture_of(SyncCall::ODsync, sync).open(method).err().expect(method);
        let about_mapping = method.starts_with("mmap") && refused.detail.contains("makes none");
        assert!(refused.detail.contains(wanted) || about_mapping, "{method}, {sync}: {}", refused.detail);
    }
}

/// Open the threads of a job and let each commit records until none is left; return the syncs.
fn commit(fixture: &Fixture, method: &str) -> Result<u64, CallFailure> {
    let parsed: Method = method.parse().expect(method);
    let work = fixture.job.understand().expect("words of the protocol").work;
    assert_eq!(parsed.refuses(&work, fixture.job.alignment()), None);
    let threads = open_threads(&parsed, &fixture.job, work.writes().expect("it writes"), None)?;
    let end = fixture.job.records;
    let of_thread = |mut work: Box<dyn ThreadWork>| {
        let mut done = 0;
        loop {
            match work.perform(done, 1, end)?.operations {
                0 => break,
                more => done += more,
            }
        }
        assert_eq!(work.bytes(), done * fixture.job.record_bytes);
        Ok((done, work.take_sync_durations().expect("they are measured").len()))
    };
    let ended: Result<Vec<(u64, u64)>, CallFailure> = std::thread::scope(|scope| {
        let running: Vec<_> = threads.into_iter().map(|work| scope.spawn(move || of_thread(work))).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let ended = ended?;
    assert_eq!(ended.iter().map(|(records, _)| records).sum::<u64>(), end);
    Ok(ended.iter().map(|(_, syncs)| syncs).sum())
}

#[test]
fn commits_of_every_method_and_call_are_in_the_file() {
    let all = ["pwrite", "mmap", "mmap:prealloc", "write", "pwrite:direct+buffer=4KiB"];
    for method in all {
        for call in SyncCall::ALL {
            for threads in [1, 3] {
                let mut fixture = fixture_of(*call, "commit");
                fixture.job.threads = threads;
                fixture.job.records *= 2;
                let parsed: Method = method.parse().expect(method);
                let work = fixture.job.understand().expect("words").work;
                if parsed.refuses(&work, fixture.job.alignment()).is_some() {
                    continue;
                }
                let syncs = match commit(&fixture, method) {
                    Ok(syncs) => syncs,
                    Err(failure) => {
                        assert_eq!(
                            (method, threads, failure.unavailable),
                            ("write", 3, 1),
                            "{}",
                            failure.detail
                        );
                        continue;
                    }
                };
                let (records, threads) = (fixture.job.records, u64::from(threads));
                let least = if call.is_write() || threads == 1 { records } else { records.div_ceil(threads) };
                let what =
                    format!("{method} by {call}, {threads} threads: {syncs} syncs of {records} records");
                assert!((least..=records).contains(&syncs), "{what}");
                fixture.assert_holds(records, &what);
            }
        }
    }
}

/// A device that remembers the order of events, by a clock that ticks once for each.
#[derive(Default)]
struct Device {
    clock: AtomicU64,
    /// Record and time of each write.
    writes: Mutex<Vec<(u64, u64)>>,
    /// Beginning, end and range of each sync.
    syncs: Mutex<Vec<(u64, u64, std::ops::Range<u64>)>>,
    under_way: AtomicU64,
}

const SIZE: u64 = 10;

impl Device {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

impl SharedSink for std::sync::Arc<Device> {
    fn put(&self, _: &[u8], offset: u64) -> Result<(), CallFailure> {
        self.writes.lock().expect("writes").push((offset / SIZE, self.tick()));
        Ok(())
    }

    fn sync(&self, range: std::ops::Range<u64>) -> Result<(), CallFailure> {
        assert_eq!(self.under_way.fetch_add(1, Ordering::SeqCst), 0, "one sync at a time");
        let begun = self.tick();
        std::thread::yield_now();
        self.syncs.lock().expect("syncs").push((begun, self.tick(), range));
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn a_record_is_covered_by_a_sync_that_began_after_its_write() {
    const SLOTS: u64 = 7;
    let mut fixture = Fixture::new(&std::env::temp_dir(), SIZE, SIZE * SLOTS, 40);
    fixture.job.threads = 4;
    let device = std::sync::Arc::new(Device::default());
    let group = Group::new(Box::new(device.clone()), &fixture.job, false);
    let committers = committers(group, &fixture.job, || Ok(None));
    let end = fixture.job.records;
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for mut work in committers.map_err(|failure| failure.detail).expect("committers") {
            let (device, done) = (&device, &done);
            scope.spawn(move || {
                while work.perform(0, 1, end).expect("no failure").operations > 0 {
                    done.lock().expect("done").push(device.tick());
                }
            });
        }
    });
    let (writes, syncs) = (device.writes.lock().expect("writes"), device.syncs.lock().expect("syncs"));
    let mut done = done.into_inner().expect("done");
    assert_eq!((writes.len() as u64, done.len() as u64), (end, end));
    // Commits are reported in any order, so the n-th of them comes after n writes are covered.
    done.sort_unstable();
    let mut covered: Vec<u64> = writes
        .iter()
        .map(|(slot, at)| {
            let by = syncs.iter().find(|(begun, _, range)| {
                begun > at && range.start <= slot * SIZE && (slot + 1) * SIZE <= range.end
            });
            by.map_or(u64::MAX, |(_, ended, _)| *ended)
        })
        .collect();
    covered.sort_unstable();
    assert!(
        covered.iter().zip(&done).all(|(covered, done)| covered < done),
        "a commit was reported too early"
    );
    // Each pass is complete before the next one begins.
    for pass in writes.chunks(SLOTS as usize) {
        let mut slots: Vec<u64> = pass.iter().map(|(slot, _)| *slot).collect();
        slots.sort_unstable();
        assert!(slots.into_iter().eq(0..SLOTS), "{pass:?}");
    }
}

/// A device that fails after some syncs.
struct Failing(AtomicU64);

impl SharedSink for Failing {
    fn put(&self, _: &[u8], _: u64) -> Result<(), CallFailure> {
        Ok(())
    }

    fn sync(&self, _: std::ops::Range<u64>) -> Result<(), CallFailure> {
        match self.0.fetch_sub(1, Ordering::SeqCst) {
            0 => Err(impossible("ring", "the device is gone".to_string())),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_failed_sync_ends_every_thread() {
    let mut fixture = Fixture::new(&std::env::temp_dir(), SIZE, SIZE * 3, 100);
    fixture.job.threads = 3;
    let group = Group::new(Box::new(Failing(AtomicU64::new(5))), &fixture.job, false);
    let committers = committers(group, &fixture.job, || Ok(None)).map_err(|failure| failure.detail);
    std::thread::scope(|scope| {
        for mut work in committers.expect("committers") {
            scope.spawn(move || {
                let failure = loop {
                    if let Err(failure) = work.perform(0, 1, 300) {
                        break failure;
                    }
                };
                assert_eq!(failure.detail, "the device is gone");
            });
        }
    });
}
