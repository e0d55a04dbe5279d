//! Checks of an actor: what it was asked for was at work during all of the measured region, and
//! under the same limit.

use pagewise_model::format::{bytes, percent, time};
use pagewise_model::{Actor, ActorEvidence, ActorOrder, ActorWrites, FailureKind};

use super::subject::Subject;

/// Parts of the region in each of which the actor is at work, at most, and the time of one.
const SLICES: u64 = 10;
const SLICE_NS: u64 = 25_000_000;
/// Share of its rate, or of the time if it has none, in each of them.
const LEAST_SHARE: f64 = 0.9;
/// Difference of the clocks of actor and supervisor.
const CLOCK_SLACK_NS: u64 = 100_000;
/// Share of the bytes of a scan that come from the device, if its file does not fit into the cache.
const LEAST_FROM_DEVICE: f64 = 0.8;
/// Readahead that was begun before the region, or counted behind it.
const DEVICE_SLACK_BYTES: f64 = (16 << 20) as f64;
/// A file of so many times the limit is not kept under it.
const NOT_KEPT: u64 = 2;

/// The actor did less than it was asked for, or something else.
pub(super) fn absent(subject: &Subject<'_>) -> Option<String> {
    let actor = subject.cell.conditions.beside.as_ref()?;
    let Some(evidence) = &subject.evidence.actor else {
        return Some("nothing is known of the actor's work".to_string());
    };
    too_little_before(subject, evidence)
        .or_else(|| false_reply(actor, evidence))
        .or_else(|| actor.is_writing().then(|| false_writes(evidence.writes.as_ref())).flatten())
        .or_else(|| pauses(actor, evidence, subject.evidence.wall_ns))
        .or_else(|| served_from_cache(subject, actor, evidence))
}

/// The cache is not yet what both programs make of it.
fn too_little_before(subject: &Subject<'_>, evidence: &ActorEvidence) -> Option<String> {
    let least = subject.cell.conditions.actor_bytes_before();
    (evidence.bytes_before < least.0).then(|| {
        let verb = if evidence.writes.is_some() { "written" } else { "read" };
        format!(
            "the actor had {verb} {} bytes when the region began, and the cache is what both make of it after {}",
            evidence.bytes_before,
            bytes(least)
        )
    })
}

/// An answer contradicts itself, the request or the bytes of the file.
fn false_reply(actor: &Actor, evidence: &ActorEvidence) -> Option<String> {
    evidence.windows.iter().find_map(|window| {
        let expected = window.operations.saturating_mul(actor.op_bytes.0);
        if !window.is_right {
            Some("the bytes that the actor read are not those of its file".to_string())
        } else if window.bytes != expected {
            let what = actor.order.operation();
            Some(format!("the actor claims {} bytes for {what}s of {expected}", window.bytes))
        } else {
            (window.elapsed_ns > window.wall_ns.saturating_add(CLOCK_SLACK_NS)).then(|| {
                format!("the actor claims {} ns, and {} ns passed", window.elapsed_ns, window.wall_ns)
            })
        }
    })
}

/// Records that are not in the file, or not on the device when they should be.
fn false_writes(writes: Option<&ActorWrites>) -> Option<String> {
    let Some(writes) = writes else { return Some("the records of the actor were not read back".to_string()) };
    let ActorWrites { records, syncs, dirty_most_bytes, missing_bytes, first_missing_at } = *writes;
    if missing_bytes > 0 {
        let at = first_missing_at.map_or(String::new(), |at| format!(", the first at offset {at}"));
        return Some(format!("{missing_bytes} bytes that the actor wrote are not in its file{at}"));
    }
    if syncs < records {
        return Some(format!("the actor made {syncs} syncs for {records} records that it committed"));
    }
    let dirty = dirty_most_bytes.filter(|bytes| *bytes > 0)?;
    Some(format!("{dirty} bytes of the actor's file were dirty after it had committed its records"))
}

/// A part of the region in which it did less than its rate, or was not at work.
fn pauses(actor: &Actor, evidence: &ActorEvidence, region_ns: u64) -> Option<String> {
    // The time before a short region is as good as the region.
    let all_ns = region_ns.max(ActorEvidence::SHORTEST_NS);
    let slices = (all_ns / SLICE_NS).clamp(1, SLICES);
    let (slice_ns, begin) = (all_ns as f64 / slices as f64, region_ns as f64 - all_ns as f64);
    (0..slices).find_map(|slice| {
        let from = begin + slice as f64 * slice_ns;
        let to = from + slice_ns;
        let busy = evidence.busy_within(from, to) / slice_ns.max(1.0);
        let share = match actor.rate {
            None => busy,
            Some(rate) => {
                let due = rate.per_second() as f64 * slice_ns / 1e9;
                // What it does in excess before a pause does not make up for the pause.
                (evidence.operations_within(from, to) / due).min(busy / LEAST_SHARE)
            }
        };
        (share < LEAST_SHARE).then(|| {
            let what = match actor.rate {
                Some(_) => format!("{} of its rate", percent(share)),
                None => format!("work for {} of the time", percent(share)),
            };
            format!(
                "the actor '{actor}' did {what} in {} of {} beside the sample: an actor that cannot keep its rate needs a lower one, or rate=max",
                time(slice_ns),
                time(all_ns as f64)
            )
        })
    })
}

/// A scan of a file that does not fit into the cache reads the device; where the measured method
/// reads the same file, that holds for what only the scan reads.
fn served_from_cache(subject: &Subject<'_>, actor: &Actor, evidence: &ActorEvidence) -> Option<String> {
    let conditions = &subject.cell.conditions;
    let limit = conditions.host_settings.memory_limit_bytes?;
    let file_bytes = actor.file_bytes(conditions).0;
    let shared_bytes = if actor.reads_same_file() { conditions.span_bytes.0 } else { 0 };
    let is_kept = file_bytes.saturating_sub(shared_bytes) < limit.0.saturating_mul(NOT_KEPT);
    if actor.order != ActorOrder::Scan || is_kept || subject.context.sparse_or_compressed_bytes {
        return None;
    }
    let region_ns = subject.evidence.wall_ns as f64;
    let read = evidence.bytes_within(0.0, region_ns);
    let begin = evidence.bytes_at_begin();
    let scan_bytes = file_bytes / actor.op_bytes.0 * actor.op_bytes.0;
    let not_shared = bytes_behind(shared_bytes as f64, scan_bytes as f64, begin, begin + read);
    let delivered = evidence.device_read_bytes?;
    let least = not_shared * LEAST_FROM_DEVICE - DEVICE_SLACK_BYTES;
    ((delivered as f64) < least).then(|| {
        format!(
            "{delivered} bytes came from the device for the actor, which scanned {not_shared:.0} bytes of a file that is larger than the cache"
        )
    })
}

/// Bytes of a scan from its byte `from` to `to` that lie behind the first `shared` bytes of its
/// file, if it reads the `all` bytes of that again and again.
fn bytes_behind(shared: f64, all: f64, from: f64, to: f64) -> f64 {
    let until = |end: f64| (end / all).floor() * (all - shared) + (end % all - shared).max(0.0);
    until(to) - until(from)
}

/// The actor is not under the limit of the worker, so it fills another cache.
pub(super) fn outside_group(subject: &Subject<'_>) -> Option<String> {
    let actor = subject.evidence.actor.as_ref().filter(|_| subject.cell.conditions.shares_cache())?;
    // One that died is in no cgroup, and its death is the failure.
    let observed = &subject.evidence.observed;
    let has_died = observed.iter().any(|failure| failure.kind == FailureKind::ActorAbsent);
    match actor.is_in_group {
        _ if has_died => None,
        Some(true) => None,
        Some(false) => Some("the actor was not in the cgroup of the worker".to_string()),
        None => Some("the cgroup of the actor is unknown, so its charge is not proven".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use pagewise_model::CacheState::{Cold, Warm};
    use pagewise_model::FailureKind::{ActorAbsent, ChargedToOtherCgroup};
    use pagewise_model::{ActorEvidence, ActorWrites, Cell, Failure, FailureKind};

    use crate::proof::honest;

    fn kinds(cell: &Cell, change: impl FnOnce(&mut ActorEvidence)) -> Vec<FailureKind> {
        honest::kinds(cell, |_, evidence| change(evidence.actor.as_mut().expect("an actor")))
    }

    #[test]
    fn an_honest_actor_is_at_work_in_all_of_the_region() {
        for method in ["pread", "mmap:random", "pread:direct", "uring:direct+depth=4"] {
            for cell in [
                honest::beside(method, Warm, "scan:pread,rate=1600MiB/s", None),
                honest::beside(method, Warm, "scan:pread,rate=1600MiB/s", Some(320)),
                honest::beside(method, Warm, "read:pread:direct,rate=20k", Some(128)),
                honest::beside(method, Cold, "scan:mmap,rate=max", None),
            ] {
                assert_eq!(kinds(&cell, |_| ()), [], "{}", cell.id());
            }
        }
    }

    #[test]
    fn an_actor_that_writes_has_its_records_in_the_file_and_on_the_device() {
        for method in ["pread", "mmap:random", "pread:direct"] {
            for actor in
                ["append:pwrite,rate=20MiB/s", "append:mmap,rate=max", "append:pwrite,rate=5k,size=4KiB"]
            {
                for (cache, limit) in [(Warm, None), (Warm, Some(320)), (Cold, None)] {
                    let cell = honest::beside(method, cache, actor, limit);
                    assert_eq!(kinds(&cell, |_| ()), [], "{}", cell.id());
                }
            }
        }
        let cell = honest::beside("pread", Cold, "append:pwrite,rate=20MiB/s", None);
        let writes = |change: fn(&mut ActorWrites)| {
            kinds(&cell, |actor| change(actor.writes.as_mut().expect("it writes")))
        };
        assert_eq!(kinds(&cell, |actor| actor.writes = None), [ActorAbsent], "not read back");
        assert_eq!(writes(|writes| writes.missing_bytes = 1 << 20), [ActorAbsent]);
        assert_eq!(writes(|writes| writes.syncs -= 1), [ActorAbsent]);
        assert_eq!(writes(|writes| writes.dirty_most_bytes = Some(4096)), [ActorAbsent]);
        assert_eq!(writes(|writes| writes.dirty_most_bytes = None), [], "unknown here");
        let of_device = |others, written| {
            honest::kinds(&cell, |_, evidence| {
                evidence.device_other_bytes = Some(others);
                evidence.device_written_bytes = Some(written);
            })
        };
        let own = 3 << 20;
        assert_eq!(of_device(own, own), [], "its own bytes are not those of others");
        assert_eq!(of_device(64 << 20, own), [FailureKind::Contaminated]);
    }

    #[test]
    fn of_a_shared_file_only_the_rest_comes_from_the_device() {
        let of = |from, to| super::bytes_behind(30.0, 100.0, from, to);
        assert_eq!((of(0.0, 30.0), of(20.0, 40.0), of(90.0, 120.0)), (0.0, 10.0, 10.0));
        assert_eq!((of(50.0, 250.0), of(310.0, 330.0)), (140.0, 0.0));
        assert_eq!(super::bytes_behind(0.0, 100.0, 250.0, 600.0), 350.0);
    }

    #[test]
    fn an_actor_that_pauses_lies_or_reads_something_else_is_noticed() {
        let limited = honest::beside("pread", Warm, "scan:pread,rate=1600MiB/s", Some(320));
        let absent = |change: fn(&mut ActorEvidence)| kinds(&limited, change);
        assert_eq!(honest::kinds(&limited, |_, evidence| evidence.actor = None), [ActorAbsent]);
        assert_eq!(absent(|actor| actor.bytes_before -= 1 << 20), [ActorAbsent], "too little before");
        assert_eq!(absent(|actor| actor.windows.truncate(2)), [ActorAbsent], "it ends early");
        assert_eq!(absent(|actor| actor.windows[1].is_right = false), [ActorAbsent]);
        assert_eq!(absent(|actor| actor.windows[1].bytes += 1), [ActorAbsent]);
        assert_eq!(absent(|actor| actor.windows[1].elapsed_ns += 1_000_000), [ActorAbsent]);
        let fewer = |actor: &mut ActorEvidence| {
            let window = &mut actor.windows[2];
            window.operations = window.operations * 7 / 8;
            window.bytes = window.operations << 20;
        };
        assert_eq!(absent(fewer), [ActorAbsent], "a slice of it");
        assert_eq!(absent(|actor| actor.device_read_bytes = Some(1 << 20)), [ActorAbsent], "the same MiB");
        assert_eq!(absent(|actor| actor.device_read_bytes = None), [], "unknown here");
        let same = |file_mib: u64, change: &dyn Fn(&mut ActorEvidence)| {
            let mut cell = honest::beside("pread", Warm, "scan:pread,rate=1600MiB/s,file=same", Some(320));
            cell.conditions.file_bytes = pagewise_model::Bytes::mib(file_mib);
            kinds(&cell, change)
        };
        let none_read = |actor: &mut ActorEvidence| actor.device_read_bytes = Some(0);
        assert_eq!(same(4096, &|_| ()), []);
        // The region begins behind what the method reads, and in it one pass later.
        assert_eq!(same(4096, &none_read), [ActorAbsent], "it did not read that");
        assert_eq!(same(1280, &none_read), [], "it read what both read");
        assert_eq!(same(800, &none_read), [], "all of it may be cached");
        assert_eq!(absent(|actor| actor.is_in_group = Some(false)), [ChargedToOtherCgroup]);
        assert_eq!(absent(|actor| actor.is_in_group = None), [ChargedToOtherCgroup]);
        let died = honest::kinds(&limited, |_, evidence| {
            let detail = "the actor: it was killed".to_string();
            evidence.observed.push(Failure { kind: ActorAbsent, detail });
            evidence.actor.as_mut().expect("an actor").is_in_group = None;
        });
        assert_eq!(died, [ActorAbsent], "its cgroup is not what is wrong");
        let free = honest::beside("pread", Warm, "scan:pread,rate=max", None);
        assert_eq!(kinds(&free, |actor| actor.is_in_group = None), [], "there is no limit");
        assert_eq!(kinds(&free, |actor| actor.windows[1] = actor.windows[2]), [ActorAbsent]);
    }
}
