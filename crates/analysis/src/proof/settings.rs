//! Checks that the requested settings were in force: memory limit, device cap, readahead, CPUs,
//! node; and that a cache under a limit was as warm as it gets.

use pagewise_model::counters::{RateWindow, UNLIMITED};
use pagewise_model::{Access, CacheState, CpuList, MethodOption, Numa, Skew};

use super::subject::Subject;
use crate::proof::steady::{self, Apart};
use pagewise_model::format::{percent, percent_of};

/// Slice of a cap.
const CAP_SLICE_SECONDS: f64 = 0.1;
/// Factor by which a capped rate may exceed its cap.
const CAP_EXCESS: f64 = 1.05;
/// Reads that were let through before the region and completed in it.
const CAP_SLACK_READS: u64 = 32;
/// Bytes that were let through before the region and completed in it: one large readahead.
const CAP_SLACK_BYTES: u64 = 8 << 20;
/// Share of the worker's device bytes that may be counted outside its group.
const ESCAPED_SHARE: f64 = 0.05;
/// Shortest sample under a device cap.
const CAPPED_LEAST_NS: u64 = 950_000_000;
/// Pages that the kernel charges ahead for each CPU: MEMCG_CHARGE_BATCH in mm/memcontrol.c.
/// Statistics of a group lag by the same amount.
const CHARGE_BATCH_PAGES: u64 = 64;
/// Share of the span that may be in the page cache without being charged to the group: pages that
/// come and go while the counters are read.
const CHARGED_SHARE: f64 = 0.02;
/// A group whose cache cannot hold the span is charged at least this share of its limit.
const NEAR_LIMIT: f64 = 0.90;
/// Share of the examined pages that must be on the node.
const ON_NODE: f64 = 0.99;

/// The setting of readahead, whose value is also separate evidence.
const READAHEAD: &str = "readahead";

fn charge_batches(subject: &Subject<'_>) -> u64 {
    (CHARGE_BATCH_PAGES * u64::from(subject.context.cpus)).saturating_mul(subject.context.page_bytes)
}

/// The limit must read back as set (in whole pages, as the kernel keeps it), and charges must never
/// have exceeded it.
pub(super) fn limit_not_held(subject: &Subject<'_>) -> Option<String> {
    let asked = subject.cell.conditions.host_settings.memory_limit_bytes?.0;
    let Some(group) = &subject.evidence.group else {
        return Some(format!(
            "the worker was not in a separate cgroup, so it is not limited to {asked} bytes"
        ));
    };
    let page = subject.context.page_bytes;
    match group.limit_bytes {
        None => {
            return Some(format!("the group's limit could not be read back, {asked} bytes were requested"));
        }
        Some(found) if found / page != asked / page => {
            return Some(format!("the group's limit is {found} bytes, the cell's {asked}"));
        }
        Some(_) => {}
    }
    let Some(peak) = group.peak_bytes.max(group.usage_bytes) else {
        return Some("the group's charge is unknown, so its limit is not proven".to_string());
    };
    (peak > asked.saturating_add(charge_batches(subject)))
        .then(|| format!("{peak} bytes were charged to the group at its peak, its limit is {asked}"))
}

/// Under a limit, the part of the span in the page cache must be charged to the group. Cache
/// brought in by another process is not, nor is a file in memory; it would make the limit look
/// larger than it is.
pub(super) fn charged_to_other_cgroup(subject: &Subject<'_>) -> Option<String> {
    let (cell, evidence) = (subject.cell, subject.evidence);
    cell.conditions.host_settings.memory_limit_bytes?;
    let group = evidence.group.as_ref().filter(|_| cell.depends_on_cache())?;
    let span = cell.conditions.span_bytes.0;
    // A warm cache that fits must be complete.
    let whole =
        (cell.conditions.cache == CacheState::Warm && cell.conditions.stays_in_memory()).then_some(span);
    let (Some(resident), Some(charged)) = (evidence.resident_after_bytes.or(whole), group.file_bytes) else {
        return Some(
            "residency or the group's page cache is unknown, so its charge is not proven".to_string(),
        );
    };
    let slack = (span as f64 * CHARGED_SHARE) as u64 + charge_batches(subject);
    (resident > charged.saturating_add(slack)).then(|| {
        format!(
            "{resident} bytes of the span are in the page cache, the group is charged for {charged}: {} of them are charged to others",
            percent_of(resident - charged, resident)
        )
    })
}

/// Above memory, the workload warms the cache until device bytes per operation are equivalent in
/// its last windows, and the same in the measured region; and the cache is full then.
pub(super) fn not_settled(subject: &Subject<'_>) -> Option<String> {
    if !subject.reaches_steady_state() {
        return None;
    }
    let (cell, evidence) = (subject.cell, subject.evidence);
    let windows = evidence.windows.as_slice();
    let measured = RateWindow {
        elapsed_ns: subject.worker_ns(),
        operations: subject.operations(),
        device_read_bytes: subject.device_bytes(),
        resident_bytes: evidence.resident_after_bytes,
        ..RateWindow::default()
    };
    let (Some(unsettled), Some(departs)) =
        (steady::unsettled(cell, windows), steady::departs(cell, windows, &measured))
    else {
        return Some(format!(
            "device bytes are unknown in {} windows of warm-up or the sample, or the windows too few, so the cache is not proven to have settled",
            windows.len()
        ));
    };
    if let Some(Apart { before, after, uncertain }) = unsettled {
        return Some(format!(
            "the device delivered {before:.0} bytes per operation in earlier windows of warm-up and {after:.0} in later ones, give or take {}: they are not shown to be within 10 %",
            percent(uncertain)
        ));
    }
    let page_bytes = subject.context.page_bytes;
    if steady::has_prediction(cell, page_bytes) && !steady::is_lasting(cell, windows, page_bytes) {
        return Some(
            "the warm-up replaced less than half of the cache, and the device did not deliver what the cache lacks, within 10 %"
                .to_string(),
        );
    }
    if let Some((before, own, share)) = departs {
        return Some(format!(
            "the device delivered {before:.0} bytes per operation in the warm-up and {own:.0} in the sample, a difference of at most {:.0} % may be",
            share * 100.0
        ));
    }
    // RWF_DONTCACHE leaves nothing in the cache, and a device that delivers nothing shows that
    // everything is in it.
    if cell.method.has(MethodOption::DontCache) || !subject.device_flows() {
        return None;
    }
    let group = evidence.group.as_ref()?;
    let limit = cell.conditions.host_settings.memory_limit_bytes?.0;
    let Some(usage) = group.usage_bytes else {
        return Some(
            "the group's charge is unknown, so its cache is not proven to have been full".to_string(),
        );
    };
    ((usage as f64) < limit as f64 * NEAR_LIMIT).then(|| {
        format!(
            "the group is charged {usage} bytes, {} of its limit, while the device still delivers: its cache was not full",
            percent_of(usage, limit)
        )
    })
}

/// Uniform reads of data at least this many times as large as the cache miss it often.
const CLEARLY_LARGER: f64 = 1.5;
/// Share of the misses predicted from the sizes that must come from the device: a table reaches
/// only 86 % of its positions.
const LEAST_MISSES: f64 = 0.25;

/// Uniform reads of data that do not fit in the cache come from the device in part. If hardly any
/// do, the data are kept in memory that the limit does not cover.
pub(super) fn kept_elsewhere(subject: &Subject<'_>) -> Option<String> {
    let (cell, conditions) = (subject.cell, &subject.cell.conditions);
    let uniform = conditions.reads().is_some_and(|reads| reads.skew == Skew::Uniform);
    if !subject.reaches_steady_state() || !uniform || subject.context.sparse_or_compressed_bytes {
        return None;
    }
    let (limit, span) =
        (conditions.host_settings.memory_limit_bytes?.0 as f64, conditions.span_bytes.0 as f64);
    let (read, requested) = (subject.device_bytes()?, subject.evidence.requested_bytes);
    let least = (requested as f64 * (1.0 - limit / span) * LEAST_MISSES) as u64;
    (span > limit * CLEARLY_LARGER && read < least).then(|| {
        format!(
            "{read} bytes of the {requested} requested came from the device, at least {least} must under a limit of {limit} bytes: {} keeps its data in memory that the limit does not cover",
            cell.method
        )
    })
}

/// A cap works in slices of 100 ms, and a sample that ends with a part of one holds too much of it:
/// over a second that is little. A cold sample ends earlier if its span is small.
pub(super) fn capped_too_short(subject: &Subject<'_>) -> Option<String> {
    subject.cell.conditions.host_settings.device_cap?;
    let in_windows = subject.cell.conditions.cache == CacheState::ColdStart;
    let measured_ns = subject.measurement.measured_ns;
    (!in_windows && subject.device_flows() && measured_ns < CAPPED_LEAST_NS).then(|| {
        format!(
            "it lasted {} ms, and under a cap a rate is known after {} ms: the data are too small for a cold sample",
            measured_ns / 1_000_000,
            CAPPED_LEAST_NS / 1_000_000
        )
    })
}

/// The cap must read back from the group as set; without a requested cap there must be none.
pub(super) fn cap_mismatch(subject: &Subject<'_>) -> Option<String> {
    let asked = subject.cell.conditions.host_settings.device_cap;
    let Some(group) = &subject.evidence.group else {
        return asked.map(|cap| {
            format!("the worker was not in a separate cgroup, so its device is not capped at {cap}")
        });
    };
    let capped = |read_back: Option<u64>| read_back.filter(|rate| *rate != UNLIMITED);
    let pairs = [
        ("reads per second", asked.and_then(|cap| cap.read_iops), capped(group.cap_read_iops)),
        (
            "bytes per second",
            asked.and_then(|cap| cap.read_bytes_per_second).map(|bytes| bytes.0),
            capped(group.cap_read_bytes_per_second),
        ),
    ];
    let word = |value: Option<u64>| value.map_or("none".to_string(), |value| value.to_string());
    let (unit, asked, found) = pairs.into_iter().find(|(_, asked, found)| asked != found)?;
    Some(format!(
        "the cap on {unit} read back from the group is {}, the cell's is {}",
        word(found),
        word(asked)
    ))
}

/// The device must deliver no more to the group than the cap allows, whatever was read back before
/// and after.
pub(super) fn cap_not_held(subject: &Subject<'_>) -> Option<String> {
    let cap = subject.cell.conditions.host_settings.device_cap?;
    let group = subject.evidence.group.as_ref()?;
    // Credit from the slice before, and from those between the windows of a cold start.
    let slices = 2 + subject.evidence.windows.len() as u64;
    let seconds = subject.evidence.wall_ns as f64 / 1e9 + slices as f64 * CAP_SLICE_SECONDS;
    let pairs = [
        ("reads", cap.read_iops, group.device_read_requests, CAP_SLACK_READS),
        ("bytes", cap.read_bytes_per_second.map(|bytes| bytes.0), group.device_read_bytes, CAP_SLACK_BYTES),
    ];
    pairs.into_iter().find_map(|(unit, rate, done, slack)| {
        let most = (rate? as f64 * seconds * CAP_EXCESS) as u64 + slack;
        (done? > most).then(|| {
            format!(
                "the device did {} {unit} for the group, and the cap {cap} allows {most} at most",
                done.unwrap_or(0)
            )
        })
    })
}

/// Bytes that the worker read from the device must be counted in its group, or they bypassed the
/// cap.
pub(super) fn cap_escaped(subject: &Subject<'_>) -> Option<String> {
    subject.cell.conditions.host_settings.device_cap?;
    let (own, group) =
        (subject.evidence.device_read_bytes?, subject.evidence.group.as_ref()?.device_read_bytes?);
    let slack = (own as f64 * ESCAPED_SHARE) as u64 + CAP_SLACK_BYTES;
    (own > group.saturating_add(slack)).then(|| {
        format!("the worker read {own} bytes from the device, its group {group}: the cap did not hold for all of them")
    })
}

/// Each setting of the kernel must be as the cell requests, or as it was when the run began.
/// Readahead does not affect work that only writes.
pub(super) fn kernel_setting_mismatch(subject: &Subject<'_>) -> Option<String> {
    subject.cell.conditions.host_settings.kernel.wanted().into_iter().find_map(|(name, set)| {
        let is_readahead = name == READAHEAD;
        if set.is_none() && is_readahead && subject.is_writing() {
            return None;
        }
        let older = |bytes: Option<u64>| bytes.filter(|_| is_readahead).map(|bytes| bytes.to_string());
        let asked =
            set.as_ref().map(|wanted| wanted.value.clone()).or(older(subject.context.readahead_bytes))?;
        let found = subject.evidence.settings.get(name).cloned().or(older(subject.evidence.readahead_bytes));
        match found {
            Some(found) if found == asked => None,
            Some(found) if set.is_none() => Some(format!(
                "{name} is {found}, and it was {asked} when the run began: another process changed it"
            )),
            Some(found) => Some(format!("{name} is {found}, the cell's {asked}")),
            None => Some(format!("{name} could not be read back, {asked} was requested")),
        }
    })
}

/// The worker may run on the cell's CPUs only; if its node matters too, on those of them that are
/// on it.
pub(super) fn cpus_mismatch(subject: &Subject<'_>) -> Option<String> {
    let host_settings = &subject.cell.conditions.host_settings;
    let asked = host_settings.cpus.as_ref()?;
    let of_node = |found: &CpuList| {
        host_settings.numa.is_some() && found.numbers().iter().all(|cpu| asked.numbers().contains(cpu))
    };
    match subject.evidence.cpus_allowed.as_deref().map(str::parse::<CpuList>) {
        Some(Ok(found)) if found == *asked || of_node(&found) => None,
        Some(Ok(found)) => Some(format!("the worker was allowed the CPUs {found}, the cell's are {asked}")),
        _ => Some(format!("the CPUs that the worker was allowed are unknown, {asked} were requested")),
    }
}

/// The pages of the file must be on the requested node, relative to the worker's.
pub(super) fn placement_mismatch(subject: &Subject<'_>) -> Option<String> {
    let asked = subject.cell.conditions.host_settings.numa?;
    if subject.cell.access() == Access::Anonymous || !subject.cell.depends_on_cache() {
        return None;
    }
    let Some(found) = subject.evidence.placement.as_ref().filter(|found| found.pages > 0) else {
        return Some(format!("the node of the pages is unknown, {asked} was requested"));
    };
    let wanted = match asked {
        Numa::Same => found.page_node == found.worker_node,
        Numa::Other => found.page_node != found.worker_node,
        Numa::Node(node) => found.page_node == node,
    };
    if !wanted {
        return Some(format!(
            "the worker ran on node {}, the pages were put on node {}, {asked} was requested",
            found.worker_node, found.page_node
        ));
    }
    ((found.pages_on_node as f64) < found.pages as f64 * ON_NODE).then(|| {
        format!("{} of {} examined pages are on node {}", found.pages_on_node, found.pages, found.page_node)
    })
}

#[cfg(test)]
mod tests {
    use crate::proof::honest::{self, CONTEXT, cell, kinds, kinds_in, limited, set};
    use pagewise_model::CacheState::{AsIs, Cold, Warm};
    use pagewise_model::CheckContext as Context;
    use pagewise_model::FailureKind::{
        ChargedToOtherCgroup, LimitNotHeld, MethodContradicted, NotSettled, NotWarm, SettingMismatch,
    };
    use pagewise_model::{Cell, Evidence, FailureKind, GroupCounters};

    fn grouped(cell: &Cell, change: impl FnOnce(&mut GroupCounters)) -> Vec<FailureKind> {
        kinds(cell, |_, evidence| change(evidence.group.as_mut().expect("a group")))
    }

    #[test]
    fn a_limit_that_is_not_in_force_is_noticed() {
        for cell in
            [limited("mmap", Warm, 128), limited("pread", Cold, 320), limited("pread:direct", AsIs, 128)]
        {
            assert_eq!(grouped(&cell, |group| group.limit_bytes = Some(1 << 30)), [LimitNotHeld]);
            assert_eq!(grouped(&cell, |group| group.limit_bytes = None), [LimitNotHeld]);
            assert_eq!(kinds(&cell, |_, evidence| evidence.group = None), [LimitNotHeld]);
            let silent = |group: &mut GroupCounters| {
                group.peak_bytes = None;
                group.usage_bytes = None;
            };
            assert!(grouped(&cell, silent).contains(&LimitNotHeld));
        }
    }

    #[test]
    fn a_cap_that_did_not_hold_is_noticed() {
        // 1.05 s and the slices, at 2,000 reads/s: 2,628 reads and a slack.
        let cell = set("pread:direct", Cold);
        let done = |reads: u64| grouped(&cell, |group| group.device_read_requests = Some(reads));
        assert_eq!((done(2_600), done(2_700)), (vec![], vec![SettingMismatch]));
        let mut by_bytes = cell.clone();
        by_bytes.conditions.host_settings.device_cap = "read-bandwidth=40MiB/s".parse().ok();
        let read = |bytes| grouped(&by_bytes, |group| group.device_read_bytes = Some(bytes));
        assert_eq!((read(60 << 20), read(63 << 20)), (vec![], vec![SettingMismatch]));
    }

    #[test]
    fn reads_outside_of_a_capped_group_are_noticed() {
        let cell = set("pread:direct", Cold);
        let own = honest::evidence(&cell).device_read_bytes.expect("known");
        let counted = |bytes| grouped(&cell, |group| group.device_read_bytes = Some(bytes));
        assert_eq!((counted(own), counted(own / 2)), (vec![], vec![SettingMismatch]));
        assert_eq!(grouped(&cell, |group| group.device_read_bytes = None), []);
    }

    #[test]
    fn a_readahead_that_somebody_changed_during_the_run_is_noticed() {
        let cell = cell("mmap", Cold);
        let context = Context { readahead_bytes: Some(128 << 10), ..CONTEXT };
        let found = |bytes| kinds_in(&cell, &context, |_, evidence| evidence.readahead_bytes = bytes);
        assert_eq!((found(Some(128 << 10)), found(Some(8 << 20))), (vec![], vec![SettingMismatch]));
        assert_eq!(found(None), [SettingMismatch]);
    }

    #[test]
    fn a_short_sample_under_a_cap_is_noticed() {
        let shortened = |cell: &Cell, measured_ms: u64| {
            kinds(cell, |measurement, evidence| {
                evidence.wall_ns -= measurement.measured_ns - measured_ms * 1_000_000;
                measurement.measured_ns = measured_ms * 1_000_000;
            })
        };
        let capped = set("pread:direct", Cold);
        assert_eq!((shortened(&capped, 950), shortened(&capped, 949)), (vec![], vec![NotSettled]));
        assert_eq!(shortened(&set("pread", Warm), 500), [], "nothing comes from the device");
    }

    #[test]
    fn a_limit_is_kept_in_whole_pages() {
        let mut odd = limited("pread", Warm, 128);
        odd.conditions.host_settings.memory_limit_bytes = Some(pagewise_model::Bytes((128 << 20) + 1000));
        assert_eq!(grouped(&odd, |group| group.limit_bytes = Some(128 << 20)), []);
        assert_eq!(grouped(&odd, |group| group.limit_bytes = Some((128 << 20) + 4096)), [LimitNotHeld]);
    }

    #[test]
    fn a_limit_that_was_lifted_for_a_while_shows_in_the_peak() {
        let cell = limited("pread:random", Warm, 128);
        let peak = |bytes| grouped(&cell, |group| group.peak_bytes = Some(bytes));
        // 64 pages for each of 4 CPUs are 1 MiB.
        assert_eq!((peak(129 << 20), peak((129 << 20) + 1)), (vec![], vec![LimitNotHeld]));
        assert_eq!(
            grouped(&cell, |group| group.peak_bytes = None),
            [],
            "kernels before 5.19 do not report it"
        );
    }

    #[test]
    fn cache_that_others_are_charged_for_is_noticed() {
        let charged = |cell: &Cell, mib: u64| grouped(cell, |group| group.file_bytes = Some(mib << 20));
        let whole = limited("pread", Warm, 320);
        // 2 % of 256 MiB and 1 MiB may be missing.
        assert_eq!((charged(&whole, 250), charged(&whole, 249)), (vec![], vec![ChargedToOtherCgroup]));
        assert_eq!(charged(&limited("mmap:random", Warm, 128), 100), [ChargedToOtherCgroup]);
        assert_eq!(charged(&limited("pread", Cold, 320), 0), [ChargedToOtherCgroup], "a file in memory");
        assert_eq!(charged(&limited("pread", AsIs, 320), 0), [ChargedToOtherCgroup], "as it was found");
        assert_eq!(charged(&limited("pread:direct", AsIs, 320), 0), [], "no cache of the span");
        assert_eq!(grouped(&whole, |group| group.file_bytes = None), [ChargedToOtherCgroup]);
    }

    #[test]
    fn charge_must_be_known_where_residency_is_not() {
        let unknown = |_: &mut _, evidence: &mut Evidence| evidence.resident_after_bytes = None;
        assert_eq!(kinds(&limited("pread", Warm, 128), unknown), [ChargedToOtherCgroup]);
        assert_eq!(kinds(&limited("pread", Warm, 320), unknown), [], "the group is charged for all of it");
    }

    #[test]
    fn a_cache_that_still_fills_is_noticed() {
        let cell = limited("pread:random", Warm, 128);
        let more = |window: usize, share: f64| {
            kinds(&cell, move |_, evidence| {
                let bytes = &mut evidence.windows[window].device_read_bytes;
                *bytes = bytes.map(|bytes| (bytes as f64 * share) as u64);
            })
        };
        assert_eq!((more(4, 1.03), more(1, 0.97), more(0, 2.0)), (vec![], vec![], vec![]));
        assert_eq!(
            (more(4, 1.3), more(1, 0.7)),
            (vec![NotSettled], vec![NotSettled]),
            "not shown to be equivalent"
        );
        assert_eq!(kinds(&cell, |_, evidence| evidence.windows.truncate(4)), [NotSettled]);
        let now = |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(40 << 20);
        assert_eq!(kinds(&cell, now), [NotSettled], "the sample itself");
        assert_eq!(kinds(&cell, |_, evidence| evidence.windows[2].device_read_bytes = None), [NotSettled]);
        let fits = |_: &mut _, evidence: &mut Evidence| evidence.windows.clear();
        assert_eq!(kinds(&limited("pread:random", Warm, 320), fits), []);
    }

    #[test]
    fn a_group_far_from_its_limit_was_not_full() {
        let usage = |method: &str, mib: u64| {
            kinds(&limited(method, Warm, 128), |_, evidence| {
                let group = evidence.group.as_mut().expect("a group");
                group.usage_bytes = Some(mib << 20);
                group.file_bytes = Some((mib - 1) << 20);
                evidence.resident_after_bytes = Some((mib - 1) << 20);
            })
        };
        assert_eq!((usage("pread", 116), usage("pread", 115)), (vec![], vec![NotSettled]));
        assert_eq!(usage("pread:dontcache", 20), [], "it leaves nothing behind");
        let unknown = grouped(&limited("pread", Warm, 128), |group| group.usage_bytes = None);
        assert_eq!(unknown, [NotSettled]);
    }

    #[test]
    fn a_cap_that_is_not_in_force_is_noticed() {
        let cell = set("pread:direct", AsIs);
        assert_eq!(grouped(&cell, |group| group.cap_read_iops = Some(4000)), [SettingMismatch]);
        assert_eq!(grouped(&cell, |group| group.cap_read_bytes_per_second = None), [SettingMismatch]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.group = None), [SettingMismatch]);
        assert_eq!(
            grouped(&limited("pread", Warm, 320), |group| group.cap_read_iops = Some(9)),
            [SettingMismatch],
            "nobody asked for a cap"
        );
        let mut one = set("pread:direct", AsIs);
        one.conditions.host_settings.device_cap = Some("read-iops=2000".parse().expect("a cap"));
        let bytes = |rate| grouped(&one, |group| group.cap_read_bytes_per_second = Some(rate));
        assert_eq!(
            (bytes(u64::MAX), bytes(1 << 30)),
            (vec![], vec![SettingMismatch]),
            "the other rate is not capped"
        );
    }

    #[test]
    fn readahead_and_cpus_that_are_not_as_set_are_noticed() {
        let cell = set("pread", Warm);
        assert_eq!(kinds(&cell, |_, evidence| evidence.readahead_bytes = Some(8 << 20)), [SettingMismatch]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.readahead_bytes = None), [SettingMismatch]);
        let cpus = |text: Option<&str>| {
            kinds(&cell, |_, evidence| evidence.cpus_allowed = text.map(ToString::to_string))
        };
        assert_eq!((cpus(Some("0,1,3")), cpus(Some("0-3"))), (vec![], vec![SettingMismatch]));
        assert_eq!(cpus(Some("0-1")), [], "those of the node");
        let mut anywhere = cell.clone();
        anywhere.conditions.host_settings.numa = None;
        let fewer = |_: &mut _, evidence: &mut Evidence| evidence.cpus_allowed = Some("0-1".to_string());
        assert_eq!(kinds(&anywhere, fewer), [SettingMismatch]);
        assert_eq!((cpus(Some("?")), cpus(None)), (vec![SettingMismatch], vec![SettingMismatch]));
    }

    #[test]
    fn pages_on_another_node_are_noticed() {
        let cell = set("mmap", Warm);
        let on_node = |pages| {
            kinds(&cell, |_, evidence| {
                evidence.placement.as_mut().expect("placement").pages_on_node = pages;
            })
        };
        assert_eq!((on_node(990), on_node(989)), (vec![], vec![SettingMismatch]));
        assert_eq!(kinds(&cell, |_, evidence| evidence.placement = None), [SettingMismatch]);
        let node = |numa: &str, page_node| {
            let mut cell = cell.clone();
            cell.conditions.host_settings.numa = Some(numa.parse().expect("a placement"));
            kinds(&cell, |_, evidence| evidence.placement.as_mut().expect("placement").page_node = page_node)
        };
        assert_eq!((node("same", 0), node("other", 1), node("1", 1)), (vec![], vec![], vec![]));
        assert_eq!(
            (node("same", 1), node("other", 0), node("1", 0)),
            (vec![SettingMismatch], vec![SettingMismatch], vec![SettingMismatch])
        );
        let none = |_: &mut _, evidence: &mut Evidence| {
            evidence.placement.as_mut().expect("placement").pages = 0;
        };
        assert_eq!(kinds(&cell, none), [SettingMismatch], "no page was looked at");
    }

    #[test]
    fn a_device_byte_under_a_limit_that_holds_all_is_not_warm() {
        let read = |_: &mut _, evidence: &mut Evidence| evidence.device_read_bytes = Some(1 << 20);
        assert_eq!(kinds(&limited("pread", Warm, 320), read), [NotWarm]);
        assert_eq!(kinds(&limited("mmap:random", Warm, 320), read), [NotWarm, MethodContradicted]);
    }

    #[test]
    fn data_kept_where_the_limit_does_not_reach_are_noticed() {
        // A limit of half of the data: at least an eighth of the requested bytes must come from the
        // device.
        let delivered = |method: &str, mib: u64| {
            kinds(&limited(method, Warm, 128), move |_, evidence| {
                evidence.device_read_bytes = Some(mib << 20);
                evidence.major_faults = Some(0);
                evidence.group.as_mut().expect("a group").device_read_bytes = Some(mib << 20);
                evidence.windows.iter_mut().for_each(|window| window.device_read_bytes = Some(mib << 20));
            })
        };
        assert_eq!(delivered("mine/get", 20), []);
        assert_eq!(delivered("mine/get", 0), [ChargedToOtherCgroup]);
        assert_eq!(delivered("pread", 2), [ChargedToOtherCgroup]);
    }
}
