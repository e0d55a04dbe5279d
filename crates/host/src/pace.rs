//! Approximate write rate of a directory, which decides how large a dataset a quick run can afford.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use pagewise_model::content;

use crate::scratch;

/// Bytes written to measure the rate; the file has no name and disappears afterwards.
pub const TRIAL_BYTES: u64 = 16 << 20;
const PIECE_BYTES: usize = 1 << 20;
/// On a slow device, the measurement ends early after this time.
const ENOUGH_S: f64 = 1.0;

/// Bytes per second that reach storage in `directory`.
pub fn write_pace(directory: &Path) -> io::Result<u64> {
    let mut file = scratch::nameless_file(directory)?;
    let mut piece = vec![0; PIECE_BYTES];
    let started = Instant::now();
    let mut written = 0;
    while written < TRIAL_BYTES && started.elapsed().as_secs_f64() < ENOUGH_S {
        content::fill(0, written, &mut piece);
        file.write_all(&piece)?;
        file.sync_data()?;
        written += PIECE_BYTES as u64;
    }
    Ok((written as f64 / started.elapsed().as_secs_f64().max(1e-6)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_a_number_and_nothing_stays() {
        let directory = tempfile::tempdir().expect("directory");
        assert!(write_pace(directory.path()).expect("pace") > 0);
        assert_eq!(std::fs::read_dir(directory.path()).expect("list").count(), 0);
        assert!(write_pace(Path::new("/nowhere/at/all")).is_err());
    }
}
