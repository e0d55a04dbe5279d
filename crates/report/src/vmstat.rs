//! The host's seconds of a run as CSV: the time since the run began, and the columns of vmstat(8).
//!
//! Memory in KiB, `si`, `so`, `bi` and `bo` in KiB a second, `in` and `cs` per second, the CPU
//! split in whole per cent that sum to 100. Gauges are those of the later of two readings, rates
//! are over the time between them. An unknown value is an empty field.

use std::io::{self, Write};

use pagewise_model::counters::{HostCounters, HostSecond};

/// Names of the columns, the time first.
pub const COLUMNS: [&str; 18] = [
    "seconds", "r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo", "in", "cs", "us", "sy",
    "id", "wa", "st",
];

/// User, system, idle, wait, steal.
const CPU_PARTS: usize = 5;

/// The host between two readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmstatRow {
    /// Time of the later reading since the run began.
    pub at_ns: u64,
    /// All columns except the time.
    pub values: [Option<u64>; COLUMNS.len() - 1],
}

/// One row for each pair of consecutive readings. There is none over an interruption of the run,
/// whose activity is not part of it.
pub fn rows(seconds: &[HostSecond]) -> Vec<VmstatRow> {
    let pairs = seconds.iter().zip(seconds.iter().skip(1));
    pairs.filter_map(|(before, after)| row(before, after)).collect()
}

fn row(before: &HostSecond, after: &HostSecond) -> Option<VmstatRow> {
    let elapsed_ns = after.at_ns.checked_sub(before.at_ns).filter(|ns| *ns > 0 && !after.begins)?;
    // A total that decreased is unknown.
    let done =
        |total: fn(&HostCounters) -> Option<u64>| total(&after.host)?.checked_sub(total(&before.host)?);
    let rate = |total, unit| Some(per_second(done(total)?, unit, elapsed_ns));
    let host = &after.host;
    let kib = |bytes: Option<u64>| bytes.map(|bytes| bytes / 1024);
    let [user, system, idle, wait, steal] = percent([
        done(|host| host.user_ns),
        done(|host| host.system_ns),
        done(|host| host.idle_ns),
        done(|host| host.wait_ns),
        done(|host| host.steal_ns),
    ]);
    let values = [
        host.running,
        host.blocked,
        kib(host.swapped_bytes),
        kib(host.free_bytes),
        kib(host.buffer_bytes),
        kib(host.cached_bytes),
        rate(|host| host.swap_in_bytes, 1024),
        rate(|host| host.swap_out_bytes, 1024),
        rate(|host| host.block_in_bytes, 1024),
        rate(|host| host.block_out_bytes, 1024),
        rate(|host| host.interrupts, 1),
        rate(|host| host.context_switches, 1),
        user,
        system,
        idle,
        wait,
        steal,
    ];
    Some(VmstatRow { at_ns: after.at_ns, values })
}

/// Rounded to the nearest whole unit.
fn per_second(amount: u64, unit: u64, elapsed_ns: u64) -> u64 {
    let divisor = u128::from(unit) * u128::from(elapsed_ns);
    let rounded = (u128::from(amount) * 1_000_000_000 + divisor / 2) / divisor;
    u64::try_from(rounded).unwrap_or(u64::MAX)
}

/// Whole per cent that sum to 100: each is rounded down, and the remainder is given to the largest
/// fractions. Shares of an unknown whole are unknown; a kernel without steal has no share of it.
fn percent(parts: [Option<u64>; CPU_PARTS]) -> [Option<u64>; CPU_PARTS] {
    const UNKNOWN: [Option<u64>; CPU_PARTS] = [None; CPU_PARTS];
    if parts[..CPU_PARTS - 1].contains(&None) {
        return UNKNOWN;
    }
    let amounts = parts.map(|part| u128::from(part.unwrap_or(0)));
    let total: u128 = amounts.iter().sum();
    if total == 0 {
        return UNKNOWN;
    }
    let mut shares = amounts.map(|amount| amount * 100 / total);
    let mut by_remainder: Vec<usize> = (0..CPU_PARTS).collect();
    by_remainder.sort_by_key(|index| std::cmp::Reverse(amounts[*index] * 100 % total));
    let missing = 100 - shares.iter().sum::<u128>();
    for index in by_remainder.into_iter().take(missing as usize) {
        shares[index] += 1;
    }
    std::array::from_fn(|index| parts[index].map(|_| shares[index] as u64))
}

/// Write the rows below a header (RFC 4180).
pub fn write(out: &mut dyn Write, rows: &[VmstatRow]) -> io::Result<()> {
    write!(out, "{}\r\n", COLUMNS.join(","))?;
    for row in rows {
        write!(out, "{}.{:03}", row.at_ns / 1_000_000_000, row.at_ns / 1_000_000 % 1000)?;
        for value in &row.values {
            match value {
                Some(value) => write!(out, ",{value}")?,
                None => write!(out, ",")?,
            }
        }
        write!(out, "\r\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn at(at_ns: u64, host: HostCounters) -> HostSecond {
        HostSecond { at_ns, begins: false, host }
    }

    fn column(row: &VmstatRow, name: &str) -> Option<u64> {
        let index = COLUMNS.iter().position(|column| *column == name).expect("a column");
        row.values[index - 1]
    }

    #[test]
    fn rates_are_over_the_time_that_passed() {
        let host = |value| HostCounters {
            block_in_bytes: Some(value << 10),
            context_switches: Some(value),
            running: Some(value),
            free_bytes: Some(value << 10),
            ..Default::default()
        };
        // A second was missed: 300 in two and a half of them.
        let rows = rows(&[at(SECOND_NS, host(100)), at(SECOND_NS * 7 / 2, host(400))]);
        let row = &rows[0];
        assert_eq!((rows.len(), row.at_ns), (1, SECOND_NS * 7 / 2));
        assert_eq!((column(row, "bi"), column(row, "cs")), (Some(120), Some(120)));
        assert_eq!((column(row, "r"), column(row, "free")), (Some(400), Some(400)));
        assert_eq!((column(row, "bo"), column(row, "us"), column(row, "swpd")), (None, None, None));
    }

    #[test]
    fn no_row_goes_over_an_interruption() {
        let host = |value| HostCounters { interrupts: Some(value), ..Default::default() };
        let resumed = HostSecond { begins: true, ..at(SECOND_NS * 2, host(9_000_000)) };
        let seconds = [
            at(0, host(0)),
            at(SECOND_NS, host(10)),
            resumed,
            at(SECOND_NS * 3, host(9_000_020)),
            // The clock of the run went back, or did not advance: no row. A total that decreased:
            // an empty field.
            at(SECOND_NS * 3, host(9_000_030)),
            at(SECOND_NS * 4, host(5)),
        ];
        let rows = rows(&seconds);
        let interrupts: Vec<_> = rows.iter().map(|row| (row.at_ns / SECOND_NS, column(row, "in"))).collect();
        assert_eq!(interrupts, [(1, Some(10)), (3, Some(20)), (4, None)]);
        assert_eq!(super::rows(&seconds[..1]), []);
        assert_eq!(super::rows(&[]), []);
    }

    #[test]
    fn shares_sum_to_a_hundred() {
        let of = |parts: [u64; CPU_PARTS]| percent(parts.map(Some));
        assert_eq!(of([1, 1, 1, 0, 0]), [Some(34), Some(33), Some(33), Some(0), Some(0)]);
        assert_eq!(of([995, 5, 0, 0, 0]), [Some(100), Some(0), Some(0), Some(0), Some(0)]);
        assert_eq!(of([0, 0, 7, 0, 0]), [Some(0), Some(0), Some(100), Some(0), Some(0)]);
        assert_eq!(of([0; CPU_PARTS]), [None; CPU_PARTS]);
        for seed in 1..500_u64 {
            let parts = [seed * 7919 % 101, seed * 104_729 % 997, seed, seed % 3, u64::MAX / 5 * (seed % 2)];
            let sum: u64 = of(parts).iter().flatten().sum();
            assert_eq!(sum, 100, "{parts:?}");
        }
        assert_eq!(
            percent([Some(1), Some(1), Some(2), Some(0), None]),
            [Some(25), Some(25), Some(50), Some(0), None]
        );
        assert_eq!(percent([Some(1), None, Some(2), Some(0), Some(0)]), [None; CPU_PARTS]);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let host =
            HostCounters { swap_in_bytes: Some(u64::MAX), user_ns: Some(u64::MAX), ..Default::default() };
        let zero = HostCounters { swap_in_bytes: Some(0), user_ns: Some(0), ..Default::default() };
        let rows = rows(&[at(0, zero), at(1, host)]);
        assert_eq!(column(&rows[0], "si"), Some(u64::MAX));
    }
}
