//! The table that a plan may ask for: methods as rows, threads or sizes of the data as columns,
//! compared with a baseline method.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::format::{bytes, multiple};
use crate::method::Method;
use crate::units::Bytes;

/// The quantity that columns vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableColumns {
    /// The number of threads.
    Threads,
    /// The size of the data: as a multiple of the cache if a memory limit leaves one.
    Data,
}

/// A table that a plan asks for. A method is written as in the plan, or without its worker to match
/// that of any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlannedTable {
    /// The quantity that columns vary.
    pub columns: TableColumns,
    /// The baseline: the method compared with others.
    pub baseline: Option<String>,
    /// The methods it is compared with, of the same worker; all if none is named.
    #[serde(default)]
    pub against: Vec<String>,
    /// Methods for which the effect of the columns and the waiting time are explained.
    #[serde(default)]
    pub explain: Vec<String>,
}

/// Value of a column.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum TableColumn {
    /// Number of threads.
    Threads(u32),
    /// Multiple of the cache that a memory limit leaves.
    OfCache(f64),
    /// Bytes.
    Bytes(Bytes),
}

impl TableColumn {
    /// Sort key of columns.
    pub fn position(self) -> f64 {
        match self {
            TableColumn::Threads(threads) => f64::from(threads),
            TableColumn::OfCache(ratio) => ratio,
            TableColumn::Bytes(bytes) => bytes.0 as f64,
        }
    }

    /// Number alone, for lists.
    pub fn number(self) -> String {
        match self {
            TableColumn::Threads(threads) => threads.to_string(),
            TableColumn::OfCache(ratio) => multiple(ratio),
            TableColumn::Bytes(size) => bytes(size),
        }
    }
}

/// `1 thread`, `4 threads`, `data 0.5x the cache`, `data of 64 MiB`.
impl fmt::Display for TableColumn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableColumn::Threads(1) => write!(formatter, "1 thread"),
            TableColumn::Threads(_) => write!(formatter, "{} threads", self.number()),
            TableColumn::OfCache(_) => write!(formatter, "data {} the cache", self.number()),
            TableColumn::Bytes(_) => write!(formatter, "data of {}", self.number()),
        }
    }
}

impl PlannedTable {
    /// True if a plan's word names the method.
    pub fn names(word: &str, method: &str) -> bool {
        word == method || method.split_once('/').is_some_and(|(_, rest)| rest == word)
    }

    /// True if the effect of the columns on the method is explained.
    pub fn explains(&self, method: &str) -> bool {
        self.explain.iter().any(|word| Self::names(word, method))
    }

    /// The baseline among `methods`, and those it is compared with: of the first worker that has
    /// both.
    pub fn pairs<'a>(&self, methods: &'a [String]) -> Option<(&'a str, Vec<&'a str>)> {
        let worker = |method: &str| method.parse::<Method>().ok().map(|method| method.worker().clone());
        let word = self.baseline.as_deref()?;
        methods.iter().filter(|method| Self::names(word, method)).find_map(|baseline| {
            let others = || {
                methods
                    .iter()
                    .filter(|method| *method != baseline && worker(method) == worker(baseline))
                    .map(String::as_str)
            };
            let named = |word: &String| others().find(|method| Self::names(word, method));
            let against: Vec<&str> = match self.against.is_empty() {
                true => others().collect(),
                false => self.against.iter().filter_map(named).collect(),
            };
            (!against.is_empty()).then_some((baseline.as_str(), against))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_with_their_worker_or_without() {
        let methods = ["pread", "jvm/mmap", "jvm/pread", "jvm/filechannel:direct-buffer"].map(String::from);
        let planned = |against: &[&str]| PlannedTable {
            columns: TableColumns::Threads,
            baseline: Some("pread".into()),
            against: against.iter().map(ToString::to_string).collect(),
            explain: vec!["filechannel:direct-buffer".into()],
        };
        // The native worker has no method to compare pread with.
        assert_eq!(planned(&["mmap"]).pairs(&methods), Some(("jvm/pread", vec!["jvm/mmap"])));
        let all = planned(&[]).pairs(&methods).expect("a pair");
        assert_eq!(all, ("jvm/pread", vec!["jvm/mmap", "jvm/filechannel:direct-buffer"]));
        assert_eq!(planned(&["uring"]).pairs(&methods), None);
        assert!(planned(&[]).explains(&methods[3]) && !planned(&[]).explains("jvm/filechannel:heap-buffer"));
    }

    #[test]
    fn columns_have_words_and_an_order() {
        let words = [
            TableColumn::Threads(1),
            TableColumn::Threads(4),
            TableColumn::OfCache(0.5),
            TableColumn::Bytes(Bytes::mib(64)),
        ];
        assert_eq!(
            words.map(|column| column.to_string()),
            ["1 thread", "4 threads", "data 0.5x the cache", "data of 64 MiB"]
        );
        assert!(TableColumn::OfCache(0.5).position() < TableColumn::OfCache(2.0).position());
    }
}
