//! A thread's part of the offset table, piece by piece ([`pagewise_model::pieces`]).

use std::ops::Range;
use std::sync::Arc;

use pagewise_model::Workload;
use pagewise_protocol::{CallFailure, Go, Job, READ_AHEAD_WORDS};
use pagewise_sys::FileMapping;

use super::{Piece, ReadRange, Reader};
use crate::failure::refusal;

/// Kinds of orders of the reads at the entries of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderKind {
    /// Each entry is an offset.
    Independent,
    /// Each offset but the first follows from the data of the read before.
    Dependent,
    /// Each entry is an offset and a length ([`pagewise_model::trace::entry()`]).
    Recorded,
}

impl OrderKind {
    /// The order of a job's reads.
    pub(super) fn of(job: &Job) -> Self {
        match job.workload == Workload::Replay.name() {
            true => OrderKind::Recorded,
            false if job.dependent == 1 => OrderKind::Dependent,
            false => OrderKind::Independent,
        }
    }
}

/// A thread's part of the table.
pub struct TablePart {
    table: Arc<FileMapping>,
    range: Range<usize>,
    /// The words behind all entries that are the thread's requests to read ahead.
    requests: Range<usize>,
    pieces: Pieces,
}

impl TablePart {
    /// The part of each thread of a job: equal ones, or those of the threads of a trace.
    pub fn divide(table: FileMapping, job: &Job) -> Result<Vec<Self>, CallFailure> {
        let ranges = match OrderKind::of(job) {
            OrderKind::Recorded => recorded(job)?,
            OrderKind::Independent | OrderKind::Dependent => equal(table.words().len(), job),
        };
        let table = Arc::new(table);
        let part = |range| Self::new(table.clone(), range, job.piece_reads);
        let with_requests = |(range, requests)| Self { requests, ..part(range) };
        Ok(ranges.into_iter().zip(requests(job)).map(with_requests).collect())
    }

    /// The entries at `range`, in pieces of `piece_reads`; 0: in one piece.
    pub fn new(table: Arc<FileMapping>, range: Range<usize>, piece_reads: u64) -> Self {
        let part = range.len() as u64;
        let reads = if piece_reads == 0 { part } else { piece_reads };
        let pieces = Pieces { part, reads, begin: 0, piece: Piece::default(), last: 0, sum: 0 };
        Self { table, range, requests: 0..0, pieces }
    }

    /// The whole table.
    pub(super) fn table(&self) -> Arc<FileMapping> {
        self.table.clone()
    }

    /// The words that are the thread's requests to read ahead.
    pub(super) fn requests(&self) -> Range<usize> {
        self.requests.clone()
    }

    /// Number of reads of the part.
    pub fn reads(&self) -> u64 {
        self.range.len() as u64
    }

    /// A `go` begins at this position.
    pub fn begin(&mut self, position: u64, go: &Go) {
        self.pieces.begin = position;
        self.pieces.piece = Piece { end: position, touch_at: go.touch_at, ..Piece::default() };
    }

    /// Let `read` do `count` reads from position `first` on, where the last ones ended, and return
    /// the sum of what it returns. Each call has reads of one piece that do not cross the end of
    /// the part. No read will be done from position `end` on.
    #[inline(always)]
    pub(super) fn walk<R: Reader>(
        &mut self,
        reader: &mut R,
        (first, count): (u64, u64),
        end: u64,
        mut read: impl FnMut(&mut R, ReadRange<'_>) -> Result<u64, CallFailure>,
    ) -> Result<u64, CallFailure> {
        let Self { table, range, pieces, .. } = self;
        let (entries, place) = (&table.words()[range.clone()], range.start as u64);
        let (mut done, mut total) = (0, 0u64);
        while done < count {
            if first + done == pieces.piece.end {
                pieces.next(reader)?;
            }
            let reads = ReadRange::new(entries, (first + done, count - done), end, place, pieces.piece);
            done += reads.due().entries.len() as u64;
            let checksum = read(reader, reads)?;
            pieces.sum = pieces.sum.wrapping_add(checksum);
            total = total.wrapping_add(checksum);
        }
        Ok(total)
    }
}

/// Whole operations, as many for each thread.
fn equal(words: usize, job: &Job) -> Vec<Range<usize>> {
    let reads_per_op = job.reads_per_op as usize;
    let reads = words / reads_per_op / job.threads as usize * reads_per_op;
    (0..job.threads as usize).map(|thread| thread * reads..(thread + 1) * reads).collect()
}

/// The words of the requests of each thread, behind the entries and the gaps.
fn requests(job: &Job) -> impl Iterator<Item = Range<usize>> {
    let mut end = job.words_of_entries() as usize;
    let counts = job.thread_read_ahead.iter().copied().chain(std::iter::repeat(0));
    counts.map(move |count| {
        let begin = end;
        end += READ_AHEAD_WORDS * count as usize;
        begin..end
    })
}

/// The parts that the job names, which are the whole table.
fn recorded(job: &Job) -> Result<Vec<Range<usize>>, CallFailure> {
    let mut end = Some(0u64);
    let mut parts = Vec::with_capacity(job.thread_reads.len());
    for reads in &job.thread_reads {
        let begin = end;
        end = begin.and_then(|begin| begin.checked_add(*reads)).filter(|end| *end <= job.table_reads);
        parts.extend(begin.zip(end).map(|(begin, end)| begin as usize..end as usize));
    }
    if end == Some(job.table_reads) && parts.len() == job.threads as usize {
        return Ok(parts);
    }
    let detail = format!(
        "thread_reads {:?} does not divide the {} reads of the table among {} threads",
        job.thread_reads, job.table_reads, job.threads
    );
    Err(refusal("open", &job.path, detail))
}

/// The progress of a `go` through a part.
struct Pieces {
    /// Reads of the part.
    part: u64,
    /// Reads of a piece.
    reads: u64,
    /// The position at which the `go` began: passes begin there.
    begin: u64,
    piece: Piece,
    /// Checksum of the reads of the last piece, and of those of this piece so far.
    last: u64,
    sum: u64,
}

impl Pieces {
    /// Go on to the next piece.
    fn next(&mut self, reader: &mut impl Reader) -> Result<(), CallFailure> {
        let before_last = reader.begin_piece()?.unwrap_or(self.last);
        self.last = std::mem::take(&mut self.sum);
        let start = self.piece.end;
        let in_pass = (start - self.begin) % self.part;
        let pass_end = start - in_pass + self.part;
        let unmasked_end = start - in_pass + 2 * self.reads;
        let end = (start + self.reads).min(pass_end);
        self.piece = Piece {
            end,
            mask: if start < unmasked_end { 0 } else { before_last },
            next_end: if end == pass_end { end } else { (end + self.reads).min(pass_end) },
            next_mask: if end < unmasked_end { 0 } else { self.last },
            touch_at: self.piece.touch_at,
        };
        Ok(())
    }
}
