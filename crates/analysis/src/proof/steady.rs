//! Detection of a cache that is as warm as it gets: from the windows of a warm-up or of a cold
//! start.
//!
//! The supervisor calls these functions to decide when to stop, and the checks call them
//! afterwards, so both use the same definition.

use pagewise_model::counters::RateWindow;
use pagewise_model::{Cell, Skew};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::proof::expected::{DeviceBytes, expected};
use crate::proof::measured::duration_ns;

/// Share of an operation's requested bytes that may additionally come from the device in a warm
/// window.
const WARM_SHARE: f64 = 0.05;
/// The last windows, used as the reference: a quarter, and at least this many.
const FEWEST_LAST: usize = 3;
/// Fewer windows than this are not a timeline.
const FEWEST_WINDOWS: usize = 6;
/// Steady windows may still bring in this share of the finally resident bytes.
const STILL_FILLING_SHARE: f64 = 0.02;
/// A cache that gains more than this share of the bytes from the device is being filled; a full one
/// evicts a page for each page.
const KEPT_SHARE: f64 = 0.25;
/// In addition to the share: readahead that was still in flight.
const KEPT_BYTES: u64 = 1 << 20;
/// Device bytes per operation are equivalent if they differ by less than this share.
const EQUIVALENT_SHARE: f64 = 0.10;
/// Below this share of the requested bytes the device is not involved, so differences up to it do
/// not count.
const SETTLED_REQUESTED_SHARE: f64 = 0.01;
/// Probability that a difference of [`EQUIVALENT_SHARE`] passes for less. Windows scatter by 13 %
/// where each holds few misses: 5 % would take 70 of them.
const ERROR: f64 = 0.20;
/// Fewest windows of a warm-up: two halves of two, after one in which the workload begins.
const FEWEST_SETTLING: usize = 5;
/// Most windows in each of the two halves that are compared.
const MOST_IN_HALF: usize = 8;
/// A cache that was replaced this often holds little that depends on how it was filled.
const REPLACED: f64 = 1.0;
/// A single window differs from the mean of others by at most this many standard deviations: 4 are
/// exceeded once in 16,000.
const STANDARD_DEVIATIONS: f64 = 4.0;
/// A difference of the sample above this share is not considered chance, whatever the scatter.
const MOST_SHARE: f64 = 0.50;

/// Time and device bytes until a cold start became warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warmed {
    /// The first window of those that are steady.
    pub window: usize,
    /// Time until then; at least one window, the resolution.
    pub time_ns: u64,
    /// Bytes that storage read until then.
    pub device_bytes: Option<u64>,
}

/// Find when a cold start became warm: the first window from which the device delivers at most as
/// many bytes per operation as in the last quarter of the windows (at least three), within 5 % of
/// the `op_bytes` that an operation requests, and the page cache fills up no more. `None` before
/// that (a cold file is read at an even rate at first), and if residency is unknown, which alone
/// can show it.
///
/// Counters decide, not the rate, which a busy machine keeps unsteady long after the cache is full.
pub fn time_to_warm(op_bytes: u64, windows: &[RateWindow]) -> Option<Warmed> {
    if windows.len() < FEWEST_WINDOWS {
        return None;
    }
    let delivered: Vec<f64> = windows.iter().map(device_bytes_per_operation).collect::<Option<_>>()?;
    let last = windows.len() - windows.len().div_ceil(4).max(FEWEST_LAST);
    let most = delivered[last..].iter().copied().max_by(f64::total_cmp)? + op_bytes as f64 * WARM_SHARE;
    let mut first = delivered.iter().rposition(|bytes| *bytes > most).map_or(0, |cold| cold + 1);
    // In the window in which it becomes full, few bytes for each operation may still be much of the
    // cache.
    while fills_up(windows, first)? {
        first += 1;
        if first > last {
            return None;
        }
    }
    let until = first.max(1);
    Some(Warmed {
        window: first,
        time_ns: duration_ns(&windows[..until]),
        device_bytes: delivered_bytes(&windows[..until]),
    })
}

/// True if a cold start has become warm, so that no more windows are needed.
pub fn is_steady(op_bytes: u64, windows: &[RateWindow]) -> bool {
    time_to_warm(op_bytes, windows).is_some()
}

/// True if the workload of `cell` has warmed a cache that cannot hold all data: device bytes per
/// operation are equivalent in the two last parts of at least five windows, and the cache keeps
/// no more than it evicts.
pub fn settled(cell: &Cell, windows: &[RateWindow]) -> bool {
    let [.., before, after] = windows else { return false };
    unsettled(cell, windows) == Some(None) && !gains(before, after)
}

/// Device bytes per operation that are not settled: those of an earlier part, of a later one,
/// and the share by which the two may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Apart {
    /// The mean of the earlier.
    pub before: f64,
    /// The mean of the later.
    pub after: f64,
    /// Half the length of the interval of their difference, as a share of the earlier.
    pub uncertain: f64,
}

/// Return `Some(None)` if device bytes per operation are equivalent in the two halves of the last
/// windows: the test rejects that they differ by 10 % or more (two one-sided t tests; that no
/// difference is shown would not be enough, since few or scattered windows show none). Reads with
/// megabytes of readahead scatter too much for that. Then the means of the halves must be within 10
/// %, and the windows have replaced the cache. `None` if device bytes are unknown or windows too
/// few.
pub(crate) fn unsettled(cell: &Cell, windows: &[RateWindow]) -> Option<Option<Apart>> {
    (windows.len() >= FEWEST_SETTLING).then_some(())?;
    let last = last_halves(windows);
    let half = last.len() / 2;
    let values: Vec<f64> = last.iter().map(device_bytes_per_operation).collect::<Option<_>>()?;
    let (before, after) = values.split_at(half);
    let (before_mean, after_mean) = (mean(before), mean(after));
    let freedom = 2.0 * (half as f64 - 1.0);
    let variance = (squares(before, before_mean) + squares(after, after_mean)) / freedom;
    let error = (variance * 2.0 / half as f64).sqrt();
    let allowed = (before_mean * EQUIVALENT_SHARE).max(involved(cell));
    let student = StudentsT::new(0.0, 1.0, freedom).expect("positive degrees of freedom");
    let uncertain = error * student.inverse_cdf(1.0 - ERROR);
    let difference = (after_mean - before_mean).abs();
    let is_idle = values.iter().all(|value| *value <= involved(cell));
    let is_shown = is_idle || difference + uncertain <= allowed;
    let is_replaced = difference <= allowed && replaced(windows)? >= REPLACED;
    let apart = Apart { before: before_mean, after: after_mean, uncertain: uncertain / before_mean.max(1.0) };
    Some((!is_shown && !is_replaced).then_some(apart))
}

/// True if what the last windows brought in does not depend on how the cache was filled: the
/// windows have replaced as much of it as their positions may need, or their device bytes are those
/// that the residency predicts.
pub fn is_lasting(cell: &Cell, windows: &[RateWindow], page_bytes: u64) -> bool {
    let capacity = cell.conditions.cache_capacity().map_or(0, |capacity| capacity.0);
    // Uniform reads find as much in any full cache; skewed ones must bring in their popular
    // positions.
    let skewed = cell.conditions.reads().is_some_and(|reads| reads.skew != Skew::Uniform);
    let turnover = if skewed { capacity } else { capacity / 2 };
    let mut delivered = windows.iter().filter_map(|window| window.device_read_bytes);
    let read = delivered.clone().fold(0, u64::saturating_add);
    // A workload that hardly reads from the device would never replace the cache.
    read >= turnover
        || delivered.next_back().is_some_and(|last| last < capacity / 1000)
        || is_as_predicted(cell, windows, page_bytes)
}

/// True if the device bytes per operation of `cell` follow from what the cache holds: its reads are
/// uniform, of whole pages, and bring in no others. Then it does not matter which pages are there,
/// only how many.
pub fn has_prediction(cell: &Cell, page_bytes: u64) -> bool {
    let conditions = &cell.conditions;
    let is_exact = expected(&cell.method, conditions.workload()).device_bytes == DeviceBytes::AtMostAsked;
    conditions.reads().is_some_and(|reads| {
        is_exact
            && reads.skew == Skew::Uniform
            && reads.read_bytes.0.is_multiple_of(page_bytes)
            && reads.align_bytes.0.is_multiple_of(page_bytes)
    })
}

/// True if the last windows brought in what their residency predicts, within 10 %: so the cache is
/// what it will be, however it was filled. False if there is no prediction.
fn is_as_predicted(cell: &Cell, windows: &[RateWindow], page_bytes: u64) -> bool {
    if windows.len() < FEWEST_SETTLING || !has_prediction(cell, page_bytes) {
        return false;
    }
    let last = last_halves(windows);
    let operations: u64 = last.iter().map(|window| window.operations).fold(0, u64::saturating_add);
    let resident: Option<Vec<f64>> =
        last.iter().map(|window| window.resident_bytes.map(|bytes| bytes as f64)).collect();
    let (Some(resident), Some(delivered), 1..) = (resident, delivered_bytes(last), operations) else {
        return false;
    };
    let missing = (1.0 - mean(&resident) / cell.conditions.span_bytes.0.max(1) as f64).max(0.0);
    let predicted = cell.conditions.op_bytes() as f64 * missing;
    let allowed = (predicted * EQUIVALENT_SHARE).max(involved(cell));
    (delivered as f64 / operations as f64 - predicted).abs() <= allowed
}

/// The share by which the device bytes per operation of a sample may differ from the settled
/// `windows` before it, with their mean and its own figure; `Some(None)` if they do not differ by
/// more. A single value proves no equivalence; that is what the windows are for.
pub(crate) fn departs(
    cell: &Cell,
    windows: &[RateWindow],
    sample: &RateWindow,
) -> Option<Option<(f64, f64, f64)>> {
    let settled = last_halves(windows).iter();
    let values: Vec<f64> = settled.map(device_bytes_per_operation).collect::<Option<_>>()?;
    let (mean, own) = (mean(&values), device_bytes_per_operation(sample)?);
    let count = values.len() as f64;
    let deviation = (squares(&values, mean) / (count - 1.0).max(1.0) * (1.0 + 1.0 / count)).sqrt();
    let chance = STANDARD_DEVIATIONS * deviation / mean.max(1.0);
    let share = chance.clamp(EQUIVALENT_SHARE, MOST_SHARE);
    let allowed = (mean.max(own) * share).max(involved(cell));
    Some(((own - mean).abs() > allowed).then_some((mean, own, share)))
}

/// The last windows whose halves are compared. The first ones, in which the workload begins, are
/// not among them.
fn last_halves(windows: &[RateWindow]) -> &[RateWindow] {
    &windows[windows.len() - 2 * (windows.len().saturating_sub(1) / 2).min(MOST_IN_HALF)..]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Sum of squared deviations.
fn squares(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Bytes per operation from which on the device is involved.
fn involved(cell: &Cell) -> f64 {
    cell.conditions.op_bytes() as f64 * SETTLED_REQUESTED_SHARE
}

/// Number of times that the device bytes of `windows` could have replaced the cache; 0 if residency
/// is unknown.
fn replaced(windows: &[RateWindow]) -> Option<f64> {
    let resident = windows.last().and_then(|window| window.resident_bytes).filter(|bytes| *bytes > 0);
    let read = delivered_bytes(windows)?;
    Some(resident.map_or(0.0, |resident| read as f64 / resident as f64))
}

fn device_bytes_per_operation(window: &RateWindow) -> Option<f64> {
    (window.operations > 0).then_some(())?;
    Some(window.device_read_bytes? as f64 / window.operations as f64)
}

/// True if the cache keeps more of the incoming bytes than a full one does.
fn gains(before: &RateWindow, after: &RateWindow) -> bool {
    let (Some(was), Some(is), Some(read)) =
        (before.resident_bytes, after.resident_bytes, after.device_read_bytes)
    else {
        return false;
    };
    is.saturating_sub(was) > (read as f64 * KEPT_SHARE) as u64 + KEPT_BYTES
}

/// Bytes that the device delivered in all windows; `None` if unknown for one of them.
fn delivered_bytes(windows: &[RateWindow]) -> Option<u64> {
    windows.iter().try_fold(0u64, |sum, window| Some(sum.saturating_add(window.device_read_bytes?)))
}

/// True if the windows from `first` on still fill the cache; `None` if residency or device bytes
/// are unknown.
fn fills_up(windows: &[RateWindow], first: usize) -> Option<bool> {
    let last = windows.last()?.resident_bytes?;
    let before = match first.checked_sub(1) {
        Some(before) => windows[before].resident_bytes?,
        None => 0,
    };
    let read = delivered_bytes(&windows[first..])?;
    let gained = last.saturating_sub(before) as f64;
    Some(gained > last as f64 * STILL_FILLING_SHARE && gained > read as f64 * KEPT_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::honest;
    use pagewise_model::CacheState;

    const MS: u64 = 1_000_000;
    const MIB: u64 = 1 << 20;

    fn window(operations: u64, device_mib: u64, resident_mib: u64) -> RateWindow {
        RateWindow {
            elapsed_ns: 100 * MS,
            operations,
            device_read_bytes: Some(device_mib * MIB),
            resident_bytes: Some(resident_mib * MIB),
            ..RateWindow::default()
        }
    }

    const OP_BYTES: u64 = 256 << 10;

    fn warm(windows: &[RateWindow]) -> Option<Warmed> {
        time_to_warm(OP_BYTES, windows)
    }

    /// 64 MiB come in within four windows, then everything is served from memory.
    fn warming() -> Vec<RateWindow> {
        let filling = [window(100, 16, 16), window(120, 16, 32), window(150, 16, 48), window(400, 16, 64)];
        filling.into_iter().chain([window(1000, 0, 64); 5]).collect()
    }

    #[test]
    fn a_cold_start_is_warm_when_the_device_is_not_needed_any_more() {
        let warmed = Warmed { window: 4, time_ns: 400 * MS, device_bytes: Some(64 * MIB) };
        assert_eq!(warm(&warming()), Some(warmed));
        assert!(is_steady(OP_BYTES, &warming()));
        assert!(!is_steady(OP_BYTES, &warming()[..6]), "two steady windows are too few");
        assert!(is_steady(OP_BYTES, &warming()[..7]));
        let mut hidden = warming();
        hidden.iter_mut().for_each(|window| (window.elapsed_ns, window.unaccounted_ns) = (60 * MS, 40 * MS));
        assert_eq!(warm(&hidden), Some(warmed), "time that the worker's clock leaves out counts");
    }

    #[test]
    fn a_window_that_needs_the_device_once_more_was_not_warm() {
        let mut windows = warming();
        windows.extend([window(1000, 0, 64); 3]);
        windows[6].device_read_bytes = Some(13 * MIB);
        assert_eq!(warm(&windows).map(|warmed| warmed.window), Some(7), "13 KiB of the 256 of an operation");
        windows[6].device_read_bytes = Some(12 * MIB);
        assert_eq!(warm(&windows).map(|warmed| warmed.window), Some(4));
        // The speed of the machine does not matter.
        windows[6].operations = 800;
        windows[7].elapsed_ns = 900 * MS;
        assert_eq!(warm(&windows).map(|warmed| warmed.window), Some(7), "15 KiB of the 256");
        windows[6].device_read_bytes = Some(0);
        assert_eq!(warm(&windows).map(|warmed| warmed.window), Some(4));
    }

    /// A mapping with large readahead: a series of 24 s was never warm because of its third window,
    /// in which the cache became full.
    #[test]
    fn a_window_in_which_the_cache_becomes_full_is_followed_by_warm_ones() {
        let mut windows = vec![window(1, 92, 92), window(3, 50, 142), window(1400, 17, 159)];
        windows.extend([window(3000, 0, 159); 4]);
        assert_eq!(warm(&windows).map(|warmed| warmed.window), Some(3));
        assert_eq!(warm(&windows[..5]), None, "two of them are too few");
        assert!(is_steady(OP_BYTES, &windows[..6]));
    }

    #[test]
    fn an_even_pace_while_the_cache_fills_is_not_warm() {
        let filling: Vec<RateWindow> = (1..20).map(|index| window(100, 16, 16 * index)).collect();
        assert_eq!(warm(&filling), None);
        // Full: incoming pages evict others.
        let full: Vec<RateWindow> = (1..40).map(|index| window(100, 16, (16 * index).min(64))).collect();
        assert_eq!(warm(&full).map(|warmed| warmed.window), Some(0));
        assert_eq!(warm(&full).map(|warmed| warmed.time_ns), Some(100 * MS), "no shorter than a window");
    }

    #[test]
    fn what_cannot_be_known_is_not_warm() {
        let mut windows = warming();
        windows[8].resident_bytes = None;
        assert_eq!(warm(&windows), None);
        let mut windows = warming();
        windows[2].operations = 0;
        assert_eq!(warm(&windows), None);
        assert_eq!(warm(&[]), None);
    }

    fn settles(windows: &[RateWindow]) -> bool {
        settled(&honest::cell("pread:random", CacheState::Warm), windows)
    }

    /// Windows of 1,000 operations with these MiB from the device, of a full cache that they do not
    /// replace.
    fn windows(mib: &[u64]) -> Vec<RateWindow> {
        mib.iter().map(|mib| window(1000, *mib, 1 << 20)).collect()
    }

    #[test]
    fn a_warm_up_is_settled_when_device_bytes_are_equivalent_and_the_cache_is_full() {
        assert!(settles(&windows(&[190, 190, 191, 190, 192])));
        assert!(!settles(&windows(&[190, 190, 191, 190])), "too few windows");
        assert!(!settles(&windows(&[190, 190, 190, 211, 211])), "11 % apart");
        assert!(
            !settles(&[window(1000, 190, 60), window(1000, 190, 126)].repeat(3)),
            "the cache still fills"
        );
        assert!(settles(&windows(&[1, 0, 0, 2, 1])), "under 1 % of the 250 MiB asked for");
        let unknown = RateWindow { device_read_bytes: None, ..window(1000, 0, 126) };
        assert!(!settles(&[unknown; 6]));
    }

    #[test]
    fn that_no_difference_is_shown_is_not_enough() {
        // A drift of 30 % that scatter hides from a test for a difference.
        assert!(!settles(&windows(&[196, 198, 198, 230, 221, 232, 255])));
        // No difference at all, but nothing to exclude one.
        assert!(!settles(&windows(&[190, 150, 230, 230, 150])));
        // The same scatter for longer.
        let longer: Vec<u64> = [190, 165, 215, 192, 176, 206].repeat(4);
        assert!(!settles(&windows(&longer[..5])));
        assert!(settles(&windows(&longer)));
    }

    #[test]
    fn a_cache_that_was_replaced_often_is_settled_in_spite_of_scatter() {
        let scattered = |resident_mib| {
            let mib = [190, 150, 230, 225, 150];
            mib.iter().map(|mib| window(1000, *mib, resident_mib)).collect::<Vec<_>>()
        };
        assert!(settles(&scattered(126)), "945 MiB through a cache of 126");
        assert!(!settles(&scattered(1024)));
        let drifting: Vec<RateWindow> = [150, 150, 170, 200, 230].map(|mib| window(1000, mib, 126)).to_vec();
        assert!(!settles(&drifting), "more and more");
    }

    #[test]
    fn reads_without_readahead_miss_what_the_cache_does_not_hold() {
        const PAGE: u64 = 4096;
        let mut cell = honest::cell("pread:random", CacheState::Warm);
        cell.conditions.host_settings.memory_limit_bytes = Some(pagewise_model::Bytes::mib(128));
        cell.conditions.span_bytes = pagewise_model::Bytes::mib(512);
        let op_bytes = cell.conditions.op_bytes();
        // A quarter of the span is in the cache; the windows bring in a few pages of it.
        let windows = |missing_percent: u64| {
            let device = 20 * op_bytes * missing_percent / 100;
            let resident_bytes = Some(128 * MIB);
            [RateWindow { device_read_bytes: Some(device), resident_bytes, ..window(20, 0, 0) }; 5]
        };
        let lasts = |cell: &Cell, percent| is_lasting(cell, &windows(percent), PAGE);
        assert_eq!(
            [67, 68, 75, 82, 83].map(|percent| lasts(&cell, percent)),
            [false, true, true, true, false]
        );
        let other = |change: &dyn Fn(&mut Cell)| {
            let mut other = cell.clone();
            change(&mut other);
            lasts(&other, 75)
        };
        assert!(!other(&|cell| cell.method = "pread".parse().expect("a method")), "readahead");
        assert!(other(&|cell| cell.method = "mmap:random".parse().expect("a method")));
        assert!(!is_lasting(&cell, &windows(75)[..4], PAGE), "too few windows");
        assert!(!is_lasting(&cell, &windows(75), 4 * op_bytes), "parts of pages");
        let unknown = windows(75).map(|window| RateWindow { resident_bytes: None, ..window });
        assert!(!is_lasting(&cell, &unknown, PAGE));
        let replaced = windows(67).map(|window| RateWindow { device_read_bytes: Some(13 * MIB), ..window });
        assert!(is_lasting(&cell, &replaced, PAGE), "half of the cache, by whatever it read");
    }

    #[test]
    fn a_sample_departs_from_its_windows_beyond_their_scatter() {
        let cell = honest::cell("pread:random", CacheState::Warm);
        let departs = |before: &[u64], sample| departs(&cell, &windows(before), &window(1000, sample, 126));
        let steady = [190, 191, 190, 190, 191];
        assert_eq!(departs(&steady, 205), Some(None), "8 %");
        assert!(departs(&steady, 215).is_some_and(|apart| apart.is_some()), "12 %");
        assert_eq!(departs(&[190, 150, 230, 225, 150], 260), Some(None));
        assert!(departs(&[190, 150, 230, 225, 150], 390).is_some_and(|apart| apart.is_some()), "half of it");
        // A cache that nearly holds all fills in the first window.
        assert!(settles(&windows(&[2322, 0, 0, 0, 0])));
        assert_eq!(departs(&[2322, 0, 0, 0, 0], 0), Some(None));
        let unknown = RateWindow { device_read_bytes: None, ..window(1000, 0, 126) };
        assert_eq!(super::departs(&cell, &windows(&steady), &unknown), None);
    }
}
