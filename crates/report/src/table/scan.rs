//! The columns of a scan, the mapping as the kernel shows it, and differences between mapped
//! methods and the stream.

use std::io::{self, Write};

use pagewise_analysis::judge::{CellJudgement, EvidenceMedians};
use pagewise_model::{Access, Worker};

use super::columns::{METHOD, PLACE, VS_BEST, limit, stalls};
use super::grid::{Column, ComparisonView, drawn, or_missing};
use super::one_shot::{faults, in_units, seen};
use crate::paragraph::{paragraph, write_lines};
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
    Column::numbers("total s", 0, |_, cell| in_units(cell.total_ns, SECOND_NS)),
    VS_BEST,
    Column::numbers("MiB/s", 6, |_, cell| or_missing(file_per_second(cell), mebibytes)),
    Column::numbers("block-in MiB/s", 7, |_, cell| or_missing(device_per_second(cell), mebibytes)),
    Column::numbers("of device", 5, |_, cell| or_missing(cell.of_device_bandwidth, percent))
        .only(|view| view.cells.iter().any(|cell| cell.of_device_bandwidth.is_some())),
    Column::numbers("user s", 3, |_, cell| seen(cell, |seen| seen.user_ns, ticks)),
    Column::numbers("system s", 2, |_, cell| seen(cell, |seen| seen.system_ns, ticks)),
    Column::numbers("wait s", 1, |_, cell| or_missing(wait_seconds(cell), |wait| format!("{wait:.2}"))),
    Column::numbers("set-up", 9, |_, cell| or_missing(cell.prepared_ns(), time)),
    Column::numbers("faults", 8, |_, cell| seen(cell, faults, grouped)),
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

/// Write the lines below the table: the mapping, what the figures leave out, and the differences.
pub(super) fn write_below(out: &mut dyn Write, view: &ComparisonView<'_>, width: usize) -> io::Result<()> {
    let lines = view.cells.iter().find_map(|cell| cell.lines);
    let lines = lines.map(|lines| format!("{} counted", counted(lines, "line")));
    for line in lines.into_iter().chain(mapping(view)).chain(without_set_up(view)) {
        paragraph(out, "  ", &line, width)?;
    }
    let is_known = |cell: &&CellJudgement| is_mapped(cell) && cell.total_interval_ns.is_some();
    let mapped: Vec<&CellJudgement> = view.cells.iter().copied().filter(is_known).collect();
    match best_stream(view) {
        Some(stream) if !mapped.is_empty() => write_differences(out, &mapped, stream, width),
        _ => Ok(()),
    }
}

/// Write the difference of each mapped method from the stream; columns that do not fit are left out
/// from the right.
fn write_differences(
    out: &mut dyn Write,
    mapped: &[&CellJudgement],
    stream: &CellJudgement,
    width: usize,
) -> io::Result<()> {
    let title = format!("less {}", stream.method);
    let names = [title.as_str(), "total s", "%", "user s", "system s", "wait s", "block-in MiB/s"];
    let rows: Vec<Vec<String>> = mapped.iter().map(|cell| differences(cell, stream)).collect();
    let first = |count: usize| {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row[..count].to_vec()).collect();
        drawn(&names[..count], &rows, |index| index == 0)
    };
    let fits = |table: &String| table.lines().all(|line| line.trim_end().chars().count() <= width);
    let table = (2..=names.len()).rev().map(first).find(fits).unwrap_or_else(|| first(2));
    write_lines(out, &table)
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
fn differences(mapped: &CellJudgement, stream: &CellJudgement) -> Vec<String> {
    let both = |figure: &dyn Fn(&CellJudgement) -> Option<f64>| Some((figure(mapped)?, figure(stream)?));
    let less = |figure: &dyn Fn(&CellJudgement) -> Option<f64>| {
        or_missing(both(figure), |(mapped, stream)| difference(mapped - stream))
    };
    let total = |cell: &CellJudgement| Some(cell.total_interval_ns?.median / SECOND_NS);
    let share = both(&total).filter(|(_, stream)| *stream > 0.0);
    vec![
        mapped.method.clone(),
        less(&total),
        or_missing(share, |(mapped, stream)| format!("{:+.1}", 100.0 * (mapped - stream) / stream)),
        ticks_less(mapped, stream, |seen| seen.user_ns),
        ticks_less(mapped, stream, |seen| seen.system_ns),
        or_missing(both(&wait_seconds), |(mapped, stream)| hundredths(mapped - stream)),
        or_missing(both(&device_per_second), |(mapped, stream)| {
            difference((mapped - stream) / f64::from(1 << 20))
        }),
    ]
}

/// A difference of times that were counted in ticks; withheld if it is within a few ticks.
pub(super) fn ticks_less(
    mapped: &CellJudgement,
    stream: &CellJudgement,
    figure: fn(&EvidenceMedians) -> Option<u64>,
) -> String {
    let of = |cell: &CellJudgement| cell.evidence.as_ref().and_then(figure);
    or_missing(of(mapped).zip(of(stream)), |(mapped, stream)| match mapped.abs_diff(stream) {
        0..FEW_TICKS_NS => LITTLE.to_string(),
        _ => hundredths((mapped as f64 - stream as f64) / SECOND_NS),
    })
}

fn hundredths(seconds: f64) -> String {
    if seconds.abs() < 0.005 { "0.00".to_string() } else { format!("{seconds:+.2}") }
}
