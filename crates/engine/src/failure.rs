//! Failures of calls, in the form of the protocol.

use std::io;

use pagewise_protocol::CallFailure;
use rustix::io::Errno;

/// Errnos of a call when the machine does not support the feature behind it.
const NOT_OFFERED: [Errno; 6] =
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::PERM, Errno::ACCESS, Errno::NODEV];

/// A failed call that should work everywhere.
pub fn failed(call: &str, error: io::Error, path: &str, offset: u64) -> CallFailure {
    let place = if offset == 0 { path.to_string() } else { format!("offset {offset} of {path}") };
    let detail = format!("{call} failed at {place}: {error}");
    CallFailure {
        call: call.to_string(),
        errno: error.raw_os_error().unwrap_or(0),
        path: path.to_string(),
        offset,
        detail,
        unavailable: 0,
    }
}

/// A failed call that some kernels, filesystems or policies refuse; other errors remain failures.
pub fn refused(call: &str, error: io::Error, path: &str) -> CallFailure {
    let not_offered = error.kind() == io::ErrorKind::Unsupported
        || NOT_OFFERED.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    let detail = format!("{call} was refused for {path}: {error}");
    CallFailure { detail, unavailable: u32::from(not_offered), ..failed(call, error, path, 0) }
}

/// A senseless request: no call was made.
pub fn refusal(call: &str, path: &str, detail: String) -> CallFailure {
    CallFailure {
        call: call.to_string(),
        errno: 0,
        path: path.to_string(),
        offset: 0,
        detail,
        unavailable: 0,
    }
}

/// An option that this access does nothing for, which must not be measured under its name.
pub fn without_effect(word: &str, path: &str) -> CallFailure {
    refusal("open", path, format!("option '{word}' has no effect on this access"))
}

/// A read that returned fewer bytes than the file has at that offset.
pub fn short(call: &str, path: &str, offset: u64, expected: usize, received: usize) -> CallFailure {
    let detail = format!("{call} at offset {offset} of {path} returned {received} of {expected} bytes");
    CallFailure { offset, ..refusal(call, path, detail) }
}
