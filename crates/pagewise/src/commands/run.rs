//! `pagewise run` and the overview: plan, dataset, rounds, table.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pagewise_host::{cache, cgroup, pace};
use pagewise_model::date::compact_utc;
use pagewise_model::format::{counted, time};
use pagewise_model::run::{Header, SCHEMA_VERSION};
use pagewise_model::{Alignment, Plan, Source, Worker, WorkerChoices, Workload};

use super::begin::{
    Destination, Options, Taken, claim, examine, find_workers, finish, fresh_seed, stop_flag,
};
use super::prepare::{Asked, Prepared};
use super::rights::ensure_settable;
use super::{command_lines, consent, planned, report, resume};
use crate::arguments::{OverviewArguments, QuestionArguments, typed};
use crate::exit::Exit;
use crate::output::{self, say};
use crate::plan::resolve::{Variant, limited};
use crate::plan::shorten::{self, Unpinned};
use crate::plan::validate;
use crate::plan::{BEYOND_MEMORY, Lacking, Layer, PlanText, QUESTIONS, REPLAY, Threads, estimate, text};
use crate::session::RunSession;
use crate::state::directories;
use crate::store::RunFile;
use crate::supervise::answer_time;
use crate::traced::Traced;

/// A larger file is not a plan.
const MAX_PLAN_BYTES: u64 = 1 << 20;
/// The usual place of files in memory.
const IN_MEMORY: &str = "/dev/shm";
/// Run files of one second are numbered up to here.
const MAX_NUMBERED_RUNS: u32 = 999;

/// The questions of the overview, in order.
const OVERVIEW: [&str; 4] = ["read", "scan", "append", "fill"];

/// Run the overview: four questions.
pub fn overview(arguments: &OverviewArguments) -> Result<Exit> {
    let options = Options { all: arguments.all, ..Options::default() };
    let variant = arguments.length.variant().unwrap_or(Variant::Quick);
    let mut prepared = Vec::new();
    for name in OVERVIEW {
        let text = question(name).expect("the question ships with the program")?;
        let destination = default_destination(&text, arguments.dir.as_deref())?;
        prepared.push(Prepared::of(
            Asked { text, variant, chosen: Layer::default(), destination, traced: None },
            &options,
        )?);
    }
    if let Some(time_ns) = arguments.time {
        share(&mut prepared, time_ns, &options)?;
    }
    for Prepared { plan, control, .. } in &prepared {
        ensure_settable(plan, control, options.all.dry_run)?;
    }
    if !consent::limit_writes(&mut prepared, &options)? {
        return Ok(Exit::Interrupted);
    }
    if options.all.dry_run {
        let plans: Vec<&Plan> = prepared.iter().map(|one| &one.plan).collect();
        return Ok(planned::dry_run(&plans, options.all.print.json)?);
    }
    match execute_all(prepared, &options, |taken| {
        format!("See all with: {}", command_lines::answer_of(taken))
    })? {
        Ok(taken) => report::answer(&taken, options.all.print),
        Err(ending) => Ok(ending),
    }
}

/// Run plans in order. The files of all, or the ending of one that did not complete, after it was
/// said what to do with those before.
pub(super) fn execute_all(
    prepared: Vec<Prepared>,
    options: &Options,
    next: impl Fn(&[PathBuf]) -> String,
) -> Result<Result<Vec<PathBuf>, Exit>> {
    let (number, mut announcement) = (prepared.len(), Some(consent::announcement(&prepared)));
    let mut taken: Vec<PathBuf> = Vec::new();
    for (index, one) in prepared.into_iter().enumerate() {
        match execute(one, options, announcement.take(), Some((index + 1, number)))? {
            Taken::File(path) => taken.push(path),
            Taken::Ended(ending) => {
                if !taken.is_empty() {
                    let complete = counted(taken.len() as u64, "question");
                    say(format_args!("complete before that: {complete}. {}", next(&taken)));
                }
                return Ok(Err(ending));
            }
        }
    }
    Ok(Ok(taken))
}

/// Share a time among questions: each has what it needs, and the rest goes to them as they usually
/// take.
fn share(prepared: &mut [Prepared], time_ns: u64, options: &Options) -> Result<()> {
    let least = |one: &Prepared| shorten::least_ns(&one.plan, Unpinned::beside(&one.asked.chosen, None));
    let usual = |one: &Prepared| estimate::duration_ns(&one.plan);
    let least_ns: u64 = prepared.iter().map(least).sum();
    let usual_ns: u64 = prepared.iter().map(usual).sum();
    ensure!(
        least_ns <= time_ns,
        "{} questions need about {} s, and --time is {}: write --time {}s or more, or ask one of them, as in pagewise read",
        prepared.len(),
        least_ns.div_ceil(1_000_000_000),
        time(time_ns),
        shorten::named_s(least_ns)
    );
    for one in prepared {
        let rest = u128::from(time_ns - least_ns) * u128::from(usual(one)) / u128::from(usual_ns.max(1));
        one.asked.chosen.sampling.time_ns = Some(least(one).saturating_add(rest as u64));
        one.resolve(options, None)?;
    }
    Ok(())
}

/// Ask a question, or run a plan.
pub fn run(what: Option<&str>, arguments: &QuestionArguments) -> Result<Exit> {
    let options = Options {
        out: arguments.out.clone(),
        all: arguments.all,
        worker_command: arguments.worker_command.clone(),
        patience: Duration::from_secs(arguments.patience),
        drop_caches: arguments.drop_caches,
        workers: worker_choices(arguments)?,
        program: None,
    };
    let taken = match arguments.resume {
        true => resume::resume(what, arguments, &options)?,
        false => run_anew(what, arguments, &options)?,
    };
    match taken {
        Taken::File(path) => report::answer(&[path], options.all.print),
        Taken::Ended(ending) => Ok(ending),
    }
}

/// Interval of heartbeats with `--stall`.
const HEARTBEAT_NS: u64 = 1_000_000;

/// The choices about workers.
fn worker_choices(arguments: &QuestionArguments) -> Result<WorkerChoices> {
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

fn run_anew(what: Option<&str>, arguments: &QuestionArguments, options: &Options) -> Result<Taken> {
    let Some(what) = what else {
        bail!("missing question: write one of {} or the path of a plan file", question_names());
    };
    let by_one = arguments.layer().axes.threads.as_deref() == Some(&[Threads::Count(1)]);
    let traced = arguments
        .trace
        .as_deref()
        .map(|path| Traced::load(path, arguments.own_file(), by_one))
        .transpose()?;
    let own_file = traced.as_ref().map(|traced| traced.file.as_path()).or(arguments.own_file());
    ensure!(
        own_file.is_some() || !arguments.evict,
        "--evict is for a file of your own: name one, as in --file index.bin"
    );
    let text = match question(what) {
        Some(text) if own_file.is_some() => text?.for_own_file(),
        Some(text) => text?,
        None => plan_file(Path::new(what))?,
    };
    let destination = match own_file {
        Some(path) => Destination::File { path: path.to_path_buf(), evict: arguments.evict },
        None => match arguments.directory() {
            Some(directory) => Destination::Directory(directory.to_path_buf()),
            None => default_destination(&text, None)?,
        },
    };
    let chosen = arguments.layer();
    ensure!(
        traced.is_none() || chosen.workload.as_ref().unwrap_or(&text.workloads()) == &[Workload::Replay],
        "--trace is for a replay: write pagewise run replay --trace FILE"
    );
    measure(Asked { text, variant: arguments.variant(), chosen, destination, traced }, options)
}

/// Measure what is asked, once its consents are given.
pub(super) fn measure(asked: Asked, options: &Options) -> Result<Taken> {
    if let Some(traced) = &asked.traced {
        traced.notes.iter().for_each(|note| say(format_args!("note: {note}")));
    }
    let asked = asked.with_recording();
    let mut prepared = match prepare_with_consent(asked.clone(), options) {
        Err(refused) if matches!(refused.downcast_ref(), Some(Lacking::Time(_))) => {
            before_time(asked, options)?;
            return Err(refused);
        }
        prepared => prepared?,
    };
    ensure_settable(&prepared.plan, &prepared.control, options.all.dry_run)?;
    let notes = left_out(&prepared).into_iter().chain(not_measured(&prepared));
    notes.for_each(|note| say(format_args!("note: {note}")));
    if !consent::limit_writes(std::slice::from_mut(&mut prepared), options)? {
        return Ok(Taken::Ended(Exit::Interrupted));
    }
    if options.all.dry_run {
        return Ok(Taken::Ended(planned::dry_run(&[&prepared.plan], options.all.print.json)?));
    }
    let announcement = consent::announcement(std::slice::from_ref(&prepared));
    execute(prepared, options, Some(announcement), None)
}

/// Obstacles that more time does not remove: rights, files, space.
fn before_time(mut asked: Asked, options: &Options) -> Result<()> {
    asked.chosen.sampling.time_ns = None;
    let prepared = Prepared::of(asked, options)?;
    ensure_settable(&prepared.plan, &prepared.control, true)?;
    options.out.as_deref().map_or(Ok(()), output::can_appear)?;
    prepared.ensure_space()
}

/// Note on what a question measures without a memory limit alone, unless it is asked for.
fn not_measured(prepared: &Prepared) -> Option<String> {
    let Asked { text, variant, chosen, .. } = &prepared.asked;
    let limited = limited(text, *variant, chosen)?;
    let mut options = Vec::new();
    if limited.axes.cache.is_some() && chosen.axes.cache.is_none() {
        options.push("--cache warm,cold");
    }
    if limited.axes.threads.is_some() && chosen.axes.threads.is_none() && *variant == Variant::Standard {
        options.push("--threads 1,cpus");
    }
    (!options.is_empty()).then(|| {
        format!(
            "under a memory limit {} is measured warm, by one thread; for more write {}",
            text.name,
            options.join(" ")
        )
    })
}

/// Methods of a replay that nobody named and that cannot do it, with the reasons.
fn left_out(prepared: &Prepared) -> Vec<String> {
    let Prepared { asked, plan, .. } = prepared;
    let (Some(_), None) = (&asked.traced, &asked.chosen.axes.methods) else { return Vec::new() };
    let Some(conditions) = plan.cells.first().map(|cell| &cell.conditions) else { return Vec::new() };
    let usual = asked.text.base.axes.methods.iter().flatten();
    let missing = usual.filter(|method| !plan.cells.iter().any(|cell| cell.method == **method));
    missing
        .filter_map(|method| {
            let reason = validate::leaves_out(method, conditions, Alignment::ANY)?;
            Some(format!("{method} is left out: {reason}"))
        })
        .collect()
}

/// Prepare; a file of the user's own is dropped from the page cache only if the user allows it, now
/// or on the command line.
fn prepare_with_consent(asked: Asked, options: &Options) -> Result<Prepared> {
    let refused = match Prepared::of(asked.clone(), options) {
        Ok(prepared) => return Ok(prepared),
        Err(error) => error,
    };
    match (refused.downcast_ref::<Lacking>(), &asked.destination) {
        (Some(Lacking::Evict(_)), Destination::File { path, .. }) => {
            let asks = !options.all.dry_run;
            if asks
                && output::confirm(&format!("{refused}. Drop {} from the page cache?", path.display()))
                    == Some(true)
            {
                let destination = Destination::File { path: path.clone(), evict: true };
                return Prepared::of(Asked { destination, ..asked }, options);
            }
            bail!("{refused}: allow it with: {}", command_lines::typed_with(&["--evict"]))
        }
        _ => Err(refused),
    }
}

/// Directory of the files of a plan unless one is named for it: `usual` or the current one, or in
/// memory if the plan requires that.
pub(super) fn default_destination(plan: &PlanText, usual: Option<&Path>) -> Result<Destination> {
    if !plan.in_memory {
        return Ok(Destination::Directory(usual.unwrap_or(Path::new(".")).to_path_buf()));
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

/// The names of the shipped questions.
pub(super) fn question_names() -> String {
    QUESTIONS.iter().chain([&REPLAY]).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// A shipped question; `None`: there is none of this name.
pub(super) fn question(name: &str) -> Option<Result<PlanText>> {
    let name = if name == BEYOND_MEMORY { "cliff" } else { name };
    let (_, text) = QUESTIONS.iter().chain([&REPLAY]).find(|(known, _)| *known == name)?;
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

/// Run a plan, which is that question of so many; say first what it does, once nothing refuses it
/// any more.
pub(super) fn execute(
    mut prepared: Prepared,
    options: &Options,
    announcement: Option<String>,
    question: Option<(usize, usize)>,
) -> Result<Taken> {
    let stop = stop_flag()?;
    let (state, restored) = claim()?;
    if let (Variant::Quick, Source::Dataset { directory }, false) =
        (prepared.asked.variant, &prepared.plan.source, prepared.plan.datasets().is_empty())
    {
        // A quick run on a slow device gets a smaller dataset. Measuring the device writes to it,
        // which needs the right to run, so the plan is resolved again.
        let pace = pace::write_pace(Path::new(directory)).ok();
        prepared.resolve(options, pace)?;
    }
    let Prepared { asked, plan, mut environment, control, .. } = prepared;
    if restored {
        // The environment above was that of the settings before they were restored.
        environment = examine(asked.destination)?.1;
    }
    environment.memory_control = Some(text_of_memory(&control));
    environment.device_control = Some(text_of_control(control.device()));
    environment.worker_answer_ns = answer_time::answer_ns(environment.page_bytes, options.patience, &stop);
    let (programs, workers) = find_workers(&plan, options, &stop)?;
    if stop.load(Ordering::Relaxed) {
        say("stopped before anything was measured");
        return Ok(Taken::Ended(Exit::Interrupted));
    }
    let worker_command = options.worker_command.clone();
    let header =
        Header { schema: SCHEMA_VERSION, plan, environment, workers, worker_command, typed: typed() };
    let store = match &options.out {
        Some(path) => RunFile::create(path, header.clone())?,
        None => create_named(&header)?,
    };
    announcement.iter().for_each(say);
    finish(
        RunSession {
            header,
            store,
            earlier: Vec::new(),
            program_runs: Vec::new(),
            elapsed_before_ns: 0,
            state,
            random: fresh_seed(),
            question,
            program: options.program.clone(),
        },
        programs,
        options,
        &stop,
    )
}

/// Create a run file whose name says when, where and what was measured; names that are taken are
/// passed over.
fn create_named(header: &Header) -> Result<RunFile> {
    let Header { plan, environment, .. } = header;
    let date = compact_utc(environment.started_unix_s);
    let stem = format!("pagewise-{date}-{}-{}", directories::host_word(), plan.question);
    let path = |number: u32| match number {
        1 => PathBuf::from(format!("{stem}.jsonl")),
        more => PathBuf::from(format!("{stem}-{more}.jsonl")),
    };
    RunFile::create_first((1..=MAX_NUMBERED_RUNS).map(path), header.clone())?.with_context(|| {
        format!("there are {MAX_NUMBERED_RUNS} run files of '{stem}' here: name one with --out")
    })
}

/// Text of the memory limit's place, or of the limit in place.
pub fn text_of_memory(control: &cgroup::Control) -> String {
    let in_place = control.limit_in_place().map(|own| format!("only the limit in place: {own}"));
    in_place.unwrap_or_else(|| text_of_control(control.memory()))
}

/// Text of a limit's parent group, or of the reason that there is none.
pub fn text_of_control(parent: Result<&cgroup::ParentGroup, &cgroup::NoControl>) -> String {
    match parent {
        Ok(parent) => parent.to_string(),
        Err(refusal) => format!("none: {refusal}"),
    }
}
