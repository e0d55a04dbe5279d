//! `pieces`: what a read costs more because the table comes in pieces. The reads are as cheap as
//! any can be: one load of a word that is in a first cache, by `mmap:in-place`. In slices of
//! milliseconds in random order, as in `transparency`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use pagewise_analysis::statistics::median;
use pagewise_engine::sampling::Phases;
use pagewise_model::random::Random;
use pagewise_model::{Access, Bytes, Workload};

use crate::cell::Cell;
use crate::dataset::{Dataset, Scratch};
use crate::slices::{draw_tables, engine_sides};

/// The table in pieces against the same table in one piece, in ns a read.
#[derive(clap::Args)]
pub struct Options {
    /// Folder for the file that is read; removed afterwards.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// How often both sides are opened anew; an opening is one observation.
    #[arg(long, default_value_t = 51)]
    openings: usize,
    /// Pairs of slices in each opening.
    #[arg(long, default_value_t = 16)]
    pairs: usize,
}

/// Reads of a slice: a few milliseconds.
const SLICE_READS: usize = 1 << 20;
const READ_BYTES: Bytes = Bytes::kib(4);
const FILE_BYTES: Bytes = Bytes::kib(16);

/// Measures it and prints a line.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let scratch = Scratch::new(&options.dir)?;
    let dataset = Dataset::create(&scratch, FILE_BYTES)?;
    let cell =
        Cell { access: Access::Mmap, workload: Workload::RandomRead, read_bytes: READ_BYTES, threads: 1 };
    let tables = draw_tables(&dataset, &cell, 1);
    let mut random = Random::new(1);
    let (mut one_piece_ns, mut longer_ns) = (Vec::new(), Vec::new());
    for _ in 0..options.openings {
        let mut sides = [true, false].map(|in_pieces| (in_pieces, None));
        random.shuffle(&mut sides);
        for (in_pieces, side) in &mut sides {
            let mut opened = engine_sides(&dataset, &cell, "mmap:in-place", &tables, *in_pieces)?;
            opened.iter_mut().for_each(|side| side.put(tables[0].offsets(), SLICE_READS));
            *side = opened.pop();
        }
        let (mut one_piece, mut longer) = (Vec::new(), Vec::new());
        for _ in 0..options.pairs {
            random.shuffle(&mut sides);
            let mut of_pair = [0.0; 2];
            for (in_pieces, side) in &mut sides {
                let side = side.as_mut().context("a reader for the only thread")?;
                let slice = side.sample(0, SLICE_READS, &Phases::of(1))?;
                of_pair[usize::from(*in_pieces)] =
                    (slice.ended_ns - slice.started_ns) as f64 / SLICE_READS as f64;
            }
            one_piece.push(of_pair[0]);
            longer.push(of_pair[1] - of_pair[0]);
        }
        one_piece_ns.extend(median(&one_piece));
        longer_ns.extend(median(&longer));
    }
    longer_ns.sort_by(f64::total_cmp);
    let at = |share: f64| longer_ns[((longer_ns.len() - 1) as f64 * share) as usize];
    let one_piece = median(&one_piece_ns).context("an opening")?;
    writeln!(
        out,
        "a read in one piece takes {one_piece:.3} ns, in pieces {:+.3} ns more (over {} openings from {:+.3} to {:+.3}, half of them from {:+.3} to {:+.3})",
        at(0.5),
        longer_ns.len(),
        at(0.0),
        at(1.0),
        at(0.25),
        at(0.75),
    )?;
    Ok(())
}
