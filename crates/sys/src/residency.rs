//! State of a file in the page cache: cachestat(2) and mincore(2).

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::ReadWriteFlags;
use rustix::mm::{self, MapFlags, ProtFlags};

use crate::checked;

/// Pages of a range by state, as the kernel counts them (cachestat(2), Linux 6.5).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStat {
    /// Pages in the cache.
    pub cached: u64,
    /// Of these, dirty.
    pub dirty: u64,
    /// Of these, under writeback.
    pub writeback: u64,
    /// Pages that were evicted.
    pub evicted: u64,
    /// Pages evicted recently.
    pub recently_evicted: u64,
}

#[repr(C)]
struct CacheStatRange {
    offset: u64,
    len: u64,
}

/// Number of cachestat(2) on all architectures with the common table, including all that Linux 6.5
/// supports.
const SYS_CACHESTAT: libc::c_long = 451;

/// Count the cached pages of `len` bytes from `offset` on. ENOSYS before Linux 6.5; EPERM for a
/// caller who neither owns the file nor may write it.
pub fn cachestat(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<CacheStat> {
    let range = CacheStatRange { offset, len };
    let mut stat = CacheStat::default();
    // SAFETY: both structures are laid out as linux/mman.h defines them and outlive the call; the
    // kernel writes only to `stat`.
    checked(unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &range as *const CacheStatRange,
            &mut stat as *mut CacheStat,
            0u32,
        )
    })?;
    Ok(stat)
}

/// Count the pages of the first `len` bytes that mincore(2) reports as resident. It reports all of
/// them if the caller neither owns the file nor may write it: call [`mincore_is_honest`] first.
pub fn mincore_pages(file: impl AsFd, len: usize) -> io::Result<u64> {
    let mut count = 0;
    each_mincore_page(file, len, |_| count += 1)?;
    Ok(count)
}

/// Call `resident` with the number of each of these pages, in their order.
pub fn each_mincore_page(file: impl AsFd, len: usize, mut resident: impl FnMut(u64)) -> io::Result<()> {
    let page = rustix::param::page_size();
    // The mapping is never touched, so that it holds no page in the cache.
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let address =
        unsafe { mm::mmap(std::ptr::null_mut(), len, ProtFlags::empty(), MapFlags::SHARED, file, 0)? };
    // In blocks: the states of a large file would exceed the supervisor's memory limit.
    let piece_bytes = 65536 * page;
    let mut states = vec![0u8; len.min(piece_bytes).div_ceil(page)];
    let mut ended = Ok(());
    for start in (0..len).step_by(piece_bytes) {
        let piece = (len - start).min(piece_bytes);
        // SAFETY: the piece lies within the range that is mapped, and `states` has one byte for
        // each of its pages.
        let result = unsafe { libc::mincore(address.byte_add(start), piece, states.as_mut_ptr()) };
        if result != 0 {
            ended = Err(io::Error::last_os_error());
            break;
        }
        let states = states[..piece.div_ceil(page)].iter().zip((start / page) as u64..);
        states.filter(|(state, _)| **state & 1 == 1).for_each(|(_, page)| resident(page));
    }
    // SAFETY: the range was mapped above, and nothing refers to it.
    unsafe { mm::munmap(address, len)? };
    ended
}

/// True if mincore(2) reports the truth about `file` to this process: the owner, a process with
/// CAP_FOWNER, or one that may write the file (`can_do_mincore` in mm/mincore.c).
pub fn mincore_is_honest(file: BorrowedFd<'_>) -> io::Result<bool> {
    let owner = rustix::fs::fstat(file)?.st_uid;
    let me = rustix::process::geteuid();
    if me.is_root() || me.as_raw() == owner {
        return Ok(true);
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok())
}

/// RWF_DONTCACHE (Linux 6.14), not yet defined by rustix: pages that a call brings in do not stay
/// in the page cache; written ones leave it after their writeback, which begins at once.
pub const RWF_DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// preadv2(2) with [`RWF_DONTCACHE`].
#[inline(always)]
pub fn pread_dontcache(file: impl AsFd, buffer: &mut [u8], offset: u64) -> rustix::io::Result<usize> {
    rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, RWF_DONTCACHE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn both_count_the_pages_of_a_fresh_file() {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(&[1; 10 * 4096]).expect("write");
        let pages = (10 * 4096) / rustix::param::page_size() as u64;
        assert!(mincore_is_honest(file.as_fd()).expect("fstat"));
        assert_eq!(mincore_pages(&file, 10 * 4096).expect("mincore"), pages);
        match cachestat(file.as_fd(), 0, 10 * 4096) {
            Ok(stat) => assert_eq!(stat.cached, pages),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSYS), "{error}"),
        }
    }

    #[test]
    fn a_descriptor_that_is_no_file_is_refused() {
        let (read, _write) = rustix::pipe::pipe().expect("pipe");
        assert_eq!(mincore_pages(&read, 4096).expect_err("no file").raw_os_error(), Some(libc::ENODEV));
    }
}
