//! The reads of a trace, as one operation of each thread: all of its reads, in their order, with
//! the gaps of the recorded program between them if those are kept, and its requests to the kernel
//! to read ahead.
//!
//! A gap begins when the bytes of the read before it are consumed; of reads in flight, when they
//! are queued. The thread sleeps through a long one, and waits awake for its end. A wait that ends
//! late shortens the gaps after it by as much, so that all waits together are as long as all gaps.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use pagewise_model::trace::range_of;
use pagewise_protocol::{CallFailure, Go, Job, READ_AHEAD_WORDS};
use pagewise_sys::{AnonymousMemory, FileMapping};
use rustix::fd::OwnedFd;
use rustix::fs::Advice;

use super::{ReadRange, ReadTarget, Reader, TablePart};
use crate::clock::{now_ns, wait_until};
use crate::failure::failed;
use crate::file::DataFile;
use crate::operations::{Done, Operations};

/// A reader, and its thread's part of a table of recorded reads.
pub(super) struct RecordedReads<R> {
    reader: R,
    part: TablePart,
    between: Option<BetweenReads>,
    passes: u64,
    /// Bytes that were read.
    bytes: u64,
}

impl<R: Reader> RecordedReads<R> {
    /// `ahead`: the files to read ahead, if the program of the trace asked for that.
    pub(super) fn new(reader: R, part: TablePart, job: &Job, ahead: Option<Arc<ReadAheadFiles>>) -> Self {
        let gaps = (job.gaps == 1).then_some(job.table_reads as usize);
        let requests = part.requests();
        let between = (gaps.is_some() || !requests.is_empty()).then(|| BetweenReads {
            table: part.table(),
            gaps,
            requests,
            ahead,
            waited_ns: 0,
            late_ns: 0,
        });
        Self { reader, part, between, passes: 0, bytes: 0 }
    }
}

/// The memory that the recorded program held besides: in place, so that it counts against a limit,
/// and not used.
pub fn ballast(job: &Job) -> Result<AnonymousMemory, CallFailure> {
    let mut memory = AnonymousMemory::new(job.ballast_bytes as usize)
        .map_err(|error| failed("mmap of the ballast", error, &job.path, 0))?;
    memory.bytes_mut().iter_mut().step_by(job.page_bytes.max(1) as usize).for_each(|byte| *byte = 1);
    Ok(memory)
}

impl<R: Reader> Operations for RecordedReads<R> {
    fn begin(&mut self, go: &Go) {
        self.part.begin(self.passes * self.part.reads(), go);
    }

    /// Timed region: that of the reader, over all entries of the part, with the gaps that are kept
    /// and the requests to read ahead.
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        let operations = wanted.min(end.saturating_sub(position));
        let Self { reader, part, between, bytes, .. } = self;
        let due = (self.passes * part.reads(), operations * part.reads());
        let checksum = part.walk(
            reader,
            due,
            u64::MAX,
            #[inline(always)]
            |reader, reads| {
                *bytes += reads.due().unmasked().map(|entry| range_of(entry).1 as u64).sum::<u64>();
                match between {
                    None => reader.read(reads),
                    Some(between) => between.read(reader, reads),
                }
            },
        )?;
        if let Some(between) = between.as_mut().filter(|_| operations > 0) {
            between.ask_before(reader, u64::MAX)?;
        }
        let checksum = checksum.wrapping_add(self.reader.finish()?);
        self.passes += operations;
        Ok(Done { operations, checksum })
    }

    fn warm_page_tables(&mut self) {
        self.reader.warm_page_tables();
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn take_gap_wait_ns(&mut self) -> u64 {
        self.between.as_mut().map_or(0, |between| std::mem::take(&mut between.waited_ns))
    }
}

/// Gaps and requests of a recorded program between its reads: words behind the entries of the
/// table.
struct BetweenReads {
    table: Arc<FileMapping>,
    /// Index of the word of the first gap, in ns; `None`: none is kept.
    gaps: Option<usize>,
    /// The words of the requests to read ahead that are not made yet.
    requests: Range<usize>,
    ahead: Option<Arc<ReadAheadFiles>>,
    /// Time waited so far.
    waited_ns: u64,
    /// Time by which it exceeds the gaps so far.
    late_ns: u64,
}

impl BetweenReads {
    /// Timed region: `for each entry: make the requests before it; wait for the gap before it, less
    /// what is late; read it`.
    #[inline(never)]
    fn read(&mut self, reader: &mut impl Reader, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        let mut total = 0u64;
        for read in reads.operations(1) {
            let place = read.due().place;
            self.ask_before(reader, place)?;
            if let Some(first) = self.gaps {
                self.wait(reader, self.table.words()[first + place as usize])?;
            }
            total = total.wrapping_add(reader.read(read)?);
        }
        Ok(total)
    }

    /// Make the requests to read ahead up to the entry at this place, each after its gap.
    #[inline(always)]
    fn ask_before(&mut self, reader: &mut impl Reader, place: u64) -> Result<(), CallFailure> {
        while let Some(&[before, gap_ns, offset, len]) =
            self.table.words()[self.requests.clone()].first_chunk()
        {
            if before > place {
                break;
            }
            self.requests.start += READ_AHEAD_WORDS;
            self.wait(reader, gap_ns)?;
            reader.start_queued()?;
            if let Some(ahead) = &self.ahead {
                ahead.ask(offset, len)?;
            }
        }
        Ok(())
    }

    fn wait(&mut self, reader: &mut impl Reader, gap_ns: u64) -> Result<(), CallFailure> {
        if gap_ns > 0 {
            reader.start_queued()?;
            let begun_ns = now_ns();
            let ends_ns = begun_ns.saturating_add(gap_ns.saturating_sub(self.late_ns));
            let waited_ns = wait_until(ends_ns) - begun_ns;
            self.waited_ns += waited_ns;
            self.late_ns = (self.late_ns + waited_ns).saturating_sub(gap_ns);
        }
        Ok(())
    }
}

/// The files of a job, to be read ahead by POSIX_FADV_WILLNEED. Of a mapped file MADV_WILLNEED is
/// the same: the kernel gives this advice for the file of the mapping (mm/madvise.c).
pub(super) struct ReadAheadFiles {
    data: DataFile,
    descriptors: Vec<OwnedFd>,
}

impl ReadAheadFiles {
    /// The files of a target, if the program of the job's trace asked for anything; all threads
    /// share them.
    pub(super) fn of<R: Reader>(target: &ReadTarget, job: &Job) -> Result<Option<Arc<Self>>, CallFailure> {
        if job.thread_read_ahead.is_empty() {
            return Ok(None);
        }
        // A descriptor that is advised to be read in order has twice the readahead.
        let descriptors = match R::IN_MEMORY {
            true => target.file.open_each(false)?,
            false => target.file.open_each_advised()?,
        };
        Ok(Some(Arc::new(Self { data: target.file.clone(), descriptors })))
    }

    /// Ask for `len` bytes of the span from this offset on, which are of one file.
    fn ask(&self, offset: u64, len: u64) -> Result<(), CallFailure> {
        let (index, within) =
            self.data.several.as_ref().map_or((0, offset), |files| files.span.locate(0, offset));
        rustix::fs::fadvise(&self.descriptors[index], within, NonZeroU64::new(len), Advice::WillNeed).map_err(
            |error| failed("posix_fadvise(WILLNEED)", error.into(), self.data.place(offset).0, within),
        )
    }
}
