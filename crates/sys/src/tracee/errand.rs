//! Calls that a stopped thread makes for its tracer.
//!
//! The thread is sent to a few instructions in the padding of its vdso: the call, and then
//! everything that puts its registers and its signal mask back and goes on where it was. As long as
//! there is a tracer, that second part is not used. Without one, the thread runs through it by
//! itself, so a tracer that is killed at any moment leaves a program that goes on as if nothing had
//! been.

use std::io;

use rustix::process::Pid;

use super::{Registers, Stop, ThreadChange, read_memory, request, resume, wait_for_change, write_memory};

/// The instructions, in words of eight bytes.
const CODE: [u8; 104] = code();
/// The words behind them: a signal mask, nine registers, and where to go on.
const DATA_WORDS: usize = 11;
/// Bytes of both.
pub const ERRAND_BYTES: u64 = CODE.len() as u64 + DATA_WORDS as u64 * 8;
/// The call of the tracer.
const CALL: u64 = 0;
/// The way back.
const BACK: u64 = 2;

/// Signal masks are of 64 signals.
const ALL_SIGNALS: u64 = u64::MAX;
/// Bytes of the instruction `syscall`.
const CALL_BYTES: u64 = 2;

const fn code() -> [u8; 104] {
    const TO_MASK: [u8; 2] = (104u16 - 19).to_le_bytes();
    let mut code = [0x90; 104];
    let parts: [&[u8]; 6] = [
        &[0x0f, 0x05],                                     // syscall
        &[0xb8, 14, 0, 0, 0],                              // mov eax, rt_sigprocmask
        &[0xbf, 2, 0, 0, 0],                               // mov edi, SIG_SETMASK
        &[0x48, 0x8d, 0x35, TO_MASK[0], TO_MASK[1], 0, 0], // lea rsi, [rip + the mask]
        &[0xba, 0, 0, 0, 0],                               // mov edx, 0
        &[0x41, 0xba, 8, 0, 0, 0],                         // mov r10d, 8
    ];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut byte = 0;
        while byte < parts[part].len() {
            code[at] = parts[part][byte];
            (at, byte) = (at + 1, byte + 1);
        }
        part += 1;
    }
    code[at] = 0x0f; // syscall
    code[at + 1] = 0x05;
    at += 2;
    // mov rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11 from the words behind the mask.
    let moves: [[u8; 3]; 9] = [
        [0x48, 0x8b, 0x05],
        [0x48, 0x8b, 0x0d],
        [0x48, 0x8b, 0x15],
        [0x48, 0x8b, 0x35],
        [0x48, 0x8b, 0x3d],
        [0x4c, 0x8b, 0x05],
        [0x4c, 0x8b, 0x0d],
        [0x4c, 0x8b, 0x15],
        [0x4c, 0x8b, 0x1d],
    ];
    let mut index = 0;
    while index < moves.len() {
        let distance = (104 + 8 + index * 8 - (at + 7)) as u8;
        let bytes = [moves[index][0], moves[index][1], moves[index][2], distance, 0, 0, 0];
        let mut byte = 0;
        while byte < 7 {
            code[at + byte] = bytes[byte];
            byte += 1;
        }
        (at, index) = (at + 7, index + 1);
    }
    // jmp [rip + the last word]
    let distance = (104 + 10 * 8 - (at + 6)) as u8;
    let bytes = [0xff, 0x25, distance, 0, 0, 0];
    let mut byte = 0;
    while byte < 6 {
        code[at + byte] = bytes[byte];
        byte += 1;
    }
    code
}

/// Reason for which a thread cannot make calls for its tracer at this moment.
#[derive(Debug)]
pub enum Unable {
    /// The thread is where it cannot be sent away from: in a restartable sequence, or where an
    /// interrupted call is about to be restarted. Another time it can.
    NotHere,
    /// The thread has ended.
    Ended(Option<i32>),
    /// A request failed.
    Failed(io::Error),
}

impl From<io::Error> for Unable {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ESRCH) => Self::Ended(None),
            _ => Self::Failed(error),
        }
    }
}

/// A stopped thread that is on an errand for its tracer.
#[derive(Debug)]
pub struct Errand {
    thread: Pid,
    address: u64,
    before: Registers,
    mask: u64,
    /// The stop from which it goes on next.
    arrived: Stop,
}

/// Put the instructions at `address`: [`ERRAND_BYTES`] that nobody uses, in executable memory.
pub fn prepare(thread: Pid, address: u64) -> io::Result<()> {
    let words: Vec<u64> = CODE
        .chunks_exact(8)
        .map(|word| word.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)))
        .collect();
    write_memory(thread, address, &words)
}

impl Errand {
    /// Send a thread away that was [`Stop::Interrupted`], or has [`Stop::Returned`] from a call.
    /// The instructions are at `address`, and no other thread of its process is there.
    pub fn begin(thread: Pid, address: u64) -> Result<Self, Unable> {
        let before = Registers::of(thread)?;
        if before.is_restarting() || in_restartable_sequence(thread, &before)? {
            return Err(Unable::NotHere);
        }
        let errand = Self { thread, address, before, mask: signal_mask(thread)?, arrived: Stop::Other };
        errand.write_back(&before)?;
        // From here on it is right without a tracer: first the registers, then the mask.
        let mut away = before;
        (away.0.rip, away.0.orig_rax) = (address + BACK, u64::MAX);
        away.set(thread)?;
        set_signal_mask(thread, ALL_SIGNALS)?;
        Ok(errand)
    }

    /// Take back a call that a thread is about to make: it will make it again. It must have stopped
    /// with [`Stop::Call`].
    pub fn take_back_call(thread: Pid, address: u64) -> Result<(), Unable> {
        let at_call = Registers::of(thread)?;
        let mut before = at_call;
        before.0.rip -= CALL_BYTES;
        (before.0.rax, before.0.orig_rax) = (at_call.0.orig_rax, u64::MAX);
        let errand = Self { thread, address, before, mask: signal_mask(thread)?, arrived: Stop::Other };
        errand.write_back(&before)?;
        let mut away = before;
        // No call has the number -1, so nothing is called.
        (away.0.rip, away.0.rax) = (address + BACK, at_call.0.rax);
        away.set(thread)?;
        resume(thread, 0)?;
        match wait_for_change(thread)? {
            ThreadChange::Stopped(Stop::Returned(_)) => Ok(errand.before.set(thread)?),
            ThreadChange::Ended(status) => Err(Unable::Ended(Some(status))),
            ThreadChange::Stopped(_) => Err(Unable::Failed(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Have it make a call; what it returns, or a negative errno.
    pub fn call(&mut self, number: u64, arguments: &[u64]) -> Result<i64, Unable> {
        let mut away = self.before;
        (away.0.rip, away.0.rax, away.0.orig_rax) = (self.address + CALL, number, u64::MAX);
        for index in 0..6 {
            away.set_argument(index, arguments.get(index).copied().unwrap_or(0));
        }
        away.set(self.thread)?;
        loop {
            match self.go_on()? {
                // It is on the way back, in case the tracer ends here.
                Stop::Returned(result) => return Ok(result),
                stop => self.arrived = stop,
            }
        }
    }

    /// Back to where it was. It is stopped then, and so [`Stop::Interrupted`] or
    /// [`Stop::GroupStop`].
    pub fn end(mut self) -> Result<Stop, Unable> {
        super::interrupt(self.thread)?;
        loop {
            match self.go_on()? {
                stop @ (Stop::Interrupted | Stop::GroupStop) => {
                    set_signal_mask(self.thread, self.mask)?;
                    self.before.set(self.thread)?;
                    return Ok(stop);
                }
                stop => self.arrived = stop,
            }
        }
    }

    /// Up to its next stop. Of signals only SIGSTOP can arrive meanwhile.
    fn go_on(&mut self) -> Result<Stop, Unable> {
        let signal = if let Stop::Signal(signal) = self.arrived { signal } else { 0 };
        self.arrived = Stop::Other;
        resume(self.thread, signal)?;
        match wait_for_change(self.thread)? {
            ThreadChange::Stopped(stop) => Ok(stop),
            ThreadChange::Ended(status) => Err(Unable::Ended(Some(status))),
        }
    }

    /// Set the values that the way back puts back.
    fn write_back(&self, to: &Registers) -> io::Result<()> {
        let registers = &to.0;
        let words: [u64; DATA_WORDS] = [
            self.mask,
            registers.rax,
            registers.rcx,
            registers.rdx,
            registers.rsi,
            registers.rdi,
            registers.r8,
            registers.r9,
            registers.r10,
            registers.r11,
            registers.rip,
        ];
        write_memory(self.thread, self.address + CODE.len() as u64, &words)
    }
}

impl Registers {
    /// True if an interrupted call is about to be restarted, or has returned for a signal: the
    /// kernel then looks at the registers and at the mask that the call has set.
    fn is_restarting(&self) -> bool {
        // ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND and ERESTART_RESTARTBLOCK of the kernel.
        const RESTARTS: [i64; 4] = [-512, -513, -514, -516];
        let result = self.0.rax as i64;
        let in_call = self.0.orig_rax as i64 >= 0;
        in_call && (RESTARTS.contains(&result) || result == -i64::from(libc::EINTR))
    }
}

/// True if the thread is in a restartable sequence (rseq(2)), which the kernel would not abort if
/// the thread came back to it.
fn in_restartable_sequence(thread: Pid, registers: &Registers) -> io::Result<bool> {
    let mut found = std::mem::MaybeUninit::<libc::ptrace_rseq_configuration>::zeroed();
    let size = size_of::<libc::ptrace_rseq_configuration>();
    match request(libc::PTRACE_GET_RSEQ_CONFIGURATION, thread, size, found.as_mut_ptr() as usize) {
        // This kernel has no such sequences (CONFIG_RSEQ).
        Err(error) if error.raw_os_error() == Some(libc::EIO) => return Ok(false),
        result => result?,
    }
    // SAFETY: all bits zero are a value of it, and the kernel has written a part of it.
    let registered = unsafe { found.assume_init() }.rseq_abi_pointer;
    if registered == 0 {
        return Ok(false);
    }
    let word = |address: u64| {
        let mut bytes = [0; 8];
        read_memory(thread, address, &mut bytes).map(|_| u64::from_ne_bytes(bytes))
    };
    // struct rseq has the address of a struct rseq_cs at 8: version and flags, start, length,
    // address of the abort.
    let sequence = word(registered + 8)?;
    if sequence == 0 {
        return Ok(false);
    }
    let (start, len) = (word(sequence + 8)?, word(sequence + 16)?);
    Ok(registers.0.rip.wrapping_sub(start) < len)
}

fn signal_mask(thread: Pid) -> io::Result<u64> {
    let mut mask = 0u64;
    request(libc::PTRACE_GETSIGMASK, thread, size_of::<u64>(), &raw mut mask as usize)?;
    Ok(mask)
}

fn set_signal_mask(thread: Pid, mask: u64) -> io::Result<()> {
    request(libc::PTRACE_SETSIGMASK, thread, size_of::<u64>(), &raw const mask as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a disassembler shows, each distance ends in the words behind them.
    #[test]
    fn distances_end_in_the_words_behind() {
        let distance = |at: usize| CODE[at + 3] as usize + at + 7;
        assert_eq!(distance(12), 104, "the mask");
        for index in 0..9 {
            assert_eq!(distance(32 + index * 7), 104 + 8 + index * 8);
        }
        assert_eq!((CODE[95], CODE[96]), (0xff, 0x25));
        assert_eq!(CODE[97] as usize + 95 + 6, 104 + 80, "where to go on");
    }
}
