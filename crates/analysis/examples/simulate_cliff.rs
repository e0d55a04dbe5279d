//! Prints how often the search for a crossing finds it, and how often it names one that is not there.
//!
//! `simulate_cliff [SEARCHES [SEED]]`, 1,000 of each setting if none is given.

use std::io::{self, Write};
use std::str::FromStr;

use pagewise_analysis::judge::simulation::Scatter;
use pagewise_analysis::search::crossing::simulation::{CurveShape, SearchScenario, simulate};

/// Three percent on each sample, nothing else.
const PLAIN: Scatter =
    Scatter { sample: 0.03, slowed_share: 0.0, slowed_by: (0.0, 0.0), round: 0.2, invalid_share: 0.0 };

const QUICK: [f64; 4] = [0.5, 0.9, 1.08, 4.0];
const FULL: [f64; 8] = [0.5, 0.75, 0.9, 1.05, 1.25, 1.6, 2.4, 4.0];

fn shapes() -> Vec<(&'static str, Vec<CurveShape>)> {
    let power = |exponent: f64| {
        vec![CurveShape::Power { at_one: 1.3f64.powf(-exponent), exponent }, CurveShape::Flat(1.0)]
    };
    let missing = CurveShape::Missing { hit: 2.0, miss: 150.0 };
    vec![
        ("rate ~ ratio^-20, at 1.3x", power(20.0)),
        ("rate ~ ratio^-10, at 1.3x", power(10.0)),
        ("rate ~ ratio^-5, at 1.3x", power(5.0)),
        ("cache misses, at 1.3x", vec![missing, CurveShape::Flat(missing.duration(1.3))]),
        (
            "cache misses, 4 methods",
            vec![
                CurveShape::Missing { hit: 2.0, miss: 4000.0 },
                CurveShape::Missing { hit: 2.6, miss: 70.0 },
                CurveShape::Missing { hit: 2.0, miss: 200.0 },
                CurveShape::Missing { hit: 2.7, miss: 75.0 },
            ],
        ),
        ("2 equal", vec![CurveShape::Flat(1.0); 2]),
        ("4 equal", vec![CurveShape::Flat(1.0); 4]),
        ("7 equal", vec![CurveShape::Flat(1.0); 7]),
        ("10 % apart", vec![CurveShape::Flat(1.0), CurveShape::Flat(1.1)]),
    ]
}

/// The argument at `index`, if there is one.
fn argument<T: FromStr>(index: usize) -> io::Result<Option<T>> {
    let parse = |text: String| {
        text.parse().map_err(|_| {
            let message = format!("'{text}' is no number; simulate_cliff [SEARCHES [SEED]]");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
    };
    std::env::args().nth(index).map(parse).transpose()
}

fn main() -> io::Result<()> {
    let searches = argument(1)?.unwrap_or(1_000);
    let seed = argument(2)?.unwrap_or(20_260_101);
    let mut out = io::stdout().lock();
    writeln!(out, "{searches} searches of each setting, seed {seed}; shares of true crossings in percent\n")?;
    writeln!(
        out,
        "{:8} {:26} {:>6} {:>4} {:>9} {:>6} {:>8} {:>8} {:>6} {:>5}",
        "noise", "curves", "rounds", "tol", "tolerance", "held", "excluded", "false", "cells", "most"
    )?;
    for (noise, scatter) in [("3 %", PLAIN), ("typical", Scatter::TYPICAL), ("heavy", Scatter::HEAVY)] {
        for (name, shapes) in shapes() {
            let kinds = [(7, 100, &QUICK[..]), (7, 50, &FULL[..]), (11, 50, &FULL[..])];
            for (rounds, tolerance_thousandths, ratios) in kinds {
                let setting = SearchScenario {
                    shapes: shapes.clone(),
                    ratios: ratios.to_vec(),
                    rounds,
                    scatter,
                    tolerance_thousandths,
                };
                let tally = simulate(&setting, searches, seed);
                let percent = |count| 100.0 * tally.share(count);
                writeln!(
                    out,
                    "{noise:8} {name:26} {rounds:>6} {:>4} {:>9.1} {:>6.1} {:>8.2} {:>8.2} {:>6.1} {:>5}",
                    tolerance_thousandths / 10,
                    percent(tally.held_within_tolerance),
                    percent(tally.held),
                    percent(tally.excluded),
                    100.0 * f64::from(tally.false_searches) / f64::from(tally.searches.max(1)),
                    tally.added_cells as f64 / f64::from(tally.searches.max(1)),
                    tally.added_cells_most,
                )?;
            }
        }
    }
    Ok(())
}
