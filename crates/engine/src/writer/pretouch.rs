//! `pretouch=`: a thread that makes pages present and writable a little ahead of the writer, so
//! that stores take no page faults. MADV_POPULATE_WRITE (Linux 5.14) does that without changing the
//! content of a page, whichever thread is faster.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use pagewise_protocol::CallFailure;
use pagewise_sys::{Advice, Advisor, AnonymousMemory, WritableMapping};

use super::WriteTarget;
use super::setup::populate_failure;
use crate::failure::{failed, refused};

/// Maximum size of one call: a writer that stops waits at most for one call.
const PIECE_BYTES: usize = 256 << 10;
/// The thread is notified of the writer's position at each of this many parts of the distance
/// ahead.
const STRIDES: u64 = 4;

/// Cursor value: nothing was written yet.
const NOT_BEGUN: u64 = u64::MAX;
/// Cursor value: the work is over.
const OVER: u64 = u64::MAX - 1;

/// State shared by the writer and the thread.
struct Shared {
    /// Position of the writer.
    cursor: AtomicU64,
    failure: Mutex<Option<CallFailure>>,
}

/// The thread, as seen by the writer. It waits for the first append and ends when this is dropped.
pub(super) struct Pretoucher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    stride: u64,
    /// Position of the writer at the last notification.
    notified: u64,
    over: bool,
}

impl Pretoucher {
    /// Start a thread that runs at most `ahead` bytes, rounded up to whole pages, ahead of a
    /// writer.
    pub(super) fn start(
        mapping: &WritableMapping,
        target: &WriteTarget,
        ahead: usize,
    ) -> Result<Self, CallFailure> {
        try_out(&target.path)?;
        let shared = Arc::new(Shared { cursor: AtomicU64::new(NOT_BEGUN), failure: Mutex::new(None) });
        let runner = Runner {
            advisor: mapping.advisor(),
            ring_bytes: target.ring_bytes as usize,
            ahead,
            path: target.path.clone(),
            shared: shared.clone(),
        };
        let thread = thread::Builder::new()
            .name("pretouch".to_string())
            .spawn(move || runner.run())
            .map_err(|error| failed("clone", error, &target.path, 0))?;
        let stride = (ahead as u64 / STRIDES).max(1);
        Ok(Self { shared, thread: Some(thread), stride, notified: 0, over: false })
    }

    /// Bytes that the writer may write before it calls [`Pretoucher::follow`].
    pub(super) fn stride(&self) -> u64 {
        if self.over { u64::MAX } else { self.stride }
    }

    /// Start the thread's work, if not yet started.
    pub(super) fn begin(&self, cursor: u64) {
        if self.shared.cursor.load(Ordering::Relaxed) == NOT_BEGUN {
            self.notify(cursor);
        }
    }

    /// Notify the thread of the writer's position after each stride; in the second pass over the
    /// ring all pages are present.
    pub(super) fn follow(&mut self, cursor: u64) {
        if self.over {
            return;
        }
        if cursor == 0 {
            self.over = true;
            self.notify(OVER);
        } else if cursor - self.notified >= self.stride {
            self.notified = cursor;
            self.notify(cursor);
        }
    }

    /// Failure of the thread, if any.
    pub(super) fn failure(&self) -> Result<(), CallFailure> {
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone().map_or(Ok(()), Err)
    }

    fn notify(&self, cursor: u64) {
        self.shared.cursor.store(cursor, Ordering::Release);
        if let Some(thread) = &self.thread {
            // Costs a system call only if the thread waits.
            thread.thread().unpark();
        }
    }
}

impl Drop for Pretoucher {
    fn drop(&mut self) {
        self.notify(OVER);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the pretouch thread panicked");
        }
    }
}

/// Try the advice on a page of memory before the clock starts: kernels before 5.14 do not support
/// it.
fn try_out(path: &str) -> Result<(), CallFailure> {
    let advice = Advice::PopulateWrite;
    AnonymousMemory::new(rustix::param::page_size())
        .and_then(|memory| memory.advise(advice))
        .map_err(|error| refused(advice.name(), error, path))
}

/// State inside the thread.
struct Runner {
    advisor: Advisor,
    ring_bytes: usize,
    ahead: usize,
    path: String,
    shared: Arc<Shared>,
}

impl Runner {
    fn run(self) {
        if let Err((offset, error)) = self.touch_ahead() {
            let failure = populate_failure(error, &self.path, offset as u64);
            *self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        }
    }

    /// Touch pages ahead of the cursor, and skip those that the writer has already passed.
    fn touch_ahead(&self) -> Result<(), (usize, io::Error)> {
        let page = rustix::param::page_size();
        let end = self.ring_bytes.next_multiple_of(page).min(self.advisor.len());
        let mut done = 0;
        while done < end {
            let cursor = match self.shared.cursor.load(Ordering::Acquire) {
                OVER => return Ok(()),
                NOT_BEGUN => {
                    thread::park();
                    continue;
                }
                cursor => cursor as usize,
            };
            let start = done.max(cursor / page * page);
            let goal = (cursor + self.ahead).next_multiple_of(page).min(end);
            if start >= goal {
                thread::park();
                continue;
            }
            done = goal.min(start + PIECE_BYTES);
            self.advisor.advise(start..done, Advice::PopulateWrite).map_err(|error| (start, error))?;
        }
        Ok(())
    }
}
