//! Another program, watched: its faults, calls, mappings and waits as the kernel records them, in
//! the order of time.
//!
//! Nothing is changed in the program, and nothing of it is stopped. What this user or this kernel
//! does not let anybody see is [`Missing`], with the reason.

mod calls;
mod descriptors;
mod kinds;
mod observations;
mod priority;
mod rights;
pub(crate) mod touches;
mod tracefs;

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use pagewise_model::watched::{
    Call, DescriptorBinding, DiskOf, Missing, Observation, ObservationKind, Tally, WatchedFile, What,
};
use pagewise_sys::perf::{
    Event, EventOptions, EventRecord, EventRing, EventSample, EventSource, MappedRange,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};

use crate::BlockDevice;
use crate::kernel_files;
use crate::placement::Topology;
use crate::process::MapsLine;
use descriptors::Descriptors;
use kinds::{CachePoints, Kind};
use observations::{Asked, Chosen, FAULTS, sees_kernel};
use priority::RaisedPriority;
use touches::Touches;

pub use observations::missing_observations;

/// Bytes of some 60 faults.
const WINDOW_WAKEUP_BYTES: usize = 4096;

/// The subject of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A process that has not executed its program yet.
    Held(Pid),
    /// A process that runs.
    Running(Pid),
}

/// A program being watched.
#[derive(Debug)]
pub struct Watch {
    events: Vec<(Kind, Event)>,
    kinds: HashMap<u64, Kind>,
    /// Rings of opened and duplicated descriptors, which are looked at at once.
    quick_rings: Vec<EventRing>,
    rings: Vec<EventRing>,
    cache: Option<CachePoints>,
    missing: Vec<Missing>,
    recorded: HashMap<Kind, u64>,
    /// Records that a ring itself reports as lost.
    lost: u64,
    descriptors: Descriptors,
    /// Descriptors that were bound anew, and not looked at yet.
    new_bindings: Vec<Binding>,
    pending: Vec<Pending>,
    /// The instruction at which a thread is about to leave its CPU.
    leaving: HashMap<u32, Option<u64>>,
    /// When the rings were last looked at.
    looked_ns: u64,
    touches: Touches,
    /// Processes whose registers have 32 bits.
    narrow: HashSet<u32>,
    /// Until the end of the watch: what the program opens is looked at before the program closes
    /// it.
    priority: Option<RaisedPriority>,
}

/// A descriptor that a thread bound or used.
#[derive(Clone, Copy, Debug)]
struct Binding {
    time_ns: u64,
    process: u32,
    thread: u32,
    descriptor: i32,
}

impl Binding {
    fn key(self) -> descriptors::Key {
        (self.process, self.descriptor)
    }
}

/// An observation that may still have to be put in order.
#[derive(Debug)]
struct Pending {
    observation: Observation,
    /// When a descriptor was looked at: later than what it is about.
    looked_ns: Option<u64>,
}

impl Watch {
    /// Begin to watch; of a running process what is there already is reported first. With `calls`,
    /// calls are watched too where this user may. With `windows`, a wait ends after few records.
    /// The error says why nothing can be watched.
    pub fn begin(target: Target, calls: bool, windows: bool) -> Result<Self, String> {
        let (process, held) = match target {
            Target::Held(process) => (process, true),
            Target::Running(process) => (process, false),
        };
        let threads = if held { vec![process] } else { threads(process)? };
        let cpus = Topology::read()?.cpus;
        let options = |source, with_kernel, wakeup_bytes| EventOptions {
            source,
            with_kernel,
            starts_with_exec: held,
            wakeup_bytes,
        };
        let opens = |source, with_kernel| {
            let tried = Event::open(&options(source, with_kernel, 1), process, cpus[0]);
            tried.map(drop).map_err(|error| rights::refusal(&error))
        };
        let with_kernel = sees_kernel(opens)?;
        let pairs = (threads.len() * cpus.len()) as u64;
        // A tracepoint takes a while to close, so what may be had is tried with one.
        let may = |events: &[(Kind, EventSource)]| {
            opens(events[0].1, with_kernel)?;
            rights::room_for((FAULTS.len() + events.len()) as u64 * pairs)
        };
        let Chosen { events: wanted, cache, missing } =
            Chosen::of(Asked { calls, windows }, with_kernel, may);
        let mut watch = Self {
            events: Vec::new(),
            kinds: HashMap::new(),
            quick_rings: Vec::new(),
            rings: Vec::new(),
            cache,
            missing,
            recorded: HashMap::new(),
            lost: 0,
            descriptors: Descriptors::default(),
            new_bindings: Vec::new(),
            pending: Vec::new(),
            leaving: HashMap::new(),
            looked_ns: now_ns(),
            touches: Touches::new(rustix::param::page_size() as u64),
            narrow: HashSet::new(),
            priority: Some(RaisedPriority::of_this_thread()),
        };
        rights::room_for(wanted.len() as u64 * pairs)?;
        let has_quick = wanted.iter().any(|(kind, _)| kind.is_quick());
        let tried = options(EventSource::SideBand, with_kernel, 1);
        let (ring_bytes, quick_bytes) = rights::ring_bytes(&tried, process, &cpus, has_quick)?;
        for cpu in cpus {
            let (mut ring, mut quick) = (None, None);
            for thread in &threads {
                for (kind, source) in &wanted {
                    let (slot, bytes, wakeup) = match kind.is_quick() {
                        true => (&mut quick, quick_bytes, 1),
                        false if windows => (&mut ring, ring_bytes, WINDOW_WAKEUP_BYTES),
                        false => (&mut ring, ring_bytes, ring_bytes / 4),
                    };
                    match Event::open(&options(*source, with_kernel, wakeup as u32), *thread, cpu) {
                        Ok(event) => watch.add(*kind, event, slot, bytes)?,
                        // The thread has ended, or the CPU is off.
                        Err(error) if rights::is_any(&error, &[Errno::SRCH, Errno::NODEV]) => break,
                        Err(error) => return Err(rights::refusal(&error)),
                    }
                }
            }
        }
        watch.report_descriptors(process);
        if !held {
            watch.report_what_is_there(process, &threads);
            for (_, event) in &watch.events {
                event.enable().map_err(|error| rights::refusal(&error))?;
            }
        }
        Ok(watch)
    }

    /// Observations that the watch does not have; certain once it has finished.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Wait until something is recorded, the process ends, or the time is over; true if it has
    /// ended.
    pub fn wait(&self, process: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
        wait_for(process, self.ring_descriptors(), timeout)
    }

    /// Events since the last call, in the order of time. The newest ones come with the next
    /// call: those of another CPU may have to go before them.
    pub fn drain(&mut self) -> Vec<Observation> {
        let until = self.looked_ns;
        self.look();
        self.release(until)
    }

    /// End, and the rest of what has happened.
    pub fn finish(&mut self) -> io::Result<Vec<Observation>> {
        for (_, event) in &self.events {
            event.disable()?;
        }
        self.look();
        self.priority = None;
        Ok(self.release(u64::MAX))
    }

    /// Counts of each event, and of its records. Exact once it has finished.
    pub fn tallies(&self) -> io::Result<Vec<Tally>> {
        let mut tallies: Vec<Tally> = Vec::new();
        for (kind, event) in &self.events {
            let count = event.count()?;
            let tally = match tallies.iter_mut().find(|tally| tally.event == kind.text()) {
                Some(tally) => tally,
                None => {
                    let new = Tally { event: kind.text().into(), counted: 0, recorded: 0, lost: Some(0) };
                    tallies.push(new);
                    tallies.last_mut().expect("the one just added")
                }
            };
            tally.counted += count.counted;
            tally.lost = tally.lost.zip(count.lost).map(|(all, lost)| all + lost);
        }
        for (kind, recorded) in &self.recorded {
            if let Some(tally) = tallies.iter_mut().find(|tally| tally.event == kind.text()) {
                tally.recorded += recorded;
            }
        }
        Ok(tallies)
    }

    /// Records that a ring reports as lost; those of mappings and switches are among them.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Keep an event, which writes into the ring of its CPU, or has the ring made.
    fn add(
        &mut self,
        kind: Kind,
        event: Event,
        ring: &mut Option<usize>,
        bytes: usize,
    ) -> Result<(), String> {
        let rings = if kind.is_quick() { &mut self.quick_rings } else { &mut self.rings };
        match ring {
            Some(index) => event.write_into(&rings[*index]).map_err(|error| rights::refusal(&error))?,
            None => {
                *ring = Some(rings.len());
                rings.push(EventRing::map(&event, bytes).map_err(|error| rights::no_ring(&error))?);
            }
        }
        self.kinds.insert(event.id(), kind);
        self.events.push((kind, event));
        Ok(())
    }

    /// The descriptors that a process has from the beginning.
    fn report_descriptors(&mut self, process: Pid) {
        let (time_ns, number) = (now_ns(), process.as_raw_nonzero().get() as u32);
        for descriptor in kernel_files::numbered(format!("/proc/{number}/fd")) {
            let binding = Binding { time_ns, process: number, thread: number, descriptor };
            self.look_if_new(binding);
        }
    }

    /// The names and mappings of a process that runs.
    fn report_what_is_there(&mut self, process: Pid, threads: &[Pid]) {
        let (time_ns, number) = (now_ns(), process.as_raw_nonzero().get() as u32);
        let mut report = |thread: Pid, what| {
            self.report(time_ns, number, thread.as_raw_nonzero().get() as u32, what);
        };
        for thread in threads {
            report(*thread, What::Began { parent: number });
            let comm = format!("/proc/{number}/task/{}/comm", thread.as_raw_nonzero());
            if let Some(name) = kernel_files::text(comm) {
                report(*thread, What::Named { name, executed: false });
            }
        }
        let maps = kernel_files::text(format!("/proc/{number}/maps")).unwrap_or_default();
        for line in maps.lines().filter_map(MapsLine::parse) {
            let len = line.end.saturating_sub(line.start);
            let file = file_of(line.device, line.inode, line.path).map(|file| (file, line.offset));
            let what = What::Mapped { start: line.start, len, file, executable: line.executable };
            report(process, what);
        }
    }

    /// Mappings whose faults are reported as touches.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) fn touches(&mut self) -> &mut Touches {
        &mut self.touches
    }

    /// Report a call that has returned, if calls are not seen otherwise.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) fn report_unseen_call(&mut self, process: u32, thread: u32, call: Call, result: i64) {
        if Missing::of(&self.missing, ObservationKind::Calls).is_some() {
            let time_ns = now_ns();
            self.report(time_ns, process, thread, What::Called(call));
            self.report(time_ns + 1, process, thread, What::Returned(result));
        }
    }

    /// The rings, to wait for.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) fn ring_descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.quick_rings.iter().chain(&self.rings).map(EventRing::descriptor)
    }

    /// Take what the rings hold, and look at descriptors.
    pub fn look(&mut self) {
        self.looked_ns = now_ns();
        self.empty(|watch| &mut watch.quick_rings);
        self.look_at_new_bindings();
        self.empty(|watch| &mut watch.rings);
    }

    fn empty(&mut self, rings: impl Fn(&mut Self) -> &mut Vec<EventRing>) {
        let mut taken = std::mem::take(rings(self));
        for ring in &mut taken {
            ring.drain(|record| self.note(record));
        }
        *rings(self) = taken;
    }

    /// Look at what was bound anew, the newest first: it is there for longest. Of a descriptor that
    /// was bound more than once only the last binding can be seen.
    fn look_at_new_bindings(&mut self) {
        let mut bindings = std::mem::take(&mut self.new_bindings);
        bindings.sort_by_key(|binding| std::cmp::Reverse(binding.time_ns));
        let mut seen = HashSet::new();
        for binding in bindings {
            let to = match seen.insert(binding.key()) {
                true => descriptors::look(binding.key()),
                false => DescriptorBinding::Unknown,
            };
            self.report_binding(binding, to, true);
        }
    }

    fn look_if_new(&mut self, binding: Binding) {
        if self.descriptors.is_new(binding.key()) {
            self.report_binding(binding, descriptors::look(binding.key()), false);
        }
    }

    fn report_binding(&mut self, binding: Binding, to: DescriptorBinding, anew: bool) {
        let Binding { time_ns, process, thread, descriptor } = binding;
        let what = What::Bound { descriptor, to, anew };
        let observation = Observation { time_ns, process, thread, what };
        self.pending.push(Pending { observation, looked_ns: Some(now_ns()) });
    }

    fn report(&mut self, time_ns: u64, process: u32, thread: u32, what: What) {
        let observation = Observation { time_ns, process, thread, what };
        self.pending.push(Pending { observation, looked_ns: None });
    }

    fn note(&mut self, record: EventRecord<'_>) {
        let (process, thread, time_ns, what) = match record {
            EventRecord::Sample(sample) => return self.note_sample(&sample),
            EventRecord::Mapped(range) => (range.process, range.thread, range.time_ns, mapped(&range)),
            EventRecord::Named { process, thread, time_ns, name, executed } => {
                let name = String::from_utf8_lossy(name).into_owned();
                (process, thread, time_ns, What::Named { name, executed })
            }
            EventRecord::Began { process, parent, thread, time_ns } => {
                if self.narrow.contains(&parent) {
                    self.narrow.insert(process);
                }
                (process, thread, time_ns, What::Began { parent })
            }
            EventRecord::Ended { process, thread, time_ns } => (process, thread, time_ns, What::Ended),
            EventRecord::Switched { process, thread, time_ns, out: true, preempted } => {
                let instruction = self.leaving.remove(&thread).flatten();
                (process, thread, time_ns, What::Left { preempted, instruction })
            }
            EventRecord::Switched { process, thread, time_ns, .. } => {
                (process, thread, time_ns, What::Resumed)
            }
            EventRecord::Lost(count) => {
                self.lost += count;
                return;
            }
        };
        self.report(time_ns, process, thread, what);
    }

    fn note_sample(&mut self, sample: &EventSample<'_>) {
        let Some(kind) = self.kinds.get(&sample.event).copied() else { return };
        *self.recorded.entry(kind).or_default() += 1;
        let EventSample { process, thread, time_ns, address, .. } = *sample;
        let report = |watch: &mut Self, what| watch.report(time_ns, process, thread, what);
        let binding = |descriptor| Binding { time_ns, process, thread, descriptor };
        match kind {
            Kind::SideBand => {}
            Kind::MinorFault | Kind::MajorFault => {
                let (major, window) = (kind == Kind::MajorFault, self.touches.note(process, address));
                if sample.has_narrow_registers() {
                    self.narrow.insert(process);
                    self.miss_narrow_calls();
                } else if !self.narrow.is_empty() {
                    self.narrow.remove(&process);
                }
                let instruction = sample.instruction().filter(|_| sample.in_program);
                report(self, What::Faulted { address, major, window, instruction });
            }
            // The record that it has left follows at once, in the same ring.
            Kind::Switch => {
                self.leaving.insert(thread, sample.instruction());
            }
            // Its calls have other numbers. It faults before it makes the first.
            Kind::Called if self.narrow.contains(&process) => {}
            Kind::Called => {
                let Some(call) = sample.raw().and_then(calls::called) else { return };
                match call {
                    Call::Read(access) | Call::Write(access) => {
                        self.look_if_new(binding(access.descriptor));
                    }
                    Call::Copy { from, to } => {
                        self.look_if_new(binding(from.descriptor));
                        self.look_if_new(binding(to.descriptor));
                    }
                    Call::Sync { descriptor } => self.look_if_new(binding(descriptor)),
                    Call::Close { descriptor } => self.descriptors.closed((process, descriptor), time_ns),
                    _ => {}
                }
                report(self, What::Called(call));
            }
            Kind::Returned { binds } => {
                let Some(result) = sample.raw().and_then(calls::returned) else { return };
                report(self, What::Returned(result));
                if let (true, Ok(descriptor)) = (binds, i32::try_from(result))
                    && descriptor >= 0
                {
                    self.descriptors.bound((process, descriptor), time_ns);
                    self.new_bindings.push(binding(descriptor));
                }
            }
            Kind::AskedDevice => {
                let Some((cache, raw)) = self.cache.as_ref().zip(sample.raw()) else { return };
                let Some((device, bytes)) = cache.read_of_device(raw) else { return };
                report(self, What::AskedDevice { device, bytes });
            }
            Kind::BroughtIn | Kind::MappedAround => {
                let Some((cache, raw)) = self.cache.as_ref().zip(sample.raw()) else { return };
                let Some(pages) = cache.pages(kind, raw) else { return };
                let is_new = kind == Kind::BroughtIn;
                report(self, if is_new { What::BroughtIn(pages) } else { What::MappedAround(pages) });
            }
        }
    }

    /// Calls are missing from the first program on that has narrow registers.
    fn miss_narrow_calls(&mut self) {
        if Missing::of(&self.missing, ObservationKind::Calls).is_none() {
            let reason =
                "a program of 32 bits was among those that were watched, and its calls are not recorded";
            self.missing.push(Missing { kind: ObservationKind::Calls, reason: reason.to_string() });
        }
    }

    /// The way from a file's device to the disk that its requests name; none leads anywhere where
    /// requests are not seen.
    pub fn disks(&self) -> DiskOf {
        let sees = self.cache.as_ref().is_some_and(|cache| cache.asked_device.is_some());
        if sees { BlockDevice::disk_of } else { |_| None }
    }

    /// Events until `until`, in order. Descriptors that were looked at by then are certain:
    /// everything that could have changed them since has been recorded.
    fn release(&mut self, until: u64) -> Vec<Observation> {
        self.pending.sort_by_key(|pending| pending.observation.time_ns);
        let count = self.pending.partition_point(|pending| pending.observation.time_ns <= until);
        let descriptors = &self.descriptors;
        let released = self.pending.drain(..count).map(|Pending { mut observation, looked_ns }| {
            if let (What::Bound { descriptor, to, .. }, Some(looked_ns)) = (&mut observation.what, looked_ns)
                && descriptors.changed((observation.process, *descriptor), observation.time_ns, looked_ns)
            {
                *to = DescriptorBinding::Unknown;
            }
            observation
        });
        let released = released.collect();
        self.descriptors.forget_before(until);
        released
    }
}

fn mapped(range: &MappedRange<'_>) -> What {
    let file = file_of(range.device, range.inode, &String::from_utf8_lossy(range.path));
    What::Mapped {
        start: range.start,
        len: range.len,
        file: file.map(|file| (file, range.offset)),
        executable: range.executable,
    }
}

/// The file of a mapping; `None`: memory that has only a name.
fn file_of(device: (u32, u32), inode: u64, path: &str) -> Option<WatchedFile> {
    let is_memory = ["/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage", "anon_inode:"]
        .iter()
        .any(|name| path.starts_with(name));
    (inode != 0 && !is_memory).then(|| WatchedFile { device, inode, path: path.to_string() })
}

fn threads(process: Pid) -> Result<Vec<Pid>, String> {
    let numbers = kernel_files::numbered(format!("/proc/{}/task", process.as_raw_nonzero()));
    let threads: Vec<Pid> = numbers.filter_map(Pid::from_raw).collect();
    if threads.is_empty() { Err("the process has ended".to_string()) } else { Ok(threads) }
}

/// Wait until the process ends or the time is over; true if it has ended.
pub fn wait_for_end(process: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    wait_for(process, [].into_iter(), timeout)
}

/// Wait until the first descriptor or a ring has something to report, or the time is over; true if
/// the first has.
pub(crate) fn wait_for<'a>(
    first: BorrowedFd<'a>,
    rings: impl Iterator<Item = BorrowedFd<'a>>,
    timeout: Duration,
) -> io::Result<bool> {
    let watched = [first].into_iter().chain(rings);
    let mut waited: Vec<PollFd<'_>> =
        watched.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(timeout).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut waited, Some(&timeout)) {
        Ok(_) => Ok(!waited[0].revents().is_empty()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The time of records: CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
