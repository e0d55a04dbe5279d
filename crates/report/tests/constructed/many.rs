//! A run of many cells.

use std::collections::HashMap;

use pagewise_model::Bytes;
use pagewise_model::run::Run;
use pagewise_model::sample::Sample;

/// Numbers of threads of a size of the data.
const MOST_THREADS: u32 = 500;

/// The complete run, with at least `count` cells: each once more with other threads and sizes.
pub fn many(count: usize) -> Run {
    let mut run = super::complete();
    let (cells, samples) = (run.header.plan.cells.clone(), run.samples.clone());
    let mut of_cell: HashMap<&str, Vec<&Sample>> = HashMap::new();
    for sample in &samples {
        of_cell.entry(&sample.cell).or_default().push(sample);
    }
    for copy in 1u32.. {
        if run.header.plan.cells.len() >= count {
            break;
        }
        for cell in &cells {
            let mut other = cell.clone();
            other.conditions.threads = 1 + copy % MOST_THREADS;
            other.conditions.span_bytes = Bytes::gib(1 + u64::from(copy / MOST_THREADS));
            let id = other.id();
            let taken = of_cell.get(cell.id().as_str()).into_iter().flatten();
            run.samples.extend(taken.map(|sample| Sample { cell: id.clone(), ..(*sample).clone() }));
            run.header.plan.cells.push(other);
        }
    }
    run
}
