//! Work that is done once: a scan, records appended, a file filled. Every sample of every side is a
//! process of its own on a file that was prepared before, and the sides of a pair run one after the
//! other in random order.
//!
//! pagewise's side is its worker, spoken to as its supervisor does: `pagewise worker`, open, go,
//! close. What is compared is what the worker measured, so neither side's start counts.

pub mod append;
mod bare;
mod benchmark;
pub mod fill;
mod peers;
pub mod ring;
pub mod scan;
pub mod worker;

use std::fmt;

use anyhow::Result;
use pagewise_model::random::Random;

use crate::ratio::Ratio;

/// What one sample took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Open, map, populate.
    pub setup_ns: u64,
    /// The measured region.
    pub measured_ns: u64,
    /// Unmap, close.
    pub teardown_ns: u64,
    /// Lines counted, or records written.
    pub count: u64,
}

impl Spent {
    fn measured(&self) -> f64 {
        self.measured_ns as f64
    }

    fn total(&self) -> f64 {
        (self.setup_ns + self.measured_ns + self.teardown_ns) as f64
    }
}

/// One sample of one side.
type Sample<'a, T> = Box<dyn FnMut() -> Result<T> + 'a>;

/// Samples of each side, `pairs` of each: all sides in turn, in random order each time.
fn alternate<T, const SIDES: usize>(
    pairs: usize,
    random: &mut Random,
    mut sides: [Sample<'_, T>; SIDES],
) -> Result<[Vec<T>; SIDES]> {
    let mut samples = std::array::from_fn(|_| Vec::with_capacity(pairs));
    let mut order: [usize; SIDES] = std::array::from_fn(|side| side);
    for _ in 0..pairs {
        random.shuffle(&mut order);
        for side in order {
            samples[side].push(sides[side]()?);
        }
    }
    Ok(samples)
}

/// How fast `ours` is against `theirs`: the ratio of rates of the same work, from times.
fn speed(ours: &[f64], theirs: &[f64]) -> Option<Ratio> {
    Ratio::of(theirs, ours)
}

/// A ratio in a table, or a dash.
struct Shown(Option<Ratio>);

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(ratio) => fmt::Display::fmt(ratio, formatter),
            None => formatter.pad("–"),
        }
    }
}

/// Whether the median reaches `bar`, and how that is marked.
fn reaches(ratio: Option<Ratio>, bar: f64) -> (bool, &'static str) {
    match ratio {
        Some(ratio) if ratio.median >= bar => (true, ""),
        _ => (false, "  below"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_take_turns() {
        let sides: [Sample<'_, f64>; 2] = [Box::new(|| Ok(1.0)), Box::new(|| Ok(2.0))];
        let [ours, theirs] = alternate(9, &mut Random::new(1), sides).expect("no side fails");
        assert_eq!((ours.len(), theirs.len()), (9, 9));
        let ratio = speed(&ours, &theirs);
        assert_eq!(Shown(ratio).to_string(), "2.000 [2.000, 2.000]");
        assert_eq!(reaches(ratio, 0.98), (true, ""));
        assert_eq!(reaches(Ratio::of(&[0.9], &[1.0]), 0.98), (false, "  below"));
        assert_eq!(Shown(None).to_string(), "–");
    }
}
