//! Whole runs against a worker that is a thread of this process: the supervisor's part, without
//! processes or the state of a machine. The engine's own loops answer, and a script bends the lines
//! between them.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::rc::Rc;

use pagewise_model::FailureKind::{CallFailed, WorkerDied, WorkerHung, WorkerNonsense, WrongChecksum};
use pagewise_model::plan::Budget;
use pagewise_model::{
    Append, CacheState, Cell, Conditions, Consume, Environment, FailureKind, Outcome, Reads, Role, Scan,
    Sync, Work,
};
use pagewise_protocol::PROTOCOL_VERSION;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::state;
use crate::store;
use crate::supervise::program::Program;

/// Never reached by a worker that answers at all.
const PATIENCE: Duration = Duration::from_secs(60);
/// For workers that fall silent.
const SHORT: Duration = Duration::from_secs(1);
const ROUNDS: u32 = 3;
const METHODS: [&str; 2] = ["pread", "mmap"];

type Worker = fn(PipeReader, PipeWriter) -> io::Result<()>;

/// The engine's worker. `bend` gets the last job and each reply of the engine, and writes what is
/// sent in its place.
fn bent(
    requests: PipeReader,
    replies: PipeWriter,
    bend: fn(&Value, Value, &mut PipeWriter) -> io::Result<()>,
) -> io::Result<()> {
    let job = Rc::new(RefCell::new(Value::Null));
    let requests = Requests { requests: BufReader::new(requests), job: job.clone(), line: Vec::new() };
    pagewise_engine::worker::converse(BufReader::new(requests), Replies { replies, job, bend })
}

/// The requests as they come, line by line; notes each job.
struct Requests {
    requests: BufReader<PipeReader>,
    job: Rc<RefCell<Value>>,
    line: Vec<u8>,
}

impl Read for Requests {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.line.is_empty() {
            self.requests.read_until(b'\n', &mut self.line)?;
            let request: Value = serde_json::from_slice(&self.line).unwrap_or_default();
            if request["type"] == "open" {
                *self.job.borrow_mut() = request;
            }
        }
        let len = self.line.len().min(into.len());
        into[..len].copy_from_slice(&self.line[..len]);
        self.line.drain(..len);
        Ok(len)
    }
}

/// The engine writes each reply in one call.
struct Replies {
    replies: PipeWriter,
    job: Rc<RefCell<Value>>,
    bend: fn(&Value, Value, &mut PipeWriter) -> io::Result<()>,
}

impl Write for Replies {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let reply = serde_json::from_slice(line).expect("a reply of the engine");
        (self.bend)(&self.job.borrow(), reply, &mut self.replies).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.replies.flush()
    }
}

fn honest(requests: PipeReader, replies: PipeWriter) -> io::Result<()> {
    bent(requests, replies, |_, reply, replies| writeln!(replies, "{reply}"))
}

/// A place with a dataset's directory, a state directory and a run file.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = state::tests::place();
        std::fs::create_dir(place.path().join("data")).expect("a directory");
        Self(place)
    }

    fn run_file(&self) -> PathBuf {
        self.0.path().join("run.jsonl")
    }

    fn state(&self) -> State {
        state::tests::granted(self.0.path()).0
    }

    /// A run of `pread` and `mmap`.
    fn session(&self) -> RunSession {
        self.session_of(|_| {})
    }

    fn session_of(&self, change: impl FnOnce(&mut Plan)) -> RunSession {
        let cells = METHODS.map(|method| Cell {
            role: Role::Measured,
            method: method.parse().expect("a method"),
            conditions: Conditions {
                cache: CacheState::Warm,
                ..Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(4))), Bytes::mib(1))
            },
        });
        let directory = self.0.path().join("data").to_str().expect("text").to_string();
        let mut plan = Plan {
            source: Source::Dataset { directory },
            rounds: ROUNDS,
            sample_ns: 1_000_000,
            ..Plan::of(cells.into())
        };
        change(&mut plan);
        let environment = Environment { page_bytes: 4096, cpus: 1, ..Environment::default() };
        let header = Header { environment, ..Header::of(plan) };
        RunSession {
            store: RunFile::create(&self.run_file(), header.clone()).expect("a run file"),
            header,
            earlier: Vec::new(),
            elapsed_before_ns: 0,
            state: self.state(),
            random: 1,
            question: None,
            start_at: None,
            program_runs: Vec::new(),
            program: None,
            ends_at: None,
        }
    }

    fn resumed(&self) -> RunSession {
        let store::Resumed { store, run, .. } = RunFile::resume(&self.run_file()).expect("a run file");
        RunSession {
            header: run.header,
            store,
            earlier: run.samples,
            elapsed_before_ns: 0,
            state: self.state(),
            random: 2,
            question: None,
            start_at: None,
            program_runs: Vec::new(),
            program: None,
            ends_at: None,
        }
    }

    /// Nothing is left of a run but its file.
    fn expect_no_trace(&self) {
        assert_eq!(std::fs::read_dir(self.0.path().join("data")).expect("read").count(), 0);
        assert_eq!(std::fs::read_to_string(self.0.path().join("journal")).expect("read"), "");
    }
}

fn complete(session: RunSession, worker: Worker, patience: Duration, stop: &AtomicBool) -> SamplingEnd {
    session.complete(Programs::only(Program::Thread(worker)), patience, stop).expect("a run").0
}

/// A run with `worker` to its end.
#[track_caller]
fn run(worker: Worker, patience: Duration) -> Run {
    let place = Place::new();
    let ended = complete(place.session(), worker, patience, &AtomicBool::new(false));
    assert!(matches!(ended, SamplingEnd::Completed));
    place.expect_no_trace();
    let run = store::load(&place.run_file()).expect("a run");
    assert!(run.is_complete());
    run
}

fn of_method<'a>(run: &'a Run, method: &str) -> Vec<&'a Sample> {
    let cell = run.header.plan.cells.iter().find(|cell| cell.method.to_string() == method).expect("a cell");
    run.samples.iter().filter(|sample| sample.cell == cell.id()).collect()
}

/// Rounds in which a sample was taken; it need not be valid, since its counters are those of this
/// process.
fn rounds_taken(samples: &[&Sample]) -> Vec<u32> {
    let taken = samples.iter().filter(|sample| matches!(sample.outcome, Outcome::Taken { .. }));
    let mut rounds: Vec<u32> = taken.map(|sample| sample.round).collect();
    rounds.dedup();
    rounds
}

/// The cell ended with its first sample.
#[track_caller]
fn expect_ended(samples: &[&Sample], kind: FailureKind, detail: &str) {
    let [Sample { outcome: Outcome::Broken { failures, .. }, .. }] = samples else {
        panic!("{detail}: {samples:?}")
    };
    assert_eq!(failures[0].kind, kind, "{failures:?}");
    assert!(failures[0].detail.contains(detail), "'{detail}' is not in {failures:?}");
}

/// `worker` ends the cells of `methods` and no others.
#[track_caller]
fn ends(worker: Worker, patience: Duration, methods: &[&str], kind: FailureKind, detail: &str) {
    let run = run(worker, patience);
    for method in METHODS {
        let samples = of_method(&run, method);
        match methods.contains(&method) {
            true => expect_ended(&samples, kind, detail),
            false => assert_eq!(rounds_taken(&samples), (0..ROUNDS).collect::<Vec<_>>(), "{detail}"),
        }
    }
}

#[test]
fn the_rounds_of_every_cell_are_taken_and_nothing_is_left() {
    let run = run(honest, PATIENCE);
    for method in METHODS {
        assert_eq!(rounds_taken(&of_method(&run, method)), (0..ROUNDS).collect::<Vec<_>>());
    }
}

/// The sample that is being taken is given up, and what there is is a complete run.
#[test]
fn a_run_whose_time_is_over_ends_with_the_samples_that_there_are() {
    static STOP: AtomicBool = AtomicBool::new(false);
    /// The third sample takes until the end of the run.
    fn waits(requests: PipeReader, replies: PipeWriter) -> io::Result<()> {
        static SAMPLES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        bent(requests, replies, |_, reply, replies| {
            if reply["type"] == "opened" && SAMPLES.fetch_add(1, Ordering::Relaxed) == 2 {
                while !STOP.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            writeln!(replies, "{reply}")
        })
    }
    let place = Place::new();
    let ends_at = Some(Instant::now() + Duration::from_secs(3));
    let session = RunSession { ends_at, ..place.session() };
    assert!(matches!(complete(session, waits, PATIENCE, &STOP), SamplingEnd::Completed));
    assert!(!STOP.load(Ordering::Relaxed), "nobody asked for the end");
    place.expect_no_trace();
    let run = store::load(&place.run_file()).expect("a run");
    assert!(run.is_complete() && run.samples.len() <= 2, "{}", run.samples.len());
}

#[test]
fn a_stopped_run_is_resumed_with_the_samples_that_are_missing() {
    static STOP: AtomicBool = AtomicBool::new(false);
    /// Wishes to stop in the middle of the third sample.
    fn stops(requests: PipeReader, replies: PipeWriter) -> io::Result<()> {
        static SAMPLES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        bent(requests, replies, |_, reply, replies| {
            if reply["type"] == "opened" && SAMPLES.fetch_add(1, Ordering::Relaxed) == 2 {
                STOP.store(true, Ordering::Relaxed);
            }
            writeln!(replies, "{reply}")
        })
    }
    let place = Place::new();
    assert!(matches!(complete(place.session(), stops, PATIENCE, &STOP), SamplingEnd::Interrupted));
    place.expect_no_trace();
    let before = store::load(&place.run_file()).expect("a run");
    assert_eq!((before.samples.len(), before.is_complete()), (2, false));

    let ended = complete(place.resumed(), honest, PATIENCE, &AtomicBool::new(false));
    assert!(matches!(ended, SamplingEnd::Completed));
    place.expect_no_trace();
    let after = store::load(&place.run_file()).expect("a run");
    assert!(after.is_complete() && after.samples[..2] == before.samples[..]);
    for method in METHODS {
        assert_eq!(rounds_taken(&of_method(&after, method)), (0..ROUNDS).collect::<Vec<_>>());
    }
}

/// The samples that an elimination over these asks for, in its order.
fn replayed(run: &Run) -> Vec<(String, u32, u32)> {
    let plan = &run.header.plan;
    let mut ledger = Ledger::new(plan, &[]);
    let mut replay = Run::of(run.header.clone(), Vec::new());
    while let Next::Take(step) = search::next(&replay, &ledger, |_| Vec::new()) {
        for round in step.rounds.clone() {
            for (index, round) in step.order(plan, round) {
                let cell = &plan.cells[index];
                while let Some(attempt) = ledger.next_attempt(cell, round) {
                    let is_it = |sample: &&Sample| {
                        (&sample.cell, sample.round, sample.attempt) == (&cell.id(), round, attempt)
                    };
                    let taken = run.samples.iter().find(is_it).expect("a sample that was asked for");
                    ledger.note(plan, taken);
                    replay.samples.push(taken.clone());
                }
            }
        }
    }
    replay.samples.into_iter().map(|sample| (sample.cell, sample.round, sample.attempt)).collect()
}

#[test]
fn an_elimination_that_is_stopped_goes_on_as_its_file_says() {
    static STOP: AtomicBool = AtomicBool::new(false);
    /// Wishes to stop in the middle of a sample after the first look.
    fn stops(requests: PipeReader, replies: PipeWriter) -> io::Result<()> {
        static SAMPLES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        bent(requests, replies, |_, reply, replies| {
            if reply["type"] == "opened" && SAMPLES.fetch_add(1, Ordering::Relaxed) == 12 {
                STOP.store(true, Ordering::Relaxed);
            }
            writeln!(replies, "{reply}")
        })
    }
    let place = Place::new();
    let plan = place.session_of(|plan| {
        (plan.rounds, plan.budget) = (56, Some(Budget::of(60_000_000_000)));
        // Failed checks of a busy machine are not repeated.
        plan.retakes = 0;
    });
    assert!(matches!(complete(plan, stops, PATIENCE, &STOP), SamplingEnd::Interrupted));
    let before = store::load(&place.run_file()).expect("a run");
    assert_eq!(before.samples.len(), 12);
    let ended = complete(place.resumed(), honest, PATIENCE, &AtomicBool::new(false));
    assert!(matches!(ended, SamplingEnd::Completed));
    let after = store::load(&place.run_file()).expect("a run");
    assert!(after.is_complete() && after.samples[..12] == before.samples[..]);
    let taken: Vec<_> =
        after.samples.iter().map(|sample| (sample.cell.clone(), sample.round, sample.attempt)).collect();
    assert_eq!(replayed(&after), taken);
}

#[test]
fn no_sample_is_taken_that_would_write_more_than_is_allowed() {
    let place = Place::new();
    let session = place.session_of(|plan| {
        for cell in &mut plan.cells {
            let append = Append { record_bytes: Bytes::kib(4), passes: 1, sync: Sync::None, sync_call: None };
            cell.conditions = Conditions::of(Work::Append(append), Bytes::mib(1));
        }
        plan.cells[0].method = "pwrite".parse().expect("a method");
        let sample = plan.sample_writes(&plan.cells[0]);
        (plan.max_written_bytes, plan.retakes) = (Some(Bytes(3 * sample)), 0);
    });
    assert!(matches!(complete(session, honest, PATIENCE, &AtomicBool::new(false)), SamplingEnd::Completed));
    place.expect_no_trace();
    let run = store::load(&place.run_file()).expect("a run");
    // As many as the limit pays for if the device writes what is expected; fewer if others make it
    // write more.
    assert!(run.is_complete() && (1..=3).contains(&run.samples.len()), "{:?}", run.samples);
}

#[test]
fn each_block_reads_a_dataset_of_its_own() {
    let place = Place::new();
    let plan = place.session_of(|plan| {
        (plan.rounds, plan.blocks) = (4, 2);
        let work = Work::Scan(Scan { consume: Consume::Sum });
        let conditions = Conditions { work, ..plan.cells[0].conditions.clone() };
        plan.cells.push(Cell {
            role: Role::Measured,
            method: "read:buffer=64KiB".parse().expect("a method"),
            conditions,
        });
    });
    assert!(matches!(complete(plan, honest, PATIENCE, &AtomicBool::new(false)), SamplingEnd::Completed));
    let run = store::load(&place.run_file()).expect("a run");
    // A sample on the bytes of the other dataset would fail its checksum.
    let blocks: Vec<(u32, u32)> = run.samples.iter().map(|sample| (sample.round, sample.block)).collect();
    assert!(blocks.iter().all(|(round, block)| *block == round / 2), "{blocks:?}");
    let wrong = run.samples.iter().flat_map(Sample::failures).find(|failure| failure.kind == WrongChecksum);
    assert_eq!(wrong, None);
    assert_eq!(std::fs::read_dir(place.0.path().join("data")).expect("a directory").count(), 0);
}

#[test]
fn nonsense_is_quoted() {
    let quoted = "instead of hello the worker sent 'Good morning.'";
    ends(|_, mut replies| writeln!(replies, "Good morning."), PATIENCE, &METHODS, WorkerNonsense, quoted);

    let out_of_turn: Worker = |_, mut replies| writeln!(replies, r#"{{"type":"verified","reads":1}}"#);
    let quoted = r#"instead of hello the worker sent '{"type":"verified""#;
    ends(out_of_turn, PATIENCE, &METHODS, WorkerNonsense, quoted);

    let stray: Worker = |requests, replies| {
        bent(requests, replies, |_, reply, replies| {
            if reply["type"] == "opened" {
                writeln!(replies, "WARNING: a deprecated method has been called")?;
            }
            writeln!(replies, "{reply}")
        })
    };
    let quoted = "instead of opened the worker sent 'WARNING: a deprecated";
    ends(stray, PATIENCE, &METHODS, WorkerNonsense, quoted);
}

#[test]
fn an_endless_line_is_not_collected() {
    let endless: Worker = |_, mut replies| {
        while replies.write_all(&[b'x'; 65_536]).is_ok() {}
        Ok(())
    };
    ends(endless, PATIENCE, &METHODS, WorkerNonsense, "a line of over");
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    let other: Worker = |requests, replies| {
        bent(requests, replies, |_, mut reply, replies| {
            if reply["type"] == "hello" {
                reply["protocol"] = json!(PROTOCOL_VERSION + 1);
            }
            writeln!(replies, "{reply}")
        })
    };
    let text = format!("speaks protocol {}, pagewise speaks {PROTOCOL_VERSION}", PROTOCOL_VERSION + 1);
    ends(other, PATIENCE, &METHODS, WorkerNonsense, &text);
}

#[test]
fn a_number_that_overflows_is_refused() {
    let overflowing: Worker = |requests, replies| {
        bent(requests, replies, |job, reply, replies| {
            let line = reply.to_string();
            let line = match job["method"] == "pread" && reply["type"] == "sample" {
                true => line.replacen(r#""operations":"#, r#""operations":18446744073709551616"#, 1),
                false => line,
            };
            writeln!(replies, "{line}")
        })
    };
    ends(overflowing, PATIENCE, &["pread"], WorkerNonsense, "numbers are whole, and of 64 bits at most");
}

#[test]
fn a_worker_that_falls_silent_is_given_up() {
    /// Waits for the end of its requests.
    fn says_nothing(mut requests: PipeReader, _replies: PipeWriter) -> io::Result<()> {
        requests.read_to_end(&mut Vec::new()).map(drop)
    }
    ends(says_nothing, SHORT, &METHODS, WorkerHung, "did not send hello within");
    /// Keeps its answer to `go` of every job of `pread`.
    fn ignores_go(requests: PipeReader, replies: PipeWriter) -> io::Result<()> {
        bent(requests, replies, |job, reply, replies| {
            if job["method"] == "pread" && reply["type"] == "sample" {
                return Ok(());
            }
            writeln!(replies, "{reply}")
        })
    }
    let run = run(ignores_go, SHORT);
    expect_ended(&of_method(&run, "pread"), WorkerHung, "did not send sample within");
}

#[test]
fn a_worker_that_fails_after_its_last_answer_is_not_believed() {
    let fails: Worker = |requests, replies| {
        bent(requests, replies, |job, reply, replies| {
            writeln!(replies, "{reply}")?;
            match job["method"] == "pread" && reply["type"] == "closed" {
                true => Err(io::Error::other("a destructor failed")),
                false => Ok(()),
            }
        })
    };
    ends(fails, PATIENCE, &["pread"], WorkerDied, "ended with status 1 after its last answer");
}

#[test]
fn a_call_that_fails_ends_the_cell_and_one_that_is_refused_makes_it_unavailable() {
    fn failed(unavailable: u32, detail: &str) -> Value {
        let (path, offset) = ("/nowhere", 0);
        json!({"type": "failed", "call": "open", "errno": 5, "path": path, "offset": offset, "detail": detail,
            "unavailable": unavailable})
    }
    let fails: Worker = |requests, replies| {
        bent(requests, replies, |job, reply, replies| {
            let fails = job["method"] == "pread" && reply["type"] == "opened";
            writeln!(replies, "{}", if fails { failed(0, "open failed: EIO") } else { reply })
        })
    };
    ends(fails, PATIENCE, &["pread"], CallFailed, "open failed: EIO");
    let refused: Worker = |requests, replies| {
        bent(requests, replies, |job, reply, replies| {
            let fails = job["method"] == "pread" && reply["type"] == "opened";
            writeln!(replies, "{}", if fails { failed(1, "open was refused: EPERM") } else { reply })
        })
    };
    let run = run(refused, PATIENCE);
    let [Sample { outcome: Outcome::Unavailable { reason }, .. }] = of_method(&run, "pread")[..] else {
        panic!("{:?}", run.samples)
    };
    assert_eq!(reason, "open was refused: EPERM");
    assert_eq!(rounds_taken(&of_method(&run, "mmap")), (0..ROUNDS).collect::<Vec<_>>());
}
