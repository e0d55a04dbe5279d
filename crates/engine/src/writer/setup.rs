//! Set-up of a writer: open, allocate, map, advise; and the meaning of failures.

use std::io;

use pagewise_model::SyncCall;
use pagewise_model::method::options::SetUpStep;
use pagewise_protocol::CallFailure;
use pagewise_sys::{Advice, AnonymousMemory, WritableMapping};
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::WriteTarget;
use crate::failure::{failed, refusal, refused, without_effect};
use crate::file::map_advice;

/// A job that no machine can do: the cell is unavailable, and `detail` is the reason.
pub(super) fn impossible(path: &str, detail: String) -> CallFailure {
    CallFailure { unavailable: 1, ..refusal("open", path, detail) }
}

/// A failed call that needs space in the filesystem; without space the cell is unavailable.
#[cold]
pub(super) fn write_failure(call: &str, errno: Errno, path: &str, offset: u64) -> CallFailure {
    let failure = failed(call, errno.into(), path, offset);
    if errno != Errno::NOSPC && errno != Errno::DQUOT {
        return failure;
    }
    let detail = format!("{}: the filesystem has no space for the file", failure.detail);
    CallFailure { detail, unavailable: 1, ..failure }
}

/// Like [`write_failure`], also for calls that a system may not support; for set-up.
fn refused_or_full(call: &str, error: io::Error, path: &str) -> CallFailure {
    match Errno::from_io_error(&error) {
        Some(errno @ (Errno::NOSPC | Errno::DQUOT)) => write_failure(call, errno, path, 0),
        _ => refused(call, error, path),
    }
}

impl WriteTarget {
    /// Open the file with `access`; with O_DIRECT if `direct`, tried out with a read, because it
    /// may be accepted at open and refused at the first transfer.
    pub(super) fn open(&self, access: OFlags, direct: bool) -> Result<OwnedFd, CallFailure> {
        let synced = if self.sync_call == SyncCall::ODsync { OFlags::DSYNC } else { OFlags::empty() };
        let flags = access | synced | OFlags::CLOEXEC;
        if !direct {
            return rustix::fs::open(&self.path, flags, Mode::empty())
                .map_err(|errno| failed("open", errno.into(), &self.path, 0));
        }
        let file =
            rustix::fs::open(&self.path, flags | OFlags::from_bits_retain(self.direct_flag), Mode::empty())
                .map_err(|errno| refused("open(O_DIRECT)", errno.into(), &self.path))?;
        let mut block = self.memory(self.direct_alignment)?;
        rustix::io::pread(&file, block.bytes_mut(), 0)
            .map_err(|errno| refused("pread(O_DIRECT)", errno.into(), &self.path))?;
        Ok(file)
    }

    /// fallocate(2) of the whole file, if the method requires it. glibc's posix_fallocate(3) would
    /// write zeros if the filesystem does not support allocation; the system call returns an error.
    pub(super) fn allocate_for(&self, file: &OwnedFd) -> Result<(), CallFailure> {
        for (word, step) in &self.effects.steps {
            match step {
                SetUpStep::Allocate => self.allocate(file)?,
                _ => return Err(without_effect(word, &self.path)),
            }
        }
        Ok(())
    }

    fn allocate(&self, file: &OwnedFd) -> Result<(), CallFailure> {
        rustix::fs::fallocate(file, FallocateFlags::empty(), 0, self.file_bytes)
            .map_err(|errno| refused_or_full("fallocate", errno.into(), &self.path))
    }

    /// Open and map the file and apply the method's options, in the order written. The mapping is
    /// made when the first option needs it, so that an allocation written before it happens before
    /// it. The descriptor is for calls that sync.
    pub(super) fn map(&self) -> Result<(WritableMapping, OwnedFd), CallFailure> {
        let file = self.open(OFlags::RDWR, false)?;
        let map = || {
            WritableMapping::new(&file, self.file_bytes as usize, self.effects.populate)
                .map_err(|error| refused("mmap", error, &self.path))
        };
        let mut mapping = None;
        for (word, step) in &self.effects.steps {
            if *step == SetUpStep::Allocate {
                self.allocate(&file)?;
                continue;
            }
            let mapped = match &mut mapping {
                Some(mapped) => mapped,
                none => none.insert(map()?),
            };
            match *step {
                SetUpStep::Advise(_, Some(advice)) => self.advise(mapped, map_advice(advice))?,
                SetUpStep::Touch => mapped.touch(),
                SetUpStep::Lock => {
                    mapped.lock().map_err(|error| lock_failure(error, &self.path))?;
                }
                SetUpStep::Allocate | SetUpStep::Advise(_, None) => {
                    return Err(without_effect(word, &self.path));
                }
            }
        }
        let mapping = mapping.map_or_else(map, Ok)?;
        Ok((mapping, file))
    }

    fn advise(&self, mapping: &WritableMapping, advice: Advice) -> Result<(), CallFailure> {
        let advised = mapping.advise(0..mapping.bytes().len(), advice);
        advised.map_err(|error| match advice {
            Advice::PopulateWrite => populate_failure(error, &self.path, 0),
            _ => refused(advice.name(), error, &self.path),
        })
    }

    /// Memory for a buffer, touched so that no fault falls into the measured region.
    pub(super) fn memory(&self, len: usize) -> Result<AnonymousMemory, CallFailure> {
        let mut memory = AnonymousMemory::new(len).map_err(|error| failed("mmap", error, &self.path, 0))?;
        memory.bytes_mut().fill(0);
        Ok(memory)
    }
}

/// Failure of MADV_POPULATE_WRITE. EFAULT corresponds to a store that would have ended the process
/// (SIGBUS): the filesystem has no space, or the file has become shorter.
#[cold]
pub(super) fn populate_failure(error: io::Error, path: &str, offset: u64) -> CallFailure {
    let call = Advice::PopulateWrite.name();
    if Errno::from_io_error(&error) != Some(Errno::FAULT) {
        return CallFailure { offset, ..refused_or_full(call, error, path) };
    }
    let failure = failed(call, error, path, offset);
    let detail = format!(
        "{}: a store there would end the process, because the filesystem has no space or the file has become shorter",
        failure.detail
    );
    CallFailure { detail, unavailable: 1, ..failure }
}

/// Failure of mlock(2). ENOMEM and EAGAIN mean a limit (RLIMIT_MEMLOCK), too little memory or a
/// full filesystem.
fn lock_failure(error: io::Error, path: &str) -> CallFailure {
    let limited = matches!(Errno::from_io_error(&error), Some(Errno::NOMEM | Errno::AGAIN));
    let failure = refused("mlock", error, path);
    if !limited {
        return failure;
    }
    let detail = format!("{}: more than RLIMIT_MEMLOCK, the memory or the filesystem allows", failure.detail);
    CallFailure { detail, unavailable: 1, ..failure }
}
