//! Trials of reads by a table.

use pagewise_model::{Access, Consume, Method, Workload};
use pagewise_protocol::claims::{ANSWER_NS, Asked};
use pagewise_protocol::{ConversationError, Go, Job, SampleReply};
use pagewise_sys::SharedMemory;

use super::examiner::{Examiner, Gone, Part, Visit};
use super::ground::{descriptor_path, memory_of};
use super::meaning::{self, Watch};
use super::table::{Shape, Table};

/// Phases of an ordinary `go`.
const SAMPLE_NS: u64 = 4_000_000;
const LATENCY_NS: u64 = 2_000_000;
/// Phases where the clocks are compared. A busy machine takes its time to wake somebody, so one of a few tries counts.
const CLOCK_SAMPLE_NS: u64 = 60_000_000;
const CLOCK_LATENCY_NS: u64 = 20_000_000;
const CLOCK_TRIES: u32 = 12;
/// A phase ends with a batch, so it is no shorter than it was to be; but clocks differ a little.
const PHASE_SHARE: f64 = 0.95;
/// The bound that a worker must keep, and what the first phase may take of it.
const MOST_OPERATIONS: u64 = 10;
const MOST_OF_PHASE: u64 = MOST_OPERATIONS * 3 / 4;
/// Where a second `go` begins: behind the end of a part.
const SECOND_FIRST: u64 = 1_000_003;
/// What is in the hand-over memory before bytes are put there.
const UNTOUCHED: u8 = 0xa5;

/// What is tried of random reads beside the plain shape.
const RANDOM: [Shape; 7] = [
    Shape {
        what: "16 reads an operation at any offset, all bytes summed, from another file in a later job",
        file: 1,
        read_bytes: 5001,
        reads_per_op: 16,
        part: 23,
        align: 1,
        consume: Consume::Sum,
        ..Shape::PLAIN
    },
    Shape {
        what: "reads at any offset, touched with their last word",
        read_bytes: 10_001,
        reads_per_op: 3,
        align: 1,
        ..Shape::PLAIN
    },
    Shape { what: "two threads that share a descriptor", reads_per_op: 16, threads: 2, ..Shape::PLAIN },
    Shape {
        what: "two threads with a descriptor each",
        file: 1,
        reads_per_op: 16,
        threads: 2,
        per_thread: true,
        ..Shape::PLAIN
    },
    Shape { what: "dependent reads", read_bytes: 64, reads_per_op: 8, dependent: true, ..Shape::PLAIN },
    Shape { what: "a span of half of the file, page tables warmed", span_divisor: 2, ..Shape::PLAIN },
    Shape {
        what: "max_thread_operations",
        file: 1,
        reads_per_op: 2,
        max_thread_operations: MOST_OPERATIONS,
        ..Shape::PLAIN
    },
];

/// The same of sequential reads.
const SEQUENTIAL: [Shape; 2] = [
    Shape {
        what: "16 reads an operation from any offset on, all bytes summed, from another file in a later job",
        file: 1,
        read_bytes: 5001,
        reads_per_op: 16,
        part: 23,
        align: 1,
        consume: Consume::Sum,
        ..Shape::PLAIN
    },
    Shape { what: "two threads that share a descriptor", reads_per_op: 16, threads: 2, ..Shape::PLAIN },
];

/// A job of reads, with what belongs to it.
pub struct Reading {
    /// What the worker is told.
    pub job: Job,
    table: Table,
    /// Samples that were asked for.
    gos: u32,
    /// Operations that a thread has under way at once.
    depth: u32,
    handover: SharedMemory,
}

impl Reading {
    /// Asks for a sample by a table that was not there before.
    fn go(&mut self, examiner: &mut Examiner<'_>, go: Go, unknown_fields: bool) -> Part<Gone> {
        self.table.put((self.gos > 0).then_some(go.first_operation));
        self.gos += 1;
        examiner.go(go, unknown_fields)
    }
}

/// Tries one method.
pub fn examine(examiner: &mut Examiner<'_>, workload: Workload, text: &str, method: &Method) {
    let subject = format!("{workload} {text}");
    let plain = match workload {
        Workload::SequentialRead => Shape { reads_per_op: 8, ..Shape::PLAIN },
        _ => Shape::PLAIN,
    };
    let mut visit = Visit::detailed(&subject);
    if let Err(broken) = visit_plain(examiner, &plain, workload, text, method, &mut visit)
        && examiner.break_off(&mut visit, broken)
    {
        return;
    }
    let shapes: &[Shape] = if workload == Workload::SequentialRead { &SEQUENTIAL } else { &RANDOM };
    for shape in shapes {
        let mut visit = Visit::brief(format!("{subject}: {}", shape.what));
        if let Err(broken) = visit_shape(examiner, shape, workload, text, &mut visit) {
            examiner.break_off(&mut visit, broken);
        }
        visit.end(&mut examiner.steps);
    }
}

/// A job whose messages hold fields that the worker cannot know.
pub fn examine_unknown_fields(examiner: &mut Examiner<'_>, workload: Workload, text: &str) {
    let mut visit = Visit::brief("ignores fields that it does not know");
    let outcome = prepare(examiner, &Shape::PLAIN, workload, text).and_then(|mut reading| {
        let key = examiner.ground.random[0].key.clone();
        examiner.open(&reading.job, true, &mut visit, &key)?;
        let gone = reading.go(examiner, ordinary(0), true)?;
        let checked = check(examiner, &reading, &gone, 0);
        visit.tell(&mut examiner.steps, "sample", checked);
        examiner.close(&mut visit, &key)
    });
    if let Err(broken) = outcome {
        examiner.break_off(&mut visit, broken);
    }
    visit.end(&mut examiner.steps);
}

/// A job of the plain shape, for trials of something else than the table, which is there from the start.
pub fn plain(examiner: &Examiner<'_>, workload: Workload, text: &str) -> Part<Reading> {
    let mut reading = prepare(examiner, &Shape::PLAIN, workload, text)?;
    reading.table.put(None);
    Ok(reading)
}

fn ordinary(first_operation: u64) -> Go {
    Go { first_operation, sample_ns: SAMPLE_NS, latency_ns: LATENCY_NS }
}

fn prepare(examiner: &Examiner<'_>, shape: &Shape, workload: Workload, text: &str) -> Part<Reading> {
    let ground = &examiner.ground;
    let lack = |trouble| ("memory for the job", trouble);
    let table = Table::draw(shape, workload, ground).map_err(lack)?;
    let verified = table.some_offsets().len() * shape.read_bytes as usize;
    let handover = memory_of(&vec![UNTOUCHED; verified])
        .map_err(|error| lack(ConversationError::lack(error.to_string())))?;
    let depth = meaning::of(&examiner.hello, text).map_or(1, |method| method.depth());
    let (table_path, table_reads) = table.place();
    let job = Job {
        table_path,
        table_reads,
        handover_path: descriptor_path(handover.file()),
        max_thread_operations: shape.max_thread_operations,
        warm_page_tables: u32::from(shape.span_divisor > 1),
        ..ground.job(text, &table.conditions, ground.random[shape.file].worker_path())
    };
    Ok(Reading { job, table, gos: 0, depth, handover })
}

/// The plain shape, every part of it a step.
fn visit_plain(
    examiner: &mut Examiner<'_>,
    shape: &Shape,
    workload: Workload,
    text: &str,
    method: &Method,
    visit: &mut Visit,
) -> Part<()> {
    let mut reading = prepare(examiner, shape, workload, text)?;
    let key = examiner.ground.random[shape.file].key.clone();
    examiner.open(&reading.job, false, visit, &key)?;
    let watch = Watch::start(examiner.worker().map_err(|trouble| ("the worker", trouble))?.pid());
    let gone = reading.go(examiner, ordinary(0), false)?;
    let mut bytes = gone.sample.bytes;
    let checked = check(examiner, &reading, &gone, 0).and_then(|()| no_beats(&gone.sample));
    visit.tell(&mut examiner.steps, &format!("go and sample, {}", shape.what), checked);
    let gone = reading.go(examiner, ordinary(SECOND_FIRST), false)?;
    bytes = bytes.saturating_add(gone.sample.bytes);
    let checked = check(examiner, &reading, &gone, SECOND_FIRST);
    visit.tell(&mut examiner.steps, "a second go, from another first_operation", checked);
    let clocks = compare_clocks(examiner, &mut reading, &mut bytes)?;
    visit.tell(&mut examiner.steps, "its clock agrees with the clock outside", clocks);
    if method.access() != Access::Unknown {
        let worker = examiner.worker().map_err(|trouble| ("the worker", trouble))?;
        let meant = watch.check(worker, &key, method, workload, bytes);
        visit.tell(&mut examiner.steps, "does what its name says", meant);
    }
    let verified = verify(examiner, &mut reading)?;
    visit.tell(&mut examiner.steps, "hands verified bytes over", verified);
    examiner.close(visit, &key)
}

/// Another shape, as one step.
fn visit_shape(
    examiner: &mut Examiner<'_>,
    shape: &Shape,
    workload: Workload,
    text: &str,
    visit: &mut Visit,
) -> Part<()> {
    let mut reading = prepare(examiner, shape, workload, text)?;
    let key = examiner.ground.random[shape.file].key.clone();
    examiner.open(&reading.job, false, visit, &key)?;
    if shape.span_divisor > 1 {
        let pid = examiner.worker().map_err(|trouble| ("the worker", trouble))?.pid();
        let within = meaning::within_span(pid, &key, reading.job.span_bytes, examiner.ground.page_bytes);
        visit.tell(&mut examiner.steps, "maps the span", within);
    }
    for first in [0, 7] {
        let gone = reading.go(examiner, ordinary(first), false)?;
        let checked = check(examiner, &reading, &gone, first);
        visit.tell(&mut examiner.steps, &format!("sample from operation {first} on"), checked);
        let bounded = shape.max_thread_operations == 0 || keeps_bound(&gone.sample);
        let seen = format!(
            "{:?} operations by thread, {} of them in the throughput phase: max_thread_operations is {MOST_OPERATIONS} for \
             both, and three quarters of it ({MOST_OF_PHASE}) for the first",
            gone.sample.thread_operations, gone.sample.operations
        );
        visit.tell(&mut examiner.steps, "keeps the bound", if bounded { Ok(()) } else { Err(seen) });
    }
    let verified = verify(examiner, &mut reading)?;
    visit.tell(&mut examiner.steps, "hands verified bytes over", verified);
    examiner.close(visit, &key)
}

fn keeps_bound(sample: &SampleReply) -> bool {
    sample.operations <= MOST_OF_PHASE
        && sample.thread_operations.iter().all(|operations| *operations <= MOST_OPERATIONS)
}

/// The numbers of a sample, and what its reads come to.
fn check(examiner: &Examiner<'_>, reading: &Reading, gone: &Gone, first: u64) -> Result<(), String> {
    let asked = Asked::of(&reading.table.conditions, reading.depth);
    gone.check(&asked)?;
    if reading.job.max_thread_operations == 0 {
        timed_one_by_one(&gone.sample)?;
    }
    reading.table.check(&examiner.ground, &gone.sample, first)
}

/// Whether latencies were taken, of reads that go on for as long as they are told.
fn timed_one_by_one(sample: &SampleReply) -> Result<(), String> {
    let timed = sample.latency_counts.iter().fold(0u64, |total, count| total.saturating_add(*count));
    if sample.latency_operations == 0 && timed != sample.operations {
        return Err(format!(
            "there was no latency phase, and {timed} latencies of {} operations: time all in the throughput phase if its \
             batches are of one operation, else go on for latency_ns with a clock around each",
            sample.operations
        ));
    }
    Ok(())
}

fn no_beats(sample: &SampleReply) -> Result<(), String> {
    match sample.beats.heartbeat_kinds.is_empty() && sample.beats.heartbeat_counts.is_empty() {
        true => Ok(()),
        false => Err("it reports heartbeats, and heartbeat_ns is 0: run none then".to_string()),
    }
}

/// The phases last as long as they were to, and account for what passed. What was read is added to `bytes`.
fn compare_clocks(
    examiner: &mut Examiner<'_>,
    reading: &mut Reading,
    bytes: &mut u64,
) -> Part<Result<(), String>> {
    let mut wrong = String::new();
    for _ in 0..CLOCK_TRIES {
        let go = Go { first_operation: 0, sample_ns: CLOCK_SAMPLE_NS, latency_ns: CLOCK_LATENCY_NS };
        let Gone { sample, wall_ns } = reading.go(examiner, go, false)?;
        *bytes = bytes.saturating_add(sample.bytes);
        if (sample.elapsed_ns as f64) < CLOCK_SAMPLE_NS as f64 * PHASE_SHARE {
            return Ok(Err(format!(
                "elapsed_ns is {}, sample_ns was {CLOCK_SAMPLE_NS}: go on for so long, and count all of it",
                sample.elapsed_ns
            )));
        }
        match sample.claims().false_elapsed(wall_ns, ANSWER_NS) {
            None => return Ok(Ok(())),
            Some(seen) => wrong = format!("{seen}: do nothing between go and sample but the two phases"),
        }
    }
    Ok(Err(wrong))
}

/// Has some reads done once more, and compares their bytes.
fn verify(examiner: &mut Examiner<'_>, reading: &mut Reading) -> Part<Result<(), String>> {
    let offsets = reading.table.some_offsets();
    reading.handover.bytes_mut().fill(UNTOUCHED);
    let reads = examiner.verify(offsets.clone())?;
    if reads != offsets.len() as u64 {
        return Ok(Err(format!("reads is {reads}, verify has {} offsets", offsets.len())));
    }
    let (read_bytes, job) = (reading.job.read_bytes as usize, &reading.job);
    let files = &examiner.ground.random;
    let file = files.iter().find(|file| file.worker_path() == job.path).unwrap_or(&files[0]);
    for (index, offset) in offsets.iter().enumerate() {
        let found = &reading.handover.bytes()[index * read_bytes..][..read_bytes];
        let truth = &file.bytes[*offset as usize..][..read_bytes];
        if found.iter().all(|byte| *byte == UNTOUCHED) {
            return Ok(Err(format!(
                "nothing was put at byte {} of the hand-over memory: read i of verify goes to i * read_bytes",
                index * read_bytes
            )));
        }
        if let Some(at) = found.iter().zip(truth).position(|(found, truth)| found != truth) {
            return Ok(Err(format!(
                "of the {read_bytes} bytes at offset {offset}, byte {at} is {}, not {}: put read i of verify at i * \
                 read_bytes of the hand-over memory",
                found[at], truth[at]
            )));
        }
    }
    Ok(Ok(()))
}
