//! Numbers for people: few digits, always a unit, and a dash for what is not known.

use pagewise_analysis::judge::MedianInterval;

/// What stands where a number is not known.
pub const MISSING: &str = "–";

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

/// A rate with three digits or more: `0.41`, `9.87`, `123`, `9,876`, `12.3k`, `1.23M`.
pub fn rate(value: f64) -> String {
    // The borders are where rounding would reach the next form.
    match value {
        value if value >= 999.5e6 => format!("{}G", three_digits(value / 1e9)),
        value if value >= 999.5e3 => format!("{}M", three_digits(value / 1e6)),
        value if value >= 9999.5 => format!("{}k", three_digits(value / 1e3)),
        value if value >= 999.5 => grouped(value.round() as u64),
        value => three_digits(value),
    }
}

fn three_digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A rate with the interval of its median: `12.3k [12.1k, 12.6k]`.
pub fn rate_interval(value: &MedianInterval) -> String {
    match (value.low, value.high) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", rate(value.median), rate(low), rate(high)),
        _ => rate(value.median),
    }
}

/// A time with the interval of its median: `1.50s [1.40s, 1.60s]`.
pub fn time_interval(value: &MedianInterval) -> String {
    let of = |nanoseconds: f64| time(nanoseconds.round() as u64);
    match (value.low, value.high) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", of(value.median), of(low), of(high)),
        _ => of(value.median),
    }
}

/// A time: `340ns`, `21.4us`, `1.50ms`, `2.00s`.
pub fn time(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds}ns"),
        1_000..999_500 => format!("{}us", three_digits(value / 1e3)),
        999_500..999_500_000 => format!("{}ms", three_digits(value / 1e6)),
        _ => format!("{}s", three_digits(value / 1e9)),
    }
}

/// A number without its unit, for a column that names it: three digits or more, six behind the point at most.
pub fn plain(value: f64) -> String {
    // The borders are where rounding would reach the next form.
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

/// The same with the interval of its median, after each of the three was multiplied: `1.50 [1.40, 1.60]`.
pub fn plain_interval(value: &MedianInterval, times: f64) -> String {
    let of = |value: f64| plain(value * times);
    match (value.low, value.high) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", of(value.median), of(low), of(high)),
        _ => of(value.median),
    }
}

/// A difference without its unit: `+1.50`, `-0.12`, `0`.
pub fn difference(value: f64) -> String {
    format!("{}{}", if value > 0.0 { "+" } else { "" }, plain(value))
}

/// Bytes with a binary unit and three digits: `412 B`, `16.0 KiB`, `1.50 GiB`.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled >= 1023.5 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{scaled:.0} B"),
        _ if scaled >= 999.5 => format!("{} {}", grouped(scaled.round() as u64), UNITS[unit]),
        _ => format!("{} {}", three_digits(scaled), UNITS[unit]),
    }
}

/// MiB per second without the unit, for a column that names it.
pub fn mebibytes(bytes_per_second: f64) -> String {
    let value = bytes_per_second / f64::from(1 << 20);
    if value >= 99.95 { grouped(value.round() as u64) } else { three_digits(value) }
}

/// A share as a percentage: `97 %`, `1.3 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value >= 9.95 { format!("{value:.0} %") } else { format!("{value:.1} %") }
}

/// A share as a whole percentage, rounded down: what is not all is not called 100 %.
pub fn percent_down(share: f64) -> String {
    // Shares of counts miss a whole number by their last digit: 0.29 x 100 is just below 29.
    format!("{:.0} %", (share * 100.0 + 1e-9).floor())
}

/// `1 sample`, `7 samples`.
pub fn counted(count: u64, singular: &str) -> String {
    format!("{} {singular}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        let found = [0.4, 9.999, 123.4, 999.4, 9876.0, 12_345.0, 999_700.0, 1_234_567.0, 2.5e9].map(rate);
        assert_eq!(found, ["0.40", "10.0", "123", "999", "9,876", "12.3k", "1.00M", "1.23M", "2.50G"]);
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn times_change_their_unit() {
        let found = [0, 340, 21_400, 999_600, 1_500_000, 999_600_000, 61_000_000_000].map(time);
        assert_eq!(found, ["0ns", "340ns", "21.4us", "1.00ms", "1.50ms", "1.00s", "61.0s"]);
    }

    #[test]
    fn numbers_whose_unit_stands_elsewhere_keep_three_digits() {
        let found = [0.0, 0.000_002, 0.0512, 0.9996, 8.115, 61.37, 123.4, 12_345.0].map(plain);
        assert_eq!(found, ["0", "0.000002", "0.0512", "1.00", "8.12", "61.4", "123", "12,345"]);
        assert_eq!([1.5, -0.123, -12_345.0, 0.0].map(difference), ["+1.50", "-0.123", "-12,345", "0"]);
        let value = MedianInterval { median: 1.5e9, low: Some(1.4e9), high: Some(1.6e9) };
        assert_eq!(plain_interval(&value, 1e-9), "1.50 [1.40, 1.60]");
    }

    #[test]
    fn sizes_are_binary() {
        let found = [412.0, 16384.0, 1.5 * f64::from(1 << 30), 1023.9 * 1024.0].map(bytes);
        assert_eq!(found, ["412 B", "16.0 KiB", "1.50 GiB", "1.00 MiB"]);
        assert_eq!(mebibytes(5e9), "4,768");
    }

    #[test]
    fn an_interval_that_cannot_be_given_is_left_out() {
        let alone = MedianInterval { median: 12_345.0, low: None, high: None };
        assert_eq!(rate_interval(&alone), "12.3k");
        let with = MedianInterval { median: 12_345.0, low: Some(12_000.0), high: Some(12_600.0) };
        assert_eq!(rate_interval(&with), "12.3k [12.0k, 12.6k]");
        assert_eq!(
            (time_interval(&alone), time_interval(&with)),
            ("12.3us".into(), "12.3us [12.0us, 12.6us]".into())
        );
        assert_eq!(percent(0.013), "1.3 %");
        assert_eq!([369.0 / 370.0, 1.0, 0.29, 0.0].map(percent_down), ["99 %", "100 %", "29 %", "0 %"]);
        assert_eq!(counted(1, "thread"), "1 thread");
    }
}
