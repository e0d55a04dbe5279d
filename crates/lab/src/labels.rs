//! Labels: facts of a run that its user names, and the job of a scheduler that it is a part of.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, ensure};
use pagewise_analysis::facts;

/// The environment variable with labels, separated by commas.
const VARIABLE: &str = "PAGEWISE_LABELS";
/// Variables by which a scheduler names its job.
const OF_SCHEDULERS: [(&str, &str); 2] =
    [("SLURM_JOB_ID", "slurm-job-id"), ("SLURM_ARRAY_TASK_ID", "slurm-array-task-id")];
const MOST_BYTES: usize = 200;

/// A label as it is typed: `rack=a4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    key: String,
    value: String,
}

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err("write KEY=VALUE, as in rack=a4".to_string());
        };
        let is_key = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !key.starts_with(|first: char| first.is_ascii_lowercase()) || !key.bytes().all(is_key) {
            return Err(format!("the name '{key}' is not of small letters, digits and hyphens"));
        }
        if facts::is_fact(key) {
            return Err(format!("'{key}' is a fact that pagewise finds by itself: choose another name"));
        }
        if value.is_empty() || value.chars().any(char::is_control) || text.len() > MOST_BYTES {
            return Err(format!("a value is a line of 1 to {MOST_BYTES} bytes, with its name"));
        }
        Ok(Self { key: key.to_string(), value: value.to_string() })
    }
}

/// The labels of a run. What is typed comes before what the environment says.
pub fn all(typed: &[Label]) -> Result<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    for (variable, key) in OF_SCHEDULERS {
        if let Ok(value) = std::env::var(variable) {
            // One that is no label is not from a scheduler.
            labels.extend(format!("{key}={value}").parse().ok().map(pair));
        }
    }
    if let Some(text) = std::env::var_os(VARIABLE) {
        let text = text.into_string().map_err(|_| anyhow!("invalid {VARIABLE}: it is not UTF-8"))?;
        let parse = |one: &str| one.trim().parse::<Label>().map_err(anyhow::Error::msg);
        let named = text.split(',').filter(|one| !one.trim().is_empty());
        let named: Vec<Label> = named
            .map(parse)
            .collect::<Result<_>>()
            .with_context(|| format!("invalid {VARIABLE} '{text}'"))?;
        labels.extend(distinct(&named, VARIABLE)?);
    }
    labels.extend(distinct(typed, "--label")?);
    Ok(labels)
}

fn pair(Label { key, value }: Label) -> (String, String) {
    (key, value)
}

/// Labels of one source, which has each name once.
fn distinct(labels: &[Label], source: &str) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for Label { key, value } in labels {
        let earlier = all.insert(key.clone(), value.clone());
        ensure!(earlier.is_none(), "{source} has the name '{key}' twice: write it once");
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_name_and_a_value() {
        let pair = |text: &str| text.parse::<Label>().map(pair);
        assert_eq!(pair("rack=a=4"), Ok(("rack".to_string(), "a=4".to_string())));
        for text in ["rack", "=a", "Rack=a", "4=a", "r ack=a", "rack=", "rack=a\nb", "kernel=6", "sample=a"] {
            assert!(pair(text).is_err(), "{text}");
        }
        let twice: Vec<Label> = ["a=1", "a=2"].map(|text| text.parse().expect("a label")).to_vec();
        assert!(distinct(&twice, "--label").is_err());
    }
}
