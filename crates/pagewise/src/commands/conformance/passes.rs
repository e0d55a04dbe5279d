//! Examination of scans.

use pagewise_model::checksum::Consumption;
use pagewise_model::{Bytes, Conditions, Consume, LineRule, Method, Scan, Work, Workload};
use pagewise_protocol::claims::Asked;
use pagewise_protocol::{Go, Job};

use super::examiner::{Examiner, Part, TimedReply};
use super::meaning::{self, CountersBefore};
use super::test_files::ReadFile;

/// Time limit of a pass.
const PASS_NS: u64 = 10_000_000_000;
/// End of a span that is a part of the file: within the second MiB, at the end of a page.
const PART_BYTES: u64 = (1 << 20) + 3 * 4096;

/// One shape of a scan.
struct Pass {
    name: &'static str,
    file: Scanned,
    consume: Consume,
    /// True if only a part of the file is scanned.
    part: bool,
}

#[derive(Clone, Copy)]
enum Scanned {
    Text,
    Random(usize),
}

const LINES: Pass = Pass { name: "lines", file: Scanned::Text, consume: Consume::Lines, part: false };

const OTHERS: [Pass; 3] = [
    Pass { name: "touched, another file", file: Scanned::Random(0), consume: Consume::Touch, part: false },
    Pass {
        name: "all bytes summed, another file",
        file: Scanned::Random(1),
        consume: Consume::Sum,
        part: false,
    },
    Pass { name: "a span of a part of the file", file: Scanned::Text, consume: Consume::Lines, part: true },
];

/// Examine one method.
pub fn examine(examiner: &mut Examiner<'_>, text: &str, method: &Method) {
    let subject = format!("scan {text}");
    if examiner.examine(&subject, true, |examiner| examine_pass(examiner, &LINES, text, method)) {
        return;
    }
    for pass in &OTHERS {
        let subject = format!("{subject}: {}", pass.name);
        examiner.examine(subject, false, |examiner| examine_pass(examiner, pass, text, method));
    }
}

/// A job of the first shape, for other examinations.
pub fn plain(examiner: &Examiner<'_>, text: &str) -> Job {
    job(examiner, &LINES, text)
}

fn file<'a>(examiner: &'a Examiner<'_>, pass: &Pass) -> &'a ReadFile {
    match pass.file {
        Scanned::Text => &examiner.files.text,
        Scanned::Random(index) => &examiner.files.random[index],
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
    let job = examiner.files.job(text, &conditions(examiner, pass), path);
    Job { max_thread_operations: 1, ..job }
}

fn examine_pass(examiner: &mut Examiner<'_>, pass: &Pass, text: &str, method: &Method) -> Part<()> {
    let job = job(examiner, pass, text);
    let key = file(examiner, pass).key.clone();
    examiner.open(&job, &key)?;
    let pid = examiner.pid()?;
    let before = CountersBefore::of(pid);
    if pass.part {
        let within = meaning::check_span(pid, &key, job.span_bytes, examiner.files.page_bytes);
        examiner.record("maps the span", within);
    }
    let mut bytes = 0u64;
    for part in [format!("a pass, {}", pass.name), "a second pass".to_string()] {
        let reply = examiner.go(Go { sample_ns: PASS_NS, ..Go::default() })?;
        bytes = bytes.saturating_add(reply.sample.bytes);
        let checked = check(examiner, pass, &job, method, &reply);
        examiner.record(&part, checked);
    }
    before.record(examiner, &key, method, Workload::Scan, bytes);
    examiner.close(&key)
}

fn check(
    examiner: &Examiner<'_>,
    pass: &Pass,
    job: &Job,
    method: &Method,
    reply: &TimedReply,
) -> Result<(), String> {
    let asked = Asked::of(&conditions(examiner, pass), method.depth());
    reply.check(&asked)?;
    let page_bytes = examiner.files.page_bytes as usize;
    let consumption = Consumption::new(pass.consume, page_bytes, page_bytes as u64);
    let bytes = &file(examiner, pass).bytes[..job.span_bytes as usize];
    let rest_is_line =
        method.line_rule() == LineRule::ReadLine && bytes.last().is_some_and(|last| *last != b'\n');
    let expected = consumption.of(bytes).wrapping_add(u64::from(rest_is_line));
    match reply.sample.checksum()? {
        found if found == expected => Ok(()),
        _ => Err(format!(
            "checksum {}, the {} bytes of the span come to {expected:016x} under consume = {}",
            reply.sample.checksum, job.span_bytes, pass.consume
        )),
    }
}
