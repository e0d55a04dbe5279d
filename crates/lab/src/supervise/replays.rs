//! The entries of a trace, and their expected checksum.

use std::borrow::Cow;
use std::fs::File;

use anyhow::{Context, Result, anyhow, ensure};
use pagewise_analysis::statistics::total;
use pagewise_host::{reference, touched_word};
use pagewise_model::trace::{FileSpan, Gaps, RecordedTable, ResidentPages};
use pagewise_model::{Method, Replay};
use pagewise_protocol::{READ_AHEAD_WORDS, Wait};

use super::files::Input;
use super::sample_round::SampleRound;
use crate::traced;

/// The reads of a trace.
pub struct ReplayTask {
    work: Replay,
    /// As workers follow them.
    pub table: RecordedTable,
    /// Gaps before each of them; empty if they are as fast as possible.
    gaps: Gaps,
    /// Expected checksum of each of them, with the weight of its position.
    pub checksums: Vec<u64>,
    /// Expected checksum of all of them.
    pub checksum: u64,
    /// Position in a page of the word that `touch` takes.
    pub touch_at: u64,
    /// The pages of each file that were in the page cache when the recording began.
    pub resident: Vec<ResidentPages>,
    /// The places of the files in the span of the table.
    pub span: FileSpan,
}

impl ReplayTask {
    /// Read the trace of the plan, and the bytes that it reads.
    pub fn new(work: Replay, round: SampleRound<'_>, input: &Input) -> Result<Self> {
        let SampleRound { plan, page_bytes, wait: Wait { stop, .. }, .. } = round;
        let planned = plan.trace.as_ref().context("the plan has no trace")?;
        let mut trace = traced::of_plan(planned, &work)?;
        let numbers = traced::files_of_plan(&trace, plan, &work)?;
        let (files, sizes): (Vec<&File>, Vec<u64>) = input.parts(input.file_bytes).unzip();
        ensure!(files.len() == numbers.len(), "the trace has other files than the plan");
        let span = FileSpan::of(sizes, page_bytes).context("the files of the trace are too large")?;
        trace.keep_in_span(&numbers, &span);
        let table = traced::table(&trace, work.trace_threads).filter(|table| {
            table.entries.len() as u64 == work.reads
                && table.thread_reads.len() == work.trace_threads as usize
        });
        let mut table = table.context("the trace has other reads than the plan")?;
        if work.read_ahead == 0 {
            table.read_ahead.clear();
            table.thread_read_ahead.clear();
        }
        ensure!(
            table.read_ahead.len() as u64 == work.read_ahead,
            "the trace has other requests to read ahead than the plan"
        );
        let gaps = match work.gaps_ns {
            None => Gaps::default(),
            Some(gaps_ns) => {
                let gaps = trace.gaps(0).map_err(|reason| anyhow!("{reason}"))?;
                ensure!(total(gaps.each()) == gaps_ns, "the trace has other gaps than the plan");
                gaps
            }
        };
        let touch_at = touched_word(page_bytes, page_bytes, plan.seed);
        let consumption = work.consumption(page_bytes).touching(touch_at);
        let checksums = reference::recorded(&table.entries, (&files, &span), &consumption, stop)?;
        let checksum = checksums.iter().fold(0u64, |total, of_read| total.wrapping_add(*of_read));
        let resident = numbers.iter().map(|file| trace.resident.remove(file).unwrap_or_default()).collect();
        Ok(Self { work, table, gaps, checksums, checksum, touch_at, resident, span })
    }

    /// Words that a worker may find behind the entries.
    pub fn words_behind(&self) -> u64 {
        (self.gaps.before_reads.len() + READ_AHEAD_WORDS * self.table.read_ahead.len()) as u64
    }

    /// The gaps before the reads by this method, and the words of its requests to read ahead: a
    /// method that makes none of them waits in the gaps before them, too.
    pub fn between_reads(&self, method: &Method) -> (Cow<'_, [u64]>, Vec<u64>) {
        let mut gaps = Cow::Borrowed(&self.gaps.before_reads[..]);
        let mut words = Vec::new();
        for (index, request) in self.table.read_ahead.iter().enumerate() {
            let gap_ns = self.gaps.before_read_ahead.get(index).copied().unwrap_or(0);
            if method.asks_to_read_ahead(request.mapped) {
                words.extend([request.before, gap_ns, request.offset, request.len]);
            } else if gap_ns > 0 && !gaps.is_empty() {
                let gaps = gaps.to_mut();
                let next = (request.before as usize).min(gaps.len() - 1);
                gaps[next] += gap_ns;
            }
        }
        (gaps, words)
    }

    /// Number of requests to read ahead that each thread makes by this method; empty if none makes
    /// any.
    pub fn thread_read_ahead(&self, method: &Method) -> Vec<u64> {
        let mut requests = self.table.read_ahead.iter();
        let of_thread = |count: &u64| {
            let of_thread = requests.by_ref().take(*count as usize);
            of_thread.filter(|request| method.asks_to_read_ahead(request.mapped)).count() as u64
        };
        let counts: Vec<u64> = self.table.thread_read_ahead.iter().map(of_thread).collect();
        if counts.iter().all(|count| *count == 0) { Vec::new() } else { counts }
    }

    /// True if it is the task of this work.
    pub fn is_of(&self, work: &Replay) -> bool {
        self.work == *work
    }
}
