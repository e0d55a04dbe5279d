//! Numbers for people: at most four digits, a space before the unit, a dash for unknown values.
//!
//! Used by tables, sentences and messages. Trailing zeros are kept where the column or the
//! comparison needs the digits (rates, ratios), and left out of times and sizes.

use std::fmt;

use crate::units::Bytes;

/// Shown in place of an unknown number.
pub const MISSING: &str = "–";

/// A number of any type.
pub trait Number {
    /// Value.
    fn value(self) -> f64;
}

impl Number for f64 {
    fn value(self) -> f64 {
        self
    }
}

impl Number for u64 {
    fn value(self) -> f64 {
        self as f64
    }
}

impl Number for Bytes {
    fn value(self) -> f64 {
        self.0 as f64
    }
}

/// A count with thousands separated: `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `a, b and c`.
pub fn listed<W: AsRef<str>>(words: &[W]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => only.to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The sentence with a capital letter. Names of methods are lower case and do not begin a sentence.
pub fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `1 sample`, `7 samples`.
pub fn counted(count: u64, singular: &str) -> String {
    format!("{} {singular}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `1 process`, `1,234 processes`.
pub fn processes(count: u64) -> String {
    format!("{} process{}", grouped(count), if count == 1 { "" } else { "es" })
}

/// The only one of these, or their number: `index.bin`, `7 files`.
pub fn only_or_counted<T: fmt::Display>(all: impl ExactSizeIterator<Item = T>, singular: &str) -> String {
    let mut all = all;
    match (all.len(), all.next()) {
        (1, Some(only)) => only.to_string(),
        (count, _) => counted(count as u64, singular),
    }
}

/// Three digits or more: `1.06`, `12.3`, `272`.
pub fn times(value: f64) -> String {
    format!("{value:.*}", decimals(value))
}

/// Decimals of a multiple: the limits are where rounding would reach the next form.
fn decimals(value: f64) -> usize {
    match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    }
}

/// An interval of factors, its ends rounded outwards: it never looks narrower than it is. An end
/// close to 1 has the digits that show on which side it is.
pub fn times_interval(low: f64, high: f64) -> (String, String) {
    (rounded(low, |scaled| (scaled + 1e-9).floor()), rounded(high, |scaled| (scaled - 1e-9).ceil()))
}

/// A factor with three digits, the last of which is rounded as `round` does.
fn rounded(value: f64, round: impl Fn(f64) -> f64) -> String {
    let places = |value: f64| match value {
        value if (0.99..1.01).contains(&value) => 3,
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 0.1 => 2,
        value if value >= 0.01 => 3,
        _ => 4,
    };
    let at = |places: usize| {
        // Values that are whole at this scale can lie just beside it.
        let scale = 10f64.powi(places as i32);
        round(value * scale) / scale
    };
    match at(places(value)) {
        one if one == 1.0 && (value - 1.0).abs() > 1e-9 => format!("{:.4}", at(4)),
        other => format!("{other:.*}", places(other)),
    }
}

/// Decimals of a factor that may be far below 1.
fn factor_decimals(value: f64) -> usize {
    match value {
        value if value >= 0.0995 => decimals(value),
        value if value >= 0.00995 => 3,
        _ => 4,
    }
}

/// Remove trailing zeros after the point.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A chosen multiple: `0.5x`, `1.08x`, `4x`, `12.3x`.
pub fn multiple(value: f64) -> String {
    let text = if value < 9.995 { format!("{value:.2}") } else { format!("{value:.1}") };
    format!("{}x", trimmed(&text))
}

/// A factor with three digits, however small, and its interval: `1.62x [1.58, 1.66]`, `0.0031x`.
pub fn factor(value: f64, interval: Option<(f64, f64)>) -> String {
    let middle = format!("{value:.*}x", factor_decimals(value));
    let ends = interval.map(|(low, high)| times_interval(low, high));
    ends.map_or_else(|| middle.clone(), |(low, high)| format!("{middle} [{low}, {high}]"))
}

/// A rate with three digits or more: `0.41`, `9.87`, `123`, `9,876`, `12.3k`, `1.23M`.
pub fn rate(value: f64) -> String {
    match value {
        value if value >= 999.5e6 => format!("{}G", times(value / 1e9)),
        value if value >= 999.5e3 => format!("{}M", times(value / 1e6)),
        value if value >= 9999.5 => format!("{}k", times(value / 1e3)),
        value if value >= 999.5 => grouped(value.round() as u64),
        value => times(value),
    }
}

/// A time in nanoseconds: `340 ns`, `27.6 µs`, `1.5 ms`, `2 s`.
pub fn time(nanoseconds: impl Number) -> String {
    let (value, unit) = match nanoseconds.value() {
        value if value < 999.5 => (value, "ns"),
        value if value < 999.5e3 => (value / 1e3, "µs"),
        value if value < 999.5e6 => (value / 1e6, "ms"),
        value => (value / 1e9, "s"),
    };
    format!("{} {unit}", trimmed(&times(value)))
}

/// An estimated duration, in nanoseconds: `40 s`, `12 min`, `2.5 h`.
pub fn duration(nanoseconds: u64) -> String {
    let seconds = nanoseconds.div_ceil(1_000_000_000);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

/// Bytes with a binary unit: `412 B`, `8 MiB`, `60.1 MiB`, `1.5 GiB`.
pub fn bytes(value: impl Number) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut scaled, mut unit) = (value.value(), 0);
    while scaled >= 1023.5 && unit + 1 < UNITS.len() {
        (scaled, unit) = (scaled / 1024.0, unit + 1);
    }
    format!("{} {}", trimmed(&times(scaled)), UNITS[unit])
}

/// MiB per second without the unit, for a column that names it.
pub fn mebibytes(bytes_per_second: f64) -> String {
    let value = bytes_per_second / f64::from(1 << 20);
    if value >= 99.95 { grouped(value.round() as u64) } else { times(value) }
}

/// A number without its unit, for a column that names it: at least three digits, at most six after
/// the point.
pub fn plain(value: f64) -> String {
    const BORDERS: [f64; 6] = [99.95, 9.995, 0.9995, 0.09995, 0.009995, 0.0009995];
    let size = value.abs();
    match BORDERS.iter().position(|border| size >= *border) {
        _ if size >= 999.5 => {
            format!("{}{}", if value < 0.0 { "-" } else { "" }, grouped(size.round() as u64))
        }
        _ if size == 0.0 => "0".to_string(),
        Some(decimals) => format!("{value:.decimals$}"),
        None => format!("{value:.6}"),
    }
}

/// A difference without its unit: `+1.50`, `-0.12`, `0`.
pub fn difference(value: f64) -> String {
    format!("{}{}", if value > 0.0 { "+" } else { "" }, plain(value))
}

/// A share as a percentage: `97 %`, `1.3 %`, `4 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value >= 9.95 { format!("{value:.0} %") } else { format!("{} %", trimmed(&format!("{value:.1}"))) }
}

/// A bound as whole percent, rounded up: `7 %` for 0.0601.
pub fn percent_up(share: f64) -> String {
    format!("{:.0} %", (share * 100.0 - 1e-9).ceil().max(0.0))
}

/// A share as a whole percentage, rounded down: a share below 1 is never shown as 100 %.
pub fn percent_down(share: f64) -> String {
    // Shares of counts can lie just below a whole number: 0.29 x 100 is slightly less than 29.
    format!("{:.0} %", (share * 100.0 + 1e-9).floor())
}

/// `part` of `whole` as a percentage, always with one decimal, for a limit close to 0 or 100 %.
pub fn percent_of(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_named_and_several_are_counted() {
        assert_eq!(only_or_counted(["a"].iter(), "file"), "a");
        assert_eq!(only_or_counted(["a", "b"].iter(), "file"), "2 files");
    }

    #[test]
    fn rates_and_ratios_have_three_digits() {
        let found = [0.4, 9.999, 123.4, 999.4, 9876.0, 12_345.0, 999_700.0, 1_234_567.0, 2.5e9].map(rate);
        assert_eq!(found, ["0.40", "10.0", "123", "999", "9,876", "12.3k", "1.00M", "1.23M", "2.50G"]);
        assert_eq!([1.234, 12.34, 272.4].map(times), ["1.23", "12.3", "272"]);
        assert_eq!(
            [0.5, 1.0, 1.084, 4.0, 10.0, 12.34].map(multiple),
            ["0.5x", "1x", "1.08x", "4x", "10x", "12.3x"]
        );
    }

    #[test]
    fn an_interval_is_rounded_outwards() {
        for ((low, high), wanted) in [
            ((0.9978, 1.1745), ("0.997", "1.18")),
            ((0.5, 1.1), ("0.50", "1.10")),
            ((9.994, 9.994), ("9.99", "10.0")),
            ((12.34, 12.34), ("12.3", "12.4")),
            ((99.96, 99.96), ("99.9", "100")),
            ((0.0996, 0.0996), ("0.099", "0.10")),
            ((0.00996, 0.00996), ("0.0099", "0.010")),
            ((1.0003, 1.02), ("1.0003", "1.02")),
            ((0.9992, 0.9997), ("0.999", "0.9997")),
            ((1.0, 1.0), ("1.000", "1.000")),
        ] {
            let (low, high) = times_interval(low, high);
            assert_eq!((low.as_str(), high.as_str()), wanted);
        }
    }

    #[test]
    fn times_change_their_unit() {
        let found = [0u64, 340, 21_400, 999_600, 1_500_000, 999_600_000, 61_000_000_000].map(time);
        assert_eq!(found, ["0 ns", "340 ns", "21.4 µs", "1 ms", "1.5 ms", "1 s", "61 s"]);
        assert_eq!([12.14, 999.6, 2110.0].map(time), ["12.1 ns", "1 µs", "2.11 µs"]);
        assert_eq!(
            [0, 40_000_000_001, 700_000_000_000, 9_000_000_000_000].map(duration),
            ["0 s", "41 s", "12 min", "2.5 h"]
        );
    }

    #[test]
    fn numbers_whose_unit_stands_elsewhere_keep_three_digits() {
        let found = [0.0, 0.000_002, 0.0512, 0.9996, 8.115, 61.37, 123.4, 12_345.0].map(plain);
        assert_eq!(found, ["0", "0.000002", "0.0512", "1.00", "8.12", "61.4", "123", "12,345"]);
        assert_eq!([1.5, -0.123, -12_345.0, 0.0].map(difference), ["+1.50", "-0.123", "-12,345", "0"]);
    }

    #[test]
    fn sizes_are_binary() {
        let found = [412.0, 16384.0, 1.5 * f64::from(1 << 30), 1023.9 * 1024.0].map(bytes);
        assert_eq!(found, ["412 B", "16 KiB", "1.5 GiB", "1 MiB"]);
        assert_eq!(
            [Bytes::mib(8), Bytes::mib(1000), Bytes::mib(1536), Bytes::kib(116_112)].map(bytes),
            ["8 MiB", "1000 MiB", "1.5 GiB", "113 MiB"]
        );
        assert_eq!(mebibytes(5e9), "4,768");
    }

    #[test]
    fn lists_read_as_speech() {
        let words = ["a", "b", "c"].map(String::from);
        assert_eq!(listed(&words), "a, b and c");
        assert_eq!(listed(&words[..1]), "a");
        assert_eq!([capitalized("from 4 KiB"), capitalized("")], ["From 4 KiB", ""]);
    }

    #[test]
    fn shares_and_counts() {
        assert_eq!([0.013, 0.04, 0.974, 0.0].map(percent), ["1.3 %", "4 %", "97 %", "0 %"]);
        assert_eq!([369.0 / 370.0, 1.0, 0.29, 0.0].map(percent_down), ["99 %", "100 %", "29 %", "0 %"]);
        assert_eq!(percent_of(999, 1000), "99.9 %");
        assert_eq!([0, 1_234_567].map(grouped), ["0", "1,234,567"]);
        assert_eq!([1, 2].map(|count| counted(count, "thread")), ["1 thread", "2 threads"]);
    }
}
