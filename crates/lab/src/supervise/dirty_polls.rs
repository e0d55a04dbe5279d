//! Polls of the dirty bytes of a file while a worker writes it: one that syncs only at the end
//! shows there.
//!
//! A poll is a cachestat(2), which walks the page cache of the file without a lock. Polls are few,
//! so that they take less than about a hundredth of a CPU.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use pagewise_host::WrittenFile;
use pagewise_model::sample::Written;

/// Time before the first poll, and the shortest one between two.
const FIRST: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_millis(10);
/// Pause after a poll, as a multiple of the time that it took.
const PAUSE_OF_POLL: u32 = 100;

/// Findings of polls so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirtyPolls {
    count: u64,
    most_bytes: Option<u64>,
}

impl DirtyPolls {
    fn add(&mut self, dirty_bytes: Option<u64>) {
        self.count += u64::from(dirty_bytes.is_some());
        self.most_bytes = self.most_bytes.max(dirty_bytes);
    }

    /// Put them into the evidence of a written file.
    pub fn put_into(self, written: &mut Written) {
        (written.polls, written.dirty_most_bytes) = (self.count, self.most_bytes);
    }
}

/// Run `work`, and poll `file` meanwhile.
pub fn during<T>(file: &WrittenFile, work: impl FnOnce() -> T) -> (T, DirtyPolls) {
    std::thread::scope(|scope| {
        let (over, ends): (Sender<()>, Receiver<()>) = channel();
        let polling: ScopedJoinHandle<'_, DirtyPolls> = scope.spawn(move || {
            let mut polls = DirtyPolls::default();
            let mut pause = FIRST;
            while ends.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let begun = Instant::now();
                polls.add(file.dirty_bytes());
                pause = PAUSE.max(begun.elapsed() * PAUSE_OF_POLL);
            }
            polls
        });
        let done = work();
        drop(over);
        (done, polling.join().expect("a poll does not panic"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_was_seen_is_kept() {
        let mut polls = DirtyPolls::default();
        [None, Some(5), Some(9), None, Some(2)].into_iter().for_each(|seen| polls.add(seen));
        let mut written = Written::default();
        polls.put_into(&mut written);
        assert_eq!((written.polls, written.dirty_most_bytes), (3, Some(9)));
    }
}
