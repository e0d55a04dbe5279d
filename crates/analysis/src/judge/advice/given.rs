//! The result types of advice, and the price of simplicity.

use serde::Serialize;

use super::insight::Insight;
use super::note::{Buffers, Note};
use super::stall::HeldUp;
use crate::judge::bound::Bound;
use crate::judge::comparison::ComparedConditions;

/// The price that simplicity is worth: a simpler method is recommended if it is at most this share
/// slower than the leader.
pub const PRICE_OF_SIMPLICITY: f64 = 0.05;

/// Recommendation for one set of conditions.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Recommendation {
    /// The conditions it applies to.
    pub conditions: ComparedConditions,
    /// Recommended method; `None` if the data do not support a recommendation.
    pub recommended: Option<String>,
    /// The other methods that are not behind the leader.
    pub alternatives: Vec<String>,
    /// Alternatives that are simpler than the recommended method.
    #[serde(skip)]
    pub simpler: Vec<String>,
    /// The bound of the recommended method.
    #[serde(skip)]
    pub limit: Option<Bound>,
    /// The meaning of the result beyond the choice.
    #[serde(skip)]
    pub insight: Option<Insight>,
    /// Explanations of the result.
    #[serde(skip)]
    pub notes: Vec<Note>,
    /// Effects of methods on everything else in their process, empty for a run without
    /// heartbeats.
    #[serde(skip)]
    pub stalls: Vec<HeldUp>,
}

impl Recommendation {
    /// Buffers that are as good as the best, if methods of an append differ in that.
    pub fn buffers(&self) -> impl Iterator<Item = &Buffers> {
        self.notes.iter().filter_map(|note| match note {
            Note::Buffers(buffers) => Some(buffers),
            _ => None,
        })
    }
}
