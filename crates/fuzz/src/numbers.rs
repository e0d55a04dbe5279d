//! Numbers that are difficult for parsers: around the ends of integer types, signs, fractions, and
//! near the original.

use pagewise_model::random::Random;
use serde_json::{Number, Value};

/// Ends of integer types and round sizes, each with its neighbours.
const EDGES: [u64; 14] = [
    0,
    1,
    2,
    7,
    255,
    4096,
    65_535,
    1_000_000_000,
    u32::MAX as u64,
    1 << 53,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// A whole number at an extreme, near `was`, or any.
pub fn edge(random: &mut Random, was: u64) -> u64 {
    let edge = EDGES[random.below(EDGES.len() as u64) as usize];
    match random.below(10) {
        0..4 => edge,
        4 => edge.wrapping_add(1),
        5 => edge.wrapping_sub(1),
        6 => was.wrapping_add(1),
        7 => was.saturating_mul(1 << random.below(40)),
        8 => was / (2 + random.below(1000)),
        _ => random.next_u64() >> random.below(64),
    }
}

/// A JSON number in place of `was`: mostly whole, sometimes what no integer holds.
pub fn value(random: &mut Random, was: &Number) -> Value {
    match random.below(12) {
        0 => Value::from(-1),
        1 => Value::from(-(edge(random, 1) as i64 / 2)),
        2 => Value::from([0.5, 1e-308, 1e308, -0.0, 1e19, 4.9e-324][random.below(6) as usize]),
        _ => Value::from(edge(random, was.as_u64().unwrap_or(1))),
    }
}

/// The text of a number, sometimes none.
pub fn text(random: &mut Random, was: &str) -> String {
    let number = edge(random, was.parse().unwrap_or(1));
    match random.below(12) {
        0 => format!("-{number}"),
        1 => format!("{number}.5"),
        2 => format!("{number}{number}"),
        3 => format!("0x{number:x}"),
        4 => format!("+{number}"),
        5 => format!("000{number}"),
        6 => "max".to_string(),
        _ => number.to_string(),
    }
}
