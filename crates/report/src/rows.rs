//! Cells of runs as rows of JSON (NDJSON): a line each, with the file, the facts and the labels of
//! its run. They have the columns of the CSV of cells, and numbers are numbers.

use std::io::{self, Write};

use pagewise_analysis::facts::{self, Facts};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Number, Value};

use crate::csv::cells;
use crate::judged_run::JudgedRun;
use crate::printed::{Escape, Printed};

/// Version of these rows, whose columns only ever grow.
const SCHEMA: u32 = 1;
/// Columns with whole numbers whose names have no unit.
const COUNTS: [&str; 10] = [
    "threads",
    "passes",
    "updates",
    "reads_per_op",
    "reads_per_update",
    "rate",
    "samples",
    "invalid_samples",
    "rate_missed",
    "late_starts",
];
/// Ends of the names of columns with whole numbers.
const WHOLE: [&str; 2] = ["_bytes", "_ns"];
/// Ends of the names of columns with fractions.
const FRACTIONS: [&str; 6] = ["ratio", "span_over_cache", "_share", "_median", "_low", "_high"];

/// A cell as a row.
struct Row<'a> {
    run: &'a JudgedRun<'a>,
    facts: &'a Facts,
    fields: Vec<(&'static str, String)>,
}

/// Write the cells of a run.
pub fn write(out: &mut dyn Write, run: &JudgedRun<'_>) -> io::Result<()> {
    let (mut out, facts) = (Printed::new(out, Escape::Json), facts::of(run.judged));
    for fields in cells::fields(run) {
        serde_json::to_writer(&mut out, &Row { run, facts: &facts, fields })?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { run, facts, fields } = self;
        let mut row = serializer.serialize_map(None)?;
        row.serialize_entry("schema", &SCHEMA)?;
        row.serialize_entry("run", run.path)?;
        row.serialize_entry("started_unix_s", &run.judged.environment.started_unix_s)?;
        row.serialize_entry("seed", &run.judged.run.seed)?;
        row.serialize_entry("complete", &run.judged.run.complete)?;
        row.serialize_entry("labels", &run.judged.run.labels)?;
        row.serialize_entry("facts", facts)?;
        for (name, field) in fields {
            row.serialize_entry(name, &value(name, field))?;
        }
        row.end()
    }
}

/// A field of the CSV as a value of its column's type; null for what is unknown.
fn value(name: &str, field: &str) -> Value {
    if field.is_empty() {
        return Value::Null;
    }
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let number: Option<Number> = match name {
        "dependent" => return Value::Bool(field == "true"),
        _ if ends(&FRACTIONS) => field.parse().ok().and_then(Number::from_f64),
        _ if COUNTS.contains(&name) || ends(&WHOLE) => field.parse::<u64>().ok().map(Number::from),
        _ => None,
    };
    number.map_or_else(|| field.into(), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_one_type() {
        assert_eq!(value("threads", "2"), 2);
        assert_eq!(value("ratio_low", "1.5"), 1.5);
        assert_eq!(value("span_over_cache", "4").to_string(), "4.0");
        assert_eq!(value("cpus", "0"), "0", "other machines have 0-3");
        assert_eq!(value("total_ns_median", ""), Value::Null);
        assert_eq!(value("total_ns_median", "7").to_string(), "7.0", "another row has 7.5");
        assert_eq!(value("dependent", "false"), false);
        assert_eq!(value("method", "7"), "7");
    }
}
