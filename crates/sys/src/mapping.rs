//! Mappings whose Drop is the only release.
//!
//! **SIGBUS.** A page of a file mapping that is past the end of the file, or that the device cannot
//! read, ends the process that touches it. pagewise installs no handler: only workers map files, a
//! worker that dies ends its sample with that reason, and the supervisor goes on.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use rustix::mm::{self, MapFlags, ProtFlags};

/// Advice for madvise(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// MADV_RANDOM.
    Random,
    /// MADV_SEQUENTIAL.
    Sequential,
    /// MADV_WILLNEED.
    WillNeed,
    /// MADV_POPULATE_READ, Linux 5.14.
    PopulateRead,
    /// MADV_POPULATE_WRITE, Linux 5.14: as if each page were written to, without changing its
    /// content.
    PopulateWrite,
    /// MADV_HUGEPAGE.
    HugePage,
}

impl Advice {
    /// The name in the manual.
    pub const fn name(self) -> &'static str {
        match self {
            Advice::Random => "madvise(MADV_RANDOM)",
            Advice::Sequential => "madvise(MADV_SEQUENTIAL)",
            Advice::WillNeed => "madvise(MADV_WILLNEED)",
            Advice::PopulateRead => "madvise(MADV_POPULATE_READ)",
            Advice::PopulateWrite => "madvise(MADV_POPULATE_WRITE)",
            Advice::HugePage => "madvise(MADV_HUGEPAGE)",
        }
    }

    const fn flag(self) -> mm::Advice {
        match self {
            Advice::Random => mm::Advice::Random,
            Advice::Sequential => mm::Advice::Sequential,
            Advice::WillNeed => mm::Advice::WillNeed,
            Advice::PopulateRead => mm::Advice::LinuxPopulateRead,
            Advice::PopulateWrite => mm::Advice::LinuxPopulateWrite,
            Advice::HugePage => mm::Advice::LinuxHugepage,
        }
    }
}

/// A mapped range; the common part of the types below.
pub(crate) struct Region {
    pub(crate) start: NonNull<u8>,
    pub(crate) len: usize,
}

// SAFETY: a region is plain memory; nothing about it belongs to the thread that made it.
unsafe impl Send for Region {}
// SAFETY: shared access only reads; the types that write take `&mut self`.
unsafe impl Sync for Region {}

impl Region {
    pub(crate) fn new(address: *mut core::ffi::c_void, len: usize) -> Self {
        Self { start: NonNull::new(address.cast()).expect("mmap returned null without an error"), len }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the range is mapped readable until Drop. See `FileMapping` for what cannot be
        // proven.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes as little-endian 64-bit numbers, on little-endian machines.
    fn words(&self) -> &[u64] {
        const { assert!(cfg!(target_endian = "little"), "offset tables are little-endian") };
        // SAFETY: mappings are page-aligned, and every bit pattern is a u64; the length is rounded
        // down.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len / 8) }
    }

    pub(crate) fn advise(&self, range: Range<usize>, advice: Advice) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.len, "advice outside of the mapping");
        // SAFETY: the range lies within the mapping, and none of the advice in `Advice` discards
        // data.
        unsafe {
            mm::madvise(self.start.as_ptr().add(range.start).cast(), range.end - range.start, advice.flag())?;
        }
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range was returned by mmap with this length, and no reference into it
        // outlives self.
        let unmapped = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "munmap of an own range failed: {unmapped:?}");
    }
}

/// Address of files that lie in one range: a large folio is mapped by one entry from there on.
const RANGE_ALIGNMENT: usize = 2 << 20;

/// A range of zeros of `len` bytes, a multiple of the page size, that begins at a multiple of
/// [`RANGE_ALIGNMENT`].
fn reserve(len: usize) -> io::Result<Region> {
    let all = len + RANGE_ALIGNMENT;
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let address = unsafe {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        mm::mmap_anonymous(std::ptr::null_mut(), all, ProtFlags::READ, flags)?
    };
    let before = (address as usize).next_multiple_of(RANGE_ALIGNMENT) - address as usize;
    // SAFETY: the three parts are those of the range that was just mapped, and nothing refers to
    // it yet. The two that are not returned are unmapped with their regions.
    let (first, rest) = unsafe { (address, address.cast::<u8>().add(before)) };
    let behind = rest.wrapping_add(len);
    drop((before > 0).then(|| Region::new(first, before)));
    drop((all > before + len).then(|| Region::new(behind.cast(), all - before - len)));
    Ok(Region::new(rest.cast(), len))
}

/// The first bytes of a file, mapped shared and read-only (mmap(2)).
///
/// Another process may write to the file or shorten it while it is mapped. No program can exclude
/// that, and for borrowed bytes it is undefined behaviour in Rust. pagewise only copies and adds
/// such bytes, makes no decision from them, and verifies them afterwards.
pub struct FileMapping(Region);

impl FileMapping {
    /// Map the first `len` bytes; `populate` adds MAP_POPULATE, whose failures the kernel hides.
    pub fn new(file: impl AsFd, len: usize, populate: bool) -> io::Result<Self> {
        let flags = if populate { MapFlags::SHARED | MapFlags::POPULATE } else { MapFlags::SHARED };
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let address = unsafe { mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ, flags, file, 0)? };
        Ok(Self(Region::new(address, len)))
    }

    /// Map files into one range: of each its place, a multiple of the page size, and so many bytes
    /// from its beginning on. Between them are zeros. The range begins at a multiple of 2 MiB, as
    /// the kernel places a large file that is mapped alone.
    ///
    /// # Panics
    /// If the places overlap or are out of order.
    pub fn of_files<F: AsFd>(files: &[(F, usize, usize)], populate: bool) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let len = files.last().map_or(0, |(_, start, len)| start + len).next_multiple_of(page);
        if len == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let region = reserve(len)?;
        let flags = if populate { MapFlags::SHARED | MapFlags::POPULATE } else { MapFlags::SHARED };
        let mut free = 0;
        for (file, start, len) in files {
            let end = (start + len).next_multiple_of(page);
            assert!(free <= *start && end <= region.len, "files in their order, within the range");
            free = end;
            // SAFETY: the place is within the range that was reserved for this value alone, and no
            // reference into it exists yet.
            unsafe {
                let place = region.start.as_ptr().add(*start).cast();
                mm::mmap(place, *len, ProtFlags::READ, flags | MapFlags::FIXED, file, 0)?;
            }
        }
        Ok(Self(region))
    }

    /// The mapped bytes; touching them may fault, wait for the device, or end the process (SIGBUS).
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The mapped bytes as little-endian 64-bit numbers: an offset table.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        self.0.words()
    }

    /// madvise(2) on `range`, whose start must be a multiple of the page size.
    pub fn advise(&self, range: Range<usize>, advice: Advice) -> io::Result<()> {
        self.0.advise(range, advice)
    }
}

/// Private anonymous memory: page-aligned, zeroed, as O_DIRECT wants its buffers.
pub struct AnonymousMemory(Region);

impl AnonymousMemory {
    /// Map `len` bytes; pages are allocated at the first touch.
    pub fn new(len: usize) -> io::Result<Self> {
        // SAFETY: as in `FileMapping::new`.
        let address = unsafe {
            mm::mmap_anonymous(
                std::ptr::null_mut(),
                len.max(1),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        Ok(Self(Region::new(address, len.max(1))))
    }

    /// madvise(2) on the whole mapping.
    pub fn advise(&self, advice: Advice) -> io::Result<()> {
        self.0.advise(0..self.0.len, advice)
    }

    /// The bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The bytes, mutable.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped readable and writable until Drop, private to this process, borrowed
        // exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.0.start.as_ptr(), self.0.len) }
    }
}

/// Memory that supervisor and worker share through a descriptor (memfd_create(2), mmap(2)).
///
/// The two take turns by the protocol: one side writes on request while the other waits for its
/// answer. A worker that writes out of turn changes the bytes that the supervisor compares, and the
/// comparison fails.
pub struct SharedMemory {
    file: OwnedFd,
    region: Region,
}

impl SharedMemory {
    /// Map the first `len` bytes of `file`, readable and writable.
    pub fn new(file: OwnedFd, len: usize) -> io::Result<Self> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as in `FileMapping::new`.
        let address = unsafe { mm::mmap(std::ptr::null_mut(), len, prot, MapFlags::SHARED, &file, 0)? };
        Ok(Self { file, region: Region::new(address, len) })
    }

    /// Create a file in memory that children inherit and open as `/proc/self/fd/N`.
    pub fn create(name: &str, len: usize) -> io::Result<Self> {
        let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, len as u64)?;
        Self::new(file, len)
    }

    /// Seal the file: from here on it can be neither written nor resized, except through this
    /// mapping (F_SEAL_FUTURE_WRITE, Linux 5.1).
    pub fn seal(&self) -> io::Result<()> {
        use rustix::fs::SealFlags;
        Ok(rustix::fs::fcntl_add_seals(
            &self.file,
            SealFlags::FUTURE_WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
        )?)
    }

    /// The file, to be passed to a child.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.region.bytes()
    }

    /// The bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped readable and writable until Drop, borrowed exclusively within this
        // process.
        unsafe { std::slice::from_raw_parts_mut(self.region.start.as_ptr(), self.region.len) }
    }

    /// The bytes as little-endian 64-bit numbers.
    pub fn words(&self) -> &[u64] {
        self.region.words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_seen_through_its_mapping() {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(&[7; 8192]).expect("write");
        let mapping = FileMapping::new(&file, 8192, true).expect("map");
        assert!(mapping.bytes().iter().all(|byte| *byte == 7));
        mapping.advise(4096..8192, Advice::WillNeed).expect("advise");
    }

    #[test]
    fn files_lie_in_their_places_of_one_range() {
        let page = rustix::param::page_size();
        let file = |byte: u8, len: usize| {
            let mut file = tempfile::tempfile().expect("file");
            file.write_all(&vec![byte; len]).expect("write");
            file
        };
        let files =
            [(file(1, 1), 0, 1), (file(2, page), page, page), (file(3, page + 5), 4 * page, page + 5)];
        for populate in [false, true] {
            let mapping = FileMapping::of_files(&files, populate).expect("map");
            let bytes = mapping.bytes();
            assert_eq!((bytes.as_ptr() as usize % RANGE_ALIGNMENT, bytes.len()), (0, 6 * page));
            for (_, start, len) in &files {
                let first = bytes[*start];
                assert!(first > 0 && bytes[*start..start + len].iter().all(|byte| *byte == first));
            }
            assert!(bytes[2 * page..4 * page].iter().all(|byte| *byte == 0), "between them");
            mapping.advise(4 * page..5 * page, Advice::Random).expect("advise");
        }
        let none: &[(std::fs::File, usize, usize)] = &[];
        assert!(FileMapping::of_files(none, false).is_err(), "no file");
    }

    #[test]
    #[should_panic(expected = "in their order")]
    fn files_that_overlap_are_not_mapped() {
        let page = rustix::param::page_size();
        let files = [0, page / 2].map(|start| (tempfile::tempfile().expect("file"), start, page));
        let _ = FileMapping::of_files(&files, false);
    }

    #[test]
    fn errors_carry_their_errno() {
        let file = tempfile::tempfile().expect("file");
        let errno = |result: io::Result<()>| result.expect_err("refused").raw_os_error();
        assert_eq!(errno(FileMapping::new(&file, 0, false).map(|_| ())), Some(libc::EINVAL));
        let write_only = std::fs::OpenOptions::new().write(true).open("/dev/null").expect("open");
        assert_eq!(errno(FileMapping::new(&write_only, 4096, false).map(|_| ())), Some(libc::EACCES));
        file.set_len(8192).expect("grow");
        let mapping = FileMapping::new(&file, 8192, false).expect("map");
        // An unaligned start: the error that invalidated the published prefetch results.
        assert_eq!(errno(mapping.advise(1..4096, Advice::WillNeed)), Some(libc::EINVAL));
    }

    #[test]
    fn shared_memory_is_seen_by_both_sides() {
        let mut one = SharedMemory::create("test", 4096).expect("memfd");
        let file = rustix::io::dup(one.file()).expect("dup");
        let other = SharedMemory::new(file, 4096).expect("map");
        one.bytes_mut()[8..16].copy_from_slice(&5u64.to_le_bytes());
        assert_eq!(other.words()[1], 5);
    }

    #[test]
    fn sealed_memory_is_read_only_to_others() {
        let mut one = SharedMemory::create("test", 4096).expect("memfd");
        one.seal().expect("seal");
        one.bytes_mut()[0] = 9;
        assert_eq!(FileMapping::new(one.file(), 4096, false).expect("map").words()[0], 9);
        let file = rustix::io::dup(one.file()).expect("dup");
        assert!(SharedMemory::new(file, 4096).is_err(), "a second writer");
        assert!(rustix::io::write(one.file(), b"x").is_err(), "a write");
    }
}
