//! Threads of another program that are traced (ptrace(2)): they stop at their calls, go on, and
//! make a call for their tracer.
//!
//! Only the thread that [`seize`]d them may do so. When it ends, the kernel lets them go on, so
//! what this module changes in a thread is right at any moment without a tracer, too ([`Errand`]).
//! For x86-64.

mod errand;

use std::io;
use std::mem::MaybeUninit;

use rustix::process::Pid;

use crate::checked;

pub use errand::{ERRAND_BYTES, Errand, Unable, prepare};

/// A thread that has stopped, or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadChange {
    /// The thread waits for [`resume`].
    Stopped(Stop),
    /// The thread has ended, with a status as wait(2) has it.
    Ended(i32),
}

/// Reason for which a thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The thread is about to make a call.
    Call(CallMade),
    /// A call has returned this, or a negative errno.
    Returned(i64),
    /// A signal is about to be delivered.
    Signal(i32),
    /// The thread was interrupted, or is new.
    Interrupted,
    /// The thread's process is stopped by a signal.
    GroupStop,
    /// The thread has started a thread or process with this number.
    Began(i32),
    /// The thread executes a new program; before, it had this number.
    Executed(i32),
    /// Something else.
    Other,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallMade {
    /// Number.
    pub number: u64,
    /// Arguments.
    pub arguments: [u64; 6],
}

/// Trace a thread and everything that it starts.
pub fn seize(thread: Pid) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC;
    request(libc::PTRACE_SEIZE, thread, 0, options as usize)
}

/// The next change of any traced thread, if there is one: its number, and what it is. ECHILD: there
/// is none any more.
pub fn next_change() -> io::Result<Option<(Pid, ThreadChange)>> {
    change_of(-1, libc::WNOHANG)
}

/// Wait for the next change of this thread.
pub fn wait_for_change(thread: Pid) -> io::Result<ThreadChange> {
    loop {
        if let Some((_, change)) = change_of(thread.as_raw_nonzero().get(), 0)? {
            return Ok(change);
        }
    }
}

fn change_of(thread: libc::pid_t, flags: libc::c_int) -> io::Result<Option<(Pid, ThreadChange)>> {
    loop {
        let mut status = 0;
        // Not for the children of other threads of this process, which wait for them themselves.
        let flags = libc::__WALL | libc::__WNOTHREAD | flags;
        // SAFETY: the kernel writes one int through the pointer.
        let number = unsafe { libc::waitpid(thread, &raw mut status, flags) };
        if number < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        let Some(thread) = Pid::from_raw(number) else { return Ok(None) };
        let ended = libc::WIFEXITED(status) || libc::WIFSIGNALED(status);
        let change =
            if ended { ThreadChange::Ended(status) } else { ThreadChange::Stopped(stop(thread, status)) };
        return Ok(Some((thread, change)));
    }
}

/// The meaning of a status; a thread that is killed meanwhile stops for nothing.
fn stop(thread: Pid, status: libc::c_int) -> Stop {
    const CALL: libc::c_int = libc::SIGTRAP | 0x80;
    /// PTRACE_EVENT_STOP.
    const EVENT_STOP: libc::c_int = 128;
    let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
    let message = || event_message(thread).unwrap_or(0) as i32;
    match (event, signal) {
        (0, CALL) => call_stop(thread).unwrap_or(Stop::Other),
        (0, signal) => Stop::Signal(signal),
        (EVENT_STOP, libc::SIGTRAP) => Stop::Interrupted,
        (EVENT_STOP, _) => Stop::GroupStop,
        (libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK, _) => {
            Stop::Began(message())
        }
        (libc::PTRACE_EVENT_EXEC, _) => Stop::Executed(message()),
        _ => Stop::Other,
    }
}

fn call_stop(thread: Pid) -> io::Result<Stop> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    request(
        libc::PTRACE_GET_SYSCALL_INFO,
        thread,
        size_of::<libc::ptrace_syscall_info>(),
        info.as_mut_ptr() as usize,
    )?;
    // SAFETY: all bits zero are a value of it, and the kernel has written a part of it.
    let info = unsafe { info.assume_init() };
    Ok(match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: the kernel has written this member, as `op` says.
            let entry = unsafe { info.u.entry };
            Stop::Call(CallMade { number: entry.nr, arguments: entry.args })
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: as above.
            Stop::Returned(unsafe { info.u.exit }.sval)
        }
        _ => Stop::Other,
    })
}

/// Let a stopped thread go on to its next call, with this signal (0: none).
pub fn resume(thread: Pid, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, thread, 0, signal as usize)
}

/// Let a thread of a process that a signal has stopped wait for the signal that continues it.
pub fn stay_stopped(thread: Pid) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, thread, 0, 0)
}

/// Stop a running thread.
pub fn interrupt(thread: Pid) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, thread, 0, 0)
}

/// Trace a stopped thread no longer.
pub fn detach(thread: Pid, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, thread, 0, signal as usize)
}

fn event_message(thread: Pid) -> io::Result<u64> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, thread, 0, &raw mut message as usize)?;
    Ok(message)
}

/// The registers of a stopped thread.
#[derive(Clone, Copy, Debug)]
pub struct Registers(libc::user_regs_struct);

impl Registers {
    /// Read them.
    pub fn of(thread: Pid) -> io::Result<Self> {
        let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
        request(libc::PTRACE_GETREGS, thread, 0, registers.as_mut_ptr() as usize)?;
        // SAFETY: the kernel has written all of it.
        Ok(Self(unsafe { registers.assume_init() }))
    }

    /// True if the call that has returned was not made ([`Self::skip_call`]).
    pub fn is_skipped(&self) -> bool {
        self.0.orig_rax == u64::MAX
    }

    /// Set them.
    pub fn set(&self, thread: Pid) -> io::Result<()> {
        request(libc::PTRACE_SETREGS, thread, 0, &raw const self.0 as usize)
    }

    /// Argument of the call that it is about to make, by index.
    pub fn set_argument(&mut self, index: usize, value: u64) {
        let Self(registers) = self;
        let arguments = [
            &mut registers.rdi,
            &mut registers.rsi,
            &mut registers.rdx,
            &mut registers.r10,
            &mut registers.r8,
            &mut registers.r9,
        ];
        *arguments.into_iter().nth(index).expect("a call has six arguments") = value;
    }

    /// Have the call that it is about to make not made: it returns ENOSYS, or what
    /// [`Self::set_result`] says.
    pub fn skip_call(&mut self) {
        self.0.orig_rax = u64::MAX;
    }

    /// Result of the call that has returned.
    pub fn set_result(&mut self, result: i64) {
        self.0.rax = result as u64;
    }

    /// True if the program is one of 64 bits.
    pub fn is_64_bit(&self) -> bool {
        const USER_CS: u64 = 0x33;
        self.0.cs == USER_CS
    }
}

/// Write eight bytes at a time into a stopped thread's memory, whatever its protection.
pub fn write_memory(thread: Pid, address: u64, words: &[u64]) -> io::Result<()> {
    for (index, word) in words.iter().enumerate() {
        request(libc::PTRACE_POKEDATA, thread, address as usize + index * 8, *word as usize)?;
    }
    Ok(())
}

/// Read a process's memory (process_vm_readv(2)).
pub fn read_memory(process: Pid, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the kernel writes into `into` at most as many bytes as it has; the other address is
    // of the other process.
    let read = unsafe { libc::process_vm_readv(process.as_raw_nonzero().get(), &local, 1, &remote, 1, 0) };
    checked(read).map(|read| read as usize)
}

/// A request whose `data` is a number, or points to memory of the kind and size that the request
/// names.
fn request(number: libc::c_uint, thread: Pid, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: each caller gives either no pointer, or one to memory of its own that is as large as
    // the kernel reads or writes (ptrace(2)). `address` is a size, or an address of the other
    // process.
    checked(unsafe { libc::ptrace(number, thread.as_raw_nonzero().get(), address, data) }).map(drop)
}

#[cfg(test)]
mod tests;
