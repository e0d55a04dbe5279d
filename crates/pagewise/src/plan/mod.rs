//! From text to a resolved plan: a question or plan file, its quick or full variant, the command line.
//!
//! Each is a [`Layer`] of choices; the topmost layer that chooses an axis decides it ([`resolve`]). What comes
//! out is a [`pagewise_model::Plan`], the one value that is printed, run and stored.

pub mod axes;
mod controls;
pub mod estimate;
pub mod resolve;
pub mod text;
mod validate;

use std::collections::BTreeMap;
use std::str::FromStr;

use pagewise_model::pivot::Pivot;
use pagewise_model::{Bytes, Workload};

pub use axes::Axes;

/// The shipped questions by name.
pub const QUESTIONS: &[(&str, &str)] = &[
    ("read", include_str!("../../../../questions/read.toml")),
    ("scan", include_str!("../../../../questions/scan.toml")),
    ("append", include_str!("../../../../questions/append.toml")),
    ("fill", include_str!("../../../../questions/fill.toml")),
    ("cliff", include_str!("../../../../questions/cliff.toml")),
    ("lucene", include_str!("../../../../questions/lucene.toml")),
];

/// Threads as a plan says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// So many.
    Count(u32),
    /// As many as there are CPUs.
    Cpus,
}

/// A size as a plan says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many bytes.
    Exact(Bytes),
    /// A multiple of the cache capacity under the memory limit, in thousandths: `1.5x`.
    Times(u64),
}

/// More than this many times the cache is a slip of the pen.
const MAX_TIMES: f64 = 1000.0;

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(number) = text.strip_suffix('x') else {
            return text.parse().map(Size::Exact).map_err(|error| format!("{error}"));
        };
        match number.parse::<f64>() {
            Ok(times) if (0.001..=MAX_TIMES).contains(&times) => {
                Ok(Size::Times((times * 1000.0).round() as u64))
            }
            _ => Err(format!(
                "'{text}' is no multiple of the cache; write a number from 0.001 to {MAX_TIMES} before the x, as in 1.5x"
            )),
        }
    }
}

/// A setting of the machine that may be left alone: `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrNone<T>(pub Option<T>);

impl<T: FromStr> FromStr for OrNone<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text == "none" { Ok(OrNone(None)) } else { text.parse().map(|value| OrNone(Some(value))) }
    }
}

/// How to sample; never an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Samples of every cell.
    pub rounds: Option<u32>,
    /// Length of the throughput phase.
    pub sample_ns: Option<u64>,
    /// Length of the latency phase.
    pub latency_ns: Option<u64>,
    /// Seed of everything drawn.
    pub seed: Option<u64>,
    /// Whether ceilings are measured; without them no bound is named.
    pub ceilings: Option<bool>,
    /// Look for the sizes of data at which two methods change places, each to this many per cent.
    pub crossing_percent: Option<u32>,
}

/// One source of choices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    /// Workloads.
    pub workload: Option<Vec<Workload>>,
    /// Choices for all workloads.
    pub axes: Axes,
    /// Choices for one.
    pub by_workload: BTreeMap<Workload, Axes>,
    /// How to sample.
    pub sampling: Sampling,
}

/// A question or plan file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanText {
    /// Its name.
    pub name: String,
    /// Whether its files lie in memory unless a directory is named.
    pub in_memory: bool,
    /// What holds unless `--quick`, `--full` or `--published` change it.
    pub base: Layer,
    /// What `--quick` changes.
    pub quick: Layer,
    /// What `--full` changes.
    pub full: Layer,
    /// The matrix of the published study, if there is one.
    pub published: Option<Layer>,
    /// What is measured besides, over all variants but the published one.
    pub also: Option<Layer>,
    /// The table that its comparisons are laid out as.
    pub pivot: Option<Pivot>,
}

impl PlanText {
    /// The question as it is asked of a user's own file, which has its size, and whose cache is left as it is unless the
    /// command line names a state.
    pub fn for_own_file(mut self) -> Self {
        for layer in [&mut self.base, &mut self.quick, &mut self.full].into_iter().chain(&mut self.published)
        {
            for axes in std::iter::once(&mut layer.axes).chain(layer.by_workload.values_mut()) {
                (axes.cache, axes.file_size) = (None, None);
            }
        }
        self
    }
}
