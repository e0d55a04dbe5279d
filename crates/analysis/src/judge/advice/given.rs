//! The result types of advice, and the price of simplicity.

use pagewise_model::Bytes;
use serde::Serialize;

use crate::judge::comparison::ComparedConditions;

/// The price that simplicity is worth: a simpler method is recommended if it is at most this share
/// slower than the leader.
pub const PRICE_OF_SIMPLICITY: f64 = 0.05;

/// Methods of one comparison that differ only in their buffer.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Buffers {
    /// The method without its buffer: `mmap:prealloc`.
    pub base: String,
    /// The smallest buffer from which on, up to the best, all are within `bound`; 0: none needed.
    pub smallest_bytes: Bytes,
    /// The largest buffer up to which all are within `bound`.
    pub largest_bytes: Bytes,
    /// The most that any of those may be slower than the best, as a share; 0 if there is only the
    /// best.
    pub bound: f64,
    /// The best buffer; 0: none.
    pub best_bytes: Bytes,
    /// Nanoseconds per record with the best.
    pub best_ns_per_op: f64,
    /// Buffers outside of that range which these rounds do not show to be slower.
    pub unclear_bytes: Vec<Bytes>,
    /// All of it as a sentence.
    pub sentence: String,
}

/// Recommendation for one set of conditions.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Recommendation {
    /// The conditions it applies to.
    pub conditions: ComparedConditions,
    /// Recommended method; `None` if the data do not support a recommendation.
    pub recommended: Option<String>,
    /// The other methods that are not behind the leader.
    pub alternatives: Vec<String>,
    /// Reason that nothing is recommended; `None` if something is.
    pub reason: Option<String>,
    /// All of it as a sentence.
    pub sentence: String,
    /// The meaning of the result beyond the choice, without a full stop: the remaining potential of
    /// a cold scan, the gain and the moved cost of prefaulting a fill. It is shown as a sentence
    /// among the notes.
    pub insight: Option<String>,
    /// Buffers that are as good as the best, if methods of an append differ in that.
    pub buffers: Vec<Buffers>,
    /// Explanations of the result, one sentence each.
    pub notes: Vec<String>,
    /// Effects of methods on everything else in their process, one sentence each; empty for a run
    /// without heartbeats.
    pub stalls: Vec<String>,
}
