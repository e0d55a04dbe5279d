//! The result types of advice, and the noise above which there is none.

use pagewise_model::Bytes;
use serde::Serialize;

use crate::judge::comparison::{ComparedConditions, Comparison};

/// A tie with more noise than this, as a share, gives no advice: the machine decided, not the methods.
pub const UNSTEADY: f64 = 0.5;

/// Methods of one comparison that differ only in their buffer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Buffers {
    /// The method without its buffer: `mmap:prealloc`.
    pub base: String,
    /// The smallest buffer that is as good as the best; 0: none needed.
    pub smallest_bytes: Bytes,
    /// The largest buffer up to which all are as good.
    pub largest_bytes: Bytes,
    /// The best buffer; 0: none.
    pub best_bytes: Bytes,
    /// Nanoseconds per record with the best.
    pub best_ns_per_op: f64,
    /// Buffers that these rounds show neither as good as the best nor as worse.
    pub unclear_bytes: Vec<Bytes>,
    /// All of it as a sentence.
    pub sentence: String,
}

/// Recommendation for one set of conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// The conditions it applies to.
    pub conditions: ComparedConditions,
    /// Recommended method; `None` if the data do not support a recommendation.
    pub recommended: Option<String>,
    /// Methods that are not distinguishable from it.
    pub alternatives: Vec<String>,
    /// Reason that nothing is recommended; `None` if something is.
    pub reason: Option<String>,
    /// All of it as a sentence.
    pub sentence: String,
    /// The meaning of the result beyond the choice, without a full stop: the remaining potential of a cold scan, the
    /// gain and the moved cost of prefaulting a fill. It is shown as a sentence among the notes.
    pub insight: Option<String>,
    /// Buffers that are as good as the best, if methods of an append differ in that.
    pub buffers: Vec<Buffers>,
    /// Explanations of the result, one sentence each.
    pub notes: Vec<String>,
    /// Effects of methods on everything else in their process, one sentence each; empty for a run without heartbeats.
    pub stalls: Vec<String>,
}

pub(super) fn unsteady(comparison: &Comparison) -> Option<String> {
    let noise = comparison.noise.filter(|noise| *noise > UNSTEADY)?;
    Some(format!("the machine was too unsteady: a method measured twice differed by {:.0} %", noise * 100.0))
}
