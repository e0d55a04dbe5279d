//! A writable mapping of a file, and a handle that may advise the kernel about it at the same time.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use rustix::mm::{self, MapFlags, MsyncFlags, ProtFlags};

use crate::mapping::{Advice, Region};

/// The first bytes of a file, mapped shared, readable and writable (mmap(2)).
///
/// The remarks at [`crate::FileMapping`] about other processes apply here too. A store to a page
/// for which the filesystem has no room ends the process (SIGBUS).
pub struct WritableMapping(Arc<Region>);

/// Advises the kernel about a mapping from any thread while its owner writes; it can neither read
/// nor write. The range stays mapped until the owner and all advisors are dropped.
#[derive(Clone)]
pub struct Advisor(Arc<Region>);

impl WritableMapping {
    /// Map the first `len` bytes; `populate` adds MAP_POPULATE, whose failures the kernel hides.
    pub fn new(file: impl AsFd, len: usize, populate: bool) -> io::Result<Self> {
        let flags = if populate { MapFlags::SHARED | MapFlags::POPULATE } else { MapFlags::SHARED };
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let address = unsafe { mm::mmap(std::ptr::null_mut(), len, prot, flags, file, 0)? };
        Ok(Self(Arc::new(Region::new(address, len))))
    }

    /// A handle for another thread.
    pub fn advisor(&self) -> Advisor {
        Advisor(self.0.clone())
    }

    /// The mapped bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The mapped bytes, mutable; touching them may fault, wait for the device, or end the process
    /// (SIGBUS).
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped readable and writable until Drop, borrowed exclusively: an `Advisor`
        // reaches no byte, and no advice in `Advice` changes one.
        unsafe { std::slice::from_raw_parts_mut(self.0.start.as_ptr(), self.0.len) }
    }

    /// Store `bytes` at `offset` while other threads may store elsewhere, by words where the
    /// mapping is aligned to them.
    ///
    /// # Panics
    /// If they do not lie within the mapping.
    pub fn store(&self, offset: usize, bytes: &[u8]) {
        assert!(offset <= self.0.len && bytes.len() <= self.0.len - offset, "a store outside of the mapping");
        let (head, rest) = bytes.split_at((offset.next_multiple_of(8) - offset).min(bytes.len()));
        let (words, tail) = rest.as_chunks::<8>();
        let middle = offset + head.len();
        for (at, byte) in head.iter().enumerate() {
            self.atomic(offset + at).store(*byte, Ordering::Relaxed);
        }
        for (index, word) in words.iter().enumerate() {
            // SAFETY: within the mapping, which is readable and writable until Drop, and aligned,
            // as the mapping begins at a page. `&self` excludes slices of `bytes_mut`, and all
            // other stores through it are atomic too.
            let at = unsafe { AtomicU64::from_ptr(self.0.start.as_ptr().add(middle + 8 * index).cast()) };
            at.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
        for (at, byte) in tail.iter().enumerate() {
            self.atomic(middle + 8 * words.len() + at).store(*byte, Ordering::Relaxed);
        }
    }

    fn atomic(&self, at: usize) -> &AtomicU8 {
        assert!(at < self.0.len, "a byte outside of the mapping");
        // SAFETY: as in `store`.
        unsafe { AtomicU8::from_ptr(self.0.start.as_ptr().add(at)) }
    }

    /// madvise(2) on `range`, whose start must be a multiple of the page size.
    pub fn advise(&self, range: Range<usize>, advice: Advice) -> io::Result<()> {
        self.0.advise(range, advice)
    }

    /// mlock(2) of the whole mapping: its pages are brought in and stay.
    pub fn lock(&self) -> io::Result<()> {
        // SAFETY: the range is mapped until Drop, and locking changes no byte of it.
        unsafe { mm::mlock(self.0.start.as_ptr().cast(), self.0.len)? };
        Ok(())
    }

    /// msync(2) with MS_SYNC of the pages that hold `range`: returns when they are on the device.
    pub fn sync(&self, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.0.len, "sync outside of the mapping");
        let start = range.start / rustix::param::page_size() * rustix::param::page_size();
        // SAFETY: the range lies within the mapping, and MS_SYNC changes no byte of it.
        unsafe { mm::msync(self.0.start.as_ptr().add(start).cast(), range.end - start, MsyncFlags::SYNC)? };
        Ok(())
    }

    /// Read one byte of each page and write it back, so that each page is present and writable.
    pub fn touch(&mut self) {
        for byte in self.bytes_mut().iter_mut().step_by(rustix::param::page_size()) {
            let byte: *mut u8 = byte;
            // SAFETY: the pointer comes from an exclusive reference. Volatile, because a store of
            // what is there already would be left out.
            unsafe { byte.write_volatile(byte.read_volatile()) };
        }
    }
}

impl Advisor {
    /// madvise(2) on `range`, whose start must be a multiple of the page size.
    pub fn advise(&self, range: Range<usize>, advice: Advice) -> io::Result<()> {
        self.0.advise(range, advice)
    }

    /// Length of the mapping.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Never: no mapping has length 0.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    fn file_of(bytes: &[u8]) -> std::fs::File {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(bytes).expect("write");
        file
    }

    #[test]
    fn stores_reach_the_file() {
        let file = file_of(&[0; 10_000]);
        let mut mapping = WritableMapping::new(&file, 10_000, false).expect("map");
        mapping.bytes_mut()[5000..9999].fill(3);
        mapping.sync(5000..9999).expect("sync");
        mapping.sync(0..10_000).expect("sync of the whole");
        let mut bytes = vec![0; 10_000];
        file.read_exact_at(&mut bytes, 0).expect("read");
        assert!(bytes[5000..9999].iter().all(|byte| *byte == 3));
        assert_eq!((bytes[4999], bytes[9999]), (0, 0));
    }

    #[test]
    fn touching_and_populating_change_no_byte() {
        let content: Vec<u8> = (0..20_000u32).map(|index| (index / 7) as u8).collect();
        let file = file_of(&content);
        let mut mapping = WritableMapping::new(&file, content.len(), true).expect("map");
        mapping.touch();
        assert_eq!(mapping.bytes(), content);
        match mapping.advise(0..content.len(), Advice::PopulateWrite) {
            Ok(()) => assert_eq!(mapping.bytes(), content),
            Err(error) => println!("skipped: method: MADV_POPULATE_WRITE: {error}"),
        }
    }

    #[test]
    fn an_advisor_outlives_its_mapping() {
        let file = file_of(&[1; 8192]);
        let mapping = WritableMapping::new(&file, 8192, false).expect("map");
        let advisor = mapping.advisor();
        drop(mapping);
        assert_eq!((advisor.len(), advisor.is_empty()), (8192, false));
        let advised = std::thread::spawn(move || advisor.advise(0..8192, Advice::WillNeed)).join();
        advised.expect("no panic").expect("advise");
    }

    #[test]
    fn errors_carry_their_errno() {
        let file = file_of(&[1; 4096]);
        let errno = |result: io::Result<()>| result.expect_err("refused").raw_os_error();
        assert_eq!(errno(WritableMapping::new(&file, 0, false).map(drop)), Some(libc::EINVAL));
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("f"), [0; 4096]).expect("write");
        let read_only = std::fs::File::open(folder.path().join("f")).expect("open");
        assert_eq!(errno(WritableMapping::new(&read_only, 4096, false).map(drop)), Some(libc::EACCES));
    }

    #[test]
    fn threads_store_side_by_side() {
        let file = file_of(&[1; 10_000]);
        let mapping = WritableMapping::new(&file, 10_000, false).expect("map");
        let records: Vec<(usize, Vec<u8>)> =
            [(0, 1), (1, 7), (8, 8), (16, 9), (25, 30), (55, 4096), (9990, 10), (10_000, 0)]
                .map(|(offset, len)| (offset, (0..len).map(|byte| byte as u8 ^ 0x5a).collect()))
                .into();
        std::thread::scope(|scope| {
            for (offset, record) in &records {
                scope.spawn(|| mapping.store(*offset, record));
            }
        });
        let mut expected = vec![1; 10_000];
        records
            .iter()
            .for_each(|(offset, record)| expected[*offset..][..record.len()].copy_from_slice(record));
        assert!(mapping.bytes() == expected, "each byte is stored, and no other");
    }

    #[test]
    #[should_panic(expected = "a store outside of the mapping")]
    fn a_store_stays_within_the_mapping() {
        WritableMapping::new(file_of(&[1; 4096]), 4096, false).expect("map").store(4090, &[0; 7]);
    }
}
