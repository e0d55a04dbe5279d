//! `transparency`: what the engine's loop costs over a bare one.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use pagewise_analysis::statistics::median;
use pagewise_model::random::Random;
use pagewise_model::units::parse_duration_ns;

use crate::cell::Cell;
use crate::dataset::{Dataset, Scratch};
use crate::options::{Filter, Pairs};
use crate::ratio::{Ratio, log_ratios};
use crate::slices::{Slices, draw_tables};

/// The engine is transparent in a cell from this median ratio on.
const BAR: f64 = 0.98;

/// The engine's loop against a bare C loop, alternating in one process.
#[derive(clap::Args)]
#[command(mut_arg("pairs", |arg| arg.default_value("8").help("Pairs of slices in each opening")))]
pub struct Options {
    /// Folder for the file that is read; removed afterwards.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    pairs: Pairs,
    /// How often all loops of a cell are opened anew; an opening is one observation.
    #[arg(long, default_value_t = 51)]
    openings: usize,
    /// Length of a slice.
    #[arg(long, default_value = "4ms", value_parser = parse_duration_ns)]
    slice: u64,
    #[command(flatten)]
    filter: Filter,
}

/// Measures the cells and prints one line each.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let cells = options.filter.select(Cell::all(), Cell::to_string)?;
    let scratch = Scratch::new(&options.dir)?;
    let dataset = Dataset::create(&scratch, options.pairs.file_size)?;
    writeln!(
        out,
        "{} openings of {} pairs of slices of {} ms each, {} file in the page cache\n",
        options.openings,
        options.pairs.pairs,
        options.slice as f64 / 1e6,
        options.pairs.file_size
    )?;
    writeln!(
        out,
        "{:26} {:>12} {:>24} {:>24} {:>24} {:>12}",
        "cell", "bare, k/s", "engine / bare", "bare / bare (control)", "pieces / one piece", "ns a read"
    )?;
    let mut reached = 0;
    for cell in &cells {
        let measured = measure(options, &dataset, cell)?;
        let (Some(bare), Some(pieces_ns), Some(engine), Some(pieces), Some(control)) = (
            median(&measured.bare_rates),
            median(&measured.pieces_ns),
            Ratio::of_logs(&measured.engine),
            Ratio::of_logs(&measured.pieces),
            Ratio::of_logs(&measured.control),
        ) else {
            continue;
        };
        reached += usize::from(engine.median >= BAR);
        let mark = if engine.median >= BAR { "" } else { "  below" };
        writeln!(
            out,
            "{cell:26} {:>12.0} {engine:>24} {control:>24} {pieces:>24} {pieces_ns:>12.2}{mark}",
            bare / 1e3
        )?;
        out.flush()?;
    }
    writeln!(out, "\nmedian of at least {BAR} in {reached} of {} cells", cells.len())?;
    Ok(())
}

/// Medians of the openings of a cell.
#[derive(Default)]
struct Measured {
    bare_rates: Vec<f64>,
    /// Logarithms of engine over bare.
    engine: Vec<f64>,
    /// Logarithms of the engine over the engine with a table in one piece.
    pieces: Vec<f64>,
    /// What a read takes longer in a thread where the table comes in pieces, in ns.
    pieces_ns: Vec<f64>,
    /// Logarithms of the bare loop again over bare.
    control: Vec<f64>,
}

fn measure(options: &Options, dataset: &Dataset, cell: &Cell) -> Result<Measured> {
    let mut tables = draw_tables(dataset, cell, options.pairs.seed);
    let mut random = Random::for_purpose(options.pairs.seed, "order");
    let mut measured = Measured::default();
    let mut operations = None;
    for _ in 0..options.openings {
        dataset.require_cached()?;
        let word = random.next_u64();
        tables.iter_mut().for_each(|table| table.touch_as(word));
        let mut slices = Slices::open(dataset, cell, &tables, &mut random)?;
        let operations = match operations {
            Some(operations) => operations,
            None => *operations.insert(slices.calibrate(options.slice)?),
        };
        let rates = slices.pairs(options.pairs.pairs, operations, &mut random)?;
        measured.bare_rates.extend(median(&rates.bare));
        measured.engine.extend(median(&log_ratios(&rates.engine, &rates.bare)));
        measured.pieces.extend(median(&log_ratios(&rates.engine, &rates.one_piece)));
        let of_thread = |rate: f64| f64::from(cell.threads) * 1e9 / rate;
        let longer = rates
            .engine
            .iter()
            .zip(&rates.one_piece)
            .map(|(pieces, one)| of_thread(*pieces) - of_thread(*one));
        measured.pieces_ns.extend(median(&longer.collect::<Vec<f64>>()));
        measured.control.extend(median(&log_ratios(&rates.control, &rates.bare)));
    }
    Ok(measured)
}
