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
    /// Time of the operations on the actor's clock.
    pub elapsed_ns: u64,
    /// Reads or records that were done.
    pub operations: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
    /// True if the checksum is that of these reads; that of records is not known before they are
    /// read back.
    pub is_right: bool,
}

/// Records of an actor, over all of its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ActorWrites {
    /// Records that it says it wrote.
    pub records: u64,
    /// Syncs that it says it made.
    pub syncs: u64,
    /// Most bytes of its file that were dirty after an answer, when all is to be on the device;
    /// `None`: unknown.
    pub dirty_most_bytes: Option<u64>,
    /// Bytes of the records that are not in the file.
    pub missing_bytes: u64,
    /// Position of the first of them.
    pub first_missing_at: Option<u64>,
}

/// Activity of an actor around the measured region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ActorEvidence {
    /// Bytes that it had read or written when the region began.
    pub bytes_before: u64,
    /// Requests of the actor that overlap the region, or the 50 ms before it, in their order.
    pub windows: Vec<ActorWindow>,
    /// Bytes that storage read for it in the region; `None`: unknown.
    pub device_read_bytes: Option<u64>,
    /// True if it was in the same cgroups as the worker before the region and after it; `None`:
    /// unknown.
    pub is_in_group: Option<bool>,
    /// Records of the actor, if it writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<ActorWrites>,
}

impl ActorEvidence {
    /// Time in which an actor is seen at work: that before a shorter region is added to it.
    pub const SHORTEST_NS: u64 = 50_000_000;

    /// Operations from `from_ns` to `to_ns` of the region, if those of a request are spread evenly.
    pub fn operations_within(&self, from_ns: f64, to_ns: f64) -> f64 {
        self.within(from_ns, to_ns, |window| window.operations as f64)
    }

    /// Bytes that were read or written from `from_ns` to `to_ns`, likewise.
    pub fn bytes_within(&self, from_ns: f64, to_ns: f64) -> f64 {
        self.within(from_ns, to_ns, |window| window.bytes as f64)
    }

    /// Bytes that were read or written before the region, likewise.
    pub fn bytes_at_begin(&self) -> f64 {
        let has_ended = |window: &ActorWindow| window.began_ns.saturating_add(window.wall_ns as i64) <= 0;
        let ended: f64 =
            self.windows.iter().filter(|window| has_ended(window)).map(|window| window.bytes as f64).sum();
        self.bytes_before as f64 + self.bytes_within(f64::NEG_INFINITY, 0.0) - ended
    }

    /// Bytes of the requests that lie in a region of `region_ns`, and of all that overlap it.
    pub fn bounds_of_bytes(&self, region_ns: u64) -> (u64, u64) {
        let end = |window: &ActorWindow| window.began_ns.saturating_add(window.wall_ns as i64);
        let sum = |is_of: &dyn Fn(&ActorWindow) -> bool| {
            self.windows.iter().filter(|window| is_of(window)).map(|window| window.bytes).sum()
        };
        let is_inside = |window: &ActorWindow| window.began_ns >= 0 && end(window) <= region_ns as i64;
        let overlaps = |window: &ActorWindow| end(window) > 0 && window.began_ns < region_ns as i64;
        (sum(&is_inside), sum(&overlaps))
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

    #[test]
    fn bytes_of_a_region_have_bounds() {
        let window =
            |began_ns, bytes| ActorWindow { began_ns, wall_ns: 100, bytes, ..ActorWindow::default() };
        let windows = vec![window(-150, 1), window(-50, 2), window(60, 4), window(170, 8), window(290, 16)];
        let evidence = ActorEvidence { windows, ..ActorEvidence::default() };
        assert_eq!(evidence.bounds_of_bytes(280), (4 + 8, 2 + 4 + 8));
        assert_eq!(evidence.bounds_of_bytes(200), (4, 2 + 4 + 8));
        let begun = ActorEvidence { bytes_before: 100, ..evidence };
        assert_eq!(begun.bytes_at_begin(), 101.0, "with half of the one that overlaps");
    }
}
