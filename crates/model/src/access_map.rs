//! Map of a program's reads of a file over offset and time, counted in a grid.

use serde::{Deserialize, Serialize};

/// Parts of the time.
pub const COLUMNS: usize = 64;
/// Parts of the file.
pub const ROWS: usize = 32;
/// No trace has more reads.
const MOST_READS: u64 = 1 << 40;

/// Reads by time and offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessMap {
    /// From the beginning of the recording to the last read.
    pub until_ns: u64,
    /// Size of the file.
    pub file_bytes: u64,
    /// For each part of the file, from its beginning on, the reads that touched it in each part of
    /// the time.
    pub rows: Vec<Vec<u64>>,
}

impl AccessMap {
    /// The map of these reads (time, offset, bytes) of a file of this size.
    pub fn of(reads: impl Iterator<Item = (u64, u64, u64)> + Clone, file_bytes: u64) -> Self {
        let until_ns = reads.clone().map(|(time_ns, ..)| time_ns).max().unwrap_or(0);
        let part = |value: u64, all: u64, parts: usize| {
            let part = u128::from(value) * parts as u128 / u128::from(all.max(1));
            (part as usize).min(parts - 1)
        };
        let mut rows = vec![vec![0; COLUMNS]; ROWS];
        for (time_ns, offset, len) in reads {
            let column = part(time_ns, until_ns, COLUMNS);
            let last = offset.saturating_add(len.max(1) - 1);
            for row in &mut rows[part(offset, file_bytes, ROWS)..=part(last, file_bytes, ROWS)] {
                row[column] += 1;
            }
        }
        Self { until_ns, file_bytes, rows }
    }

    /// True if it has all its parts, and possible numbers: a run file may come from anybody.
    pub fn is_sound(&self) -> bool {
        let counts = self.rows.iter().flatten().all(|count| *count <= MOST_READS);
        counts && self.rows.len() == ROWS && self.rows.iter().all(|row| row.len() == COLUMNS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_counts_in_each_part_that_it_touches() {
        let reads = [(0, 0, 1), (50, 31, 2), (100, 0, 1024), (100, 2000, u64::MAX)];
        let map = AccessMap::of(reads.into_iter(), 1024);
        assert_eq!((map.until_ns, map.file_bytes, map.rows.len()), (100, 1024, ROWS));
        assert_eq!((map.rows[0][0], map.rows[0][32], map.rows[1][32]), (1, 1, 1));
        assert_eq!((map.rows[0][63], map.rows[15][63], map.rows[31][63]), (1, 1, 2));
        assert_eq!(map.rows.iter().flatten().sum::<u64>(), 1 + 2 + 32 + 1);
        assert!(map.is_sound());
        let torn = AccessMap { rows: map.rows[1..].to_vec(), ..map.clone() };
        let endless = AccessMap { rows: vec![vec![u64::MAX; COLUMNS]; ROWS], ..map };
        assert!(!torn.is_sound() && !endless.is_sound());
        let none = AccessMap::of([].into_iter(), 0);
        assert_eq!(none.rows.iter().flatten().sum::<u64>(), 0);
    }
}
