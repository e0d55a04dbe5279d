//! Effects of a method on everything else in its process: delays of heartbeats while it worked,
//! compared with an idle worker.

use std::collections::BTreeMap;

use pagewise_model::groups::distinct;
use pagewise_model::{Delays, Evidence};
use serde::Serialize;

/// Heartbeats of one kind, merged over all valid samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Stall {
    /// Kind of heartbeat: `thread`, `virtual-thread`, `safepoint`, `goroutine`, or a word of the
    /// user's own worker.
    pub kind: String,
    /// Delays while the worker was idle: the baseline; `None` if no beat was recorded.
    pub idle: Option<Lateness>,
    /// Delays within the measured region.
    pub busy: Lateness,
    /// Beats within measured regions.
    pub beats: u64,
}

/// Delays of heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Lateness {
    /// Half of the beats were late by at most this.
    pub p50_ns: u64,
    /// 99 of 100 were.
    pub p99_ns: u64,
    /// 999 of 1,000 were; `None` below 1,000 beats, which do not support it.
    pub p999_ns: Option<u64>,
    /// The longest delay.
    pub max_ns: u64,
    /// Beats.
    pub beats: u64,
}

impl Stall {
    /// Merge each kind that beat in a measured region, in the worker's order; `None` for a run
    /// without heartbeats.
    pub(super) fn merged(evidence: &[&Evidence]) -> Option<Vec<Self>> {
        let heartbeats = evidence.iter().flat_map(|seen| &seen.heartbeats);
        let kinds: Vec<&str> = distinct(heartbeats.map(|beats| beats.kind.as_str()));
        let of_kind = |kind: &&str| {
            let all =
                || evidence.iter().flat_map(|seen| &seen.heartbeats).filter(|beats| beats.kind == *kind);
            let busy = Lateness::merged(all().map(|beats| &beats.busy))?;
            let idle = Lateness::merged(all().map(|beats| &beats.idle));
            Some(Self { kind: kind.to_string(), idle, beats: busy.beats, busy })
        };
        let stalls: Vec<Self> = kinds.iter().filter_map(of_kind).collect();
        (!stalls.is_empty()).then_some(stalls)
    }
}

/// The kind with the longest p99 delay.
pub fn worst(stalls: &[Stall]) -> Option<&Stall> {
    stalls.iter().rev().max_by_key(|stall| (stall.busy.p99_ns, stall.busy.max_ns))
}

impl Lateness {
    /// Merge all histograms, by the upper ends of their buckets; `None` without a beat.
    pub fn merged<'a>(delays: impl IntoIterator<Item = &'a Delays>) -> Option<Self> {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for delays in delays {
            for (upper_ns, count) in delays.ns.iter().zip(&delays.counts).filter(|(_, count)| **count > 0) {
                let all = counts.entry(*upper_ns).or_default();
                *all = all.saturating_add(*count);
            }
        }
        let beats = counts.values().fold(0u64, |total, count| total.saturating_add(*count));
        let max_ns = *counts.keys().next_back()?;
        let at = |share: f64| {
            let wanted = ((beats as f64 * share).ceil() as u64).max(1);
            let mut seen = 0u64;
            let reached = counts.iter().find(|(_, count)| {
                seen = seen.saturating_add(**count);
                seen >= wanted
            });
            reached.map_or(max_ns, |(upper_ns, _)| *upper_ns)
        };
        Some(Self {
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            p999_ns: (beats >= 1000).then(|| at(0.999)),
            max_ns,
            beats,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::Heartbeat;

    fn delays(buckets: &[(u64, u64)]) -> Delays {
        let (ns, counts) = buckets.iter().copied().unzip();
        Delays { ns, counts }
    }

    #[test]
    fn quantiles_are_of_all_beats_together() {
        let (first, second) = (delays(&[(50, 600), (90, 300)]), delays(&[(50, 99), (9000, 1)]));
        let found = Lateness::merged([&first, &second]).expect("beats");
        assert_eq!((found.p50_ns, found.p99_ns, found.p999_ns, found.max_ns), (50, 90, Some(90), 9000));
        let few = Lateness::merged([&second]).expect("beats");
        assert_eq!((few.p99_ns, few.p999_ns, few.max_ns, few.beats), (50, None, 9000, 100));
        assert_eq!(Lateness::merged([&delays(&[(9, 0)])]), None);
    }

    #[test]
    fn kinds_stay_apart_and_the_worst_is_named() {
        let beats = |kind: &str, late: u64| Heartbeat {
            kind: kind.into(),
            idle: delays(&[(40, 10)]),
            busy: delays(&[(late, 10)]),
        };
        let seen = Evidence {
            heartbeats: vec![beats("thread", 70), beats("safepoint", 700), beats("virtual-thread", 80)],
            ..Evidence::default()
        };
        let silent = Evidence::default();
        let stalls = Stall::merged(&[&seen, &silent, &seen]).expect("heartbeats");
        let kinds: Vec<&str> = stalls.iter().map(|stall| stall.kind.as_str()).collect();
        assert_eq!(kinds, ["thread", "safepoint", "virtual-thread"]);
        assert_eq!(worst(&stalls).map(|stall| (stall.kind.as_str(), stall.beats)), Some(("safepoint", 20)));
        assert_eq!(stalls[0].idle.map(|idle| (idle.p99_ns, idle.beats)), Some((40, 20)));
        assert_eq!(Stall::merged(&[&silent]), None);
    }
}
