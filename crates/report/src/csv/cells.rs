//! One row per cell: its figures as medians over rounds with their intervals, and its place.

use std::io::{self, Write};

use pagewise_analysis::judge::label::{data_over_cache, label};
use pagewise_analysis::judge::latency::Latency;
use pagewise_analysis::judge::syncs::Syncs;
use pagewise_analysis::judge::{CellJudgement, MedianInterval};
use pagewise_model::date;

use super::flat::CsvField;
use super::{Described, rows, samples, write_row};
use crate::judged_run::{CellView, JudgedRun};
use crate::words::reasons;

/// Input of a row.
struct Row<'a> {
    index: usize,
    run: &'a JudgedRun<'a>,
    view: &'a CellView<'a>,
}

/// A column: its name, its meaning, and its field.
struct Column(&'static str, &'static str, fn(&Row<'_>) -> CsvField);

const COLUMNS: &[Column] = &[
    Column("run", "Number of the run file on the command line, from 0.", |row| row.index.to_string()),
    Column("question", "The question, or the name of the plan.", |row| row.run.judged.run.question.clone()),
    Column("host", "Name of the machine; empty if it was not kept.", |row| {
        row.run.judged.environment.host_name.clone().unwrap_or_default()
    }),
    Column("started", "Date and time at which the run began, in UTC (RFC 3339).", |row| {
        date::rfc_3339(row.run.judged.environment.started_unix_s)
    }),
    Column("role", "Reason for the cell to be in the run: `measured`, `control` or `ceiling`.", |row| {
        row.view.cell.role.to_string()
    }),
    Column("conditions", "Everything that surrounds the accesses, as above the tables.", |row| {
        label(&row.view.planned.conditions)
    }),
    Column("workload", "Accesses and their order.", |row| row.view.cell.workload.to_string()),
    Column("method", "Access method with its options.", |row| row.view.cell.method.clone()),
    Column("worker", "The worker that performed it.", |row| row.view.cell.worker.clone()),
    Column("threads", "Threads of the worker.", |row| row.view.cell.threads.to_string()),
    Column("file_bytes", "Size of the file.", |row| row.view.cell.file_bytes.0.to_string()),
    Column("span_bytes", "The accessed part of the file.", |row| row.view.cell.span_bytes.0.to_string()),
    Column(
        "cache",
        "State of the page cache at the start: `warm` is the steady state where `span_over_cache` is above 1.",
        |row| row.view.cell.cache.to_string(),
    ),
    Column(
        "span_over_cache",
        "The accessed part of the file over the page cache that fits under the memory limit by the plan, as in `conditions`: the same for all methods; empty without a limit.",
        |row| or_empty(data_over_cache(&row.view.planned.conditions)),
    ),
    Column(
        "status",
        "`ok` with at least one valid sample, `invalid` without, `unavailable` if the machine refused it, `not measured` if the run has not come to it.",
        |row| row.view.cell.status.name().to_string(),
    ),
    Column("reason", "Reason that it has no figures, or that some samples are missing.", |row| {
        row.view.cell.reason.as_ref().map(reasons::of_cell).unwrap_or_default()
    }),
    Column(
        "place",
        "Place in its comparison: `best`, `ahead`, `tie`, `close`, `open`, `behind`, `not ranked`, `not comparable` (no other is ranked), `invalid`, `unavailable` or `not measured`.",
        |row| row.view.place.clone(),
    ),
    Column(
        "ratio",
        "Figure of the leader over that of the method: a trimmed mean of the ratios within rounds; empty for the leader.",
        |row| or_empty(row.view.ratio.map(|ratio| ratio.ratio)),
    ),
    Column(
        "ratio_low",
        "Lower end of the interval of that ratio, or of its range where fewer than five rounds have both.",
        |row| or_empty(row.view.ratio.and_then(|ratio| ratio.low)),
    ),
    Column("ratio_high", "Upper end of it.", |row| or_empty(row.view.ratio.and_then(|ratio| ratio.high))),
    Column("reads_per_second_median", "Reads per second, median over rounds.", |row| {
        median(row.view.cell.reads_per_second)
    }),
    Column("reads_per_second_low", LOW, |row| low(row.view.cell.reads_per_second)),
    Column("reads_per_second_high", HIGH, |row| high(row.view.cell.reads_per_second)),
    Column(
        "ops_per_second_median",
        "Operations or records per second of the measured region, with what the worker's clock left out of it and without the gaps of a replay, median over rounds.",
        |row| median(row.view.cell.ops_per_second),
    ),
    Column("ops_per_second_low", LOW, |row| low(row.view.cell.ops_per_second)),
    Column("ops_per_second_high", HIGH, |row| high(row.view.cell.ops_per_second)),
    Column(
        "bytes_per_second_median",
        "Bytes per second of the measured region, requested or written to the file, median over rounds.",
        |row| median(row.view.cell.bytes_per_second),
    ),
    Column("bytes_per_second_low", LOW, |row| low(row.view.cell.bytes_per_second)),
    Column("bytes_per_second_high", HIGH, |row| high(row.view.cell.bytes_per_second)),
    Column(
        "total_ns_median",
        "Set-up, warm-up, measured region, tear-down and what the clock of the worker leaves out, less the gaps of a replay; median over rounds.",
        |row| median(row.view.cell.total_interval_ns),
    ),
    Column("total_ns_low", LOW, |row| low(row.view.cell.total_interval_ns)),
    Column("total_ns_high", HIGH, |row| high(row.view.cell.total_interval_ns)),
    Column(
        "time_to_warm_ns_median",
        "Time until a cold start had become steady, median over rounds.",
        |row| median(row.view.cell.time_to_warm_ns),
    ),
    Column("setup_ns", "Open, map, advise, populate; median.", |row| or_empty(row.view.cell.setup_ns)),
    Column("measured_ns", "The measured region, less the gaps of a replay; median.", |row| {
        or_empty(row.view.cell.measured_ns)
    }),
    Column("gap_wait_ns", "Time waited in the gaps of a replay, by the worker's clock; median.", |row| {
        or_empty(row.view.cell.gap_wait_ns)
    }),
    Column("teardown_ns", "Sync, unmap, close; median.", |row| or_empty(row.view.cell.teardown_ns)),
    Column(
        "usual_latency_ns_median",
        "At a rate, from the moment at which an operation is due to its end: the mean of the fastest 95 % of a sample that kept the rate, median over rounds.",
        |row| median(row.view.cell.usual_latency_ns),
    ),
    Column("usual_latency_ns_low", LOW, |row| low(row.view.cell.usual_latency_ns)),
    Column("usual_latency_ns_high", HIGH, |row| high(row.view.cell.usual_latency_ns)),
    Column("rate_missed", "At a rate: valid samples that did not keep it.", |row| {
        or_empty(row.view.cell.rate_missed)
    }),
    Column(
        "late_starts",
        "At a rate: operations of all samples that began late although their thread only waited for their moment.",
        |row| or_empty(row.view.cell.late_starts),
    ),
    Column(
        "actor_bytes_per_second",
        "Bytes per second that the actor read or wrote in the measured region; median.",
        |row| or_empty(row.view.cell.actor.map(|actor| actor.bytes_per_second)),
    ),
    Column(
        "actor_from_device",
        "Share of them that came from the device; median; empty for an actor that writes.",
        |row| or_empty(row.view.cell.actor.and_then(|actor| actor.from_device)),
    ),
    Column(
        "left_in_cache",
        "Share of the span that was in the page cache after a sample with an actor; median.",
        |row| or_empty(row.view.cell.actor.and_then(|actor| actor.left_in_cache)),
    ),
    Column(
        "of_alone_median",
        "Beside an actor: the figure by which methods are ranked as a share of the same without it, in pairs of rounds, median.",
        |row| median(row.view.cell.actor.and_then(|actor| actor.of_alone)),
    ),
    Column("of_alone_low", LOW, |row| low(row.view.cell.actor.and_then(|actor| actor.of_alone))),
    Column("of_alone_high", HIGH, |row| high(row.view.cell.actor.and_then(|actor| actor.of_alone))),
    Column("latency_p50_ns", "Half of the operations took at most this long.", |row| {
        latency(row.view.cell, |latency| latency.p50)
    }),
    Column("latency_p99_ns", "99 of 100 operations did.", |row| {
        latency(row.view.cell, |latency| latency.p99)
    }),
    Column("latency_p999_ns", "999 of 1,000 operations did.", |row| {
        latency(row.view.cell, |latency| latency.p999)
    }),
    Column(
        "latency_max_ns",
        "The longest operation or stall; it grows with the number of operations.",
        |row| latency(row.view.cell, |latency| Some(latency.max)),
    ),
    Column("limit", "Resource that limited it.", |row| {
        row.view.cell.limit.bound.map_or_else(CsvField::new, |bound| bound.name().to_string())
    }),
    Column(
        "limit_share",
        "Share of its ceiling that was reached, or of the time that was spent on it.",
        |row| or_empty(row.view.cell.limit.of_ceiling),
    ),
    Column(
        "syncs_per_second_median",
        "Syncs per second of the measured region, median over rounds.",
        |row| median(row.view.cell.syncs.as_ref().and_then(|syncs| syncs.per_second)),
    ),
    Column("sync_p50_ns", "Half of the syncs took at most this long.", |row| syncs(row, |syncs| syncs.p50)),
    Column("sync_p99_ns", "99 of 100 syncs did: from 1,000 syncs on.", |row| syncs(row, |syncs| syncs.p99)),
    Column("sync_max_ns", "The longest sync; it grows with their number.", |row| {
        syncs(row, |syncs| Some(syncs.max))
    }),
    Column("device_read_bytes", "Bytes that the device delivered to the worker; median.", |row| {
        or_empty(row.view.cell.evidence.as_ref().and_then(|seen| seen.device_read_bytes))
    }),
    Column("device_written_bytes", "Bytes that any process wrote to the device; median.", |row| {
        or_empty(row.view.cell.device_written_bytes)
    }),
    Column("folio_bytes", "Size of a folio of a file that is updated in the page cache.", |row| {
        or_empty(row.view.cell.folio_bytes)
    }),
    Column("expected", "Expectations with their verdicts: `p99<10ms=holds sync-p99<5ms=open`.", |row| {
        let verdicts = row.view.cell.expected.iter();
        let texts = verdicts.map(|one| format!("{}={}", one.expectation, one.verdict.name()));
        texts.collect::<Vec<_>>().join(" ")
    }),
    Column("samples", "Rounds with a valid sample.", |row| row.view.cell.samples.to_string()),
    Column("invalid_samples", "Attempts that failed a check.", |row| {
        row.view.cell.invalid_samples.to_string()
    }),
    Column("cell", "Id of the cell, as in the CSV of samples.", |row| row.view.cell.id.clone()),
];

const LOW: &str = "Lower end of an interval that covers this median with at least 95 %.";
const HIGH: &str = "Upper end of that interval.";

fn or_empty(value: Option<impl ToString>) -> CsvField {
    value.map_or_else(CsvField::new, |value| value.to_string())
}

fn median(value: Option<MedianInterval>) -> CsvField {
    or_empty(value.map(|value| value.median))
}

fn low(value: Option<MedianInterval>) -> CsvField {
    or_empty(value.and_then(|value| value.low))
}

fn high(value: Option<MedianInterval>) -> CsvField {
    or_empty(value.and_then(|value| value.high))
}

fn syncs(row: &Row<'_>, pick: fn(&Syncs) -> Option<u64>) -> CsvField {
    or_empty(row.view.cell.syncs.as_ref().and_then(pick))
}

fn latency(cell: &CellJudgement, pick: fn(&Latency) -> Option<u64>) -> CsvField {
    or_empty(cell.latency_ns.as_ref().and_then(pick))
}

/// The columns with their meanings; those of the machine's settings come after them.
pub fn columns() -> impl Iterator<Item = Described> {
    COLUMNS.iter().map(|Column(name, meaning, _)| (*name, *meaning)).chain(samples::AXES.iter().copied())
}

fn names() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|Column(name, ..)| *name).chain(samples::axes())
}

/// The fields of each cell of a run with their names, but for the number of the run.
pub(crate) fn fields(run: &JudgedRun<'_>) -> Vec<Vec<(&'static str, CsvField)>> {
    let cells = run.cells();
    let all =
        cells.iter().map(|view| names().zip(row_fields(&Row { index: 0, run, view })).skip(1).collect());
    all.collect()
}

fn row_fields(row: &Row<'_>) -> Vec<CsvField> {
    let fields = COLUMNS.iter().map(|Column(.., field)| field(row));
    fields.chain(samples::axis_fields(row.view.planned)).collect()
}

/// Cells of runs that are written one after the other, below one header.
pub struct CellRows<W: Write> {
    rows: csv::Writer<W>,
    runs: usize,
}

impl<W: Write> CellRows<W> {
    /// Write the header.
    pub fn begin(out: W) -> io::Result<Self> {
        let mut rows = rows(out);
        write_row(&mut rows, names().map(str::to_string))?;
        Ok(Self { rows, runs: 0 })
    }

    /// Write the cells of the next run.
    pub fn add(&mut self, run: &JudgedRun<'_>) -> io::Result<()> {
        for view in &run.cells() {
            write_row(&mut self.rows, row_fields(&Row { index: self.runs, run, view }))?;
        }
        self.runs += 1;
        Ok(())
    }

    /// Write the rest.
    pub fn end(mut self) -> io::Result<()> {
        self.rows.flush()
    }
}

/// Write the cells of `runs` below one header.
pub fn write(out: &mut dyn Write, runs: &[JudgedRun<'_>]) -> io::Result<()> {
    let mut rows = CellRows::begin(out)?;
    runs.iter().try_for_each(|run| rows.add(run))?;
    rows.end()
}
