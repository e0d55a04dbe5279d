//! `pagewise advise`: a program inspected, recorded, and its reads replayed by every method that
//! applies.

pub mod arguments;
mod choice;

use std::cell::OnceCell;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Error, Result, anyhow, bail, ensure};
use pagewise_analysis::judge;
use pagewise_host::windows;
use pagewise_lab::begin::{Claimed, Destination, Options, Taken, claim_within, stop_flag};
use pagewise_lab::choices::AllArguments;
use pagewise_lab::exit::Exit;
use pagewise_lab::output::{self, say};
use pagewise_lab::plan::{REPLAY, question};
use pagewise_lab::prepare::TypedQuestion;
use pagewise_lab::session::ProgramInTurn;
use pagewise_lab::state::State;
use pagewise_lab::store;
use pagewise_lab::traced::Traced;
use pagewise_lab::{answer, command_lines, measure};
use pagewise_model::Workload;
use pagewise_model::date::compact_utc;
use pagewise_model::format::{bytes, counted, duration};
use pagewise_model::inspection::Inspection;
use pagewise_model::run::ProgramRun;
use pagewise_model::trace::TraceFile;
use pagewise_report::inspect::{self as text, Shown};

use crate::record::{Limited, Recorded, Request, recorded_by, usual_name};
use crate::watched::{Needed, Started, command_of, exit_of};
use arguments::AdviseArguments;
use choice::{Candidates, read_bytes_of};

/// Files and threads that are shown above an answer, whose page has all.
const NAMED: usize = 2;
/// A program that takes longer is not run again in turn with its replay.
const LONGEST_IN_TURN_NS: u64 = 60_000_000_000;
/// One that takes longer is not run again for its time without a watch.
const LONGEST_UNWATCHED_NS: u64 = 30_000_000_000;
/// The time of all such runs of a program that is shorter, and their most.
const UNWATCHED_NS: u64 = 2_000_000_000;
const MOST_UNWATCHED: u64 = 5;
/// The time of a command whose program takes half a minute, without what the answer takes.
const LEAST_TIME: Duration = Duration::from_secs(285);
/// The time of others, as a multiple of what their program takes.
const TIMES_OF_PROGRAM: u32 = 10;
/// Two runs of a program read the same if their bytes differ by this share at most.
const SAME: f64 = 0.05;

/// `pagewise advise`.
pub fn advise(arguments: &AdviseArguments) -> Result<Exit> {
    // Refused before the user is asked for anything.
    command_of(&arguments.command)?;
    let trace = trace_name(arguments)?;
    let one_thread = arguments.out.as_deref().map(by_one_thread);
    for new in arguments.out.iter().chain(&one_thread).chain([&trace]) {
        output::can_appear(new)?;
    }
    if let Some(reason) =
        arguments.methods.iter().flatten().find_map(|method| method.unsuited(Workload::Replay))
    {
        bail!("{reason}");
    }
    if let Some(reason) = windows::refusal().filter(|_| arguments.windows) {
        return Err(Exit::NotMeasurable.because(anyhow!("there can be no windows: {reason}")));
    }
    if !may_evict(arguments)? {
        return Ok(Exit::Interrupted);
    }
    let stop = stop_flag()?;
    let stdin = StdinPosition::now();
    // What another run measures would be in the program's time, and the other way round.
    let Some(Claimed { mut state, .. }) = claim_within(arguments.wait, &stop)? else {
        return Ok(Exit::Interrupted);
    };
    if let Some(limit) = arguments.memory {
        // A limit that cannot be had is reported before the command is run.
        drop(Limited::begin(limit, &mut state)?);
    }
    let began = Instant::now();
    let watched = watch_and_record(arguments, &trace, &mut state, stdin, &stop);
    let traced = watched.and_then(|watched| match watched {
        Ok(file) => load(&trace, &file, false).map(Ok),
        Err(ending) => Ok(Err(ending)),
    });
    drop(state);
    let traced = match traced {
        Ok(Ok(traced)) => traced,
        nothing => {
            // It is of no use without an advice.
            let _ = fs::remove_file(&trace);
            return nothing.map(|ending| ending.err().unwrap_or(Exit::Interrupted));
        }
    };
    let program = in_turn(arguments, &traced, stdin);
    let took = Duration::from_nanos(traced.planned.wall_ns.unwrap_or(0));
    let ends_at = began + LEAST_TIME.max(took.saturating_mul(TIMES_OF_PROGRAM));
    let (files, threads) = (traced.files.clone(), traced.work.trace_threads);
    let taken = replay(arguments, traced, arguments.out.clone(), program.clone(), ends_at);
    let taken = taken.map_err(|error| {
        // Nothing was replayed, as where a worker has too little memory beside the program's.
        let is_without_run = arguments.out.as_ref().is_none_or(|out| !out.exists());
        if Exit::of(&error) == Exit::WrongUse && is_without_run {
            let _ = fs::remove_file(&trace);
        }
        after_a_run(error)
    });
    let taken = match taken? {
        Taken::File(path) if threads > 1 && Instant::now() < ends_at && !stands(&path)? => {
            say(format_args!(
                "note: the replay by {threads} threads does not read what the program read ({}); one thread replays the reads of all",
                path.display()
            ));
            let traced = load(&trace, &files, true)?;
            replay(arguments, traced, one_thread, program, ends_at).map_err(after_a_run)?
        }
        taken => taken,
    };
    match taken {
        Taken::File(path) => answer::answer(&[path], arguments.print),
        Taken::Ended(ending) => Ok(ending),
    }
}

/// The reads of these files that were just recorded.
fn load(trace: &Path, files: &[PathBuf], by_one: bool) -> Result<Traced> {
    Traced::load(trace, files, by_one, false).map_err(|error| Exit::FellShort.because(error))
}

/// True if the trace of a run stands for its program.
fn stands(run: &Path) -> Result<bool> {
    Ok(judge(&store::load(run)?).self_replay.is_none_or(|replay| replay.stands))
}

/// The run file of a replay by one thread, beside the one of a replay by several.
fn by_one_thread(out: &Path) -> PathBuf {
    let mut name = out.file_stem().unwrap_or_default().to_os_string();
    name.push("-one-thread");
    if let Some(extension) = out.extension() {
        name.push(".");
        name.push(extension);
    }
    out.with_file_name(name)
}

/// Run the command, once or twice, and write its trace; the files that it reads, or the ending if
/// there is nothing to be replayed.
fn watch_and_record(
    arguments: &AdviseArguments,
    trace: &Path,
    state: &mut State,
    stdin: StdinPosition,
    stop: &AtomicBool,
) -> Result<Result<Vec<PathBuf>, Exit>> {
    let (files, first) = match arguments.file.is_empty() {
        false => (arguments.file.iter().map(|file| named(file)).collect::<Result<Vec<_>>>()?, None),
        true => match first_run(arguments, stop)? {
            Ok(first) => (vec![first.file.clone()], Some(first)),
            Err(ending) => return Ok(Err(ending)),
        },
    };
    stdin.restore();
    let request = Request {
        command: &arguments.command,
        memory: arguments.memory,
        cold: &files,
        as_is: &[],
        quiet: true,
        needed: recorded_by(arguments.windows, arguments.memory),
    };
    let recorded = request.record(trace, Some(state));
    let recorded = if first.is_some() { recorded.map_err(after_a_run)? } else { recorded? };
    let Recorded { inspection, trace: kept, status } = recorded;
    if let Some(ending) = stopped(status, stop) {
        return Ok(Err(ending));
    }
    match &first {
        None => say_status(status),
        Some(first) if first.status != status => {
            return Err(Exit::FellShort.because(anyhow!(
                "the command did not end as in its first run ({} and {}), so it does not do the same each time",
                first.status,
                status
            )));
        }
        Some(_) => {}
    }
    show(&inspection, arguments, &files)?;
    if kept.as_deref() != Some(trace) {
        return Err(Exit::FellShort.because(anyhow!("there is no trace to be replayed")));
    }
    if let Some(first) = &first {
        difference(&first.inspection, &inspection, &first.file).iter().for_each(say);
    }
    Ok(Ok(files))
}

/// An error that comes when the command has run: it is not true that nothing was done.
fn after_a_run(error: Error) -> Error {
    match Exit::of(&error) {
        Exit::WrongUse => Exit::FellShort.because(error),
        _ => error,
    }
}

/// A file that the user named.
fn named(file: &Path) -> Result<PathBuf> {
    let found = file.canonicalize().map_err(|error| anyhow!("{}: {error}", file.display()))?;
    let shown = found.display();
    ensure!(found.to_str().is_some(), "the path {shown} is not UTF-8: run files and workers need UTF-8");
    Ok(found)
}

/// Beside the run file, if that is named: `NAME.trace`; else in this directory, with its date and
/// the name of the program.
fn trace_name(arguments: &AdviseArguments) -> Result<PathBuf> {
    if let Some(out) = &arguments.out {
        let trace = out.with_extension("trace");
        ensure!(
            trace != *out,
            "{} is the name of the trace: name the run file otherwise, as in run.jsonl",
            out.display()
        );
        return Ok(trace);
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut name = std::ffi::OsString::from(format!("pagewise-{}-", compact_utc(now.as_secs())));
    name.push(usual_name(&arguments.command));
    Ok(name.into())
}

/// True if its files may be dropped from the page cache: by the command line, or by the user's
/// answer on a terminal.
fn may_evict(arguments: &AdviseArguments) -> Result<bool> {
    if arguments.evict {
        return Ok(true);
    }
    let what = match &arguments.file[..] {
        [] => "the file that the command reads most of".to_string(),
        [file] => file.display().to_string(),
        files => format!("each of {}", counted(files.len() as u64, "file")),
    };
    let why = format!("{what} is dropped from the page cache before it is recorded and replayed");
    match output::confirm(&format!("{why}; other programs that read it then wait for the device. Go on?")) {
        Some(answer) => Ok(answer),
        None => bail!("{why}: allow it with: {}", command_lines::typed_first(&["--evict"])),
    }
}

/// A command that ran as it is.
struct FirstRun {
    /// The file of which it read most.
    file: PathBuf,
    inspection: Inspection,
    status: ExitStatus,
}

/// Run the command as it is, to find the file of which it reads most; or the ending, if there is
/// nothing to be replayed.
fn first_run(arguments: &AdviseArguments, stop: &AtomicBool) -> Result<Result<FirstRun, Exit>> {
    let command = command_of(&arguments.command)?;
    let mut started = Started::begin(command, &arguments.command, needed_without_windows(arguments), true)?;
    started.follow(|| true, |_, _| ())?;
    let (watched, rest) = started.into_parts();
    let inspection = watched.inspection(|_, _| ())?;
    let status = rest.wait()?;
    if let Some(ending) = stopped(status, stop) {
        return Ok(Err(ending));
    }
    say_status(status);
    let candidates = Candidates::of(&inspection);
    let file = match candidates.chosen(arguments.windows) {
        Ok(file) => file,
        Err(reason) => {
            show(&inspection, arguments, &[])?;
            return Err(Exit::FellShort.because(reason));
        }
    };
    candidates.lines(file).iter().for_each(say);
    let file = PathBuf::from(file.path.as_deref().unwrap_or_default());
    Ok(Ok(FirstRun { file, inspection, status }))
}

/// The ending, if a signal ended the command, or asked pagewise to end.
fn stopped(status: ExitStatus, stop: &AtomicBool) -> Option<Exit> {
    if let Some(signal) = status.signal() {
        say(format_args!("signal {signal} ended the command, so there is no advice"));
        return Some(exit_of(status));
    }
    stop.load(Ordering::Relaxed).then(|| {
        say("stopped before anything was measured");
        Exit::Interrupted
    })
}

fn say_status(status: ExitStatus) {
    if let Some(code) = status.code().filter(|code| *code != 0) {
        say(format_args!("note: the command ended with status {code}"));
    }
}

/// Print the inspection of the program on stdout above the answer; JSON has it within.
fn show(inspection: &Inspection, arguments: &AdviseArguments, replayed: &[PathBuf]) -> Result<()> {
    if arguments.print.json {
        return Ok(());
    }
    let replayed: Vec<&str> = replayed.iter().filter_map(|path| path.to_str()).collect();
    let is_replayed = !replayed.is_empty();
    // Without a replay there is no page that has the others.
    let most = if is_replayed { NAMED } else { text::SHOWN };
    let others = Some(text::PAGE).filter(|_| is_replayed && !arguments.print.no_html);
    let shown = Shown { most, replayed: &replayed, is_own: true, others };
    output::lines(&text::document(inspection, shown).lines(output::width()))?;
    Ok(writeln!(output::stdout())?)
}

/// A note if a second run of the command read another amount of a file than the first.
fn difference(first: &Inspection, second: &Inspection, file: &Path) -> Option<String> {
    if first.lost_records + second.lost_records > 0 {
        return None;
    }
    let (first, second) = (read_bytes_of(file, first), read_bytes_of(file, second));
    let apart = first.abs_diff(second) as f64 / (first.max(1)) as f64;
    (apart > SAME).then(|| {
        format!(
            "note: the command read {} of {} in its first run and {} in its second: it does not do the same each time, and \
             what follows is of the second",
            bytes(first),
            file.display(),
            bytes(second)
        )
    })
}

/// The needs of a run of the command that is not recorded: with windows, calls may be shut.
fn needed_without_windows(arguments: &AdviseArguments) -> Needed {
    if arguments.windows { Needed::Nothing } else { Needed::Calls }
}

/// The command, to be run in turn with its replay as it was recorded, but without windows, which
/// slow it down; `None`, and a note, if it takes long.
fn in_turn(arguments: &AdviseArguments, traced: &Traced, stdin: StdinPosition) -> Option<ProgramInTurn> {
    if let Some(wall_ns) = traced.planned.wall_ns.filter(|wall_ns| *wall_ns > LONGEST_IN_TURN_NS) {
        say(format_args!(
            "note: the command took {}, so it is not run again in turn with its replay",
            duration(wall_ns)
        ));
        return None;
    }
    let (words, memory) = (arguments.command.clone(), arguments.memory);
    let (cold, needed) = (traced.files.clone(), needed_without_windows(arguments));
    let windows = arguments.windows;
    let ended = traced.planned.inspection.as_ref().and_then(|inspection| inspection.subject.ended.clone());
    let unwatched_runs = unwatched_runs(traced.planned.wall_ns);
    let run = move |state: &mut State, needed: Needed| {
        stdin.restore();
        let request = Request { command: &words, memory, cold: &cold, as_is: &[], quiet: true, needed };
        let (trailer, inspection, _) = request.run(Some(state), |_| ())?;
        ensure_same_end(ended.as_deref(), &trailer.program.ended)?;
        Ok::<_, anyhow::Error>((trailer, inspection))
    };
    let (files, unwatched) = (traced.files.clone(), OnceCell::<Option<u64>>::new());
    Some(Rc::new(move |state, round| {
        let (mut trailer, inspection) = run(state, needed)?;
        if windows {
            // Without them no touch is recorded, for which pages came in all the same.
            trailer.count_faults(&inspection);
        }
        // Once, also if a replay by one thread follows that of several.
        if unwatched.get().is_none() {
            let mut times = Vec::new();
            for _ in 0..unwatched_runs {
                times.push(run(state, Needed::Time)?.0.program.wall_ns);
            }
            let _ = unwatched.set(times.into_iter().min());
        }
        // Unknown if it did not read one of them this time.
        let read = |path: &PathBuf| trailer.files.iter().find(|file| Path::new(&file.path) == path);
        let seen: Option<Vec<&TraceFile>> = files.iter().map(read).collect();
        Ok(ProgramRun {
            round,
            wall_ns: trailer.program.wall_ns,
            unwatched_ns: unwatched.get().copied().flatten().filter(|_| round == 1),
            device_bytes: seen.and_then(|files| trailer.device_bytes(&files)),
        })
    }))
}

/// Runs without a watch of a command that took so long: the shorter, the more.
fn unwatched_runs(wall_ns: Option<u64>) -> u64 {
    match wall_ns.unwrap_or(LONGEST_UNWATCHED_NS) {
        too_long if too_long > LONGEST_UNWATCHED_NS => 0,
        wall_ns => (UNWATCHED_NS / wall_ns.max(1)).clamp(1, MOST_UNWATCHED),
    }
}

/// Refuse another end of the command than that which was recorded, if it is known.
fn ensure_same_end(recorded: Option<&str>, now: &str) -> Result<()> {
    match recorded.filter(|recorded| *recorded != now) {
        Some(recorded) => Err(Exit::FellShort
            .because(anyhow!("the command did not end as when it was recorded: {recorded}, and now {now}"))),
        None => Ok(()),
    }
}

/// Replay the reads by every method that applies.
fn replay(
    arguments: &AdviseArguments,
    traced: Traced,
    out: Option<PathBuf>,
    program: Option<ProgramInTurn>,
    ends_at: Instant,
) -> Result<Taken> {
    let text = question(REPLAY.0).ok_or_else(|| anyhow!("the question {}", REPLAY.0))??.for_own_file();
    let destination = Destination::File { paths: traced.files.clone(), evict: true, directory: None };
    let all = AllArguments { print: arguments.print, wait: arguments.wait, ..AllArguments::default() };
    let options = Options { out, all, program, ends_at: Some(ends_at), ..Options::default() };
    let (variant, chosen) = (arguments.variant(), arguments.layer());
    let asked = TypedQuestion { text, variant, chosen, destination, traced: Some(traced) };
    measure::measure(asked, &options)
}

/// The position of stdin, if it is a file: a further run of a command begins there too.
#[derive(Clone, Copy)]
struct StdinPosition(Option<u64>);

impl StdinPosition {
    fn now() -> Self {
        Self(as_file().and_then(|mut file| file.stream_position().ok()))
    }

    fn restore(&self) {
        if let (Some(at), Some(mut file)) = (self.0, as_file()) {
            // A stdin that cannot be set back shows in what the further run reads.
            let _ = file.seek(SeekFrom::Start(at));
        }
    }
}

/// Stdin, if it is a regular file. Descriptors share their position.
fn as_file() -> Option<fs::File> {
    let file = fs::File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    file.metadata().is_ok_and(|found| found.is_file()).then_some(file)
}
