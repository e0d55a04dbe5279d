//! Dates in names: seconds since 1970 as a date and a time of day, in UTC, and back.

const SECONDS_PER_DAY: u64 = 86_400;
/// Days of 400 years, after which the calendar repeats.
const DAYS_PER_ERA: u64 = 146_097;

/// `20261122-111105`.
pub fn compact_utc(unix_s: u64) -> String {
    let ((year, month, day), [hour, minute, second]) = split(unix_s);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// `2026-11-22 11:11 UTC`.
pub fn utc(unix_s: u64) -> String {
    let ((year, month, day), [hour, minute, _]) = split(unix_s);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// `2026-11-22T11:11:05Z` (RFC 3339).
pub fn rfc_3339(unix_s: u64) -> String {
    let ((year, month, day), [hour, minute, second]) = split(unix_s);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Parse a point in time, as `2026-11-22T11:11:05Z` (RFC 3339) or `1795345865` seconds since 1970,
/// both with a fraction if wanted; in nanoseconds since 1970.
pub fn parse_unix_ns(text: &str) -> Result<u64, String> {
    let invalid = || {
        format!(
            "invalid point in time '{text}': write UTC as in 2026-11-22T11:11:05Z, or seconds since 1970 as in 1795345865"
        )
    };
    let (whole, fraction) = match text.strip_suffix('Z').unwrap_or(text).split_once('.') {
        Some((whole, fraction)) if (1..=9).contains(&fraction.len()) => (whole, fraction),
        Some(_) => return Err(invalid()),
        None => (text.strip_suffix('Z').unwrap_or(text), ""),
    };
    let number = |digits: &str| -> Result<u64, String> {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { digits.parse().map_err(|_| invalid()) } else { Err(invalid()) }
    };
    let unix_s = match (text.ends_with('Z'), whole.split_once('T')) {
        (false, None) => number(whole)?,
        (true, Some((date, time))) => {
            let fields = |text: &str, between: char, lengths: [usize; 3]| -> Result<[u64; 3], String> {
                let all: Vec<&str> = text.split(between).collect();
                if all.iter().map(|field| field.len()).ne(lengths) {
                    return Err(invalid());
                }
                Ok([number(all[0])?, number(all[1])?, number(all[2])?])
            };
            let ([year, month, day], [hour, minute, second]) =
                (fields(date, '-', [4, 2, 2])?, fields(time, ':', [2, 2, 2])?);
            if year < 1970 || hour > 23 || minute > 59 || second > 59 {
                return Err(invalid());
            }
            // The day is looked for, since it is asked once: the calendar stands in one place.
            let first = (year - 1970) * 365;
            let days = (first..first + 1000).find(|days| civil(*days) == (year, month, day));
            days.ok_or_else(invalid)? * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second
        }
        _ => return Err(invalid()),
    };
    let ns = if fraction.is_empty() { 0 } else { number(&format!("{fraction:0<9}"))? };
    unix_s.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(ns)).ok_or_else(invalid)
}

/// Year, month and day; hour, minute and second.
fn split(unix_s: u64) -> ((u64, u64, u64), [u64; 3]) {
    let seconds = unix_s % SECONDS_PER_DAY;
    (civil(unix_s / SECONDS_PER_DAY), [seconds / 3600, seconds / 60 % 60, seconds % 60])
}

/// Year, month and day of the Gregorian calendar, `days` after 1970-01-01. Years begin in March, so
/// that the day that a leap year adds is its last (Hinnant, "chrono-compatible low-level date
/// algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    // From 0000-03-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / (DAYS_PER_ERA - 1)) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, date) in [
            (0, "19700101-000000"),
            (951_782_399, "20000228-235959"),
            (951_782_400, "20000229-000000"),
            (951_868_800, "20000301-000000"),
            (1_709_210_096, "20240229-123456"),
            (1_795_345_865, "20261122-111105"),
            (4_107_542_400, "21000301-000000"),
        ] {
            assert_eq!(compact_utc(unix_s), date);
        }
        assert_eq!(utc(1_795_345_865), "2026-11-22 11:11 UTC");
        assert_eq!(rfc_3339(1_795_345_865), "2026-11-22T11:11:05Z");
        assert_eq!(parse_unix_ns(&rfc_3339(951_868_800)), Ok(951_868_800_000_000_000));
    }

    #[test]
    fn points_in_time_are_read() {
        for (text, ns) in [
            ("2026-11-22T11:11:05Z", 1_795_345_865_000_000_000),
            ("1795345865", 1_795_345_865_000_000_000),
            ("2024-02-29T12:34:56.5Z", 1_709_210_096_500_000_000),
            ("1709210096.000000001", 1_709_210_096_000_000_001),
            ("2100-03-01T00:00:00Z", 4_107_542_400_000_000_000),
            ("1970-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(parse_unix_ns(text), Ok(ns), "{text}");
        }
        for nonsense in [
            "",
            "Z",
            "now",
            "+30s",
            "30s",
            "-1",
            "1.",
            ".5",
            "1e9",
            "1795345865Z",
            "2026-11-22",
            "2026-11-22T11:11:05",
            "2026-11-22T11:11:05+01:00",
            "2026-02-29T11:11:05Z",
            "2026-13-01T11:11:05Z",
            "2026-11-22T24:00:00Z",
            "2026-11-22T11:11Z",
            "1969-12-31T23:59:59Z",
            "99999999999999999999",
            "9999-12-31T23:59:59Z",
            "２０26-11-22T11:11:05Z",
        ] {
            assert!(parse_unix_ns(nonsense).is_err(), "{nonsense:?} was taken");
        }
    }
}
