//! `pagewise run` and the overview: plan, dataset, rounds, table.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pagewise_host::cgroup::{self, Control};
use pagewise_host::{BlockDevice, cache, dataset, pace, placement};
use pagewise_model::run::{Header, SCHEMA_VERSION};
use pagewise_model::{CpuList, Source, Worker, WorkerChoices};

use super::begin::{
    Destination, Options, Taken, claim, enter_scope, examine, find_workers, finish, fresh_seed, stop_flag,
};
use super::{CommandEnd, report, resume};
use crate::arguments::RunArguments;
use crate::output::{self, say};
use crate::plan::machine::Machine;
use crate::plan::resolve::{Variant, resolve};
use crate::plan::{Layer, PlanText, QUESTIONS, text};
use crate::session::RunSession;
use crate::store::RunFile;
use crate::supervise::answer_time;

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
                "invalid worker '{text}': write --worker name=COMMAND, as in --worker mine='./reader --fast'"
            )
        })?;
        let worker = Worker::of_name(name).with_context(|| {
            format!("invalid worker name '{name}': write small letters, digits and hyphens")
        })?;
        ensure!(
            matches!(worker, Worker::Other(_)),
            "the worker name '{name}' is one of pagewise's: choose another"
        );
        ensure!(
            !command.trim().is_empty(),
            "the worker {name} has no command: write --worker {name}=COMMAND"
        );
        let earlier = choices.commands.insert(name.to_string(), command.to_string());
        ensure!(earlier.is_none(), "--worker {name} is given twice: write it once");
    }
    Ok(choices)
}

fn run_anew(arguments: &RunArguments, options: &Options) -> Result<Taken> {
    let Some(what) = &arguments.what else {
        bail!("missing question: write one of {} or the path of a plan file", question_names());
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
        "{} makes its files in memory, but {IN_MEMORY} is not a tmpfs here: name a directory with --dir",
        plan.name
    );
    Ok(Destination::Directory(memory))
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
    ensure!(metadata.is_file(), "{shown} is not a plan file: it is not a regular file");
    ensure!(metadata.len() <= MAX_PLAN_BYTES, "{shown} is not a plan file: it has {} bytes", metadata.len());
    let bytes = std::fs::read(path).with_context(|| format!("the plan file {shown} cannot be read"))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| anyhow::anyhow!("{shown} is not a plan file: it is not text"))?;
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
    let online_cpus = CpuList::new(topology.cpus).context("the CPUs of this machine are unknown")?;
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

/// Create a run file with the first free number.
fn create_numbered(header: &Header) -> Result<RunFile> {
    let question = &header.plan.question;
    let path = |number| PathBuf::from(format!("pagewise-{question}-{number:03}.jsonl"));
    RunFile::create_first((1..=MAX_NUMBERED_RUNS).map(path), header.clone())?.with_context(|| {
        format!("there are {MAX_NUMBERED_RUNS} run files of '{question}' here: name one with --out")
    })
}

/// Text of a limit's place, or of the reason that there is none.
pub fn text_of_control(place: Result<&cgroup::ParentGroup, &cgroup::NoControl>) -> String {
    match place {
        Ok(place) => place.to_string(),
        Err(refusal) => format!("none: {refusal}"),
    }
}
