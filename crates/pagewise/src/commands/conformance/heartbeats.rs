//! Examination of heartbeats.

use pagewise_analysis::proof::{SAFEPOINT, misses};
use pagewise_model::Workload;
use pagewise_protocol::{Beats, Go, Job};

use super::examiner::{Examiner, Part};
use super::{passes, reads};

/// Requested interval.
const INTERVAL_NS: u64 = 1_000_000;
/// Time of many beats: idle, and at work.
const IDLE_NS: u64 = 50_000_000;
const SAMPLE_NS: u64 = 50_000_000;

/// Examine heartbeats with the first method that reads.
pub fn examine(examiner: &mut Examiner<'_>, workload: Workload, text: &str) {
    examiner.examine("heartbeats", true, |examiner| match workload {
        Workload::Scan => {
            let job = passes::plain(examiner, text);
            beat(examiner, workload, job)
        }
        // Its table lives as long as the job.
        _ => reads::plain(examiner, workload, text)
            .and_then(|reading| beat(examiner, workload, reading.job.clone())),
    });
}

fn beat(examiner: &mut Examiner<'_>, workload: Workload, job: Job) -> Part<()> {
    let job = Job { heartbeat_ns: INTERVAL_NS, ..job };
    let file = if workload == Workload::Scan { &examiner.files.text } else { &examiner.files.random[0] };
    let key = file.key.clone();
    examiner.open(&job, &key)?;
    let (idled, idled_ns) = examiner.idle(IDLE_NS)?;
    let reply = examiner.go(Go { sample_ns: SAMPLE_NS, ..Go::default() })?;
    let beats = &reply.sample.beats;
    let kinds = &idled.heartbeat_kinds;
    if kinds.is_empty() && beats.heartbeat_kinds.is_empty() {
        examiner.record("answers idle", Ok(()));
        examiner.steps.not_tried("heartbeats: beats", "it has no heartbeat of any kind");
    } else {
        let checked = check(&idled, IDLE_NS, idled_ns, true);
        examiner.record(&format!("beats while idle ({kinds})"), checked);
        // A pass may be shorter than a beat.
        let some = workload != Workload::Scan;
        let least_ns = reply.wall_ns.saturating_sub(reply.waited_ns);
        let checked = check(beats, least_ns, reply.wall_ns, some).and_then(|()| {
            let found = &beats.heartbeat_kinds;
            let same = (found == kinds).then_some(());
            same.ok_or_else(|| format!("its kinds are '{found}' in sample, '{kinds}' in idled"))
        });
        examiner.record("beats in a sample", checked);
    }
    examiner.close(&key)
}

/// Fail if the histograms are impossible for a region of `asked_ns` that took `wall_ns` outside. With `some`, every kind must
/// have beaten.
fn check(beats: &Beats, asked_ns: u64, wall_ns: u64, some: bool) -> Result<(), String> {
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
        let wrong = misses(&delays, asked_ns, wall_ns, INTERVAL_NS).filter(|_| kind != SAFEPOINT);
        if let Some(wrong) = wrong {
            return Err(format!("'{kind}': {wrong}; report those within idle and go, and no others"));
        }
    }
    Ok(())
}
