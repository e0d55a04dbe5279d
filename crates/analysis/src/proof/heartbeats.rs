//! Validity of a sample's heartbeats.
//!
//! A heartbeat sleeps for its interval, records how late it woke, and sleeps again. Each beat
//! therefore takes its interval and its delay, and the beats of a kind fill the time in which they
//! count, whatever delayed them. Far fewer beats would hide a delay; far more would make delays
//! look rare.

use pagewise_model::{Beating, CacheState, Delays, Heartbeat, Worker};

use super::subject::Subject;

/// Beats account for at least this share of the time in which they count: timers of a virtual
/// machine wake late, and the first and the last beat are cut off.
const LEAST_SHARE: f64 = 0.5;
/// Beats account for at most this share of it: ends of buckets are slightly above their values.
const MOST_SHARE: f64 = 1.25;
/// Bound for the time that a worker idles beyond the requested time, in tenths of it.
const IDLE_TENTHS: u64 = 16;
/// Requested one after another; each takes a variable time.
const SAFEPOINT: &str = "safepoint";
/// Intervals with fewer heartbeat periods than this show nothing.
const FEWEST_INTERVALS: u64 = 20;

/// Kinds that pagewise's own workers have and that beat continuously. Safepoints happen when the
/// runtime reaches them, and the user's own worker need not have any kind.
fn kinds(worker: &Worker) -> &'static [&'static str] {
    match worker {
        Worker::Native | Worker::Python => &["thread"],
        Worker::Jvm => &["thread", "virtual-thread"],
        Worker::Go => &["goroutine"],
        Worker::Other(_) => &[],
    }
}

/// Requested heartbeats are missing, or too few or too many while threads are measured. A cold
/// start has none: it is reported as a timeline of rates.
pub(super) fn not_beating(subject: &Subject<'_>, waited_ns: u64) -> Option<String> {
    let (_, kinds) = asked(subject)?;
    let is_reported = |kind: &str| subject.evidence.heartbeats.iter().any(|beats| beats.kind == kind);
    if let Some(kind) = kinds.iter().find(|kind| !is_reported(kind)) {
        return Some(format!("heartbeats of kind {kind} were requested, but none were reported"));
    }
    let wall_ns = subject.evidence.wall_ns;
    let within = (wall_ns.saturating_sub(waited_ns), wall_ns);
    missed(subject, &kinds, "measured", |beats| &beats.busy, within)
}

/// Too few or too many while the worker idles, for a time that the supervisor knows except in older
/// run files.
pub(super) fn not_beating_idle(subject: &Subject<'_>, waited_ns: u64) -> Option<String> {
    let (asked, kinds) = asked(subject)?;
    let guessed_ns = (asked.idle_ns / 10).saturating_mul(IDLE_TENTHS);
    let wall_ns = subject.evidence.idling.as_ref().map_or(guessed_ns, |idle| idle.wall_ns.max(guessed_ns));
    let within = (asked.idle_ns.saturating_sub(waited_ns), wall_ns);
    missed(subject, &kinds, "idle", |beats| &beats.idle, within)
}

/// The heartbeats that were requested, if any, and the kinds that are looked at: for the user's own
/// worker those that it reported, because none are required.
fn asked<'a>(subject: &Subject<'a>) -> Option<(Beating, Vec<&'a str>)> {
    let (cell, heartbeats) = (subject.cell, &subject.evidence.heartbeats);
    let asked = subject.context.beating.filter(|_| cell.conditions.cache != CacheState::ColdStart)?;
    let kinds = match cell.method.worker() {
        Worker::Other(_) => {
            heartbeats.iter().map(|beats| &*beats.kind).filter(|kind| *kind != SAFEPOINT).collect()
        }
        worker => kinds(worker).to_vec(),
    };
    Some((asked, kinds))
}

/// The first of these kinds whose beats do not fill a part that lasted from `least_ns` to
/// `most_ns`.
fn missed(
    subject: &Subject<'_>,
    kinds: &[&str],
    part: &str,
    delays: fn(&Heartbeat) -> &Delays,
    (least_ns, most_ns): (u64, u64),
) -> Option<String> {
    let interval_ns = subject.context.beating?.interval_ns;
    let mut beats_of_kinds = subject.evidence.heartbeats.iter().filter(|beats| kinds.contains(&&*beats.kind));
    beats_of_kinds.find_map(|beats| {
        let wrong = misses(delays(beats), least_ns, most_ns, interval_ns)?;
        Some(format!("heartbeats of kind {} in the {part} interval: {wrong}", beats.kind))
    })
}

/// Reason that beats do not fill a time of `least_ns` to `most_ns`.
fn misses(delays: &Delays, least_ns: u64, most_ns: u64, interval_ns: u64) -> Option<String> {
    let (beats, shortest_ns) = (total_count(delays), interval_ns.saturating_mul(FEWEST_INTERVALS));
    // One that is due at the end counts, so no wait for a CPU explains that there is none.
    if beats == 0 && most_ns >= shortest_ns {
        let ms = most_ns / 1_000_000;
        return Some(format!("it did not beat once in {ms} ms, at an interval of {interval_ns} ns"));
    }
    if least_ns < shortest_ns {
        return None;
    }
    let account = beats as f64 * interval_ns as f64 + total_ns(delays);
    let (low, high) = (least_ns as f64 * LEAST_SHARE, most_ns as f64 * MOST_SHARE);
    (account < low || account > high).then(|| {
        format!(
            "{beats} beats with their delays account for {account:.0} of {least_ns} ns, but must account for {low:.0} to {high:.0}"
        )
    })
}

fn total_count(delays: &Delays) -> u64 {
    delays.counts.iter().fold(0, |total, count| total.saturating_add(*count))
}

fn total_ns(delays: &Delays) -> f64 {
    delays.ns.iter().zip(&delays.counts).map(|(ns, count)| *ns as f64 * *count as f64).sum()
}

/// Histograms are invalid, or their delays are longer than the time in which they fell.
pub(super) fn malformed(subject: &Subject<'_>) -> Option<String> {
    let wall_ns = subject.evidence.wall_ns;
    subject.evidence.heartbeats.iter().find_map(|beats| {
        let kind = &beats.kind;
        let wrong = |delays: &Delays| {
            delays.ns.len() != delays.counts.len() || !delays.ns.is_sorted_by(|left, right| left < right)
        };
        if wrong(&beats.idle) || wrong(&beats.busy) {
            return Some(format!("the histogram of heartbeats of kind {kind} is invalid"));
        }
        let late = total_ns(&beats.busy);
        (late > wall_ns as f64 * MOST_SHARE)
            .then(|| format!("heartbeats of kind {kind} were late by {late:.0} ns in all, in {wall_ns} ns"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::honest::{self, cell, kinds};
    use pagewise_model::CacheState::{Cold, Warm};
    use pagewise_model::CheckContext as Context;
    use pagewise_model::FailureKind::InconsistentCounts;
    use pagewise_model::sample::OutsideActivity;
    use pagewise_model::{Cell, Evidence, FailureKind};

    const ASKED: Beating = Beating { interval_ns: 1_000_000, idle_ns: 100_000_000 };

    /// Delays of `count` beats, each late by `late_ns`.
    fn delays(count: u64, late_ns: u64) -> Delays {
        Delays { ns: vec![late_ns], counts: vec![count] }
    }

    fn found(method: &str, kinds: &[&str], busy: Delays, idle: Delays) -> Option<FailureKind> {
        let cell = cell(method, Cold);
        let beats =
            |kind: &&str| Heartbeat { kind: kind.to_string(), idle: idle.clone(), busy: busy.clone() };
        let heartbeats = kinds.iter().map(beats).collect();
        // The honest sample takes 151 ms.
        let evidence = Evidence { heartbeats, ..honest::evidence(&cell) };
        beating_as(&cell, &evidence, ASKED)
    }

    /// Result of the check of heartbeats for an honest sample with this evidence.
    fn beating_as(cell: &Cell, evidence: &Evidence, asked: Beating) -> Option<FailureKind> {
        let context = Context { beating: Some(asked), ..honest::CONTEXT };
        let subject = Subject { cell, measurement: &honest::measurement(), evidence, context: &context };
        let missed = not_beating_idle(&subject, 0).or_else(|| not_beating(&subject, 0));
        missed.map(|_| InconsistentCounts)
    }

    #[test]
    fn beats_that_fill_the_time_pass_however_late_they_are() {
        let idle = || delays(95, 60_000);
        for (method, kinds) in [
            ("pread", &["thread"][..]),
            ("jvm/mmap", &["thread", "virtual-thread"]),
            ("jvm/mmap", &["thread", "virtual-thread", "safepoint"]),
            ("go/pread", &["goroutine"]),
            ("python/mmap", &["thread"]),
        ] {
            assert_eq!(found(method, kinds, delays(140, 60_000), idle()), None, "{method}");
            assert_eq!(found(method, kinds, delays(10, 14_000_000), idle()), None, "{method}: held up");
        }
    }

    #[test]
    fn beats_left_out_or_made_up_are_noticed() {
        let wrong = Some(InconsistentCounts);
        let idle = || delays(95, 60_000);
        assert_eq!(found("jvm/mmap", &[], delays(1, 1), idle()), wrong, "none");
        assert_eq!(found("jvm/mmap", &["thread"], delays(140, 60_000), idle()), wrong, "a kind is missing");
        assert_eq!(found("go/mmap", &["goroutine"], delays(60, 60_000), idle()), wrong, "the late ones");
        assert_eq!(found("pread", &["thread"], delays(1400, 60_000), idle()), wrong, "ten times as many");
        assert_eq!(found("pread", &["thread"], delays(140, 60_000), delays(20, 1)), wrong, "idle");
        assert_eq!(found("pread", &["thread"], delays(140, 60_000), delays(200, 60_000)), wrong, "idle");
    }

    #[test]
    fn the_users_own_worker_need_not_beat_but_what_it_reports_must_account_for_the_time() {
        assert_eq!(found("mine/get", &[], delays(1, 1), delays(1, 1)), None);
        assert_eq!(found("mine/get", &["fiber"], delays(140, 60_000), delays(95, 60_000)), None);
        let hidden = found("mine/get", &["fiber"], delays(45, 60_000), delays(95, 60_000));
        assert_eq!(hidden, Some(FailureKind::InconsistentCounts), "the late ones");
    }

    #[test]
    fn an_idle_worker_that_is_woken_late_beats_for_longer() {
        let cell = cell("pread", Cold);
        let beats = Heartbeat { kind: "thread".into(), idle: delays(250, 60_000), busy: delays(140, 60_000) };
        let idled = |wall_ns| Evidence {
            heartbeats: vec![beats.clone()],
            idling: Some(OutsideActivity { wall_ns, ..OutsideActivity::default() }),
            ..honest::evidence(&cell)
        };
        assert_eq!(beating_as(&cell, &idled(110_000_000), ASKED), Some(InconsistentCounts));
        assert_eq!(beating_as(&cell, &idled(270_000_000), ASKED), None);
    }

    #[test]
    fn no_wait_for_a_cpu_explains_that_there_is_no_beat() {
        let missed = |count| misses(&delays(count, 60_000), 0, 100_000_000, ASKED.interval_ns);
        assert!(missed(0).is_some_and(|wrong| wrong.starts_with("it did not beat once in 100 ms")));
        assert_eq!(missed(1), None, "all of the time was waited");
    }

    #[test]
    fn a_short_interval_shows_nothing() {
        let slow = Beating { interval_ns: 10_000_000, ..ASKED };
        let cell = cell("pread", Cold);
        let beats = Heartbeat { kind: "thread".into(), idle: delays(1, 1), busy: delays(1, 1) };
        let evidence = Evidence { heartbeats: vec![beats], ..honest::evidence(&cell) };
        assert_eq!(beating_as(&cell, &evidence, slow), None, "15 intervals");
    }

    #[test]
    fn delays_are_no_longer_than_the_time_they_fell_in() {
        let cell = cell("jvm/mmap", Warm);
        let late = |busy: Delays| {
            let beats = Heartbeat { kind: "safepoint".into(), idle: delays(1, 1), busy };
            kinds(&cell, |_, evidence| evidence.heartbeats = vec![beats])
        };
        assert_eq!(
            (late(delays(1, 150_000_000)), late(delays(2, 100_000_000))),
            (vec![], vec![InconsistentCounts])
        );
        let uneven = Delays { ns: vec![1, 2], counts: vec![1] };
        assert_eq!(late(uneven), [InconsistentCounts]);
        assert_eq!(late(Delays { ns: vec![2, 1], counts: vec![1, 1] }), [InconsistentCounts]);
    }
}
