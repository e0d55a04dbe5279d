//! Prints how often the verdict is wrong on made-up comparisons whose answer is known.
//!
//! `simulate_verdicts [COMPARISONS [SEED]]`, 10,000 of each setting if none is given. The levels of the
//! verdict were chosen with the default seed; another one shows what they are worth on unseen draws.

use std::io::{self, Write};
use std::str::FromStr;

use pagewise_analysis::judge::simulation::{ComparisonScenario, Scatter, simulate};

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

fn main() -> io::Result<()> {
    let comparisons = argument(1)?.unwrap_or(10_000);
    let seed = argument(2)?.unwrap_or(20_260_101);
    let mut out = io::stdout().lock();
    writeln!(out, "{comparisons} comparisons of each setting, seed {seed}; shares in percent\n")?;
    writeln!(
        out,
        "{:8} {:20} {:>6} {:>8} {:>8} {:>10} {:>8}",
        "noise", "methods", "rounds", "winner", "false", "excluded", "none"
    )?;
    for (noise, scatter) in [("typical", Scatter::TYPICAL), ("heavy", Scatter::HEAVY)] {
        for (name, truth) in settings() {
            for rounds in [7, 9, 11, 15, 21, 31, 33] {
                let setting = ComparisonScenario { truth: truth.clone(), rounds, scatter };
                let tally = simulate(&setting, comparisons, seed);
                let percent = |count| 100.0 * tally.share(count);
                writeln!(
                    out,
                    "{noise:8} {name:20} {rounds:>6} {:>8.2} {:>8.2} {:>10.2} {:>8.2}",
                    percent(tally.right_winner),
                    percent(tally.false_winner),
                    percent(tally.false_exclusion),
                    percent(tally.not_comparable),
                )?;
            }
        }
    }
    Ok(())
}
