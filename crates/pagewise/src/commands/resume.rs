//! `pagewise run --resume`: continues a run file where it stopped.
//!
//! A run file is data, and may have come from anywhere. No command in it is executed: the programs
//! of the run are typed again and compared. The directory and the settings are taken from the file
//! only if no other user could have written it; otherwise they must be typed again too. Missing
//! arguments are reported as the command line to type.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pagewise_host::cgroup::Control;
use pagewise_host::dataset;
use pagewise_host::trusted::Refusal;
use pagewise_lab::begin::{
    Claimed, Destination, Options, Taken, claim_within, examine, find_workers, finish, fresh_seed, identity,
    stop_flag, unix_s,
};
use pagewise_lab::command_lines::line;
use pagewise_lab::exit::Exit;
use pagewise_lab::output::say;
use pagewise_lab::plan::Layer;
use pagewise_lab::plan::axes::Setting;
use pagewise_lab::plan::resolve::Variant;
use pagewise_lab::planned;
use pagewise_lab::rights::ensure_settable;
use pagewise_lab::session::RunSession;
use pagewise_lab::store::{Resumed, RunFile};
use pagewise_lab::traced;
use pagewise_model::run::{Header, Record};
use pagewise_model::{Plan, Source, Work};

use crate::arguments::QuestionArguments;

/// Continue a run where it stopped.
pub fn resume(what: Option<&str>, arguments: &QuestionArguments, options: &Options) -> Result<Taken> {
    let path = arguments.out.as_ref().expect("clap requires --out");
    let mut layer = arguments.layer();
    layer.axes = layer.axes.without_settings();
    ensure!(
        layer == Layer::default() && arguments.variant() == Variant::Standard,
        "--resume takes every choice from {}: leave the others out",
        path.display()
    );
    let Resumed { mut store, run, doubt } = RunFile::resume(path)?;
    if let Some(what) = what {
        ensure!(
            what == run.header.plan.question,
            "{} has the question '{}', not '{what}'",
            path.display(),
            run.header.plan.question
        );
    }
    if run.is_complete() {
        say(format_args!("{} is complete: there is nothing to resume.", path.display()));
        return Ok(Taken::File(path.clone()));
    }
    expect_typed(path, &run.header, doubt.as_ref(), arguments, options)?;
    expect_trace(&run.header.plan).with_context(|| format!("{} cannot be resumed", path.display()))?;
    let destination = match &run.header.plan.source {
        Source::Dataset { directory } => Destination::Directory(PathBuf::from(directory)),
        Source::File { evict, directory, .. } => Destination::File {
            paths: run.header.plan.source.own_files().map(|(path, _)| PathBuf::from(path)).collect(),
            evict: *evict,
            directory: directory.as_ref().map(PathBuf::from),
        },
    };
    // A killed run's settings are restored before the machine is compared with that of the run.
    let stop = stop_flag()?;
    let claimed = match options.all.dry_run {
        true => None,
        false => match claim_within(options.all.wait, &stop)? {
            None => return Ok(Taken::Ended(Exit::Interrupted)),
            claimed => claimed,
        },
    };
    let (source, environment, _) = examine(destination)?;
    if let Some(difference) = run.header.environment.difference(&environment) {
        bail!("{} cannot be resumed: {difference}", path.display());
    }
    if let Some(file) = differing(&run.header.plan.source, &source) {
        bail!("{} cannot be resumed: {file} differs from the one that the run began with", path.display());
    }
    ensure_settable(&run.header.plan, &Control::detect(), options.all.dry_run)?;
    let Some(Claimed { state, .. }) = claimed else {
        return Ok(Taken::Ended(planned::dry_run(&[&run.header.plan], options)?));
    };
    if let Some(directory) = run.header.plan.source.directory() {
        dataset::check_space(&Path::new(directory).join("dataset"), run.header.plan.space_bytes().0)?;
    }
    let (programs, workers) = find_workers(&run.header.plan, options, &stop)?;
    for (then, now) in run.header.workers.iter().zip(&workers) {
        let is_same = then.version == now.version && then.unavailable.is_some() == now.unavailable.is_some();
        ensure!(
            is_same,
            "{} cannot be resumed: the worker {} was {}, and is {} now",
            path.display(),
            now.name,
            identity(then),
            identity(now)
        );
    }
    store.cut(run.intact_bytes)?;
    store.append(&Record::Resumed { unix_s: unix_s() })?;
    let elapsed_before_ns =
        run.samples.last().map_or(0, |sample| sample.started_ns.saturating_add(sample.took_ns));
    let session = RunSession {
        ends_at: None,
        header: run.header,
        store,
        earlier: run.samples,
        program_runs: run.program_runs,
        elapsed_before_ns,
        state,
        random: fresh_seed(),
        question: None,
        start_at: options.start_at,
        program: None,
    };
    finish(session, programs, options, &stop)
}

/// The file that is another one than in the plan, or the place.
fn differing(of_plan: &Source, now: &Source) -> Option<String> {
    let mut files = of_plan.own_files().zip(now.own_files());
    let other = files.find(|(then, now)| then != now).map(|((path, _), _)| path);
    let is_one = of_plan.own_files().count() <= 1;
    (of_plan != now).then(|| other.filter(|_| !is_one).unwrap_or("the file").to_string())
}

/// Refuse a replay whose trace is gone or another one: every sample that is still to be taken would
/// be unavailable.
fn expect_trace(plan: &Plan) -> Result<()> {
    let mut works = plan.cells.iter().filter_map(|cell| match &cell.conditions.work {
        Work::Replay(work) => Some(work),
        _ => None,
    });
    match (&plan.trace, works.next()) {
        (Some(planned), Some(work)) => traced::of_plan(planned, work).map(drop),
        _ => Ok(()),
    }
}

/// Refuse a command line that does not repeat the necessary arguments.
fn expect_typed(
    path: &Path,
    header: &Header,
    doubt: Option<&Refusal>,
    arguments: &QuestionArguments,
    options: &Options,
) -> Result<()> {
    let (then, now) = (&header.plan.workers, &options.workers);
    let shown = path.display();
    let same_programs = header.worker_command == options.worker_command
        && then.commands == now.commands
        && then.options == now.options;
    let typed = Typed::of(&header.plan, arguments);
    // With different programs, the line contains everything that must be typed.
    let whole = line(path, header, doubt.is_some());
    ensure!(
        same_programs,
        "{shown} cannot be resumed: the worker or the JVM differs from the one that the run began with; commands in a run file are not executed, so type it again: {whole}"
    );
    ensure!(
        now.heartbeat_ns == 0 || now.heartbeat_ns == then.heartbeat_ns,
        "{shown} cannot be resumed: it was begun without --stall"
    );
    match (typed, doubt) {
        (Typed::Otherwise, _) => bail!(
            "{shown} cannot be resumed: the typed directory, file or settings differ from those of the run: {}",
            line(path, header, true)
        ),
        (Typed::InPart, Some(doubt)) => bail!(
            "{shown} cannot be resumed as it is: {doubt}, so its directory, file and settings must be typed again: {whole}"
        ),
        (Typed::InPart, None) | (Typed::All, _) => Ok(()),
    }
}

/// Arguments about the machine that were typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Typed {
    All,
    InPart,
    /// An argument contradicts the plan.
    Otherwise,
}

impl Typed {
    fn of(plan: &Plan, arguments: &QuestionArguments) -> Self {
        let is_path =
            |typed: &Path, of_plan: &str| typed.canonicalize().is_ok_and(|typed| typed == Path::new(of_plan));
        let typed = |are_same: bool| if are_same { Typed::All } else { Typed::Otherwise };
        let directory = arguments.directory().map_or(Typed::InPart, |directory| {
            typed(plan.source.directory().is_some_and(|of_plan| is_path(directory, of_plan)))
        });
        let own_files = arguments.own_files();
        let files = if own_files.is_empty() {
            Typed::InPart
        } else {
            let of_plan = || plan.source.own_files().map(|(path, _)| path);
            let are_same = || own_files.iter().zip(of_plan()).all(|(typed, of_plan)| is_path(typed, of_plan));
            typed(own_files.len() == of_plan().count() && are_same())
        };
        let destination = match (files, directory) {
            (Typed::InPart, directory) => directory,
            (files, Typed::InPart) => files,
            (files, directory) => files.max(directory),
        };
        let flag = |of_plan: bool, typed: bool| match (of_plan, typed) {
            (true, false) => Typed::InPart,
            (false, true) => Typed::Otherwise,
            _ => Typed::All,
        };
        let evict = matches!(&plan.source, Source::File { evict: true, .. });
        let flags = [flag(evict, arguments.evict), flag(plan.drop_caches, arguments.drop_caches)];
        let settings = arguments.axes.settings(plan).into_iter().map(compared);
        flags.into_iter().chain(settings).fold(destination, Ord::max)
    }
}

/// `none`, which leaves a setting unchanged, requests nothing.
fn compared(setting: Setting) -> Typed {
    match setting.typed {
        None if setting.of_plan.is_empty() => Typed::All,
        None => Typed::InPart,
        Some(typed) if typed == setting.of_plan => Typed::All,
        Some(_) => Typed::Otherwise,
    }
}
