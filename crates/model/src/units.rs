//! Sizes with their unit: parsing and printing.
//!
//! A size that a user types must carry a unit, because `64` is a different experiment as bytes, KiB
//! and pages. Sizes are binary (`KiB`, `MiB`, `GiB`, `TiB`, or their first letter alone, as fio, dd
//! and cgroups read it) or bytes (`B`). Decimal units are refused rather than guessed, with both
//! sizes they may mean.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u64); 5] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// Meaning of a unit as typed.
enum Unit {
    /// So many bytes.
    Bytes(u64),
    /// `KB`, `MB`: 1000 or 1024 to this power.
    Decimal(u32),
}

impl Unit {
    fn parse(text: &str) -> Option<Self> {
        let power = |letter: u8| b"kmgt".iter().position(|known| *known == letter).map(|at| at as u32 + 1);
        let letters = text.to_ascii_lowercase();
        Some(match *letters.as_bytes() {
            [b'b'] => Unit::Bytes(1),
            [letter] | [letter, b'i', b'b'] => Unit::Bytes(1 << (10 * power(letter)?)),
            [letter, b'b'] => Unit::Decimal(power(letter)?),
            _ => return None,
        })
    }
}

impl Bytes {
    /// `count` KiB.
    pub const fn kib(count: u64) -> Self {
        Self(count << 10)
    }

    /// `count` MiB.
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    /// `count` GiB.
    pub const fn gib(count: u64) -> Self {
        Self(count << 30)
    }

    /// The bare number, for code where the unit no longer helps.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Exact: `16KiB`, `1536MiB`, `17B`. The printed text parses back to the same value.
impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, factor) = UNITS
            .iter()
            .rev()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
            .unwrap_or(&UNITS[0]);
        formatter.pad(&format!("{}{}", self.0 / factor, name))
    }
}

/// Reason that a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The number has no unit.
    #[error("invalid size '{0}': write a unit, as in 4KiB")]
    NoUnit(String),
    /// The text is not a number with a binary unit.
    #[error(
        "invalid size '{0}': write a number with a unit (B, KiB, MiB, GiB, TiB), as in 4KiB, 4k or 1.5GiB"
    )]
    Malformed(String),
    /// The unit is decimal to some and binary to others.
    #[error("ambiguous size '{text}': write {binary} or {decimal}B")]
    Ambiguous {
        /// The text as typed.
        text: String,
        /// The size if the unit is binary, as a user would write it.
        binary: String,
        /// The size in bytes if it is decimal.
        decimal: u64,
    },
    /// More than 2^63 bytes.
    #[error("invalid size '{0}': no file can be that large")]
    TooLarge(String),
}

impl FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let malformed = || SizeError::Malformed(text.to_string());
        let split = text
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(text.len());
        let (number, unit) = (&text[..split], text[split..].trim_start());
        if number.is_empty() || !number.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(malformed());
        }
        if unit.is_empty() {
            return Err(SizeError::NoUnit(text.to_string()));
        }
        let factor = match Unit::parse(unit).ok_or_else(malformed)? {
            Unit::Bytes(factor) => factor,
            Unit::Decimal(power) => {
                let decimal = scaled(number, 1000u64.pow(power), text)?.0;
                let binary = format!("{number}{}", UNITS[power as usize].0);
                return Err(SizeError::Ambiguous { text: text.to_string(), binary, decimal });
            }
        };
        scaled(number, factor, text)
    }
}

/// `number` times `factor`, if that is a whole number of bytes; `text` is for messages.
fn scaled(number: &str, factor: u64, text: &str) -> Result<Bytes, SizeError> {
    let malformed = || SizeError::Malformed(text.to_string());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if number.ends_with('.') || fraction.contains('.') || fraction.len() > 9 {
        return Err(malformed());
    }
    let too_large = || SizeError::TooLarge(text.to_string());
    let whole: u128 = whole.parse().map_err(|_| too_large())?;
    let scale = 10u128.pow(fraction.len() as u32);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| malformed())? };
    let scaled = whole
        .checked_mul(u128::from(factor))
        .and_then(|bytes| bytes.checked_mul(scale))
        .and_then(|bytes| bytes.checked_add(fraction * u128::from(factor)))
        .ok_or_else(too_large)?;
    let bytes = scaled / scale;
    if scaled % scale != 0 {
        return Err(malformed());
    }
    if bytes > i64::MAX as u128 {
        return Err(too_large());
    }
    Ok(Bytes(bytes as u64))
}

/// The longest time that can be typed: 1,000,000 s, some eleven days.
const LONGEST_NS: f64 = 1e15;

/// Parse a duration: `200ms`, `2s`, `1.5s`, `50us`; in nanoseconds.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let malformed = || {
        format!(
            "invalid time '{text}': write a number with a unit (ns, us, ms, s, min), as in 200ms, 2s or 50us"
        )
    };
    let split = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .ok_or_else(|| format!("invalid time '{text}': write a unit, as in {text}ms or {text}s"))?;
    let number: f64 = text[..split].parse().map_err(|_| malformed())?;
    let factor = match &text[split..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        _ => return Err(malformed()),
    };
    let nanoseconds = number * factor;
    if nanoseconds < 1.0 {
        return Err(format!("invalid time '{text}': write at least 1ns"));
    }
    if nanoseconds > LONGEST_NS {
        let (most, unit) = ((LONGEST_NS / factor).floor(), &text[split..]);
        return Err(format!("invalid time '{text}': write at most {most}{unit}"));
    }
    Ok(nanoseconds.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_demand_a_unit() {
        assert_eq!("4096".parse::<Bytes>(), Err(SizeError::NoUnit("4096".into())));
        for nonsense in [
            "", "KiB", "-1KiB", "1KB", "1e3KiB", "4ki", "4x", "4bb", "1.KiB", "1..5KiB", ".5KiB", "1 000B",
            "0.3B", "4KiBs",
        ] {
            assert!(nonsense.parse::<Bytes>().is_err(), "{nonsense:?} was taken");
        }
        assert!(matches!("9999999TiB".parse::<Bytes>(), Err(SizeError::TooLarge(_))));
        assert!(matches!(
            "99999999999999999999999999999999999999999B".parse::<Bytes>(),
            Err(SizeError::TooLarge(_))
        ));
    }

    #[test]
    fn sizes_are_binary_and_may_have_a_fraction() {
        assert_eq!("1.5GiB".parse(), Ok(Bytes::mib(1536)));
        assert_eq!("16kib".parse(), Ok(Bytes::kib(16)));
        assert_eq!("17 B".parse(), Ok(Bytes(17)));
        assert_eq!(Bytes::mib(1536).to_string(), "1536MiB");
        assert_eq!(Bytes(0).to_string(), "0B");
    }

    #[test]
    fn a_letter_is_the_binary_unit_and_a_decimal_one_is_asked_about() {
        for text in ["4k", "4K", "4KiB", "4kib", "4096B", "4096b", "4 k"] {
            assert_eq!(text.parse(), Ok(Bytes::kib(4)), "{text}");
        }
        assert_eq!("1.5g".parse(), Ok(Bytes::mib(1536)));
        assert_eq!(("2M".parse(), "1T".parse()), (Ok(Bytes::mib(2)), Ok(Bytes::gib(1024))));
        let asked = |text: &str| text.parse::<Bytes>().expect_err("ambiguous").to_string();
        assert_eq!(asked("4KB"), "ambiguous size '4KB': write 4KiB or 4000B");
        assert_eq!(asked("1.5mb"), "ambiguous size '1.5mb': write 1.5MiB or 1500000B");
    }

    #[test]
    fn times_demand_a_unit() {
        assert_eq!(parse_duration_ns("200ms"), Ok(200_000_000));
        assert_eq!(parse_duration_ns("1.5s"), Ok(1_500_000_000));
        for nonsense in ["", "5", "ms", "-1s", "0s", "1h30", "nans"] {
            assert!(parse_duration_ns(nonsense).is_err(), "{nonsense:?} was taken");
        }
    }

    #[test]
    fn a_refused_time_is_answered_in_its_unit() {
        for (text, wanted) in [
            ("0s", "invalid time '0s': write at least 1ns"),
            ("0.4ns", "invalid time '0.4ns': write at least 1ns"),
            ("1000001s", "invalid time '1000001s': write at most 1000000s"),
            ("99999min", "invalid time '99999min': write at most 16666min"),
        ] {
            assert_eq!(parse_duration_ns(text), Err(wanted.to_string()));
        }
        for (text, taken) in
            [("1ns", 1), ("16666min", 999_960_000_000_000), ("1000000s", 1_000_000_000_000_000)]
        {
            assert_eq!(parse_duration_ns(text), Ok(taken));
        }
        let refused = parse_duration_ns("99999h").expect_err("no unit of ours");
        assert!(refused.contains("(ns, us, ms, s, min)"), "{refused}");
    }

    /// Whole numbers of every length in bits.
    fn edges() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(bits, shift)| bits >> shift)
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(count in 0u64..=i64::MAX as u64) {
            prop_assert_eq!(Bytes(count).to_string().parse(), Ok(Bytes(count)));
        }

        #[test]
        fn a_size_is_read_as_its_digits_say(
            whole in edges(), digits in 0u32..10, share in 0.0..1.0, unit in 0usize..5, space in any::<bool>(),
        ) {
            let scale = 10u64.pow(digits);
            let fraction = (share * scale as f64) as u64;
            let (unit, shift) = [("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)][unit];
            let space = if space { " " } else { "" };
            let text = match digits {
                0 => format!("{whole}{space}{unit}"),
                _ => format!("{whole}.{fraction:0width$}{space}{unit}", width = digits as usize),
            };
            let scaled = (u128::from(whole) * u128::from(scale) + u128::from(fraction)) << shift;
            let bytes = scaled.is_multiple_of(u128::from(scale)).then_some(scaled / u128::from(scale));
            let wanted = bytes.and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| *bytes <= i64::MAX as u64);
            prop_assert_eq!(text.parse::<Bytes>().ok(), wanted.map(Bytes), "{}", text);
        }
    }
}
