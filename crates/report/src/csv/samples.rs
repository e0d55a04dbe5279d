//! One row per sample, every attempt of it, valid or not. The table and the JSON show medians of
//! these values.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use pagewise_analysis::judge::Lateness;
use pagewise_analysis::judge::reasons::Withheld;
use pagewise_analysis::proof;
use pagewise_model::run::Run;
use pagewise_model::sample::{Measurement, OutsideActivity, Placement, Written};
use pagewise_model::{
    ActorEvidence, ActorWindow, ActorWrites, Bytes, Cell, CheckContext, Delays, Evidence, GroupCounters,
    Heartbeat, HostSettings, Outcome, RateWindow, Sample, SettingsInForce, ThreadCounters, Work,
    WorkerWarmup,
};

use super::flat::{Columns, CsvField, UNKNOWN};
use super::{Described, rows, write_row};

/// Columns of the cell. Those of its other axes come after them.
pub const CONDITIONS: &[Described] = &[
    ("run", "Number of the run file on the command line, from 0."),
    ("seed", "Seed of everything drawn at random."),
    ("cell", "Id of the cell."),
    ("role", "Reason for the cell to be in the run: `measured`, `control` or `ceiling`."),
    ("workload", "Accesses and their order."),
    ("method", "Access method with its options."),
    ("worker", "The worker that performed it."),
    ("worker_version", "Version of a worker other than pagewise itself."),
    ("threads", "Threads of the worker."),
    ("file_bytes", "Size of the file."),
    ("span_bytes", "The accessed part of the file."),
    ("cache", "State of the page cache at the start."),
];

/// Columns of the other axes of a plan. Those of the machine's settings come after them.
pub const AXES: &[Described] = &[
    ("descriptor", "Ownership of the open file: `shared` or `per-thread`."),
    ("read_bytes", "Size of one read."),
    ("reads_per_op", "Reads in one operation."),
    ("align_bytes", "Offsets are multiples of this."),
    ("skew", "Distribution of offsets."),
    ("dependent", "True if offsets follow from the data before them."),
    ("consume", "Consumption of the bytes that are read."),
    ("record_bytes", "Size of a record of an append."),
    ("block_bytes", "Size of a block of a fill or an update."),
    ("updates", "Blocks that an update overwrites."),
    ("reads_per_update", "Other blocks that are read before each of them."),
    (
        "rate",
        "Reads, records or updates per second at which operations are due; empty: each as soon as the one before it is done.",
    ),
    (
        "as_fast_as_possible",
        "True if a replay leaves out the gaps between its reads, false if it keeps them.",
    ),
    ("passes", "Passes over the ring of an append."),
    ("sync", "Time by which written bytes must be on the device."),
    ("sync_call", "The call that puts them there."),
    ("content", "Content of a file that is read."),
    ("beside", "The actor that was at work meanwhile; empty: none."),
];

/// Columns of the outcome.
pub const OUTCOME: &[Described] = &[
    (
        "round",
        "The round, from 0. Return rounds have the numbers behind all that a run may take (`rounds` of the plan).",
    ),
    ("attempt", "The attempt at the sample of this round, from 0."),
    ("started_ns", "Time from the beginning of the run to the request of the sample."),
    ("status", "`valid`, `invalid`, `broken` (the worker ended or stopped answering) or `unavailable`."),
    (
        "validity_as_of",
        "Version whose checks decided: `report`, the one that writes this row, or `measurement`, the one that took the sample.",
    ),
    ("failures", "Names of the failed checks, separated by spaces."),
    ("reason", "Their messages, with the end of the worker's stderr, or the refusal of the machine."),
];

fn names(described: &'static [Described]) -> impl Iterator<Item = &'static str> {
    described.iter().map(|(name, _)| *name)
}

/// Defines the columns of a struct: their names, and the fields of one value of it.
macro_rules! columns {
    ($names:ident, $fields:ident, $type:ty { $($field:ident $(.$convert:ident)?,)+ }) => {
        const $names: &[&str] = &[$(stringify!($field)),+];

        fn $fields(value: &$type) -> Vec<CsvField> {
            vec![$(value.$field$(.$convert())?.field()),+]
        }
    };
}

/// Text of a value in a field.
trait AsField {
    fn field(&self) -> CsvField;
}

impl AsField for u64 {
    fn field(&self) -> CsvField {
        self.to_string()
    }
}

impl AsField for u32 {
    fn field(&self) -> CsvField {
        self.to_string()
    }
}

impl AsField for Bytes {
    fn field(&self) -> CsvField {
        self.0.to_string()
    }
}

impl AsField for bool {
    fn field(&self) -> CsvField {
        self.to_string()
    }
}

impl AsField for String {
    fn field(&self) -> CsvField {
        self.clone()
    }
}

impl<T: AsField> AsField for Option<T> {
    fn field(&self) -> CsvField {
        self.as_ref().map_or_else(String::new, AsField::field)
    }
}

/// Several numbers in one field, separated by spaces.
impl AsField for Vec<u64> {
    fn field(&self) -> CsvField {
        self.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
    }
}

columns!(
    MEASUREMENT,
    measurement_fields,
    Measurement {
        setup_ns,
        ballast_ns,
        warmup_ns,
        measured_ns,
        operations,
        teardown_ns,
        sync_ns,
        unaccounted_ns,
        unaccounted_in_region_ns,
        gaps_ns,
        gap_wait_ns,
        latency_phase_ns,
        latency_phase_operations,
        latency_phase_apart,
        thread_operations,
        latency_ns,
        latency_counts,
        sync_duration_ns,
        sync_duration_counts,
        due_operations,
        late_starts,
        cut_short,
        stalls,
        stall_longest_ns,
    }
);

/// Evidence with all optional parts present, so that each of its numbers has a column.
fn whole_evidence() -> Evidence {
    Evidence {
        group: Some(GroupCounters::default()),
        threads: vec![ThreadCounters::default()],
        thread_reads: vec![0],
        actor: Some(ActorEvidence {
            windows: vec![ActorWindow::default()],
            writes: Some(ActorWrites::default()),
            ..ActorEvidence::default()
        }),
        placement: Some(Placement::default()),
        written: Some(Written::default()),
        before_ready: Some(OutsideActivity::default()),
        idling: Some(OutsideActivity::default()),
        waiting: Some(OutsideActivity::default()),
        closing: Some(OutsideActivity::default()),
        mapping_line: Some(String::new()),
        mapped_files: Some(0),
        some_mapping_flags: Some(String::new()),
        recorded_missing_bytes: Some(0),
        recorded_added_bytes: Some(0),
        worker_locked_bytes: Some(0),
        windows: vec![RateWindow::default()],
        worker_warmup: Some(WorkerWarmup { rates: vec![0], ..WorkerWarmup::default() }),
        settings: SettingsInForce::read(|_| Some(String::new())),
        ..Evidence::default()
    }
}

/// Heartbeats, one value for each kind, separated by spaces: whole histograms are too much for a
/// row.
pub const HEARTBEATS: &[Described] = &[
    (
        "heartbeat_kinds",
        "Kinds of heartbeats; the following columns have one value for each, separated by spaces.",
    ),
    ("heartbeat_beats", "Beats within the measured region."),
    ("heartbeat_idle_p99_ns", "99 of 100 beats of an idle worker were late by at most this."),
    ("heartbeat_busy_p50_ns", "Half of the beats within the measured region were late by at most this."),
    ("heartbeat_busy_p99_ns", "99 of 100 of them were."),
    ("heartbeat_busy_max_ns", "The longest delay of them."),
];

fn heartbeat_fields(heartbeats: &[Heartbeat]) -> Vec<CsvField> {
    let of_each =
        |text: &dyn Fn(&Heartbeat) -> CsvField| heartbeats.iter().map(text).collect::<Vec<_>>().join(" ");
    let late = |delays: &Delays, figure: fn(&Lateness) -> u64| {
        Lateness::merged([delays]).map_or(UNKNOWN.to_string(), |late| figure(&late).to_string())
    };
    vec![
        of_each(&|beats| beats.kind.clone()),
        of_each(&|beats| late(&beats.busy, |late| late.beats)),
        of_each(&|beats| late(&beats.idle, |late| late.p99_ns)),
        of_each(&|beats| late(&beats.busy, |late| late.p50_ns)),
        of_each(&|beats| late(&beats.busy, |late| late.p99_ns)),
        of_each(&|beats| late(&beats.busy, |late| late.max_ns)),
    ]
}

/// Heartbeats have columns of their own, and what was observed is among the failures.
const NOT_IN_COLUMNS: &[&str] = &["heartbeats", "observed"];

fn evidence_columns() -> Columns {
    Columns::of(&whole_evidence(), NOT_IN_COLUMNS)
}

/// Columns that are withheld for a cell with a device cap.
const LATENCY: &[&str] = &["latency_ns", "latency_counts", "stalls", "stall_longest_ns"];

/// Write the samples of `runs` below one header, with today's checks if a run holds their context.
/// Column `run` numbers the runs from 0.
pub fn write(out: &mut dyn Write, runs: &[Run]) -> io::Result<()> {
    let evidence = evidence_columns();
    let conditions = names(CONDITIONS).chain(axes());
    let before = conditions.chain(names(OUTCOME)).chain(MEASUREMENT.iter().copied()).map(str::to_string);
    let heartbeats = names(HEARTBEATS).map(str::to_string);
    let mut header = rows(&mut *out);
    write_row(&mut header, before.chain(evidence.names().iter().cloned()).chain(heartbeats))?;
    header.flush()?;
    drop(header);
    for (index, run) in runs.iter().enumerate() {
        let run = &*proof::again(run).run;
        let cells: HashMap<String, &Cell> =
            run.header.plan.cells.iter().map(|cell| (cell.id(), cell)).collect();
        // The first fields of a row are the same for all samples of a cell, and are made once.
        let of_cells: HashMap<&str, Vec<CsvField>> = run
            .samples
            .iter()
            .map(|sample| sample.cell.as_str())
            .collect::<HashSet<_>>()
            .into_iter()
            .map(|id| (id, conditions_fields(index, run, id, cells.get(id).copied())))
            .collect();
        let fields = |number: usize, sample: &Sample| {
            let cell = cells.get(&sample.cell).copied();
            let as_of = as_of(sample, cell, run.check_context(number));
            let of_sample = sample_fields(sample, cell, as_of, &evidence);
            [of_cells[sample.cell.as_str()].clone(), of_sample].concat()
        };
        for (part, samples) in run.samples.chunks(THREADS * ROWS_PER_THREAD).enumerate() {
            for rows in rows_of(part * THREADS * ROWS_PER_THREAD, samples, fields) {
                out.write_all(&rows)?;
            }
        }
    }
    Ok(())
}

/// Threads that format the rows of a large file.
const THREADS: usize = 4;
/// Fewer rows do not pay for another thread, and more are not kept before they are written.
const ROWS_PER_THREAD: usize = 500;

/// Format the rows of some samples, in their order; the first sample has the index `first`.
fn rows_of(
    first: usize,
    samples: &[Sample],
    fields: impl Fn(usize, &Sample) -> Vec<CsvField> + Copy + Send,
) -> Vec<Vec<u8>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = samples
            .chunks(ROWS_PER_THREAD)
            .enumerate()
            .map(|(part, samples)| {
                scope.spawn(move || {
                    let mut written = rows(Vec::new());
                    for (number, sample) in (first + part * ROWS_PER_THREAD..).zip(samples) {
                        write_row(&mut written, fields(number, sample))
                            .expect("rows of one length in memory");
                    }
                    written.into_inner().expect("rows in memory")
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a row does not panic")).collect()
    })
}

fn conditions_fields(index: usize, run: &Run, id: &str, cell: Option<&Cell>) -> Vec<CsvField> {
    let mut fields = vec![index.to_string(), run.header.plan.seed.to_string(), id.to_string()];
    match cell {
        Some(cell @ Cell { role, method, conditions }) => {
            fields.extend([
                role.to_string(),
                conditions.workload().to_string(),
                method.to_string(),
                method.worker().to_string(),
                version(run, method.worker().name()).field(),
                conditions.threads.field(),
                conditions.file_bytes.field(),
                conditions.span_bytes.field(),
                conditions.cache.to_string(),
            ]);
            fields.extend(axis_fields(cell));
        }
        // The plan does not have this cell, so only its id is known.
        None => fields.resize(CONDITIONS.len() + axes().count(), CsvField::new()),
    }
    fields
}

/// Version of a worker other than pagewise itself.
fn version(run: &Run, worker: &str) -> Option<String> {
    run.header.workers.iter().find(|found| found.name == worker).map(|found| found.version.clone())
}

/// Names of the columns of [`AXES`] and of the settings.
pub(super) fn axes() -> impl Iterator<Item = &'static str> {
    names(AXES).chain(HostSettings::COLUMNS.iter().copied())
}

/// Fields of the axes.
pub(super) fn axis_fields(cell: &Cell) -> Vec<CsvField> {
    let mut fields = vec![cell.conditions.descriptor.to_string()];
    fields.extend(work_fields(cell));
    fields.extend(cell.conditions.host_settings.fields());
    fields
}

/// Fields that define the work; empty if they do not apply to the workload.
fn work_fields(cell: &Cell) -> [CsvField; 17] {
    let conditions = &cell.conditions;
    let (reads, writes) = (conditions.reads(), conditions.writes());
    let replay = match conditions.work {
        Work::Replay(replay) => Some(replay),
        _ => None,
    };
    let updates = writes.filter(|writes| writes.is_update());
    let written = writes.map(|writes| writes.record_bytes);
    let (record_bytes, block_bytes) = match conditions.workload().writes_blocks() {
        true => (None, written),
        false => (written, None),
    };
    [
        reads.map(|reads| reads.read_bytes).field(),
        reads.map(|reads| reads.reads_per_op).field(),
        reads.map(|reads| reads.align_bytes).field(),
        reads.map(|reads| reads.skew.to_string()).field(),
        reads.map(|reads| reads.dependent).field(),
        conditions.consume().map(|consume| consume.to_string()).field(),
        record_bytes.field(),
        block_bytes.field(),
        updates.map(|writes| writes.updates).field(),
        updates.map(|writes| writes.reads_each).field(),
        conditions.rate.map(|rate| rate.per_second()).field(),
        replay.map(|replay| replay.gaps_ns.is_none()).field(),
        writes.map(|writes| writes.passes).field(),
        writes.map(|writes| writes.sync.to_string()).field(),
        cell.sync_call().map(|call| call.to_string()).field(),
        writes.is_none().then(|| conditions.content.to_string()).field(),
        conditions.beside.as_ref().map(ToString::to_string).field(),
    ]
}

/// Origin of the checks that decided validity; empty for a sample that has nothing to check.
fn as_of(sample: &Sample, cell: Option<&Cell>, context: Option<&CheckContext>) -> &'static str {
    match (&sample.outcome, cell.and(context)) {
        (Outcome::Taken { .. }, Some(_)) => "report",
        (Outcome::Taken { .. }, None) => "measurement",
        _ => "",
    }
}

fn sample_fields(sample: &Sample, cell: Option<&Cell>, as_of: &str, columns: &Columns) -> Vec<CsvField> {
    let (status, reason) = match &sample.outcome {
        Outcome::Taken { failures, .. } if failures.is_empty() => ("valid", String::new()),
        Outcome::Taken { .. } => ("invalid", details(sample)),
        Outcome::Broken { stderr_tail, .. } if stderr_tail.is_empty() => ("broken", details(sample)),
        Outcome::Broken { stderr_tail, .. } => ("broken", format!("{}; {stderr_tail}", details(sample))),
        Outcome::Unavailable { reason } => ("unavailable", reason.clone()),
    };
    let kinds: Vec<&str> = sample.failures().iter().map(|failure| failure.kind.name()).collect();
    let mut fields = vec![
        sample.round.to_string(),
        sample.attempt.to_string(),
        sample.started_ns.to_string(),
        status.to_string(),
        as_of.to_string(),
        kinds.join(" "),
        reason,
    ];
    match &sample.outcome {
        Outcome::Taken { measurement, evidence, .. } => {
            // A device cap does not make a slow device: its latency would be mistaken for one.
            let capped = cell.is_some_and(|cell| cell.conditions.host_settings.device_cap.is_some());
            let measured = MEASUREMENT.iter().zip(measurement_fields(measurement));
            fields.extend(measured.map(|(column, field)| match capped && LATENCY.contains(column) {
                true => CsvField::new(),
                false => field,
            }));
            fields.extend(columns.fields(evidence));
            // Like latency, heartbeats are withheld under a cap or for a cold start.
            let is_known = cell.is_none_or(|cell| Withheld::of(&cell.conditions).is_none());
            fields.extend(heartbeat_fields(if is_known { &evidence.heartbeats } else { &[] }));
        }
        _ => fields.resize(
            OUTCOME.len() + MEASUREMENT.len() + columns.names().len() + HEARTBEATS.len(),
            CsvField::new(),
        ),
    }
    fields
}

fn details(sample: &Sample) -> String {
    sample.failures().iter().map(|failure| failure.detail.as_str()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use pagewise_model::{Failure, FailureKind};

    use super::*;

    #[test]
    fn every_field_of_the_measurement_has_a_column() {
        let measurement = serde_json::to_value(Measurement::default()).expect("measurement");
        assert_eq!(measurement.as_object().expect("an object").len(), MEASUREMENT.len());
        assert!(LATENCY.iter().all(|column| MEASUREMENT.contains(column)));
    }

    #[test]
    fn parts_of_the_evidence_have_columns_of_their_own() {
        let evidence = Evidence {
            wall_ns: 9,
            clock_step_ns: Some(-3),
            descriptor_direct: Some(true),
            group: Some(GroupCounters { peak_bytes: Some(7), ..GroupCounters::default() }),
            waiting: Some(OutsideActivity { wall_ns: 4, ..OutsideActivity::default() }),
            thread_reads: vec![7, 8],
            observed: vec![Failure { kind: FailureKind::FileChanged, detail: "it changed".into() }],
            windows: vec![
                RateWindow { elapsed_ns: 5, operations: 1, ..RateWindow::default() },
                RateWindow {
                    elapsed_ns: 6,
                    operations: 2,
                    device_read_bytes: Some(8),
                    ..RateWindow::default()
                },
            ],
            ..Evidence::default()
        };
        let columns = evidence_columns();
        let fields = columns.fields(&evidence);
        let index = |column: &str| columns.names().iter().position(|name| name == column);
        let field = |column: &str| fields[index(column).expect("a column")].as_str();
        let of_evidence = [
            "wall_ns",
            "clock_step_ns",
            "descriptor_direct",
            "group_peak_bytes",
            "host_refaults",
            "waiting_wall_ns",
        ];
        assert_eq!(of_evidence.map(field), ["9", "-3", "true", "7", "", "4"]);
        assert_eq!(["window_elapsed_ns", "window_device_read_bytes"].map(field), ["5 6", "? 8"]);
        assert_eq!(field("thread_cpu_ns"), "", "no thread was seen");
        for column in
            ["placement_pages_on_node", "thread_major_faults", "group_limit_bytes", "before_ready_faults"]
        {
            assert!(index(column).is_some(), "{column}");
        }
    }
}
