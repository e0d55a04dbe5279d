//! `verdicts`: how often the verdict names a winner among equals, on made-up comparisons.
//!
//! This is `crates/analysis`'s own simulation, which runs the very code that judges; its example
//! `simulate_verdicts` has the other settings.

use std::io::Write;

use anyhow::Result;
use pagewise_analysis::judge::simulation::{ComparisonScenario, Noise, Scatter, SimulatedSampling, simulate};
use pagewise_analysis::judge::verdict::{FULL_ROUNDS, QUICK_ROUNDS};

/// How often the verdict names a winner among equals, on made-up comparisons.
#[derive(clap::Args)]
pub struct Options {
    /// Comparisons of each setting.
    #[arg(long, default_value_t = 10_000)]
    comparisons: u32,
    /// Seed of the noise.
    #[arg(long, default_value_t = 20_260_101)]
    seed: u64,
}

/// Prints the share of false winners, and of the best one found, by methods, rounds and noise.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    writeln!(out, "{} comparisons of each setting; shares in percent\n", options.comparisons)?;
    writeln!(
        out,
        "{:8} {:>7} {:>6} {:>22} {:>22} {:>22}",
        "noise",
        "methods",
        "rounds",
        "winner among equals",
        "two best, false winner",
        "one best by 10 %, found"
    )?;
    for (name, scatter) in [("typical", Scatter::TYPICAL), ("heavy", Scatter::HEAVY)] {
        for methods in 2..=10 {
            for rounds in [QUICK_ROUNDS as usize, FULL_ROUNDS as usize] {
                let tally = |truth: Vec<f64>| {
                    let (sampling, noise) = (SimulatedSampling::Rounds(rounds), Noise::Scatter(scatter));
                    let scenario = ComparisonScenario { truth, sampling, noise };
                    simulate(&scenario, options.comparisons, options.seed)
                };
                let equals = tally(vec![1.0; methods]);
                let mut truth = vec![0.6; methods];
                truth[..2].fill(1.0);
                let two_best = tally(truth);
                let mut truth = vec![1.0; methods];
                truth[0] = 1.1;
                let one_best = tally(truth);
                writeln!(
                    out,
                    "{name:8} {methods:>7} {rounds:>6} {:>22.2} {:>22.2} {:>22.2}",
                    100.0 * equals.share(equals.false_winner),
                    100.0 * two_best.share(two_best.false_winner),
                    100.0 * one_best.share(one_best.right_winner),
                )?;
                out.flush()?;
            }
        }
    }
    Ok(())
}
