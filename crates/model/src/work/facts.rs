//! Properties that all work of a workload has.

use crate::content::Content;

/// Workloads that accept the same options of methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// Reads, by a table of offsets.
    Reads,
    /// A pass over the file by calls or through a mapping, piece by piece.
    Scans,
    /// Records or blocks of one size.
    Writes,
}

/// The methods of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Those of a column of the workers' tables of methods.
    Column(usize),
    /// These accesses, with all options of its kind but some: other shipped workers do not do it.
    Native {
        /// Names of the accesses.
        accesses: &'static [&'static str],
        /// Names of the options.
        without: &'static [&'static str],
        /// True if a user's worker may offer it too; otherwise nothing proves its order.
        by_users: bool,
    },
}

/// Properties that all work of a workload has.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadFacts {
    /// Its name as a title.
    pub title: &'static str,
    /// Its name in a sentence.
    pub noun: &'static str,
    /// Name of one access.
    pub access: &'static str,
    /// Its accesses.
    pub kind: WorkloadKind,
    /// Its methods.
    pub offer: Offer,
    /// True if its work is done once.
    pub is_one_shot: bool,
    /// True if a dataset is usually not cached.
    pub starts_cold: bool,
    /// Default content of its dataset.
    pub usual_content: Content,
    /// Methods that are compared if none are named.
    pub usual_methods: &'static [&'static str],
    /// Axes besides those of all workloads.
    pub axes: &'static [&'static str],
}
