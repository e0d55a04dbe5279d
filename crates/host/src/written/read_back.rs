//! Reading back the bytes that a worker wrote, and comparing them byte for byte with the expected
//! ones.
//!
//! Neighbouring records are adjacent in the source as in the file, up to the position where the
//! source begins again. Such sections of about its period are compared at once, and single records
//! only if a section differs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use pagewise_model::sample::Written;
use pagewise_model::{Access, RecordRing};
use pagewise_sys::{Advice, FileMapping};
use rustix::io::Errno;

use super::{Before, WrittenFile, range};

/// Bytes compared together.
const PIECE_BYTES: u64 = 1 << 20;

/// Access by which a file is read back: different from the one it was written by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBack {
    /// By pread(2).
    Pread,
    /// In a mapping. Holes are read by pread(2): touching them would take memory on tmpfs, which a
    /// full one does not have.
    Mapping,
}

impl ReadBack {
    /// Another access than this one.
    pub fn other_than(access: Access) -> Self {
        if access == Access::Mmap { ReadBack::Pread } else { ReadBack::Mapping }
    }

    /// The name in run files.
    pub const fn name(self) -> &'static str {
        match self {
            ReadBack::Pread => "pread",
            ReadBack::Mapping => "mmap",
        }
    }
}

/// The first records of all passes over a ring, which a file must have.
#[derive(Clone, Copy, Debug)]
pub struct FirstRecords<'a> {
    /// Places of the records.
    pub ring: &'a RecordRing,
    /// Content of the records, by [`RecordRing::source_range`].
    pub source: &'a [u8],
    /// Number of them.
    pub count: u64,
}

impl FirstRecords<'_> {
    /// Bytes of the file that they leave in it.
    fn bytes(&self) -> u64 {
        self.count.min(self.ring.slots()) * self.ring.record_bytes()
    }
}

impl WrittenFile {
    /// Compare the file with its expected content once these records were written, and complete
    /// `written`.
    ///
    /// A record is missing as a whole if a byte of it differs or is past the end of a shortened
    /// file. Stray bytes are those that differ from the previous content: in positions without a
    /// record, after the last position, and past the original size of the file.
    ///
    /// # Errors
    /// Those of reading; `written` is not changed then.
    pub fn read_back(
        &self,
        records: FirstRecords<'_>,
        by: ReadBack,
        written: &mut Written,
    ) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        let found = FoundBytes::new(records, self.before).seen(
            &self.file,
            size.min(self.file_bytes),
            self.file_bytes,
            by,
        )?;
        let FoundBytes { missing_bytes, first_missing_at, stray_bytes, .. } = found;
        written.read_back = by.name().to_string();
        written.expected_bytes = records.bytes();
        written.missing_bytes = missing_bytes;
        written.first_missing_at = first_missing_at;
        written.stray_bytes = stray_bytes + size.saturating_sub(self.file_bytes);
        Ok(())
    }
}

/// Bytes of these records that are missing in a file, and the position of the first one. Other
/// bytes are not looked at.
///
/// # Errors
/// Those of reading.
pub fn missing_records(
    file: &File,
    records: FirstRecords<'_>,
    by: ReadBack,
) -> io::Result<(u64, Option<u64>)> {
    let end = records.bytes();
    let present = file.metadata()?.len().min(end);
    // There is no position without a record up to there.
    let found = FoundBytes::new(records, Before::Zeros).seen(file, present, end, by)?;
    Ok((found.missing_bytes, found.first_missing_at))
}

/// Content of a file, front to back.
struct View<'a> {
    file: &'a File,
    mapping: Option<FileMapping>,
    /// Offset up to which there is no hole.
    data_until: u64,
    buffer: Vec<u8>,
}

impl<'a> View<'a> {
    fn new(file: &'a File, len: u64, by: ReadBack) -> io::Result<Self> {
        let mapping = match by {
            ReadBack::Mapping if len > 0 => {
                let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
                Some(FileMapping::new(file, len, false)?)
            }
            _ => None,
        };
        Ok(Self { file, mapping, data_until: 0, buffer: vec![0; PIECE_BYTES.min(len) as usize] })
    }

    /// `len` bytes from `at` on, which is a multiple of [`PIECE_BYTES`].
    fn piece(&mut self, at: u64, len: usize) -> io::Result<&[u8]> {
        if self.mapping.is_some() && self.is_data(at, at + len as u64)? {
            let mapping = self.mapping.as_ref().expect("just seen");
            let range = at as usize..at as usize + len;
            // An unreadable page is an error here (a shortened file, a failing device), where a
            // touch would end this process.
            match mapping.advise(range.clone(), Advice::PopulateRead) {
                Ok(()) => {}
                // Before Linux 5.14.
                Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
                Err(error) => return Err(error),
            }
            return Ok(&mapping.bytes()[range]);
        }
        self.file.read_exact_at(&mut self.buffer[..len], at)?;
        Ok(&self.buffer[..len])
    }

    /// True if there is no hole between `at` and `end`.
    fn is_data(&mut self, at: u64, end: u64) -> io::Result<bool> {
        if end > self.data_until {
            self.data_until = match rustix::fs::seek(self.file, rustix::fs::SeekFrom::Hole(at)) {
                Ok(hole) => hole,
                // A filesystem that does not report holes.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => u64::MAX,
                Err(errno) => return Err(errno.into()),
            };
        }
        Ok(end <= self.data_until)
    }
}

/// Expected content of a section of the file.
enum ExpectedBytes {
    /// Records: the source from here on.
    Records(usize),
    /// The previous content: the complement of the source from here on.
    Complement(usize),
    /// Only zeros.
    Zeros,
}

/// Findings so far.
struct FoundBytes<'a> {
    records: FirstRecords<'a>,
    before: Before,
    missing_bytes: u64,
    first_missing_at: Option<u64>,
    last_missing_slot: Option<u64>,
    stray_bytes: u64,
}

impl<'a> FoundBytes<'a> {
    fn new(records: FirstRecords<'a>, before: Before) -> Self {
        Self {
            records,
            before,
            missing_bytes: 0,
            first_missing_at: None,
            last_missing_slot: None,
            stray_bytes: 0,
        }
    }

    /// The findings in the first `present` bytes of a file that should have `end`.
    fn seen(mut self, file: &File, present: u64, end: u64, by: ReadBack) -> io::Result<Self> {
        let mut view = View::new(file, present, by)?;
        let mut at = 0;
        while at < present {
            let len = (present - at).min(PIECE_BYTES);
            self.see(at, view.piece(at, len as usize)?);
            at += len;
        }
        self.see_none(present, end);
        Ok(self)
    }

    /// Expected content from byte `at` on, and its length up to the next change of kind.
    fn held(&self, at: u64) -> (ExpectedBytes, u64) {
        let FirstRecords { ring, count, .. } = self.records;
        let slots = ring.slots();
        if at >= ring.bytes() {
            return (ExpectedBytes::Zeros, u64::MAX);
        }
        let slot = at / ring.record_bytes();
        // Positions before this one were written once more than those after it.
        let newest = count % slots;
        let end = match slot < newest {
            _ if ring.is_scattered() && count < slots => slot + 1,
            true => newest,
            false => slots,
        };
        match (ring.record_in(slot, count), self.before) {
            (Some(record), _) => {
                let (start, len) = range(ring, record - slot, end, at);
                (ExpectedBytes::Records(start), len)
            }
            (None, Before::Complement) => {
                let (start, len) = range(ring, 0, end, at);
                (ExpectedBytes::Complement(start), len)
            }
            (None, Before::Zeros) => (ExpectedBytes::Zeros, end * ring.record_bytes() - at),
        }
    }

    /// Compare `bytes` at `at`; called in ascending order.
    fn see(&mut self, mut at: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (held, len) = self.held(at);
            let (here, rest) = bytes.split_at(len.min(bytes.len() as u64) as usize);
            match held {
                ExpectedBytes::Records(start) => {
                    let expected = &self.records.source[start..start + here.len()];
                    if here != expected {
                        self.see_records(at, here, expected);
                    }
                }
                ExpectedBytes::Complement(start) => {
                    let expected = &self.records.source[start..start + here.len()];
                    let differing =
                        here.iter().zip(expected).filter(|(byte, expected)| **byte != !**expected);
                    self.stray_bytes += differing.count() as u64;
                }
                ExpectedBytes::Zeros => {
                    self.stray_bytes += here.iter().filter(|byte| **byte != 0).count() as u64;
                }
            }
            at += here.len() as u64;
            bytes = rest;
        }
    }

    /// Find the records of a section that differ.
    fn see_records(&mut self, at: u64, mut bytes: &[u8], mut expected: &[u8]) {
        let record_bytes = self.records.ring.record_bytes();
        let mut slot = at / record_bytes;
        let mut left = (slot + 1) * record_bytes - at;
        while !bytes.is_empty() {
            let len = left.min(bytes.len() as u64) as usize;
            if bytes[..len] != expected[..len] {
                self.miss(slot);
            }
            (bytes, expected) = (&bytes[len..], &expected[len..]);
            (slot, left) = (slot + 1, record_bytes);
        }
    }

    fn miss(&mut self, slot: u64) {
        // A record that was seen in two pieces is missing once.
        if self.last_missing_slot != Some(slot) {
            let record_bytes = self.records.ring.record_bytes();
            self.missing_bytes += record_bytes;
            self.first_missing_at.get_or_insert(slot * record_bytes);
            self.last_missing_slot = Some(slot);
        }
    }

    /// Record that there is nothing from `at` to `end`, the size that the file should have.
    fn see_none(&mut self, at: u64, end: u64) {
        let record_bytes = self.records.ring.record_bytes();
        self.stray_bytes += end - at;
        for slot in at / record_bytes..self.records.ring.slots().min(end.div_ceil(record_bytes)) {
            if self.records.ring.record_in(slot, self.records.count).is_some() {
                self.miss(slot);
                self.stray_bytes -= ((slot + 1) * record_bytes).min(end) - (slot * record_bytes).max(at);
            }
        }
    }
}
