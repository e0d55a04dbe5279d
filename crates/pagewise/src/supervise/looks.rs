//! Looks at the dirty bytes of a file while a worker writes it: one that syncs only at the end
//! shows there.
//!
//! A look is a cachestat(2), which walks the page cache of the file without a lock. Looks are few,
//! so that they take less than about a hundredth of a CPU.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use pagewise_host::WrittenFile;
use pagewise_model::sample::Written;

/// Time before the first look, and the shortest one between two.
const FIRST: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_millis(10);
/// Pause after a look, as a multiple of the time that it took.
const PAUSE_OF_LOOK: u32 = 100;

/// Findings of looks so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirtyLooks {
    count: u64,
    most_bytes: Option<u64>,
}

impl DirtyLooks {
    fn add(&mut self, dirty_bytes: Option<u64>) {
        self.count += u64::from(dirty_bytes.is_some());
        self.most_bytes = self.most_bytes.max(dirty_bytes);
    }

    /// Put them into the evidence of a written file.
    pub fn put_into(self, written: &mut Written) {
        (written.looks, written.dirty_most_bytes) = (self.count, self.most_bytes);
    }
}

/// Run `work`, and look at `file` meanwhile.
pub fn during<T>(file: &WrittenFile, work: impl FnOnce() -> T) -> (T, DirtyLooks) {
    std::thread::scope(|scope| {
        let (over, ends): (Sender<()>, Receiver<()>) = channel();
        let looking: ScopedJoinHandle<'_, DirtyLooks> = scope.spawn(move || {
            let mut looks = DirtyLooks::default();
            let mut pause = FIRST;
            while ends.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let begun = Instant::now();
                looks.add(file.dirty_bytes());
                pause = PAUSE.max(begun.elapsed() * PAUSE_OF_LOOK);
            }
            looks
        });
        let done = work();
        drop(over);
        (done, looking.join().expect("a look does not panic"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_was_seen_is_kept() {
        let mut looks = DirtyLooks::default();
        [None, Some(5), Some(9), None, Some(2)].into_iter().for_each(|seen| looks.add(seen));
        let mut written = Written::default();
        looks.put_into(&mut written);
        assert_eq!((written.looks, written.dirty_most_bytes), (3, Some(9)));
    }
}
