//! The round of a run that a sample is of.

use pagewise_model::Plan;
use pagewise_model::random::mix;
use pagewise_protocol::Wait;

/// Facts of a round on this machine.
#[derive(Clone, Copy)]
pub struct SampleRound<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// Number of the round, from 0.
    pub number: u32,
    /// Size of a page.
    pub page_bytes: u64,
    /// Time limit of replies, and the order to stop.
    pub wait: Wait<'a>,
}

impl SampleRound<'_> {
    /// Seed of what differs from round to round.
    pub fn seed(&self) -> u64 {
        mix(self.plan.seed ^ u64::from(self.number))
    }
}
