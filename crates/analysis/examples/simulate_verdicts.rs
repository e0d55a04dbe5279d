//! Prints how often the verdict is wrong on made-up comparisons whose answer is known.
//!
//! `simulate_verdicts [COMPARISONS [SEED]]`, 3,000 of each setting if none is given.

use std::io::{self, Write};
use std::str::FromStr;

use pagewise_analysis::judge::elimination::InterimAnalyses;
use pagewise_analysis::judge::simulation::{ComparisonScenario, Noise, SimulatedSampling, simulate};

fn settings() -> Vec<(&'static str, Vec<f64>)> {
    let with_best = |best: &[f64], others: f64, methods: usize| {
        let mut truth = vec![others; methods];
        truth[..best.len()].copy_from_slice(best);
        truth
    };
    vec![
        ("2 equal", vec![1.0; 2]),
        ("3 equal", vec![1.0; 3]),
        ("5 equal", vec![1.0; 5]),
        ("10 equal", vec![1.0; 10]),
        ("2 equal, 1 at 60 %", with_best(&[1.0, 1.0], 0.6, 3)),
        ("2 equal, 8 at 60 %", with_best(&[1.0, 1.0], 0.6, 10)),
        ("2 equal, 8 at 97 %", with_best(&[1.0, 1.0], 0.97, 10)),
        ("2 equal, 2 at 80 %, 2 at 60 %", vec![1.0, 1.0, 0.8, 0.8, 0.6, 0.6]),
        ("best by 20 % of 2", with_best(&[1.2], 1.0, 2)),
        ("best by 5 % of 2", with_best(&[1.05], 1.0, 2)),
        ("best by 5 % of 10", with_best(&[1.05], 1.0, 10)),
        ("best by 10 % of 2", with_best(&[1.10], 1.0, 2)),
        ("best by 10 % of 10", with_best(&[1.10], 1.0, 10)),
        ("best by 50 % of 5", with_best(&[1.50], 1.0, 5)),
    ]
}

/// The argument at `index`, if there is one.
fn argument<T: FromStr>(index: usize) -> io::Result<Option<T>> {
    let parse = |text: String| {
        text.parse().map_err(|_| {
            let message = format!("'{text}' is no number; simulate_verdicts [COMPARISONS [SEED]]");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
    };
    std::env::args().nth(index).map(parse).transpose()
}

fn samplings() -> Vec<(&'static str, SimulatedSampling)> {
    vec![
        ("9 rounds", SimulatedSampling::Rounds(9)),
        ("33 rounds", SimulatedSampling::Rounds(33)),
        // The usual budget is twice what the first five rounds take; a short question has the least
        // budget, which pays for more.
        ("quick elimination of 10", SimulatedSampling::Elimination(InterimAnalyses::quick(), 10.0)),
        ("quick elimination of 16", SimulatedSampling::Elimination(InterimAnalyses::quick(), 16.0)),
        ("full elimination of 40", SimulatedSampling::Elimination(InterimAnalyses::full(), 40.0)),
    ]
}

fn main() -> io::Result<()> {
    let comparisons = argument(1)?.unwrap_or(3_000);
    let seed = argument(2)?.unwrap_or(20_261_122);
    let mut out = io::stdout().lock();
    writeln!(out, "{comparisons} comparisons of each setting, seed {seed}; shares in percent\n")?;
    writeln!(
        out,
        "| noise | methods | sampling | best found | false best | false behind | open | 1.2x found |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    for (name, noise) in Noise::all() {
        for (methods, truth) in settings() {
            for (shown, sampling) in samplings() {
                let setting = ComparisonScenario { truth: truth.clone(), sampling, noise: noise.clone() };
                let tally = simulate(&setting, comparisons, seed);
                let percent = |count: u32| format!("{:.1}", 100.0 * tally.share(count));
                let text = match tally.far {
                    0 => "–".to_string(),
                    far => format!("{:.1}", 100.0 * f64::from(tally.far_behind) / f64::from(far)),
                };
                writeln!(
                    out,
                    "| {name} | {methods} | {shown} | {} | {} | {} | {} | {text} |",
                    percent(tally.right_winner),
                    percent(tally.false_winner),
                    percent(tally.false_exclusion),
                    percent(tally.open),
                )?;
                out.flush()?;
            }
        }
    }
    Ok(())
}
