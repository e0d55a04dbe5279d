//! sync_file_range(2), which rustix does not wrap.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use crate::checked;

/// Write the dirty pages of `range` to the device and wait for them, and for those under writeback
/// before (WAIT_BEFORE, WRITE, WAIT_AFTER). Neither metadata nor a flush of the device's cache
/// follow: the bytes are not durable.
pub fn sync_file_range(file: impl AsFd, range: Range<u64>) -> io::Result<()> {
    let flags =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let invalid = |_| io::Error::from_raw_os_error(libc::EINVAL);
    let offset = libc::off64_t::try_from(range.start).map_err(invalid)?;
    let len = libc::off64_t::try_from(range.end.saturating_sub(range.start)).map_err(invalid)?;
    // SAFETY: the call takes no pointers.
    checked(unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), offset, len, flags) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_range_is_written_and_an_error_is_reported() {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(&[7; 10_000]).expect("write");
        sync_file_range(&file, 0..10_000).expect("the whole");
        sync_file_range(&file, 5000..5001).expect("a part");
        let beyond = sync_file_range(&file, 1 << 63..u64::MAX).expect_err("no file is as long");
        assert_eq!(beyond.raw_os_error(), Some(libc::EINVAL));
        let (pipe, _other) = io::pipe().expect("pipe");
        assert_eq!(sync_file_range(&pipe, 0..1).expect_err("no file").raw_os_error(), Some(libc::ESPIPE));
    }
}
