//! Programs that are no honest workers, each a line of the shell.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;
use crate::family;

/// Never reached by what is tried here.
const PATIENCE: Duration = Duration::from_secs(60);

/// One worker at a time: when it ends, all children of this process do.
struct Shell(Conversation, #[allow(dead_code)] MutexGuard<'static, ()>);

impl Deref for Shell {
    type Target = Conversation;
    fn deref(&self) -> &Conversation {
        &self.0
    }
}

impl DerefMut for Shell {
    fn deref_mut(&mut self) -> &mut Conversation {
        &mut self.0
    }
}

fn shell(script: &str) -> Shell {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Shell(Conversation::start(command, "the shell", |command| Ok(command)).expect("the shell starts"), alone)
}

#[track_caller]
fn failure(trouble: ConversationError) -> Failure {
    match trouble {
        ConversationError::Broken(failure) => failure,
        other => panic!("{other:?}"),
    }
}

/// What comes of waiting for `ready`.
fn awaited(script: &str, patience: Duration) -> Result<u64, ConversationError> {
    shell(script).ready(Wait { patience, stop: &AtomicBool::new(false) })
}

#[track_caller]
fn fails_as(script: &str, kind: FailureKind, detail: &str) {
    let failure = failure(awaited(script, PATIENCE).expect_err(script));
    assert!(failure.kind == kind && failure.detail.contains(detail), "{script}: {failure:?}");
}

const READY: &str = r#"echo '{"type":"ready","warmup_ns":7}'"#;

#[test]
fn a_flood_of_stderr_blocks_nobody() {
    let flood = "dd if=/dev/zero bs=65536 count=64 >&2 2>/dev/null";
    assert_eq!(awaited(&format!("{flood}; {READY}; read never"), PATIENCE).expect("an answer"), 7);
    // Nor does one at the end, of both pipes.
    let stop = AtomicBool::new(false);
    let mut worker = shell(&format!("{READY}; read never; {flood}; dd if=/dev/zero bs=65536 count=64"));
    assert_eq!(worker.ready(Wait { patience: PATIENCE, stop: &stop }).expect("an answer"), 7);
    let Shell(worker, _alone) = worker;
    assert!(worker.end(PATIENCE).is_ok());
}

#[test]
fn a_line_without_end_is_given_up() {
    fails_as("exec cat /dev/zero", FailureKind::WorkerNonsense, "a line of over");
    let failure = failure(awaited("printf begun; read never", STOP_CHECK).expect_err("none"));
    assert_eq!(failure.kind, FailureKind::WorkerHung);
}

#[test]
fn who_ends_is_known_by_how_it_ended_whoever_holds_its_pipes() {
    fails_as("exit 3", FailureKind::WorkerDied, "ended with status 3 before it sent ready");
    fails_as("sleep 1000 & exit 3", FailureKind::WorkerDied, "ended with status 3 before it sent ready");
    fails_as("kill -BUS $$", FailureKind::WorkerDied, "was killed by SIGBUS before");
    fails_as("kill -KILL $$", FailureKind::KilledFromOutside, "was killed by SIGKILL before");
}

#[test]
fn what_was_said_before_the_end_counts() {
    assert_eq!(awaited(&format!("{READY}; exit 3"), PATIENCE).expect("an answer"), 7);
}

#[test]
fn a_line_that_is_no_message_is_nonsense_or_passed_over() {
    let script = format!("echo hello; {READY}; read never");
    fails_as(&script, FailureKind::WorkerNonsense, "instead of ready the worker sent 'hello'");
    let (mut worker, stop) = (shell(&script), AtomicBool::new(false));
    worker.pass_over_strays();
    assert_eq!(worker.ready(Wait { patience: PATIENCE, stop: &stop }).expect("an answer"), 7);
    assert_eq!(worker.take_strays(), ["hello"]);
}

#[test]
fn strays_without_end_are_given_up() {
    let (mut worker, stop) = (shell("exec yes"), AtomicBool::new(false));
    worker.pass_over_strays();
    let trouble = worker.ready(Wait { patience: STOP_CHECK, stop: &stop }).expect_err("no answer");
    assert_eq!(failure(trouble).kind, FailureKind::WorkerHung);
    assert_eq!(worker.take_strays().len(), KEPT_STRAYS);
}

#[test]
fn what_a_worker_forks_ends_with_it() {
    let mut worker = shell("sleep 1000 & read never");
    while worker.processes().len() < 2 {
        std::thread::sleep(END_CHECK);
    }
    worker.say_no_more();
    assert!(worker.ends_within(PATIENCE));
    let left = worker.processes();
    assert_eq!(left.len(), 1, "the one that was forked, and not who ended");
    let group = worker.pid();
    drop(worker);
    while !family::of_group(group).is_empty() {
        std::thread::sleep(END_CHECK);
    }
}

#[test]
fn last_words_have_an_end_whoever_goes_on_writing() {
    let mut endless = shell("read never");
    // There is always more to be read of it, as of a pipe into which a grandchild writes.
    endless.pipes.stderr = Some(File::open("/dev/zero").expect("/dev/zero"));
    endless.last_words(&AtomicBool::new(false));
    assert_eq!(endless.stderr_tail.len(), STDERR_TAIL_BYTES);
}

#[test]
fn who_wants_to_stop_waits_for_no_last_words() {
    let mut endless = shell("read never");
    endless.pipes.stderr = Some(File::open("/dev/zero").expect("/dev/zero"));
    assert_eq!(endless.last_words(&AtomicBool::new(true)), "");
}

#[test]
fn a_full_pipe_is_read_to_its_end() {
    let (reading, mut writing) = io::pipe().expect("a pipe");
    rustix::pipe::fcntl_setpipe_size(&writing, 256 << 10).expect("a larger pipe");
    writing.write_all(&vec![b'x'; (256 << 10) - 4096]).expect("it holds that");
    writing.write_all(b" the end").expect("and that");
    let mut dead = shell("read never");
    dead.pipes.stderr = Some(std::os::fd::OwnedFd::from(reading).into());
    assert!(dead.last_words(&AtomicBool::new(false)).ends_with("x the end"));
}

#[test]
fn a_thread_serves_as_a_worker_and_ends_with_its_conversation() {
    let stop = AtomicBool::new(false);
    let wait = Wait { patience: PATIENCE, stop: &stop };
    let ready = |mut replies: PipeWriter| writeln!(replies, r#"{{"type":"ready","warmup_ns":7}}"#);
    let mut patient = Conversation::within(move |mut requests, replies| {
        ready(replies)?;
        // Until there are no more.
        requests.read_to_end(&mut Vec::new()).map(drop)
    })
    .expect("a thread");
    assert_eq!(patient.ready(wait).expect("an answer"), 7);
    assert!(patient.end(PATIENCE).is_ok());

    let mut fails = Conversation::within(|_, _| Err(io::Error::other("no more"))).expect("a thread");
    let failed = failure(fails.ready(wait).expect_err("it fails"));
    assert_eq!(failed.kind, FailureKind::WorkerDied);
    assert_eq!(failed.detail, "the worker ended with status 1 before it sent ready");
    assert_eq!(fails.last_words(&stop), "worker: no more");
}
