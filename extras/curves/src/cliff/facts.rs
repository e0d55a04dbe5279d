//! Curves, leads and crossings of a run as figures.

use pagewise_model::run::Run;
use pagewise_model::sample::Measurement;
use pagewise_model::{Bytes, Conditions, Evidence, Method};

use super::change::{self, Narrowing, OrderChange};
use super::found::{
    Behind, Capacity, CapacitySource, Closing, Crossing, Curve, CurveGroup, Edge, Lead, Point, Precision,
    WideCrossing, WindowChoice, WindowRate,
};
use super::group::{CliffGroup, GroupCell, WindowFamily};
use pagewise_analysis::judge::MedianInterval;
use pagewise_analysis::judge::collected::CellSamples;
use pagewise_analysis::judge::label::{LabelPart, label_without, of_any_machine};
use pagewise_analysis::judge::reasons::{CellReason, MainFailure};
use pagewise_analysis::judge::verdict::{BOUND_LEVEL, Finding};
use pagewise_analysis::proof::measured::{operations, ops_per_second};
use pagewise_analysis::statistics::median;

/// All groups with their results.
pub(super) fn groups(run: &Run, samples: &[CellSamples<'_>]) -> Vec<CurveGroup> {
    CliffGroup::all(run, samples).iter().filter_map(|group| curve_group(run, group)).collect()
}

fn curve_group(run: &Run, group: &CliffGroup<'_>) -> Option<CurveGroup> {
    let conditions = group.conditions(*group.spans().first()?);
    // Other workloads have no offset table, and no cliff.
    let reads = *conditions.reads()?;
    let memory_limit_bytes = conditions.host_settings.memory_limit_bytes?;
    let capacity = capacity(group, &conditions)?;
    let scale = Scale { capacity_bytes: capacity.bytes.0 as f64, limit_bytes: memory_limit_bytes.0 as f64 };
    let curves = group.methods().iter().map(|method| curve(group, method, &scale)).collect();
    Some(CurveGroup {
        label: label_without(&conditions, &[LabelPart::Size, LabelPart::Data]),
        compared_label: label_without(&of_any_machine(&conditions), &[LabelPart::Size, LabelPart::Data]),
        workload: conditions.workload(),
        threads: conditions.threads,
        read_bytes: reads.read_bytes,
        reads_per_op: reads.reads_per_op,
        skew: reads.skew,
        cache: conditions.cache,
        memory_limit_bytes,
        readahead_bytes: conditions
            .host_settings
            .kernel
            .readahead_bytes
            .or(run.header.environment.readahead_bytes),
        capacity,
        curves,
        windows: group.families.iter().map(|family| window_choice(family, &scale)).collect(),
        leads: leads(group, &scale),
        edges: edges(group, &scale),
        crossings: change::changes(group).iter().map(|change| crossing(run, group, change, &scale)).collect(),
    })
}

/// Reference values of the ratios of spans.
struct Scale {
    capacity_bytes: f64,
    limit_bytes: f64,
}

impl Scale {
    fn ratio(&self, span: u64) -> f64 {
        span as f64 / self.capacity_bytes
    }
}

fn capacity(group: &CliffGroup<'_>, conditions: &Conditions) -> Option<Capacity> {
    let members = group.members().iter().filter(|member| member.samples.cell.depends_on_cache());
    let left: Vec<f64> = members.flat_map(|one| one.samples.known(|_, seen| left_for_files(seen))).collect();
    let measured = median(&left).map(|bytes| Capacity {
        bytes: Bytes(bytes.round() as u64),
        source: CapacitySource::Measured,
        samples: left.len(),
    });
    let nominal = || {
        let bytes = conditions.cache_capacity().filter(|bytes| bytes.0 > 0)?;
        Some(Capacity { bytes, source: CapacitySource::Nominal, samples: 0 })
    };
    measured.or_else(nominal)
}

/// The limit less charges other than page cache; `None` if unknown or if nothing would be left.
fn left_for_files(evidence: &Evidence) -> Option<f64> {
    let group = evidence.group.as_ref()?;
    let beside = group.usage_bytes?.checked_sub(group.file_bytes?)?;
    let left = group.limit_bytes?.checked_sub(beside)?;
    (left > 0).then_some(left as f64)
}

fn curve(group: &CliffGroup<'_>, method: &Method, scale: &Scale) -> Curve {
    let spans = group.spans();
    let members = spans.iter().filter_map(|span| group.member(method, *span));
    Curve { method: method.to_string(), points: members.map(|member| point(member, scale)).collect() }
}

fn point(member: &GroupCell<'_>, scale: &Scale) -> Point {
    let samples = member.samples;
    let rates = samples.figures(|measurement, _| ops_per_second(measurement));
    let of = |figure: fn(&Measurement, &Evidence) -> Option<f64>| median(&samples.known(figure));
    Point {
        ratio: scale.ratio(member.span()),
        ratio_to_limit: member.span() as f64 / scale.limit_bytes,
        span_bytes: Bytes(member.span()),
        samples: rates.len(),
        ops_per_second: MedianInterval::of(&rates),
        device_bytes_per_byte: of(|_, seen| per(seen.device_read_bytes?, seen.requested_bytes)),
        major_faults_per_op: of(|measured, seen| per(seen.major_faults?, operations(measured))),
        refaults_per_op: of(|measured, seen| per(seen.group.as_ref()?.refaults?, operations(measured))),
        reason: rates.is_empty().then(|| why_none(samples)),
    }
}

fn per(count: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| count as f64 / of as f64)
}

fn window_choice(family: &WindowFamily<'_>, scale: &Scale) -> WindowChoice {
    let candidates = family.candidates.iter().map(|(window, member)| WindowRate {
        method: member.method().to_string(),
        window: *window,
        ops_per_second: member.median_rate(),
    });
    WindowChoice {
        ratio: scale.ratio(family.span),
        candidates: candidates.collect(),
        chosen: family.chosen.as_ref().map(Method::to_string),
    }
}

/// Ranges of ratios with a leader in common.
fn leads(group: &CliffGroup<'_>, scale: &Scale) -> Vec<Lead> {
    let mut leads: Vec<(u64, u64, Vec<&Method>)> = Vec::new();
    for span in group.full_spans() {
        let leaders = group.leaders(span);
        if let Some((_, to, common)) = leads.last_mut() {
            let both: Vec<&Method> =
                common.iter().copied().filter(|method| leaders.contains(method)).collect();
            if !both.is_empty() || (common.is_empty() && leaders.is_empty()) {
                (*to, *common) = (span, both);
                continue;
            }
        }
        leads.push((span, span, leaders));
    }
    leads
        .into_iter()
        .map(|(from, to, methods)| Lead {
            from: scale.ratio(from),
            to: scale.ratio(to),
            methods: methods.into_iter().map(Method::to_string).collect(),
        })
        .collect()
}

/// Ends of the sweep at which the only leader of the neighbouring ratio is no longer
/// distinguishable from others.
fn edges(group: &CliffGroup<'_>, scale: &Scale) -> Vec<Edge> {
    let full = group.full_spans();
    let [first, second, ..] = full.as_slice() else { return Vec::new() };
    let [.., last_but_one, last] = full.as_slice() else { return Vec::new() };
    [(*first, *second, false), (*last, *last_but_one, true)]
        .into_iter()
        .filter_map(|(outer, inner, highest)| {
            let [leader] = group.leaders(inner)[..] else { return None };
            let leaders = group.leaders(outer);
            let rivals: Vec<String> =
                leaders.iter().filter(|rival| **rival != leader).map(|rival| rival.to_string()).collect();
            (leaders.contains(&leader) && !rivals.is_empty()).then(|| Edge {
                ratio: scale.ratio(outer),
                highest,
                leader: leader.to_string(),
                rivals,
            })
        })
        .collect()
}

fn crossing(run: &Run, group: &CliffGroup<'_>, change: &OrderChange<'_>, scale: &Scale) -> Crossing {
    let (precision, reason) = precision(run, group, change);
    Crossing {
        before: change.before.to_string(),
        after: change.after.to_string(),
        ratio: Some(change.estimate() / scale.capacity_bytes),
        low: scale.ratio(change.low()),
        high: scale.ratio(change.high()),
        coverage: BOUND_LEVEL,
        low_span_bytes: Bytes(change.low()),
        high_span_bytes: Bytes(change.high()),
        before_leads: change.before_leads,
        after_leads: change.after_leads,
        precision,
        reason,
        behind: behind(group, change, scale),
    }
}

fn precision(
    run: &Run,
    group: &CliffGroup<'_>,
    change: &OrderChange<'_>,
) -> (Precision, Option<WideCrossing>) {
    let Some(search) = &run.header.plan.search else {
        return (Precision::Stopped, Some(WideCrossing::NoSearch));
    };
    let tolerance = f64::from(search.tolerance_thousandths) / 1000.0;
    match change.narrow(tolerance, group, run.header.environment.page_bytes) {
        Narrowing::Reached => (Precision::Reached, None),
        Narrowing::Undecided => (Precision::Undecided, Some(WideCrossing::Undecided)),
        Narrowing::TooFine => (Precision::TooFine, Some(WideCrossing::TooFine)),
        Narrowing::Measure(_) if !run.is_complete() => (Precision::Stopped, Some(WideCrossing::RunEnded)),
        Narrowing::Measure(_) => (Precision::Stopped, Some(WideCrossing::SearchSpent)),
    }
}

fn behind(group: &CliffGroup<'_>, change: &OrderChange<'_>, scale: &Scale) -> Option<Behind> {
    let span = group.full_spans().into_iter().find(|span| *span >= change.high())?;
    let point_of = |method: &Method| group.member(method, span).map(|member| point(member, scale));
    let (before, after) = (point_of(change.before)?, point_of(change.after)?);
    let shown = group.compare(change.after, change.before, span)?;
    Some(Behind {
        ratio: scale.ratio(span),
        times: shown.log_ratio.map(f64::exp),
        before_device_bytes_per_byte: before.device_bytes_per_byte,
        after_device_bytes_per_byte: after.device_bytes_per_byte,
        before_major_faults_per_op: before.major_faults_per_op,
        after_major_faults_per_op: after.major_faults_per_op,
        closing: closing(group, change, span),
    })
}

/// The variant of the slower method that gains most over it.
fn closing(group: &CliffGroup<'_>, change: &OrderChange<'_>, span: u64) -> Option<Closing> {
    let rate = |method: &Method| group.member(method, span)?.median_rate();
    let (slower, faster) = (rate(change.before)?, rate(change.after)?);
    let gap = faster - slower;
    if gap <= 0.0 {
        return None;
    }
    let same_way = |method: &&Method| {
        let (before, after) = (change.before, change.after);
        let same = method.worker() == before.worker() && method.word() == before.word();
        same && **method != *before && **method != *after
    };
    let clearly_faster = |method: &&Method| {
        group
            .compare(method, change.before, span)
            .is_some_and(|shown| shown.wins && shown.faster == Finding::Higher)
    };
    group
        .methods()
        .iter()
        .copied()
        .filter(same_way)
        .filter(clearly_faster)
        .filter_map(|method| {
            Some(Closing { method: method.to_string(), share: (rate(method)? - slower) / gap })
        })
        .max_by(|left, right| left.share.total_cmp(&right.share))
}

/// Reason that a cell has no rate.
fn why_none(samples: &CellSamples<'_>) -> CellReason {
    if let Some(reason) = samples.unavailable() {
        return CellReason::Unavailable(reason.to_string());
    }
    let first = samples.attempts.iter().flat_map(|sample| sample.failures()).next();
    first.map_or(CellReason::NotSampled, |failure| CellReason::Lacking {
        shortfall: None,
        failure: Some(MainFailure { kind: failure.kind, detail: failure.detail.clone(), stderr_tail: None }),
        refused: None,
    })
}
