//! Checks that the condition held and that the method did what its name says.

use pagewise_model::format::{bytes, percent_of};
use pagewise_model::{Access, Bytes, CacheState, Cell, Evidence, MethodOption, Work};

use super::mappings;
use super::subject::Subject;
use crate::proof::calls;

/// Smallest share of the requested bytes from the device if all must come from it: two reads may
/// share a block.
pub(super) const ALL_FROM_DEVICE: f64 = 0.98;
/// Largest share of the requested bytes that may come from the device if none may.
pub(super) const NONE_FROM_DEVICE: f64 = 0.001;
/// Readahead that is still in flight when a cold sample stops at its budget.
pub(super) const READAHEAD_SLACK_BYTES: u64 = 16 << 20;
/// Bytes that others may bring into the cache of a file that is read directly.
const DIRECT_SLACK_BYTES: u64 = 2 << 20;

/// The hypervisor may take this share of the CPU time that the threads could have used.
const STEAL_SHARE: f64 = 0.20;
/// Steal is counted in ticks of 10 ms, and each end of the region may fall into one.
const STEAL_TICKS_NS: u64 = 20_000_000;
/// Share of the span that may leave the page cache from one window of a cold start to the next.
const LOST_SHARE: f64 = 0.02;
const NS_PER_MS: u64 = 1_000_000;
/// The wall clock may move against the monotonic one by this, and by [`CLOCK_SLEW_SHARE`]: NTP
/// slews it by half that.
const CLOCK_STEP_NS: u64 = 1_000_000;
/// See [`CLOCK_STEP_NS`].
const CLOCK_SLEW_SHARE: f64 = 0.001;

/// Failure unless nearly all of so many requested bytes came from the device, or were brought in by
/// set-up.
pub(super) fn not_all_from_device(evidence: &Evidence, requested: u64, in_setup: u64) -> Option<String> {
    let read = evidence.device_read_bytes?;
    ((read.saturating_add(in_setup) as f64) < requested as f64 * ALL_FROM_DEVICE).then(|| {
        format!(
            "{read} bytes came from the device, {} of the {requested} requested",
            percent_of(read, requested)
        )
    })
}

/// Bytes that WILLNEED may have brought in during set-up or still brings in: the resident bytes,
/// but at most one readahead (`force_page_cache_ra` in mm/readahead.c), and at most the budget of a
/// cold sample.
pub(super) fn brought_in_by_setup(subject: &Subject<'_>) -> u64 {
    let cell = subject.cell;
    if !cell.method.has(MethodOption::WillNeed) {
        return 0;
    }
    let most = cell.conditions.cold_budget_bytes().min(READAHEAD_SLACK_BYTES);
    subject.evidence.resident_before_bytes.unwrap_or(0).min(most)
}

/// A cold sample begins with none of the span in the page cache, reads no block twice, and gets all
/// bytes from the device. If residency is unknown, the bytes prove it; if holes or compression may
/// hide bytes, residency alone decides. Methods that read everything during set-up begin with a
/// full cache. A cold start begins in the same way, and the cache's content after it came from the
/// device for it.
pub(super) fn not_cold(subject: &Subject<'_>) -> Option<String> {
    let (cell, evidence) = (subject.cell, subject.evidence);
    let cache = cell.conditions.cache;
    if !matches!(cache, CacheState::Cold | CacheState::ColdStart)
        || subject.is_writing()
        || !cell.depends_on_cache()
        || cell.method.reads_all_in_setup()
    {
        return None;
    }
    let span = cell.conditions.span_bytes.0;
    let in_setup = brought_in_by_setup(subject);
    if let Some(resident) = evidence.resident_before_bytes.filter(|resident| *resident > in_setup) {
        let share = percent_of(resident, span);
        return Some(format!(
            "{resident} bytes of the span ({share}) were in the page cache before it began"
        ));
    }
    if cache == CacheState::ColdStart {
        return not_started_cold(subject, in_setup);
    }
    if let Work::Replay(_) = cell.conditions.work {
        // A program reads blocks twice, so what came from the device proves nothing here.
        let unknown = "residency is unknown, so it is not proven to be cold".to_string();
        return evidence.resident_before_bytes.is_none().then_some(unknown);
    }
    if evidence.requested_bytes > span {
        let requested = evidence.requested_bytes;
        return Some(format!("{requested} bytes were requested of {span}: some blocks were read twice"));
    }
    match (evidence.resident_before_bytes, evidence.device_read_bytes) {
        (Some(_), _) if subject.context.sparse_or_compressed_bytes => None,
        (None, None) => {
            Some("neither residency nor device bytes are known, so it is not proven to be cold".into())
        }
        _ => not_all_from_device(evidence, evidence.requested_bytes, in_setup),
    }
}

/// A cold start must fill the cache from the device, not by another process that warms the file.
fn not_started_cold(subject: &Subject<'_>, in_setup: u64) -> Option<String> {
    let evidence = subject.evidence;
    let (Some(_), Some(resident), Some(read)) =
        (evidence.resident_before_bytes, evidence.resident_after_bytes, subject.device_bytes())
    else {
        return Some(
            "residency or device bytes are unknown, so it is not proven to have started cold".to_string(),
        );
    };
    let brought_in = read.saturating_add(in_setup) as f64;
    (!subject.context.sparse_or_compressed_bytes && brought_in < resident as f64 * ALL_FROM_DEVICE).then(|| {
        format!(
            "{resident} bytes of the span were in the page cache after it, {read} came from the device for it"
        )
    })
}

/// A warm sample begins with all of the span in the page cache and needs nothing from the device,
/// if it fits in memory.
pub(super) fn not_warm(subject: &Subject<'_>) -> Option<String> {
    let (cell, evidence) = (subject.cell, subject.evidence);
    let conditions = &cell.conditions;
    let through_cache = cell.depends_on_cache() && !subject.is_writing();
    if conditions.cache != CacheState::Warm || !through_cache || !conditions.fits_memory() {
        return None;
    }
    let (page, span) = (subject.context.page_bytes, cell.conditions.span_bytes.0);
    // Of several files a page may hold a whole one.
    let unit = if subject.has_several_files() { 1 } else { page };
    if let Some(resident) = evidence.resident_before_bytes
        && resident.div_ceil(unit) < span.div_ceil(unit)
    {
        let share = percent_of(resident, span);
        return Some(format!("{resident} of {span} bytes ({share}) were in the page cache before it began"));
    }
    if conditions.shares_cache() {
        // The actor may have evicted any of it since.
        return evidence.resident_before_bytes.is_none().then(|| {
            "residency is unknown, so it is not proven to have been warm before the actor began".to_string()
        });
    }
    let most = (evidence.requested_bytes as f64 * NONE_FROM_DEVICE) as u64;
    let own = subject.allowance();
    if let Some(read) = evidence.device_read_bytes.filter(|read| *read > most.max(own.code_bytes)) {
        let share = percent_of(read, evidence.requested_bytes);
        return Some(format!("{read} bytes ({share} of those requested) came from the device"));
    }
    let mapped = cell.access() == Access::Mmap;
    if let Some(faults) = evidence.major_faults.filter(|faults| mapped && *faults > own.code_faults) {
        return Some(format!("{faults} major faults occurred"));
    }
    let unknown = evidence.resident_before_bytes.is_none()
        && evidence.device_read_bytes.is_none()
        && (!mapped || evidence.major_faults.is_none());
    unknown
        .then(|| "neither residency nor device bytes are known, so it is not proven to be warm".to_string())
}

/// A method called a mapping has one, and is read by loads: bytes of read calls did not come
/// through it.
pub(super) fn not_mapped(subject: &Subject<'_>) -> Option<String> {
    if subject.cell.access() != Access::Mmap {
        return None;
    }
    let (method, evidence) = (&subject.cell.method, subject.evidence);
    if evidence.mappings == Some(0) {
        return Some(format!("the worker had no mapping of the file when {method} was measured"));
    }
    if let Some(missing) = mappings::unmapped_files(subject) {
        return Some(missing);
    }
    let asked = match subject.read_between_bytes() {
        // What a store needs is read for it, by no call.
        None | Some(0) if subject.is_writing() => return None,
        between => between.unwrap_or(evidence.requested_bytes),
    };
    let most = asked / 100 + subject.allowance().code_bytes;
    let bytes = evidence.read_call_bytes.filter(|bytes| *bytes > most)?;
    Some(format!("{bytes} bytes came through read calls, {method} makes none"))
}

/// A mapping that is left over keeps its pages in the cache, so that the next cold sample is not
/// cold.
pub(super) fn not_released(subject: &Subject<'_>) -> Option<String> {
    let left = subject.evidence.mappings_left.filter(|left| *left > 0)?;
    Some(format!("the worker reported that the file is closed, but still had {left} mappings of it"))
}

/// Advice on a mapping shows in its VmFlags (proc(5)). Options act in the order written, so of
/// `random` and `sequential` the last one counts. The effect of pread's advice on a descriptor is
/// not visible anywhere.
pub(super) fn advice_not_in_force(subject: &Subject<'_>) -> Option<String> {
    if subject.cell.access() != Access::Mmap {
        return None;
    }
    mappings::missing_advice(&subject.cell.method, subject.evidence.mapping_flags.as_deref()?)
}

/// `MAP_POPULATE` hides its errors, but a populated mapping takes no faults. Otherwise it takes at
/// least one for each 16 pages that it touches (fault-around). A fiftieth of the span's pages is
/// allowed, and the offset table's own pages and the threads' buffers. If memory does not hold the
/// span, pages leave the mapping again.
pub(super) fn not_populated(subject: &Subject<'_>) -> Option<String> {
    let method = &subject.cell.method;
    if !method.reads_all_in_setup() || subject.is_writing() || !subject.cell.conditions.stays_in_memory() {
        return None;
    }
    let (page, conditions) = (subject.context.page_bytes, &subject.cell.conditions);
    let table_pages = subject.reads().saturating_mul(8) / page;
    let buffer = conditions.reads().map_or_else(|| calls::piece_bytes(method), |reads| reads.op_bytes());
    let buffer_pages = buffer.saturating_mul(u64::from(conditions.threads)) / page;
    let most = (conditions.span_bytes.0 / page / 50)
        .saturating_add(table_pages)
        .saturating_add(buffer_pages.saturating_add(subject.allowance().memory_faults));
    let faults = subject.evidence.minor_faults?.saturating_add(subject.evidence.major_faults.unwrap_or(0));
    (faults > most).then(|| {
        format!("{faults} page faults in a mapping that should have been populated, at most {most} may be")
    })
}

/// A direct read goes to the device whatever the page cache holds. Some filesystems (tmpfs, or ext4
/// with inline data) accept O_DIRECT and serve the read from memory: the device's bytes reveal it.
pub(super) fn not_direct(subject: &Subject<'_>) -> Option<String> {
    let evidence = subject.evidence;
    if !subject.cell.method.is_direct() || subject.is_writing() {
        return None;
    }
    match (evidence.descriptor_direct, evidence.device_read_bytes) {
        (Some(false), _) => Some("the worker's descriptor does not have O_DIRECT".to_string()),
        (None, _) if subject.has_several_files() => Some(
            "one of the files has no descriptor whose flags are known, so it is not proven to be direct"
                .to_string(),
        ),
        (None, None) => Some(
            "neither the descriptor's flags nor device bytes are known, so it is not proven to be direct"
                .into(),
        ),
        (Some(true), _) if subject.context.sparse_or_compressed_bytes => read_through_cache(subject),
        _ => not_all_from_device(evidence, evidence.requested_bytes, 0),
    }
}

/// A filesystem may accept O_DIRECT and read through the page cache, as btrfs does where it
/// compresses. The device's bytes do not show it there, but a direct read adds no page to the
/// cache: so the file must not have been in it before.
fn read_through_cache(subject: &Subject<'_>) -> Option<String> {
    let (evidence, span) = (subject.evidence, subject.cell.conditions.span_bytes.0);
    let (Some(before), Some(after)) = (evidence.resident_before_bytes, evidence.resident_after_bytes) else {
        return Some("what is in the page cache is unknown, and device bytes may be too few, so it is not proven to be direct".into());
    };
    // What was all there would have been read from there, and nothing from the device.
    let is_short = not_all_from_device(evidence, evidence.requested_bytes, 0).is_some();
    if before as f64 >= span as f64 * ALL_FROM_DEVICE && !is_short {
        return None;
    }
    if before > span / 2 {
        return Some(format!(
            "{before} of {span} bytes were in the page cache before it, and device bytes may be too few, so it is not proven to be direct: --evict lets the file leave the cache"
        ));
    }
    let (added, most) = (after.saturating_sub(before), DIRECT_SLACK_BYTES.min(evidence.requested_bytes / 2));
    (added > most).then(|| {
        format!("{added} bytes came into the page cache, at most {most} may: its filesystem reads through the cache in spite of O_DIRECT")
    })
}

/// A cell that reads the device cannot be measured while other processes use it. One that may use
/// the cache and gets less than a hundredth of its bytes from the device does not read it. Bytes
/// requested in set-up may arrive later.
pub(super) fn contaminated(subject: &Subject<'_>) -> Option<String> {
    let cell = subject.cell;
    let (own, other) = (subject.device_bytes()?, subject.device_other_bytes()?);
    let reads_device = match cell.conditions.cache {
        _ if subject.is_writing() => false,
        _ if cell.method.is_direct() => true,
        CacheState::Cold | CacheState::ColdStart => true,
        CacheState::AsIs | CacheState::ReadOnce | CacheState::Recorded => subject.device_flows(),
        CacheState::Warm | CacheState::WarmSmall => subject.reaches_steady_state() && subject.device_flows(),
    };
    let most = subject.others_allowed(own) + brought_in_by_setup(subject);
    (reads_device && cell.access() != Access::Anonymous && other > most).then(|| {
        format!(
            "others moved {} on the device while the worker read {}",
            bytes(Bytes(other)),
            bytes(Bytes(own))
        )
    })
}

/// A virtual machine that does not get its CPUs measures its neighbours. CPU steal is counted over
/// all CPUs.
pub(super) fn cpu_stolen(subject: &Subject<'_>) -> Option<String> {
    let (stolen, cpus) = (subject.evidence.steal_ns?, subject.cpus_used());
    let most = (subject.evidence.wall_ns as f64 * cpus as f64 * STEAL_SHARE) as u64 + STEAL_TICKS_NS;
    (stolen > most).then(|| {
        format!(
            "the hypervisor took {} ms of CPU time, at most {} of {cpus} x {} ms may be",
            stolen / NS_PER_MS,
            most / NS_PER_MS,
            subject.evidence.wall_ns / NS_PER_MS
        )
    })
}

/// A clock that steps during a sample was set, or the machine was suspended.
pub(super) fn clock_stepped(subject: &Subject<'_>) -> Option<String> {
    let step = subject.evidence.clock_step_ns?;
    let most = CLOCK_STEP_NS + (subject.evidence.wall_ns as f64 * CLOCK_SLEW_SHARE) as u64;
    (step.unsigned_abs() > most).then(|| {
        format!("the wall clock stepped by {step} ns against the monotonic one, at most {most} ns may be")
    })
}

/// The page cache only grows during a cold start and loses no pages unless another process evicts
/// them.
pub(super) fn cold_start_lost_pages(subject: &Subject<'_>) -> Option<String> {
    let conditions = &subject.cell.conditions;
    if conditions.cache != CacheState::ColdStart || !conditions.fits_memory() {
        return None;
    }
    // Pages that RWF_DONTCACHE brings in leave by themselves.
    if subject.cell.method.has(MethodOption::DontCache) {
        return None;
    }
    let slack = (conditions.span_bytes.0 as f64 * LOST_SHARE) as u64;
    let resident: Vec<u64> =
        subject.evidence.windows.iter().filter_map(|window| window.resident_bytes).collect();
    let (before, after) = resident
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .find(|(before, after)| after.saturating_add(slack) < *before)?;
    Some(format!(
        "the page cache held {before} bytes of the span, and {after} a window later: another process evicted pages"
    ))
}

/// Reason that an option accepted by the kernel has no effect on this file. The cell is unavailable
/// then, since it would measure the method without that option.
pub fn no_effect(cell: &Cell, evidence: &Evidence) -> Option<String> {
    let huge = cell.method.has(MethodOption::HugePage) && evidence.huge_mapped_bytes == Some(0);
    huge.then(|| {
        "MADV_HUGEPAGE was accepted, but no byte of the mapping is in huge pages on this filesystem and kernel"
            .to_string()
    })
}

#[cfg(test)]
mod tests;
