//! Trials of heartbeats.

use pagewise_model::{Delays, Workload};
use pagewise_protocol::{Beats, Go, Job};

use super::examiner::{Examiner, Part, Visit};
use super::{passes, reads};

/// The interval that is asked for, and how long the worker is watched idle and at work: many beats.
const INTERVAL_NS: u64 = 1_000_000;
const IDLE_NS: u64 = 50_000_000;
const SAMPLE_NS: u64 = 50_000_000;

/// Tries them with the first method that reads.
pub fn examine(examiner: &mut Examiner<'_>, workload: Workload, text: &str) {
    let mut visit = Visit::detailed("heartbeats");
    let outcome = match workload {
        Workload::Scan => {
            let job = passes::plain(examiner, text);
            beat(examiner, workload, job, &mut visit)
        }
        _ => reads::plain(examiner, workload, text)
            .and_then(|reading| beat(examiner, workload, reading.job.clone(), &mut visit)),
    };
    if let Err(broken) = outcome {
        examiner.break_off(&mut visit, broken);
    }
}

fn beat(examiner: &mut Examiner<'_>, workload: Workload, job: Job, visit: &mut Visit) -> Part<()> {
    let job = Job { heartbeat_ns: INTERVAL_NS, ..job };
    let file = if workload == Workload::Scan { &examiner.ground.text } else { &examiner.ground.random[0] };
    let key = file.key.clone();
    examiner.open(&job, false, visit, &key)?;
    let idled = examiner.idle(IDLE_NS)?;
    let go = Go { first_operation: 0, sample_ns: SAMPLE_NS, latency_ns: 0 };
    let gone = examiner.go(go, false)?;
    let kinds = &idled.heartbeat_kinds;
    if kinds.is_empty() && gone.sample.beats.heartbeat_kinds.is_empty() {
        visit.tell(&mut examiner.steps, "answers idle", Ok(()));
        examiner.steps.not_tried("heartbeats: beats", "it has no heartbeat of any kind");
    } else {
        let seen = check(&idled, IDLE_NS, true);
        visit.tell(&mut examiner.steps, &format!("beats while idle ({kinds})"), seen);
        let spent_ns = gone.wall_ns;
        // A pass may be shorter than a beat.
        let seen = check(&gone.sample.beats, spent_ns, workload != Workload::Scan).and_then(|()| {
            match gone.sample.beats.heartbeat_kinds == *kinds {
                true => Ok(()),
                false => Err(format!(
                    "its kinds are '{}' in sample, '{kinds}' in idled",
                    gone.sample.beats.heartbeat_kinds
                )),
            }
        });
        visit.tell(&mut examiner.steps, "beats in a sample", seen);
    }
    examiner.close(visit, &key)
}

/// Whether the histograms of what took at least `watched_ns` can be so.
fn check(beats: &Beats, watched_ns: u64, some: bool) -> Result<(), String> {
    for (kind, Delays { ns, counts }) in beats.by_kind()? {
        if !ns.is_sorted_by(|left, right| left < right) {
            return Err(format!("heartbeat_ns of '{kind}' is not ascending"));
        }
        let beaten = counts.iter().fold(0u64, |total, count| total.saturating_add(*count));
        if some && beaten == 0 {
            return Err(format!(
                "'{kind}' did not beat once in {} ms, heartbeat_ns is {INTERVAL_NS}: a beat that is late when the region \
                 ends counts too",
                watched_ns / 1_000_000
            ));
        }
        // Beats come late, never early; one may be under way at each end, and idling takes longer than it is told.
        let most = 4 * (watched_ns / INTERVAL_NS) + 20;
        if beaten > most {
            return Err(format!(
                "'{kind}' beat {beaten} times in about {} ms, heartbeat_ns is {INTERVAL_NS}: report those within idle and go \
                 only",
                watched_ns / 1_000_000
            ));
        }
    }
    Ok(())
}
