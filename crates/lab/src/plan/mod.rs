//! From text to a resolved plan: a question or plan file, its quick or full variant, the command
//! line.
//!
//! Each is a [`Layer`] of choices; the topmost layer that chooses an axis decides it ([`resolve`]).
//! The result is a [`pagewise_model::Plan`], the only value that is printed, run and stored.

pub mod axes;
mod budget;
mod controls;
pub mod estimate;
pub mod machine;
mod matrix;
pub mod resolve;
pub mod shorten;
pub mod text;
pub mod validate;
pub mod victim;
mod works;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use anyhow::Context;
use pagewise_model::expectation::Expectation;
use pagewise_model::planned_table::PlannedTable;
use pagewise_model::{Bytes, SyncCall, Workload};

pub use axes::Axes;
pub use budget::ChosenBudget;

/// The shipped questions by name.
pub const QUESTIONS: &[(&str, &str)] = &[
    ("read", include_str!("../../questions/read.toml")),
    ("scan", include_str!("../../questions/scan.toml")),
    ("append", include_str!("../../questions/append.toml")),
    ("fill", include_str!("../../questions/fill.toml")),
    ("update", include_str!("../../questions/update.toml")),
    ("cliff", include_str!("../../questions/cliff.toml")),
    ("lucene", include_str!("../../questions/lucene.toml")),
    ("fleet", include_str!("../../questions/fleet.toml")),
];

/// The question about a trace, by name; it needs one.
pub const REPLAY: (&str, &str) = ("replay", include_str!("../../questions/replay.toml"));

/// A plan that cannot be resolved as it was typed, and can with one more argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingArgument {
    /// `--memory`: the sentence.
    MemoryLimit(String),
    /// `--memory`, for a size that is a multiple of the cache.
    MultipleOfCache,
    /// `--budget`, which is too short for the first rounds: the sentence.
    Time(String),
    /// `--evict`: the kind of run for which the user's own file leaves the page cache.
    Evict(&'static str),
}

impl fmt::Display for MissingArgument {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingArgument::MemoryLimit(sentence) | MissingArgument::Time(sentence) => formatter.write_str(sentence),
            MissingArgument::MultipleOfCache => formatter.write_str(
                "a size in multiples of the cache needs a memory limit: write --memory 256MiB, or the size in bytes",
            ),
            MissingArgument::Evict(run) => write!(
                formatter,
                "{run} evicts your file from the page cache, now and between samples, and other programs that read the file \
                 slow down then"
            ),
        }
    }
}

impl std::error::Error for MissingArgument {}

/// Threads as written in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// A number of threads.
    Count(u32),
    /// As many as there are CPUs.
    Cpus,
}

/// A size as written in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number of bytes.
    Exact(Bytes),
    /// A multiple of the cache capacity under the memory limit, in thousandths: `1.5x`.
    Times(u64),
}

/// A larger multiple of the cache is a typing error.
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
                "invalid multiple of the cache '{text}': write a number from 0.001 to {MAX_TIMES} before the x, as in 1.5x"
            )),
        }
    }
}

/// A setting of the machine that may be left unchanged: `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrNone<T>(pub Option<T>);

impl<T: FromStr> FromStr for OrNone<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text == "none" { Ok(OrNone(None)) } else { text.parse().map(|value| OrNone(Some(value))) }
    }
}

/// A sync call, or the `usual` one of each method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrUsual(pub Option<SyncCall>);

impl FromStr for OrUsual {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "usual" => Ok(OrUsual(None)),
            _ => text.parse().map(|call| OrUsual(Some(call))).map_err(|error| format!("{error}, usual")),
        }
    }
}

/// Parameters of sampling; never an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Samples of every method.
    pub rounds: Option<u32>,
    /// Time that the run may take; rounds go where the order of methods is in question.
    pub budget: Option<ChosenBudget>,
    /// True if they are fewer than a verdict needs: a trial of all else, which decides nothing.
    pub is_trial: bool,
    /// Duration of the throughput phase.
    pub sample_ns: Option<u64>,
    /// Seed of everything drawn.
    pub seed: Option<u64>,
    /// True if ceilings are measured; without them no bound is named.
    pub ceilings: Option<bool>,
    /// True if the first method of each comparison is measured twice; otherwise the variant
    /// decides.
    pub controls: Option<bool>,
    /// Search for the sizes of data at which the order of two methods changes, each to this many
    /// per cent.
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
    /// Parameters of sampling.
    pub sampling: Sampling,
    /// Limits that each method is to keep.
    pub expectations: Option<Vec<Expectation>>,
}

impl Layer {
    /// Choices for all workloads, and those for one.
    fn all_axes(&self) -> impl Iterator<Item = &Axes> {
        std::iter::once(&self.axes).chain(self.by_workload.values())
    }

    /// True if it sets a memory limit.
    pub fn limits_memory(&self) -> bool {
        self.all_axes().any(|axes| axes.memory.iter().flatten().any(|limit| limit.0.is_some()))
    }

    /// True if it says how large files are.
    pub fn chooses_files(&self) -> bool {
        self.all_axes().any(|axes| axes.file_size.is_some() || axes.span.is_some())
    }

    /// True if it says which methods do a workload.
    pub fn chooses_methods(&self, workload: Workload) -> bool {
        let axes = [Some(&self.axes), self.by_workload.get(&workload)];
        axes.into_iter().flatten().any(|axes| axes.methods.is_some())
    }
}

/// A question or plan file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanText {
    /// Name.
    pub name: String,
    /// True if its files are stored in memory unless a directory is named.
    pub in_memory: bool,
    /// Choices unless `--quick` or `--full` change them.
    pub base: Layer,
    /// Changes of `--quick`.
    pub quick: Layer,
    /// Changes of `--full`.
    pub full: Layer,
    /// Changes under a memory limit, where a sample takes seconds; `--full` has none.
    pub limited: Option<Layer>,
    /// Additional matrix, in all variants.
    pub also: Option<Layer>,
    /// The table of its comparisons.
    pub table: Option<PlannedTable>,
}

impl PlanText {
    /// Workloads as written.
    pub fn workloads(&self) -> Vec<Workload> {
        self.base.workload.clone().unwrap_or_else(|| resolve::DEFAULT_WORKLOADS.to_vec())
    }

    /// The question for a user's own file, which has its size, and whose cache is left unchanged
    /// unless the command line names a state.
    pub fn for_own_file(mut self) -> Self {
        for layer in [&mut self.base, &mut self.quick, &mut self.full].into_iter().chain(&mut self.limited) {
            for axes in std::iter::once(&mut layer.axes).chain(layer.by_workload.values_mut()) {
                (axes.cache, axes.file_size) = (None, None);
            }
        }
        self
    }
}

/// The names of the shipped questions.
pub fn question_names() -> String {
    QUESTIONS.iter().chain([&REPLAY]).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// A shipped question; `None`: there is none of this name.
pub fn question(name: &str) -> Option<anyhow::Result<PlanText>> {
    let (_, text) = QUESTIONS.iter().chain([&REPLAY]).find(|(known, _)| *known == name)?;
    Some(text::parse(name, text).with_context(|| format!("the question {name}")))
}
