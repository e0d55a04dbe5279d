//! A program being watched, for the commands that do so: its start, what it does, its end, and its
//! exit status.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use pagewise_host::mounts::Mount;
use pagewise_host::watch::{self, Target, Watch};
use pagewise_host::windows::Windows;
use pagewise_host::{cgroup, device, open_files, process};
use pagewise_lab::exit::Exit;
use pagewise_model::ProcessCounters;
use pagewise_model::inspection::{Inspection, Subject};
use pagewise_model::trace::WindowTally;
use pagewise_model::untrusted::shell_word;
use pagewise_model::watched::{DiskOf, Missing, Observation, ObservationKind};
use pagewise_sys::{Held, Spawn};
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use rustix::process::{Pid, PidfdFlags, Signal, getpgrp, kill_process, pidfd_open};
use rustix::termios::tcgetpgrp;

use crate::observed::{Accessed, Accounts};

/// The rings are looked at this often, and whenever they fill.
const LOOK: Duration = Duration::from_millis(100);
/// The totals of a program are looked at this often at most; in windows, what has happened is added
/// up this often.
const SOON: Duration = Duration::from_millis(20);
/// Room for what a program prints that is dropped, as much as each user may have usually, and how
/// long it is left there.
const MOST_PRINTED: usize = 1 << 20;
const UNREAD: Duration = Duration::from_millis(5);
/// The wait for the program to be executed.
const AT_ONCE: Duration = Duration::from_millis(1);

/// A program being watched.
pub(super) struct Watched {
    watch: Option<Watch>,
    windows: Option<Windows>,
    missing: Vec<Missing>,
    accounts: Accounts,
    subject: Subject,
    began_ns: u64,
    first: ProcessCounters,
    last: ProcessCounters,
    /// Looks at the subject's totals.
    looks: u64,
    anonymous_bytes: Option<u64>,
    /// End of the process, if its tracer has seen it.
    status: Option<ExitStatus>,
}

impl Watched {
    /// Begin to watch, with as much as this user may see.
    pub(super) fn begin(target: Target, calls: bool, subject: Subject) -> Self {
        Self::begin_with(target, calls, false, subject)
    }

    fn begin_with(target: Target, calls: bool, windows: bool, subject: Subject) -> Self {
        let (watch, missing) = match Watch::begin(target, calls, windows) {
            Ok(watch) => {
                let missing = watch.missing().to_vec();
                (Some(watch), missing)
            }
            Err(reason) => {
                let kinds = [ObservationKind::Faults, ObservationKind::Calls, ObservationKind::PageCache];
                (None, kinds.map(|kind| Missing { kind, reason: reason.clone() }).into())
            }
        };
        Self::of(watch, missing, subject)
    }

    fn of(watch: Option<Watch>, missing: Vec<Missing>, subject: Subject) -> Self {
        let first = process::totals(subject.process);
        let disks: DiskOf = watch.as_ref().map_or(|_| None, Watch::disks);
        Self {
            watch,
            windows: None,
            missing,
            accounts: Accounts::new(rustix::param::page_size() as u64).with_disks(disks),
            began_ns: watch::now_ns(),
            last: first,
            first,
            subject,
            looks: 0,
            anonymous_bytes: None,
            status: None,
        }
    }

    /// The reason, if what is needed cannot be seen.
    fn see(&mut self, needed: Needed, process: Pid) -> Result<(), String> {
        let unseen = |kind| Missing::of(&self.missing, kind);
        match needed {
            Needed::NoCalls | Needed::Nothing | Needed::Time => Ok(()),
            Needed::Calls => unseen(ObservationKind::Calls).map_or(Ok(()), |missing| {
                Err(format!("calls are not seen, so the command was not started: {}", missing.reason))
            }),
            Needed::Windows(most) => {
                let refused =
                    |reason| format!("there can be no windows, so the command was not started: {reason}");
                if let Some(missing) = unseen(ObservationKind::Faults) {
                    return Err(refused(missing.reason.clone()));
                }
                let Some(watch) = &mut self.watch else { return Ok(()) };
                self.windows = Some(Windows::begin(process, most, watch).map_err(refused)?);
                Ok(())
            }
        }
    }

    /// When it began, on the clock of [`Accessed::time_ns`].
    pub(super) fn began_ns(&self) -> u64 {
        self.began_ns
    }

    /// The most memory without a file that was seen.
    pub(super) fn anonymous_bytes(&self) -> Option<u64> {
        self.anonymous_bytes
    }

    /// Watch while `goes_on`, and hand over reads; true if the process has ended.
    pub(super) fn follow(
        &mut self,
        end: &OwnedFd,
        goes_on: impl Fn() -> bool,
        mut accessed: impl FnMut(&Accounts, Accessed),
    ) -> Result<bool> {
        if self.windows.is_some() {
            return self.follow_windows(goes_on, accessed);
        }
        let mut looked = None::<Instant>;
        loop {
            let ended = match &mut self.watch {
                Some(watch) => {
                    let ended = watch.wait(end.as_fd(), LOOK)?;
                    add_up(&mut self.accounts, watch.drain(), &mut accessed);
                    ended
                }
                None => watch::wait_for_end(end.as_fd(), LOOK)?,
            };
            if ended || looked.is_none_or(|looked| looked.elapsed() >= SOON) {
                self.look_at_totals();
                looked = Some(Instant::now());
            }
            if ended || !goes_on() {
                return Ok(ended);
            }
        }
    }

    /// Look at what has happened, and add it up later.
    fn look(&mut self, end: &OwnedFd) -> Result<()> {
        if let (Some(watch), None) = (&mut self.watch, &self.windows) {
            let ended = watch.wait(end.as_fd(), AT_ONCE)?;
            watch.look();
            if !ended {
                return Ok(());
            }
        }
        thread::sleep(AT_ONCE);
        Ok(())
    }

    /// As [`Self::follow`], in windows.
    fn follow_windows(
        &mut self,
        goes_on: impl Fn() -> bool,
        mut accessed: impl FnMut(&Accounts, Accessed),
    ) -> Result<bool> {
        let mut looked = Instant::now();
        loop {
            let (Some(watch), Some(windows)) = (&mut self.watch, &mut self.windows) else { return Ok(false) };
            self.status = windows.step(watch, LOOK)?.map(ExitStatus::from_raw);
            let ended = self.status.is_some();
            if !ended && looked.elapsed() < SOON {
                continue;
            }
            looked = Instant::now();
            add_up(&mut self.accounts, watch.drain(), &mut accessed);
            if ended || !goes_on() {
                windows.end(watch)?;
                add_up(&mut self.accounts, watch.drain(), &mut accessed);
                // What outlives the command goes on untraced: what is in a call when it returns.
                windows.let_go()?;
                windows.step(watch, SOON)?;
                return Ok(ended);
            }
            self.look_at_totals();
        }
    }

    fn look_at_totals(&mut self) {
        let totals = process::totals(self.subject.process);
        if totals.device_read_bytes.is_some() {
            self.last = totals;
        }
        self.anonymous_bytes = self.anonymous_bytes.max(process::anonymous_bytes(self.subject.process));
        // It may join a group after its start.
        self.looks += 1;
        if self.looks.is_power_of_two()
            && let Some(limit) = cgroup::memory_limit_of(self.subject.process)
        {
            self.subject.memory_limit_bytes = Some(limit.0);
        }
    }

    /// Number of windows, and of those that are proven, if there were to be any.
    pub(super) fn windows(&self) -> Option<WindowTally> {
        self.windows.as_ref().map(Windows::tally)
    }

    /// The end of the program, if it has ended.
    pub(super) fn ended(&mut self, ended: Option<String>) {
        self.subject.ended = ended;
    }

    /// The last reads, and what was seen.
    pub(super) fn inspection(self, accessed: impl FnMut(&Accounts, Accessed)) -> Result<Inspection> {
        let mut seen = None;
        self.finish(accessed, |inspection| {
            seen = Some(inspection.clone());
            Ok(())
        })?;
        seen.context("the watch has no end")
    }

    /// The last reads, and `show` what was seen; then the events are closed, which takes a while.
    pub(super) fn finish(
        mut self,
        mut accessed: impl FnMut(&Accounts, Accessed),
        show: impl FnOnce(&Inspection) -> Result<()>,
    ) -> Result<()> {
        let (mut tallies, mut lost) = (Vec::new(), 0);
        if let Some(watch) = &mut self.watch {
            add_up(&mut self.accounts, watch.finish()?, &mut accessed);
            (tallies, lost) = (watch.tallies()?, watch.lost());
            self.missing = watch.missing().to_vec();
        }
        let times = (self.began_ns, watch::now_ns());
        let mut inspection = self.accounts.inspection(self.subject, times, &self.missing, (tallies, lost));
        inspection.totals = ProcessCounters::difference(&self.first, &self.last);
        for file in &mut inspection.files {
            let mount = file.path.as_ref().and_then(|path| Mount::holding(path.as_ref()).ok().flatten());
            file.filesystem = mount.map(|mount| mount.filesystem);
            if file.path.is_none() {
                file.block_device = device::of_blocks(file.identity);
            }
        }
        show(&inspection)
    }
}

/// Add what has happened to the accounts, and hand over the accesses that it consists of.
fn add_up(
    accounts: &mut Accounts,
    observations: Vec<Observation>,
    mut accessed: impl FnMut(&Accounts, Accessed),
) {
    for observation in observations {
        if let Some(access) = accounts.add(observation) {
            accessed(accounts, access);
        }
    }
}

/// Read what a program prints until it ends. A write that finds a reader waiting wakes it, which
/// takes a program longer that writes little at a time: so nobody waits while there is much room.
fn drop_printed(mut printed: ChildStdout) {
    let room = fcntl_setpipe_size(&printed, MOST_PRINTED).or_else(|_| fcntl_getpipe_size(&printed));
    let mut block = vec![0; room.unwrap_or(MOST_PRINTED)];
    loop {
        match printed.read(&mut block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(read) if read < block.len() / 2 => thread::sleep(UNREAD),
            Ok(_) => {}
        }
    }
}

/// The command of these words.
pub(super) fn command_of(words: &[OsString]) -> Result<Command> {
    let [program, words @ ..] = words else { bail!("there is no command: write it behind --") };
    if program.is_empty() {
        bail!("the name of the command is empty: write one behind --");
    }
    let mut command = Command::new(program);
    command.args(words);
    Ok(command)
}

/// Observations without which a command cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    /// Everything but calls, which are not watched.
    NoCalls,
    /// Nothing; what can be seen is watched.
    Nothing,
    /// The time that the command takes, and nothing is watched.
    Time,
    /// Calls.
    Calls,
    /// The touches of mapped pages, in windows of so many; calls, if they can be seen.
    Windows(u64),
}

/// A command that was started and is watched from its first instruction on.
pub(super) struct Started {
    watched: Watched,
    end: OwnedFd,
    rest: Rest,
}

/// The process of a command, watched or not.
pub(super) struct Rest {
    child: Child,
    process: Pid,
    status: Option<ExitStatus>,
    requests: Requests,
}

impl Started {
    /// Start `command`, which the user wrote as `words`; not if what is needed cannot be seen. If
    /// it is `quiet`, what it prints on stdout is read and dropped: /dev/null instead would let
    /// programs such as grep(1) end early.
    pub(super) fn begin(
        mut command: Command,
        words: &[OsString],
        needed: Needed,
        quiet: bool,
    ) -> Result<Self> {
        if quiet {
            command.stdout(Stdio::piped());
        }
        // A program may have as many files open as it is allowed.
        Spawn { open_files: open_files::usual(), ..Spawn::default() }.apply(&mut command);
        let requests = Requests::begin()?;
        let held = Held::spawn(command).context("no process can be started")?;
        let process = held.process();
        let end = pidfd_open(process, PidfdFlags::empty()).context("pidfd_open")?;
        let text = words.iter().map(|word| shell_word(&word.to_string_lossy())).collect::<Vec<_>>().join(" ");
        let number = process.as_raw_nonzero().get() as u32;
        let subject = Subject { command: text, started: true, process: number, ..Subject::default() };
        let with_windows = matches!(needed, Needed::Windows(_));
        let target = Target::Held(process);
        let mut watched = match needed {
            Needed::Time => Watched::of(None, Vec::new(), subject),
            _ => Watched::begin_with(target, needed != Needed::NoCalls, with_windows, subject),
        };
        if let Err(reason) = watched.see(needed, process) {
            held.give_up();
            return Err(Exit::NotMeasurable.because(anyhow!("{reason}")));
        }
        let program = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        let refused = |error| not_executed(&program, error);
        let released = held.release().map_err(refused)?;
        // The thread that starts the program may wait for a CPU for longer than the program runs.
        while !released.is_known() {
            watched.look(&end)?;
        }
        let mut child = released.child().map_err(refused)?;
        if let Some(printed) = child.stdout.take() {
            // A child that outlives the command may keep the pipe open, so nobody waits for this
            // thread.
            thread::spawn(move || drop_printed(printed));
        }
        Ok(Self { watched, end, rest: Rest { child, process, status: None, requests } })
    }

    /// The program being watched.
    pub(super) fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Watch while `goes_on` and until the end, and hand over reads.
    pub(super) fn follow(
        &mut self,
        goes_on: impl Fn() -> bool,
        accessed: impl FnMut(&Accounts, Accessed),
    ) -> Result<()> {
        let Self { watched, end, rest } = self;
        let going_on = || {
            rest.requests.pass_on(rest.process);
            goes_on()
        };
        if watched.follow(end, going_on, accessed)? {
            let status = watched.status.map_or_else(|| rest.child.wait(), Ok)?;
            rest.status = Some(status);
            watched.ended(Some(ending(status)));
        }
        Ok(())
    }

    /// The watch, and the process.
    pub(super) fn into_parts(self) -> (Watched, Rest) {
        (self.watched, self.rest)
    }
}

impl Rest {
    /// Wait for the end of the command.
    pub(super) fn wait(mut self) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            self.status = self.child.try_wait()?;
            self.requests.pass_on(self.process);
            if self.status.is_none() {
                thread::sleep(LOOK);
            }
        }
    }
}

/// Requests to end that this process has got, each until it is taken: one that follows another does
/// not replace it.
pub(super) struct Requests(Vec<(Signal, Arc<AtomicBool>)>);

impl Requests {
    /// Notice them from now on.
    pub(super) fn begin() -> Result<Self> {
        let own = std::process::id();
        let mut requests = Vec::new();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let number = signal.as_raw();
            // What is ignored (nohup) is ignored by the command, too: a handler would not be
            // inherited.
            if process::has_signal(own, "SigIgn", number) {
                continue;
            }
            let came = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(number, came.clone()).context("the signal handlers cannot be set")?;
            requests.push((signal, came));
        }
        Ok(Self(requests))
    }

    /// True if there is one.
    pub(super) fn is_some(&self) -> bool {
        self.0.iter().any(|(_, came)| came.load(Ordering::Relaxed))
    }

    /// Pass them on to a command.
    fn pass_on(&self, process: Pid) {
        for (signal, came) in &self.0 {
            if came.swap(false, Ordering::Relaxed) && !(*signal == Signal::INT && is_of_terminal()) {
                // It may have ended meanwhile.
                let _ = kill_process(process, *signal);
            }
        }
    }
}

/// True if an interrupt is likely that of a terminal, which the command gets by itself: this
/// process is in its foreground.
fn is_of_terminal() -> bool {
    let terminal = File::open("/dev/tty").ok();
    terminal.and_then(|terminal| tcgetpgrp(terminal).ok()) == Some(getpgrp())
}

/// The status of shells for a command that is not there (127), or that cannot be executed (126).
fn not_executed(program: &str, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => Exit::Program(127).because(anyhow!("{program}: there is no such command")),
        _ => Exit::Program(126).because(anyhow!("{program} cannot be executed: {error}")),
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "it ended".to_string(),
        (Some(code), _) => format!("it ended with status {code}"),
        (None, signal) => format!("signal {} ended it", signal.unwrap_or_default()),
    }
}

/// As a shell reports it: 128 and the number of the signal.
pub(super) fn exit_of(status: ExitStatus) -> Exit {
    let signalled = || 128 + status.signal().unwrap_or(0);
    Exit::Program(status.code().unwrap_or_else(signalled).try_into().unwrap_or(u8::MAX))
}
