//! Examination of reads by a table of offsets.

use pagewise_model::pieces::piece_reads;
use pagewise_model::{Consume, Method, Workload};
use pagewise_protocol::claims::{ANSWER_NS, Asked};
use pagewise_protocol::{ConversationError, Go, Job, SampleReply, descriptor_path};
use pagewise_sys::SharedMemory;

use super::examiner::{Examiner, Part, TimedReply};
use super::meaning::{self, CountersBefore};
use super::table::{Shape, Table};
use super::test_files::memory_of;

/// Lengths of the phases.
const PHASES_NS: (u64, u64) = (4_000_000, 2_000_000);
/// Lengths of the phases in which clocks are compared. A busy machine wakes processes late, so one good try is enough.
const CLOCK_PHASES_NS: (u64, u64) = (60_000_000, 20_000_000);
const CLOCK_TRIES: u32 = 12;
/// Least share of the requested length. A phase ends with a batch, so it is not shorter, but clocks differ a little.
const PHASE_SHARE: f64 = 0.95;
/// Bound of a thread's operations, and the part of it that the first phase may use.
const MOST_OPERATIONS: u64 = 10;
const MOST_OF_PHASE: u64 = MOST_OPERATIONS * 3 / 4;
/// First operation of a second `go`: past the end of a part.
const SECOND_FIRST: u64 = 1_000_003;
/// Content of the hand-over memory before bytes are put there.
const UNTOUCHED: u8 = 0xa5;

/// Shapes of random reads besides the plain one.
const RANDOM: [Shape; 9] = [
    Shape {
        name: "16 reads an operation at any offset, all bytes summed, from another file in a later job",
        file: 1,
        read_bytes: 5001,
        reads_per_op: 16,
        part: 23,
        align: 1,
        consume: Consume::Sum,
        ..Shape::PLAIN
    },
    Shape {
        name: "reads at any offset, touched with their last word",
        read_bytes: 10_001,
        reads_per_op: 3,
        align: 1,
        ..Shape::PLAIN
    },
    Shape { name: "two threads that share a descriptor", reads_per_op: 16, threads: 2, ..Shape::PLAIN },
    Shape {
        name: "two threads with a descriptor each",
        file: 1,
        reads_per_op: 16,
        threads: 2,
        per_thread: true,
        ..Shape::PLAIN
    },
    Shape { name: "dependent reads", read_bytes: 64, reads_per_op: 8, dependent: true, ..Shape::PLAIN },
    Shape { name: "a span of half of the file, page tables warmed", span_divisor: 2, ..Shape::PLAIN },
    Shape {
        name: "max_thread_operations",
        file: 1,
        reads_per_op: 2,
        max_thread_operations: MOST_OPERATIONS,
        ..Shape::PLAIN
    },
    Shape {
        name: "a table in pieces (piece_reads), two threads",
        reads_per_op: 3,
        part: 131,
        threads: 2,
        in_pieces: true,
        ..Shape::PLAIN
    },
    Shape {
        name: "dependent reads, a table in pieces",
        read_bytes: 64,
        reads_per_op: 8,
        part: 131,
        dependent: true,
        in_pieces: true,
        ..Shape::PLAIN
    },
];

/// The same of sequential reads.
const SEQUENTIAL: [Shape; 3] = [
    Shape {
        name: "16 reads an operation from any offset on, all bytes summed, from another file in a later job",
        file: 1,
        read_bytes: 5001,
        reads_per_op: 16,
        part: 23,
        align: 1,
        consume: Consume::Sum,
        ..Shape::PLAIN
    },
    Shape { name: "two threads that share a descriptor", reads_per_op: 16, threads: 2, ..Shape::PLAIN },
    Shape {
        name: "a table in pieces (piece_reads)",
        reads_per_op: 8,
        part: 131,
        in_pieces: true,
        ..Shape::PLAIN
    },
];

/// A job of reads with its table and memory.
pub struct Reading {
    /// The worker's job.
    pub job: Job,
    table: Table,
    /// Number of requested samples.
    samples: u32,
    /// Operations in flight in a thread.
    depth: u32,
    handover: SharedMemory,
}

impl Reading {
    /// Put a new table in place and request a sample of it.
    fn go(
        &mut self,
        examiner: &mut Examiner<'_>,
        first: u64,
        (sample_ns, latency_ns): (u64, u64),
    ) -> Part<TimedReply> {
        self.table.put(first, self.samples > 0, self.job.piece_reads);
        self.samples += 1;
        let touch_at = self.table.touch_at();
        examiner.go(Go { first_operation: first, sample_ns, latency_ns, touch_at })
    }

    /// Request a sample from operation `first` on, and check it.
    fn sample(&mut self, examiner: &mut Examiner<'_>, first: u64) -> Part<(SampleReply, Result<(), String>)> {
        let reply = self.go(examiner, first, PHASES_NS)?;
        let checked = self.check(examiner, &reply, first);
        Ok((reply.sample, checked))
    }

    fn check(&self, examiner: &Examiner<'_>, reply: &TimedReply, first: u64) -> Result<(), String> {
        reply.check(&Asked::of(&self.table.conditions, self.depth))?;
        if self.job.max_thread_operations == 0 {
            check_timed(&reply.sample)?;
        }
        self.table.check(&examiner.files, &reply.sample, first)
    }
}

/// Examine one method.
pub fn examine(examiner: &mut Examiner<'_>, workload: Workload, text: &str, method: &Method) {
    let subject = format!("{workload} {text}");
    let plain = match workload {
        Workload::SequentialRead => Shape { reads_per_op: 8, ..Shape::PLAIN },
        _ => Shape::PLAIN,
    };
    if examiner.examine(&subject, true, |examiner| examine_plain(examiner, &plain, workload, text, method)) {
        return;
    }
    let shapes: &[Shape] = if workload == Workload::SequentialRead { &SEQUENTIAL } else { &RANDOM };
    for shape in shapes {
        let subject = format!("{subject}: {}", shape.name);
        examiner.examine(subject, false, |examiner| examine_shape(examiner, shape, workload, text));
    }
}

/// Examine a job whose requests have fields that the worker does not know.
pub fn examine_unknown_fields(examiner: &mut Examiner<'_>, workload: Workload, text: &str) {
    examiner.unknown_fields = true;
    examiner.examine("ignores fields that it does not know", false, |examiner| {
        let mut reading = prepare(examiner, &Shape::PLAIN, workload, text)?;
        let key = examiner.files.random[0].key.clone();
        examiner.open(&reading.job, &key)?;
        let (_, checked) = reading.sample(examiner, 0)?;
        examiner.record("sample", checked);
        examiner.close(&key)
    });
    examiner.unknown_fields = false;
}

/// A job of the plain shape with its table in place, for other examinations.
pub fn plain(examiner: &Examiner<'_>, workload: Workload, text: &str) -> Part<Reading> {
    let mut reading = prepare(examiner, &Shape::PLAIN, workload, text)?;
    reading.table.put(0, false, reading.job.piece_reads);
    Ok(reading)
}

fn prepare(examiner: &Examiner<'_>, shape: &Shape, workload: Workload, text: &str) -> Part<Reading> {
    let files = &examiner.files;
    let lack = |error| ("memory for the job", error);
    let table = Table::draw(shape, workload, files).map_err(lack)?;
    let verified = table.some_offsets().len() * shape.read_bytes as usize;
    let handover = memory_of(&vec![UNTOUCHED; verified])
        .map_err(|error| lack(ConversationError::lack(error.to_string())))?;
    let method = meaning::of(&examiner.hello, text);
    let depth = method.as_ref().map_or(1, Method::depth);
    let piece_reads = match method {
        Ok(method) if shape.in_pieces => {
            let per_op = u64::from(shape.reads_per_op);
            piece_reads(&method, per_op, shape.part * per_op)
        }
        _ => 0,
    };
    let (table_path, table_reads) = table.place();
    let job = Job {
        table_path,
        table_reads,
        piece_reads,
        handover_path: descriptor_path(handover.file()),
        max_thread_operations: shape.max_thread_operations,
        warm_page_tables: u32::from(shape.span_divisor > 1),
        ..files.job(text, &table.conditions, files.random[shape.file].worker_path())
    };
    Ok(Reading { job, table, samples: 0, depth, handover })
}

/// Examine the plain shape in all parts.
fn examine_plain(
    examiner: &mut Examiner<'_>,
    shape: &Shape,
    workload: Workload,
    text: &str,
    method: &Method,
) -> Part<()> {
    let mut reading = prepare(examiner, shape, workload, text)?;
    let key = examiner.files.random[shape.file].key.clone();
    examiner.open(&reading.job, &key)?;
    let before = CountersBefore::of(examiner.pid()?);
    let (sample, checked) = reading.sample(examiner, 0)?;
    let mut bytes = sample.bytes;
    let checked = checked.and_then(|()| no_beats(&sample));
    examiner.record(&format!("go and sample, {}", shape.name), checked);
    let (sample, checked) = reading.sample(examiner, SECOND_FIRST)?;
    bytes = bytes.saturating_add(sample.bytes);
    examiner.record("a second go, from another first_operation", checked);
    let clocks = compare_clocks(examiner, &mut reading, &mut bytes)?;
    examiner.record("its clock agrees with the clock outside", clocks);
    before.record(examiner, &key, method, workload, bytes);
    let verified = verify(examiner, &mut reading)?;
    examiner.record("hands verified bytes over", verified);
    examiner.close(&key)
}

/// Examine another shape.
fn examine_shape(examiner: &mut Examiner<'_>, shape: &Shape, workload: Workload, text: &str) -> Part<()> {
    let mut reading = prepare(examiner, shape, workload, text)?;
    let key = examiner.files.random[shape.file].key.clone();
    examiner.open(&reading.job, &key)?;
    if shape.span_divisor > 1 {
        let pid = examiner.pid()?;
        let within = meaning::check_span(pid, &key, reading.job.span_bytes, examiner.files.page_bytes);
        examiner.record("maps the span", within);
    }
    for first in [0, 7] {
        let (sample, checked) = reading.sample(examiner, first)?;
        examiner.record(&format!("sample from operation {first} on"), checked);
        let bounded = shape.max_thread_operations == 0 || keeps_bound(&sample);
        let seen = format!(
            "{:?} operations by thread, {} of them in the throughput phase: max_thread_operations is {MOST_OPERATIONS} for \
             both, and three quarters of it ({MOST_OF_PHASE}) for the first",
            sample.thread_operations, sample.operations
        );
        examiner.record("keeps the bound", if bounded { Ok(()) } else { Err(seen) });
    }
    let verified = verify(examiner, &mut reading)?;
    examiner.record("hands verified bytes over", verified);
    examiner.close(&key)
}

fn keeps_bound(sample: &SampleReply) -> bool {
    sample.operations <= MOST_OF_PHASE
        && sample.thread_operations.iter().all(|operations| *operations <= MOST_OPERATIONS)
}

/// Fail unless latencies were recorded, of reads without a bound.
fn check_timed(sample: &SampleReply) -> Result<(), String> {
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

/// Fail unless the phases last as long as requested and account for the time outside. Add the bytes read to `bytes`.
fn compare_clocks(
    examiner: &mut Examiner<'_>,
    reading: &mut Reading,
    bytes: &mut u64,
) -> Part<Result<(), String>> {
    let (sample_ns, _) = CLOCK_PHASES_NS;
    let mut wrong = String::new();
    for _ in 0..CLOCK_TRIES {
        let TimedReply { sample, wall_ns, waited_ns } = reading.go(examiner, 0, CLOCK_PHASES_NS)?;
        *bytes = bytes.saturating_add(sample.bytes);
        if (sample.elapsed_ns as f64) < sample_ns as f64 * PHASE_SHARE {
            return Ok(Err(format!(
                "elapsed_ns is {}, sample_ns was {sample_ns}: go on for so long, and count all of it",
                sample.elapsed_ns
            )));
        }
        match sample.claims().false_elapsed(wall_ns, ANSWER_NS.saturating_add(waited_ns)) {
            None => return Ok(Ok(())),
            Some(seen) => wrong = format!("{seen}: do nothing between go and sample but the two phases"),
        }
    }
    Ok(Err(wrong))
}

/// Have some reads done once more, and compare their bytes.
fn verify(examiner: &mut Examiner<'_>, reading: &mut Reading) -> Part<Result<(), String>> {
    let offsets = reading.table.some_offsets();
    reading.handover.bytes_mut().fill(UNTOUCHED);
    let reads = examiner.verify(offsets.clone())?;
    if reads != offsets.len() as u64 {
        return Ok(Err(format!("reads is {reads}, verify has {} offsets", offsets.len())));
    }
    let (read_bytes, job) = (reading.job.read_bytes as usize, &reading.job);
    let files = &examiner.files.random;
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
