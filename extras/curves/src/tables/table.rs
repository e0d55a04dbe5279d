//! Methods by column, and the figures derived from these tables.

use pagewise_model::groups::distinct;
use pagewise_model::planned_table::{TableColumn, TableColumns};
use pagewise_model::{CacheState, Conditions};

use super::facts::{Data, Fall, Fastest, MethodRow, MethodTable, Ratios, Score, not_ranked};
use super::ratio::PairedRatio;
use super::waits;
use pagewise_analysis::judge::Comparison;
use pagewise_analysis::judge::label::{LabelPart, data_over_cache, label_without};

/// Spans whose multiples of the cache differ by at most this are one size: they are whole MiB, and
/// threads take some of the cache.
const SAME_RATIO: f64 = 0.04;
const PER_MS: f64 = 1e-3;

/// Comparisons that differ only in their column, ascending by it.
pub(super) type TableGroup<'a> = Vec<&'a Comparison>;

/// The groups of all reads except cold starts, in the order of the plan.
pub(super) fn groups<'a>(data: &Data<'a>) -> Vec<TableGroup<'a>> {
    let mut groups: Vec<TableGroup<'a>> = Vec::new();
    for comparison in data.comparisons {
        let conditions = &comparison.conditions.conditions;
        if conditions.reads().is_none() || conditions.cache == CacheState::ColdStart {
            continue;
        }
        let joins = |group: &&mut TableGroup<'_>| {
            let own = column(data, comparison).position();
            group.iter().all(|other| column(data, other).position() != own)
                && are_alike(data.planned.columns, &group[0].conditions.conditions, conditions)
        };
        match groups.iter_mut().find(joins) {
            Some(group) => group.push(comparison),
            None => groups.push(vec![comparison]),
        }
    }
    let position = |comparison: &Comparison| column(data, comparison).position();
    groups
        .iter_mut()
        .for_each(|group| group.sort_by(|left, right| position(left).total_cmp(&position(right))));
    groups
}

/// The column of a comparison.
pub(super) fn column(data: &Data<'_>, comparison: &Comparison) -> TableColumn {
    let conditions = &comparison.conditions.conditions;
    match data.planned.columns {
        TableColumns::Threads => TableColumn::Threads(conditions.threads),
        TableColumns::Data => size_of(conditions),
    }
}

/// The size of the data, as a multiple of the cache if a limit leaves one.
pub(super) fn size_of(conditions: &Conditions) -> TableColumn {
    data_over_cache(conditions).map_or(TableColumn::Bytes(conditions.span_bytes), TableColumn::OfCache)
}

/// True if conditions differ only in the column. By threads, the data must be of one size, as a
/// multiple of the cache if there is a limit.
fn are_alike(columns: TableColumns, left: &Conditions, right: &Conditions) -> bool {
    let same_size = match (data_over_cache(left), data_over_cache(right)) {
        _ if columns == TableColumns::Data => left.threads == right.threads,
        (Some(left), Some(right)) => (left / right - 1.0).abs() <= SAME_RATIO,
        (None, None) => left.span_bytes == right.span_bytes && left.file_bytes == right.file_bytes,
        _ => false,
    };
    let rest = |conditions: &Conditions| Conditions {
        threads: left.threads,
        thread_per_cpu: left.thread_per_cpu,
        span_bytes: left.span_bytes,
        file_bytes: left.file_bytes,
        ..conditions.clone()
    };
    same_size && rest(left) == rest(right)
}

/// Methods of the group, in the order of the plan.
fn methods(data: &Data<'_>, group: &TableGroup<'_>) -> Vec<String> {
    let cells = group.iter().flat_map(|comparison| &comparison.cells);
    distinct(cells.filter_map(|id| Some(data.judged(id)?.method.clone())))
}

/// The table of a group.
pub(super) fn table(data: &Data<'_>, group: &TableGroup<'_>) -> MethodTable {
    let first = &group[0].conditions.conditions;
    let methods = methods(data, group);
    let scores = |method: &String| group.iter().map(|comparison| score(data, comparison, method)).collect();
    let without: &[LabelPart] = match (data.planned.columns, data_over_cache(first)) {
        (TableColumns::Data, _) => &[LabelPart::Size, LabelPart::Data],
        (TableColumns::Threads, Some(_)) => &[LabelPart::Threads, LabelPart::Size],
        (TableColumns::Threads, None) => &[LabelPart::Threads],
    };
    MethodTable {
        label: label_without(first, without),
        conditions: first.clone(),
        workload: first.workload(),
        reads_per_op: first.reads_per_op(),
        cache: first.cache,
        data_over_cache: data_over_cache(first),
        span_bytes: first.span_bytes,
        memory_limit_bytes: first.host_settings.memory_limit_bytes,
        columns: group.iter().map(|comparison| column(data, comparison)).collect(),
        rows: methods
            .iter()
            .map(|method| MethodRow {
                method: method.clone(),
                explained: data.planned.explains(method),
                scores: scores(method),
            })
            .collect(),
        fastest: group.iter().map(|comparison| fastest(data, comparison)).collect(),
        advantages: advantages(data, group, &methods),
        scaling: methods.iter().map(|method| scaling(data, group, method)).collect(),
    }
}

fn score(data: &Data<'_>, comparison: &Comparison, method: &str) -> Option<Score> {
    let (samples, cell) = data.cell(comparison, method)?;
    Some(Score {
        cell: cell.id.clone(),
        column: column(data, comparison),
        status: cell.status,
        reason: cell.reason.clone(),
        not_ranked: not_ranked(comparison, cell),
        samples: cell.samples,
        invalid_samples: cell.invalid_samples,
        ops_per_ms: cell.ops_per_second.map(|rate| rate.times(PER_MS)),
        waits: waits::waits(samples, data.cpus),
    })
}

fn fastest(data: &Data<'_>, comparison: &Comparison) -> Fastest {
    let methods = comparison.staying().into_iter().map(String::from).collect();
    Fastest {
        column: column(data, comparison),
        verdict: comparison.verdict,
        methods,
        reason: comparison.reason.clone(),
    }
}

/// The baseline compared with the methods that the plan names.
fn advantages(data: &Data<'_>, group: &TableGroup<'_>, methods: &[String]) -> Vec<Ratios> {
    let Some((baseline, against)) = data.planned.pairs(methods) else { return Vec::new() };
    let over = |other: &str| Ratios {
        method: baseline.to_string(),
        over: Some(other.to_string()),
        ratios: group
            .iter()
            .map(|comparison| between(data, (comparison, baseline), (comparison, other)))
            .collect(),
    };
    against.into_iter().map(over).collect()
}

fn scaling(data: &Data<'_>, group: &TableGroup<'_>, method: &str) -> Ratios {
    let (first, later) = (group[0], &group[1..]);
    Ratios {
        method: method.to_string(),
        over: None,
        ratios: later.iter().map(|comparison| between(data, (comparison, method), (first, method))).collect(),
    }
}

/// A cell by its comparison and its method.
type CellIndex<'a> = (&'a Comparison, &'a str);

/// The rate of one cell over that of another, paired by round.
fn between(data: &Data<'_>, left: CellIndex<'_>, right: CellIndex<'_>) -> Option<PairedRatio> {
    let rates = |(comparison, method): CellIndex<'_>| Some(data.cell(comparison, method)?.0.rates());
    PairedRatio::of(&rates(left)?, &rates(right)?, left.0.inflation)
}

/// The largest size of the data compared with the smallest, for each pattern and warm-up that has
/// both.
pub(super) fn falls(data: &Data<'_>, groups: &[TableGroup<'_>], tables: &[MethodTable]) -> Vec<Fall> {
    if data.planned.columns == TableColumns::Data {
        return Vec::new();
    }
    let alike = |left: &TableGroup<'_>, right: &TableGroup<'_>| {
        let (left, right) = (&left[0].conditions.conditions, &right[0].conditions.conditions);
        left.workload() == right.workload()
            && left.cache == right.cache
            && left.host_settings == right.host_settings
    };
    let mut series: Vec<Vec<usize>> = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        if table.data_over_cache.is_none() {
            continue;
        }
        match series.iter_mut().find(|series| alike(&groups[series[0]], &groups[index])) {
            Some(series) => series.push(index),
            None => series.push(vec![index]),
        }
    }
    series.iter().filter_map(|series| fall(data, groups, tables, series)).collect()
}

fn fall(
    data: &Data<'_>,
    groups: &[TableGroup<'_>],
    tables: &[MethodTable],
    series: &[usize],
) -> Option<Fall> {
    let of = |index: &usize| tables[*index].data_over_cache.unwrap_or(0.0);
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
    let table = &tables[largest];
    let ratios = |method: &str| {
        common.iter().map(|(large, small)| between(data, (large, method), (small, method))).collect()
    };
    let (from, to) = (of(&smallest), of(&largest));
    Some(Fall {
        workload: table.workload,
        cache: table.cache,
        from,
        to,
        columns: common.iter().map(|(large, _)| column(data, large)).collect(),
        rows: table
            .rows
            .iter()
            .map(|row| Ratios { method: row.method.clone(), over: None, ratios: ratios(&row.method) })
            .collect(),
    })
}
