//! Work that does nothing, on a clock that only this work moves.

use std::sync::atomic::{AtomicU64, Ordering};

use pagewise_protocol::CallFailure;

use super::Clock;
use crate::operations::{Done, Operations};

/// The time, which stands still but for [`pass`](Self::pass).
#[derive(Debug, Default)]
pub(super) struct Time(AtomicU64);

impl Time {
    pub(super) fn pass(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::Relaxed);
    }

    /// A clock of which each reading takes some time too.
    pub(super) fn clock_of(&self, reading_ns: u64) -> impl Clock {
        move || {
            self.pass(reading_ns);
            self.0.load(Ordering::Relaxed)
        }
    }

    /// A clock whose readings take no time.
    pub(super) fn clock(&self) -> impl Clock {
        self.clock_of(0)
    }
}

/// Operations of known durations; records its calls.
pub(super) struct FakeWork<'a> {
    pub(super) time: &'a Time,
    pub(super) op_ns: u64,
    /// Positions of slow operations, and by how many ns they are slower.
    pub(super) slow: Vec<(u64, u64)>,
    pub(super) asked: Vec<u64>,
    pub(super) done: u64,
    pub(super) finished: u64,
    /// The position from which on nothing may be done, as it was said last.
    pub(super) end: u64,
}

impl<'a> FakeWork<'a> {
    pub(super) fn new(time: &'a Time) -> Self {
        Self { time, op_ns: 1, slow: Vec::new(), asked: Vec::new(), done: 0, finished: 0, end: 0 }
    }
}

impl Operations for FakeWork<'_> {
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        assert_eq!(position, self.done, "operations are done in order");
        let operations = wanted.min(end - position);
        self.asked.push(wanted);
        self.end = end;
        self.done += operations;
        self.time.pass(operations * self.op_ns);
        let slow = self.slow.iter().filter(|(slow, _)| (position..position + operations).contains(slow));
        slow.for_each(|(_, longer_ns)| self.time.pass(*longer_ns));
        Ok(Done { operations, checksum: 1000 * operations })
    }

    fn finish(&mut self) -> Result<u64, CallFailure> {
        self.finished += 1;
        Ok(7)
    }

    fn bytes(&self) -> u64 {
        self.done * 10
    }
}
