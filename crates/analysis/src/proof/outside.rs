//! Activity of a worker outside of the measured region: before `go`, and while it waits.
//!
//! From `open` to `closed` no time is outside a clock, and bytes brought in before the clock starts
//! are detected. A worker's offset table holds zeros until `go`, so it could only prepare the file
//! as a whole: a copy of it in its own memory, or its pages in the cache. Methods that read in
//! set-up do so openly, and their set-up is shown.

use pagewise_model::sample::OutsideActivity;
use pagewise_model::{Access, CacheState, MethodOption};

use super::conditions::READAHEAD_SLACK_BYTES;
use super::subject::Subject;

/// Bytes that a worker may read from the device before `go` on its own account: late pages of its
/// code, with readahead.
const OWN_DEVICE_BYTES: u64 = 2 << 20;
/// Bytes that a worker may read by calls before `go` on its own account: the answer of /proc, a
/// trial read of an aligned block.
const OWN_CALL_BYTES: u64 = 1 << 20;
/// A waiting thread wakes up for messages, and CPU time counts in ticks on some kernels.
const WAITING_SLACK_NS: u64 = 10_000_000;
/// Share of the waiting time that heartbeats and wake-ups take.
const WAITING_SHARE: f64 = 0.05;
/// A runtime may collect, compile or run its scheduler while it waits, on all of its CPUs.
const RUNTIME_WAITING_SHARE: f64 = 0.5;

/// Sum over the intervals before `go`, as far as known; it includes waiting after `sample`, when
/// nothing is read.
fn before_go(subject: &Subject<'_>, part: fn(&OutsideActivity) -> Option<u64>) -> Option<u64> {
    let evidence = subject.evidence;
    let before_ready = part(evidence.before_ready.as_ref()?)?;
    Some(before_ready.saturating_add(evidence.waiting.as_ref().and_then(part).unwrap_or(0)))
}

/// A cold sample reads bytes that were not read before: neither into the page cache, which
/// residency shows, nor past it into the worker's own memory.
pub(super) fn read_before_go(subject: &Subject<'_>) -> Option<String> {
    let cold = matches!(subject.cell.conditions.cache, CacheState::Cold | CacheState::ColdStart);
    if cold { from_device_before_go(subject) } else { None }
}

/// Bytes that came from the device for the worker before `go`, if they are too many.
pub(super) fn from_device_before_go(subject: &Subject<'_>) -> Option<String> {
    if !reads_nothing_in_setup(subject) {
        return None;
    }
    let ahead = if subject.cell.method.has(MethodOption::WillNeed) { READAHEAD_SLACK_BYTES } else { 0 };
    let most = subject.allowance().code_bytes.max(OWN_DEVICE_BYTES) + ahead;
    let read = before_go(subject, |part| part.device_read_bytes).filter(|read| *read > most)?;
    Some(format!("{read} bytes came from the device for the worker before `go`, at most {most} may"))
}

/// A direct read must come from the device when it is requested, whatever the state of the cache.
pub(super) fn direct_read_before_go(subject: &Subject<'_>) -> Option<String> {
    if !subject.cell.method.is_direct() || !reads_nothing_in_setup(subject) {
        return None;
    }
    let most = subject.allowance().code_bytes.max(OWN_DEVICE_BYTES);
    let read = before_go(subject, |part| part.device_read_bytes).filter(|read| *read > most)?;
    Some(format!(
        "{read} bytes came from the device before `go`, at most {most} may: {} reads after `go`",
        subject.cell.method
    ))
}

/// A method that reads by calls makes none of them before `go`.
pub(super) fn called_before_go(subject: &Subject<'_>) -> Option<String> {
    if !matches!(subject.cell.access(), Access::Pread | Access::Read) || subject.is_writing() {
        return None;
    }
    let most = subject.allowance().code_bytes.max(OWN_CALL_BYTES);
    let read = before_go(subject, |part| part.read_call_bytes).filter(|read| *read > most)?;
    Some(format!(
        "{read} bytes came through read calls before `go`, at most {most} may: {} reads after `go`",
        subject.cell.method
    ))
}

fn reads_nothing_in_setup(subject: &Subject<'_>) -> bool {
    let cell = subject.cell;
    !subject.is_writing() && !cell.method.reads_all_in_setup() && cell.access() != Access::Anonymous
}

/// A worker without anything to do must be idle: its activity then is in no clock. A runtime's own
/// threads that got no CPU for `waited_ns` of the measured region may catch up after it.
pub(super) fn worked_while_waiting(subject: &Subject<'_>, waited_ns: u64) -> Option<String> {
    let waiting = subject.evidence.waiting.as_ref()?;
    let used = waiting.cpu_ns?;
    let (share, late_ns) = if subject.cell.method.worker().has_runtime() {
        (RUNTIME_WAITING_SHARE * f64::from(subject.cpus()), waited_ns)
    } else {
        (WAITING_SHARE, 0)
    };
    let of_time = (waiting.wall_ns as f64 * share) as u64;
    let slack = subject.answer_slack().saturating_add(WAITING_SLACK_NS).saturating_add(late_ns);
    let most = slack.saturating_add(of_time);
    (used > most).then(|| {
        format!(
            "the worker used {used} ns of CPU time in {} ns in which it had nothing to do, at most {most} may be: waiting threads sleep",
            waiting.wall_ns
        )
    })
}

/// Nothing is written to the file except in set-up, in the measured region and in tear-down.
pub(super) fn wrote_while_waiting(subject: &Subject<'_>) -> Option<String> {
    if !subject.is_writing() {
        return None;
    }
    let written = subject.evidence.waiting.as_ref()?.write_call_bytes?;
    (written > OWN_CALL_BYTES).then(|| {
        format!("{written} bytes went through write calls while the worker had nothing to do, at most {OWN_CALL_BYTES} may")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::honest::{append, cell, kinds, scan};
    use pagewise_model::CacheState::{Cold, ColdStart, Warm};
    use pagewise_model::FailureKind::{self, FalseTime, MethodContradicted, NotCold};
    use pagewise_model::{Cell, Evidence};

    fn before_ready(cell: &Cell, part: OutsideActivity) -> Vec<FailureKind> {
        kinds(cell, |_, evidence: &mut Evidence| evidence.before_ready = Some(part))
    }

    fn from_device(bytes: u64) -> OutsideActivity {
        OutsideActivity { device_read_bytes: Some(bytes), ..OutsideActivity::default() }
    }

    #[test]
    fn a_copy_of_the_file_made_ahead_is_noticed() {
        let whole = 256 << 20;
        for method in ["pread", "mmap", "mmap:random", "uring:depth=8", "mine/get"] {
            assert_eq!(before_ready(&cell(method, Cold), from_device(whole)), [NotCold], "{method}");
            assert_eq!(before_ready(&cell(method, ColdStart), from_device(whole)), [NotCold], "{method}");
            assert_eq!(before_ready(&cell(method, Cold), from_device(1 << 20)), [], "{method}");
        }
        assert_eq!(before_ready(&cell("mmap:populate", Cold), from_device(whole)), [], "that is its set-up");
        assert_eq!(before_ready(&cell("mmap:willneed", Cold), from_device(12 << 20)), []);
        assert_eq!(before_ready(&cell("mmap:willneed", Cold), from_device(whole)), [NotCold]);
        for method in ["pread:direct", "uring:direct", "mine/pread:direct"] {
            assert_eq!(
                before_ready(&cell(method, Warm), from_device(whole)),
                [MethodContradicted],
                "{method}"
            );
            let both = before_ready(&cell(method, Cold), from_device(whole));
            assert_eq!(both, [NotCold, MethodContradicted], "{method}");
        }
        assert_eq!(
            before_ready(&append("pwrite", Cold), from_device(whole)),
            [],
            "it reads nothing of a file"
        );
    }

    #[test]
    fn reads_made_ahead_are_noticed() {
        let called = |bytes| OutsideActivity { read_call_bytes: Some(bytes), ..OutsideActivity::default() };
        for cell in
            [cell("pread", Warm), cell("mine/pread", Warm), scan("read", Warm), cell("go/pread", Cold)]
        {
            assert_eq!(before_ready(&cell, called(256 << 20)), [MethodContradicted], "{}", cell.id());
            assert_eq!(before_ready(&cell, called(100_000)), [], "{}", cell.id());
        }
        // The reads of a third-party method are unknown.
        assert_eq!(before_ready(&cell("mine/get", Warm), called(256 << 20)), []);
        let waiting = |cell: &Cell, part: OutsideActivity| {
            kinds(cell, |_, evidence: &mut Evidence| {
                evidence.before_ready =
                    Some(OutsideActivity { read_call_bytes: Some(0), ..OutsideActivity::default() });
                evidence.waiting = Some(part);
            })
        };
        assert_eq!(waiting(&cell("pread", Warm), called(256 << 20)), [MethodContradicted]);
    }

    #[test]
    fn work_in_no_clock_is_noticed() {
        let waited = |cell: &Cell, cpu_ns, wall_ns| {
            kinds(cell, |_, evidence: &mut Evidence| {
                evidence.waiting =
                    Some(OutsideActivity { wall_ns, cpu_ns: Some(cpu_ns), ..OutsideActivity::default() });
            })
        };
        for method in ["pread", "mmap"] {
            let cell = cell(method, Warm);
            assert_eq!(waited(&cell, 9_000_000, 5_000_000), []);
            assert_eq!(waited(&cell, 40_000_000, 650_000_000), []);
            assert_eq!(waited(&cell, 600_000_000, 650_000_000), [FalseTime]);
        }
        assert_eq!(waited(&cell("jvm/pread", Warm), 300_000_000, 650_000_000), [], "its compiler");
        assert_eq!(waited(&cell("jvm/pread", Warm), 2_600_000_000, 650_000_000), [FalseTime]);
        let wrote = |bytes| {
            kinds(&append("pwrite", Cold), move |_, evidence: &mut Evidence| {
                evidence.waiting =
                    Some(OutsideActivity { write_call_bytes: Some(bytes), ..OutsideActivity::default() });
            })
        };
        assert_eq!((wrote(500), wrote(10 << 20)), (vec![], vec![FalseTime]));
    }
}
