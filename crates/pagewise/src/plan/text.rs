//! Reading plan files: TOML in which any list is an axis and an unknown key is an error that names the
//! nearest known one.

use std::fmt::Display;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{Bytes, Method, Workload};
use toml::{Table, Value};

use super::{Axes, Layer, PlanText, Sampling, Threads};

const AXES: [&str; 21] = [
    "methods",
    "threads",
    "file_size",
    "span",
    "read_size",
    "reads_per_op",
    "align",
    "consume",
    "record_size",
    "laps",
    "block_size",
    "sync",
    "cache",
    "descriptor",
    "skew",
    "dependent",
    "memory",
    "device_cap",
    "readahead",
    "cpus",
    "numa",
];
const SAMPLING: [&str; 6] = ["rounds", "sample", "latency", "seed", "ceilings", "crossing_percent"];
/// Beside axes, sampling and workloads, at the top of a plan.
const TOP: [&str; 5] = ["quick", "full", "published", "also", "in_memory"];

/// Reads the text of a plan file.
pub fn parse(name: &str, text: &str) -> Result<PlanText> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        anyhow::anyhow!("line {line}: {}", error.message())
    })?;
    let mut variant = |name: &str| match table.remove(name) {
        None => Ok(None),
        Some(Value::Table(table)) => layer(&table, &[]).map(Some).with_context(|| format!("in [{name}]")),
        Some(_) => bail!("'{name}' is a table: write [{name}] above its keys"),
    };
    let (quick, full) = (variant("quick")?.unwrap_or_default(), variant("full")?.unwrap_or_default());
    let (published, also) = (variant("published")?, variant("also")?);
    let in_memory =
        table.remove("in_memory").map_or(Ok(false), |value| flag(&value)).context("in 'in_memory'")?;
    let base = layer(&table, &TOP)?;
    Ok(PlanText { name: name.to_string(), in_memory, base, quick, full, published, also })
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
                    return Err(unknown(key, &AXES)).with_context(|| format!("in [{workload}]"));
                }
            }
        } else if key == "workload" {
            layer.workload = Some(words(key, value)?);
        } else if !set_axis(&mut layer.axes, key, value)? && !set_sampling(&mut layer.sampling, key, value)? {
            let workloads = Workload::ALL.iter().map(|workload| workload.name());
            let known: Vec<&str> = AXES
                .into_iter()
                .chain(SAMPLING)
                .chain(["workload"])
                .chain(workloads)
                .chain(also_known.iter().copied())
                .collect();
            return Err(unknown(key, &known));
        }
    }
    Ok(layer)
}

/// The error for a key that nobody reads.
fn unknown(key: &str, known: &[&str]) -> anyhow::Error {
    let nearest = known
        .iter()
        .max_by(|left, right| strsim::jaro_winkler(key, left).total_cmp(&strsim::jaro_winkler(key, right)))
        .expect("some key is known");
    anyhow::anyhow!("unknown key '{key}'; the nearest known one is '{nearest}'")
}

/// Sets the axis named `key`; false if there is none.
fn set_axis(axes: &mut Axes, key: &str, value: &Value) -> Result<bool> {
    match key {
        "methods" => axes.methods = Some(list(key, value, method)?),
        "threads" => axes.threads = Some(list(key, value, threads)?),
        "file_size" => axes.file_size = Some(words(key, value)?),
        "span" => axes.span = Some(words(key, value)?),
        "read_size" => axes.read_size = Some(list(key, value, size)?),
        "reads_per_op" => axes.reads_per_op = Some(list(key, value, count)?),
        "align" => axes.align = Some(list(key, value, size)?),
        "consume" => axes.consume = Some(words(key, value)?),
        "record_size" => axes.record_size = Some(list(key, value, size)?),
        "laps" => axes.laps = Some(list(key, value, count)?),
        "block_size" => axes.block_size = Some(list(key, value, size)?),
        "sync" => axes.sync = Some(words(key, value)?),
        "cache" => axes.cache = Some(words(key, value)?),
        "descriptor" => axes.descriptor = Some(words(key, value)?),
        "skew" => axes.skew = Some(words(key, value)?),
        "dependent" => axes.dependent = Some(list(key, value, flag)?),
        "memory" => axes.memory = Some(words(key, value)?),
        "device_cap" => axes.device_cap = Some(words(key, value)?),
        "readahead" => axes.readahead = Some(words(key, value)?),
        "cpus" => axes.cpus = Some(words(key, value)?),
        "numa" => axes.numa = Some(words(key, value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Sets the scalar named `key`; false if there is none.
fn set_sampling(sampling: &mut Sampling, key: &str, value: &Value) -> Result<bool> {
    if SAMPLING.contains(&key) && matches!(value, Value::Array(_)) {
        bail!("'{key}' takes one value, it is no axis");
    }
    let time =
        |value: &Value| text(value).and_then(|text| parse_duration_ns(text).map_err(anyhow::Error::msg));
    let in_key = || format!("in '{key}'");
    match key {
        "rounds" => sampling.rounds = Some(count(value).with_context(in_key)?),
        "sample" => sampling.sample_ns = Some(time(value).with_context(in_key)?),
        "latency" => sampling.latency_ns = Some(time(value).with_context(in_key)?),
        "ceilings" => {
            sampling.ceilings = Some(flag(value).with_context(in_key)?);
        }
        "crossing_percent" => sampling.crossing_percent = Some(count(value).with_context(in_key)?),
        "seed" => {
            let seed = value.as_integer().and_then(|seed| u64::try_from(seed).ok());
            sampling.seed =
                Some(seed.with_context(|| format!("in 'seed': {value} is no whole number from 0 on"))?);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// One value, or a list of them.
fn list<T>(key: &str, value: &Value, item: impl Fn(&Value) -> Result<T>) -> Result<Vec<T>> {
    let items = match value {
        Value::Array(items) => items.iter().map(&item).collect::<Result<Vec<T>>>(),
        single => item(single).map(|item| vec![item]),
    };
    let items = items.with_context(|| format!("in '{key}'"))?;
    if items.is_empty() {
        bail!("'{key}' is an empty list: there would be nothing to measure");
    }
    Ok(items)
}

fn words<T: FromStr>(key: &str, value: &Value) -> Result<Vec<T>>
where
    T::Err: Display,
{
    list(key, value, |value| plain(value)?.parse().map_err(|error: T::Err| anyhow::anyhow!("{error}")))
}

fn flag(value: &Value) -> Result<bool> {
    value.as_bool().with_context(|| format!("{value} is neither true nor false"))
}

/// A bare number has no unit, and the type says how it should be written.
fn plain(value: &Value) -> Result<String> {
    match value {
        Value::Integer(number) => Ok(number.to_string()),
        other => text(other).map(str::to_string),
    }
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("{value} should be a text in quotes"))
}

fn size(value: &Value) -> Result<Bytes> {
    match value {
        Value::Integer(number) => Ok(number.to_string().parse()?),
        other => Ok(text(other)?.parse()?),
    }
}

fn method(value: &Value) -> Result<Method> {
    Ok(text(value)?.parse()?)
}

fn count(value: &Value) -> Result<u32> {
    value
        .as_integer()
        .and_then(|number| u32::try_from(number).ok())
        .with_context(|| format!("{value} is no whole number from 0 on"))
}

fn threads(value: &Value) -> Result<Threads> {
    match value {
        Value::String(word) => word.parse().map_err(anyhow::Error::msg),
        number => count(number).map(Threads::Count),
    }
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "cpus" {
            return Ok(Threads::Cpus);
        }
        text.parse()
            .map(Threads::Count)
            .map_err(|_| format!("'{text}' is no number of threads; write a whole number or 'cpus'"))
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
    fn the_shipped_questions_are_read() {
        for (name, text) in QUESTIONS {
            parse(name, text).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
    }

    #[test]
    fn a_single_value_is_a_list_of_one() {
        let plan = parse("test", "threads = 2\n[random-read]\nthreads = [1, \"cpus\"]").expect("plan");
        assert_eq!(plan.base.axes.threads, Some(vec![Threads::Count(2)]));
        let inner = &plan.base.by_workload[&Workload::RandomRead];
        assert_eq!(inner.threads, Some(vec![Threads::Count(1), Threads::Cpus]));
    }

    #[test]
    fn what_is_wrong_is_told_in_one_sentence() {
        assert_eq!(refused("tread = 1"), "unknown key 'tread'; the nearest known one is 'threads'");
        assert_eq!(
            refused("[quick]\nround = 3"),
            "in [quick]: unknown key 'round'; the nearest known one is 'rounds'"
        );
        assert_eq!(
            refused("[random-read]\nmethod = \"mmap\""),
            "in [random-read]: unknown key 'method'; the nearest known one is 'methods'"
        );
        assert!(refused("read_size = 4096").starts_with("in 'read_size': '4096' has no unit"));
        assert_eq!(refused("threads = []"), "'threads' is an empty list: there would be nothing to measure");
        assert_eq!(refused("rounds = [7, 9]"), "'rounds' takes one value, it is no axis");
        assert_eq!(refused("threads = -1"), "in 'threads': -1 is no whole number from 0 on");
        assert_eq!(refused("methods = 3"), "in 'methods': 3 should be a text in quotes");
        assert!(refused("cache = \"hot\"").starts_with("in 'cache': unknown cache state 'hot'"));
        assert!(refused("quick = 3").starts_with("'quick' is a table"));
        assert!(refused("threads = 1\nthreads = ").starts_with("line 2"));
        assert!(refused("seed = -3").starts_with("in 'seed': -3 is no whole number"));
    }
}
