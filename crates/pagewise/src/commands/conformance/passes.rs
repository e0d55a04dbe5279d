//! Trials of scans.

use pagewise_model::checksum::Consumption;
use pagewise_model::{Access, Bytes, Conditions, Consume, LineRule, Method, Scan, Work, Workload};
use pagewise_protocol::claims::Asked;
use pagewise_protocol::{Go, Job};

use super::examiner::{Examiner, Gone, Part, Visit};
use super::ground::ReadFile;
use super::meaning::{self, Watch};

/// How long a pass may last.
const PASS_NS: u64 = 10_000_000_000;
/// The end of a span that is not the end of the file: within the second MiB, at the end of a page.
const PART_BYTES: u64 = (1 << 20) + 3 * 4096;

/// One way to scan.
struct Pass {
    what: &'static str,
    file: Scanned,
    consume: Consume,
    /// Whether only a part of the file is scanned.
    part: bool,
}

#[derive(Clone, Copy)]
enum Scanned {
    Text,
    Random(usize),
}

const LINES: Pass = Pass { what: "lines", file: Scanned::Text, consume: Consume::Lines, part: false };

const OTHERS: [Pass; 3] = [
    Pass { what: "touched, another file", file: Scanned::Random(0), consume: Consume::Touch, part: false },
    Pass {
        what: "all bytes summed, another file",
        file: Scanned::Random(1),
        consume: Consume::Sum,
        part: false,
    },
    Pass { what: "a span of a part of the file", file: Scanned::Text, consume: Consume::Lines, part: true },
];

/// Tries one method.
pub fn examine(examiner: &mut Examiner<'_>, text: &str, method: &Method) {
    let subject = format!("scan {text}");
    let mut visit = Visit::detailed(&subject);
    if let Err(broken) = visit_pass(examiner, &LINES, text, method, &mut visit)
        && examiner.break_off(&mut visit, broken)
    {
        return;
    }
    for pass in &OTHERS {
        let mut visit = Visit::brief(format!("{subject}: {}", pass.what));
        if let Err(broken) = visit_pass(examiner, pass, text, method, &mut visit) {
            examiner.break_off(&mut visit, broken);
        }
        visit.end(&mut examiner.steps);
    }
}

/// A job of the first kind, for other trials.
pub fn plain(examiner: &Examiner<'_>, text: &str) -> Job {
    job(examiner, &LINES, text)
}

fn file<'a>(examiner: &'a Examiner<'_>, pass: &Pass) -> &'a ReadFile {
    match pass.file {
        Scanned::Text => &examiner.ground.text,
        Scanned::Random(index) => &examiner.ground.random[index],
    }
}

fn conditions(examiner: &Examiner<'_>, pass: &Pass) -> Conditions {
    let file_bytes = file(examiner, pass).bytes.len() as u64;
    let mut conditions = Conditions::of(Work::Scan(Scan { consume: pass.consume }), Bytes(file_bytes));
    if pass.part {
        conditions.span_bytes = Bytes(PART_BYTES);
    }
    conditions
}

fn job(examiner: &Examiner<'_>, pass: &Pass, text: &str) -> Job {
    let path = file(examiner, pass).worker_path();
    let job = examiner.ground.job(text, &conditions(examiner, pass), path);
    Job { max_thread_operations: 1, ..job }
}

fn visit_pass(
    examiner: &mut Examiner<'_>,
    pass: &Pass,
    text: &str,
    method: &Method,
    visit: &mut Visit,
) -> Part<()> {
    let job = job(examiner, pass, text);
    let key = file(examiner, pass).key.clone();
    examiner.open(&job, false, visit, &key)?;
    let worker = examiner.worker().map_err(|trouble| ("the worker", trouble))?;
    let (pid, watch) = (worker.pid(), Watch::start(worker.pid()));
    if pass.part {
        let within = meaning::within_span(pid, &key, job.span_bytes, examiner.ground.page_bytes);
        visit.tell(&mut examiner.steps, "maps the span", within);
    }
    let go = Go { first_operation: 0, sample_ns: PASS_NS, latency_ns: 0 };
    let gone = examiner.go(go.clone(), false)?;
    let checked = check(examiner, pass, &job, method, &gone);
    visit.tell(&mut examiner.steps, &format!("a pass, {}", pass.what), checked);
    let again = examiner.go(go, false)?;
    let checked = check(examiner, pass, &job, method, &again);
    visit.tell(&mut examiner.steps, "a second pass", checked);
    if method.access() != Access::Unknown {
        let bytes = gone.sample.bytes.saturating_add(again.sample.bytes);
        let worker = examiner.worker().map_err(|trouble| ("the worker", trouble))?;
        let meant = watch.check(worker, &key, method, Workload::Scan, bytes);
        visit.tell(&mut examiner.steps, "does what its name says", meant);
    }
    examiner.close(visit, &key)
}

fn check(
    examiner: &Examiner<'_>,
    pass: &Pass,
    job: &Job,
    method: &Method,
    gone: &Gone,
) -> Result<(), String> {
    let asked = Asked::of(&conditions(examiner, pass), method.depth());
    gone.check(&asked)?;
    let page_bytes = examiner.ground.page_bytes as usize;
    let consumption = Consumption { consume: pass.consume, page_bytes, touch_last: false };
    let bytes = &file(examiner, pass).bytes[..job.span_bytes as usize];
    let rest_is_line =
        method.line_rule() == LineRule::ReadLine && bytes.last().is_some_and(|last| *last != b'\n');
    let expected = consumption.of(bytes).wrapping_add(u64::from(rest_is_line));
    match gone.sample.checksum()? {
        found if found == expected => Ok(()),
        _ => Err(format!(
            "checksum {}, the {} bytes of the span come to {expected:016x} under consume = {}",
            gone.sample.checksum, job.span_bytes, pass.consume
        )),
    }
}
