//! `control`: how often `pagewise run` finds a winner between a method and itself.
//!
//! With one thread, `--descriptor shared` and `--descriptor per-thread` are the same work under two names, so a
//! run over both measures one method as two. Both are judged as pagewise judges two methods, with the run's own
//! noise from the control of the first.

use std::io::Write;

use anyhow::{Context, Result};
use pagewise_analysis::judge::collected::{CellSamples, collect};
use pagewise_analysis::judge::verdict::{self, Judgement, Verdict};
use pagewise_model::run::Run;
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{Bytes, CacheState, Descriptor, HostSettings, Role, Workload};

use crate::dataset::{Dataset, Scratch};
use crate::pagewise::{Place, Request};

/// The share of comparisons in which a winner may be named.
const WINNERS_AT_MOST: f64 = 0.05;

/// How often `pagewise run` finds a winner between a method and itself.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    place: Place,
    /// Size of the file.
    #[arg(long, default_value = "64MiB")]
    file_size: Bytes,
    /// Comparisons, half of them of mmap and half of pread.
    #[arg(long, default_value_t = 100)]
    comparisons: u64,
    /// Rounds of each run.
    #[arg(long, default_value_t = verdict::QUICK_ROUNDS)]
    rounds: u32,
    /// Length of a sample.
    #[arg(long, default_value = "20ms", value_parser = parse_duration_ns)]
    sample: u64,
    /// Seed of the first run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the comparisons and counts the verdicts.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    let dataset = Dataset::create(&scratch, options.file_size)?;
    let (mut winners, mut open, mut none) = (0u64, 0u64, 0u64);
    for index in 0..options.comparisons {
        dataset.require_cached()?;
        let method = if index % 2 == 0 { "pread" } else { "mmap" };
        let request = Request {
            methods: method.into(),
            workload: Workload::RandomRead,
            threads: "1".into(),
            read_bytes: Bytes::kib(if index % 4 < 2 { 4 } else { 16 }),
            align: None,
            reads_per_op: 1,
            cache: CacheState::Warm,
            descriptor: "shared,per-thread".into(),
            rounds: options.rounds,
            sample_ns: options.sample,
            seed: options.seed.wrapping_add(index),
            host_settings: HostSettings::default(),
            jdk: None,
        };
        let judgement = judge(&pagewise.run(&dataset, &request)?)?;
        match judgement.verdict {
            Verdict::Best => {
                winners += 1;
                let ratio = judgement.ratios.first().map_or(1.0, |ratio| ratio.ratio);
                writeln!(out, "comparison {index}, {method} {}: winner by {ratio:.3}", request.read_bytes)?;
            }
            Verdict::Tie | Verdict::Close => {}
            Verdict::Open => open += 1,
            Verdict::NotComparable => {
                none += 1;
                let reason = judgement.reason.unwrap_or_default();
                writeln!(out, "comparison {index}, {method} {}: {reason}", request.read_bytes)?;
            }
        }
        out.flush()?;
    }
    writeln!(
        out,
        "{} comparisons of a method with itself: {winners} winners, {open} open, {none} not comparable; at most \
         {:.0} winners are allowed",
        options.comparisons,
        WINNERS_AT_MOST * options.comparisons as f64
    )?;
    Ok(())
}

fn judge(run: &Run) -> Result<Judgement> {
    let cells = collect(run);
    let find = |descriptor: Descriptor, role: Role| -> Result<&CellSamples<'_>> {
        cells
            .iter()
            .find(|samples| samples.cell.conditions.descriptor == descriptor && samples.cell.role == role)
            .with_context(|| format!("the run has no {role} cell with a {descriptor} descriptor"))
    };
    let one = find(Descriptor::Shared, Role::Measured)?.rates();
    let other = find(Descriptor::PerThread, Role::Measured)?.rates();
    Ok(verdict::judge(&[&one, &other]))
}
