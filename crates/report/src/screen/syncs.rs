//! Duration of the syncs of an append or fill, by the method that is advised.

use pagewise_analysis::judge::CellJudgement;
use pagewise_analysis::judge::syncs::Syncs;
use pagewise_model::format::{MISSING, bytes, grouped, rate, time};
use pagewise_model::{Access, CacheState, FOLIO_BYTES, Method};

use super::situation::{AMPLIFIED, Situation};
use crate::document::Block;
use crate::text_table::{TextCell, TextColumn, TextTable};
use crate::words;

/// Comparisons that are named; the tables have all.
const MOST: usize = 4;
/// Comparisons that are named where there is one method, and conditions are what differs.
const MOST_OF_ONE: usize = 12;

/// A line for each situation with syncs within the measured region: the call, and how often and how
/// long it was made.
pub(super) fn blocks(situations: &[Situation<'_>]) -> Vec<Block> {
    if let Some(table) = of_one_method(situations) {
        return table;
    }
    // One situation needs no name.
    let is_alone = situations.len() == 1;
    let of = |one: &Situation<'_>| {
        let phrase = of_advised(one)?;
        Some(if is_alone { phrase } else { format!("{}: {phrase}", one.name) })
    };
    let phrases: Vec<String> = situations.iter().filter_map(of).collect();
    let folios = folios(situations);
    if phrases.is_empty() && folios.is_none() {
        return Vec::new();
    }
    let most = if situations.iter().all(is_alone_with_syncs) { MOST_OF_ONE } else { MOST };
    let more = words::in_tables(phrases.len().saturating_sub(most)).map(Block::remark);
    let shown = phrases.into_iter().take(most).chain(folios).map(Block::paragraph);
    let mut blocks: Vec<Block> = std::iter::once(Block::heading(3, "Syncs")).chain(shown).collect();
    blocks.extend(more);
    blocks
}

/// The calls and threads of a run with one method as a table; `None` of any other run.
fn of_one_method(situations: &[Situation<'_>]) -> Option<Vec<Block>> {
    if situations.len() < 2 || !situations.iter().all(is_alone_with_syncs) {
        return None;
    }
    let rows: Vec<(&str, &CellJudgement, &Syncs)> = situations
        .iter()
        .filter_map(|one| {
            let cell = one.judged.cells.iter().find(|cell| one.comparison.cells.contains(&cell.id))?;
            Some((one.name.as_str(), cell, cell.syncs.as_ref()?))
        })
        .collect();
    let (_, first, syncs) = *rows.first()?;
    // At a rate there is a latency beside the syncs, which a sentence has.
    if rows.iter().any(|(_, cell, _)| cell.method != first.method || cell.usual_latency_ns.is_some()) {
        return None;
    }
    let is_one_call = rows.iter().all(|(_, _, other)| other.call == syncs.call);
    let by = if is_one_call { format!(" by {}", call(syncs)) } else { String::new() };
    let heading = format!("Syncs of {}{by}", first.method);
    let access = format!("{}s/s", first.workload.facts().access);
    let spare =
        |heading: &str, spare| TextColumn { heading: heading.to_string(), spare, is_kept_below: false };
    let mut columns: Vec<TextColumn> = vec!["conditions".into(), access.into()];
    columns.extend(["syncs/s", "bytes/sync", "p50", "p99"].map(TextColumn::from));
    columns.extend((!is_one_call).then(|| "call".into()));
    columns.extend([spare("longest of", 1), spare("device bytes for each", 2)]);
    let row = |(name, cell, syncs): (&str, &CellJudgement, &Syncs)| {
        // All are of one workload, which their names begin with.
        let name = name.split_once(", ").map_or(name, |(_, own)| own);
        let number = |value: Option<f64>, text: fn(f64) -> String| TextCell::number(value, text);
        let mut row = vec![name.into(), number(cell.ops_per_second.map(|records| records.median), rate)];
        row.extend([
            number(syncs.per_second.map(|syncs| syncs.median), rate),
            number(syncs.bytes_per_sync.map(|bytes| bytes.median), bytes),
            TextCell::number(syncs.p50, time),
            TextCell::number(syncs.p99, time),
        ]);
        row.extend((!is_one_call).then(|| call(syncs).into()));
        row.extend([
            TextCell::of(format!("{} of {}", time(syncs.max), grouped(syncs.count)), syncs.max as f64),
            number(syncs.device_bytes_per_byte, rate),
        ]);
        row
    };
    let more = words::in_tables(rows.len().saturating_sub(MOST_OF_ONE)).map(Block::remark);
    let rows = rows.into_iter().take(MOST_OF_ONE).map(row).collect();
    let table = Block::Table(TextTable { columns, rows }, heading.clone());
    Some([Block::heading(3, heading), table].into_iter().chain(more).collect())
}

/// The call, and what it does not promise.
fn call(syncs: &Syncs) -> String {
    format!("{}{}", syncs.call, if syncs.is_durable { "" } else { " (not durable)" })
}

/// The mapped method whose device writes most for a byte, in files that were read or written
/// before, whose folios are large.
fn folios(situations: &[Situation<'_>]) -> Option<String> {
    let warm = situations.iter().filter(|one| one.comparison.conditions.conditions.cache == CacheState::Warm);
    let cells =
        warm.flat_map(|one| one.judged.cells.iter().filter(|cell| one.comparison.cells.contains(&cell.id)));
    let is_mapped = |cell: &CellJudgement| {
        cell.method.parse().is_ok_and(|method: Method| method.access() == Access::Mmap)
    };
    let amplified = cells.filter(|cell| is_mapped(cell)).filter_map(|cell| {
        let times = cell.syncs.as_ref()?.device_bytes_per_byte.filter(|times| *times >= AMPLIFIED)?;
        Some((cell, times))
    });
    let (cell, times) = amplified.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let folios = match cell.folio_bytes {
        Some(size) => format!("those of this file have {}", bytes(size)),
        None => {
            format!("folios of a file that was read or written before are up to {} large", bytes(FOLIO_BYTES))
        }
    };
    Some(format!(
        "{}: the device writes {} bytes for each byte: a store makes a whole folio dirty, and {folios}",
        cell.method,
        rate(times),
    ))
}

/// True of a situation with one method, whose syncs are what it is about: there is nothing to
/// choose.
pub(super) fn is_alone_with_syncs(situation: &Situation<'_>) -> bool {
    let [only] = &situation.comparison.cells[..] else { return false };
    situation.judged.cells.iter().any(|cell| cell.id == *only && cell.syncs.is_some())
}

fn of_advised(situation: &Situation<'_>) -> Option<String> {
    let Situation { judged, advice, comparison, .. } = situation;
    let method = advice.recommended.as_ref().or(comparison.leader.as_ref());
    let is_chosen = |cell: &CellJudgement| method.is_none_or(|method| cell.method == *method);
    if method.is_none() && !is_alone_with_syncs(situation) {
        return None;
    }
    let is_it = |cell: &&CellJudgement| comparison.cells.contains(&cell.id) && is_chosen(cell);
    text(judged.cells.iter().find(is_it)?)
}

/// `pwrite: 48k records/s; fdatasync 1.2k/s of 8 KiB each, p50 0.8 ms, p99 1.2 ms, longest 4 ms of 9,000`.
fn text(cell: &CellJudgement) -> Option<String> {
    let syncs = cell.syncs.as_ref()?;
    let quantile = |name: &str, ns: Option<u64>| ns.map(|ns| format!(", {name} {}", time(ns)));
    let quantiles = [quantile("p50", syncs.p50), quantile("p99", syncs.p99)];
    let amplified = syncs.device_bytes_per_byte.filter(|times| *times >= AMPLIFIED);
    let at_rate = cell.usual_latency_ns.map(|usual| {
        let p99 = quantile("p99", cell.latency_ns.as_ref().and_then(|latency| latency.p99));
        format!(", mean latency of the fastest 95 % {}{}", time(usual.median), p99.unwrap_or_default())
    });
    Some(format!(
        "{}: {} {}s/s{}; {} {}/s of {} each{}, longest {} of {}{}",
        cell.method,
        cell.ops_per_second.map_or_else(|| MISSING.to_string(), |records| rate(records.median)),
        cell.workload.facts().access,
        at_rate.unwrap_or_default(),
        call(syncs),
        rate(syncs.per_second?.median),
        bytes(syncs.bytes_per_sync?.median),
        quantiles.into_iter().flatten().collect::<String>(),
        time(syncs.max),
        grouped(syncs.count),
        amplified.map_or_else(String::new, |times| format!(
            "; the device writes {} bytes for each byte",
            rate(times)
        )),
    ))
}
