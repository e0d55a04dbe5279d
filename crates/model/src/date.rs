//! Dates in names: seconds since 1970 as a date and a time of day, in UTC.

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
    }
}
