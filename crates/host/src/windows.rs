//! Windows: the pages of its mapped files that a program touches, between one moment and the next.
//!
//! A page that is in place raises no fault when it is touched, so accesses to it are not seen. At
//! the end of each window the program's threads are stopped, and the entries of its page tables for
//! read-only mappings of files are dropped: the pages stay in the page cache, and the next touch of
//! each raises a fault. Nothing is put in place around a fault meanwhile (userfaultfd(2)), and no
//! page is mapped as a part of a large one (MADV_NOHUGEPAGE).
//!
//! **Proof.** Before the entries are dropped, each page that is in place must have faulted in the
//! window. Otherwise it was touched without being seen, and the window is not proven. A page that
//! the program has changed is its own, and dropping it would lose what it wrote: its mapping has no
//! windows from then on.
//!
//! The program is traced (ptrace(2)) and runs errands for its tracer
//! ([`pagewise_sys::tracee::Errand`]). Threads within a call are left alone: none is interrupted,
//! and no call returns early for it.

mod calls;
mod spaces;

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use pagewise_model::trace::WindowTally;
use pagewise_sys::tracee::{self, CallMade, Errand, Stop, ThreadChange, Unable};
use rustix::process::Pid;
use signal_hook::consts::SIGCHLD;

use crate::watch::touches::Range;
use crate::watch::{Watch, wait_for};
use spaces::{Owner, Spaces};

/// Threads that run are waited for so long at a time.
const WAIT: Duration = Duration::from_millis(1);

/// A program whose touches of mapped files are seen.
#[derive(Debug)]
pub struct Windows {
    root: Pid,
    /// End of the program, as wait(2) has it.
    ended: Option<i32>,
    threads: HashMap<i32, Thread>,
    /// Threads that stopped before their start was reported.
    early: HashMap<i32, Stop>,
    spaces: Spaces,
    /// Touches of a window.
    most: u64,
    /// Memories whose window has not ended yet: all of their threads were in calls, where they
    /// touch nothing.
    late: Vec<usize>,
    /// True if threads are let go as they stop.
    letting_go: bool,
    /// Has bytes when a thread has changed.
    changes: UnixStream,
    tally: WindowTally,
}

/// A traced thread.
#[derive(Clone, Debug)]
struct Thread {
    process: i32,
    space: usize,
    /// Reason that the thread is stopped and waits to go on.
    stopped: Option<Stop>,
    /// The call that it is in.
    call: Option<CallMade>,
    /// True if the thread waits for the signal that continues its process.
    listens: bool,
    /// True if the thread's errand has met a signal that stops its process.
    met_group_stop: bool,
    /// Mappings that the call that it is in unmaps.
    unmapped: Vec<(u64, Range)>,
}

impl Thread {
    fn new(process: i32, space: usize) -> Self {
        Self {
            process,
            space,
            stopped: None,
            call: None,
            listens: false,
            met_group_stop: false,
            unmapped: Vec::new(),
        }
    }

    /// True if it may touch memory at any moment.
    fn runs(&self) -> bool {
        self.stopped.is_none() && self.call.is_none() && !self.listens
    }
}

/// The reason for which there can be no windows here; `None` if there can.
pub fn refusal() -> Option<String> {
    spaces::refusal()
}

impl Windows {
    /// Begin with a process that has not executed its program yet, and that this thread traces from
    /// now on. A window ends after `most` touches.
    pub fn begin(process: Pid, most: u64, watch: &mut Watch) -> Result<Self, String> {
        if let Some(reason) = refusal() {
            return Err(reason);
        }
        let (changes, signalled) = UnixStream::pair().map_err(|error| error.to_string())?;
        changes.set_nonblocking(true).map_err(|error| error.to_string())?;
        signal_hook::low_level::pipe::register(SIGCHLD, signalled).map_err(|error| error.to_string())?;
        tracee::seize(process).map_err(|error| {
            format!(
                "the command cannot be traced (ptrace: {error}): another tracer has it, this container forbids it, or the setting \
                 kernel.yama.ptrace_scope is 2 or more"
            )
        })?;
        let mut spaces = Spaces::default();
        let number = process.as_raw_nonzero().get();
        let space = spaces.add(watch.touches(), None);
        watch.touches().set_space(number as u32, space);
        Ok(Self {
            root: process,
            ended: None,
            threads: HashMap::from([(number, Thread::new(number, space))]),
            early: HashMap::new(),
            spaces,
            most,
            late: Vec::new(),
            letting_go: false,
            changes,
            tally: WindowTally { most_touches: most, ..WindowTally::default() },
        })
    }

    /// Wait until a thread stops or something is recorded, and let what has stopped go on; how the
    /// program ended, if it has.
    pub fn step(&mut self, watch: &mut Watch, timeout: Duration) -> io::Result<Option<i32>> {
        self.wait(watch, timeout)?;
        self.collect()?;
        watch.look();
        let is_late = |space: &usize| self.errand_thread(*space).is_some();
        let is_due = watch.touches().faults() >= self.most || self.late.iter().any(is_late);
        if is_due && !self.letting_go {
            self.end_window(watch)?;
        }
        self.handle(watch)?;
        Ok(self.ended)
    }

    /// End tracing: each thread is let go when it stops, or now if it runs.
    pub fn let_go(&mut self) -> io::Result<()> {
        self.letting_go = true;
        for (number, thread) in &self.threads {
            if thread.runs() {
                ignore_ended(tracee::interrupt(pid(*number)))?;
            }
        }
        Ok(())
    }

    /// The last window: what is in place is compared, in memories whose threads are all in calls,
    /// too.
    pub fn end(&mut self, watch: &mut Watch) -> io::Result<()> {
        self.end_window(watch)?;
        for space in std::mem::take(&mut self.late) {
            let thread = self.threads.iter().find(|(_, thread)| thread.space == space);
            if let Some(number) = thread.map(|(number, _)| *number) {
                self.prove(number, 0, u64::MAX, watch);
            }
        }
        if watch.touches().faults() > 0 || self.spaces.is_unproven() {
            self.count(watch);
        }
        Ok(())
    }

    /// Number of windows, and of those that are proven.
    pub fn tally(&self) -> WindowTally {
        let (left_out, unseen_pages) = (self.spaces.left_out(), self.spaces.unseen_pages());
        WindowTally { left_out, unseen_pages, ..self.tally.clone() }
    }

    /// Memories that have ended without a look at what was in place, as of a process that was
    /// killed.
    fn bury(&mut self, watch: &mut Watch) {
        for space in self.spaces.with_ranges(watch.touches()) {
            if !self.threads.values().any(|thread| thread.space == space) {
                self.spaces.ended_unseen(space, watch.touches());
            }
        }
    }

    fn wait(&mut self, watch: &Watch, timeout: Duration) -> io::Result<()> {
        wait_for(self.changes.as_fd(), watch.ring_descriptors(), timeout)?;
        // Before the threads are looked at: what changes later leaves a new byte.
        let mut bytes = [0; 64];
        while matches!((&self.changes).read(&mut bytes), Ok(count) if count == bytes.len()) {}
        Ok(())
    }

    /// Note which threads have stopped or ended.
    fn collect(&mut self) -> io::Result<()> {
        loop {
            match tracee::next_change() {
                Ok(Some((thread, change))) => self.note(thread, change),
                Ok(None) => return Ok(()),
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::CHILD.raw_os_error()) => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn note(&mut self, thread: Pid, change: ThreadChange) {
        let number = thread.as_raw_nonzero().get();
        match (change, self.threads.get_mut(&number)) {
            (ThreadChange::Ended(status), _) => {
                self.threads.remove(&number);
                if thread == self.root {
                    self.ended = Some(status);
                }
            }
            (ThreadChange::Stopped(stop), Some(known)) => known.stopped = Some(stop),
            (ThreadChange::Stopped(Stop::Executed(_)), None) => {
                // A thread that is not the first of its process executes a program under the number
                // of the first one.
                let stopped = Some(Stop::Executed(number));
                self.threads.insert(number, Thread { stopped, ..Thread::new(number, 0) });
            }
            (ThreadChange::Stopped(stop), None) => {
                self.early.insert(number, stop);
            }
        }
    }

    /// Let each thread that has stopped go on.
    fn handle(&mut self, watch: &mut Watch) -> io::Result<()> {
        loop {
            let waiting = self.threads.iter().find(|(_, thread)| thread.stopped.is_some());
            let Some((number, stop)) =
                waiting.and_then(|(number, thread)| thread.stopped.map(|stop| (*number, stop)))
            else {
                return Ok(());
            };
            ignore_ended(self.handle_stop(number, stop, watch))?;
            self.go_on(number, stop)?;
        }
    }

    fn handle_stop(&mut self, number: i32, stop: Stop, watch: &mut Watch) -> io::Result<()> {
        match stop {
            Stop::Call(call) => self.about_to_call(number, call, watch),
            Stop::Returned(result) => {
                let call = self.threads.get_mut(&number).and_then(|thread| thread.call.take());
                match call {
                    Some(call) => self.returned(number, &call, result, watch),
                    None => Ok(()),
                }
            }
            Stop::Began(child) => {
                self.began(number, child, watch);
                Ok(())
            }
            Stop::Executed(_) => {
                self.executed(number, watch);
                Ok(())
            }
            Stop::Signal(signal) => {
                self.about_to_end(number, signal, watch);
                Ok(())
            }
            Stop::Interrupted if self.spaces.is_unregistered(self.space_of(number)) => {
                let owner = self.owner(number);
                self.spaces.register_all(&owner, watch.touches());
                self.refresh(number);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn go_on(&mut self, number: i32, stop: Stop) -> io::Result<()> {
        let letting_go = self.letting_go;
        let Some(thread) = self.threads.get_mut(&number) else { return Ok(()) };
        thread.stopped = None;
        thread.listens = stop == Stop::GroupStop || std::mem::take(&mut thread.met_group_stop);
        let listens = thread.listens;
        let signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
        if let Stop::Call(call) = stop {
            thread.call = Some(call);
        }
        let thread = pid(number);
        if letting_go {
            self.threads.remove(&number);
            return ignore_ended(tracee::detach(thread, signal));
        }
        if listens {
            return ignore_ended(tracee::stay_stopped(thread));
        }
        ignore_ended(tracee::resume(thread, signal))
    }

    /// A thread has started another, or a process.
    fn began(&mut self, number: i32, child: i32, watch: &mut Watch) {
        let Some(parent) = self.threads.get(&number).cloned() else { return };
        let shares = parent.call.is_some_and(|call| calls::shares_memory(pid(number), &call));
        let process = spaces::process_of(child).unwrap_or(child);
        let space = if shares { parent.space } else { self.spaces.add(watch.touches(), Some(parent.space)) };
        watch.touches().set_space(process as u32, space);
        let stopped = self.early.remove(&child);
        self.threads.insert(child, Thread { stopped, ..Thread::new(process, space) });
    }

    fn executed(&mut self, number: i32, watch: &mut Watch) {
        let before = self.space_of(number);
        // Its other threads are gone.
        self.threads.retain(|other, thread| *other == number || thread.process != number);
        if !self.threads.iter().any(|(other, thread)| *other != number && thread.space == before) {
            // Its end was looked at before the call.
            watch.touches().space(before).remove(0, u64::MAX);
        }
        let space = self.spaces.add(watch.touches(), None);
        watch.touches().set_space(number as u32, space);
        if let Some(thread) = self.threads.get_mut(&number) {
            *thread = Thread { stopped: thread.stopped, ..Thread::new(number, space) };
        }
        self.spaces.prepare(space, pid(number));
    }

    /// End a window: stop what runs, look at what is in place, and drop it.
    fn end_window(&mut self, watch: &mut Watch) -> io::Result<()> {
        self.bury(watch);
        let mut waited = Vec::new();
        for (number, thread) in &self.threads {
            if thread.runs() && watch.touches().space(thread.space).has_ranges() {
                ignore_ended(tracee::interrupt(pid(*number)))?;
                waited.push(*number);
            }
        }
        while waited.iter().any(|number| self.threads.get(number).is_some_and(Thread::runs)) {
            self.collect()?;
            if waited.iter().any(|number| self.threads.get(number).is_some_and(Thread::runs)) {
                self.wait(watch, WAIT)?;
            }
        }
        // Everything that the program has touched until now is recorded.
        watch.look();
        for number in waited {
            if let Some(Thread { stopped: Some(Stop::Call(_)), space, .. }) = self.threads.get(&number) {
                self.take_back(number, *space);
            }
        }
        self.note_returns(watch)?;
        let all = self.spaces.with_ranges(watch.touches());
        self.late.clear();
        for space in &all {
            let Some(number) = self.errand_thread(*space) else {
                self.late.push(*space);
                continue;
            };
            let owner = self.owner(number);
            if !self.spaces.end_window(&owner, watch.touches()) {
                self.late.push(*space);
            }
            self.refresh(number);
        }
        if self.late.len() < all.len() {
            self.count(watch);
        }
        Ok(())
    }

    /// Calls that have returned have changed mappings already.
    fn note_returns(&mut self, watch: &mut Watch) -> io::Result<()> {
        let returned = |(number, thread): (&i32, &Thread)| match thread.stopped {
            Some(stop @ Stop::Returned(_)) => Some((*number, stop)),
            _ => None,
        };
        let returned: Vec<(i32, Stop)> = self.threads.iter().filter_map(returned).collect();
        returned
            .into_iter()
            .try_for_each(|(number, stop)| ignore_ended(self.handle_stop(number, stop, watch)))
    }

    fn count(&mut self, watch: &mut Watch) {
        let touches = watch.touches();
        self.tally.windows += 1;
        self.tally.proven += u64::from(!self.spaces.take_unproven());
        self.tally.touches += touches.faults();
        self.tally.longest_touches = self.tally.longest_touches.max(touches.faults());
        touches.next_window();
    }

    /// The memory of a process ends or a part of it is unmapped: what is in place there is compared
    /// now.
    fn prove(&mut self, number: i32, start: u64, end: u64, watch: &mut Watch) {
        let owner = self.owner(number);
        if watch.touches().space(owner.space).within(start, end).is_empty() {
            return;
        }
        let pages = self.spaces.in_place(&owner, start, end, watch.touches());
        watch.look();
        if !pages.all_faulted(watch.touches()) {
            // Other threads run, and a fault is recorded a moment after its page is in place.
            std::thread::sleep(WAIT);
            watch.look();
            self.spaces.compare(&pages, watch.touches());
        }
    }

    /// A call that would have been made is made again later, since the interruption might end it
    /// early.
    fn take_back(&mut self, number: i32, space: usize) {
        let Some(address) = self.spaces.errand_address(space) else { return };
        let stopped = match Errand::take_back_call(pid(number), address) {
            Ok(()) => Some(Stop::Interrupted),
            Err(Unable::Ended(status)) => return self.note_end(number, status),
            Err(_) => return,
        };
        if let Some(thread) = self.threads.get_mut(&number) {
            thread.stopped = stopped;
        }
    }

    fn note_end(&mut self, number: i32, status: Option<i32>) {
        match status {
            Some(status) => self.note(pid(number), ThreadChange::Ended(status)),
            // wait(2) will report it.
            None => {
                if let Some(thread) = self.threads.get_mut(&number) {
                    thread.stopped = None;
                }
            }
        }
    }

    /// A thread of this memory that can make calls for its tracer: one that was interrupted rather
    /// than one in a call.
    fn errand_thread(&self, space: usize) -> Option<i32> {
        let of_space = |wanted: fn(Stop) -> bool| {
            let mut threads = self.threads.iter();
            let found =
                threads.find(|(_, thread)| thread.space == space && thread.stopped.is_some_and(wanted));
            found.map(|(number, _)| *number)
        };
        of_space(|stop| stop == Stop::Interrupted)
            .or_else(|| of_space(|stop| matches!(stop, Stop::Returned(_))))
    }

    fn space_of(&self, number: i32) -> usize {
        self.threads.get(&number).map_or(0, |thread| thread.space)
    }

    fn owner(&self, number: i32) -> Owner {
        let (space, process) =
            self.threads.get(&number).map_or((0, number), |thread| (thread.space, thread.process));
        Owner { thread: pid(number), process: pid(process), space }
    }

    /// An errand may have met the end of its thread, or a stop of its process by a signal.
    fn refresh(&mut self, number: i32) {
        match self.spaces.take_met() {
            Some(spaces::Met::Ended(status)) => self.note_end(number, status),
            Some(spaces::Met::GroupStop) => {
                if let Some(thread) = self.threads.get_mut(&number) {
                    thread.met_group_stop = true;
                }
            }
            None => {}
        }
    }
}

/// The number of a thread that exists or existed.
fn pid(number: i32) -> Pid {
    Pid::from_raw(number).expect("the kernel numbers threads from 1")
}

/// A thread that has ended meanwhile is reported by wait(2).
fn ignore_ended(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(()),
        result => result,
    }
}
