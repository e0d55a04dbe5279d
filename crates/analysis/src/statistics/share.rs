//! An interval of the share of operations beyond a limit, from samples of many operations each.
//!
//! Operations of a sample share what it met by chance, so a sample counts for less than its number
//! of operations: by the *design effect* (Kish, *Survey Sampling*, 1965), the larger of what a
//! correlation of 0.02 within samples makes of it, and of what the shares of the samples show. The
//! interval is that of Clopper and Pearson (1934) for the operations that remain.

use statrs::distribution::{Beta, ContinuousCDF};

/// Correlation of the operations of a sample that is assumed at least: it shows in few samples only
/// by chance.
const CORRELATION: f64 = 0.02;
/// Probability that the share is beyond an end of the interval, at each side.
const ALPHA: f64 = 0.025;

/// Operations of a sample beyond the limit, of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Operations beyond the limit.
    pub beyond: u64,
    /// All operations.
    pub of: u64,
}

/// The ends of the interval; `None` without operations.
pub fn interval(parts: &[Part]) -> Option<(f64, f64)> {
    let sum = |number: fn(&Part) -> u64| parts.iter().map(|part| number(part) as f64).sum::<f64>();
    let (beyond, of) = (sum(|part| part.beyond), sum(|part| part.of));
    if of == 0.0 {
        return None;
    }
    let effect = design_effect(parts, beyond / of);
    Some(ends(beyond / effect, of / effect))
}

/// The least number of samples like these, of at most `most`, whose interval lies on one side of
/// `allowed`; `None` if there is none.
pub fn samples_to_decide(parts: &[Part], allowed: f64, most: u32) -> Option<u32> {
    let sum = |number: fn(&Part) -> u64| parts.iter().map(|part| number(part) as f64).sum::<f64>();
    let (beyond, of, samples) = (sum(|part| part.beyond), sum(|part| part.of), parts.len() as f64);
    if of == 0.0 {
        return None;
    }
    let each = design_effect(parts, beyond / of) * samples;
    let decides = |samples: u32| {
        let (low, high) = ends(beyond / each * f64::from(samples), of / each * f64::from(samples));
        low > allowed || high <= allowed
    };
    let (mut open, mut decided) = (0, most);
    if !decides(most) {
        return None;
    }
    // Intervals get shorter with the samples.
    while decided - open > 1 {
        let middle = open + (decided - open) / 2;
        *(if decides(middle) { &mut decided } else { &mut open }) = middle;
    }
    Some(decided)
}

/// Fewest samples of so many operations each, none of them beyond the limit, whose interval ends at
/// `allowed`.
pub fn fewest_samples(operations: f64, allowed: f64) -> u32 {
    let independent = ALPHA.ln() / (1.0 - allowed).ln();
    let operations = operations.max(1.0);
    (independent * assumed_effect(operations) / operations).ceil() as u32
}

/// Operations of samples of so many that stand for one, at least.
fn assumed_effect(operations: f64) -> f64 {
    1.0 + CORRELATION * (operations - 1.0).max(0.0)
}

/// Operations that stand for one.
fn design_effect(parts: &[Part], share: f64) -> f64 {
    let samples: Vec<(f64, f64)> = (parts.iter().filter(|part| part.of > 0))
        .map(|part| (part.beyond as f64 / part.of as f64, part.of as f64))
        .collect();
    let mean = samples.iter().map(|(_, of)| of).sum::<f64>() / samples.len() as f64;
    let assumed = assumed_effect(mean);
    let by_chance = share * (1.0 - share) / mean;
    if samples.len() < 2 || by_chance <= 0.0 {
        return assumed;
    }
    let square = |(one, of): &(f64, f64)| of / mean * (one - share) * (one - share);
    let seen = samples.iter().map(square).sum::<f64>() / (samples.len() - 1) as f64;
    assumed.max(seen / by_chance)
}

/// Clopper and Pearson's interval of `beyond` of `of`, neither of which need be whole.
fn ends(beyond: f64, of: f64) -> (f64, f64) {
    let quantile =
        |share: f64, one: f64, other: f64| Beta::new(one, other).ok().map(|beta| beta.inverse_cdf(share));
    let rest = of - beyond;
    let low = if beyond > 0.0 { quantile(ALPHA, beyond, rest + 1.0) } else { None };
    let high = if rest > 0.0 { quantile(1.0 - ALPHA, beyond + 1.0, rest) } else { None };
    (low.unwrap_or(0.0), high.unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::random::Random;

    #[test]
    fn the_interval_is_that_of_worked_examples() {
        let close = |(low, high): (f64, f64), expected: (f64, f64)| {
            assert!((low - expected.0).abs() < 5e-4 && (high - expected.1).abs() < 5e-4, "{low} {high}");
        };
        // R: binom.test(0, 100), binom.test(3, 20), binom.test(20, 20).
        close(ends(0.0, 100.0), (0.0, 0.0362));
        close(ends(3.0, 20.0), (0.0321, 0.3789));
        close(ends(20.0, 20.0), (0.8316, 1.0));
        assert_eq!(interval(&[]), None);
        assert_eq!(interval(&[Part { beyond: 0, of: 0 }]), None);
    }

    #[test]
    fn the_fewest_samples_are_those_that_decide() {
        for (operations, allowed, fewest) in [(4, 0.01, 98), (128, 0.01, 11), (1000, 0.001, 78)] {
            let high = |samples: u32| {
                let parts = vec![Part { beyond: 0, of: operations }; samples as usize];
                interval(&parts).expect("operations").1
            };
            assert_eq!(fewest_samples(operations as f64, allowed), fewest);
            assert!(high(fewest) <= allowed && high(fewest - 1) > allowed, "{operations}");
        }
    }

    #[test]
    fn samples_that_differ_count_for_less() {
        let alike = interval(&[Part { beyond: 8, of: 800 }; 12]).expect("operations");
        let bursts: Vec<Part> =
            (0..12).map(|sample| Part { beyond: if sample == 0 { 96 } else { 0 }, of: 800 }).collect();
        let bursts = interval(&bursts).expect("operations");
        assert!(bursts.0 < alike.0 && bursts.1 > 2.0 * alike.1, "{alike:?} {bursts:?}");
        // A correlation of 0.02 makes 17 of 800 one; R: binom.test-like bounds of 0 of 564.9.
        let none = interval(&[Part { beyond: 0, of: 800 }; 12]).expect("operations");
        assert!(none.0 == 0.0 && (none.1 - 0.00651).abs() < 1e-4, "{none:?}");
    }

    #[test]
    fn samples_like_these_decide_when_there_are_enough() {
        // A slow disk: sixteen commits in each of twelve samples say too little of one in 100.
        let slow = [Part { beyond: 0, of: 16 }; 12];
        assert!(interval(&slow).expect("operations").1 > 0.01);
        let needed = samples_to_decide(&slow, 0.01, 10_000).expect("a number");
        let high = |samples: u32| interval(&vec![slow[0]; samples as usize]).expect("operations").1;
        assert!(high(needed) <= 0.01 && high(needed - 1) > 0.01, "{needed}");
        assert_eq!(samples_to_decide(&slow, 0.01, needed - 1), None, "more than there may be");
        let at_limit = [Part { beyond: 8, of: 800 }; 12];
        assert_eq!(samples_to_decide(&at_limit, 0.01, 10_000), None);
        let above = [Part { beyond: 16, of: 800 }; 12];
        assert!(samples_to_decide(&above, 0.01, 10_000).is_some());
        assert_eq!(samples_to_decide(&[], 0.01, 10_000), None);
    }

    /// Samples of which a burst hits some: shares of a beta distribution with this mean and
    /// correlation, by acceptance.
    fn sampled(random: &mut Random, share: f64, correlation: f64, samples: usize, of: u64) -> Vec<Part> {
        let unit = |random: &mut Random| (random.below(1 << 53) as f64 + 0.5) / (1u64 << 53) as f64;
        let spread = 1.0 / correlation - 1.0;
        let beta = Beta::new(share * spread, (1.0 - share) * spread).expect("a distribution");
        let mut parts = Vec::with_capacity(samples);
        for _ in 0..samples {
            let own = beta.inverse_cdf(unit(random));
            let beyond = (0..of).filter(|_| unit(random) < own).count() as u64;
            parts.push(Part { beyond, of });
        }
        parts
    }

    #[test]
    fn at_the_limit_hardly_any_run_is_judged_to_hold() {
        let mut random = Random::new(35);
        let held = |random: &mut Random, share: f64, correlation: f64| {
            let runs = 500;
            let holds = (0..runs).filter(|_| {
                let parts = sampled(random, share, correlation, 12, 800);
                interval(&parts).is_some_and(|(_, high)| high < 0.01)
            });
            holds.count() as f64 / f64::from(runs)
        };
        let strong = held(&mut random, 0.01, 0.05);
        assert!(strong <= 0.06, "strong bursts: {strong}");
        assert!(held(&mut random, 0.01, 0.005) <= 0.03, "weak ones");
        assert!(held(&mut random, 0.0005, 0.005) >= 0.9, "a twentieth of what is allowed");
    }
}
