//! Heartbeats of a sample: what the worker reports of the time in which it idles, and of the
//! sample.

use pagewise_model::{Delays, Failure, FailureKind, Heartbeat};
use pagewise_protocol::{ConversationError, Heartbeats};

/// Delays of the beats of each kind, idle and at work.
pub(super) fn heartbeats(idle: &Heartbeats, busy: &Heartbeats) -> Result<Vec<Heartbeat>, ConversationError> {
    let by_kind = |beats: &Heartbeats| {
        beats.by_kind().map_err(|detail| {
            ConversationError::Broken(Failure { kind: FailureKind::WorkerNonsense, detail })
        })
    };
    let (idle, busy) = (by_kind(idle)?, by_kind(busy)?);
    let delays_of = |beats: &[(String, Delays)], kind: &str| {
        beats.iter().find(|(of, _)| of == kind).map(|(_, delays)| delays.clone())
    };
    // A kind that only one of them names has no beat in the other.
    let only_idle = idle.iter().filter(|(kind, _)| delays_of(&busy, kind).is_none());
    let of_kind = |(kind, _): &(String, Delays)| Heartbeat {
        kind: kind.clone(),
        idle: delays_of(&idle, kind).unwrap_or_default(),
        busy: delays_of(&busy, kind).unwrap_or_default(),
    };
    Ok(busy.iter().chain(only_idle).map(of_kind).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beats(kinds: &str) -> Heartbeats {
        let count = kinds.split(',').filter(|kind| !kind.is_empty()).count();
        Heartbeats {
            heartbeat_kinds: kinds.to_string(),
            heartbeat_buckets: vec![1; count],
            heartbeat_ns: vec![1000; count],
            heartbeat_counts: vec![7; count],
        }
    }

    #[test]
    fn a_kind_that_is_reported_of_one_interval_only_has_no_beat_in_the_other() {
        let kinds_of = |idle: &str, busy: &str| {
            let of_kind = |beat: Heartbeat| (beat.kind, beat.idle.counts.len(), beat.busy.counts.len());
            let found = heartbeats(&beats(idle), &beats(busy)).expect("histograms");
            found.into_iter().map(of_kind).collect::<Vec<_>>()
        };
        let kind = |name: &str, idle, busy| (name.to_string(), idle, busy);
        assert_eq!(kinds_of("thread", "thread"), [kind("thread", 1, 1)]);
        assert_eq!(kinds_of("fiber", "thread"), [kind("thread", 0, 1), kind("fiber", 1, 0)]);
        assert_eq!(kinds_of("", ""), []);
    }
}
