//! A piece of advice, and when the machine was too unsteady for one.

use pagewise_model::Bytes;
use serde::Serialize;

use crate::judge::comparison::{ComparedConditions, Comparison};

/// A tie with more noise than this, as a share, carries no advice: the machine decided and not the methods.
pub const UNSTEADY: f64 = 0.5;

/// Methods of one comparison that differ by their buffer alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Buffers {
    /// The method without its buffer: `mmap:prealloc`.
    pub base: String,
    /// The smallest buffer that is as good as the best; 0: none is needed.
    pub smallest_bytes: Bytes,
    /// The largest of those that are, without a gap.
    pub largest_bytes: Bytes,
    /// The best; 0: no buffer.
    pub best_bytes: Bytes,
    /// Nanoseconds that a record takes with the best.
    pub best_ns_per_op: f64,
    /// Buffers that these rounds can neither put beside the best nor behind it.
    pub unclear_bytes: Vec<Bytes>,
    /// All of it as a sentence.
    pub sentence: String,
}

/// What to choose under some conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// Where it holds.
    pub conditions: ComparedConditions,
    /// What to use; `None` where the data carry no advice.
    pub recommended: Option<String>,
    /// Methods that cannot be told from it.
    pub alternatives: Vec<String>,
    /// Why nothing is recommended; `None` where something is.
    pub reason: Option<String>,
    /// All of it as a sentence.
    pub sentence: String,
    /// What the result means beyond the choice, without a full stop: of a cold scan what is left to be gained, of a fill what
    /// prefaulting gains and moves. It stands among the notes as a sentence.
    pub insight: Option<String>,
    /// Which buffers are as good as the best, where methods of an append differ by that.
    pub buffers: Vec<Buffers>,
    /// What explains the result, one sentence each.
    pub notes: Vec<String>,
    /// What methods do to everything else in their process, one sentence each; nothing of a run without heartbeats.
    pub stalls: Vec<String>,
}

pub(super) fn unsteady(comparison: &Comparison) -> Option<String> {
    let noise = comparison.noise.filter(|noise| *noise > UNSTEADY)?;
    Some(format!("the machine was too unsteady: a method measured twice differed by {:.0} %", noise * 100.0))
}
