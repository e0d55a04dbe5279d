//! `pagewise run` and the overview: plan, dataset, rounds, table.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pagewise_lab::begin::{Destination, Options, Taken, unix_s};
use pagewise_lab::exit::Exit;
use pagewise_lab::measure::{default_destination, execute_all, leave_out_without_memory, measure};
use pagewise_lab::output::STANDARD_STREAM;
use pagewise_lab::plan::resolve::Variant;
use pagewise_lab::plan::shorten::{self, Unpinned};
use pagewise_lab::plan::{ChosenBudget, Layer, PlanText, Threads, estimate, question, question_names, text};
use pagewise_lab::prepare::{Prepared, TypedQuestion, short_hash};
use pagewise_lab::rights::ensure_settable;
use pagewise_lab::traced::Traced;
use pagewise_lab::{answer, command_lines, consent, output, planned};
use pagewise_model::format::time;
use pagewise_model::{Plan, Worker, WorkerChoices, Workload};

use super::resume;
use crate::arguments::{OverviewArguments, QuestionArguments};

/// A larger file is not a plan.
const MAX_PLAN_BYTES: u64 = 1 << 20;

/// A run holds its files and the right to run until it starts.
const MOST_AHEAD_S: u64 = 86_400;

/// The questions of the overview, in order.
const OVERVIEW: [&str; 4] = ["read", "scan", "append", "fill"];

/// Run the overview: four questions.
pub fn overview(arguments: &OverviewArguments) -> Result<Exit> {
    let options = Options { all: arguments.all.clone(), ..Options::default() };
    let variant = arguments.length.variant().unwrap_or(Variant::Quick);
    let mut chosen = Layer::default();
    if let Some(ChosenBudget::OfFirstRounds(_)) = arguments.budget {
        chosen.sampling.budget = arguments.budget;
    }
    let mut prepared = Vec::new();
    let shipped = |name| question(name).expect("the question ships with the program");
    let mut texts = OVERVIEW.into_iter().map(shipped).collect::<Result<Vec<PlanText>>>()?;
    leave_out_without_memory(&mut texts);
    for text in texts {
        let destination = default_destination(&text, arguments.dir.as_deref())?;
        prepared.push(Prepared::of(
            TypedQuestion { text, variant, chosen: chosen.clone(), destination, traced: None },
            &options,
        )?);
    }
    if let Some(ChosenBudget::Time(time_ns)) = arguments.budget {
        share(&mut prepared, time_ns, &options)?;
    }
    prepared.retain(|one| {
        let lacking = one.ensure_space().err().filter(|_| one.asked.text.in_memory);
        let named =
            lacking.iter().map(|lacking| format!("note: {} is left out: {lacking:#}", one.plan.question));
        named.for_each(output::say);
        lacking.is_none()
    });
    for Prepared { plan, control, .. } in &prepared {
        ensure_settable(plan, control, options.all.dry_run)?;
    }
    if !consent::limit_writes(&mut prepared, &options)? {
        return Ok(Exit::Interrupted);
    }
    if options.all.dry_run {
        let plans: Vec<&Plan> = prepared.iter().map(|one| &one.plan).collect();
        return Ok(planned::dry_run(&plans, &options)?);
    }
    match execute_all(prepared, &options, |taken| {
        format!("See all with: {}", command_lines::answer_of(taken))
    })? {
        Ok(taken) => answer::answer(&taken, options.all.print),
        Err(ending) => Ok(ending),
    }
}

/// Share a time among questions: each has what it needs, and the rest goes to them as they usually
/// take.
fn share(prepared: &mut [Prepared], time_ns: u64, options: &Options) -> Result<()> {
    let least = |one: &Prepared| shorten::least_ns(&one.plan, Unpinned::beside(&[&one.asked.chosen], None));
    let usual = |one: &Prepared| estimate::duration_ns(&one.plan);
    let least_ns: u64 = prepared.iter().map(least).sum();
    let usual_ns: u64 = prepared.iter().map(usual).sum();
    ensure!(
        least_ns <= time_ns,
        "{} questions need about {} s, and the budget is {}: write --budget {}s or more, or ask one of them, as in pagewise read",
        prepared.len(),
        least_ns.div_ceil(1_000_000_000),
        time(time_ns),
        shorten::named_s(least_ns)
    );
    for one in prepared {
        let rest = u128::from(time_ns - least_ns) * u128::from(usual(one)) / u128::from(usual_ns.max(1));
        // The part of a question follows from the machine, and the whole does not.
        one.typed = short_hash(&format!("{} of {time_ns}", one.typed));
        let part_ns = least(one).saturating_add(rest as u64);
        one.asked.chosen.sampling.budget = Some(ChosenBudget::Time(part_ns));
        one.resolve(options, None)?;
    }
    Ok(())
}

/// Ask a question, or run a plan.
pub fn run(what: Option<&str>, arguments: &QuestionArguments) -> Result<Exit> {
    if let Some((question, arguments)) = arguments.exchanged(what)? {
        return run(Some(question), &arguments);
    }
    let options = Options {
        ends_at: None,
        out: arguments.out.clone(),
        start_at: arguments.start_at,
        all: arguments.all.clone(),
        worker_command: arguments.worker_command.clone(),
        patience: Duration::from_secs(arguments.patience),
        drop_caches: arguments.drop_caches,
        workers: worker_choices(arguments)?,
        program: None,
    };
    let is_stdout = options.out.as_deref() == Some(Path::new(STANDARD_STREAM));
    ensure!(
        !is_stdout || !output::is_terminal(),
        "--out - writes the run file to stdout, and that is a terminal: send it to a file or another program"
    );
    ensure!(
        !is_stdout || !output::is_closed(),
        "--out - writes the run file to stdout, and that is closed: send it to a file or another program"
    );
    ensure!(
        arguments.start_at.is_none_or(|at| at / 1_000_000_000 <= unix_s() + MOST_AHEAD_S),
        "--start-at is more than a day ahead: name a time that is sooner"
    );
    let taken = match arguments.resume {
        true if is_stdout => bail!("a run on stdout cannot be continued: name its file with --out"),
        true if !options.all.label.is_empty() => {
            bail!("a run keeps the labels that it began with: leave --label out")
        }
        true => resume::resume(what, arguments, &options)?,
        false => run_anew(what, arguments, &options)?,
    };
    match taken {
        Taken::File(path) => answer::answer(&[path], options.all.print),
        Taken::Ended(ending) => Ok(ending),
    }
}

/// Interval of heartbeats with `--stall`.
const HEARTBEAT_NS: u64 = 1_000_000;

/// The choices about workers.
fn worker_choices(arguments: &QuestionArguments) -> Result<WorkerChoices> {
    let mut choices = WorkerChoices {
        options: arguments.worker_options.0.clone(),
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
    ensure!(
        arguments.dir.is_none() || !arguments.path.as_deref().is_some_and(Path::is_dir),
        "the directory is named twice: leave --dir out"
    );
    let by_one = arguments.layer().axes.threads.as_deref() == Some(&[Threads::Count(1)]);
    let long_gaps = arguments.layer().axes.as_fast_as_possible.is_some_and(|asked| asked.contains(&false));
    let traced = arguments
        .trace
        .as_deref()
        .map(|path| Traced::load(path, &arguments.own_files(), by_one, long_gaps))
        .transpose()?;
    let own_files = traced.as_ref().map_or_else(|| arguments.own_files(), |traced| traced.files.clone());
    ensure!(
        own_files.len() <= 1 || traced.is_some(),
        "several --file are for the replay of a trace: write --trace FILE, or name one file"
    );
    ensure!(
        !own_files.is_empty() || !arguments.evict,
        "--evict is for a file of your own: name one, as in --file index.bin"
    );
    let text = match question(what) {
        Some(text) if !own_files.is_empty() => text?.for_own_file(),
        Some(text) => text?,
        None => plan_file(Path::new(what))?,
    };
    let destination = match own_files.is_empty() {
        false => Destination::File {
            paths: own_files,
            evict: arguments.evict,
            directory: arguments.directory().map(Path::to_path_buf),
        },
        true => match arguments.directory() {
            Some(directory) => Destination::Directory(directory.to_path_buf()),
            None => default_destination(&text, None)?,
        },
    };
    let chosen = arguments.layer();
    ensure!(
        traced.is_none() || chosen.workload.as_ref().unwrap_or(&text.workloads()) == &[Workload::Replay],
        "--trace is for a replay: write pagewise run replay --trace FILE"
    );
    measure(TypedQuestion { text, variant: arguments.variant(), chosen, destination, traced }, options)
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
