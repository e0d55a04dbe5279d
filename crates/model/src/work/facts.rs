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
    /// Methods of a column of the workers' tables of methods.
    Column(usize),
    /// Of the native worker these accesses, with all options of its kind but some.
    Native {
        /// Names of the accesses.
        accesses: &'static [&'static str],
        /// Names of the options.
        without: &'static [&'static str],
        /// Workers besides.
        others: OtherWorkers,
    },
}

/// Workers that offer a workload besides the native one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherWorkers {
    /// Workers of users.
    OfUsers,
    /// The shipped ones, by a column of their tables; nothing proves the order of another.
    Shipped(usize),
}

/// Properties that all work of a workload has.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadFacts {
    /// Name of the workload as a title.
    pub title: &'static str,
    /// Name of the workload in a sentence.
    pub noun: &'static str,
    /// Name of one access.
    pub access: &'static str,
    /// Accesses of the workload.
    pub kind: WorkloadKind,
    /// Methods of the workload.
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
