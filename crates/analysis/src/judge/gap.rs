//! Gaps that need few rounds: a method that is many times as slow in each of three rounds is
//! behind.
//!
//! Below [`FEWEST_ROUNDS`] the test of ratios has no scatter to go by. A ratio beyond [`GAP`] in
//! every round is more than the scatter of any noise of [`super::simulation`] explains, and it is
//! claimed of no pair that is closer.

use crate::statistics::paired::FEWEST_ROUNDS;
use crate::statistics::{ByRound, Interval, paired_log_ratios};

/// Smallest ratio of a gap.
pub const GAP: f64 = 3.0;
/// Fewest common rounds of a gap.
pub const FEWEST_ROUNDS_OF_A_GAP: usize = 3;

/// The method that leads every other one with a valid sample by a gap.
pub fn leader(methods: &[&ByRound]) -> Option<usize> {
    let measured: Vec<usize> = (0..methods.len()).filter(|method| methods[*method].count() > 0).collect();
    let leads =
        |leader: usize, other: usize| leader == other || between(methods[leader], methods[other]).is_some();
    let leads_all = |leader: &&usize| measured.iter().all(|other| leads(**leader, *other));
    measured.iter().find(leads_all).copied().filter(|_| measured.len() > 1)
}

/// The log ratios of the leader over another method, if they are few and each of them is a gap.
pub fn between(leader: &ByRound, other: &ByRound) -> Option<Vec<f64>> {
    let log_ratios = paired_log_ratios(leader, other);
    let is_few = (FEWEST_ROUNDS_OF_A_GAP..FEWEST_ROUNDS).contains(&log_ratios.len());
    (is_few && log_ratios.iter().all(|ratio| *ratio > GAP.ln())).then_some(log_ratios)
}

/// The range of values, which covers their median with a probability of `1 - 2^(1 - n)`.
pub fn range(values: &[f64]) -> Interval {
    Interval {
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        coverage: 1.0 - 0.5f64.powi(values.len() as i32 - 1),
    }
}
