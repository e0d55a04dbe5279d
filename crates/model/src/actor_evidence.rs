//! Evidence of an actor: another program at work beside the measured one.

use serde::{Deserialize, Serialize};

/// A request of the supervisor to an actor, and the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ActorWindow {
    /// From `go` of the measured region to this request, on the supervisor's clock; negative
    /// before.
    pub began_ns: i64,
    /// From the request to the answer, on the supervisor's clock.
    pub wall_ns: u64,
    /// Time of the reads on the actor's clock.
    pub elapsed_ns: u64,
    /// Reads that were done.
    pub operations: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// True if the checksum is that of these reads.
    pub is_right: bool,
}

/// Activity of an actor around the measured region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ActorEvidence {
    /// Bytes that it had read when the region began.
    pub bytes_before: u64,
    /// Its requests that overlap the region, or the [`ActorEvidence::SHORTEST_NS`] before it, in
    /// their order.
    pub windows: Vec<ActorWindow>,
    /// Bytes that storage read for it in the region; `None`: unknown.
    pub device_read_bytes: Option<u64>,
    /// True if it was in the same cgroups as the worker before the region and after it; `None`:
    /// unknown.
    pub is_in_group: Option<bool>,
}

impl ActorEvidence {
    /// Time in which an actor is seen at work: that before a shorter region is added to it.
    pub const SHORTEST_NS: u64 = 50_000_000;

    /// Reads from `from_ns` to `to_ns` of the region, if those of a request are spread evenly.
    pub fn operations_within(&self, from_ns: f64, to_ns: f64) -> f64 {
        self.within(from_ns, to_ns, |window| window.operations as f64)
    }

    /// Bytes that were read from `from_ns` to `to_ns`, likewise.
    pub fn bytes_within(&self, from_ns: f64, to_ns: f64) -> f64 {
        self.within(from_ns, to_ns, |window| window.bytes as f64)
    }

    /// Time from `from_ns` to `to_ns` of the region in which a request was served.
    pub fn busy_within(&self, from_ns: f64, to_ns: f64) -> f64 {
        self.within(from_ns, to_ns, |window| window.wall_ns as f64)
    }

    fn within(&self, from_ns: f64, to_ns: f64, of: impl Fn(&ActorWindow) -> f64) -> f64 {
        let part = |window: &ActorWindow| {
            let begin = window.began_ns as f64;
            let end = begin + window.wall_ns as f64;
            let overlap = (end.min(to_ns) - begin.max(from_ns)).max(0.0);
            of(window) * overlap / (window.wall_ns as f64).max(1.0)
        };
        self.windows.iter().map(part).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_for_the_part_of_it_that_overlaps() {
        let window = |began_ns, operations| ActorWindow {
            began_ns,
            wall_ns: 100,
            operations,
            ..ActorWindow::default()
        };
        let evidence =
            ActorEvidence { windows: vec![window(-50, 10), window(60, 20)], ..ActorEvidence::default() };
        assert_eq!(evidence.operations_within(0.0, 200.0), 25.0);
        assert_eq!(evidence.operations_within(0.0, 50.0), 5.0);
        assert_eq!(evidence.operations_within(50.0, 60.0), 0.0);
        assert_eq!(evidence.busy_within(0.0, 100.0), 90.0);
    }
}
