//! Extents of a file (FS_IOC_FIEMAP): blocks that it has may never have been written.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::checked;

// Numbers of <linux/fs.h> and <linux/fiemap.h>.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
const FIEMAP_FLAG_SYNC: u32 = 0x1;
const FIEMAP_EXTENT_LAST: u32 = 0x1;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
/// Extents of one call.
const AT_ONCE: usize = 128;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

/// Bytes of the first `len` that hold data: neither a hole nor only preallocated. The error is
/// EOPNOTSUPP where the filesystem does not report them.
pub fn written_bytes(file: impl AsFd, len: u64) -> io::Result<u64> {
    let (mut written, mut from) = (0, 0);
    while from < len {
        let mut request = Request {
            start: from,
            length: len - from,
            // What is written and not on the device yet would look preallocated.
            flags: FIEMAP_FLAG_SYNC,
            mapped_extents: 0,
            extent_count: AT_ONCE as u32,
            reserved: 0,
            extents: [Extent::default(); AT_ONCE],
        };
        // SAFETY: the kernel reads the head of the structure, writes to it, and writes at most
        // `extent_count` extents behind it, for which there is room.
        checked(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) })?;
        let mut found = request.extents.iter().take(request.mapped_extents as usize);
        for extent in found.clone().filter(|extent| extent.flags & FIEMAP_EXTENT_UNWRITTEN == 0) {
            let end = extent.logical.saturating_add(extent.length).min(len);
            written += end.saturating_sub(extent.logical.max(from));
        }
        let Some(last) = found.next_back().filter(|last| last.flags & FIEMAP_EXTENT_LAST == 0) else { break };
        let end = last.logical.saturating_add(last.length);
        if end <= from {
            return Err(io::ErrorKind::InvalidData.into());
        }
        from = end;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    #[test]
    fn holes_and_preallocated_blocks_hold_no_data() {
        let mut file: File = tempfile::tempfile().expect("a file");
        file.set_len(4 << 20).expect("set_len");
        let found = |file: &File| match written_bytes(file, 4 << 20) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => None,
            Err(error) => panic!("{error}"),
        };
        let Some(none) = found(&file) else { return };
        assert_eq!(none, 0);
        file.seek(SeekFrom::Start(1 << 20)).and_then(|_| file.write_all(&[1; 1 << 20])).expect("write");
        file.sync_all().expect("fsync");
        assert_eq!(found(&file), Some(1 << 20));
        if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 2 << 20, 2 << 20).is_ok() {
            assert_eq!(found(&file), Some(1 << 20), "they have blocks and no data");
        }
        assert_eq!(written_bytes(&file, 3 << 19).expect("as above"), 1 << 19, "no further than asked for");
        // More extents than one call has room for.
        for page in 0..512u64 {
            file.seek(SeekFrom::Start(page * 8192)).and_then(|_| file.write_all(&[1; 4096])).expect("write");
        }
        file.sync_all().expect("fsync");
        // A filesystem may write zeros into short gaps.
        assert!(found(&file) >= Some((1 << 20) + (384 * 4096)), "{:?}", found(&file));
    }
}
