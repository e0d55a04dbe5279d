//! `pagewise inspect`: a program watched by the kernel's own records. Nothing is changed in it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use pagewise_host::process::{self, ProcessKind};
use pagewise_host::watch::Target;
use pagewise_lab::exit::Exit;
use pagewise_lab::output;
use pagewise_model::inspection::{Inspection, Subject};
use pagewise_model::untrusted::shell_word;
use pagewise_report::{inspect as text, json};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::watched::{Needed, Requests, Started, Watched, command_of, exit_of};

/// `pagewise inspect`.
#[derive(Debug, Args)]
#[command(after_help = INSPECT_HELP)]
pub struct InspectArguments {
    /// A process that runs
    #[arg(value_name = "PID", value_parser = parse_process)]
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
    /// Write the result into a new file [default: stdout; of a command stderr, since stdout is its
    /// own]
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

Exit status: that of the command, 127 if there is none of this name, 126 if it cannot be \
executed, 128 and its number if a signal ended it. Of a process: 0, or 2 for wrong use.";

/// The number of a process.
fn parse_process(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| {
        format!(
            "write the number of a process, or -- before a command, as in pagewise inspect -- {}",
            shell_word(text)
        )
    })
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).trim().parse::<f64>().ok();
    let seconds = seconds.filter(|seconds| (0.1..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "write a number of seconds, from 0.1 to 86400".to_string())
}

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
    let requests = Requests::begin()?;
    let subject = Subject { command: process::name(number), process: number, ..Subject::default() };
    let mut watched = Watched::begin(Target::Running(process), !arguments.no_calls, subject);
    let seconds = arguments.seconds.unwrap_or(USUAL_SECONDS);
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let goes_on = || Instant::now() < until && !requests.is_some();
    let ended = watched.follow(&end, goes_on, |_, _| ())?;
    watched.ended(ended.then(|| "it ended".to_string()));
    watched.finish(|_, _| (), |inspection| show(inspection, arguments, false))?;
    Ok(Exit::Answered)
}

/// A command, from its first instruction on.
fn started(arguments: &InspectArguments) -> Result<Exit> {
    let command = command_of(&arguments.command)?;
    let needed = if arguments.no_calls { Needed::NoCalls } else { Needed::Nothing };
    let mut started = Started::begin(command, &arguments.command, needed, false)?;
    let until = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    started.follow(|| until.is_none_or(|until| Instant::now() < until), |_, _| ())?;
    let (watched, rest) = started.into_parts();
    // The command has run: what becomes of the result does not change its status.
    if let Err(error) = watched.finish(|_, _| (), |inspection| show(inspection, arguments, true)) {
        output::say(format_args!("the result of inspect is lost: {error:#}"));
    }
    Ok(exit_of(rest.wait()?))
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

/// On stdout; beside a command, whose own output that is, on stderr.
fn show(inspection: &Inspection, arguments: &InspectArguments, is_command: bool) -> Result<()> {
    let most = if arguments.all { usize::MAX } else { text::SHOWN };
    let shown = text::Shown { most, replayed: &[], is_own: true, others: Some(text::ALL) };
    let lines = || text::document(inspection, shown).lines(output::width());
    match (&arguments.out, arguments.json) {
        (Some(path), true) => output::file_or_another(path, |out| json::write_one(out, inspection)),
        (Some(path), false) => output::file_or_another(path, |out| out.lines(&lines(), false)),
        (None, true) if is_command => Ok(json::write_one(&mut output::stderr(), inspection)?),
        (None, true) => Ok(json::write_one(&mut output::stdout(), inspection)?),
        (None, false) if is_command => {
            let mut out = output::stderr();
            Ok(out.lines(&lines(), false)?)
        }
        (None, false) => Ok(output::lines(&lines())?),
    }
}
