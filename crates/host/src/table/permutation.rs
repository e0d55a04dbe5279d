//! A random order without a list.

use pagewise_model::random::mix;

/// A random order of `0..count` without memory for a list: four rounds of a Feistel network over
/// the next even power of two, walked on until it falls below `count` (Black and Rogaway, "Ciphers
/// with arbitrary finite domains", 2002). A shuffled list of a large file's blocks would exceed the
/// supervisor's memory limit.
pub struct Permutation {
    count: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    /// The order of `0..count` that follows from `key`.
    pub fn new(count: u64, key: u64) -> Self {
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), key }
    }

    /// The number at `index`.
    ///
    /// # Panics
    /// If `index` is not below the count.
    pub fn at(&self, index: u64) -> u64 {
        assert!(index < self.count, "an index outside of the permutation");
        let mut value = index;
        loop {
            value = self.round_trip(value);
            if value < self.count {
                return value;
            }
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..4u64 {
            let scrambled = mix(self.key ^ mix(right ^ (round << 60)));
            (left, right) = (right, left ^ (scrambled & mask));
        }
        (left << self.half_bits) | right
    }
}
