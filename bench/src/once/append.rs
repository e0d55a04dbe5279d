//! `append`: records into a ring file, against a bare C program.

use std::io::Write;

use anyhow::Result;
use pagewise_analysis::statistics::median;
use pagewise_model::random::Random;

use super::ring::{Before, RingCell, RingFile};
use super::{Shown, reaches, speed};
use crate::dataset::Scratch;
use crate::options::{Filter, Pairs};
use crate::pagewise::{Pagewise, Place};

/// The median ratio of every cell must reach this.
const BAR: f64 = 0.98;
/// Sizes of the records.
const RECORDS: [u64; 4] = [10, 100, 1024, 2048];
/// The staging buffer of half of the cells.
const BUFFER_BYTES: u64 = 4096;
/// A ring that stays in the CPU's caches, and how much is written to it.
const NEAR_BYTES: u64 = 1 << 20;

/// Records appended through a mapping, against a bare C program.
#[derive(clap::Args)]
#[command(mut_arg("dir", |arg| arg.default_value("/dev/shm").help("Folder for the file, which is to lie in memory")))]
#[command(mut_arg("file_size", |arg| arg.default_value("256MiB")))]
pub struct Options {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) pairs: Pairs,
    #[command(flatten)]
    filter: Filter,
}

/// Measures the cells and prints one line each.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    compare(options, &scratch, &pagewise, &cells(options.pairs.file_size.0), out)
}

/// Straight and buffered, onto a new file, onto one that was written before, and round and round a
/// small one.
fn cells(file_bytes: u64) -> Vec<RingCell> {
    let mut cells = Vec::new();
    for buffer_bytes in [0, BUFFER_BYTES] {
        for record_bytes in RECORDS {
            let cell = |before, file_bytes, passes| RingCell {
                workload: "append",
                record_bytes,
                file_bytes,
                passes,
                buffer_bytes,
                before,
            };
            cells.push(cell(Before::New, file_bytes, 1));
            cells.push(cell(Before::Written, file_bytes, 1));
            cells.push(cell(Before::Written, NEAR_BYTES, (file_bytes / NEAR_BYTES).max(1)));
        }
    }
    cells
}

/// A table of those cells whose names hold all words that were asked for.
pub(super) fn compare(
    options: &Options,
    scratch: &Scratch,
    pagewise: &Pagewise<'_>,
    cells: &[RingCell],
    out: &mut impl Write,
) -> Result<()> {
    let cells = options.filter.select(cells, |cell| cell.name())?;
    writeln!(out, "{} pairs, {}\n", options.pairs.pairs, options.place.dir.display())?;
    writeln!(
        out,
        "{:46} {:>12} {:>24} {:>24}",
        "cell", "bare, ns", "pagewise / bare", "bare / bare (control)"
    )?;
    let mut random = Random::for_purpose(options.pairs.seed, "order");
    let mut reached = 0;
    for cell in &cells {
        let times = RingFile::new(scratch, **cell)?.pairs(pagewise, options.pairs.pairs, &mut random)?;
        let ratio = speed(&times.pagewise, &times.bare);
        let control = speed(&times.control, &times.bare);
        let (reaches, mark) = reaches(ratio, BAR);
        reached += usize::from(reaches);
        let each = median(&times.bare).unwrap_or(f64::NAN) / cell.ring().records() as f64;
        writeln!(out, "{:46} {each:>12.2} {:>24} {:>24}{mark}", cell.name(), Shown(ratio), Shown(control))?;
        out.flush()?;
    }
    writeln!(out, "\nmedian of at least {BAR} in {reached} of {} cells", cells.len())?;
    Ok(())
}
