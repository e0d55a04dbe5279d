//! Expectations: a limit that a method must keep, as in `p99<10ms`.

use std::fmt;
use std::str::FromStr;

use crate::rate::per_second;
use crate::units::parse_duration_ns;
use crate::words::as_text;

/// Parts of all operations, for shares without rounding.
const MILLION: u32 = 1_000_000;
/// Units of time, the longest first.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// A figure and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// At least this share of the operations takes less than a time.
    Operations(Quantile),
    /// At least this share of the syncs within the measured region takes less than a time.
    Syncs(Quantile),
    /// At least so many operations per second.
    Rate(u64),
    /// The device writes at most this many hundredths of a byte for each byte.
    Written(u64),
}

/// A quantile and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantile {
    /// Operations of a million that may take longer: 10,000 of p99.
    pub beyond_of_million: u32,
    /// The time, in ns.
    pub limit_ns: u64,
}

impl Quantile {
    /// Share of the operations that may take longer.
    pub fn allowed(&self) -> f64 {
        f64::from(self.beyond_of_million) / f64::from(MILLION)
    }

    fn parse(percent: &str, limit: &str) -> Option<Result<Self, String>> {
        let (whole, part) = percent.split_once('.').unwrap_or((percent, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() != 2
            || part.len() > 4
            || percent.ends_with('.')
            || !is_number(whole)
            || !is_number(part)
        {
            return None;
        }
        let share: u32 = format!("{whole}{part:0<4}").parse().ok()?;
        let beyond_of_million = MILLION - share;
        (beyond_of_million <= MILLION / 2)
            .then(|| parse_duration_ns(limit).map(|limit_ns| Self { beyond_of_million, limit_ns }))
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = MILLION - self.beyond_of_million;
        let (whole, part) = (share / 10_000, format!("{:04}", share % 10_000));
        let part = part.trim_end_matches('0');
        let point = if part.is_empty() { "" } else { "." };
        let unit = UNITS.iter().find(|(_, ns)| self.limit_ns.is_multiple_of(*ns));
        let (unit, ns) = unit.copied().unwrap_or(("ns", 1));
        write!(formatter, "p{whole}{point}{part}<{}{unit}", self.limit_ns / ns)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expectation::Operations(quantile) => quantile.fmt(formatter),
            Expectation::Syncs(quantile) => write!(formatter, "sync-{quantile}"),
            Expectation::Rate(rate) => write!(formatter, "rate>={rate}"),
            Expectation::Written(hundredths) => {
                write!(formatter, "written<={}.{:02}x", hundredths / 100, hundredths % 100)
            }
        }
    }
}

/// A factor in hundredths: `2x`, `1.25x`.
fn hundredths(text: &str) -> Option<u64> {
    let text = text.strip_suffix('x')?;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 2 || text.ends_with('.') {
        return None;
    }
    format!("{whole}{part:0<2}").parse().ok().filter(|hundredths| *hundredths > 0)
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let squeezed: String = text.chars().filter(|character| !character.is_whitespace()).collect();
        let malformed = || {
            format!(
                "invalid expectation '{text}': write one as in p99<10ms, sync-p99.9<50ms, rate>=20k or written<=2x"
            )
        };
        let at = squeezed.find(['<', '>']).ok_or_else(malformed)?;
        let (figure, limit) = squeezed.split_at(at);
        let is_upper = limit.starts_with('<');
        let limit = limit[1..].strip_prefix('=').unwrap_or(&limit[1..]);
        let parsed = match (figure, is_upper) {
            ("rate", false) => per_second(limit).map(|rate| Ok(Self::Rate(rate))),
            ("written", true) => hundredths(limit).map(|factor| Ok(Self::Written(factor))),
            (figure, true) => match (figure.strip_prefix("sync-p"), figure.strip_prefix('p')) {
                (Some(percent), _) => Quantile::parse(percent, limit).map(|parsed| parsed.map(Self::Syncs)),
                (None, Some(percent)) => {
                    Quantile::parse(percent, limit).map(|parsed| parsed.map(Self::Operations))
                }
                (None, None) => None,
            },
            _ => None,
        };
        parsed.unwrap_or_else(|| Err(malformed()))
    }
}

as_text!(Expectation);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_expectation_is_written_as_typed() {
        for text in [
            "p99<10ms",
            "p50<1500us",
            "p99.9<50ms",
            "p99.9999<1s",
            "sync-p99<10ms",
            "rate>=20000",
            "written<=2.00x",
        ] {
            assert_eq!(text.parse::<Expectation>().map(|parsed| parsed.to_string()).as_deref(), Ok(text));
        }
        for (text, same) in [
            ("p99 < 10ms", "p99<10ms"),
            ("p99<=10ms", "p99<10ms"),
            ("p99.00<0.01s", "p99<10ms"),
            ("rate > 20k", "rate>=20000"),
            ("rate>=20k/s", "rate>=20000"),
            ("written<1.5x", "written<=1.50x"),
        ] {
            assert_eq!(text.parse::<Expectation>().map(|parsed| parsed.to_string()).as_deref(), Ok(same));
        }
        let of = |text: &str| match text.parse() {
            Ok(Expectation::Operations(quantile)) => quantile.allowed(),
            other => panic!("{other:?}"),
        };
        assert_eq!((of("p99<1s"), of("p99.9<1s"), of("p50<1s")), (0.01, 0.001, 0.5));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "p99",
            "p99<",
            "p99<10",
            "p99>10ms",
            "p49<1s",
            "p100<1s",
            "p9<1s",
            "p99.<1s",
            "p99.12345<1s",
            "p0x<1s",
            "p-9<1s",
            "sync<1s",
            "rate<20k",
            "rate>=0",
            "rate>=x",
            "rate>=-1",
            "written>=2x",
            "written<=2",
            "written<=0x",
            "written<=1.234x",
            "max<10ms",
            "p99<0ns",
            "p99<<10ms",
            "π<1s",
        ] {
            text.parse::<Expectation>().expect_err(text);
        }
        let refusal = "p99<10".parse::<Expectation>().expect_err("no unit");
        assert!(refusal.starts_with("invalid time '10': write a unit"), "{refusal}");
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in ".*") {
            if let Ok(parsed) = text.parse::<Expectation>() {
                prop_assert_eq!(parsed.to_string().parse(), Ok(parsed));
            }
        }
    }
}
