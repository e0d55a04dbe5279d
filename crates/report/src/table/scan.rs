//! The columns of a scan, the mapping as the kernel shows it, and differences between mapped
//! methods and the stream.

use pagewise_analysis::judge::{CellJudgement, EvidenceMedians};
use pagewise_model::{Access, Worker};

use super::columns::{INTERVAL, METHOD, PLACE, VS_BEST, limit, stalls};
use super::grid::{Column, ComparisonView};
use super::one_shot::{faults, in_units, seen};
use crate::document::Block;
use crate::text_table::{TextCell, TextColumn, TextTable};
use pagewise_model::format::{bytes, counted, difference, grouped, listed, mebibytes, percent, time};

const SECOND_NS: f64 = 1e9;
/// The kernel counts user and system time in ticks of 10 ms; fewer than three show only that it was
/// little.
const FEW_TICKS_NS: u64 = 30_000_000;
const LITTLE: &str = "<0.03";

/// All columns.
pub(super) const COLUMNS: &[Column] = &[
    METHOD,
    PLACE,
    Column::of("total s", 0, |_, cell| in_units(cell.total_ns, SECOND_NS)),
    INTERVAL,
    VS_BEST,
    Column::of("MiB/s", 6, |_, cell| TextCell::number(file_per_second(cell), mebibytes)),
    Column::of("block-in MiB/s", 7, |_, cell| TextCell::number(device_per_second(cell), mebibytes)),
    Column::of("of device", 5, |_, cell| TextCell::number(cell.of_device_bandwidth, percent))
        .only(|view| view.cells.iter().any(|cell| cell.of_device_bandwidth.is_some())),
    Column::of("user s", 3, |_, cell| seen(cell, |seen| seen.user_ns, ticks)),
    Column::of("system s", 2, |_, cell| seen(cell, |seen| seen.system_ns, ticks)),
    Column::of("wait s", 1, |_, cell| TextCell::number(wait_seconds(cell), |wait| format!("{wait:.2}"))),
    Column::of("set-up", 9, |_, cell| TextCell::number(cell.prepared_ns(), time)),
    Column::of("faults", 8, |_, cell| seen(cell, faults, grouped)),
    stalls(1),
    limit(10),
];

/// The whole file over the total, so that set-up cannot hide reads.
fn file_per_second(cell: &CellJudgement) -> Option<f64> {
    let total = cell.total_interval_ns?.median;
    let is_whole = cell.covered.is_none_or(|share| share >= 1.0);
    (is_whole && total > 0.0).then(|| cell.span_bytes.0 as f64 * SECOND_NS / total)
}

/// Device bytes over the measured region.
fn device_per_second(cell: &CellJudgement) -> Option<f64> {
    let read = cell.evidence.as_ref()?.device_read_bytes?;
    let measured = cell.measured_ns.filter(|measured| *measured > 0)?;
    Some(read as f64 * SECOND_NS / measured as f64)
}

/// Time of the measured region in which the thread did not run.
pub(super) fn wait_seconds(cell: &CellJudgement) -> Option<f64> {
    let cpu = cpu_ns(cell.evidence.as_ref()?)?;
    Some(cell.measured_ns?.saturating_sub(cpu) as f64 / SECOND_NS)
}

fn cpu_ns(seen: &EvidenceMedians) -> Option<u64> {
    seen.cpu_ns.or_else(|| Some(seen.user_ns?.saturating_add(seen.system_ns?)))
}

/// A time that was counted in ticks.
pub(super) fn ticks(nanoseconds: u64) -> String {
    if nanoseconds < FEW_TICKS_NS {
        return LITTLE.to_string();
    }
    format!("{:.2}", nanoseconds as f64 / SECOND_NS)
}

/// Notes below the table: the lines that were counted, the mapping, and what the figures leave out.
pub(super) fn notes(view: &ComparisonView<'_>) -> impl Iterator<Item = String> {
    let lines = view.cells.iter().find_map(|cell| cell.lines);
    let lines = lines.map(|lines| format!("{} counted", counted(lines, "line")));
    lines.into_iter().chain(mapping(view)).chain(without_set_up(view))
}

/// The difference of each mapped method from the stream; columns that do not fit are left out from
/// the right.
pub(super) fn differences(view: &ComparisonView<'_>) -> Option<Block> {
    let is_known = |cell: &&CellJudgement| is_mapped(cell) && cell.total_interval_ns.is_some();
    let mapped: Vec<&CellJudgement> = view.cells.iter().copied().filter(is_known).collect();
    let stream = best_stream(view).filter(|_| !mapped.is_empty())?;
    let title = format!("less {}", stream.method);
    let names = [title.as_str(), "total s", "%", "user s", "system s", "wait s", "block-in MiB/s"];
    let column = |(index, name): (usize, &&str)| TextColumn {
        heading: (*name).to_string(),
        spare: u32::from(index > 1),
        ..TextColumn::default()
    };
    let table = TextTable {
        columns: names.iter().enumerate().map(column).collect(),
        rows: mapped.iter().map(|cell| difference_from(cell, stream)).collect(),
    };
    Some(Block::Table(table, format!("Mapped methods {title}")))
}

/// Counters are read around the pass, so those of a significant set-up are not included.
fn without_set_up(view: &ComparisonView<'_>) -> Option<String> {
    let long = view.cells.iter().filter(|cell| is_long_in_set_up(cell));
    let methods: Vec<String> = long.map(|cell| cell.method.clone()).collect();
    (!methods.is_empty()).then(|| {
        format!(
            "user, system, wait, block-in and faults are those of the pass, without the set-up of {}",
            listed(&methods)
        )
    })
}

/// True if a significant part of the total passed before the pass.
fn is_long_in_set_up(cell: &CellJudgement) -> bool {
    cell.prepared_ns().zip(cell.total_ns).is_some_and(|(setup, total)| setup > total / 20)
}

fn is_mapped(cell: &CellJudgement) -> bool {
    cell.moves == Access::Mmap
}

/// The mapping of the first method that has one: its rights and its size.
fn mapping(view: &ComparisonView<'_>) -> Option<String> {
    view.cells.iter().filter(|cell| is_mapped(cell)).find_map(|cell| {
        let line = cell.evidence.as_ref()?.mapping_line.as_deref()?;
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let rights = words.next()?;
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        let size = address(to)?.checked_sub(address(from)?)?;
        let (exact, short) = (grouped(size), bytes(size as f64));
        Some(format!("mapping of {} in /proc/PID/maps: {rights}, {short} ({exact} B)", cell.method))
    })
}

/// The fastest read(2) through the page cache.
fn best_stream<'a>(view: &ComparisonView<'a>) -> Option<&'a CellJudgement> {
    let streams = view
        .cells
        .iter()
        .copied()
        .filter(|cell| cell.moves == Access::Read && cell.worker == Worker::Native.name())
        .filter(|cell| !cell.options.contains_key("direct"));
    let known = streams.filter_map(|cell| Some((cell.total_interval_ns?.median, cell)));
    known.min_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, cell)| cell)
}

/// Differences of a mapped method from the stream, by their medians over rounds.
fn difference_from(mapped: &CellJudgement, stream: &CellJudgement) -> Vec<TextCell> {
    let both = |figure: &dyn Fn(&CellJudgement) -> Option<f64>| Some((figure(mapped)?, figure(stream)?));
    let less = |figure: &dyn Fn(&CellJudgement) -> Option<f64>| {
        TextCell::number(both(figure).map(|(mapped, stream)| mapped - stream), difference)
    };
    let total = |cell: &CellJudgement| Some(cell.total_interval_ns?.median / SECOND_NS);
    let share = both(&total).filter(|(_, stream)| *stream > 0.0);
    vec![
        mapped.method.as_str().into(),
        less(&total),
        TextCell::number(share.map(|(mapped, stream)| 100.0 * (mapped - stream) / stream), |share| {
            format!("{share:+.1}")
        }),
        ticks_less(mapped, stream, |seen| seen.user_ns),
        ticks_less(mapped, stream, |seen| seen.system_ns),
        TextCell::number(both(&wait_seconds).map(|(mapped, stream)| mapped - stream), hundredths),
        TextCell::number(
            both(&device_per_second).map(|(mapped, stream)| (mapped - stream) / f64::from(1 << 20)),
            difference,
        ),
    ]
}

/// A difference of times that were counted in ticks; withheld if it is within a few ticks.
pub(super) fn ticks_less(
    mapped: &CellJudgement,
    stream: &CellJudgement,
    figure: fn(&EvidenceMedians) -> Option<u64>,
) -> TextCell {
    let of = |cell: &CellJudgement| cell.evidence.as_ref().and_then(figure);
    let less = of(mapped).zip(of(stream)).map(|(mapped, stream)| mapped as f64 - stream as f64);
    TextCell::number(less, |less| match less.abs() < FEW_TICKS_NS as f64 {
        true => LITTLE.to_string(),
        false => hundredths(less / SECOND_NS),
    })
}

fn hundredths(seconds: f64) -> String {
    if seconds.abs() < 0.005 { "0.00".to_string() } else { format!("{seconds:+.2}") }
}
