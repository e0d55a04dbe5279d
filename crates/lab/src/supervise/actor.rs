//! An actor: a second worker process, at work beside the measured one from before its region until
//! after it.
//!
//! An actor gets one request after the other, each of some 50 ms, from a thread of the supervisor.
//! So its answers say in which part of the region it did what, and any worker of the protocol can
//! be one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pagewise_host::process;
use pagewise_model::{Actor, ActorEvidence, ActorWindow, Cell, Failure};
use pagewise_protocol::{Conversation, ConversationError, EXIT_PATIENCE, Go, Job, Wait};

use super::actor_task::{ActorRecords, ActorTask, KeptAccesses, absent};
use super::conditions::ConditionGuard;
use super::files::{Input, slowest};
use super::program::Program;
use super::sample_round::SampleRound;

/// Length of a request, about.
const WINDOW_NS: u64 = 50_000_000;
/// Time at work before a region in which it has nothing to fill.
const PACE: Duration = Duration::from_millis(100);
/// Maximum time in which it fills the cache.
const FILLING: Duration = Duration::from_secs(40);
/// Interval of looks at its progress.
const LOOK: Duration = Duration::from_millis(5);

/// An actor whose worker is ready.
pub struct ReadyActor {
    worker: Conversation,
    task: ActorTask,
    window_ns: u64,
    patience: Duration,
}

/// An actor at work, in a thread of its own; it ends with the value.
pub struct ActorAtWork {
    pid: u32,
    since: Instant,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<AskedActor>>,
}

/// The end of a thread that has asked an actor.
struct AskedActor {
    ended: Result<(), ConversationError>,
    records: Option<ActorRecords>,
}

/// An actor that has ended.
pub struct EndedActor {
    /// Activity of the actor.
    pub evidence: ActorEvidence,
    /// The reason that it ended before it was asked to.
    pub failure: Option<Failure>,
    /// Records of the actor, which are not read back yet.
    pub records: Option<ActorRecords>,
}

/// State of the thread.
#[derive(Default)]
struct Shared {
    /// The last request has been sent.
    ends: AtomicBool,
    /// No answer is waited for any more.
    stops: AtomicBool,
    answered: Mutex<Vec<Answered>>,
}

/// A request that was answered.
#[derive(Clone, Copy)]
struct Answered {
    began: Instant,
    window: ActorWindow,
}

/// State of an actor at a moment around the region.
pub struct ActorMoment {
    device_read_bytes: Option<u64>,
    is_in_group: Option<bool>,
}

impl ReadyActor {
    /// Start the worker of `actor`, which is at work as `cell`, on its file, and have it open the
    /// file.
    pub fn start(
        (actor, cell): (&Actor, &Cell),
        (input, kept): (&Input, &KeptAccesses),
        program: &Program,
        guard: &ConditionGuard,
        round: SampleRound<'_>,
        direct_alignment: u64,
    ) -> Result<Self, ConversationError> {
        let task = ActorTask::of(actor, cell, input, round, kept)
            .map_err(|error| ConversationError::lack(format!("{error:#}")))?;
        let mut worker = program.start(|command| guard.prepare(command))?;
        let hello = worker.greet(round.wait)?;
        let mut job = Job {
            path: input.worker_path(),
            direct_flag: rustix::fs::OFlags::DIRECT.bits(),
            direct_alignment,
            ..Job::of(&cell.method, &cell.conditions, round.page_bytes)
        };
        task.describe(&mut job);
        if let Some(detail) = hello.refuses(&job, &cell.method) {
            return Err(ConversationError::unavailable(detail));
        }
        worker.open(&job, round.wait)?;
        worker.ready(round.wait)?;
        // What it is asked for at once, it may be late with.
        let patience = round.wait.patience + slowest(actor.op_bytes.0);
        Ok(Self { worker, task, window_ns: window_ns(actor), patience })
    }

    /// Begin its work.
    pub fn begin(self) -> ActorAtWork {
        let (pid, shared) = (self.worker.pid(), Arc::<Shared>::default());
        let of_thread = shared.clone();
        let thread = thread::spawn(move || self.work(&of_thread));
        ActorAtWork { pid, since: Instant::now(), shared, thread: Some(thread) }
    }

    fn work(mut self, shared: &Shared) -> AskedActor {
        let ended = self.converse(shared).and_then(|()| self.worker.end(EXIT_PATIENCE));
        AskedActor { ended, records: self.task.into_records() }
    }

    fn converse(&mut self, shared: &Shared) -> Result<(), ConversationError> {
        let patience = self.patience + 2 * Duration::from_nanos(self.window_ns);
        let mut first_operation = 0;
        while !shared.ends.load(Ordering::Acquire) {
            let touch_at = self.task.touch_at();
            let go = Go { first_operation, sample_ns: self.window_ns, latency_ns: 0, touch_at };
            let began = Instant::now();
            let reply = self.worker.go(go, Wait { patience, stop: &shared.stops })?;
            let wall_ns = began.elapsed().as_nanos() as u64;
            let window = ActorWindow {
                began_ns: 0,
                wall_ns,
                elapsed_ns: reply.elapsed_ns,
                operations: reply.operations,
                bytes: reply.bytes,
                is_right: self.task.note(&reply, first_operation),
            };
            first_operation = first_operation.saturating_add(reply.operations);
            shared.answered().push(Answered { began, window });
        }
        self.worker.close(Wait { patience, stop: &shared.stops })?;
        Ok(())
    }
}

/// Length of its requests: whole intervals of its operations, since the first of each is due at
/// once.
fn window_ns(actor: &Actor) -> u64 {
    let Some(rate) = actor.rate else { return WINDOW_NS };
    let operations = (u128::from(rate.per_second()) * u128::from(WINDOW_NS) / 1_000_000_000).max(1);
    (operations * 1_000_000_000 / u128::from(rate.per_second())) as u64
}

impl Shared {
    fn answered(&self) -> MutexGuard<'_, Vec<Answered>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActorAtWork {
    /// True if it has been at its pace for a while and has done so many bytes, or never will have.
    pub fn is_at_pace(&self, bytes: u64) -> bool {
        let since = self.since.elapsed();
        let has_ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        has_ended || since >= PACE && (self.bytes() >= bytes || since >= FILLING)
    }

    /// Wait until it [`ActorAtWork::is_at_pace`].
    pub fn wait_for_pace(&self, bytes: u64, stop: &AtomicBool) {
        while !self.is_at_pace(bytes) && !stop.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
    }

    fn bytes(&self) -> u64 {
        self.shared.answered().iter().map(|answered| answered.window.bytes).sum()
    }

    /// State of the actor now, beside the process `worker`.
    pub fn moment(&self, worker: u32) -> ActorMoment {
        let groups = process::cgroups(self.pid).zip(process::cgroups(worker));
        ActorMoment {
            device_read_bytes: process::totals(self.pid).device_read_bytes,
            is_in_group: groups.map(|(own, of_worker)| own == of_worker),
        }
    }

    /// End its work, which lasts until after the region that was from `go_at` on and `wall_ns`
    /// long, between these moments.
    pub fn end(
        mut self,
        go_at: Instant,
        wall_ns: u64,
        (before, after): (&ActorMoment, &ActorMoment),
    ) -> EndedActor {
        self.shared.ends.store(true, Ordering::Release);
        let ended = self.thread.take().map(JoinHandle::join);
        let (ended, records) = match ended {
            Some(Ok(AskedActor { ended, records })) => (ended.err().and_then(detail_of), records),
            Some(Err(_)) => (Some("the thread that asks it has panicked".to_string()), None),
            None => (None, None),
        };
        let answered = self.shared.answered();
        let signed = |began: Instant| match began.checked_duration_since(go_at) {
            Some(later) => later.as_nanos() as i64,
            None => -(go_at.duration_since(began).as_nanos() as i64),
        };
        // With what a short region needs of the time before it.
        let of_region = |window: &ActorWindow| {
            window.began_ns < wall_ns as i64
                && window.began_ns.saturating_add(window.wall_ns as i64)
                    > -(ActorEvidence::SHORTEST_NS as i64)
        };
        let (mut bytes_before, mut windows) = (0, Vec::new());
        for Answered { began, window } in answered.iter() {
            let window = ActorWindow { began_ns: signed(*began), ..*window };
            if of_region(&window) {
                windows.push(window);
            }
            if window.began_ns.saturating_add(window.wall_ns as i64) <= 0 {
                bytes_before += window.bytes;
            }
        }
        let is_in_group = before.is_in_group.zip(after.is_in_group).map(|(before, after)| before && after);
        let evidence = ActorEvidence {
            bytes_before,
            windows,
            device_read_bytes: after
                .device_read_bytes
                .zip(before.device_read_bytes)
                .and_then(|(after, before)| after.checked_sub(before)),
            is_in_group,
            writes: None,
        };
        EndedActor { evidence, failure: ended.map(absent), records }
    }
}

/// The reason that a conversation ended, unless the user stopped it.
fn detail_of(error: ConversationError) -> Option<String> {
    match error {
        ConversationError::Broken(failure) => Some(failure.detail),
        ConversationError::Call(failure) => Some(failure.detail),
        ConversationError::Stopped => None,
    }
}

impl Drop for ActorAtWork {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        self.shared.stops.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
