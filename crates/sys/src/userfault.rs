//! Mappings of another process, page by page: faults of single pages (userfaultfd(2)), and which
//! pages are in place (PAGEMAP_SCAN).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::checked;

/// Flags with which a process makes the descriptor: for faults of its own code alone, which needs
/// no privilege.
pub const FLAGS: u64 = (libc::O_CLOEXEC | USER_MODE_ONLY) as u64;
/// UFFD_USER_MODE_ONLY.
const USER_MODE_ONLY: i32 = 1;

// Numbers of <linux/userfaultfd.h> and <linux/fs.h>.
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFD_API: u64 = 0xaa;
const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
const REGISTER_MODE_WP: u64 = 2;
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const PAGE_IS_FILE: u64 = 1 << 2;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// Pages of the same kind, as PAGEMAP_SCAN returns them.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// The mappings of a process, registered so that each of their pages faults by itself: nothing is
/// put in place around a fault. When it is dropped, that ends.
#[derive(Debug)]
pub struct SinglePageFaults(OwnedFd);

impl SinglePageFaults {
    /// Of the process that made this descriptor with [`FLAGS`]. EINVAL: this kernel cannot (before
    /// Linux 6.7).
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let mut api = Api { api: UFFD_API, features: UFFD_FEATURE_WP_ASYNC, ioctls: 0 };
        // SAFETY: the kernel reads and writes the structure that the number names.
        checked(unsafe { libc::ioctl(descriptor.as_raw_fd(), UFFDIO_API, &raw mut api) })?;
        Ok(Self(descriptor))
    }

    /// Of this process: to see whether this kernel and this user can.
    pub fn of_this_process() -> io::Result<Self> {
        // SAFETY: the call takes no pointer.
        let descriptor = unsafe { libc::syscall(libc::SYS_userfaultfd, FLAGS) };
        checked(descriptor as libc::c_int)?;
        // SAFETY: the call has just returned this descriptor, and nobody else has it.
        Self::new(unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) })
    }

    /// Register a range of whole pages. EPERM: a shared mapping of a descriptor that was opened for
    /// reading only.
    pub fn register(&self, start: u64, len: u64) -> io::Result<()> {
        let mut range = Register { start, len, mode: REGISTER_MODE_WP, ioctls: 0 };
        // SAFETY: the kernel reads and writes the structure that the number names; the addresses in
        // it are of the other process, and what is registered (asynchronous protection) never makes
        // a fault wait for anybody.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), UFFDIO_REGISTER, &raw mut range) }).map(drop)
    }
}

/// Pages that are in place, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlace {
    /// Address of the first one.
    pub start: u64,
    /// Address behind the last one.
    pub end: u64,
    /// True for pages of the file; otherwise the process has changed them, and they are its own.
    pub of_file: bool,
}

/// The pages in place in a range of the process of this `pagemap`.
pub fn in_place(pagemap: &File, start: u64, end: u64) -> io::Result<Vec<InPlace>> {
    let mut found = Vec::new();
    let mut regions = [Region::default(); 512];
    let mut from = start;
    while from < end {
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: 0,
            start: from,
            end,
            walk_end: 0,
            vec: regions.as_mut_ptr() as u64,
            vec_len: regions.len() as u64,
            max_pages: 0,
            category_inverted: 0,
            category_mask: 0,
            category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
            return_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED | PAGE_IS_FILE,
        };
        // SAFETY: the kernel reads and writes the structure that the number names, and writes at
        // most `vec_len` regions to `vec`, which has room for them.
        let count = checked(unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) })?;
        found.extend(regions.iter().take(count as usize).map(|region| InPlace {
            start: region.start,
            end: region.end,
            of_file: region.categories & PAGE_IS_FILE != 0 && region.categories & PAGE_IS_SWAPPED == 0,
        }));
        if scan.walk_end <= from {
            return Err(io::ErrorKind::InvalidData.into());
        }
        from = scan.walk_end;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileMapping;
    use std::io::Write;

    #[test]
    fn pages_that_were_touched_are_in_place() {
        let Ok(faults) = SinglePageFaults::of_this_process() else {
            println!("skipped: windows: this kernel has no asynchronous write protection");
            return;
        };
        let page = rustix::param::page_size();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![7; 64 * page]).expect("written");
        let mapping = FileMapping::new(&file, 64 * page, false).expect("mapped");
        let bytes = mapping.bytes();
        let start = bytes.as_ptr() as u64;
        faults.register(start, 64 * page as u64).expect("registered");
        let pagemap = File::open("/proc/self/pagemap").expect("there");
        let scanned = |from: usize, to: usize| {
            in_place(&pagemap, start + (from * page) as u64, start + (to * page) as u64).expect("scanned")
        };
        assert_eq!(scanned(0, 64), []);
        let sum: u32 =
            [3, 9, 10].iter().map(|index| u32::from(std::hint::black_box(bytes[index * page]))).sum();
        assert_eq!(sum, 21);
        let pages = |from: usize, to: usize| InPlace {
            start: start + (from * page) as u64,
            end: start + (to * page) as u64,
            of_file: true,
        };
        assert_eq!(scanned(0, 64), [pages(3, 4), pages(9, 11)], "nothing around them");
        assert_eq!(scanned(10, 64), [pages(10, 11)]);
    }
}
