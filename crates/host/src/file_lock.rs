//! Locks of open files (flock(2)), which the kernel releases when their process ends, however it
//! ends.

use std::fs::File;
use std::io;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// Lock a file as long as it is open; false: another process has it.
pub fn try_lock(file: &File) -> io::Result<bool> {
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
