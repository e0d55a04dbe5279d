//! Trials of heartbeats.

use pagewise_analysis::proof::{SAFEPOINT, misses};
use pagewise_model::Workload;
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
    let (idled, idled_ns) = examiner.idle(IDLE_NS)?;
    let go = Go { first_operation: 0, sample_ns: SAMPLE_NS, latency_ns: 0 };
    let gone = examiner.go(go, false)?;
    let kinds = &idled.heartbeat_kinds;
    if kinds.is_empty() && gone.sample.beats.heartbeat_kinds.is_empty() {
        visit.tell(&mut examiner.steps, "answers idle", Ok(()));
        examiner.steps.not_tried("heartbeats: beats", "it has no heartbeat of any kind");
    } else {
        let seen = check(&idled, IDLE_NS, idled_ns, true);
        visit.tell(&mut examiner.steps, &format!("beats while idle ({kinds})"), seen);
        let spent_ns = gone.wall_ns;
        // A pass may be shorter than a beat.
        let seen =
            check(&gone.sample.beats, spent_ns, spent_ns, workload != Workload::Scan).and_then(
                |()| match gone.sample.beats.heartbeat_kinds == *kinds {
                    true => Ok(()),
                    false => Err(format!(
                        "its kinds are '{}' in sample, '{kinds}' in idled",
                        gone.sample.beats.heartbeat_kinds
                    )),
                },
            );
        visit.tell(&mut examiner.steps, "beats in a sample", seen);
    }
    examiner.close(visit, &key)
}

/// Whether the histograms of what was to take `asked_ns` and took `passed_ns` outside can be so.
fn check(beats: &Beats, asked_ns: u64, passed_ns: u64, some: bool) -> Result<(), String> {
    for (kind, delays) in beats.by_kind()? {
        if !delays.ns.is_sorted_by(|left, right| left < right) {
            return Err(format!("heartbeat_ns of '{kind}' is not ascending"));
        }
        if some && delays.counts.iter().all(|count| *count == 0) {
            return Err(format!(
                "'{kind}' did not beat once in {} ms, heartbeat_ns is {INTERVAL_NS}: a beat that is late when the region \
                 ends counts too",
                asked_ns / 1_000_000
            ));
        }
        let wrong = misses(&delays, asked_ns, passed_ns, INTERVAL_NS).filter(|_| kind != SAFEPOINT);
        if let Some(wrong) = wrong {
            return Err(format!("'{kind}': {wrong}; report those within idle and go, and no others"));
        }
    }
    Ok(())
}
