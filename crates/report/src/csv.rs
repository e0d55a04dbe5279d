//! One row per sample, every attempt of it, valid or not (RFC 4180).
//!
//! The table and the JSON show medians; here is what they are medians of. Units stand in the names of the
//! columns, an empty field is a number that is not known.

use std::io::{self, Write};

use pagewise_model::run::Run;
use pagewise_model::sample::Measurement;
use pagewise_model::{Cell, Evidence, Outcome, Sample};

/// A field of a row, not yet quoted.
type Field = String;

const CONDITIONS: [&str; 17] = [
    "run",
    "seed",
    "cell",
    "role",
    "workload",
    "method",
    "worker",
    "threads",
    "file_bytes",
    "span_bytes",
    "cache",
    "descriptor",
    "read_bytes",
    "reads_per_op",
    "align_bytes",
    "consume",
    "round",
];

const OUTCOME: [&str; 5] = ["attempt", "started_ns", "status", "failures", "reason"];

/// Defines the columns of a struct: their names, and the fields of one value of it.
macro_rules! columns {
    ($names:ident, $fields:ident, $type:ty { $($field:ident $(.$convert:ident)?,)+ }) => {
        const $names: &[&str] = &[$(stringify!($field)),+];

        fn $fields(value: &$type) -> Vec<Field> {
            vec![$(value.$field$(.$convert())?.field()),+]
        }
    };
}

/// How a value stands in a field.
trait AsField {
    fn field(&self) -> Field;
}

impl AsField for u64 {
    fn field(&self) -> Field {
        self.to_string()
    }
}

impl AsField for bool {
    fn field(&self) -> Field {
        self.to_string()
    }
}

impl AsField for String {
    fn field(&self) -> Field {
        self.clone()
    }
}

impl<T: AsField> AsField for Option<T> {
    fn field(&self) -> Field {
        self.as_ref().map_or_else(String::new, AsField::field)
    }
}

/// Several numbers in one field, separated by spaces.
impl AsField for Vec<u64> {
    fn field(&self) -> Field {
        self.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
    }
}

columns!(
    MEASUREMENT,
    measurement_fields,
    Measurement {
        setup_ns,
        warmup_ns,
        measured_ns,
        operations,
        teardown_ns,
        latency_phase_ns,
        latency_phase_operations,
        thread_operations,
        latency_ns,
        latency_counts,
        stalls,
        stall_longest_ns,
    }
);

columns!(
    EVIDENCE,
    evidence_fields,
    Evidence {
        wall_ns,
        requested_bytes,
        device_read_bytes,
        device_other_bytes,
        device_read_requests,
        read_call_bytes,
        read_calls,
        minor_faults,
        major_faults,
        cpu_ns,
        run_queue_ns,
        user_ns,
        system_ns,
        voluntary_switches,
        involuntary_switches,
        steal_ns,
        resident_before_bytes,
        resident_after_bytes,
        residency_source,
        huge_mapped_bytes,
        mapping_flags,
        descriptor_direct,
        worker_peak_bytes,
        expected_checksum,
        checksum,
        verified_reads,
        differing_reads,
    }
);

/// Writes the samples of `runs` below one header. Column `run` counts them from 0.
pub fn write(out: &mut dyn Write, runs: &[Run]) -> io::Result<()> {
    let names = CONDITIONS.iter().chain(&OUTCOME).chain(MEASUREMENT).chain(EVIDENCE);
    write_row(out, names.map(ToString::to_string))?;
    for (index, run) in runs.iter().enumerate() {
        for sample in &run.samples {
            let cell = run.header.plan.cells.iter().find(|cell| cell.id() == sample.cell);
            let fields = conditions_fields(index, run, sample, cell);
            write_row(out, fields.into_iter().chain(sample_fields(sample)))?;
        }
    }
    Ok(())
}

fn conditions_fields(index: usize, run: &Run, sample: &Sample, cell: Option<&Cell>) -> Vec<Field> {
    let mut fields = vec![index.to_string(), run.header.plan.seed.to_string(), sample.cell.clone()];
    match cell {
        Some(Cell { role, method, conditions }) => fields.extend([
            role.to_string(),
            conditions.workload.to_string(),
            method.to_string(),
            method.worker().to_string(),
            conditions.threads.to_string(),
            conditions.file_bytes.0.to_string(),
            conditions.span_bytes.0.to_string(),
            conditions.cache.to_string(),
            conditions.descriptor.to_string(),
            conditions.read_bytes.0.to_string(),
            conditions.reads_per_op.to_string(),
            conditions.align_bytes.0.to_string(),
            conditions.consume.to_string(),
        ]),
        // The plan does not have this cell; its id is all that is known of it.
        None => fields.resize(CONDITIONS.len() - 1, Field::new()),
    }
    fields.push(sample.round.to_string());
    fields
}

fn sample_fields(sample: &Sample) -> Vec<Field> {
    let (status, reason) = match &sample.outcome {
        Outcome::Taken { failures, .. } if failures.is_empty() => ("valid", String::new()),
        Outcome::Taken { .. } => ("invalid", details(sample)),
        Outcome::Broken { stderr_tail, .. } if stderr_tail.is_empty() => ("broken", details(sample)),
        Outcome::Broken { stderr_tail, .. } => ("broken", format!("{}; {stderr_tail}", details(sample))),
        Outcome::Unavailable { reason } => ("unavailable", reason.clone()),
    };
    let kinds: Vec<String> = sample.failures().iter().map(|failure| failure.kind.name()).collect();
    let mut fields = vec![
        sample.attempt.to_string(),
        sample.started_ns.to_string(),
        status.to_string(),
        kinds.join(" "),
        reason,
    ];
    match &sample.outcome {
        Outcome::Taken { measurement, evidence, .. } => {
            fields.extend(measurement_fields(measurement));
            fields.extend(evidence_fields(evidence));
        }
        _ => fields.resize(OUTCOME.len() + MEASUREMENT.len() + EVIDENCE.len(), Field::new()),
    }
    fields
}

fn details(sample: &Sample) -> String {
    sample.failures().iter().map(|failure| failure.detail.as_str()).collect::<Vec<_>>().join("; ")
}

fn write_row(out: &mut dyn Write, fields: impl Iterator<Item = Field>) -> io::Result<()> {
    let row: Vec<String> = fields.map(quoted).collect();
    write!(out, "{}\r\n", row.join(","))
}

/// A field with a comma, a quote or a line break stands in quotes, and its quotes are doubled.
fn quoted(field: Field) -> Field {
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(quoted("plain text".into()), "plain text");
        assert_eq!(quoted("a,b".into()), "\"a,b\"");
        assert_eq!(quoted("say \"no\"".into()), "\"say \"\"no\"\"\"");
        assert_eq!(quoted("two\nlines".into()), "\"two\nlines\"");
    }

    #[test]
    fn every_field_of_the_evidence_has_a_column() {
        let evidence = serde_json::to_value(Evidence::default()).expect("evidence");
        let columns: Vec<&str> =
            evidence.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(columns.len(), EVIDENCE.len());
        assert!(columns.iter().all(|column| EVIDENCE.contains(column)));
        let measurement = serde_json::to_value(Measurement::default()).expect("measurement");
        assert_eq!(measurement.as_object().expect("an object").len(), MEASUREMENT.len());
    }
}
