//! The timeline of a cold start, and the time at which it had become warm.

use pagewise_model::counters::RateWindow;
use pagewise_model::{CacheState, Evidence};
use serde::Serialize;

use crate::judge::collected::CellSamples;
use crate::proof::measured::duration_ns;
use crate::proof::steady::{Warmed, time_to_warm};
use crate::statistics::{median, median_count};

/// One window of a cold start, as medians over the samples that had it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ColdWindow {
    /// End, as time since the start without the gaps between windows.
    pub end_ns: u64,
    /// Operations per second in it.
    pub ops_per_second: f64,
    /// Bytes that storage read in it.
    pub device_read_bytes: Option<u64>,
    /// Bytes of the span in the page cache at its end.
    pub resident_bytes: Option<u64>,
    /// Samples that had it.
    pub samples: usize,
}

fn is_cold_start(samples: &CellSamples<'_>) -> bool {
    samples.cell.conditions.cache == CacheState::ColdStart
}

fn warmed<'a>(samples: &'a CellSamples<'_>) -> impl Iterator<Item = Warmed> + 'a {
    // A method that bypasses the page cache is as fast at the start as later.
    let warms = is_cold_start(samples) && samples.cell.depends_on_cache();
    let of_cold_start = samples.valid().filter(move |_| warms);
    of_cold_start
        .filter_map(|(_, evidence)| time_to_warm(samples.cell.conditions.op_bytes(), &evidence.windows))
}

/// Nanoseconds until each sample had become steady, for samples that did.
pub(super) fn times_to_warm(samples: &CellSamples<'_>) -> Vec<f64> {
    warmed(samples).map(|warmed| warmed.time_ns as f64).collect()
}

/// Device bytes until then.
pub(super) fn bytes_to_warm(samples: &CellSamples<'_>) -> Vec<f64> {
    warmed(samples).filter_map(|warmed| Some(warmed.device_bytes? as f64)).collect()
}

/// The windows of a cold start; `None` for anything else and without a valid sample.
pub(super) fn windows(samples: &CellSamples<'_>) -> Option<Vec<ColdWindow>> {
    let evidence: Vec<&Evidence> =
        samples.valid().filter(|_| is_cold_start(samples)).map(|(_, evidence)| evidence).collect();
    let longest = evidence.iter().map(|seen| seen.windows.len()).max()?;
    (0..longest).map(|index| window(&evidence, index)).collect()
}

fn window(evidence: &[&Evidence], index: usize) -> Option<ColdWindow> {
    let having: Vec<&[RateWindow]> =
        evidence.iter().map(|seen| seen.windows.as_slice()).filter(|windows| windows.len() > index).collect();
    let count = |field: &dyn Fn(&RateWindow) -> Option<u64>| {
        median_count(&having.iter().filter_map(|windows| field(&windows[index])).collect::<Vec<_>>())
    };
    let end = |windows: &&[RateWindow]| duration_ns(&windows[..=index]);
    let rate = |windows: &&[RateWindow]| windows[index].ops_per_second();
    Some(ColdWindow {
        end_ns: median_count(&having.iter().map(end).collect::<Vec<u64>>())?,
        ops_per_second: median(&having.iter().map(rate).collect::<Vec<f64>>())?,
        device_read_bytes: count(&|window| window.device_read_bytes),
        resident_bytes: count(&|window| window.resident_bytes),
        samples: having.len(),
    })
}
