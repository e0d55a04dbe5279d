//! Strategies by threads, and what is derived from these tables.

use pagewise_model::{CacheState, Conditions};

use super::facts::{
    Advantage, Data, Fall, FallRow, Lead, Matrix, Row, Scaling, Score, is_direct_channel, not_ranked,
    pread_and_mmap,
};
use super::ratio::PairedRatio;
use super::{sentences, waits};
use crate::judge::cell::{CellJudgement, MedianInterval};
use crate::judge::collected::CellSamples;
use crate::judge::comparison::Comparison;
use crate::judge::label::{Part, data_over_cache, label_without};
use crate::judge::verdict::Verdict;
use pagewise_model::format::multiple;

/// Spans that are this close as multiples of the cache are one size: they are whole MiB of it, and threads take some of it.
const SAME_RATIO: f64 = 0.04;
const PER_MS: f64 = 1e-3;

/// Comparisons that are equal but for the threads, ascending by these.
pub(super) type Group<'a> = Vec<&'a Comparison>;

/// The groups of all reads but cold starts, in the order of the plan.
pub(super) fn groups<'a>(data: &Data<'a>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for comparison in data.comparisons {
        let conditions = &comparison.conditions.conditions;
        if conditions.reads().is_none() || conditions.cache == CacheState::ColdStart {
            continue;
        }
        let joins = |group: &&mut Group<'_>| {
            let first = &group[0].conditions.conditions;
            let has_threads =
                group.iter().any(|other| other.conditions.conditions.threads == conditions.threads);
            !has_threads && are_alike(first, conditions)
        };
        match groups.iter_mut().find(joins) {
            Some(group) => group.push(comparison),
            None => groups.push(vec![comparison]),
        }
    }
    groups
        .iter_mut()
        .for_each(|group| group.sort_by_key(|comparison| comparison.conditions.conditions.threads));
    groups
}

/// Whether conditions are equal but for the threads; the size of the data as a multiple of the cache, where there is a limit.
fn are_alike(left: &Conditions, right: &Conditions) -> bool {
    let same_size = match (data_over_cache(left), data_over_cache(right)) {
        (Some(left), Some(right)) => (left / right - 1.0).abs() <= SAME_RATIO,
        (None, None) => left.span_bytes == right.span_bytes && left.file_bytes == right.file_bytes,
        _ => false,
    };
    let rest = |conditions: &Conditions| Conditions {
        threads: left.threads,
        span_bytes: left.span_bytes,
        file_bytes: left.file_bytes,
        ..conditions.clone()
    };
    same_size && rest(left) == rest(right)
}

/// Methods of the group, in the order in which they first stand in the plan.
fn methods(data: &Data<'_>, group: &Group<'_>) -> Vec<String> {
    let mut methods: Vec<String> = Vec::new();
    for id in group.iter().flat_map(|comparison| &comparison.cells) {
        if let Some(cell) = data.judged(id).filter(|cell| !methods.contains(&cell.method)) {
            methods.push(cell.method.clone());
        }
    }
    methods
}

/// The matrix of a group.
pub(super) fn matrix(data: &Data<'_>, group: &Group<'_>) -> Matrix {
    let first = &group[0].conditions.conditions;
    let methods = methods(data, group);
    let scores = |method: &String| group.iter().map(|comparison| score(data, comparison, method)).collect();
    let without: &[Part] = match data_over_cache(first) {
        Some(_) => &[Part::Threads, Part::Size],
        None => &[Part::Threads],
    };
    let mut matrix = Matrix {
        label: label_without(first, without),
        workload: first.workload(),
        cache: first.cache,
        data_over_cache: data_over_cache(first),
        span_bytes: first.span_bytes,
        memory_limit_bytes: first.surroundings.memory_limit_bytes,
        threads: group.iter().map(|comparison| comparison.conditions.conditions.threads).collect(),
        rows: methods.iter().map(|method| Row { method: method.clone(), scores: scores(method) }).collect(),
        leads: group.iter().map(|comparison| lead(comparison)).collect(),
        advantages: advantages(data, group, &methods),
        scaling: methods.iter().map(|method| scaling(data, group, method)).collect(),
        sentences: Vec::new(),
    };
    matrix.sentences = sentences::of_channels(&matrix, data.cpus);
    matrix
}

fn score(data: &Data<'_>, comparison: &Comparison, method: &str) -> Option<Score> {
    let (samples, cell) = data.cell(comparison, method)?;
    let per_ms = |rate: MedianInterval| MedianInterval {
        median: rate.median * PER_MS,
        low: rate.low.map(|low| low * PER_MS),
        high: rate.high.map(|high| high * PER_MS),
    };
    Some(Score {
        cell: cell.id.clone(),
        threads: cell.threads,
        status: cell.status,
        reason: cell.reason.clone(),
        not_ranked: not_ranked(comparison, cell),
        samples: cell.samples,
        invalid_samples: cell.invalid_samples,
        ops_per_ms: cell.ops_per_second.map(per_ms),
        waits: waits::waits(samples, data.cpus),
    })
}

fn lead(comparison: &Comparison) -> Lead {
    let methods = match comparison.verdict {
        Verdict::Winner => comparison.winner.iter().cloned().collect(),
        Verdict::Tie => comparison.tied.clone(),
        Verdict::NotComparable => Vec::new(),
    };
    Lead {
        threads: comparison.conditions.conditions.threads,
        verdict: comparison.verdict,
        methods,
        reason: comparison.reason.clone(),
    }
}

/// pread against the mapping, and as in the study against the channel with a direct buffer.
fn advantages(data: &Data<'_>, group: &Group<'_>, methods: &[String]) -> Vec<Advantage> {
    let Some((pread, mmap)) = pread_and_mmap(methods) else { return Vec::new() };
    let channel = methods.iter().find(|method| is_direct_channel(method)).cloned();
    let against = |over: String| Advantage {
        method: pread.clone(),
        ratios: group
            .iter()
            .map(|comparison| between(data, (comparison, &pread), (comparison, &over)))
            .collect(),
        over,
    };
    std::iter::once(mmap).chain(channel).map(against).collect()
}

fn scaling(data: &Data<'_>, group: &Group<'_>, method: &str) -> Scaling {
    let (fewest, more) = (group[0], &group[1..]);
    Scaling {
        method: method.to_string(),
        from_threads: fewest.conditions.conditions.threads,
        ratios: more.iter().map(|comparison| between(data, (comparison, method), (fewest, method))).collect(),
    }
}

/// A cell by its comparison and its method.
type Place<'a> = (&'a Comparison, &'a str);

/// The rate of one cell over that of another, paired by round.
fn between(data: &Data<'_>, left: Place<'_>, right: Place<'_>) -> Option<PairedRatio> {
    let rates = |(comparison, method): Place<'_>| {
        let (samples, cell): (&CellSamples<'_>, &CellJudgement) = data.cell(comparison, method)?;
        Some((samples.rates(), cell.threads))
    };
    let ((rates, threads), (others, _)) = (rates(left)?, rates(right)?);
    PairedRatio::of(threads, &rates, &others, data.noise(&[left.0, right.0]))
}

/// The largest size of the data against the smallest, for each pattern and warm-up that has both.
pub(super) fn falls(data: &Data<'_>, groups: &[Group<'_>], matrices: &[Matrix]) -> Vec<Fall> {
    let alike = |left: &Group<'_>, right: &Group<'_>| {
        let (left, right) = (&left[0].conditions.conditions, &right[0].conditions.conditions);
        left.workload() == right.workload()
            && left.cache == right.cache
            && left.surroundings == right.surroundings
    };
    let mut series: Vec<Vec<usize>> = Vec::new();
    for (index, matrix) in matrices.iter().enumerate() {
        if matrix.data_over_cache.is_none() {
            continue;
        }
        match series.iter_mut().find(|series| alike(&groups[series[0]], &groups[index])) {
            Some(series) => series.push(index),
            None => series.push(vec![index]),
        }
    }
    series.iter().filter_map(|series| fall(data, groups, matrices, series)).collect()
}

fn fall(data: &Data<'_>, groups: &[Group<'_>], matrices: &[Matrix], series: &[usize]) -> Option<Fall> {
    let of = |index: &usize| matrices[*index].data_over_cache.unwrap_or(0.0);
    let smallest = *series.iter().min_by(|left, right| of(left).total_cmp(&of(right)))?;
    let largest = *series.iter().max_by(|left, right| of(left).total_cmp(&of(right)))?;
    if smallest == largest {
        return None;
    }
    let at = |index: usize, threads: u32| {
        groups[index].iter().copied().find(|other| other.conditions.conditions.threads == threads)
    };
    let common: Vec<(&Comparison, &Comparison)> = groups[largest]
        .iter()
        .filter_map(|large| Some((*large, at(smallest, large.conditions.conditions.threads)?)))
        .collect();
    let matrix = &matrices[largest];
    let ratios = |method: &str| {
        common.iter().map(|(large, small)| between(data, (large, method), (small, method))).collect()
    };
    let (from, to) = (of(&smallest), of(&largest));
    let warm_up = match matrix.cache {
        // Of the larger ones it is as warm as it gets.
        CacheState::Warm => "warm or settled".to_string(),
        cache => cache.to_string(),
    };
    Some(Fall {
        label: format!(
            "{}, {warm_up}: data {} of the cache against {}",
            matrix.workload,
            multiple(to),
            multiple(from)
        ),
        workload: matrix.workload,
        cache: matrix.cache,
        from,
        to,
        threads: common.iter().map(|(large, _)| large.conditions.conditions.threads).collect(),
        rows: matrix
            .rows
            .iter()
            .map(|row| FallRow { method: row.method.clone(), ratios: ratios(&row.method) })
            .collect(),
    })
}
