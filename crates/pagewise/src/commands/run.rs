//! `pagewise run` and the overview: plan, dataset, rounds, table.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use pagewise_host::cgroup::{self, Control};
use pagewise_host::{BlockDevice, cache, dataset, environment, files, mounted, pace, placement, toolchain};
use pagewise_model::run::{Header, SCHEMA_VERSION};
use pagewise_model::{CpuList, Environment, Plan, Source, Worker, WorkerChoices, WorkerFound};

use super::begin::{claim, fresh_seed, stop_flag};
use super::{CommandEnd, CommandError, report, resume};
use crate::arguments::RunArguments;
use crate::output::{self, say};
use crate::plan::resolve::{Machine, Variant, resolve};
use crate::plan::{Layer, PlanText, QUESTIONS, text};
use crate::session::{RunSession, SamplingEnd};
use crate::store::RunFile;
use crate::supervise::answer_time;
use crate::supervise::programs::{self, Programs};
use crate::supervise::worker::{Program, Stated};

/// A larger file is not a plan.
const MAX_PLAN_BYTES: u64 = 1 << 20;
/// The usual place of files in memory.
const IN_MEMORY: &str = "/dev/shm";
/// Default run files are numbered from 1 up to here.
const MAX_NUMBERED_RUNS: u32 = 999;

/// The questions of the overview, in order.
const OVERVIEW: [&str; 4] = ["read", "scan", "append", "fill"];

/// Run the overview: four questions, quickly, in the current directory.
pub fn overview(json: bool) -> Result<CommandEnd> {
    let mut taken = Vec::new();
    for name in OVERVIEW {
        let plan = question(name).expect("the question ships with the program")?;
        let place = default_place(&plan)?;
        let options = Options::default();
        match begin(&plan, Variant::Quick, &Layer::default(), place, &options)? {
            Taken::File(path) => {
                if !json {
                    report::show(std::slice::from_ref(&path), false)?;
                    writeln!(output::stdout())?;
                }
                taken.push(path);
            }
            Taken::Ended(ending) => return Ok(ending),
        }
    }
    if json { report::show(&taken, true) } else { report::advice(&taken) }
}

/// `pagewise run`.
pub fn run(arguments: &RunArguments) -> Result<CommandEnd> {
    let options = Options {
        out: arguments.out.clone(),
        dry_run: arguments.dry_run,
        json: arguments.json,
        worker_command: arguments.worker_command.clone(),
        patience: Duration::from_secs(arguments.patience),
        drop_caches: arguments.drop_caches,
        workers: worker_choices(arguments)?,
    };
    let taken =
        if arguments.resume { resume::resume(arguments, &options)? } else { run_anew(arguments, &options)? };
    match taken {
        Taken::File(path) => report::show(&[path], options.json),
        Taken::Ended(ending) => Ok(ending),
    }
}

/// Interval of heartbeats with `--stall`.
const HEARTBEAT_NS: u64 = 1_000_000;

/// The choices about workers.
fn worker_choices(arguments: &RunArguments) -> Result<WorkerChoices> {
    let mut choices = WorkerChoices {
        jdk: arguments.jdk.as_ref().map(|home| home.to_string_lossy().into_owned()),
        jvm_args: arguments.jvm_args.clone(),
        heartbeat_ns: if arguments.stall { HEARTBEAT_NS } else { 0 },
        ..WorkerChoices::default()
    };
    for text in &arguments.worker {
        let (name, command) = text.split_once('=').with_context(|| {
            format!(
                "'{text}' names no worker; write --worker name=COMMAND, as in --worker mine='./reader --fast'"
            )
        })?;
        let worker = Worker::of_name(name).with_context(|| {
            format!("'{name}' is no name of a worker; write small letters, digits and hyphens")
        })?;
        ensure!(matches!(worker, Worker::Other(_)), "'{name}' is a worker of pagewise; take another name");
        ensure!(
            !command.trim().is_empty(),
            "the worker {name} has no command; write --worker {name}=COMMAND"
        );
        let earlier = choices.commands.insert(name.to_string(), command.to_string());
        ensure!(earlier.is_none(), "--worker {name} is written twice");
    }
    Ok(choices)
}

fn run_anew(arguments: &RunArguments, options: &Options) -> Result<Taken> {
    let Some(what) = &arguments.what else {
        bail!("what is to be run is missing; write a question ({}) or a plan file", question_names());
    };
    let plan = match question(what) {
        Some(plan) if arguments.file.is_some() => plan?.for_own_file(),
        Some(plan) => plan?,
        None => plan_file(Path::new(what))?,
    };
    let variant = match (arguments.quick, arguments.full, arguments.published) {
        (true, ..) => Variant::Quick,
        (_, true, _) => Variant::Full,
        (.., true) => Variant::Published,
        _ => Variant::Standard,
    };
    let place = match (&arguments.file, &arguments.dir) {
        (Some(path), _) => Destination::File { path: path.clone(), evict: arguments.evict },
        (None, Some(directory)) => Destination::Directory(directory.clone()),
        (None, None) => default_place(&plan)?,
    };
    begin(&plan, variant, &arguments.layer(), place, options)
}

/// Default directory of the files of a plan: the current one, or in memory if the plan requires that.
fn default_place(plan: &PlanText) -> Result<Destination> {
    if !plan.in_memory {
        return Ok(Destination::Directory(PathBuf::from(".")));
    }
    let memory = PathBuf::from(IN_MEMORY);
    let in_memory = std::fs::File::open(&memory).ok().and_then(|directory| cache::in_memory(&directory));
    ensure!(
        in_memory.is_some(),
        "{} makes its files in memory, and {IN_MEMORY} is no tmpfs here; name a directory with --dir",
        plan.name
    );
    Ok(Destination::Directory(memory))
}

/// Result of a command that measures.
pub(super) enum Taken {
    /// A complete run file.
    File(PathBuf),
    /// Nothing to show.
    Ended(CommandEnd),
}

/// Arguments that do not choose cells.
pub(super) struct Options {
    pub(super) out: Option<PathBuf>,
    pub(super) dry_run: bool,
    pub(super) json: bool,
    pub(super) worker_command: Option<String>,
    pub(super) patience: Duration,
    pub(super) drop_caches: bool,
    pub(super) workers: WorkerChoices,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            out: None,
            dry_run: false,
            json: false,
            worker_command: None,
            patience: Duration::from_secs(30),
            drop_caches: false,
            workers: WorkerChoices::default(),
        }
    }
}

#[derive(Clone)]
pub(super) enum Destination {
    Directory(PathBuf),
    File { path: PathBuf, evict: bool },
}

fn question_names() -> String {
    QUESTIONS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn question(name: &str) -> Option<Result<PlanText>> {
    let (_, text) = QUESTIONS.iter().find(|(known, _)| *known == name)?;
    Some(text::parse(name, text).with_context(|| format!("the question {name}")))
}

fn plan_file(path: &Path) -> Result<PlanText> {
    let shown = path.display();
    let metadata = std::fs::metadata(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            anyhow::anyhow!("'{shown}' is neither a question ({}) nor a file", question_names())
        } else {
            anyhow::anyhow!("the plan file {shown} cannot be read: {error}")
        }
    })?;
    ensure!(metadata.is_file(), "{shown} is no plan file: it is no regular file");
    ensure!(metadata.len() <= MAX_PLAN_BYTES, "{shown} is no plan file: it has {} bytes", metadata.len());
    let bytes = std::fs::read(path).with_context(|| format!("the plan file {shown} cannot be read"))?;
    let text =
        String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{shown} is no plan file: it is no text"))?;
    let name = path.file_stem().map_or("plan".into(), |stem| stem.to_string_lossy());
    text::parse(&name, &text).with_context(|| format!("the plan file {shown}"))
}

/// Resolve, show or run.
fn begin(
    text: &PlanText,
    variant: Variant,
    chosen: &Layer,
    place: Destination,
    options: &Options,
) -> Result<Taken> {
    let again = place.clone();
    let (source, mut environment, free_bytes) = examine(place)?;
    let control = Control::detect();
    let place = match &source {
        Source::Dataset { directory } => directory,
        Source::File { path, .. } => path,
    };
    let topology = placement::Topology::read().map_err(anyhow::Error::msg)?;
    let numa_nodes =
        topology.nodes.iter().filter(|node| node.memory_bytes > 0).map(|node| node.number).collect();
    let online_cpus = CpuList::new(topology.cpus).context("no CPU of this machine is known")?;
    let mut machine = Machine {
        environment: &environment,
        free_bytes,
        write_pace: None,
        fresh_seed: fresh_seed(),
        online_cpus,
        numa_nodes,
        least_memory_bytes: cgroup::LEAST_MEMORY_BYTES,
        no_device: BlockDevice::behind(Path::new(place)).err().map(|reason| reason.to_string()),
        drop_caches: options.drop_caches,
        workers: &options.workers,
    };
    let mut plan = resolve(text, variant, chosen, source, &machine)?;
    if options.dry_run {
        report::dry_run(&plan, &mut output::stdout())?;
        return Ok(Taken::Ended(CommandEnd::Done));
    }
    if let Source::Dataset { directory } = &plan.source {
        dataset::check_space(&Path::new(directory).join("dataset"), plan.space_bytes().0)?;
    }
    enter_scope(&plan, &control);
    let stop = stop_flag()?;
    let (state, restored) = claim()?;
    if let (Variant::Quick, Source::Dataset { directory }, false) =
        (variant, &plan.source, plan.datasets().is_empty())
    {
        // A quick run on a slow device gets a smaller dataset. Measuring the device writes to it, which needs the right
        // to run, so the plan is resolved again.
        machine.write_pace = pace::write_pace(Path::new(directory)).ok();
        plan = resolve(text, variant, chosen, plan.source, &machine)?;
    }
    if restored {
        // The environment above was that of the settings before they were restored.
        environment = examine(again)?.1;
    }
    environment.memory_control = Some(text_of_control(control.memory()));
    environment.device_control = Some(text_of_control(control.device()));
    environment.worker_answer_ns = answer_time::answer_ns(environment.page_bytes, options.patience, &stop);
    let (programs, workers) = find_workers(&plan, options, &stop)?;
    if stop.load(Ordering::Relaxed) {
        say("stopped before anything was measured");
        return Ok(Taken::Ended(CommandEnd::FellShort));
    }
    let worker_command = options.worker_command.clone();
    let header = Header { schema: SCHEMA_VERSION, plan, environment, workers, worker_command };
    let store = match &options.out {
        Some(path) => RunFile::create(path, header.clone())?,
        None => create_numbered(&header)?,
    };
    finish(
        RunSession { header, store, earlier: Vec::new(), elapsed_before_ns: 0, state, random: fresh_seed() },
        programs,
        options,
        &stop,
    )
}

/// Text that identifies a worker.
pub(super) fn identity(worker: &WorkerFound) -> &str {
    if worker.unavailable.is_some() { "unavailable" } else { worker.version.as_str() }
}

/// Find and build the workers of other languages, and report anything unusual.
pub(super) fn find_workers(
    plan: &Plan,
    options: &Options,
    stop: &AtomicBool,
) -> Result<(Programs, Vec<WorkerFound>)> {
    let own = match &options.worker_command {
        None => Program::Own,
        Some(command) => {
            let words = toolchain::split_words(command)?;
            let (program, arguments) = words.split_first().context("--worker-command names no program")?;
            Program::stated(Stated::new(program, arguments))
        }
    };
    // The heartbeat interval is data, and is taken from the run file; programs are taken from the command line.
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
pub(super) fn finish(
    course: RunSession,
    programs: Programs,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Taken> {
    let again = resume::line_of(course.store.path(), &course.header);
    match course.complete(programs, options.patience, stop) {
        Ok((SamplingEnd::Completed, path)) => Ok(Taken::File(path)),
        Ok((SamplingEnd::Interrupted, path)) => {
            say(format_args!(
                "stopped; the samples so far are in {}. Finish the run with: {again}",
                path.display()
            ));
            Ok(Taken::Ended(CommandEnd::FellShort))
        }
        Err(error) => Err(CommandError(error).into()),
    }
}

/// If only systemd can give the right to limit memory, execute the whole program again in a scope; returns if that is
/// not so, or failed.
pub(super) fn enter_scope(plan: &Plan, control: &Control) {
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
    say(format_args!("running in a scope of its own: {}", scope.text()));
    let error = scope.command(argv).exec();
    say(format_args!("warning: {} could not be started: {error}", scope.text()));
}

/// Source, environment, and free space of the place.
pub(super) fn examine(place: Destination) -> Result<(Source, Environment, u64)> {
    mounted::proc_missing().map_or(Ok(()), |missing| Err(anyhow::Error::msg(missing)))?;
    match place {
        Destination::Directory(directory) => {
            files::check_directory(&directory)?;
            let directory = directory.canonicalize().with_context(|| format!("{}", directory.display()))?;
            let environment = environment::detect(&directory);
            let space = rustix::fs::statvfs(&directory).context("the free space cannot be known")?;
            let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
            Ok((Source::Dataset { directory: text_of(&directory)? }, environment, free_bytes))
        }
        Destination::File { path, evict } => {
            let (file, identity) = files::identify(&path)?;
            let path = path.canonicalize().with_context(|| format!("{}", path.display()))?;
            let mappers = if evict { pagewise_host::cache::mappers(&file) } else { Vec::new() };
            for (pid, name) in mappers {
                say(format_args!(
                    "warning: {} is mapped by {name} (pid {pid}); pages that it touched stay in the page cache, and \
                     cold samples will be refused",
                    path.display()
                ));
            }
            let mut environment = environment::detect(&path);
            if let Some(reason) = files::sparse_or_compressed_bytes(&file) {
                environment.warnings.push(format!(
                    "fewer bytes may come from the device than are read of your file, so cold and direct figures \
                     may be those of memory: {reason}"
                ));
            }
            Ok((Source::File { path: text_of(&path)?, evict, identity }, environment, 0))
        }
    }
}

/// A path as text: workers receive paths in JSON.
fn text_of(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) => Ok(text.to_string()),
        None => bail!("the path {} is no UTF-8 text, which run files and workers need", path.display()),
    }
}

/// Create a run file with the first free number.
fn create_numbered(header: &Header) -> Result<RunFile> {
    let question = &header.plan.question;
    let path = |number| PathBuf::from(format!("pagewise-{question}-{number:03}.jsonl"));
    RunFile::create_first((1..=MAX_NUMBERED_RUNS).map(path), header.clone())?.with_context(|| {
        format!("there are {MAX_NUMBERED_RUNS} run files of '{question}' here; name one with --out")
    })
}

/// Text of a limit's place, or of the reason that there is none.
pub fn text_of_control(place: Result<&cgroup::ParentGroup, &cgroup::NoControl>) -> String {
    match place {
        Ok(place) => place.to_string(),
        Err(refusal) => format!("none: {refusal}"),
    }
}

pub(super) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
