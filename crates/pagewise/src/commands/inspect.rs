//! `pagewise inspect`: a program watched by the kernel's own records. Nothing is changed in it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use pagewise_analysis::inspect::{Accounts, Inspection, Subject};
use pagewise_host::device;
use pagewise_host::mounts::Mount;
use pagewise_host::process::{self, ProcessKind};
use pagewise_host::watch::{self, Target, Watch};
use pagewise_model::ProcessCounters;
use pagewise_model::watched::{Missing, Sight};
use pagewise_report::{inspect as text, json};
use pagewise_sys::Held;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::Exit;
use crate::output;

/// `pagewise inspect`.
#[derive(Debug, Args)]
#[command(after_help = INSPECT_HELP)]
pub struct InspectArguments {
    /// A process that runs
    #[arg(value_name = "PID")]
    pub process: Option<u32>,
    /// A command, watched from its first instruction on
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Time to watch [default: 10 for a process; a command is watched until it ends]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Watch no calls, only faults and waits: cheaper for a program that makes very many calls
    #[arg(long)]
    pub no_calls: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the result into a new file [default: stdout; of a command stderr, since stdout is its own]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Show all files and threads
    #[arg(long, short)]
    pub all: bool,
}

const INSPECT_HELP: &str = "\
Examples:
  pagewise inspect 4321 --seconds 30         a process that runs
  pagewise inspect -- sqlite3 my.db 'select count(*) from t'
  pagewise inspect --json --out seen.json -- ./server --once

Exit status: that of the command, 127 if there is none of this name, 126 if it cannot be executed, 128 and its number if a
signal ended it. Of a process: 0, or 2 for wrong use.";

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).trim().parse::<f64>().ok();
    let seconds = seconds.filter(|seconds| (0.1..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "write a number of seconds, from 0.1 to 86400".to_string())
}

/// The rings are looked at this often, and whenever they fill.
const LOOK: Duration = Duration::from_millis(100);
/// Time that a running process is watched.
const USUAL_SECONDS: f64 = 10.0;

/// `pagewise inspect`.
pub fn inspect(arguments: &InspectArguments) -> Result<Exit> {
    arguments.out.as_deref().map_or(Ok(()), output::can_appear)?;
    match (arguments.process, arguments.command.is_empty()) {
        (Some(process), true) => running(process, arguments),
        (None, false) => started(arguments),
        (Some(_), false) => bail!("a process and a command cannot both be inspected: name one of them"),
        (None, true) => bail!("there is nothing to inspect: name a process, or a command behind --"),
    }
}

/// A process that runs already.
fn running(number: u32, arguments: &InspectArguments) -> Result<Exit> {
    let process = watchable(number)?;
    let end = pidfd_open(process, PidfdFlags::empty()).map_err(|_| gone(number))?;
    let signal = signals()?;
    let (watch, missing) = begin(Target::Running(process), arguments);
    let subject = Subject { command: process::name(number), process: number, ended: None };
    let mut watched = Watched::new(watch, missing, subject);
    let seconds = arguments.seconds.unwrap_or(USUAL_SECONDS);
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let ended = watched.follow(&end, || Instant::now() < until && signal.load(Ordering::Relaxed) == 0)?;
    watched.subject.ended = ended.then(|| "it ended".to_string());
    watched.print(arguments, false)?;
    Ok(Exit::Answered)
}

/// A command, from its first instruction on.
fn started(arguments: &InspectArguments) -> Result<Exit> {
    let [program, words @ ..] = &arguments.command[..] else { bail!("there is no command") };
    let mut command = Command::new(program);
    command.args(words);
    let signal = signals()?;
    let held = Held::spawn(command).context("no process can be started")?;
    let process = held.process();
    let end = pidfd_open(process, PidfdFlags::empty()).context("pidfd_open")?;
    let (watch, missing) = begin(Target::Held(process), arguments);
    let told = arguments.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let number = process.as_raw_nonzero().get() as u32;
    let subject = Subject { command: told, process: number, ended: None };
    let mut watched = Watched::new(watch, missing, subject);
    let mut child = match held.release() {
        Ok(child) => child,
        Err(error) => return Err(not_executed(&program.to_string_lossy(), error)),
    };
    let until = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let goes_on = || {
        pass_on(&signal, process);
        until.is_none_or(|until| Instant::now() < until)
    };
    if watched.follow(&end, goes_on)? {
        let status = child.wait()?;
        watched.subject.ended = Some(ending(status));
        watched.print(arguments, true)?;
        return Ok(exit_of(status));
    }
    watched.print(arguments, true)?;
    Ok(exit_of(wait(&mut child, &signal, process)?))
}

/// Wait for a command that is not watched any more.
fn wait(child: &mut Child, signal: &AtomicUsize, process: Pid) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        pass_on(signal, process);
        std::thread::sleep(LOOK);
    }
}

/// Signals of this process: those of a terminal go to the command by themselves.
fn signals() -> Result<Arc<AtomicUsize>> {
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(number, signal.clone(), number as usize)
            .context("the signal handlers cannot be set")?;
    }
    Ok(signal)
}

/// Pass a request to end on to the command.
fn pass_on(signal: &AtomicUsize, process: Pid) {
    let signal = match signal.swap(0, Ordering::Relaxed) as i32 {
        SIGTERM => Signal::TERM,
        SIGHUP => Signal::HUP,
        _ => return,
    };
    // It may have ended meanwhile.
    let _ = kill_process(process, signal);
}

fn begin(target: Target, arguments: &InspectArguments) -> (Option<Watch>, Vec<Missing>) {
    match Watch::begin(target, !arguments.no_calls) {
        Ok(watch) => {
            let missing = watch.missing().to_vec();
            (Some(watch), missing)
        }
        Err(reason) => {
            let sights = [Sight::Faults, Sight::Calls, Sight::PageCache];
            let missing = sights.map(|sight| Missing { sight, reason: reason.clone() });
            (None, missing.into())
        }
    }
}

/// The process of this number, if it can be inspected.
fn watchable(number: u32) -> Result<Pid> {
    let process = i32::try_from(number).ok().and_then(Pid::from_raw).ok_or_else(|| gone(number))?;
    match process::kind(number) {
        ProcessKind::Missing => Err(gone(number)),
        ProcessKind::Thread { of } => bail!("{number} is a thread of process {of}: inspect {of}"),
        ProcessKind::Kernel => {
            bail!("process {number} is a thread of the kernel, which reads no files of its own")
        }
        ProcessKind::Ended => bail!("process {number} has ended, and its parent has not noticed yet"),
        ProcessKind::OfOther { user } => {
            bail!("process {number} belongs to user {user}: only root may inspect it")
        }
        ProcessKind::Program if number == std::process::id() => bail!("pagewise cannot inspect itself"),
        ProcessKind::Program => Ok(process),
    }
}

fn gone(number: u32) -> anyhow::Error {
    anyhow!("there is no process {number}")
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
fn exit_of(status: ExitStatus) -> Exit {
    let signalled = || 128 + status.signal().unwrap_or(0);
    Exit::Program(status.code().unwrap_or_else(signalled).try_into().unwrap_or(u8::MAX))
}

/// A program being watched.
struct Watched {
    watch: Option<Watch>,
    missing: Vec<Missing>,
    accounts: Accounts,
    subject: Subject,
    began_ns: u64,
    first: ProcessCounters,
    last: ProcessCounters,
}

impl Watched {
    fn new(watch: Option<Watch>, missing: Vec<Missing>, subject: Subject) -> Self {
        let first = process::totals(subject.process);
        Self {
            watch,
            missing,
            accounts: Accounts::new(rustix::param::page_size() as u64),
            began_ns: watch::now_ns(),
            last: first,
            first,
            subject,
        }
    }

    /// Watch while `goes_on`; true if the process has ended.
    fn follow(&mut self, end: &OwnedFd, goes_on: impl Fn() -> bool) -> Result<bool> {
        loop {
            let ended = match &mut self.watch {
                Some(watch) => {
                    let ended = watch.wait(end.as_fd(), LOOK)?;
                    watch.drain().into_iter().for_each(|happening| self.accounts.add(happening));
                    ended
                }
                None => watch::wait_for_end(end.as_fd(), LOOK)?,
            };
            if ended {
                return Ok(true);
            }
            let totals = process::totals(self.subject.process);
            if totals.device_read_bytes.is_some() {
                self.last = totals;
            }
            if !goes_on() {
                return Ok(false);
            }
        }
    }

    /// Print what was seen; then the events are closed, which takes a while.
    fn print(mut self, arguments: &InspectArguments, is_command: bool) -> Result<()> {
        let (mut tallies, mut lost) = (Vec::new(), 0);
        if let Some(watch) = &mut self.watch {
            watch.finish()?.into_iter().for_each(|happening| self.accounts.add(happening));
            (tallies, lost) = (watch.tallies()?, watch.lost());
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
        show(&inspection, arguments, is_command)
    }
}

/// On stdout; beside a command, whose own output that is, on stderr.
fn show(inspection: &Inspection, arguments: &InspectArguments, is_command: bool) -> Result<()> {
    let lines = || text::lines(inspection, output::width(), arguments.all);
    match (&arguments.out, arguments.json) {
        (Some(path), true) => output::file(path, |out| json::write_one(out, inspection)),
        (Some(path), false) => {
            output::file(path, |out| lines().iter().try_for_each(|line| out.line(line, false)))
        }
        (None, true) if is_command => Ok(json::write_one(&mut output::stderr(), inspection)?),
        (None, true) => Ok(json::write_one(&mut output::stdout(), inspection)?),
        (None, false) if is_command => {
            let mut out = output::stderr();
            Ok(lines().iter().try_for_each(|line| out.line(line, false))?)
        }
        (None, false) => Ok(output::lines(&lines())?),
    }
}
