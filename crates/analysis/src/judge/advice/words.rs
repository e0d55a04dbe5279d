//! Numbers and lists in sentences.

use pagewise_model::Workload;

/// A ratio with three digits.
pub(crate) fn times(ratio: f64) -> String {
    let digits = if ratio < 9.995 { 2 } else { usize::from(ratio < 99.95) };
    format!("{ratio:.digits$}")
}

/// A time with three digits: `12.1 ns`, `2.10 us`, `310 ms`.
pub(crate) fn time(nanoseconds: f64) -> String {
    // The borders are where rounding would reach the next unit.
    let (value, unit) = match nanoseconds {
        value if value < 999.5 => (value, "ns"),
        value if value < 999.5e3 => (value / 1e3, "us"),
        value if value < 999.5e6 => (value / 1e6, "ms"),
        value => (value / 1e9, "s"),
    };
    format!("{} {unit}", times(value))
}

/// A share in whole percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Bytes that were counted: `64 MiB`, `60.1 MiB`.
pub(crate) fn amount(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut scaled, mut unit) = (bytes, 0);
    while scaled >= 1023.5 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let digits = if scaled.fract() == 0.0 || scaled >= 99.95 { 0 } else { 1 };
    format!("{scaled:.digits$} {}", UNITS[unit])
}

/// `a, b and c`.
pub fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The sentence with a capital.
pub(crate) fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The work in words.
pub(super) fn what(workload: Workload) -> &'static str {
    match workload {
        Workload::RandomRead => "random reads",
        Workload::SequentialRead => "sequential reads",
        Workload::Scan => "a scan",
        Workload::Append => "appending",
        Workload::Fill => "filling a file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_speech() {
        let words = ["a", "b", "c"].map(String::from);
        assert_eq!(listed(&words), "a, b and c");
        assert_eq!(listed(&words[..1]), "a");
        assert_eq!(capital("append"), "Append");
    }

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!([1.234, 12.34, 272.4].map(times), ["1.23", "12.3", "272"]);
        let found = [12.14, 999.6, 2100.0, 310e6, 61e9].map(time);
        assert_eq!(found, ["12.1 ns", "1.00 us", "2.10 us", "310 ms", "61.0 s"]);
        let mib = f64::from(1 << 20);
        assert_eq!([64.0 * mib, 60.13 * mib, 100.0].map(amount), ["64 MiB", "60.1 MiB", "100 B"]);
        assert_eq!(percent(0.974), "97 %");
    }
}
