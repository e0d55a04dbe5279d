//! Detection of a cache that is as warm as it gets: from the windows of a warm-up or of a cold start.
//!
//! The supervisor calls these functions to decide when to stop, and the checks call them afterwards, so both use the
//! same definition.

use pagewise_model::counters::RateWindow;
use pagewise_model::{Access, Cell, MethodOption};

use crate::proof::calls;
use crate::statistics::total;

/// Share of an operation's requested bytes that may additionally come from the device in a warm window.
const WARM_SHARE: f64 = 0.05;
/// The last windows, used as the reference: a quarter, and at least this many.
const FEWEST_LAST: usize = 3;
/// Fewer windows than this are not a timeline.
const FEWEST_WINDOWS: usize = 6;
/// Steady windows may still bring in this share of the finally resident bytes.
const STILL_FILLING_SHARE: f64 = 0.02;
/// A cache that gains more than this share of the bytes from the device is being filled; a full one evicts a page for
/// each page.
const KEPT_SHARE: f64 = 0.25;
/// In addition to the share: readahead that was still in flight.
const KEPT_BYTES: u64 = 1 << 20;
/// Device bytes per operation agree within this share, whatever their number.
const SETTLED_SHARE: f64 = 0.05;
/// They also agree within this share of the requested bytes: below it the device is not involved.
const SETTLED_REQUESTED_SHARE: f64 = 0.01;
/// Differences up to this many standard errors are chance: 4 are exceeded once in 16,000.
const STANDARD_ERRORS: f64 = 4.0;
/// Differences above this share are not considered chance, whatever the scatter.
const MOST_SHARE: f64 = 0.50;
/// Fewest windows of a warm-up: two that are compared, and those whose scatter estimates chance.
const FEWEST_SETTLING: usize = 5;
/// Number of windows before the compared ones from which scatter is estimated.
const SCATTER_WINDOWS: usize = 8;
/// Readahead of most devices, used if it is unknown.
const USUAL_READAHEAD_BYTES: u64 = 128 << 10;

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

/// Find when a cold start became warm: the first window from which the device delivers at most as many bytes per
/// operation as in the last quarter of the windows (at least three), within 5 % of the `op_bytes` that an operation
/// requests. `None` before that, while the page cache still fills up (a cold file is read at an even rate at first), and
/// if residency is unknown, which alone can show it.
///
/// Counters decide, not the rate, which a busy machine keeps unsteady long after the cache is full.
pub fn time_to_warm(op_bytes: u64, windows: &[RateWindow]) -> Option<Warmed> {
    if windows.len() < FEWEST_WINDOWS {
        return None;
    }
    let delivered: Vec<f64> = windows.iter().map(device_bytes_per_operation).collect::<Option<_>>()?;
    let last = windows.len() - windows.len().div_ceil(4).max(FEWEST_LAST);
    let most = delivered[last..].iter().copied().max_by(f64::total_cmp)? + op_bytes as f64 * WARM_SHARE;
    let first = delivered.iter().rposition(|bytes| *bytes > most).map_or(0, |cold| cold + 1);
    if fills_up(windows, first)? {
        return None;
    }
    let until = first.max(1);
    Some(Warmed {
        window: first,
        time_ns: total(windows[..until].iter().map(|window| &window.elapsed_ns)),
        device_bytes: delivered_bytes(&windows[..until]),
    })
}

/// True if a cold start has become warm, so that no more windows are needed.
pub fn is_steady(op_bytes: u64, windows: &[RateWindow]) -> bool {
    time_to_warm(op_bytes, windows).is_some()
}

/// True if the workload of `cell` has warmed a cache that cannot hold all data: device bytes per operation of the last
/// two windows of at least five agree, and the cache keeps no more than it evicts. `readahead_bytes` is that of the
/// device.
pub fn settled(cell: &Cell, readahead_bytes: Option<u64>, windows: &[RateWindow]) -> bool {
    let [earlier @ .., before, after] = windows else { return false };
    windows.len() >= FEWEST_SETTLING
        && apart(cell, readahead_bytes, earlier, &[*before, *after]) == Some(None)
        && !gains(before, after)
}

/// Disagreement of the device bytes per operation of `windows`: the smallest, the largest, and the share by which they
/// may differ, which is estimated from the scatter of `earlier` ones. `Some(None)` if they agree, `None` if one of them
/// is unknown.
pub(crate) fn apart(
    cell: &Cell,
    readahead_bytes: Option<u64>,
    earlier: &[RateWindow],
    windows: &[RateWindow],
) -> Option<Option<(f64, f64, f64)>> {
    let per_operation: Vec<f64> = windows.iter().map(device_bytes_per_operation).collect::<Option<_>>()?;
    let least = per_operation.iter().copied().min_by(f64::total_cmp)?;
    let most = per_operation.iter().copied().max_by(f64::total_cmp)?;
    let by_chance = chance(cell, readahead_bytes, windows)?.max(scatter(earlier).unwrap_or(0.0));
    let share = (STANDARD_ERRORS * by_chance).clamp(SETTLED_SHARE, MOST_SHARE);
    let allowed = (most * share).max(cell.conditions.op_bytes() as f64 * SETTLED_REQUESTED_SHARE);
    Some((most - least > allowed).then_some((least, most, share)))
}

/// The standard error of a difference, if misses are independent. A miss brings in a certain size; n misses scatter by
/// at most the root of n (they are binomial, so by less if most reads miss), and the difference of two counts by the
/// root of 1/n + 1/m.
fn chance(cell: &Cell, readahead_bytes: Option<u64>, windows: &[RateWindow]) -> Option<f64> {
    let size = miss_bytes(cell, readahead_bytes) as f64;
    let misses = |window: &RateWindow| Some((window.device_read_bytes? as f64 / size).max(1.0));
    let counts: Vec<f64> = windows.iter().map(misses).collect::<Option<_>>()?;
    let fewest = counts.into_iter().min_by(f64::total_cmp)?;
    Some((2.0 / fewest).sqrt())
}

/// The standard deviation of the difference between neighbouring windows, over their mean: with readahead misses are not
/// independent, since one brings in data that others would have missed. `None` for fewer than three windows.
fn scatter(windows: &[RateWindow]) -> Option<f64> {
    let recent = &windows[windows.len().saturating_sub(SCATTER_WINDOWS)..];
    let values: Vec<f64> = recent.iter().map(device_bytes_per_operation).collect::<Option<_>>()?;
    let squares: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (squares.len() >= 2 && mean > 0.0)
        .then(|| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt() / mean)
}

/// Bytes that a miss brings in: for a fault of a mapping without advice the readahead around it, otherwise the requested
/// bytes (readahead of pread detects that reads are not sequential).
fn miss_bytes(cell: &Cell, readahead_bytes: Option<u64>) -> u64 {
    let method = &cell.method;
    let read = cell.conditions.reads().map_or_else(|| calls::piece_bytes(method), |reads| reads.read_bytes.0);
    let reads_around = method.access() == Access::Mmap
        && !method.has(MethodOption::Random)
        && !method.has(MethodOption::Prefetch)
        && method.prefetch_window().is_none();
    match reads_around {
        true => readahead_bytes.unwrap_or(USUAL_READAHEAD_BYTES).max(read),
        false => read.max(1),
    }
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

/// True if the windows from `first` on still fill the cache; `None` if residency or device bytes are unknown.
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

    /// True if a warm-up with this end is settled, after three windows like the first of the two.
    fn settles(method: &str, readahead_bytes: Option<u64>, before: RateWindow, after: RateWindow) -> bool {
        let cell = honest::cell(method, CacheState::Warm);
        settled(&cell, readahead_bytes, &[before, before, before, before, after])
    }

    #[test]
    fn a_warm_up_is_settled_when_device_bytes_stay_and_the_cache_is_full() {
        let pread = |before, after| settles("pread:random", None, before, after);
        assert!(pread(window(1000, 190, 126), window(1000, 192, 126)));
        assert!(!pread(window(1000, 190, 126), window(1000, 210, 126)), "10 % apart with 12,000 misses each");
        assert!(!pread(window(1000, 190, 60), window(1000, 192, 126)), "the cache still fills");
        assert!(pread(window(1000, 0, 126), window(1000, 1, 126)), "under 1 % of the 250 MiB asked for");
        let cell = honest::cell("pread:random", CacheState::Warm);
        assert!(!settled(&cell, None, &[window(1000, 190, 126); 4]), "too few windows");
        let unknown = RateWindow { device_read_bytes: None, ..window(1000, 0, 126) };
        assert!(!pread(unknown, unknown));
    }

    #[test]
    fn few_misses_may_differ_by_more() {
        let (before, after) = (window(100, 800, 126), window(100, 600, 126));
        // 100 and 75 misses of 8 MiB each: 25 % apart is chance.
        assert!(settles("mmap", Some(8 * MIB), before, after));
        assert!(!settles("mmap", Some(128 << 10), before, after), "6,400 misses tell more");
        assert!(!settles("mmap:random", Some(8 * MIB), before, after));
        assert!(!settles("mmap", Some(8 * MIB), before, window(100, 390, 126)), "half of it is no chance");
    }

    #[test]
    fn what_scattered_before_may_scatter_still() {
        let pread = honest::cell("pread", CacheState::Warm);
        let with = |earlier: [u64; 3]| {
            let windows = earlier.into_iter().chain([190, 230]).map(|mib| window(1000, mib, 126));
            settled(&pread, Some(8 * MIB), &windows.collect::<Vec<_>>())
        };
        assert!(!with([190, 191, 190]));
        assert!(with([190, 220, 200]), "readahead makes misses depend on each other");
        let other_scale: Vec<RateWindow> =
            [2000, 2010, 2000, 190, 230].map(|mib| window(1000, mib, 126)).to_vec();
        assert!(!settled(&pread, None, &other_scale), "scatter counts as a share");
    }
}
