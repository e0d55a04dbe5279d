//! Events, added up by file and thread.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use pagewise_model::ProcessCounters;
use pagewise_model::inspection::{By, InspectedFile, Inspection, LeftOut, SCHEMA, Subject, Unattributed};
use pagewise_model::trace::AccessKind;
use pagewise_model::watched::{
    Call, DescriptorBinding, DiskOf, Missing, Observation, ObservationKind, Pages, Position, Tally, Transfer,
    WatchedFile, What,
};

use super::files::{File, Identity};
use super::mappings::Mappings;
use super::threads::{InCall, Thread};

/// A fault is in order if it is so many pages behind the one before, or fewer: what the kernel maps
/// around a fault (fault_around_bytes is 64 KiB).
const AROUND_PAGES: u64 = 16;
/// Pages that may be mapped as one.
const LARGE_PAGES: u64 = 512;

/// A program being watched.
#[derive(Clone, Debug)]
pub struct Accounts {
    pub(super) page_bytes: u64,
    /// The disk of a file's device, whose number requests have; `None`: it is unknown.
    disk_of: DiskOf,
    pub(super) processes: HashMap<u32, Process>,
    threads: HashMap<u32, Thread>,
    /// Threads that ended: their numbers may be used again.
    gone: Vec<(u32, Thread)>,
    pub(super) files: Vec<File>,
    by_identity: HashMap<Identity, usize>,
    /// The file of a mapping may show another device than its descriptor (btrfs, overlayfs).
    by_path: HashMap<(u64, String), usize>,
    no_file: Unattributed,
    unknown: Unattributed,
    ring_requests: u64,
    memory_faults: u64,
    /// Touches in windows whose file is not known.
    unplaced_touches: u64,
    /// Pages were put in place before they were used, which raises no fault.
    populated: bool,
    /// Threads that have executed a program and not faulted yet.
    executed: HashSet<u32>,
    /// Processes that the kernel let nobody watch any longer.
    cut: HashSet<u32>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub(super) mappings: Mappings,
    descriptors: HashMap<i32, Descriptor>,
    /// A thread has a table of descriptors of its own, so /proc does not show what its numbers are.
    own_descriptors: bool,
}

/// A descriptor of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    pub(super) to: To,
    /// The file's own position, from its opening on.
    position: u64,
    /// End of the access before.
    last_end: Option<u64>,
    /// Opened with O_DIRECT.
    direct: bool,
    /// A call has used it.
    used: bool,
}

/// The bytes of an access, by their offset.
#[derive(Clone, Copy, Debug)]
struct Extent {
    offset: u64,
    len: u64,
    /// True if the transfer began where the one before had ended; `None` without one before.
    in_order: Option<bool>,
}

/// A read by a call whose offset is known, a touch of a mapped page, or a request to read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// When the call was made.
    pub time_ns: u64,
    /// Time until it returned; `None` of a touch.
    pub took_ns: Option<u64>,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The file, as a number of these accounts ([`Accounts::identity`]).
    pub file: usize,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes that it returned, or that were to be read ahead.
    pub len: u64,
    /// The kind of the access.
    pub kind: AccessKind,
    /// The window of a touch.
    pub window: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    File(usize),
    NoFile,
    Unknown,
}

impl Accounts {
    /// Nothing yet, on a machine with pages of this size.
    pub fn new(page_bytes: u64) -> Self {
        Self {
            page_bytes,
            disk_of: Some,
            processes: HashMap::new(),
            threads: HashMap::new(),
            gone: Vec::new(),
            files: Vec::new(),
            by_identity: HashMap::new(),
            by_path: HashMap::new(),
            no_file: Unattributed::default(),
            unknown: Unattributed::default(),
            ring_requests: 0,
            memory_faults: 0,
            unplaced_touches: 0,
            populated: false,
            executed: HashSet::new(),
            cut: HashSet::new(),
        }
    }

    /// Accounts that find the disk of a device so. Of a file without one it is unknown what
    /// its device was asked for.
    pub fn with_disks(self, disk_of: DiskOf) -> Self {
        Self { disk_of, ..self }
    }

    /// Add what happened next; returns the read that this ended, if its offset is known, the
    /// request to read ahead, or the touch that it was.
    pub fn add(&mut self, observation: Observation) -> Option<Accessed> {
        let Observation { time_ns, process, thread, what } = observation;
        match what {
            What::Began { parent } => {
                if parent != process && !self.processes.contains_key(&process) {
                    let inherited = self.processes.get(&parent).cloned().unwrap_or_default();
                    self.processes.insert(process, Process { own_descriptors: false, ..inherited });
                }
                self.end(thread, time_ns);
                // A name is inherited until another one is given.
                let name = self.threads.get(&parent).map(|parent| parent.name.clone()).unwrap_or_default();
                self.threads.insert(thread, Thread::new(process, name, time_ns));
            }
            What::Ended => {
                // No program runs without a fault: the kernel took its events away.
                if self.executed.remove(&thread) {
                    self.cut.insert(process);
                }
                self.end(thread, time_ns);
            }
            What::Named { name, executed } => {
                if executed {
                    self.processes.entry(process).or_default().mappings = Mappings::default();
                    self.executed.insert(thread);
                }
                self.thread(process, thread, time_ns).name = name;
            }
            What::Left { preempted, instruction } => {
                self.thread(process, thread, time_ns).left(time_ns, preempted, instruction);
            }
            What::Resumed => self.thread(process, thread, time_ns).resumed(time_ns),
            What::Mapped { start, len, file, executable } => {
                let file = file.map(|(file, offset)| (self.file(file), offset));
                if let Some((file, _)) = file {
                    self.files[file].code |= executable;
                }
                self.processes.entry(process).or_default().mappings.map(start, len, file);
            }
            What::Bound { descriptor, to, anew } => {
                let direct = matches!(to, DescriptorBinding::File { direct: true, .. });
                let to = self.bound(to);
                // One that was found may be its parent's, and closed when it executes its program.
                if let (true, true, To::File(file)) = (direct, anew, to) {
                    self.files[file].direct = true;
                }
                let process = self.processes.entry(process).or_default();
                let to = if process.own_descriptors { To::Unknown } else { to };
                let descriptors = &mut process.descriptors;
                // A look may find what is known already, and the position stays; one that came too
                // late finds nothing.
                let known = descriptors.get(&descriptor).map(|known| known.to);
                if anew || known.is_none_or(|known| to != known && to != To::Unknown) {
                    let state = Descriptor { to, position: 0, last_end: None, direct, used: false };
                    descriptors.insert(descriptor, state);
                }
            }
            What::Called(call) => {
                match call {
                    Call::Ring { submitted } => self.ring_requests += u64::from(submitted),
                    Call::Populate { .. } => self.populated = true,
                    _ => {}
                }
                self.thread(process, thread, time_ns).called(call, time_ns);
            }
            What::Returned(result) => {
                let call = self.thread(process, thread, time_ns).returned();
                return call.and_then(|call| self.returned((process, thread), time_ns, &call, result));
            }
            What::Faulted { address, major, window, instruction } => {
                let waited_ns = self.thread(process, thread, time_ns).faulted(major, instruction);
                let found = self.faulted(process, thread, address, major, waited_ns);
                self.unplaced_touches += u64::from(found.is_none() && window.is_some());
                let (file, offset) = found?;
                let (offset, len) = (offset - offset % self.page_bytes, self.page_bytes);
                let (kind, window) = (AccessKind::Touch { opens_window: false }, Some(window?));
                return Some(Accessed {
                    time_ns,
                    took_ns: None,
                    process,
                    thread,
                    file,
                    offset,
                    len,
                    kind,
                    window,
                });
            }
            What::BroughtIn(pages) => self.brought_in(process, thread, time_ns, pages),
            What::AskedDevice { device, bytes } => {
                self.asked_device((process, thread), time_ns, device, bytes)
            }
            What::MappedAround(pages) => {
                let file = self.file_of_pages(&pages);
                self.files[file].around.insert(pages.first, pages.count);
            }
        }
        None
    }

    /// Major number, minor number and inode of a file of these accounts, as
    /// [`InspectedFile::identity`] has them.
    pub fn identity(&self, file: usize) -> (u32, u32, u64) {
        self.files[file].identity
    }

    fn thread(&mut self, process: u32, thread: u32, time_ns: u64) -> &mut Thread {
        self.threads.entry(thread).or_insert_with(|| Thread::new(process, String::new(), time_ns))
    }

    fn end(&mut self, thread: u32, time_ns: u64) {
        if let Some(mut ended) = self.threads.remove(&thread) {
            ended.ended(time_ns);
            self.gone.push((thread, ended));
        }
    }

    fn file(&mut self, file: WatchedFile) -> usize {
        let identity = (file.device.0, file.device.1, file.inode);
        let named = (file.inode, file.path);
        let known = self.by_identity.get(&identity).or_else(|| self.by_path.get(&named)).copied();
        let index = known.unwrap_or_else(|| self.new_file(identity));
        self.files[index].path.get_or_insert_with(|| named.1.clone());
        self.by_identity.insert(identity, index);
        self.by_path.insert(named, index);
        index
    }

    /// Pages are those of a file that may not have been seen opened.
    fn file_of_pages(&mut self, pages: &Pages) -> usize {
        let identity = (pages.device.0, pages.device.1, pages.inode);
        let known = self.by_identity.get(&identity).copied();
        let index = known.unwrap_or_else(|| self.new_file(identity));
        self.by_identity.insert(identity, index);
        index
    }

    fn new_file(&mut self, identity: (u32, u32, u64)) -> usize {
        let disk = (self.disk_of)((identity.0, identity.1));
        self.files.push(File { identity, disk, ..File::default() });
        self.files.len() - 1
    }

    fn bound(&mut self, to: DescriptorBinding) -> To {
        match to {
            DescriptorBinding::NoFile => To::NoFile,
            DescriptorBinding::Unknown => To::Unknown,
            DescriptorBinding::File { file, len, .. } => {
                let index = self.file(file);
                let file = &mut self.files[index];
                file.len.get_or_insert(len);
                To::File(index)
            }
        }
    }

    fn returned(
        &mut self,
        (process, thread): (u32, u32),
        now_ns: u64,
        call: &InCall,
        result: i64,
    ) -> Option<Accessed> {
        let (access, by) = match call.call {
            Call::Read(access) => (access, By::Reads),
            Call::Write(access) => (access, By::Writes),
            Call::Copy { from, to } => {
                // Which of both it waited for is not known.
                let written = InCall { blocked_ns: 0, ..*call };
                self.moved((process, thread), (&written, now_ns), (to, By::Writes), result);
                (from, By::Reads)
            }
            Call::Sync { descriptor } => {
                if let To::File(file) = self.descriptor(process, descriptor)?.to {
                    self.waited(thread, file, By::Syncs, call.blocked_ns);
                }
                return None;
            }
            Call::SyncMapped { address } => {
                let (file, _) = self.mapped_at(process, address)?;
                self.waited(thread, file, By::Syncs, call.blocked_ns);
                return None;
            }
            Call::Populate { address } => {
                let address = address.or_else(|| u64::try_from(result).ok())?;
                let (file, _) = self.mapped_at(process, address)?;
                self.files[file]
                    .otherwise_advised("pages put in place (MAP_POPULATE, MADV_POPULATE_READ, mlock)");
                self.waited(thread, file, By::Prefaults, call.blocked_ns);
                return None;
            }
            Call::Seek { descriptor } => {
                let state = self.descriptor(process, descriptor)?;
                state.position = u64::try_from(result).unwrap_or(state.position);
                return None;
            }
            Call::Expect { .. }
            | Call::ExpectMapped { .. }
            | Call::ReadAhead { .. }
            | Call::ReadAheadMapped { .. }
            | Call::AdviseOtherwise { .. } => return self.advised((process, thread), (call, now_ns), result),
            Call::Remap { from, from_len, to_len } => {
                let pages = |len: u64| len.checked_next_multiple_of(self.page_bytes).unwrap_or(u64::MAX);
                let (from_len, to_len) = (pages(from_len), pages(to_len));
                if let Ok(to) = u64::try_from(result) {
                    self.processes.entry(process).or_default().mappings.remap(from, from_len, to, to_len);
                }
                return None;
            }
            Call::OwnDescriptors => {
                let threads = self.threads.values().filter(|thread| thread.process == process).count();
                if result == 0 && threads > 1 {
                    let descriptors = &mut self.processes.entry(process).or_default().descriptors;
                    descriptors.values_mut().for_each(|state| state.to = To::Unknown);
                    self.processes.entry(process).or_default().own_descriptors = true;
                }
                return None;
            }
            Call::Close { descriptor } => {
                self.processes.entry(process).or_default().descriptors.remove(&descriptor);
                return None;
            }
            _ => return None,
        };
        self.moved((process, thread), (call, now_ns), (access, by), result)
    }

    /// A call has moved bytes, or failed to; the access, if it is a read of a known place.
    fn moved(
        &mut self,
        (process, thread): (u32, u32),
        (call, now_ns): (&InCall, u64),
        (access, by): (Transfer, By),
        result: i64,
    ) -> Option<Accessed> {
        let bytes = u64::try_from(result).ok();
        let extent = bytes.and_then(|bytes| self.extent(process, &access, bytes));
        let state = self.descriptor(process, access.descriptor);
        let (to, direct, is_first) = state.map_or((To::Unknown, false, false), |state| {
            (state.to, state.direct, !std::mem::replace(&mut state.used, true))
        });
        let file = match to {
            To::File(file) => file,
            To::NoFile | To::Unknown => {
                let other = if to == To::NoFile { &mut self.no_file } else { &mut self.unknown };
                other.descriptors += u64::from(is_first);
                other.calls += 1;
                other.bytes += bytes.unwrap_or(0);
                return None;
            }
        };
        self.files[file].direct |= direct;
        let counts = match by {
            By::Reads => &mut self.files[file].reads,
            _ => &mut self.files[file].writes,
        };
        counts.count += 1;
        counts.in_calls_ns += now_ns.saturating_sub(call.at_ns);
        counts.threads.insert(thread);
        match bytes {
            Some(bytes) => {
                counts.bytes += bytes;
                if bytes > 0 {
                    *counts.sizes.entry(bytes).or_default() += 1;
                }
            }
            None => counts.failed += 1,
        }
        if let Some(in_order) = extent.and_then(|extent| extent.in_order) {
            counts.located += 1;
            counts.in_order += u64::from(in_order);
        }
        if call.blocked_ns > 0 {
            self.waited(thread, file, by, call.blocked_ns);
        }
        let extent = extent.filter(|_| by == By::Reads)?;
        let kind = if access.at == Position::Current { AccessKind::Read } else { AccessKind::Pread };
        let (time_ns, Extent { offset, len, .. }) = (call.at_ns, extent);
        let took_ns = Some(now_ns.saturating_sub(call.at_ns));
        Some(Accessed { time_ns, took_ns, process, thread, file, offset, len, kind, window: None })
    }

    pub(super) fn descriptor(&mut self, process: u32, descriptor: i32) -> Option<&mut Descriptor> {
        self.processes.get_mut(&process)?.descriptors.get_mut(&descriptor)
    }

    /// Move the position of a descriptor; where the access was, if that is known and it moved any
    /// bytes.
    fn extent(&mut self, process: u32, access: &Transfer, bytes: u64) -> Option<Extent> {
        let state = self.descriptor(process, access.descriptor)?;
        let start = match access.at {
            Position::Offset(offset) => offset,
            Position::Current => state.position,
            Position::Hidden => {
                state.last_end = None;
                return None;
            }
        };
        let end = start.saturating_add(bytes);
        if access.at == Position::Current {
            state.position = end;
        }
        if bytes == 0 {
            return None;
        }
        let in_order = state.last_end.replace(end).map(|last| last == start);
        Some(Extent { offset: start, len: bytes, in_order })
    }

    /// The file that is mapped at an address, and the offset in it.
    pub(super) fn mapped_at(&self, process: u32, address: u64) -> Option<(usize, u64)> {
        self.processes.get(&process)?.mappings.at(address)
    }

    /// A thread waited for a file.
    fn waited(&mut self, thread: u32, file: usize, by: By, waited_ns: u64) {
        self.files[file].waits(by).add(waited_ns);
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.waited(file, by, waited_ns);
        }
    }

    /// The file and offset of a fault, if it was one of a file.
    fn faulted(
        &mut self,
        process: u32,
        thread: u32,
        address: u64,
        major: bool,
        waited_ns: u64,
    ) -> Option<(usize, u64)> {
        self.executed.remove(&thread);
        let Some((file, offset)) = self.mapped_at(process, address) else {
            self.memory_faults += 1;
            return None;
        };
        let page = offset / self.page_bytes;
        // A large page that is in the cache may be mapped as a whole, and the next fault is behind
        // it.
        let around = if self.files[file].large { LARGE_PAGES } else { AROUND_PAGES };
        let faults = &mut self.files[file].faults;
        let is_again = faults.pages.insert(page, 1) > 0;
        faults.again += u64::from(major && is_again);
        let last = faults.last_page.insert(thread, page);
        let behind = last.and_then(|last| page.checked_sub(last));
        if let Some(pages) = behind.filter(|pages| (1..=around).contains(pages)) {
            faults.in_order += 1;
            faults.in_order_pages += pages;
        }
        *if major { &mut faults.major } else { &mut faults.minor } += 1;
        if waited_ns > 0 {
            self.waited(thread, file, By::Faults, waited_ns);
        }
        Some((file, offset))
    }

    fn brought_in(&mut self, process: u32, thread: u32, time_ns: u64, pages: Pages) {
        let call = self.thread(process, thread, time_ns).call();
        // What a write puts into the page cache does not come from a device.
        if matches!(call, Some(Call::Write(_))) {
            return;
        }
        let index = self.file_of_pages(&pages);
        if let Some(Call::Copy { to, .. }) = call
            && self.descriptor(process, to.descriptor).is_some_and(|state| state.to == To::File(index))
        {
            return;
        }
        let file = &mut self.files[index];
        file.again_pages += file.brought_in.insert(pages.first, pages.count);
        file.large |= pages.count >= LARGE_PAGES;
        if call.is_some() {
            file.calls_pages += pages.count;
        } else {
            file.faults_pages += pages.count;
            file.by_faults.insert(pages.first, pages.count);
        }
    }

    /// A thread in a call asked a device for bytes. Devices below that of the file are asked for
    /// the same again.
    fn asked_device(&mut self, (process, thread): (u32, u32), time_ns: u64, device: (u32, u32), bytes: u64) {
        let (access, by) = match self.thread(process, thread, time_ns).call() {
            Some(Call::Read(access) | Call::Copy { from: access, .. }) => (access, By::Reads),
            Some(Call::Write(access)) => (access, By::Writes),
            _ => return,
        };
        let Some(To::File(file)) = self.descriptor(process, access.descriptor).map(|state| state.to) else {
            return;
        };
        let file = &mut self.files[file];
        if file.disk == Some(device) {
            let counts = if by == By::Reads { &mut file.reads } else { &mut file.writes };
            counts.device_read_bytes += bytes;
        }
    }

    /// The end: what was watched, for how long, and how much of it arrived.
    pub fn inspection(
        mut self,
        subject: Subject,
        (began_ns, ended_ns): (u64, u64),
        missing: &[Missing],
        (events, lost): (Vec<Tally>, u64),
    ) -> Inspection {
        let sees = |kind| Missing::of(missing, kind).is_none();
        let (calls, cache) = (sees(ObservationKind::Calls), sees(ObservationKind::PageCache));
        let unseen = self.populated || !calls || !sees(ObservationKind::MappedAround);
        let files = std::mem::take(&mut self.files);
        let files: Vec<InspectedFile> =
            files.iter().map(|file| file.inspected(self.page_bytes, cache, unseen)).collect();
        let mut order: Vec<usize> = (0..files.len()).collect();
        order.sort_by_key(|index| {
            let file = &files[*index];
            (file.code, Reverse(file.waited_ns()), Reverse(file.bytes()), file.path.clone())
        });
        let mut positions = vec![0; order.len()];
        for (position, index) in order.iter().enumerate() {
            positions[*index] = position;
        }
        let mut sorted: Vec<Option<InspectedFile>> = files.into_iter().map(Some).collect();
        let files = order.iter().filter_map(|index| sorted[*index].take()).collect();
        let everybody = self.threads.iter().map(|(number, thread)| (*number, thread));
        let everybody = everybody.chain(self.gone.iter().map(|(number, thread)| (*number, thread)));
        let mut threads: Vec<_> =
            everybody.map(|(number, thread)| thread.inspected(number, ended_ns, &positions)).collect();
        threads.sort_by_key(|thread| (Reverse(thread.waited_ns()), thread.process, thread.thread));
        let processes: HashSet<u32> = threads.iter().map(|thread| thread.process).collect();
        let arrived = |tally: &Tally| tally.counted == tally.recorded && tally.lost.unwrap_or(0) == 0;
        let lost_records = lost.max(events.iter().filter_map(|tally| tally.lost).sum());
        Inspection {
            schema: SCHEMA,
            subject,
            watched_ns: ended_ns.saturating_sub(began_ns),
            page_bytes: self.page_bytes,
            processes: processes.len() as u64,
            cut_processes: self.cut.len() as u64,
            missing: missing.to_vec(),
            complete: lost_records == 0 && self.unplaced_touches == 0 && events.iter().all(arrived),
            lost_records,
            events,
            files,
            threads,
            left_out: LeftOut::default(),
            no_file: calls.then_some(self.no_file),
            unknown: calls.then_some(self.unknown),
            ring_requests: calls.then_some(self.ring_requests),
            memory_faults: self.memory_faults,
            totals: ProcessCounters::default(),
        }
    }
}
