//! Facts of a run that results depend on: its environment, the versions of its workers, its labels.
//!
//! Every field of the environment is one, so that a new field is one without a line here. Some are
//! of the moment rather than of the machine, and are left out.

use std::collections::BTreeMap;

use pagewise_model::format::bytes;
use pagewise_model::{Environment, Worker};
use serde_json::Value;

use crate::judge::Judged;

/// Facts by name: `kernel`, `readahead`, `transparent-hugepage`.
pub type Facts = BTreeMap<String, String>;

/// Fields of the environment that differ between any two runs, or are shown elsewhere.
const OF_THE_MOMENT: [&str; 7] = [
    "boot_id",
    "clock_error_ns",
    "device_number",
    "memory_available_bytes",
    "started_unix_s",
    "warnings",
    "worker_answer_ns",
];
/// Value of what is not known.
pub const UNKNOWN: &str = "unknown";
/// The fact that time for the answers of workers counts.
const ANSWERS: &str = "answers-of-workers";
/// The plan as it was typed.
pub const PLAN: &str = "plan";
/// The duration of a sample.
const SAMPLE: &str = "sample";
/// End of the name of a worker's version.
const VERSION: &str = "-version";

/// True if runs may have a fact of this name without a label.
pub fn is_fact(name: &str) -> bool {
    let schema = schemars::schema_for!(Environment);
    let fields = schema.get("properties").and_then(Value::as_object);
    let mut fields = fields.into_iter().flat_map(|fields| fields.keys());
    let is_field = fields.any(|field| fact(field) == name);
    is_field || [ANSWERS, PLAN, SAMPLE].contains(&name) || name.ends_with(VERSION)
}

/// The facts of a run.
pub fn of(judged: &Judged) -> Facts {
    let environment = serde_json::to_value(&judged.environment).unwrap_or(Value::Null);
    let fields = environment.as_object().into_iter().flatten();
    let shown = fields.filter(|(name, _)| !OF_THE_MOMENT.contains(&name.as_str()));
    let mut facts: Facts = shown.filter_map(|(name, value)| Some((fact(name), text(name, value)?))).collect();
    for worker in &judged.workers {
        let version = worker.version.clone().unwrap_or_else(|| UNKNOWN.to_string());
        facts.insert(format!("{}{VERSION}", worker.name), version);
    }
    if judged.cells.iter().any(|cell| cell.is_one_shot) {
        let is_shipped = |name: &str| Worker::SHIPPED.iter().any(|worker| worker.name() == name);
        let is_own = judged.run.worker_command.is_none()
            && judged.workers.iter().all(|worker| is_shipped(&worker.name));
        let shown = if is_own { "not in totals" } else { "in totals" };
        facts.insert(ANSWERS.to_string(), shown.to_string());
    }
    facts.insert(SAMPLE.to_string(), pagewise_model::format::time(judged.run.sample_ns));
    facts.extend(judged.run.typed_plan.iter().map(|plan| (PLAN.to_string(), plan.clone())));
    // A fact comes before a label of a file that has its name.
    for (name, value) in &judged.run.labels {
        facts.entry(name.clone()).or_insert_with(|| value.clone());
    }
    facts
}

/// `readahead_bytes` is the fact `readahead`.
fn fact(field: &str) -> String {
    field.strip_suffix("_bytes").unwrap_or(field).replace('_', "-")
}

/// `None` for what is missing: it has the value [`UNKNOWN`] like a field that an older run has not.
fn text(field: &str, value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Number(number) if field.ends_with("_bytes") => number.as_u64().map(bytes),
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
