//! Parts of a command that measures: the right to run, the destination, the workers, a seed, the
//! stop flag, and how it ends.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use pagewise_host::cgroup::Control;
use pagewise_host::{FileKey, FileKeys, Space, environment, files, mounted};
use pagewise_model::format::time;
use pagewise_model::plan::OwnFile;
use pagewise_model::random::mix;
use pagewise_model::shell_words::split_words;
use pagewise_model::{Environment, Plan, Source, WorkerChoices, WorkerFound};

use crate::choices::AllArguments;
use crate::command_lines::line_of;
use crate::exit::Exit;
use crate::output::say;
use crate::session::{ProgramInTurn, RunSession, SamplingEnd};
use crate::state::{RunClaim, State, Undone};
use crate::supervise::program::{Program, Stated};
use crate::supervise::programs::{self, Programs};

/// Time between two tries of a claim that waits.
const AGAIN: Duration = Duration::from_millis(200);

/// The right to run, as it was got.
pub struct Claimed {
    /// The right.
    pub state: State,
    /// True if it was waited for, so that what was seen of the machine before is old.
    pub has_waited: bool,
    /// True if a setting of the machine was restored for it.
    pub has_restored: bool,
}

/// Claim the right to run, at once.
pub fn claim() -> Result<State> {
    let never = AtomicBool::new(false);
    Ok(claim_within(None, &never)?.expect("nothing stops a claim that does not wait").state)
}

/// Claim the right to run, and wait for it so long; `None`: stopped meanwhile.
pub fn claim_within(wait_ns: Option<u64>, stop: &AtomicBool) -> Result<Option<Claimed>> {
    let directory = std::env::current_dir().map_or("?".into(), |directory| directory.display().to_string());
    let description = format!("pid {}, begun in {directory}", std::process::id());
    let began = Instant::now();
    let mut has_waited = false;
    loop {
        let holder = match State::claim(&description)? {
            RunClaim::Refused { holder } => holder,
            RunClaim::Granted { state, swept } => {
                let has_restored = swept.undone.iter().any(|undone| matches!(undone, Undone::Restored(..)));
                swept.say();
                return Ok(Some(Claimed { state, has_waited, has_restored }));
            }
        };
        let Some(wait_ns) = wait_ns.filter(|wait_ns| began.elapsed() < Duration::from_nanos(*wait_ns)) else {
            let waited = wait_ns.map_or(String::new(), |ns| format!(", and still is after {}", time(ns)));
            return Err(Exit::Busy.because(anyhow!(
                "another run is measuring ({holder}){waited}: wait for it or stop it, since two would disturb each other"
            )));
        };
        if !std::mem::replace(&mut has_waited, true) {
            say(format_args!("waiting up to {} for another run to end ({holder})", time(wait_ns)));
        }
        std::thread::sleep(AGAIN);
        if stop.load(Ordering::Relaxed) {
            say("stopped while waiting: nothing was measured");
            return Ok(None);
        }
    }
}

/// A seed of 53 bits, so that every JSON reader keeps it exactly.
pub fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    mix(since.as_nanos() as u64 ^ u64::from(std::process::id())) >> 11
}

/// Flag set by SIGINT, SIGTERM and SIGHUP.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone()).context("the signal handlers cannot be set")?;
    }
    Ok(stop)
}

/// Result of a command that measures.
pub enum Taken {
    /// A complete run file.
    File(PathBuf),
    /// Nothing to show.
    Ended(Exit),
}

/// Arguments that do not choose cells.
pub struct Options {
    /// The run file that was named.
    pub out: Option<PathBuf>,
    /// When sampling begins, in nanoseconds since 1970; `None`: at once.
    pub start_at: Option<u64>,
    /// Writes and prints.
    pub all: AllArguments,
    /// Another program instead of the own worker.
    pub worker_command: Option<String>,
    /// Time that a worker may take for an answer beyond the requested work.
    pub patience: Duration,
    /// The page cache of the whole machine may be dropped.
    pub drop_caches: bool,
    /// Workers in other languages.
    pub workers: WorkerChoices,
    /// The program whose trace is replayed, if it may be run again.
    pub program: Option<ProgramInTurn>,
    /// The time at which the run ends, with the samples that there are.
    pub ends_at: Option<Instant>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            out: None,
            start_at: None,
            all: AllArguments::default(),
            worker_command: None,
            patience: Duration::from_secs(30),
            drop_caches: false,
            workers: WorkerChoices::default(),
            program: None,
            ends_at: None,
        }
    }
}

/// The place of the files of a run.
#[derive(Clone)]
pub enum Destination {
    /// Files are made in this directory.
    Directory(PathBuf),
    /// The user's own file, or those of a replay.
    File {
        /// The files; there is one at least.
        paths: Vec<PathBuf>,
        /// Permission to drop them from the page cache.
        evict: bool,
        /// Directory of the files of actors, if one is named.
        directory: Option<PathBuf>,
    },
}

/// Text that identifies a worker.
pub fn identity(worker: &WorkerFound) -> &str {
    if worker.unavailable.is_some() { "unavailable" } else { worker.version.as_str() }
}

/// Find and build the workers of other languages, and report anything unusual.
pub fn find_workers(
    plan: &Plan,
    options: &Options,
    stop: &AtomicBool,
) -> Result<(Programs, Vec<WorkerFound>)> {
    let own = match &options.worker_command {
        None => Program::Own,
        Some(command) => {
            let words = split_words(command)?;
            let (program, arguments) =
                words.split_first().context("--worker-command is empty: write the command of a program")?;
            Program::stated(Stated::new(program, arguments))
        }
    };
    // The heartbeat interval is data, and is taken from the run file; programs are taken from the
    // command line.
    let typed = WorkerChoices { heartbeat_ns: plan.workers.heartbeat_ns, ..options.workers.clone() };
    let (programs, found) = programs::find(plan, &typed, own, stop)?;
    for WorkerFound { name, notes, unavailable, .. } in &found {
        for note in notes {
            say(format_args!("note: worker {name}: {note}"));
        }
        if let Some(reason) = unavailable {
            say(format_args!("warning: the worker {name} is unavailable: {reason}"));
        }
    }
    Ok((programs, found))
}

/// Complete a run file.
pub fn finish(
    session: RunSession,
    programs: Programs,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Taken> {
    let again = line_of(session.store.path(), &session.header);
    let is_stdout = session.store.is_stdout();
    match session.complete(programs, options.patience, stop) {
        Ok((SamplingEnd::Completed, path)) => Ok(Taken::File(path)),
        Ok((SamplingEnd::Interrupted, _)) if is_stdout => {
            say("stopped; the samples so far were written to stdout");
            Ok(Taken::Ended(Exit::Interrupted))
        }
        Ok((SamplingEnd::Interrupted, path)) => {
            say(format_args!(
                "stopped; the samples so far are in {}. Finish the run with: {again}",
                path.display()
            ));
            Ok(Taken::Ended(Exit::Interrupted))
        }
        Err(error) => Err(Exit::FellShort.because(error)),
    }
}

/// If only systemd can give the right to limit memory, execute the whole program again in a scope;
/// returns if that is not so, or failed.
pub fn enter_scope(plan: &Plan, control: &Control) {
    let needs = |pick: fn(&pagewise_model::HostSettings) -> bool| {
        plan.cells.iter().any(|cell| pick(&cell.conditions.host_settings))
    };
    let refusals = [
        control.memory().err().filter(|_| needs(|all| all.memory_limit_bytes.is_some())),
        control.device().err().filter(|_| needs(|all| all.device_cap.is_some())),
    ];
    let Some(scope) = refusals.into_iter().flatten().find_map(|refusal| refusal.scope.as_ref()) else {
        return;
    };
    let Ok(program) = std::env::current_exe() else { return };
    let argv = std::iter::once(program.into_os_string()).chain(std::env::args_os().skip(1));
    say(format_args!("running in a separate scope: {}", scope.text()));
    let error = scope.command(argv).exec();
    say(format_args!("warning: {} could not be started: {error}", scope.text()));
}

/// Source, environment, and free space of the destination.
pub fn examine(destination: Destination) -> Result<(Source, Environment, u64)> {
    mounted::proc_missing().map_or(Ok(()), |missing| Err(Exit::NotMeasurable.because(anyhow!(missing))))?;
    match destination {
        Destination::Directory(directory) => {
            let directory = checked_directory(&directory)?;
            let environment = detect(&directory);
            let space = Space::at(&directory).context("the free space is unknown")?;
            Ok((Source::Dataset { directory: text_of(&directory)? }, environment, space.free_bytes))
        }
        Destination::File { paths, evict, directory } => {
            let directory = directory.map(|named| text_of(&checked_directory(&named)?)).transpose()?;
            own_files(&paths, evict, directory)
        }
    }
}

/// The source of the user's files, which lie on one filesystem, and its environment.
fn own_files(
    paths: &[PathBuf],
    evict: bool,
    directory: Option<String>,
) -> Result<(Source, Environment, u64)> {
    let (mut files, mut keys, mut hidden) = (Vec::new(), Vec::new(), None);
    for path in paths {
        let (file, identity) = files::identify(path)?;
        let path = path.canonicalize().with_context(|| format!("{}", path.display()))?;
        keys.push(FileKey::of(&file).with_context(|| format!("{}", path.display()))?);
        hidden = hidden.or_else(|| {
            let of = if paths.len() == 1 { "your file".to_string() } else { path.display().to_string() };
            Some((of, files::sparse_or_compressed_bytes(&file)?))
        });
        files.push(OwnFile { path: text_of(&path)?, identity });
    }
    let keys = FileKeys::of(keys);
    let mappers = if evict { pagewise_host::cache::mappers_of_any(&keys) } else { Vec::new() };
    let mut files = files.into_iter();
    let OwnFile { path, identity } = files.next().context("a run of files of your own has one")?;
    let others: Vec<OwnFile> = files.collect();
    for (pid, name) in mappers {
        let shown = if others.is_empty() { &path } else { "one of the files" };
        say(format_args!(
            "warning: {shown} is mapped by {name} (pid {pid}); pages that it touched stay in the page cache, so \
             cold samples will be refused"
        ));
    }
    let mut environment = detect(Path::new(&path));
    if let Some((of, reason)) = hidden {
        // Before what is so on the machine in general.
        let of_file = format!(
            "fewer bytes may come from the device than are read from {of}, so cold and direct figures \
             may be those of memory: {reason}"
        );
        environment.warnings.insert(0, of_file);
    }
    Ok((Source::File { path, evict, identity, others, directory }, environment, 0))
}

/// A directory in which files can be made, by its canonical path.
fn checked_directory(directory: &Path) -> Result<PathBuf> {
    files::check_directory(directory)?;
    directory.canonicalize().with_context(|| format!("{}", directory.display()))
}

/// The environment of `path`, as far as a memory limit of this process itself leaves it.
fn detect(path: &Path) -> Environment {
    let mut environment = environment::detect(path);
    if let Some(own) = Control::detect().own_limit() {
        let available = environment.memory_available_bytes.unwrap_or(own.bytes);
        environment.memory_available_bytes = Some(available.min(own.bytes));
        environment.memory_limit_bytes = Some(own.bytes);
        environment.warnings.push(format!(
            "this process itself has a memory limit, {own}: larger data do not stay in the page cache; try: \
             --memory {} to measure under it",
            own.bytes
        ));
    }
    environment
}

/// A path as text: workers receive paths in JSON.
pub fn text_of(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) => Ok(text.to_string()),
        None => bail!("the path {} is not UTF-8: run files and workers need UTF-8", path.display()),
    }
}

/// Seconds since 1970.
pub fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
