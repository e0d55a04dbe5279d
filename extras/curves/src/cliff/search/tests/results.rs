//! How often the search for a crossing finds it, and how often it names one that is not there.
//!
//! `PAGEWISE_SEARCHES=200 cargo test --release -p pagewise-curves results -- --nocapture` prints the
//! table of bench/RESULTS.md.

use pagewise_analysis::judge::simulation::{Noise, Scatter, simulations};

use crate::cliff::search::simulation::{CurveShape, SearchScenario, SearchTally, simulate};

/// Fifteen percent on each sample, a round's own factor, and nothing else.
const FIFTEEN: Scatter =
    Scatter { sample: 0.15, slowed_share: 0.0, slowed_by: (0.0, 0.0), round: 0.2, invalid_share: 0.0 };

const SEED: u64 = 20_261_123;
const QUICK: [f64; 4] = [0.5, 0.89, 1.07, 4.0];
const FULL: [f64; 8] = [0.5, 0.75, 0.89, 1.05, 1.25, 1.6, 2.4, 4.0];

/// Curves with one crossing or more.
fn crossing() -> Vec<(&'static str, Vec<CurveShape>)> {
    let against = |shape: CurveShape| vec![shape, CurveShape::Flat(1.0)];
    let power = |exponent: f64| against(CurveShape::Power { at_one: 1.3f64.powf(-exponent), exponent });
    let missing = CurveShape::Missing { hit: 2.0, miss: 150.0 };
    vec![
        ("step 1.2x to 1/10x at 1.3", against(CurveShape::Through(&[(1.3, 0.83), (1.3, 10.0)]))),
        ("step 1.2x to 1/1.2x at 1.3", against(CurveShape::Through(&[(1.3, 0.83), (1.3, 1.2)]))),
        ("ratio^10 at 1.3", power(10.0)),
        ("ratio^2 at 1.3", power(2.0)),
        ("ratio^0.5 at 1.3", power(0.5)),
        (
            "equal from 0.9 to 1.6",
            against(CurveShape::Through(&[(0.8, 0.66), (0.9, 1.0), (1.6, 1.0), (2.0, 1.5)])),
        ),
        (
            "dip, then a step at 1.5",
            against(CurveShape::Through(&[(0.6, 0.7), (0.9, 0.98), (1.1, 0.7), (1.5, 0.7), (1.5, 2.0)])),
        ),
        ("misses at 1.3", vec![missing, CurveShape::Flat(missing.duration(1.3))]),
        (
            "misses, 4 methods",
            vec![
                CurveShape::Missing { hit: 2.0, miss: 4000.0 },
                CurveShape::Missing { hit: 2.6, miss: 70.0 },
                CurveShape::Missing { hit: 2.0, miss: 200.0 },
                CurveShape::Missing { hit: 2.7, miss: 75.0 },
            ],
        ),
    ]
}

/// Curves without a crossing.
fn apart() -> Vec<(&'static str, Vec<CurveShape>)> {
    let joins = CurveShape::Through(&[(1.0, 0.7), (1.05, 1.0)]);
    vec![
        ("2 equal", vec![CurveShape::Flat(1.0); 2]),
        ("4 equal", vec![CurveShape::Flat(1.0); 4]),
        ("7 equal", vec![CurveShape::Flat(1.0); 7]),
        ("10 % apart", vec![CurveShape::Flat(1.0), CurveShape::Flat(1.1)]),
        ("equal from 1.05 on", vec![joins, joins, CurveShape::Flat(1.0), CurveShape::Flat(1.0)]),
    ]
}

fn noises() -> Vec<(&'static str, Noise)> {
    let mut noises = vec![("15 %", Noise::Scatter(FIFTEEN))];
    noises.extend(Noise::all().into_iter().filter(|(name, _)| !matches!(*name, "real, fill" | "real, scan")));
    noises
}

#[test]
fn results() {
    let asked = std::env::var("PAGEWISE_SEARCHES").ok();
    let searches = asked.map_or(simulations(3), |count| count.parse().expect("a number of searches"));
    let mut all = SearchTally::default();
    println!("{searches} searches of each setting, seed {SEED}; shares of true crossings in percent\n");
    let rows: Vec<_> = crossing()
        .into_iter()
        .map(|row| (row, true))
        .chain(apart().into_iter().map(|row| (row, false)))
        .collect();
    for (kind, rounds, tolerance_thousandths, ratios) in
        [("quick", 7, 100, &QUICK[..]), ("default", 11, 50, &FULL[..])]
    {
        println!(
            "{kind}: {} ratios, {rounds} rounds, to {} %\n{:18} {:27} {:>6} {:>9} {:>9} {:>8} {:>6} {:>5} {:>8}",
            ratios.len(),
            tolerance_thousandths / 10,
            "noise",
            "curves",
            "held",
            "tolerance",
            "excluded",
            "false",
            "cells",
            "most",
            "samples"
        );
        for (noise, source) in noises() {
            for ((name, shapes), crosses) in &rows {
                let setting = SearchScenario {
                    shapes: shapes.clone(),
                    ratios: ratios.to_vec(),
                    rounds,
                    noise: source.clone(),
                    tolerance_thousandths,
                };
                let tally = simulate(&setting, searches, SEED);
                println!("{noise:18} {name:27} {}", line(&tally, *crosses));
                all.searches += tally.searches;
                all.true_crossings += tally.true_crossings;
                all.excluded += tally.excluded;
                all.false_searches += tally.false_searches;
            }
        }
        println!();
    }
    assert!(f64::from(all.false_searches) <= 0.02 * f64::from(all.searches), "{all:?}");
    assert!(all.true_crossings > all.searches / 4, "{all:?}");
    assert!(all.share(all.excluded) <= 0.05, "{all:?}");
}

fn line(tally: &SearchTally, crosses: bool) -> String {
    let of_searches = |count: f64| count / f64::from(tally.searches.max(1));
    let percent = |count| match crosses {
        true => format!("{:.1}", 100.0 * tally.share(count)),
        false => "-".to_string(),
    };
    format!(
        "{:>6} {:>9} {:>9} {:>8.2} {:>6.1} {:>5} {:>8.0}",
        percent(tally.held),
        percent(tally.held_within_tolerance),
        percent(tally.excluded),
        100.0 * of_searches(f64::from(tally.false_searches)),
        of_searches(tally.added_cells as f64),
        tally.added_cells_most,
        of_searches(tally.samples as f64),
    )
}
