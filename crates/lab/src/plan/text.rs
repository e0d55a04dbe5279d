//! Parsing of plan files: TOML in which any list is an axis and an unknown key is an error that
//! names the nearest known one.

use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use pagewise_model::misspelt::meant;
use pagewise_model::planned_table::{PlannedTable, TableColumns};
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{Method, Workload};
use toml::{Table, Value};

use super::{Axes, Layer, PlanText, Sampling, Threads};

const SAMPLING: &[&str] = &["rounds", "budget", "sample", "seed", "ceilings", "controls", "crossing_percent"];
/// Keys at the top of a plan besides axes, sampling and workloads.
const TOP: &[&str] = &["quick", "full", "limited", "also", "in_memory", "table"];
/// Keys in `[table]`.
const TABLE: &[&str] = &["rows", "columns", "baseline", "against", "explain"];

/// Parse the text of a plan file.
pub fn parse(name: &str, text: &str) -> Result<PlanText> {
    let table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        anyhow::anyhow!("line {line}: {}", error.message())
    })?;
    of_table(name, table)
}

/// The plan that a table describes.
pub fn of_table(name: &str, mut table: Table) -> Result<PlanText> {
    ensure!(!table.is_empty(), "the plan is empty: write at least workload = or methods =");
    let mut variant = |name: &str| match table.remove(name) {
        None => Ok(None),
        Some(Value::Table(table)) => layer(&table, &[]).map(Some).with_context(|| format!("in [{name}]")),
        Some(_) => bail!("'{name}' is a table: write [{name}] above its keys"),
    };
    let (quick, full) = (variant("quick")?.unwrap_or_default(), variant("full")?.unwrap_or_default());
    let (limited, also) = (variant("limited")?, variant("also")?);
    let in_memory =
        table.remove("in_memory").map_or(Ok(false), |value| flag(&value)).context("in 'in_memory'")?;
    let planned = match table.remove("table") {
        None => None,
        Some(Value::Table(table)) => Some(planned_table(&table).context("in [table]")?),
        Some(_) => bail!("'table' is a table: write [table] above its keys"),
    };
    let base = layer(&table, TOP)?;
    Ok(PlanText { name: name.to_string(), in_memory, base, quick, full, limited, also, table: planned })
}

/// Parse the table of the comparisons.
fn planned_table(table: &Table) -> Result<PlannedTable> {
    if let Some(key) = table.keys().find(|key| !TABLE.contains(&key.as_str())) {
        return Err(unknown(key, TABLE));
    }
    let word = |key: &str| {
        table.get(key).map(|value| text(value).with_context(|| format!("in '{key}'"))).transpose()
    };
    let list = |key: &str| table.get(key).map_or(Ok(Vec::new()), |value| texts(key, value));
    if let Some(other) = word("rows")?.filter(|rows| *rows != "methods") {
        bail!("unknown rows '{other}': write methods");
    }
    let columns = match word("columns")? {
        None | Some("threads") => TableColumns::Threads,
        Some("data") => TableColumns::Data,
        Some(other) => bail!("unknown columns '{other}': write threads or data"),
    };
    let baseline = word("baseline")?.map(str::to_string);
    let planned = PlannedTable { columns, baseline, against: list("against")?, explain: list("explain")? };
    for method in planned.baseline.iter().chain(&planned.against).chain(&planned.explain) {
        let known = |worker: &str| format!("{worker}{method}").parse::<Method>().is_ok();
        if !["", "jvm/", "go/", "python/"].into_iter().any(known) {
            method.parse::<Method>().map_err(anyhow::Error::msg)?;
        }
    }
    Ok(planned)
}

fn layer(table: &Table, also_known: &[&str]) -> Result<Layer> {
    let mut layer = Layer::default();
    for (key, value) in table {
        if let Ok(workload) = key.parse::<Workload>() {
            let Value::Table(inner) = value else {
                bail!("'{key}' is a table: write [{key}] above its keys");
            };
            let axes = layer.by_workload.entry(workload).or_default();
            for (key, value) in inner {
                if !set_axis(axes, key, value).with_context(|| format!("in [{workload}]"))? {
                    return Err(unknown(key, Axes::NAMES)).with_context(|| format!("in [{workload}]"));
                }
            }
        } else if key == "workload" {
            let mut all = Vec::new();
            for text in texts(key, value)? {
                all.push(text.parse().map_err(anyhow::Error::msg).with_context(|| format!("in '{key}'"))?);
            }
            layer.workload = Some(all);
        } else if key == "expect" {
            let parse = |text: String| text.parse().map_err(anyhow::Error::msg);
            let all: Result<Vec<_>> = texts(key, value)?.into_iter().map(parse).collect();
            layer.expectations = Some(all.with_context(|| format!("in '{key}'"))?);
        } else if !set_axis(&mut layer.axes, key, value)? && !set_sampling(&mut layer.sampling, key, value)? {
            let workloads = Workload::ALL.iter().map(|workload| workload.name());
            let lists = [Axes::NAMES, SAMPLING, &["workload", "expect"], also_known];
            let known: Vec<&str> = lists.into_iter().flatten().copied().chain(workloads).collect();
            return Err(unknown(key, &known));
        }
    }
    Ok(layer)
}

/// The error for an unknown key.
fn unknown(key: &str, known: &[&str]) -> anyhow::Error {
    anyhow::anyhow!("unknown key '{key}': {}", meant(key, known))
}

/// Set the axis named `key`; false if there is none.
fn set_axis(axes: &mut Axes, key: &str, value: &Value) -> Result<bool> {
    if !Axes::NAMES.contains(&key) {
        return Ok(false);
    }
    axes.set(key, &texts(key, value)?).with_context(|| format!("in '{key}'"))
}

/// One value, or a list of them.
fn texts(key: &str, value: &Value) -> Result<Vec<String>> {
    let texts: Result<Vec<String>> = match value {
        Value::Array(items) => items.iter().map(plain).collect(),
        single => plain(single).map(|text| vec![text]),
    };
    let texts = texts.with_context(|| format!("in '{key}'"))?;
    if texts.is_empty() {
        bail!("'{key}' is an empty list: there would be nothing to measure");
    }
    Ok(texts)
}

/// Set the scalar named `key`; false if there is none.
fn set_sampling(sampling: &mut Sampling, key: &str, value: &Value) -> Result<bool> {
    if SAMPLING.contains(&key) && matches!(value, Value::Array(_)) {
        bail!("'{key}' is not an axis: write one value");
    }
    let time =
        |value: &Value| text(value).and_then(|text| parse_duration_ns(text).map_err(anyhow::Error::msg));
    let in_key = || format!("in '{key}'");
    match key {
        "rounds" => sampling.rounds = Some(count(value).with_context(in_key)?),
        "budget" => {
            let budget = text(value).and_then(|text| text.parse().map_err(anyhow::Error::msg));
            sampling.budget = Some(budget.with_context(in_key)?);
        }
        "sample" => sampling.sample_ns = Some(time(value).with_context(in_key)?),
        "ceilings" => {
            sampling.ceilings = Some(flag(value).with_context(in_key)?);
        }
        "controls" => sampling.controls = Some(flag(value).with_context(in_key)?),
        "crossing_percent" => sampling.crossing_percent = Some(count(value).with_context(in_key)?),
        "seed" => {
            let seed = value.as_integer().and_then(|seed| u64::try_from(seed).ok());
            sampling.seed = Some(seed.with_context(|| {
                format!("in 'seed': invalid value {value}: write a whole number of at least 0")
            })?);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn flag(value: &Value) -> Result<bool> {
    value.as_bool().with_context(|| format!("invalid value {value}: write true or false"))
}

/// The value as typed. A bare number has no unit, and its type's error shows how to write it.
fn plain(value: &Value) -> Result<String> {
    match value {
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        other => text(other).map(str::to_string),
    }
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("invalid value {value}: write a text in quotes"))
}

fn count(value: &Value) -> Result<u32> {
    value
        .as_integer()
        .and_then(|number| u32::try_from(number).ok())
        .with_context(|| format!("invalid value {value}: write a whole number of at least 0"))
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "cpus" {
            return Ok(Threads::Cpus);
        }
        text.parse()
            .map(Threads::Count)
            .map_err(|_| format!("invalid number of threads '{text}': write a whole number or 'cpus'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::QUESTIONS;

    fn refused(text: &str) -> String {
        format!("{:#}", parse("test", text).expect_err(text))
    }

    #[test]
    fn an_empty_plan_asks_nothing() {
        for text in ["", "# nothing\n"] {
            let refused = parse("empty", text).expect_err("it asks nothing").to_string();
            assert_eq!(refused, "the plan is empty: write at least workload = or methods =");
        }
    }

    #[test]
    fn the_shipped_questions_are_read() {
        for (name, text) in QUESTIONS {
            parse(name, text).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
    }

    #[test]
    fn any_plan_may_ask_for_a_table_whatever_its_name() {
        let (_, lucene) = QUESTIONS.iter().find(|(name, _)| *name == "lucene").expect("a question");
        let shipped = parse("lucene", lucene).expect("plan").table;
        let copied = parse("indexing", lucene).expect("plan").table;
        assert!(shipped.is_some() && shipped == copied);
        let by_data = parse("test", "[table]\ncolumns = \"data\"").expect("plan").table.expect("a table");
        assert_eq!(
            (by_data.columns, by_data.baseline, by_data.against),
            (TableColumns::Data, None, Vec::new())
        );
        assert_eq!(parse("test", "threads = 2").expect("plan").table, None);
        assert_eq!(
            refused("[table]\nbasline = \"pread\""),
            "in [table]: unknown key 'basline': the nearest known one is 'baseline'"
        );
        assert_eq!(
            refused("[table]\ncolumns = \"cpus\""),
            "in [table]: unknown columns 'cpus': write threads or data"
        );
        assert_eq!(
            refused("[table]\nrows = \"threads\""),
            "in [table]: unknown rows 'threads': write methods"
        );
        assert!(refused("[table]\nbaseline = \"preaad\"").starts_with("in [table]: "));
        assert_eq!(refused("table = 1"), "'table' is a table: write [table] above its keys");
    }

    #[test]
    fn a_single_value_is_a_list_of_one() {
        let plan = parse("test", "threads = 2\n[random-read]\nthreads = [1, \"cpus\"]").expect("plan");
        assert_eq!(plan.base.axes.threads, Some(vec![Threads::Count(2)]));
        let inner = &plan.base.by_workload[&Workload::RandomRead];
        assert_eq!(inner.threads, Some(vec![Threads::Count(1), Threads::Cpus]));
    }

    #[test]
    fn what_is_wrong_is_reported_in_one_sentence() {
        assert_eq!(refused("tread = 1"), "unknown key 'tread': the nearest known one is 'threads'");
        assert_eq!(
            refused("[quick]\nround = 3"),
            "in [quick]: unknown key 'round': the nearest known one is 'rounds'"
        );
        assert_eq!(
            refused("[random-read]\nmethod = \"mmap\""),
            "in [random-read]: unknown key 'method': the nearest known one is 'methods'"
        );
        assert!(refused("read_size = 4096").starts_with("in 'read_size': invalid size '4096': write a unit"));
        assert_eq!(refused("threads = []"), "'threads' is an empty list: there would be nothing to measure");
        assert_eq!(refused("rounds = [7, 9]"), "'rounds' is not an axis: write one value");
        assert_eq!(
            refused("threads = -1"),
            "in 'threads': invalid number of threads '-1': write a whole number or 'cpus'"
        );
        assert!(refused("methods = 3").starts_with("in 'methods': unknown method '3'"));
        assert!(
            refused("methods = 3.5").starts_with("in 'methods': invalid value 3.5: write a text in quotes")
        );
        assert!(refused("passes = -1").starts_with("in 'passes': invalid value '-1': "));
        assert!(refused("dependent = 1").starts_with("in 'dependent': invalid value '1': "));
        assert!(refused("cache = \"hot\"").starts_with("in 'cache': unknown cache state 'hot'"));
        assert!(refused("quick = 3").starts_with("'quick' is a table"));
        assert!(refused("threads = 1\nthreads = ").starts_with("line 2"));
        assert!(refused("seed = -3").starts_with("in 'seed': invalid value -3: write a whole number"));
    }
}
