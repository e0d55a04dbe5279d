//! Checks that the condition held and that the method did what its name says.

use pagewise_model::{Access, CacheState, Cell, Evidence, MethodOption, Work, format::percent_of};

use super::mappings;
use super::subject::Subject;
use crate::proof::calls;

/// Smallest share of the requested bytes from the device if all must come from it: two reads may share a block.
pub(super) const ALL_FROM_DEVICE: f64 = 0.98;
/// Largest share of the requested bytes that may come from the device if none may.
pub(super) const NONE_FROM_DEVICE: f64 = 0.001;
/// Readahead that is still in flight when a cold sample stops at its budget.
pub(super) const READAHEAD_SLACK_BYTES: u64 = 16 << 20;
/// Bytes that others may bring into the cache of a file that is read directly.
const DIRECT_SLACK_BYTES: u64 = 2 << 20;
/// Other processes may use the device by this share of the worker's use, and by [`OTHERS_BYTES`].
pub(super) const OTHERS_SHARE: f64 = 0.10;
/// A journal's commit, or a log line of another process.
pub(super) const OTHERS_BYTES: u64 = 4 << 20;

/// The hypervisor may take this share of the CPU time that the threads could have used.
const STEAL_SHARE: f64 = 0.20;
/// Steal is counted in ticks of 10 ms, and each end of the region may fall into one.
const STEAL_TICKS_NS: u64 = 20_000_000;
/// Share of the span that may leave the page cache from one window of a cold start to the next.
const LOST_SHARE: f64 = 0.02;
const NS_PER_MS: u64 = 1_000_000;
/// The wall clock may move against the monotonic one by this, and by [`CLOCK_SLEW_SHARE`]: NTP slews it by half that.
const CLOCK_STEP_NS: u64 = 1_000_000;
/// See [`CLOCK_STEP_NS`].
const CLOCK_SLEW_SHARE: f64 = 0.001;

/// Failure unless nearly all requested bytes came from the device, or were brought in by set-up.
fn not_all_from_device(evidence: &Evidence, in_setup: u64) -> Option<String> {
    let (read, requested) = (evidence.device_read_bytes?, evidence.requested_bytes);
    ((read.saturating_add(in_setup) as f64) < requested as f64 * ALL_FROM_DEVICE).then(|| {
        format!(
            "{read} bytes came from the device, {} of the {requested} requested",
            percent_of(read, requested)
        )
    })
}

/// Bytes that WILLNEED may have brought in during set-up or still brings in: the resident bytes, but at most one
/// readahead (`force_page_cache_ra` in mm/readahead.c), and at most the budget of a cold sample.
fn brought_in_by_setup(subject: &Subject<'_>) -> u64 {
    let cell = subject.cell;
    if !cell.method.has(MethodOption::WillNeed) {
        return 0;
    }
    let most = cell.conditions.cold_budget_bytes().min(READAHEAD_SLACK_BYTES);
    subject.evidence.resident_before_bytes.unwrap_or(0).min(most)
}

/// A cold sample begins with none of the span in the page cache, reads no block twice, and gets all bytes from the
/// device. If residency is unknown, the bytes prove it; if holes or compression may hide bytes, residency alone decides.
/// Methods that read everything during set-up begin with a full cache. A cold start begins in the same way, and the
/// cache's content after it came from the device for it.
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
        _ => not_all_from_device(evidence, in_setup),
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

/// A warm sample begins with all of the span in the page cache and needs nothing from the device, if it fits in memory.
pub(super) fn not_warm(subject: &Subject<'_>) -> Option<String> {
    let (cell, evidence) = (subject.cell, subject.evidence);
    let conditions = &cell.conditions;
    let through_cache = cell.depends_on_cache() && !subject.is_writing();
    if conditions.cache != CacheState::Warm || !through_cache || !conditions.fits_memory() {
        return None;
    }
    let (page, span) = (subject.context.page_bytes, cell.conditions.span_bytes.0);
    if let Some(resident) = evidence.resident_before_bytes
        && resident.div_ceil(page) < span.div_ceil(page)
    {
        let share = percent_of(resident, span);
        return Some(format!("{resident} of {span} bytes ({share}) were in the page cache before it began"));
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

/// A method called a mapping has one, and is read by loads: bytes of read calls did not come through it.
pub(super) fn not_mapped(subject: &Subject<'_>) -> Option<String> {
    if subject.cell.access() != Access::Mmap {
        return None;
    }
    let (method, evidence) = (&subject.cell.method, subject.evidence);
    if evidence.mappings == Some(0) {
        return Some(format!("the worker had no mapping of the file when {method} was measured"));
    }
    let most = evidence.requested_bytes / 100 + subject.allowance().code_bytes;
    let bytes = evidence.read_call_bytes.filter(|bytes| !subject.is_writing() && *bytes > most)?;
    Some(format!("{bytes} bytes came through read calls, {method} makes none"))
}

/// A mapping that is left over keeps its pages in the cache, so that the next cold sample is not cold.
pub(super) fn not_released(subject: &Subject<'_>) -> Option<String> {
    let left = subject.evidence.mappings_left.filter(|left| *left > 0)?;
    Some(format!("the worker reported that the file is closed, but still had {left} mappings of it"))
}

/// Advice on a mapping shows in its VmFlags (proc(5)). Options act in the order written, so of `random` and `sequential`
/// the last one counts. The effect of pread's advice on a descriptor is not visible anywhere.
pub(super) fn advice_not_in_force(subject: &Subject<'_>) -> Option<String> {
    if subject.cell.access() != Access::Mmap {
        return None;
    }
    mappings::missing_advice(&subject.cell.method, subject.evidence.mapping_flags.as_deref()?)
}

/// `MAP_POPULATE` hides its errors, but a populated mapping takes no faults. Otherwise it takes at least one for each 16
/// pages that it touches (fault-around). A fiftieth of the span's pages is allowed, and the offset table's own pages and
/// the threads' buffers. If memory does not hold the span, pages leave the mapping again.
pub(super) fn not_populated(subject: &Subject<'_>) -> Option<String> {
    let method = &subject.cell.method;
    if !method.reads_all_in_setup() || subject.is_writing() || !subject.cell.conditions.fits_memory() {
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

/// A direct read goes to the device whatever the page cache holds. Some filesystems (tmpfs, or ext4 with inline data)
/// accept O_DIRECT and serve the read from memory: the device's bytes reveal it.
pub(super) fn not_direct(subject: &Subject<'_>) -> Option<String> {
    let evidence = subject.evidence;
    if !subject.cell.method.is_direct() || subject.is_writing() {
        return None;
    }
    match (evidence.descriptor_direct, evidence.device_read_bytes) {
        (Some(false), _) => Some("the worker's descriptor does not have O_DIRECT".to_string()),
        (None, None) => Some(
            "neither the descriptor's flags nor device bytes are known, so it is not proven to be direct"
                .into(),
        ),
        (Some(true), _) if subject.context.sparse_or_compressed_bytes => read_through_cache(subject),
        _ => not_all_from_device(evidence, 0),
    }
}

/// A filesystem may accept O_DIRECT and read through the page cache, as btrfs does where it compresses. The device's bytes do not tell it
/// there, but a direct read adds no page to the cache: so the file must not have been in it before.
fn read_through_cache(subject: &Subject<'_>) -> Option<String> {
    let (evidence, span) = (subject.evidence, subject.cell.conditions.span_bytes.0);
    let (Some(before), Some(after)) = (evidence.resident_before_bytes, evidence.resident_after_bytes) else {
        return Some("what is in the page cache is unknown, and device bytes may be too few, so it is not proven to be direct".into());
    };
    // What was all there would have been read from there, and nothing from the device.
    if before as f64 >= span as f64 * ALL_FROM_DEVICE && not_all_from_device(evidence, 0).is_none() {
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

/// A cell that reads the device cannot be measured while other processes use it. One that may use the cache and gets
/// less than a hundredth of its bytes from the device does not read it. Bytes requested in set-up may arrive later.
pub(super) fn contaminated(subject: &Subject<'_>) -> Option<String> {
    let (cell, evidence) = (subject.cell, subject.evidence);
    let (own, other) = (subject.device_bytes()?, evidence.device_other_bytes?);
    let reads_device = match cell.conditions.cache {
        _ if subject.is_writing() => false,
        _ if cell.method.is_direct() => true,
        CacheState::Cold | CacheState::ColdStart => true,
        CacheState::AsIs | CacheState::ReadOnce => subject.device_flows(),
        CacheState::Warm => subject.is_warm_above_memory() && subject.device_flows(),
    };
    let most = (own as f64 * OTHERS_SHARE) as u64 + OTHERS_BYTES + brought_in_by_setup(subject);
    (reads_device && cell.access() != Access::Anonymous && other > most)
        .then(|| format!("others moved {other} bytes on the device while the worker read {own}"))
}

/// A virtual machine that does not get its CPUs measures its neighbours. CPU steal is counted over all CPUs.
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

/// The page cache only grows during a cold start and loses no pages unless another process evicts them.
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

/// Reason that an option accepted by the kernel has no effect on this file. The cell is unavailable then, since it would
/// measure the method without that option.
pub fn no_effect(cell: &Cell, evidence: &Evidence) -> Option<String> {
    let huge = cell.method.has(MethodOption::HugePage) && evidence.huge_mapped_bytes == Some(0);
    huge.then(|| {
        "MADV_HUGEPAGE was accepted, but no byte of the mapping is in huge pages on this filesystem and kernel"
            .to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::honest::limited;
    use crate::proof::honest::{CONTEXT, cell, evidence, kinds, kinds_in};
    use pagewise_model::CacheState::{AsIs, Cold, ColdStart, Warm};
    use pagewise_model::CheckContext as Context;
    use pagewise_model::FailureKind::{ColdOverrun, Contaminated, NotCold, NotDirect, NotInForce, NotWarm};

    const HOLED_FILE: Context = Context { sparse_or_compressed_bytes: true, ..CONTEXT };

    #[test]
    fn a_cache_that_was_not_empty_is_noticed() {
        for method in ["pread", "mmap:random", "uring"] {
            let cell = cell(method, Cold);
            assert_eq!(kinds(&cell, |_, evidence| evidence.resident_before_bytes = Some(4096)), [NotCold]);
        }
        let warmed = |_: &mut _, evidence: &mut Evidence| evidence.resident_before_bytes = Some(1 << 28);
        assert_eq!(kinds(&cell("mmap:populate", Cold), warmed), []);
        assert_eq!(kinds(&cell("pread:direct", Cold), warmed), []);
    }

    #[test]
    fn cold_bytes_must_come_from_the_device() {
        let few = |_: &mut _, evidence: &mut Evidence| {
            evidence.device_read_bytes = Some(evidence.requested_bytes / 100 * 97);
        };
        let cell = cell("pread", Cold);
        assert_eq!(kinds(&cell, few), [NotCold]);
        assert_eq!(kinds_in(&cell, &HOLED_FILE, few), [], "a file with holes");
        assert_eq!(kinds(&cell, |_, evidence| evidence.device_read_bytes = None), []);
    }

    #[test]
    fn cold_without_residency_is_proven_by_device_bytes() {
        let cell = cell("pread", Cold);
        assert_eq!(kinds(&cell, |_, evidence| evidence.resident_before_bytes = None), []);
        let unknown = |read| {
            move |_: &mut _, evidence: &mut Evidence| {
                evidence.resident_before_bytes = None;
                evidence.device_read_bytes = read;
            }
        };
        assert_eq!(kinds_in(&cell, &HOLED_FILE, unknown(Some(1000))), [NotCold]);
        assert_eq!(kinds_in(&cell, &HOLED_FILE, unknown(None)), [NotCold]);
    }

    #[test]
    fn a_cold_block_cannot_be_read_twice() {
        let mut small = cell("pread", Cold);
        small.conditions.span_bytes.0 = 39 << 20;
        assert_eq!(kinds(&small, |_, _| {}), [NotCold, ColdOverrun]);
    }

    #[test]
    fn a_cache_that_was_not_full_is_noticed() {
        let short =
            |_: &mut _, evidence: &mut Evidence| evidence.resident_before_bytes = Some((1 << 28) - 4096);
        for method in ["pread", "mmap", "uring", "mmap:populate"] {
            assert_eq!(kinds(&cell(method, Warm), short), [NotWarm], "{method}");
        }
        assert_eq!(kinds(&cell("pread:direct", Warm), short), []);
        assert_eq!(kinds(&cell("anonymous", Warm), short), []);
        assert_eq!(kinds(&cell("pread", AsIs), short), []);
    }

    #[test]
    fn warm_needs_nothing_from_the_device() {
        let read = |bytes| move |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(bytes);
        assert_eq!(kinds(&cell("pread", Warm), read(60 << 10)), []);
        assert_eq!(kinds(&cell("pread", Warm), read(70 << 10)), [NotWarm]);
        let fault = |_: &mut _, evidence: &mut Evidence| evidence.major_faults = Some(1);
        assert_eq!(kinds(&cell("mmap", Warm), fault), [NotWarm]);
        assert_eq!(kinds(&cell("pread", Warm), fault), []);
    }

    #[test]
    fn warm_without_residency_needs_another_proof() {
        let unknown = |read, faults| {
            move |_: &mut _, evidence: &mut Evidence| {
                evidence.resident_before_bytes = None;
                evidence.device_read_bytes = read;
                evidence.major_faults = faults;
            }
        };
        assert_eq!(kinds(&cell("mmap", Warm), unknown(None, Some(0))), []);
        assert_eq!(kinds(&cell("pread", Warm), unknown(Some(0), None)), []);
        assert_eq!(kinds(&cell("pread", Warm), unknown(None, Some(0))), [NotWarm]);
    }

    #[test]
    fn a_span_that_ends_within_a_page_may_be_counted_either_way() {
        let mut odd = cell("pread", Warm);
        odd.conditions.span_bytes.0 = (1 << 28) - 100;
        assert_eq!(kinds(&odd, |_, evidence| evidence.resident_before_bytes = Some(1 << 28)), []);
        assert_eq!(kinds(&odd, |_, evidence| evidence.resident_before_bytes = Some((1 << 28) - 100)), []);
    }

    #[test]
    fn what_willneed_brought_in_during_set_up_is_still_cold() {
        let set_up = |mib: u64| {
            move |_: &mut _, evidence: &mut Evidence| {
                evidence.resident_before_bytes = Some(mib << 20);
                evidence.device_read_bytes = evidence.device_read_bytes.map(|read| read - (mib << 20));
                evidence.device_other_bytes = Some(mib << 20);
            }
        };
        assert_eq!(kinds(&cell("pread:willneed", Cold), set_up(8)), []);
        assert_eq!(kinds(&cell("pread", Cold), set_up(8)), [NotCold, Contaminated]);
        let warmed = |_: &mut _, evidence: &mut Evidence| {
            evidence.resident_before_bytes = Some(256 << 20);
            evidence.device_read_bytes = Some(0);
        };
        assert_eq!(
            kinds(&cell("pread:willneed", Cold), warmed),
            [NotCold],
            "one readahead is not the whole file"
        );
        let unknown = |_: &mut _, evidence: &mut Evidence| {
            evidence.resident_before_bytes = None;
            evidence.device_read_bytes = Some(0);
        };
        assert_eq!(kinds(&cell("pread:willneed", Cold), unknown), [NotCold], "then the device must prove it");
    }

    #[test]
    fn a_cold_sample_that_got_nothing_from_the_device_is_contaminated_by_who_did() {
        let served = |_: &mut _, evidence: &mut Evidence| {
            evidence.device_read_bytes = Some(0);
            evidence.device_other_bytes = Some(64 << 20);
        };
        assert_eq!(kinds_in(&cell("pread", Cold), &HOLED_FILE, served), [Contaminated]);
    }

    #[test]
    fn advice_that_is_not_in_force_is_noticed() {
        let flags = |flags: &'static str| {
            move |_: &mut _, evidence: &mut Evidence| evidence.mapping_flags = Some(flags.to_string())
        };
        assert_eq!(kinds(&cell("mmap:random", Warm), flags("rd sh")), [NotInForce]);
        assert_eq!(kinds(&cell("mmap:random", Warm), flags("rd rr")), []);
        assert_eq!(kinds(&cell("mmap:sequential+willneed", Warm), flags("rd rr")), [NotInForce]);
        assert_eq!(kinds(&cell("mmap:random+hugepage", Warm), flags("rd rr")), [NotInForce]);
        assert_eq!(kinds(&cell("mmap", Warm), flags("rd")), []);
        assert_eq!(kinds(&cell("pread:random", Warm), flags("rd")), []);
        assert_eq!(kinds(&cell("mmap:random", Warm), |_, evidence| evidence.mapping_flags = None), []);
    }

    #[test]
    fn a_mapping_that_was_not_populated_is_noticed() {
        let faults = |count| move |_: &mut _, evidence: &mut Evidence| evidence.minor_faults = Some(count);
        assert_eq!(kinds(&cell("mmap:populate", Warm), faults(2000)), []);
        assert_eq!(kinds(&cell("mmap:populate", Warm), faults(4096)), [NotInForce]);
        assert_eq!(kinds(&cell("mmap:populate-read", Warm), faults(4096)), [NotInForce]);
        assert_eq!(kinds(&cell("mmap", Warm), faults(65536)), []);
    }

    #[test]
    fn huge_pages_that_are_none_have_no_effect() {
        let cell_huge = cell("mmap:hugepage", Warm);
        let mut seen = evidence(&cell_huge);
        assert_eq!(no_effect(&cell_huge, &seen), None);
        seen.huge_mapped_bytes = Some(0);
        assert!(no_effect(&cell_huge, &seen).is_some());
        assert_eq!(no_effect(&cell("mmap", Warm), &seen), None);
    }

    #[test]
    fn direct_reads_served_from_memory_are_noticed() {
        for method in ["pread:direct", "uring:direct+depth=8"] {
            let cell = cell(method, Warm);
            assert_eq!(kinds(&cell, |_, evidence| evidence.descriptor_direct = Some(false)), [NotDirect]);
            assert_eq!(kinds(&cell, |_, evidence| evidence.device_read_bytes = Some(0)), [NotDirect]);
            let hidden = |before, after| {
                kinds_in(&cell, &HOLED_FILE, move |_, evidence| {
                    evidence.device_read_bytes = Some(0);
                    (evidence.resident_before_bytes, evidence.resident_after_bytes) = (before, after);
                })
            };
            // Where the device's bytes may be too few the page cache tells: nothing came into it, and it did not hold the file.
            assert_eq!(hidden(Some(0), Some(0)), [], "{method}");
            assert_eq!(hidden(Some(100 << 20), Some(100 << 20)), [], "{method}");
            assert_eq!(hidden(Some(0), Some(64 << 20)), [NotDirect], "{method}");
            assert_eq!(hidden(Some(256 << 20), Some(256 << 20)), [NotDirect], "{method}");
            let all_came = kinds_in(&cell, &HOLED_FILE, |_, evidence| {
                (evidence.resident_before_bytes, evidence.resident_after_bytes) =
                    (Some(256 << 20), Some(256 << 20));
            });
            assert_eq!(all_came, [], "{method}: what was in memory came from the device");
            assert_eq!(hidden(None, None), [NotDirect], "{method}");
            let few = kinds_in(&cell, &HOLED_FILE, |_, evidence| {
                evidence.requested_bytes = 1 << 20;
                (evidence.resident_before_bytes, evidence.resident_after_bytes) = (Some(0), Some(1 << 20));
            });
            assert!(few.contains(&NotDirect), "{method}: {few:?}");
            let unknown = |_: &mut _, evidence: &mut Evidence| {
                evidence.device_read_bytes = None;
                evidence.descriptor_direct = None;
            };
            assert_eq!(kinds_in(&cell, &HOLED_FILE, unknown), [NotDirect]);
        }
    }

    #[test]
    fn others_on_the_device_are_noticed_where_it_matters() {
        let busy = |_: &mut _, evidence: &mut Evidence| evidence.device_other_bytes = Some(9 << 20);
        assert_eq!(kinds(&cell("pread", Cold), busy), [Contaminated]);
        assert_eq!(kinds(&cell("pread:direct", Warm), busy), [Contaminated]);
        assert_eq!(kinds(&cell("pread", Warm), busy), []);
        assert_eq!(
            kinds(&cell("pread", Cold), |_, evidence| evidence.device_other_bytes = Some(8 << 20)),
            [],
            "a tenth of 40 MiB and 4 MiB"
        );
        let cached = |_: &mut _, evidence: &mut Evidence| {
            evidence.device_other_bytes = Some(900 << 20);
            evidence.device_read_bytes = Some(4096);
        };
        assert_eq!(kinds(&cell("pread", AsIs), cached), [], "a page of metadata is no use of the device");
    }

    #[test]
    fn others_on_the_device_are_noticed_above_memory() {
        let busy = |_: &mut _, evidence: &mut Evidence| evidence.device_other_bytes = Some(9 << 20);
        assert_eq!(kinds(&limited("pread", Warm, 128), busy), [Contaminated]);
        assert_eq!(kinds(&limited("pread", Warm, 320), busy), [], "everything comes from memory");
        let by_group = |_: &mut _, evidence: &mut Evidence| {
            evidence.device_read_bytes = None;
            evidence.device_other_bytes = Some(9 << 20);
        };
        assert_eq!(kinds(&limited("pread:direct", AsIs, 320), by_group), [Contaminated]);
    }

    #[test]
    fn cpu_time_that_was_stolen_is_noticed() {
        let stolen =
            |ms: u64| kinds(&cell("mmap", Warm), |_, evidence| evidence.steal_ns = Some(ms * 1_000_000));
        // Two threads of 151 ms: a fifth of 302 ms, and two ticks.
        assert_eq!((stolen(80), stolen(81)), (vec![], vec![Contaminated]));
    }

    #[test]
    fn pages_that_were_taken_from_a_cold_start_are_noticed() {
        let lost = |bytes: u64| {
            move |_: &mut _, evidence: &mut Evidence| {
                let last = evidence.windows.last_mut().expect("a window");
                last.resident_bytes = last.resident_bytes.map(|resident| resident - bytes);
            }
        };
        let cell = cell("pread", CacheState::ColdStart);
        let share = cell.conditions.span_bytes.0 / 50;
        assert_eq!((kinds(&cell, lost(share)), kinds(&cell, lost(share + 1))), (vec![], vec![Contaminated]));
        let limited = limited("pread", CacheState::ColdStart, 128);
        assert_eq!(kinds(&limited, lost(share + 1)), [], "a cache that is full gives pages up");
    }

    #[test]
    fn a_clock_that_stepped_is_noticed() {
        let stepped = |ns| kinds(&cell("mmap", Warm), |_, evidence| evidence.clock_step_ns = Some(ns));
        assert_eq!((stepped(1_100_000), stepped(-1_100_000)), (vec![], vec![]));
        assert_eq!((stepped(1_200_000), stepped(-1_200_000)), (vec![Contaminated], vec![Contaminated]));
    }

    #[test]
    fn a_cold_start_begins_cold_and_fills_from_the_device() {
        let cell = cell("pread", ColdStart);
        assert_eq!(kinds(&cell, |_, evidence| evidence.resident_before_bytes = Some(4096)), [NotCold]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.resident_before_bytes = None), [NotCold]);
        let warmed_by_others =
            |_: &mut _, evidence: &mut Evidence| evidence.resident_after_bytes = Some(256 << 20);
        assert_eq!(kinds(&cell, warmed_by_others), [NotCold]);
        assert_eq!(kinds_in(&cell, &HOLED_FILE, warmed_by_others), []);
    }

    #[test]
    fn a_span_that_fits_under_a_limit_must_be_whole() {
        let short = |_: &mut _, evidence: &mut Evidence| {
            evidence.resident_before_bytes = Some((1 << 28) - 4096);
        };
        assert_eq!(kinds(&limited("pread", Warm, 320), short), [NotWarm]);
        assert_eq!(kinds(&limited("pread", Warm, 128), short), [], "above memory it cannot be");
    }

    #[test]
    fn a_populated_mapping_above_memory_takes_faults() {
        let faults = |_: &mut _, evidence: &mut Evidence| evidence.minor_faults = Some(1 << 20);
        assert_eq!(kinds(&limited("mmap:populate", Warm, 128), faults), []);
        assert_eq!(kinds(&limited("mmap:populate", Warm, 320), faults), [NotInForce]);
    }
}
