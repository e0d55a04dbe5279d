//! Start of a command that starts workers: the right to run, a seed, and the stop flag.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use pagewise_model::random::mix;

use crate::state::{RunClaim, State, Undone};

/// Claim the right to run; also return true if a setting of the machine was restored for it.
pub(super) fn claim() -> Result<(State, bool)> {
    let directory = std::env::current_dir().map_or("?".into(), |directory| directory.display().to_string());
    match State::claim(&format!("pid {}, begun in {directory}", std::process::id()))? {
        RunClaim::Refused { holder } => {
            bail!(
                "another run is measuring ({holder}); two at once would disturb each other, so wait or stop it"
            )
        }
        RunClaim::Granted { state, swept } => {
            let restored = swept.undone.iter().any(|undone| matches!(undone, Undone::Restored(..)));
            swept.tell();
            Ok((state, restored))
        }
    }
}

/// A seed of 53 bits, so that every JSON reader keeps it exactly.
pub(super) fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    mix(since.as_nanos() as u64 ^ u64::from(std::process::id())) >> 11
}

/// Flag set by SIGINT, SIGTERM and SIGHUP.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone()).context("the signals cannot be taken")?;
    }
    // A file size limit becomes the error of a write instead of a silent death.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .context("the signals cannot be taken")?;
    Ok(stop)
}
