//! The tables of a published study of read strategies in the JVM, from a run of one's own.
//!
//! The study measured random and sequential reads with five strategies at 1, 4, 8 and 16 threads, on files of half, once and
//! twice its memory, and derived two tables: the advantage of pread by threads, and how strategies scale under pressure.
//! Here each set of conditions that are equal but for the threads is a *matrix*: strategies as rows, threads as columns, the
//! score in operations per millisecond with the interval of its median. Ratios are paired by round, and one is told only
//! where its interval lies off 1 and its median is beyond the noise of the run. What the study explains by causes
//! that it did not measure is answered by counters here, as far as these go.

mod cold;
pub(crate) mod facts;
mod matrix;
pub(crate) mod ratio;
mod sentences;
#[cfg(test)]
mod tests;
mod waits;

use pagewise_model::run::Run;

use crate::judge::cell::{CellJudgement, by_id};
use crate::judge::collected::CellSamples;
use crate::judge::comparison::Comparison;
use facts::Data;

pub use facts::*;
pub use ratio::PairedRatio;
pub use waits::{Cause, Waits};

/// The question whose runs have these tables.
pub const QUESTION: &str = "lucene";

/// The tables of a run, from its samples by cell, its judged cells and its comparisons.
pub(crate) fn tables(
    run: &Run,
    samples: &[CellSamples<'_>],
    cells: &[CellJudgement],
    comparisons: &[Comparison],
) -> Lucene {
    let samples = samples.iter().map(|samples| (samples.id.as_str(), samples)).collect();
    let data = Data { cpus: run.header.environment.cpus, samples, cells: by_id(cells), comparisons };
    let groups = matrix::groups(&data);
    let matrices: Vec<Matrix> = groups.iter().map(|group| matrix::matrix(&data, group)).collect();
    let falls = matrix::falls(&data, &groups, &matrices);
    let cold_starts = cold::cold_starts(&data);
    let sentences = sentences::of_all(&matrices, &cold_starts);
    Lucene { cpus: data.cpus, noise: data.noise(&[]), matrices, falls, cold_starts, sentences }
}
