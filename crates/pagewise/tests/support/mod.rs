//! The command run in a place of its own, and what it left there.
//!
//! Every place has its own directory, state directory and environment, so that tests run beside
//! each other. Nothing here judges: it runs, waits with a bound, and looks.

#![allow(dead_code)] // Each test uses a part of it.

pub mod documents;
pub mod furnished;
pub mod needs;
pub mod outsider;
pub mod paused;
pub mod recorded;
pub mod schema;
pub mod setting;
pub mod terminal;
pub mod until;
pub mod words;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pagewise_analysis::judge::Status;
use pagewise_model::run::Run;
use pagewise_model::trace::Trace;
use pagewise_model::{Failure, FailureKind, Outcome, Role, Sample};
use tempfile::TempDir;

pub use needs::skipped;

/// Longer than any run of a test takes on a busy machine; a run that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(150);

/// The command under test.
pub const PAGEWISE: &str = env!("CARGO_BIN_EXE_pagewise");

/// The command of the worker that misbehaves as `kind` says.
pub fn cheating_worker(kind: &str) -> String {
    example_worker("cheating_worker", kind)
}

/// The command of the worker that appends as a published study did, with the defects that `kind`
/// names.
pub fn published_worker(kind: &str) -> String {
    example_worker("published_append_worker", kind)
}

/// The command of the worker that cheats about its syncs as `kind` says.
pub fn cheating_log_worker(kind: &str) -> String {
    example_worker("cheating_log_worker", kind)
}

/// The command of the worker that replays traces, with threads that read what `kind` says.
pub fn cheating_replay_worker(kind: &str) -> String {
    example_worker("cheating_replay_worker", kind)
}

/// The command of the worker that does one-shot work and hides a part of its time.
pub fn cheating_once_worker(kind: &str) -> String {
    example_worker("cheating_once_worker", kind)
}

/// The command of the worker that works before `go`.
pub fn early_worker(kind: &str) -> String {
    example_worker("early_worker", kind)
}

/// The command of the user's own worker that misbehaves as `kind` says.
pub fn misbehaving_worker(kind: &str) -> String {
    example_worker("misbehaving_worker", kind)
}

fn example_worker(name: &str, kind: &str) -> String {
    let path = Path::new(PAGEWISE).with_file_name("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing; `cargo build -p pagewise --examples` makes it, as `cargo test` does",
        path.display()
    );
    assert!(!path.to_string_lossy().contains(' '), "the worker's path holds a space");
    format!("{} {kind}", path.display())
}

/// The words of a quick run of `pagewise advise` for a command.
pub fn advise<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["advise", "--evict", "--quick"], options, &["--"], command].concat()
}

/// A directory to run in, and a state directory beside it; both vanish.
pub struct Place {
    root: TempDir,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// The exit code; a panic where a signal ended it.
    #[track_caller]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }

    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        self
    }

    /// Expects the exit code of [`code_for`].
    #[track_caller]
    pub fn expect_code_for(self, run: &Run) -> Self {
        self.expect_code(code_for(run))
    }

    /// What `--json` printed: the judged run.
    #[track_caller]
    pub fn judged(&self) -> serde_json::Value {
        let value: serde_json::Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        match value {
            serde_json::Value::Array(runs) => runs.into_iter().next().expect("one run was judged"),
            run => run,
        }
    }
}

impl Place {
    /// A place on the filesystem of the build directory.
    pub fn new() -> Self {
        Self::on(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// A place for what measures nothing: what it writes is not on the filesystem that other tests
    /// measure, where that is one of its own.
    pub fn apart() -> Self {
        Self::on(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the build directory"))
    }

    /// A place on the filesystem of `directory`.
    pub fn on(directory: &Path) -> Self {
        let root = tempfile::Builder::new().prefix("place-").tempdir_in(directory).expect("a directory");
        for name in ["work", "state"] {
            fs::create_dir(root.path().join(name)).expect("a directory");
        }
        Self { root }
    }

    /// The current directory of its commands.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// State directory of its commands.
    pub fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// The directory around both.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// A file in it that holds `bytes`.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, bytes).expect("write");
        path
    }

    /// A file in it that is on the device, so that it can be evicted: its path as text.
    pub fn write_synced(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.write(name, bytes);
        File::open(&path).and_then(|file| file.sync_all()).expect("sync");
        path.display().to_string()
    }

    /// Lets user and group `id` own it, so that they can run there.
    pub fn give_to(&self, id: u32) {
        fs::set_permissions(self.root(), fs::Permissions::from_mode(0o755)).expect("permissions");
        for path in [self.path(), self.state()] {
            std::os::unix::fs::chown(path, Some(id), Some(id)).expect("chown");
        }
    }

    /// A command of pagewise, not yet started.
    pub fn command<Text: AsRef<std::ffi::OsStr>>(&self, arguments: &[Text]) -> Command {
        let mut command = Command::new(PAGEWISE);
        command.args(arguments);
        self.settle(&mut command);
        command
    }

    /// The same as user and group `id`, to whom the place is given; reported as a skip where the
    /// way to the place is closed to others.
    pub fn command_as<Text: AsRef<std::ffi::OsStr>>(&self, id: u32, arguments: &[Text]) -> Option<Command> {
        self.give_to(id);
        let open =
            |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 1 == 1);
        if !self.root().ancestors().all(open) {
            skipped("open-path", &format!("others may not enter {}", self.root().display()));
            return None;
        }
        // The build directory may be closed to others.
        let program = self.root().join("pagewise");
        if !program.exists() {
            // By another process: a descriptor of ours for writing could be inherited by what
            // another test starts at the same time, and a program that is open for writing cannot
            // be executed.
            let copied = Command::new("cp").arg(PAGEWISE).arg(&program).status().expect("cp");
            assert!(copied.success(), "{copied}");
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permissions");
        }
        let mut command = Command::new(program);
        command.args(arguments);
        self.settle(&mut command);
        std::os::unix::process::CommandExt::uid(&mut command, id);
        std::os::unix::process::CommandExt::gid(&mut command, id);
        Some(command)
    }

    /// Gives any command this place as its own; what it prints goes into files, so that nobody has
    /// to drain it.
    pub fn settle(&self, command: &mut Command) {
        let file = |name: &str| File::create(self.root.path().join(name)).expect("create");
        command
            .current_dir(self.path())
            .env("PAGEWISE_STATE_DIR", self.state())
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"));
    }

    /// Runs to the end.
    #[track_caller]
    pub fn run<Text: AsRef<std::ffi::OsStr>>(&self, arguments: &[Text]) -> Finished {
        let mut command = self.command(arguments);
        self.finish(command.spawn().expect("pagewise starts"))
    }

    /// Waits for the end.
    #[track_caller]
    pub fn finish(&self, mut child: Child) -> Finished {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().expect("wait") {
                break status;
            }
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                panic!("no end within {PATIENCE:?}: {}", self.printed("stderr"));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        Finished { status, stdout: self.printed("stdout"), stderr: self.printed("stderr") }
    }

    fn printed(&self, name: &str) -> String {
        let bytes = fs::read(self.root.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Names of what lies in the directory.
    pub fn entries(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.path()).expect("list");
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect()
    }

    /// Datasets and probes in the directory.
    pub fn traces(&self) -> Vec<PathBuf> {
        let named = |name: &String| name.starts_with(".pagewise-");
        self.entries().iter().filter(|name| named(name)).map(|name| self.file(name)).collect()
    }

    /// The journal of its run: what a killed run may have left.
    pub fn journal(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.state().join("journal")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Paths of one kind (`file`, `group`, `setting`) in the journal.
    pub fn journaled(&self, made: &str) -> BTreeSet<PathBuf> {
        let lines = self.journal().into_iter().filter(|line| line["made"] == made);
        lines.filter_map(|line| line["path"].as_str().map(PathBuf::from)).collect()
    }

    /// Processes that came from a command of this place: they inherited its environment.
    pub fn processes(&self) -> Vec<u32> {
        let mark = format!("PAGEWISE_STATE_DIR={}", self.state().display());
        let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
        processes
            .flatten()
            .filter_map(|entry| {
                let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
                let environment = fs::read(entry.path().join("environ")).ok()?;
                environment.split(|byte| *byte == 0).any(|line| line == mark.as_bytes()).then_some(pid)
            })
            .collect()
    }

    /// Waits until no process of this place is left.
    #[track_caller]
    pub fn expect_no_process(&self) {
        wait_for("the processes of the run are gone", || self.processes().is_empty().then_some(()));
    }

    /// Nothing of pagewise's is left but run files.
    #[track_caller]
    pub fn expect_no_trace(&self) {
        assert_eq!(self.traces(), Vec::<PathBuf>::new());
        self.expect_no_process();
    }
}

/// Waits for something that happens without help, within a bound that only a fault exceeds.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "did not happen: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A trace that must be whole.
#[track_caller]
pub fn load_trace(path: &Path) -> Trace {
    Trace::parse(&fs::read(path).expect("read")).expect("a trace")
}

/// Reads a run file.
#[track_caller]
pub fn load(path: &Path) -> Run {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let run = Run::parse(&text).unwrap_or_else(|error| panic!("{}, {error}", path.display()));
    // Checks say of a run file what they said when it was measured.
    let again = pagewise_analysis::proof::again(&run);
    assert!(again.run.samples == run.samples, "{}: checks find other failures", path.display());
    recorded::keep(&run);
    run
}

/// The exit code that the file of a run calls for: 130 where it was stopped, 3 where nothing could
/// be measured, 1 where a cell fell short or has no rival, 0 where none did. Which of the last two
/// is up to the machine wherever samples can be disturbed.
pub fn code_for(run: &Run) -> i32 {
    if !run.is_complete() {
        return 130;
    }
    let judged = pagewise_analysis::judge(run);
    let cells = judged.cells.iter().filter(|cell| cell.role == Role::Measured);
    let statuses: Vec<Status> = cells.map(|cell| cell.status).collect();
    if statuses.iter().all(|status| *status == Status::Unavailable) {
        return 3;
    }
    let is_short = judged.fell_short() || judged.lacks_rival();
    i32::from(is_short || !statuses.contains(&Status::Ok))
}

/// The whole lines of a run file as they are now; none where there is no file yet.
pub fn whole_lines(path: &Path) -> Vec<String> {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_string).collect()
}

/// The samples of cells that are no ceilings.
pub fn of_methods(run: &Run) -> Vec<&Sample> {
    let ceilings: Vec<String> = run
        .header
        .plan
        .cells
        .iter()
        .filter(|cell| cell.role == Role::Ceiling)
        .map(|cell| cell.id())
        .collect();
    run.samples.iter().filter(|sample| !ceilings.contains(&sample.cell)).collect()
}

/// The samples of cells of one method, controls among them.
pub fn of_method<'a>(run: &'a Run, method: &str) -> Vec<&'a Sample> {
    let cells = run.header.plan.cells.iter().filter(|cell| cell.method.to_string() == method);
    let cells: Vec<String> = cells.filter(|cell| cell.role != Role::Ceiling).map(|cell| cell.id()).collect();
    run.samples.iter().filter(|sample| cells.contains(&sample.cell)).collect()
}

/// Checks that a busy machine fails for an honest worker too: another process used the device, the
/// worker waited for a CPU between the clocks, or the kernel took pages of a warm file.
pub const FROM_OUTSIDE: [FailureKind; 5] = {
    use FailureKind::{ActorAbsent, Contaminated, Disturbed, FalseTime, NotWarm};
    [ActorAbsent, Contaminated, Disturbed, FalseTime, NotWarm]
};

/// The checks that a sample failed.
pub fn kinds(sample: &Sample) -> Vec<FailureKind> {
    sample.failures().iter().map(|failure| failure.kind).collect()
}

/// Whether a sample is valid, or would be on a quiet machine. A cell whose pages do not stay in the
/// cache ends. What an actor does that is kept from a CPU does not settle.
pub fn is_honest(sample: &Sample) -> bool {
    let kinds = kinds(sample);
    let unsettled = |kind| kind == FailureKind::NotSettled && kinds.contains(&FailureKind::ActorAbsent);
    !matches!(sample.outcome, Outcome::Unavailable { .. })
        && kinds.iter().all(|kind| FROM_OUTSIDE.contains(kind) || unsettled(*kind))
}

/// Whether counters show that others used the device or a CPU that the worker waited for, beside
/// what a check says.
pub fn was_disturbed(sample: &Sample) -> bool {
    let Outcome::Taken { evidence, .. } = &sample.outcome else { return false };
    kinds(sample).iter().any(|kind| FROM_OUTSIDE.contains(kind))
        && [evidence.device_other_bytes, evidence.run_queue_ns]
            .iter()
            .any(|count| count.is_some_and(|count| count > 0))
}

/// Ends a test that the machine did not let come to a result: `checks/tests.py` runs it again
/// alone, and does not count it as failed.
#[track_caller]
pub fn inconclusive(reason: &str) -> ! {
    panic!("inconclusive: {reason}")
}

/// Ends the test as [`inconclusive`] if others disturbed every sample of a measured cell.
#[track_caller]
pub fn expect_undisturbed(run: &Run) {
    for cell in run.header.plan.cells.iter().filter(|cell| cell.role == Role::Measured) {
        let mut samples = run.samples.iter().filter(|sample| sample.cell == cell.id()).peekable();
        if samples.peek().is_some() && samples.all(|sample| sample.valid().is_none() && was_disturbed(sample))
        {
            inconclusive(&format!("others disturbed every sample of {}", cell.id()));
        }
    }
}

/// The failures of a sample that ended its cell, and the end of the worker's stderr.
#[track_caller]
pub fn broken(sample: &Sample) -> (&[Failure], &str) {
    match &sample.outcome {
        Outcome::Broken { failures, stderr_tail } => (failures, stderr_tail),
        other => panic!("not broken: {other:?}"),
    }
}

/// Whether every cell has a sample of every round, but for cells that ended.
#[track_caller]
pub fn expect_whole(run: &Run) {
    assert!(run.is_complete(), "the run is not complete");
    for cell in &run.header.plan.cells {
        let samples: Vec<&Sample> = run.samples.iter().filter(|sample| sample.cell == cell.id()).collect();
        if samples.iter().any(|sample| !matches!(sample.outcome, Outcome::Taken { .. })) {
            continue;
        }
        let rounds: BTreeSet<u32> = samples.iter().map(|sample| sample.round).collect();
        let plan = &run.header.plan;
        let asked: BTreeSet<u32> =
            (0..plan.first_rounds()).filter(|round| plan.takes(cell, *round)).collect();
        assert!(rounds.is_superset(&asked), "{}: {rounds:?}", cell.id());
        assert!(plan.budget.is_some() || rounds == asked, "{}: {rounds:?}", cell.id());
    }
    let mut tries: Vec<(&str, u32, u32)> =
        run.samples.iter().map(|sample| (&*sample.cell, sample.round, sample.attempt)).collect();
    tries.sort_unstable();
    let all = tries.len();
    tries.dedup();
    assert_eq!(tries.len(), all, "a sample stands twice in the run file");
}

/// Whether this test runs in mounts of its own. Else it is run anew there, behind what the shell
/// command `setup` does to them, and its outcome is that of this one; what is mounted vanishes with
/// its process, however that ends.
#[track_caller]
pub fn in_own_mounts(test: &str, setup: &str) -> bool {
    const MARK: &str = "PAGEWISE_TEST_IN_OWN_MOUNTS";
    if std::env::var_os(MARK).is_some_and(|marked| marked == test) {
        return true;
    }
    if !rustix::process::geteuid().is_root() {
        skipped("root", "only root can mount");
        return false;
    }
    // The module of a test is its file.
    let file = Path::new(Location::caller().file()).file_stem().expect("a file").to_string_lossy();
    let path = format!("{file}::{test}");
    let script = format!("{{ {setup} ; }} || exit 77; exec \"$@\"");
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation=private", "sh", "-c", &script, "sh"]).arg(program);
    command.args(["--exact", &path, "--show-output"]).env(MARK, test).stdin(Stdio::null());
    match command.output() {
        Ok(output) => {
            print!("{}", String::from_utf8_lossy(&output.stdout));
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            match output.status.code() {
                Some(77) => skipped("mount", "the mounts cannot be had"),
                code => assert_eq!(code, Some(0), "it failed in mounts of its own"),
            }
        }
        Err(error) => skipped("unshare", &format!("unshare: {error}")),
    }
    false
}

/// For [`in_own_mounts`]: a filesystem of 96 MiB on a loop device, in place of the directory for
/// the files of tests. Its image has no name any more, so that nothing of it can stay. `/run` is
/// its own too, where settings of the machine are noted down.
pub const OWN_FILESYSTEM: &str = concat!(
    "cd ",
    env!("CARGO_TARGET_TMPDIR"),
    " && truncate -s 96M image-$$ && mkfs.ext4 -q -F -E nodiscard image-$$ && \
     mount -o loop image-$$ . ; code=$?; rm -f image-$$; [ $code = 0 ] && cd / && mount -t tmpfs tmpfs /run "
);

/// A user and group who own nothing and are nobody here.
pub const NOBODY: u32 = 65_534;

/// A command of pagewise on a host of this name; it ends with 77 where no name can be given.
pub fn on_host<Text: AsRef<std::ffi::OsStr>>(host: &str, words: &[Text]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--uts", "sh", "-c", "hostname \"$0\" || exit 77; exec \"$@\"", host, PAGEWISE]);
    command.args(words);
    command
}

/// Whether this is root; else the test is skipped.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("root", "only root can give files to another user");
    }
    root
}

/// The watch needs tracefs for calls; if this user cannot have it, the test says so.
pub fn sees_calls() -> bool {
    let open = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .iter()
        .any(|place| fs::read_dir(format!("{place}/events/syscalls")).is_ok());
    if !open {
        skipped("tracefs", "tracefs is not mounted, or closed to this user");
    }
    open
}

/// Exit 2, one line that says `sentence`, nothing on stdout.
#[track_caller]
pub fn expect_refused(finished: &Finished, sentence: &str) {
    expect_message(finished, 2, sentence);
}

/// This exit code, one line that says `sentence`, nothing on stdout.
#[track_caller]
pub fn expect_message(finished: &Finished, code: i32, sentence: &str) {
    assert_eq!(finished.status.code(), Some(code), "{finished:?}");
    assert_eq!(finished.stdout, "", "{finished:?}");
    assert!(finished.stderr.starts_with("pagewise: "), "{finished:?}");
    assert_eq!(finished.stderr.trim_end().lines().count(), 1, "more than a sentence: {}", finished.stderr);
    assert!(finished.stderr.contains(sentence), "'{sentence}' is not in: {}", finished.stderr);
}

/// Why a run under a memory limit is refused here; none of where systemd would give it a scope.
pub fn without_memory_limit() -> Option<String> {
    let control = pagewise_host::cgroup::Control::detect();
    control.memory().err().filter(|refusal| refusal.scope.is_none()).map(ToString::to_string)
}

/// Each line of words is refused with its sentence, and the place stays as it was.
#[track_caller]
pub fn refuse_all(place: &Place, table: &[(&str, &str)]) {
    let before = place.entries();
    for (words, sentence) in table {
        let arguments: Vec<&str> =
            words.split_whitespace().map(|word| if word == "''" { "" } else { word }).collect();
        let finished = place.run(&arguments);
        println!("{words}\n    {}", finished.stderr.trim_end());
        expect_refused(&finished, sentence);
        assert_eq!(place.entries(), before, "{words}");
    }
    assert_eq!(fs::read_dir(place.state()).expect("list").count(), 0, "the right to run was not needed");
}
