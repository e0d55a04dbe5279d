//! Times that threads waited.

use pagewise_model::inspection::Waits;

/// Parts of a power of two: a quantile is off by 6 % at most.
const PARTS: u64 = 8;

/// Waits being counted.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitCounts {
    count: u64,
    total_ns: u64,
    longest_ns: u64,
    buckets: Vec<u64>,
}

impl WaitCounts {
    /// Count a wait.
    pub(super) fn add(&mut self, wait_ns: u64) {
        let bucket = bucket(wait_ns);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.total_ns += wait_ns;
        self.longest_ns = self.longest_ns.max(wait_ns);
    }

    /// Summary of the waits.
    pub(super) fn waits(&self) -> Waits {
        let any = self.count > 0;
        Waits {
            count: self.count,
            total_ns: self.total_ns,
            median_ns: any.then(|| self.quantile(0.5)),
            p99_ns: (self.count >= 1000).then(|| self.quantile(0.99)),
            longest_ns: any.then_some(self.longest_ns),
        }
    }

    fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let bucket = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        });
        bucket.map_or(0, middle).min(self.longest_ns)
    }
}

fn bucket(value: u64) -> usize {
    if value < PARTS {
        return value as usize;
    }
    let power = u64::from(63 - value.leading_zeros());
    let part = (value >> (power - 3)) & (PARTS - 1);
    ((power - 2) * PARTS + part) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let (power, part) = (bucket / PARTS + 2, bucket % PARTS);
    let width = 1u64 << (power - 3);
    (PARTS + part) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_close() {
        let mut counts = WaitCounts::default();
        assert_eq!(counts.waits(), Waits::default());
        for wait in 1..=10_000u64 {
            counts.add(wait * 1000);
        }
        let waits = counts.waits();
        assert_eq!((waits.count, waits.total_ns), (10_000, 50_005_000_000));
        assert_eq!(waits.longest_ns, Some(10_000_000));
        for (found, expected) in [(waits.median_ns, 5_000_000.0), (waits.p99_ns, 9_900_000.0)] {
            let off = found.expect("a quantile") as f64 / expected - 1.0;
            assert!(off.abs() <= 0.0625, "{off}");
        }
        for value in (0..64).map(|power| 1u64 << power).chain([u64::MAX, 0, 7, 9]) {
            let off = middle(bucket(value)).abs_diff(value) as f64 / value.max(1) as f64;
            assert!(off <= 0.0626, "{value}");
        }
        let mut few = WaitCounts::default();
        few.add(5);
        assert_eq!((few.waits().median_ns, few.waits().p99_ns), (Some(5), None));
    }
}
