//! The memories of a traced program: what is registered in them, and the errands that its threads
//! run for that.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use pagewise_sys::tracee::{ERRAND_BYTES, Errand, Registers, Stop, Unable, prepare, read_memory};
use pagewise_sys::userfault::{self, SinglePageFaults, in_place};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{ForeignRawFd, Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::kernel_files;
use crate::process::{MapsLine, descriptor_flags, status_field};
use crate::watch::touches::{FileNumber, Range, Touches};

// Calls of x86-64.
const CLOSE: u64 = 3;
const MADVISE: u64 = 28;
const USERFAULTFD: u64 = 323;
const MADV_DONTNEED: u64 = 4;
const MADV_NOHUGEPAGE: u64 = 15;

/// The file of a descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileOfCall {
    pub(super) number: FileNumber,
    /// True if the file was opened for reading only.
    pub(super) for_reading_only: bool,
}

/// A thread that is stopped, with its process and memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) thread: Pid,
    pub(super) process: Pid,
    pub(super) space: usize,
}

/// Pages that are in place.
#[derive(Debug)]
pub(super) struct Pages {
    space: usize,
    found: Vec<userfault::InPlace>,
    /// True if the pages in place could be looked for.
    readable: bool,
}

impl Pages {
    pub(super) fn all_faulted(&self, touches: &mut Touches) -> bool {
        self.readable && self.unseen(touches) == 0
    }

    /// Number of those that have not faulted.
    fn unseen(&self, touches: &mut Touches) -> u64 {
        let page_bytes = rustix::param::page_size();
        let space = touches.space(self.space);
        let all = self.found.iter().flat_map(|pages| (pages.start..pages.end).step_by(page_bytes));
        all.filter(|page| !space.has_faulted(*page)).count() as u64
    }
}

/// An event during an errand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Met {
    Ended(Option<i32>),
    GroupStop,
}

/// The memories of all processes.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    all: Vec<Space>,
    met: Option<Met>,
    /// A page was touched unseen since the last window.
    unproven: bool,
    /// Number of these pages, in all windows.
    unseen_pages: u64,
    left_out: Vec<String>,
}

/// The memory of a process.
#[derive(Debug, Default)]
struct Space {
    /// Address of the instructions of errands.
    errand_address: Option<u64>,
    faults: Option<SinglePageFaults>,
    pagemap: Option<File>,
    /// Files of code.
    code: HashSet<FileNumber>,
    /// True if nothing can be registered here.
    refused: bool,
    /// True for a copy whose ranges are still to be registered.
    unregistered: bool,
}

/// The reason for which there can be no windows here.
pub(super) fn refusal() -> Option<String> {
    if let Err(error) = SinglePageFaults::of_this_process() {
        return Some(match error.raw_os_error() {
            Some(number) if number == Errno::INVAL.raw_os_error() => {
                "this kernel cannot make single pages fault without a handler (Linux 6.7 can)".to_string()
            }
            _ => format!("userfaultfd is shut ({error})"),
        });
    }
    let scanned = File::open("/proc/self/pagemap").and_then(|pagemap| in_place(&pagemap, 0, 1 << 12));
    scanned
        .err()
        .map(|error| format!("pages in place cannot be looked for (PAGEMAP_SCAN: {error}; Linux 6.7 can)"))
}

/// The process of a thread.
pub(super) fn process_of(thread: i32) -> Option<i32> {
    status_field(thread, "Tgid")?.parse().ok()
}

/// The regular file of a descriptor of a thread: the first thread of a process has none any more
/// when it has ended.
pub(super) fn file_of(thread: Pid, descriptor: i32) -> Option<FileOfCall> {
    let process = thread.as_raw_nonzero();
    let found =
        fs::metadata(format!("/proc/{process}/fd/{descriptor}")).ok().filter(fs::Metadata::is_file)?;
    let for_reading_only = !descriptor_flags(process, descriptor)?.intersects(OFlags::RWMODE);
    Some(FileOfCall { number: (found.dev(), found.ino()), for_reading_only })
}

/// True if the process confines its calls (seccomp(2)), so that an errand might end it.
fn is_confined(process: Pid) -> bool {
    status_field(process.as_raw_nonzero(), "Seccomp").as_deref() != Some("0")
}

impl Spaces {
    /// New memory; its number.
    pub(super) fn add(&mut self, touches: &mut Touches, parent: Option<usize>) -> usize {
        let number = touches.add_space(parent);
        let inherited = parent.map(|parent| &self.all[parent]);
        self.all.push(Space {
            errand_address: inherited.and_then(|parent| parent.errand_address),
            code: inherited.map(|parent| parent.code.clone()).unwrap_or_default(),
            refused: inherited.is_some_and(|parent| parent.refused),
            unregistered: parent.is_some(),
            ..Space::default()
        });
        number
    }

    /// Errands may begin in memory that a program has just been executed in.
    pub(super) fn prepare(&mut self, space: usize, process: Pid) {
        let is_64_bit = Registers::of(process).is_ok_and(|registers| registers.is_64_bit());
        let errand_address = padding(process).filter(|_| is_64_bit && !is_confined(process));
        let errand_address =
            errand_address.filter(|errand_address| prepare(process, *errand_address).is_ok());
        if errand_address.is_none() {
            self.refuse(space, "a program of another kind (32 bits, seccomp, or no room in its vdso)");
        }
        self.all[space].errand_address = errand_address;
    }

    fn refuse(&mut self, space: usize, reason: &str) {
        self.all[space].refused = true;
        self.leave_out(reason.to_string());
    }

    pub(super) fn leave_out(&mut self, reason: String) {
        if !self.left_out.contains(&reason) {
            self.left_out.push(reason);
        }
    }

    /// Address of the instructions of errands.
    pub(super) fn errand_address(&self, space: usize) -> Option<u64> {
        self.all[space].errand_address
    }

    pub(super) fn is_unregistered(&self, space: usize) -> bool {
        self.all[space].unregistered
    }

    pub(super) fn with_ranges(&self, touches: &mut Touches) -> Vec<usize> {
        let has_windows =
            |space: &usize| !self.all[*space].unregistered && touches.space(*space).has_ranges();
        (0..self.all.len()).filter(has_windows).collect()
    }

    pub(super) fn left_out(&self) -> Vec<String> {
        self.left_out.clone()
    }

    /// Pages that were in place and had not been seen to be touched.
    pub(super) fn unseen_pages(&self) -> u64 {
        self.unseen_pages
    }

    /// True if a page was touched unseen since the last window, or may have been.
    pub(super) fn is_unproven(&self) -> bool {
        self.unproven
    }

    /// A memory has ended, and nobody could look what was in place: its last touches may not have
    /// been seen.
    pub(super) fn ended_unseen(&mut self, space: usize, touches: &mut Touches) {
        self.unproven |= touches.space(space).has_ranges() && !self.all[space].unregistered;
        touches.space(space).remove(0, u64::MAX);
    }

    /// True if a page was touched unseen since the last time.
    pub(super) fn take_unproven(&mut self) -> bool {
        std::mem::take(&mut self.unproven)
    }

    pub(super) fn take_met(&mut self) -> Option<Met> {
        self.met.take()
    }

    /// A file of code: its mappings have no windows.
    pub(super) fn has_code(&mut self, space: usize, file: FileNumber, touches: &mut Touches) {
        self.all[space].code.insert(file);
        touches.space(space).remove_file(file);
    }

    /// A range may be written to from now on.
    pub(super) fn written(&mut self, space: usize, start: u64, end: u64, touches: &mut Touches) {
        if !touches.space(space).within(start, end).is_empty() {
            self.leave_out("a mapping that was made writable".to_string());
            touches.space(space).remove(start, end);
        }
    }

    /// No errands can be run in this memory from now on.
    pub(super) fn shut(&mut self, space: usize, reason: &str, touches: &mut Touches) {
        touches.space(space).remove(0, u64::MAX);
        self.refuse(space, reason);
        self.all[space].errand_address = None;
    }

    /// True if the instructions of errands are between these addresses.
    pub(super) fn holds_errands(&self, space: usize, start: u64, end: u64) -> bool {
        self.errand_address(space)
            .is_some_and(|errand_address| errand_address < end && errand_address + ERRAND_BYTES > start)
    }

    /// A file was mapped by a call that has just returned.
    pub(super) fn mapped(&mut self, owner: &Owner, start: u64, range: Range, touches: &mut Touches) {
        let space = &self.all[owner.space];
        if space.refused || space.code.contains(&range.file) {
            return;
        }
        if self.register(owner, &[(start, range.end)]) {
            touches.space(owner.space).add(start, range);
        }
    }

    /// The copy of a memory has its own registration.
    pub(super) fn register_all(&mut self, owner: &Owner, touches: &mut Touches) {
        self.all[owner.space].unregistered = false;
        // A page that was written by way of /proc/PID/mem is the program's own.
        self.in_place(owner, 0, u64::MAX, touches);
        let ranges: Vec<(u64, u64)> =
            touches.space(owner.space).ranges().iter().map(|(start, range)| (*start, range.end)).collect();
        if !ranges.is_empty() && !self.register(owner, &ranges) {
            touches.space(owner.space).remove(0, u64::MAX);
        }
    }

    /// Have each page of these ranges fault by itself.
    fn register(&mut self, owner: &Owner, ranges: &[(u64, u64)]) -> bool {
        match self.try_register(owner, ranges) {
            Ok(()) => true,
            Err(unable) => {
                let reason = match unable {
                    Unable::NotHere => "a mapping made where its thread could not be stopped".to_string(),
                    Unable::Failed(error) => format!("a mapping that cannot be registered ({error})"),
                    Unable::Ended(status) => {
                        self.met = Some(Met::Ended(status));
                        return false;
                    }
                };
                self.leave_out(reason);
                false
            }
        }
    }

    fn try_register(&mut self, owner: &Owner, ranges: &[(u64, u64)]) -> Result<(), Unable> {
        let space = &mut self.all[owner.space];
        let Some(errand_address) = space.errand_address else { return Err(Unable::NotHere) };
        let mut errand = Errand::begin(owner.thread, errand_address)?;
        let mut registered = Ok(());
        if space.faults.is_none() {
            registered = match errand.call(USERFAULTFD, &[userfault::FLAGS])? {
                descriptor @ 0.. => {
                    let copy = copy_of(owner.process, descriptor as i32);
                    // The program's table of descriptors is as before.
                    errand.call(CLOSE, &[descriptor as u64])?;
                    copy.and_then(SinglePageFaults::new).map(|faults| space.faults = Some(faults))
                }
                errno => Err(std::io::Error::from_raw_os_error(-errno as i32)),
            };
        }
        if let (Ok(()), Some(faults)) = (&registered, &space.faults) {
            for (start, end) in ranges {
                registered = registered.and_then(|()| faults.register(*start, end - start));
                // Where the kernel has no large pages there is nothing to be advised.
                errand.call(MADVISE, &[*start, end - start, MADV_NOHUGEPAGE])?;
                // MAP_POPULATE may have put pages in place.
                errand.call(MADVISE, &[*start, end - start, MADV_DONTNEED])?;
            }
        }
        self.ended(errand.end()?);
        Ok(registered?)
    }

    /// A thread is back from its errand.
    fn ended(&mut self, stop: Stop) {
        if stop == Stop::GroupStop {
            self.met = Some(Met::GroupStop);
        }
    }

    /// The pages in place between two addresses of what has windows.
    pub(super) fn in_place(&mut self, owner: &Owner, start: u64, end: u64, touches: &mut Touches) -> Pages {
        let mut pages = Pages { space: owner.space, found: Vec::new(), readable: true };
        for (start, end) in touches.space(owner.space).within(start, end) {
            match self.pages(owner, start, end) {
                Some(found) if found.iter().all(|pages| pages.of_file) => pages.found.extend(found),
                Some(_) => {
                    self.leave_out("a mapping that was written".to_string());
                    touches.space(owner.space).remove(start, end);
                }
                None => pages.readable = false,
            }
        }
        pages
    }

    /// True if everything that was in place had faulted; otherwise this window is not proven.
    pub(super) fn compare(&mut self, pages: &Pages, touches: &mut Touches) -> bool {
        let proven = pages.all_faulted(touches);
        self.unproven |= !proven;
        self.unseen_pages += pages.unseen(touches);
        proven
    }

    fn pages(&mut self, owner: &Owner, start: u64, end: u64) -> Option<Vec<userfault::InPlace>> {
        let space = &mut self.all[owner.space];
        if space.pagemap.is_none() {
            space.pagemap = File::open(format!("/proc/{}/pagemap", owner.thread.as_raw_nonzero())).ok();
        }
        in_place(space.pagemap.as_ref()?, start, end).ok()
    }

    /// Prove a window of this memory, and drop what is in place; false if the thread cannot be sent
    /// on an errand at this moment.
    pub(super) fn end_window(&mut self, owner: &Owner, touches: &mut Touches) -> bool {
        let Some(errand_address) = self.all[owner.space].errand_address else { return false };
        let mut errand = match Errand::begin(owner.thread, errand_address) {
            Ok(errand) => errand,
            Err(unable) => {
                self.note(unable);
                return false;
            }
        };
        let pages = self.in_place(owner, 0, u64::MAX, touches);
        self.compare(&pages, touches);
        for (start, range) in touches.space(owner.space).ranges() {
            match errand.call(MADVISE, &[start, range.end - start, MADV_DONTNEED]) {
                Ok(0) => touches.space(owner.space).dropped(start, range.end),
                Ok(errno) => {
                    let error = std::io::Error::from_raw_os_error(-errno as i32);
                    self.leave_out(format!("a mapping that cannot be dropped ({error})"));
                    touches.space(owner.space).remove(start, range.end);
                }
                Err(unable) => {
                    self.unproven = true;
                    self.note(unable);
                    return true;
                }
            }
        }
        match errand.end() {
            Ok(stop) => self.ended(stop),
            Err(unable) => self.note(unable),
        }
        true
    }

    /// A thread that has ended on its errand; for other reasons another errand is tried.
    fn note(&mut self, unable: Unable) {
        if let Unable::Ended(status) = unable {
            self.met = Some(Met::Ended(status));
        }
    }
}

fn copy_of(process: Pid, descriptor: i32) -> std::io::Result<std::os::fd::OwnedFd> {
    let process = pidfd_open(process, PidfdFlags::empty())?;
    Ok(pidfd_getfd(process, descriptor as ForeignRawFd, PidfdGetfdFlags::empty())?)
}

/// Address of the room for errands in the vdso of a process: bytes behind its last one, which
/// nobody uses.
fn padding(process: Pid) -> Option<u64> {
    let maps = kernel_files::text(format!("/proc/{}/maps", process.as_raw_nonzero()))?;
    let vdso = maps.lines().filter_map(MapsLine::parse).find(|line| line.path == "[vdso]")?;
    // Two more words, which may be the end of a string that is there.
    let room = ERRAND_BYTES + 16;
    let start = vdso.end.checked_sub(room)?;
    let mut bytes = vec![1; room as usize];
    let read = read_memory(process, start, &mut bytes).ok()?;
    (read == bytes.len() && bytes.iter().all(|byte| *byte == 0)).then(|| vdso.end - ERRAND_BYTES)
}
