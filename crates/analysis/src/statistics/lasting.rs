//! Disturbances that outlast a round: how much longer intervals must be for them.
//!
//! Intervals assume that rounds are independent once methods are paired. A neighbour that slows one
//! method for several rounds breaks that. It shows as a correlation between a round and the next in
//! what a method does apart from its round: its log rate without its own median and without the
//! round's median over the methods. With a lag-1 correlation `phi` the standard error of a mean is
//! longer by `sqrt((1 + phi) / (1 - phi))`.

use std::borrow::Borrow;

use super::{ByRound, median};

/// Clipping point of residuals, in robust standard deviations.
const CLIP: f64 = 2.0;
/// A correlation counts from this many standard errors on: 5 %, one-sided.
const SIGNIFICANT: f64 = 1.64;
/// Largest correlation that is assumed.
const LARGEST: f64 = 0.9;
/// Standard deviation of a normal distribution over its median absolute deviation.
const NORMAL_SCALE: f64 = 1.4826;

/// The factor by which intervals are longer, at least 1. `comparisons` are the rates of the methods
/// of each comparison.
pub fn inflation<Rates: Borrow<ByRound>>(comparisons: &[Vec<Rates>]) -> f64 {
    let (mut correlations, mut methods, mut rounds) = (0.0, 0.0, 0.0);
    for comparison in comparisons.iter().filter(|comparison| comparison.len() > 1) {
        for residuals in residuals(comparison) {
            let Some(correlation) = lag_one(&residuals) else { continue };
            let count = residuals.len() as f64;
            // Of n rounds the estimate is too small by (1 + 3 r) / n (Marriott and Pope 1954).
            let shrunk = 1.0 - 3.0 / count;
            correlations += (correlation + 1.0 / count) / shrunk;
            methods += 1.0;
            // Residuals of k methods are worth k - 1, since the round's median is theirs.
            rounds += count * shrunk * shrunk * (comparison.len() - 1) as f64 / comparison.len() as f64;
        }
    }
    if methods == 0.0 {
        return 1.0;
    }
    let correlation: f64 = correlations / methods;
    if correlation <= SIGNIFICANT / f64::sqrt(rounds) {
        return 1.0;
    }
    let correlation = correlation.min(LARGEST);
    ((1.0 + correlation) / (1.0 - correlation)).sqrt()
}

/// For each method its log rates by round without its median and the rounds' medians.
fn residuals<Rates: Borrow<ByRound>>(methods: &[Rates]) -> Vec<Vec<(u32, f64)>> {
    let centred: Vec<Vec<(u32, f64)>> = methods
        .iter()
        .map(|method| {
            let logs = method.borrow().iter().map(|(round, rate)| (round, rate.ln()));
            let logs: Vec<(u32, f64)> = logs.filter(|(_, log)| log.is_finite()).collect();
            let centre = median(&logs.iter().map(|(_, log)| *log).collect::<Vec<_>>()).unwrap_or(0.0);
            logs.into_iter().map(|(round, log)| (round, log - centre)).collect()
        })
        .collect();
    let mut by_round: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
    for (round, log) in centred.iter().flatten() {
        by_round.entry(*round).or_default().push(*log);
    }
    let of_round = |round: u32| median(&by_round[&round]).unwrap_or(0.0);
    centred
        .into_iter()
        .map(|method| method.into_iter().map(|(round, log)| (round, log - of_round(round))).collect())
        .collect()
}

/// The correlation of clipped residuals with those of the next round; `None` for fewer than five or
/// without scatter.
fn lag_one(residuals: &[(u32, f64)]) -> Option<f64> {
    if residuals.len() < super::paired::FEWEST_ROUNDS {
        return None;
    }
    let values: Vec<f64> = residuals.iter().map(|(_, value)| *value).collect();
    let centre = median(&values)?;
    let sizes: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let limit = CLIP * (NORMAL_SCALE * median(&sizes)? + 1e-12);
    let held: Vec<f64> = values.iter().map(|value| (value - centre).clamp(-limit, limit)).collect();
    let mean = held.iter().sum::<f64>() / held.len() as f64;
    let squares: f64 = held.iter().map(|value| (value - mean).powi(2)).sum();
    let neighbours = residuals.windows(2).zip(held.windows(2));
    let products = neighbours
        .filter(|(rounds, _)| rounds[0].0 + 1 == rounds[1].0)
        .map(|(_, held)| (held[0] - mean) * (held[1] - mean));
    (squares > 1e-12).then(|| products.sum::<f64>() / squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::simulation::normal;
    use pagewise_model::random::Random;

    /// Two methods whose noise has this lag-1 correlation.
    fn methods(correlation: f64, rounds: u32, random: &mut Random) -> Vec<ByRound> {
        (0..2)
            .map(|_| {
                let mut state = normal(random);
                let next = |round: u32| {
                    state = correlation * state + (1.0 - correlation * correlation).sqrt() * normal(random);
                    (round, (0.1 * state).exp())
                };
                (0..rounds).map(next).collect()
            })
            .collect()
    }

    fn mean_inflation(correlation: f64, rounds: u32) -> f64 {
        let mut random = Random::new(3);
        let one = |random: &mut Random| inflation(&[methods(correlation, rounds, random)]);
        (0..200).map(|_| one(&mut random)).sum::<f64>() / 200.0
    }

    #[test]
    fn independent_rounds_inflate_next_to_nothing_and_lasting_noise_does() {
        assert!(mean_inflation(0.0, 40) < 1.05, "{}", mean_inflation(0.0, 40));
        let found = mean_inflation(0.5, 56);
        assert!((1.4..2.0).contains(&found), "sqrt(3) is true: {found}");
    }

    #[test]
    fn nothing_is_inflated_without_rounds_or_rivals() {
        assert_eq!(inflation::<ByRound>(&[]), 1.0);
        let constant = ByRound::of_each(&[Some(1.0); 9]);
        assert_eq!(inflation(&[vec![&constant, &constant], vec![&constant], vec![]]), 1.0);
    }
}
