//! The entries of a trace, and their expected checksum.

use std::fs::File;

use anyhow::{Context, Result, anyhow, ensure};
use pagewise_analysis::statistics::total;
use pagewise_host::{reference, touched_word};
use pagewise_model::Replay;
use pagewise_model::trace::{FileSpan, RecordedTable, ResidentPages};
use pagewise_protocol::Wait;

use super::files::Input;
use super::sample_round::SampleRound;
use crate::traced;

/// The reads of a trace.
pub struct ReplayTask {
    work: Replay,
    /// As workers follow them.
    pub table: RecordedTable,
    /// The gap before each of them, in ns; empty if they are as fast as possible.
    pub gaps: Vec<u64>,
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
        let table = table.context("the trace has other reads than the plan")?;
        let gaps = match work.gaps_ns {
            None => Vec::new(),
            Some(gaps_ns) => {
                let gaps = trace.gaps(0).map_err(|reason| anyhow!("{reason}"))?;
                ensure!(total(&gaps) == gaps_ns, "the trace has other gaps than the plan");
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

    /// True if it is the task of this work.
    pub fn is_of(&self, work: &Replay) -> bool {
        self.work == *work
    }
}
