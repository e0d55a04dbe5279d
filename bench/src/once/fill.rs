//! `fill`: a new file in blocks, against a bare C program and against Google Benchmark.

use std::io::Write;

use anyhow::Result;
use pagewise_analysis::statistics::median;
use pagewise_model::random::Random;

use super::append::{self, compare};
use super::benchmark::GoogleBenchmark;
use super::ring::{Before, RingCell, RingFile};
use super::{Sample, Shown, alternate, speed};
use crate::dataset::Scratch;
use crate::pagewise::Pagewise;

/// Sizes of the blocks; that of the question comes first. Its loop in the bare program has the size
/// compiled in.
const BLOCKS: [u64; 5] = [128, 10, 100, 1024, 2048];

/// A file filled through a mapping, against a bare C program and against Google Benchmark.
// The options it shares have the same name, which is the name of their group.
#[derive(clap::Args)]
#[group(skip)]
pub struct Options {
    #[command(flatten)]
    common: append::Options,
    /// Google Benchmark is left out.
    #[arg(long)]
    no_google: bool,
}

/// Measures the cells and prints one line each.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let common = &options.common;
    let scratch = Scratch::new(&common.place.dir)?;
    let pagewise = common.place.find(&scratch)?;
    let mut cells = Vec::new();
    for record_bytes in BLOCKS {
        for before in [Before::New, Before::Written] {
            cells.push(RingCell {
                workload: "fill",
                record_bytes,
                file_bytes: common.pairs.file_size.0,
                passes: 1,
                buffer_bytes: 0,
                before,
            });
        }
    }
    compare(common, &scratch, &pagewise, &cells, out)?;
    if !options.no_google {
        google(common, &scratch, &pagewise, &cells[..2], out)?;
    }
    Ok(())
}

/// The measured region against what Google Benchmark says of the same stores.
fn google(
    options: &append::Options,
    scratch: &Scratch,
    pagewise: &Pagewise<'_>,
    cells: &[RingCell],
    out: &mut impl Write,
) -> Result<()> {
    let program = match GoogleBenchmark::compile(scratch) {
        Ok(program) => program,
        Err(reason) => {
            writeln!(out, "\nGoogle Benchmark is not compared: {reason:#}")?;
            return Ok(());
        }
    };
    writeln!(
        out,
        "\n{:46} {:>12} {:>24} {:>24}",
        "cell", "Google, ns", "pagewise / Google", "Google / Google"
    )?;
    let mut random = Random::for_purpose(options.pairs.seed, "google");
    for cell in cells {
        let file = RingFile::new(scratch, *cell)?;
        let theirs = || program.fill_ns(cell, &file);
        let sides: [Sample<'_, f64>; 3] =
            [Box::new(|| Ok(file.pagewise(pagewise)?.measured())), Box::new(theirs), Box::new(theirs)];
        let [ours, google, again] = alternate(options.pairs.pairs, &mut random, sides)?;
        let each = median(&google).unwrap_or(f64::NAN) / cell.ring().records() as f64;
        let (ratio, control) = (Shown(speed(&ours, &google)), Shown(speed(&again, &google)));
        writeln!(out, "{:46} {each:>12.2} {ratio:>24} {control:>24}", cell.name())?;
        out.flush()?;
    }
    Ok(())
}
