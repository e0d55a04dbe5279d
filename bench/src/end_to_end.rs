//! `end-to-end`: what `pagewise run` reports against what a bare loop does.
//!
//! A pair is `bare, one run, bare, other run, bare`: of `pagewise run` and of the bare loop in a
//! process of its own (the control) one comes first, in random order, and each is compared with the
//! bare slices on both its sides.

use std::io::Write;

use anyhow::Result;
use pagewise_analysis::statistics::median;
use pagewise_model::random::Random;
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{Access, CacheState, HostSettings};

use crate::bare_rates::{BareRates, BothRates, in_own_process};
use crate::cell::Cell;
use crate::dataset::{Dataset, Scratch};
use crate::options::{Filter, Pairs};
use crate::pagewise::{Pagewise, Place, Request, reads_per_second};
use crate::ratio::Ratio;

/// The interval of a cell's ratio must reach this.
const BAR: f64 = 0.98;
/// The ratio of mmap over pread through pagewise may differ by this from the bare loop's.
const RATIO_TOLERANCE: f64 = 0.03;

/// What `pagewise run` reports against what a bare loop does.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    pairs: Pairs,
    /// Rounds of each run.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Length of a sample of pagewise, and of a slice of the bare loop.
    #[arg(long, default_value = "50ms", value_parser = parse_duration_ns)]
    sample: u64,
    #[command(flatten)]
    filter: Filter,
}

/// Measures and prints two cells and their ratio for each set of conditions.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let matching = options.filter.select(Cell::all(), Cell::to_string)?;
    let conditions: Vec<Cell> = Cell::all()
        .into_iter()
        .filter(|cell| cell.access == Access::Mmap)
        .filter(|cell| matching.contains(cell) || matching.contains(&cell.with_access(Access::Pread)))
        .collect();
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    let dataset = Dataset::create(&scratch, options.pairs.file_size)?;
    writeln!(
        out,
        "{} pairs; a run has {} rounds of {} ms; {} file in the page cache\n",
        options.pairs.pairs,
        options.rounds,
        options.sample as f64 / 1e6,
        options.pairs.file_size
    )?;
    writeln!(
        out,
        "{:26} {:>12} {:>24} {:>24}",
        "cell", "bare, k/s", "pagewise / bare", "bare / bare (control)"
    )?;
    let (mut reached, mut agreed) = (0, 0);
    for cell in &conditions {
        let measured = measure(options, &pagewise, &dataset, *cell)?;
        for access in [Access::Mmap, Access::Pread] {
            reached += usize::from(measured.print_cell(cell.with_access(access), out)?);
        }
        agreed += usize::from(measured.print_ratio(*cell, out)?);
        out.flush()?;
    }
    writeln!(
        out,
        "\ninterval reaches {BAR} in {reached} of {} cells; mmap / pread within {} % of the bare loop's, or \
         inside the control's interval, in {agreed} of {}",
        2 * conditions.len(),
        RATIO_TOLERANCE * 100.0,
        conditions.len()
    )?;
    Ok(())
}

/// One pair.
struct Pair {
    pagewise: BothRates,
    /// On both sides of pagewise.
    bare: BothRates,
    control: BothRates,
    /// On both sides of the control.
    control_bare: BothRates,
}

struct Measured(Vec<Pair>);

fn measure(options: &Options, pagewise: &Pagewise<'_>, dataset: &Dataset, cell: Cell) -> Result<Measured> {
    let mut random = Random::for_purpose(options.pairs.seed, "order");
    let mut bare = BareRates::new(dataset, cell, options.sample, options.pairs.seed)?;
    let slices = options.rounds.div_ceil(2);
    let request = |seed| Request {
        methods: "mmap,pread".into(),
        workload: cell.workload,
        threads: cell.threads.to_string(),
        read_bytes: cell.read_bytes,
        align: None,
        reads_per_op: cell.reads_per_op(),
        cache: CacheState::Warm,
        descriptor: "shared".into(),
        rounds: options.rounds,
        sample_ns: options.sample,
        seed,
        host_settings: HostSettings::default(),
        jdk: None,
    };
    let through_pagewise = |seed| -> Result<BothRates> {
        let run = pagewise.run(dataset, &request(seed))?;
        Ok(BothRates { mmap: reads_per_second(&run, "mmap")?, pread: reads_per_second(&run, "pread")? })
    };
    let control = |seed| in_own_process(dataset, cell, options.sample, options.rounds, seed);
    let mut pairs = Vec::with_capacity(options.pairs.pairs);
    for seed in (options.pairs.seed..).take(options.pairs.pairs) {
        dataset.require_cached()?;
        // Another word of each page in each pair: rates depend on it.
        bare.touch_as(seed);
        let pagewise_first = random.below(2) == 0;
        let first = bare.medians(slices)?;
        let one = if pagewise_first { through_pagewise(seed)? } else { control(seed)? };
        let second = bare.medians(slices)?;
        let other = if pagewise_first { control(seed)? } else { through_pagewise(seed)? };
        let third = bare.medians(slices)?;
        let (early, late) = (BothRates::between(first, second), BothRates::between(second, third));
        pairs.push(if pagewise_first {
            Pair { pagewise: one, bare: early, control: other, control_bare: late }
        } else {
            Pair { pagewise: other, bare: late, control: one, control_bare: early }
        });
    }
    Ok(Measured(pairs))
}

impl Measured {
    fn figures(&self, figure: impl Fn(&Pair) -> f64) -> Vec<f64> {
        self.0.iter().map(figure).collect()
    }

    /// Whether the interval reaches the bar.
    fn print_cell(&self, cell: Cell, out: &mut impl Write) -> Result<bool> {
        let of = |pick: fn(&Pair) -> BothRates| self.figures(|pair| pick(pair).of(cell.access));
        let bare = of(|pair| pair.bare);
        let (Some(rate), Some(ratio), Some(control)) = (
            median(&bare),
            Ratio::of(&of(|pair| pair.pagewise), &bare),
            Ratio::of(&of(|pair| pair.control), &of(|pair| pair.control_bare)),
        ) else {
            return Ok(false);
        };
        let reaches = ratio.interval.is_some_and(|(_, high)| high >= BAR);
        let mark = if reaches { "" } else { "  below" };
        writeln!(out, "{cell:26} {:>12.0} {ratio:>24} {control:>24}{mark}", rate / 1e3)?;
        Ok(reaches)
    }

    /// Whether mmap over pread through pagewise agrees with the bare loop's.
    fn print_ratio(&self, cell: Cell, out: &mut impl Write) -> Result<bool> {
        let advantage = |rates: BothRates| rates.mmap / rates.pread;
        let of = |pick: fn(&Pair) -> BothRates| self.figures(|pair| advantage(pick(pair)));
        let bare = of(|pair| pair.bare);
        let (Some(in_bare), Some(ratio), Some(control)) = (
            median(&bare),
            Ratio::of(&of(|pair| pair.pagewise), &bare),
            Ratio::of(&of(|pair| pair.control), &of(|pair| pair.control_bare)),
        ) else {
            return Ok(false);
        };
        let agrees = (ratio.median - 1.0).abs() <= RATIO_TOLERANCE || control.covers(ratio.median);
        let mark = if agrees { "" } else { "  differs" };
        let name = cell.to_string().replacen("mmap", "mmap / pread", 1);
        writeln!(out, "{name:30} {in_bare:>8.2} {ratio:>24} {control:>24}{mark}")?;
        Ok(agrees)
    }
}
