//! Calls of a traced program that change its mappings, at their entry and when they return.

use std::fs::File;
use std::io::{self, Read};

use pagewise_model::watched::Call;
use pagewise_sys::tracee::{CallMade, Registers, read_memory};
use rustix::io::Errno;
use rustix::process::Pid;

use super::Windows;
use super::spaces::{FileOfCall, Owner, file_of};
use crate::process::has_signal;
use crate::watch::Watch;
use crate::watch::touches::Range;

// Calls of x86-64.
const MMAP: u64 = 9;
const MPROTECT: u64 = 10;
const MUNMAP: u64 = 11;
const MREMAP: u64 = 25;
const CLONE: u64 = 56;
const VFORK: u64 = 58;
const EXECVE: u64 = 59;
const EXIT: u64 = 60;
const PRCTL: u64 = 157;
const EXIT_GROUP: u64 = 231;
const SECCOMP: u64 = 317;
const EXECVEAT: u64 = 322;
const PKEY_MPROTECT: u64 = 329;
const CLONE3: u64 = 435;

const PR_SET_SECCOMP: u64 = 22;
const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;
const PROT_READ: u64 = 1;
const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_SHARED_VALIDATE: u64 = 3;
const MAP_TYPE: u64 = 15;
const MAP_FIXED: u64 = 0x10;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_HUGETLB: u64 = 0x4_0000;
const CLONE_VM: u64 = 0x100;
/// Index of the flags of mmap(2).
const FLAGS: usize = 3;

/// Calls that a program confines are not made for its tracer.
const CONFINED: &str = "a program that confines its calls (seccomp, syscall user dispatch)";

/// True if what a thread starts by this call shares its memory.
pub(super) fn shares_memory(thread: Pid, call: &CallMade) -> bool {
    match call.number {
        CLONE => call.arguments[0] & CLONE_VM != 0,
        CLONE3 => {
            let mut flags = [0; 8];
            let read = read_memory(thread, call.arguments[0], &mut flags);
            read.is_ok() && u64::from_ne_bytes(flags) & CLONE_VM != 0
        }
        VFORK => true,
        _ => false,
    }
}

/// The mapping that a call asks for, if its faults may be touches: a file, read-only, no code.
fn wanted(thread: Pid, call: &CallMade) -> Option<FileOfCall> {
    let [_, _, protection, flags, descriptor, _] = call.arguments;
    let readable = protection & (PROT_READ | PROT_WRITE | PROT_EXEC) == PROT_READ;
    if call.number != MMAP || !readable || flags & (MAP_ANONYMOUS | MAP_HUGETLB) != 0 {
        return None;
    }
    file_of(thread, descriptor as i32)
}

/// True if a call asks for a shared mapping. One of a descriptor for reading only cannot be
/// registered, so a private one is made instead, which shows the same pages as long as it is not
/// written.
fn asks_for_shared(call: &CallMade) -> bool {
    [MAP_SHARED, MAP_SHARED_VALIDATE].contains(&(call.arguments[FLAGS] & MAP_TYPE))
}

/// True if a signal ends a process that neither handles nor ignores it.
fn ends_by_default(signal: i32) -> bool {
    use signal_hook::consts::{SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};
    ![SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH].contains(&signal)
}

/// True if a process handles or ignores a signal.
fn is_handled(thread: Pid, signal: i32) -> bool {
    let thread = thread.as_raw_nonzero().get() as u32;
    ["SigCgt", "SigIgn"].iter().any(|mask| has_signal(thread, mask, signal))
}

/// True if a call asks for what the shared mapping of a descriptor for reading only would not
/// permit, and the private one in its place would: to be written to.
fn is_denied(call: &CallMade, owner: &Owner, watch: &mut Watch) -> bool {
    let [first, second, protection, ..] = call.arguments;
    matches!(call.number, MPROTECT | PKEY_MPROTECT)
        && protection & PROT_WRITE != 0
        && watch
            .touches()
            .space(owner.space)
            .is_made_private(first, first.saturating_add(whole_pages(second)))
}

/// True if a descriptor is of a file of code (ELF).
fn is_program(thread: Pid, descriptor: i32) -> bool {
    let mut magic = [0; 4];
    let file = File::open(format!("/proc/{}/fd/{descriptor}", thread.as_raw_nonzero()));
    file.and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

/// The kernel maps and unmaps whole pages.
fn whole_pages(len: u64) -> u64 {
    len.checked_next_multiple_of(rustix::param::page_size() as u64).unwrap_or(u64::MAX)
}

impl Windows {
    /// A thread is about to make a call.
    pub(super) fn about_to_call(&mut self, number: i32, call: CallMade, watch: &mut Watch) -> io::Result<()> {
        let [first, second, third, flags, ..] = call.arguments;
        let end = first.saturating_add(whole_pages(second));
        let owner = self.owner(number);
        let is_moved = |call: u64| matches!(call, MUNMAP | MREMAP | MPROTECT | PKEY_MPROTECT);
        let is_fixed = flags & MAP_FIXED != 0 && flags & MAP_FIXED_NOREPLACE == 0;
        if (is_moved(call.number) || call.number == MMAP && is_fixed)
            && self.spaces.holds_errands(owner.space, first, end)
        {
            self.spaces.shut(owner.space, "a program that changes its vdso", watch.touches());
        }
        match call.number {
            MMAP => {
                if is_fixed {
                    self.unmap(number, first, end, watch);
                }
                if asks_for_shared(&call)
                    && wanted(owner.thread, &call).is_some_and(|file| file.for_reading_only)
                {
                    let mut registers = Registers::of(owner.thread)?;
                    registers.set_argument(FLAGS, flags & !MAP_TYPE | MAP_PRIVATE);
                    registers.set(owner.thread)?;
                }
            }
            MUNMAP | MREMAP => self.unmap(number, first, end, watch),
            // A call that executes a program may fail, and then nothing has ended.
            EXECVE | EXECVEAT if !self.is_shared(&owner) => self.prove(number, 0, u64::MAX, watch),
            EXIT_GROUP if !self.is_shared(&owner) => self.end_memory(number, watch),
            EXIT if self.threads.values().filter(|thread| thread.space == owner.space).count() == 1 => {
                self.end_memory(number, watch);
            }
            _ if is_denied(&call, &owner, watch) => {
                let mut registers = Registers::of(owner.thread)?;
                registers.skip_call();
                registers.set(owner.thread)?;
            }
            MPROTECT | PKEY_MPROTECT if third & PROT_WRITE != 0 => {
                self.spaces.written(owner.space, first, end, watch.touches());
            }
            SECCOMP => self.spaces.shut(owner.space, CONFINED, watch.touches()),
            PRCTL if [PR_SET_SECCOMP, PR_SET_SYSCALL_USER_DISPATCH].contains(&first) => {
                self.spaces.shut(owner.space, CONFINED, watch.touches());
            }
            _ => {}
        }
        Ok(())
    }

    /// A signal is about to be delivered, and ends the process if it does nothing about it.
    pub(super) fn about_to_end(&mut self, number: i32, signal: i32, watch: &mut Watch) {
        let owner = self.owner(number);
        if ends_by_default(signal) && !is_handled(owner.thread, signal) && !self.is_shared(&owner) {
            self.end_memory(number, watch);
        }
    }

    /// Nothing that is unmapped has windows from now on: other threads may ask for the next one
    /// before the call returns.
    fn unmap(&mut self, number: i32, start: u64, end: u64, watch: &mut Watch) {
        self.prove(number, start, end, watch);
        let space = self.space_of(number);
        let unmapped = watch.touches().space(space).remove(start, end);
        if let Some(thread) = self.threads.get_mut(&number) {
            thread.unmapped = unmapped;
        }
    }

    /// True if another process has the same memory: the parent of one that is about to execute its
    /// program.
    fn is_shared(&self, owner: &Owner) -> bool {
        let process = owner.process.as_raw_nonzero().get();
        self.threads.values().any(|thread| thread.space == owner.space && thread.process != process)
    }

    /// The memory of this thread ends: what is in place is compared, and its touches are a part of
    /// the window.
    pub(super) fn end_memory(&mut self, number: i32, watch: &mut Watch) {
        self.prove(number, 0, u64::MAX, watch);
        let space = self.space_of(number);
        watch.touches().space(space).remove(0, u64::MAX);
    }

    /// A call has returned.
    pub(super) fn returned(
        &mut self,
        number: i32,
        call: &CallMade,
        result: i64,
        watch: &mut Watch,
    ) -> io::Result<()> {
        let [first, second, third, ..] = call.arguments;
        let owner = self.owner(number);
        let unmapped = self.threads.get_mut(&number).map(|thread| std::mem::take(&mut thread.unmapped));
        let unmapped = unmapped.unwrap_or_default();
        if matches!(call.number, MPROTECT | PKEY_MPROTECT) {
            let mut registers = Registers::of(owner.thread)?;
            if !registers.is_skipped() {
                return Ok(());
            }
            registers.set_result(-i64::from(Errno::ACCESS.raw_os_error()));
            return registers.set(owner.thread);
        }
        let Ok(result) = u64::try_from(result) else {
            // Nothing was unmapped.
            for (start, range) in unmapped {
                watch.touches().space(owner.space).add(start, range);
            }
            return Ok(());
        };
        match call.number {
            MMAP => {
                let end = result.saturating_add(whole_pages(second));
                watch.touches().space(owner.space).remove(result, end);
                if third & PROT_EXEC != 0 {
                    let file = file_of(owner.thread, call.arguments[4] as i32);
                    if let Some(file) = file.filter(|_| call.arguments[FLAGS] & MAP_ANONYMOUS == 0) {
                        if !is_program(owner.thread, call.arguments[4] as i32) {
                            self.spaces.leave_out("a file of which a part is mapped as code".to_string());
                        }
                        self.spaces.has_code(owner.space, file.number, watch.touches());
                    }
                } else if let Some(file) = wanted(owner.thread, call) {
                    let made_private = asks_for_shared(call) && file.for_reading_only;
                    let range = Range { end, file: file.number, made_private };
                    self.spaces.mapped(&owner, result, range, watch.touches());
                    self.refresh(number);
                }
            }
            MREMAP => {
                let end = result.saturating_add(whole_pages(third));
                watch.touches().space(owner.space).remove(result, end);
                // Only calls show where a mapping has moved to.
                let (process, thread) =
                    (owner.process.as_raw_nonzero().get(), owner.thread.as_raw_nonzero().get());
                let moved = Call::Remap { from: first, from_len: second, to_len: third };
                watch.report_unseen_call(process as u32, thread as u32, moved, result as i64);
                if let Some((_, range)) = unmapped.first() {
                    self.spaces.mapped(&owner, result, Range { end, ..*range }, watch.touches());
                    self.refresh(number);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
