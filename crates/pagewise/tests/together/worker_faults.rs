//! Whatever a worker does wrong ends its cell with that reason; the run goes on and nothing is left
//! behind.

use crate::support::paused::PausedRun;
use crate::support::{
    self, Finished, PAGEWISE, Place, broken, cheating_worker, is_honest, kinds, load, of_method, of_methods,
};
use pagewise_host::steps::RunStep;
use pagewise_model::FailureKind::{KilledFromOutside, WorkerDied, WorkerHung, WorkerNonsense};
use pagewise_model::run::Run;
use pagewise_model::{FailureKind, Outcome, Sample};

const ARGUMENTS: [&str; 10] = [
    "run",
    "read",
    "--workload=random-read",
    "--cache=warm",
    "--threads=1",
    "--trial-rounds=2",
    "--sample=5ms",
    "--file-size=4MiB",
    "--json",
    "--out=run.jsonl",
];

/// Runs `pread` and `mmap` with a worker of `command` to the end; nothing is left but the run file.
#[track_caller]
fn run_command(command: &str, more: &[&str]) -> (Run, Finished) {
    let place = Place::new();
    let mut arguments = ARGUMENTS.to_vec();
    arguments.extend(["--methods=pread,mmap", "--worker-command", command]);
    arguments.extend(more);
    let finished = place.run(&arguments);
    let run = load(&place.file("run.jsonl"));
    assert!(run.is_complete(), "{finished:?}");
    assert_eq!(place.entries(), ["run.jsonl".to_string()].into());
    place.expect_no_process();
    (run, finished)
}

#[track_caller]
fn run(kind: &str) -> (Run, Finished) {
    // Short where the worker falls silent; nothing else may depend on how busy the machine is.
    let silent = ["hangs-at-start", "ignores-go"].contains(&kind);
    run_command(&cheating_worker(kind), if silent { &["--patience=1"] } else { &[] })
}

/// Each cell of `samples` has ended with its first sample.
#[track_caller]
fn expect_ended(samples: &[&Sample], kind: FailureKind, detail: &str) {
    let mut cells: Vec<&str> = samples.iter().map(|sample| &*sample.cell).collect();
    cells.sort_unstable();
    cells.dedup();
    assert_eq!(cells.len(), samples.len(), "a cell went on");
    assert!(!cells.is_empty());
    for sample in samples {
        let (failures, _) = broken(sample);
        assert_eq!(kinds(sample), [kind], "{failures:?}");
        assert!(failures[0].detail.contains(detail), "'{detail}' is not in {failures:?}");
    }
}

/// The fault ends every cell: it comes before the worker knows what is asked.
#[track_caller]
fn ends_every_cell(worker: &str, kind: FailureKind, detail: &str) -> Run {
    let (run, finished) = run(worker);
    finished.expect_code(1);
    let cells = run.header.plan.cells.len();
    let samples: Vec<&Sample> = run.samples.iter().collect();
    assert_eq!(samples.len(), cells, "each cell was tried once");
    expect_ended(&samples, kind, detail);
    run
}

/// The fault ends the cells of `pread`; those of `mmap` have all their samples.
#[track_caller]
fn ends_its_cell(worker: &str, kind: FailureKind, detail: &str) -> Run {
    let (run, finished) = run(worker);
    let finished = finished.expect_code(1);
    expect_ended(&of_method(&run, "pread"), kind, detail);
    expect_others_whole(&run);
    let judged = finished.judged();
    let cell = judged["cells"].as_array().expect("cells").iter().find(|cell| cell["method"] == "pread");
    let cell = cell.expect("the cell is shown");
    assert_eq!(cell["status"], "invalid");
    assert!(cell["reason"].as_str().expect("a reason").contains(detail), "{cell}");
    run
}

#[track_caller]
fn expect_others_whole(run: &Run) {
    let others = of_method(run, "mmap");
    for sample in &others {
        assert!(is_honest(sample), "{:?}", sample.outcome);
    }
    let rounds: std::collections::BTreeSet<u32> = others.iter().map(|sample| sample.round).collect();
    assert_eq!(rounds, (0..run.header.plan.rounds).collect());
}

#[test]
fn a_worker_that_dies_at_start_shows_its_last_words() {
    let run = ends_every_cell("dies-at-start", WorkerDied, "ended with status 3 before it sent hello");
    for sample in &run.samples {
        assert_eq!(broken(sample).1, "libimaginary.so.1: cannot open shared object file");
    }
}

#[test]
fn a_worker_that_does_not_exist_is_named() {
    for command in ["/nowhere/worker honest", "/dev/null"] {
        let (run, finished) = run_command(command, &[]);
        finished.expect_code(1);
        let samples: Vec<&Sample> = run.samples.iter().collect();
        expect_ended(&samples, WorkerDied, "could not be started");
    }
    let place = Place::new();
    let finished = place.run(&["run", "read", "--worker-command", " "]);
    support::expect_refused(&finished, "--worker-command is empty");
}

#[test]
fn a_worker_that_is_another_program_is_refused() {
    let (run, finished) = run_command("/bin/echo hello", &[]);
    finished.expect_code(1);
    expect_ended(&run.samples.iter().collect::<Vec<_>>(), WorkerNonsense, "the worker sent 'hello'");
}

#[test]
fn a_worker_that_does_not_end_is_ended() {
    ends_its_cell("lingers", WorkerHung, "did not end within");
}

#[test]
fn a_worker_that_dies_after_opened_shows_its_last_words() {
    let run = ends_its_cell("dies-after-opened", WorkerDied, "was killed by SIGABRT before it sent");
    for sample in of_method(&run, "pread") {
        assert_eq!(broken(sample).1, "assertion failed: the worker is well");
    }
}

#[test]
fn megabytes_on_stderr_do_no_harm() {
    let (run, _) = run("floods-stderr");
    for sample in of_methods(&run) {
        assert!(is_honest(sample), "{:?}", sample.outcome);
    }
    let run = ends_every_cell("floods-stderr-and-dies", WorkerDied, "ended with status 3");
    for sample in &run.samples {
        let (_, tail) = broken(sample);
        assert!(tail.ends_with("these are the last words") && tail.len() <= 4096, "{} bytes", tail.len());
    }
}

/// The native worker in the course of a sample, as the out-of-memory killer or an impatient admin
/// would.
#[test]
fn a_worker_killed_from_outside_loses_that_sample_alone_and_the_run_says_so() {
    let place = Place::new();
    // As long as a busy machine may need to come to the kill.
    let mut arguments = ARGUMENTS.to_vec();
    arguments.retain(|argument| !argument.starts_with("--sample="));
    arguments.extend(["--methods=pread,mmap", "--sample=300ms"]);
    let running = PausedRun::start(&place, &arguments, RunStep::GoSent);
    let mut gone = 0;
    let finished = running.act_until_end(|run| {
        gone += 1;
        if gone == 2 {
            run.kill_workers();
        }
    });
    let run = load(&place.file("run.jsonl"));
    let finished = finished.expect_code_for(&run);
    let ended: Vec<&Sample> =
        run.samples.iter().filter(|sample| matches!(sample.outcome, Outcome::Broken { .. })).collect();
    assert_eq!(ended.len(), 1, "one worker was killed: {ended:?}");
    let (failures, _) = broken(ended[0]);
    assert!(
        failures[0].detail.contains("the worker was killed by SIGKILL before it sent"),
        "{failures:?} {finished:?}"
    );
    assert_eq!(kinds(ended[0]), [KilledFromOutside]);
    let judged = finished.judged();
    let reasons = &judged["validity"]["reasons"];
    let is_reported = |reason: &serde_json::Value| reason["kind"] == "killed-from-outside";
    assert!(reasons.as_array().expect("reasons").iter().any(is_reported), "{reasons}");
    for cell in &run.header.plan.cells {
        let taken =
            |sample: &&Sample| sample.cell == cell.id() && matches!(sample.outcome, Outcome::Taken { .. });
        let rounds: std::collections::BTreeSet<u32> =
            run.samples.iter().filter(taken).map(|sample| sample.round).collect();
        assert_eq!(rounds, (0..run.header.plan.rounds).collect(), "{}", cell.id());
    }
    assert_eq!(place.entries(), ["run.jsonl".to_string()].into());
    place.expect_no_process();
}

#[test]
fn the_command_without_a_worker_ends_by_itself() {
    // What a worker does when nobody listens: stdin ends, and so does it.
    let mut command = std::process::Command::new(PAGEWISE);
    let output = command.arg("worker").stdin(std::process::Stdio::null()).output().expect("worker");
    assert_eq!(output.status.code(), Some(0));
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.starts_with(r#"{"type":"hello","#) && stdout.lines().count() == 1, "{stdout}");
}
