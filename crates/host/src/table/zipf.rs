//! Skewed draws: the k-th most popular position in proportion to 1 / k^theta.

use pagewise_model::random::{Random, mix};

use super::blocks::SpanBlocks;
use super::permutation::Permutation;

/// The positions of a span by popularity.
///
/// A position is a block of the span with one aligned start in it, drawn from the seed: the only
/// one if reads are aligned to pages. Positions share no page, so the share of draws that a cache
/// can answer follows from the number of blocks it holds. The seed scatters popular blocks over the
/// span.
pub(super) struct PopularOffsets {
    blocks: SpanBlocks,
    ranks: Zipf,
    scattered: Permutation,
    starts_key: u64,
}

impl PopularOffsets {
    /// `blocks` must be at least one.
    pub(super) fn new(blocks: SpanBlocks, theta_thousandths: u32, random: &mut Random) -> Self {
        let ranks = Zipf::new(blocks.count(), f64::from(theta_thousandths) / 1000.0);
        let scattered = Permutation::new(blocks.count(), random.next_u64());
        Self { blocks, ranks, scattered, starts_key: random.next_u64() }
    }

    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let block = self.scattered.at(self.ranks.draw(random) - 1);
        self.blocks.start(block, &mut Random::new(mix(self.starts_key ^ block)))
    }
}

/// Ranks from 1 to `count` with P(k) in proportion to 1 / k^theta, exact for every theta over 0,
/// without a list: rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate
/// variates from monotone discrete distributions", ACM TOMACS 6(3), 1996), in the form that stays
/// precise around theta = 1.
///
/// Logarithms and exponentials are those of the C library: another one may round one draw in many
/// millions otherwise.
struct Zipf {
    count: f64,
    theta: f64,
    /// The area under the hat: H(1.5) - 1 to H(count + 0.5).
    area_first: f64,
    area_last: f64,
    /// Draws this close to their rank are accepted without a further test.
    squeeze: f64,
}

impl Zipf {
    fn new(count: u64, theta: f64) -> Self {
        let count = count as f64;
        Self {
            count,
            theta,
            area_first: area(1.5, theta) - 1.0,
            area_last: area(count + 0.5, theta),
            squeeze: 2.0 - area_inverse(area(2.5, theta) - density(2.0, theta), theta),
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let under = self.area_last + random.unit() * (self.area_first - self.area_last);
            let position = area_inverse(under, self.theta);
            // Rounding may lead just past either end.
            let rank = position.round().clamp(1.0, self.count);
            if rank - position <= self.squeeze
                || under >= area(rank + 0.5, self.theta) - density(rank, self.theta)
            {
                return rank as u64;
            }
        }
    }
}

/// h(x) = x^-theta.
fn density(x: f64, theta: f64) -> f64 {
    (-theta * x.ln()).exp()
}

/// H(x), an integral of h: (x^(1 - theta) - 1) / (1 - theta), and ln x where theta is 1.
fn area(x: f64, theta: f64) -> f64 {
    let log = x.ln();
    let exponent = (1.0 - theta) * log;
    // (e^y - 1) / y, which is 1 at 0.
    let quotient = if exponent.abs() > TINY { exponent.exp_m1() / exponent } else { 1.0 + exponent / 2.0 };
    quotient * log
}

/// The x of H(x).
fn area_inverse(area: f64, theta: f64) -> f64 {
    // Rounding may lead below the smallest value of H.
    let scaled = (area * (1.0 - theta)).max(-1.0);
    // ln(1 + y) / y, which is 1 at 0.
    let quotient = if scaled.abs() > TINY { scaled.ln_1p() / scaled } else { 1.0 - scaled / 2.0 };
    (quotient * area).exp()
}

/// Below this a series of two terms is exact to the last bit.
const TINY: f64 = 1e-8;

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 200_000;

    #[test]
    fn ranks_have_their_exact_probabilities() {
        for theta in [0.001, 0.5, 0.8, 0.99, 0.999, 1.0, 1.001, 1.2, 2.0, 5.0, 10.0] {
            for count in [1u64, 2, 3, 10, 100] {
                let zipf = Zipf::new(count, theta);
                let mut random = Random::new(9);
                let mut seen = vec![0u64; count as usize];
                for _ in 0..DRAWS {
                    seen[zipf.draw(&mut random) as usize - 1] += 1;
                }
                let weight = |rank: u64| (rank as f64).powf(-theta);
                let total: f64 = (1..=count).map(weight).sum();
                // Pearson's statistic over ranks expected often enough, the others as one.
                let (mut statistic, mut cells, mut rest) = (0.0, 0u32, (0.0, 0u64));
                let mut add = |expected: f64, seen: u64| {
                    statistic += (seen as f64 - expected).powi(2) / expected;
                    cells += 1;
                };
                for rank in 1..=count {
                    let expected = DRAWS as f64 * weight(rank) / total;
                    let seen = seen[rank as usize - 1];
                    if expected >= 10.0 {
                        add(expected, seen);
                    } else {
                        rest = (rest.0 + expected, rest.1 + seen);
                    }
                }
                if rest.0 >= 1.0 {
                    add(rest.0, rest.1);
                } else {
                    assert!(rest.1 <= 8, "theta {theta}, {count} ranks: {} draws of the rarest", rest.1);
                }
                // Mean cells - 1, deviation sqrt(2 (cells - 1)); the seed is fixed, so five of them
                // never flicker.
                let freedom = f64::from(cells - 1);
                let limit = freedom + 5.0 * (2.0 * freedom).sqrt() + 1.0;
                assert!(statistic <= limit, "theta {theta}, {count} ranks: {statistic} over {limit}");
            }
        }
    }

    #[test]
    fn the_test_notices_another_theta() {
        // The result of the test above if 0.99 were drawn as 0.95: far over its limit.
        let (count, theta) = (100u64, 0.99);
        let weight = |rank: u64, theta: f64| (rank as f64).powf(-theta);
        let total = |theta| (1..=count).map(|rank| weight(rank, theta)).sum::<f64>();
        let statistic: f64 = (1..=count)
            .map(|rank| {
                let expected = DRAWS as f64 * weight(rank, theta) / total(theta);
                (DRAWS as f64 * weight(rank, 0.95) / total(0.95) - expected).powi(2) / expected
            })
            .sum();
        assert!(statistic > 99.0 + 5.0 * (2.0f64 * 99.0).sqrt() + 1.0, "{statistic}");
    }

    #[test]
    fn ranks_stay_within_any_count() {
        for count in [1, 2, 1 << 20, 1 << 40, 1 << 52] {
            for theta in [0.001, 0.99, 1.0, 3.0, 10.0] {
                let zipf = Zipf::new(count, theta);
                let mut random = Random::new(count ^ 77);
                assert!((0..2000).all(|_| (1..=count).contains(&zipf.draw(&mut random))), "{count} {theta}");
            }
        }
    }

    #[test]
    fn the_share_of_the_popular_half_holds_in_a_large_span() {
        // Draws among the first 2^15 of 2^30 ranks: H(2^15) / H(2^30), with H(n) about ln n +
        // 0.5772.
        let zipf = Zipf::new(1 << 30, 1.0);
        let mut random = Random::new(4);
        let popular = (0..DRAWS).filter(|_| zipf.draw(&mut random) <= 1 << 15).count() as f64;
        let share = (15.0 * std::f64::consts::LN_2 + 0.5772) / (30.0 * std::f64::consts::LN_2 + 0.5772);
        assert!(
            (popular / DRAWS as f64 - share).abs() < 0.006,
            "{} instead of {share}",
            popular / DRAWS as f64
        );
    }
}
