//! `pagewise report`: run files judged again and printed. A pure function of the files: no clock, no machine.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pagewise_analysis::judge::Status;
use pagewise_analysis::judge::advice::headline;
use pagewise_analysis::judge::label::label;
use pagewise_analysis::{Judged, judge, judge_at};
use pagewise_model::format::{bytes, duration, time};
use pagewise_model::run::Run;
use pagewise_model::{CacheState, Cell, Plan, Role, Source, Untrusted};
use pagewise_report::paragraph::paragraph;
use pagewise_report::{csv, json, table, vmstat};

use super::CommandEnd;
use crate::arguments::ReportArguments;
use crate::output;
use crate::plan::estimate;
use crate::store;

/// `pagewise report`.
pub fn report(arguments: &ReportArguments) -> Result<CommandEnd> {
    if arguments.vmstat {
        return print_seconds(&arguments.runs);
    }
    let runs = arguments.runs.iter().map(|path| store::load(path)).collect::<Result<Vec<Run>>>()?;
    let price = f64::from(arguments.price_of_simplicity) / 100.0;
    let judged: Vec<Judged> = runs.iter().map(|run| judge_at(run, price)).collect();
    let mut out = output::stdout();
    match &arguments.csv {
        Some(path) if path == Path::new("-") => csv::write(&mut out, &runs)?,
        Some(path) => write_file(path, |out| csv::write(out, &runs))?,
        None if arguments.json => json::write(&mut out, &judged)?,
        None => {
            for (judged, path) in judged.iter().zip(&arguments.runs) {
                print(judged, path, &mut out)?;
            }
        }
    }
    Ok(ending(&judged))
}

/// Write a new file completely.
fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = output::file(path)?;
    write(&mut out)
        .and_then(|()| out.flush())
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// `--vmstat`: the times of two runs are unrelated, so it takes one.
fn print_seconds(paths: &[PathBuf]) -> Result<CommandEnd> {
    let [path] = paths else {
        bail!("--vmstat prints the seconds of one run: {} run files were given", paths.len());
    };
    let rows = vmstat::rows(&store::load(path)?.seconds);
    if rows.is_empty() {
        bail!(
            "{} has no readings of the host: the run was shorter than a second, or made by a pagewise without them",
            path.display()
        );
    }
    vmstat::write(&mut output::stdout(), &rows)?;
    Ok(CommandEnd::Done)
}

/// Print runs that were just measured.
pub fn show(paths: &[PathBuf], json: bool) -> Result<CommandEnd> {
    let judged = load_all(paths)?;
    let mut out = output::stdout();
    if json {
        json::write(&mut out, &judged)?;
    } else {
        for (judged, path) in judged.iter().zip(paths) {
            print(judged, path, &mut out)?;
        }
    }
    Ok(ending(&judged))
}

/// Print the recommendations of runs whose tables were printed before, and list missing results.
pub fn advice(paths: &[PathBuf]) -> Result<CommandEnd> {
    let judged = load_all(paths)?;
    let mut out = output::stdout();
    writeln!(out, "In short")?;
    for judged in &judged {
        let sentences = headline(judged);
        if !sentences.is_empty() {
            paragraph(&mut out, "  ", &sentences.join(" "), output::width())?;
        }
    }
    let short: Vec<&str> = judged
        .iter()
        .filter(|judged| judged.fell_short())
        .map(|judged| judged.run.question.as_str())
        .collect();
    if !short.is_empty() {
        let text = format!(
            "Some cells have fewer valid samples than rounds, as their tables say: {}. The exit status is 1.",
            short.join(", ")
        );
        paragraph(&mut out, "  ", &text, output::width())?;
    }
    Ok(ending(&judged))
}

fn load_all(paths: &[PathBuf]) -> Result<Vec<Judged>> {
    paths.iter().map(|path| store::load(path).map(|run| judge(&run))).collect()
}

fn print(judged: &Judged, path: &Path, out: &mut impl Write) -> io::Result<()> {
    table::write(out, judged, output::width())?;
    writeln!(out, "\nRun file: {}", Untrusted(path.display()))
}

/// Exit 1 if an obtainable result is missing.
fn ending(judged: &[Judged]) -> CommandEnd {
    let measured_nothing = |judged: &Judged| !judged.cells.iter().any(|cell| cell.status == Status::Ok);
    let short = judged.iter().any(|judged| judged.fell_short() || measured_nothing(judged));
    if short { CommandEnd::FellShort } else { CommandEnd::Done }
}

/// Print a resolved plan, the bytes it will write and the time it will take.
pub fn dry_run(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "question   {}", Untrusted(&plan.question))?;
    match &plan.source {
        Source::Dataset { directory } if plan.datasets().is_empty() => {
            writeln!(out, "files      made in {}, removed afterwards", Untrusted(directory))?;
        }
        Source::Dataset { directory } => {
            writeln!(out, "dataset    made in {}, removed afterwards", Untrusted(directory))?;
        }
        Source::File { path, evict, .. } => {
            let warm = plan.cells.iter().any(|cell| cell.conditions.cache == CacheState::Warm);
            let cache = match (*evict, warm) {
                (true, _) => "it may be dropped from the page cache",
                (false, true) => "it is read into the page cache",
                (false, false) => "the page cache is left as the samples change it",
            };
            writeln!(out, "file       {}, only read; {cache}", Untrusted(path))?;
        }
    }
    writeln!(out, "seed       {}", plan.seed)?;
    let mut measured = plan.cells.iter().filter(|cell| cell.role != Role::Ceiling);
    let sample = match measured.all(|cell| cell.conditions.workload().is_one_shot()) {
        true => "each sample is the whole work once".to_string(),
        false => format!(
            "a sample lasts {}{}, single latencies up to {} more",
            time(plan.sample_ns),
            plan.memory_sample_ns.map_or_else(String::new, |ns| format!(", or {} in memory", time(ns))),
            time(plan.latency_ns)
        ),
    };
    let cells = plan.cells.len();
    let sampling = match estimate::budget_ns(plan) {
        None => format!("{} rounds of {cells} cells", plan.rounds),
        Some(budget) => format!(
            "{} rounds of {cells} cells, then rounds of what is undecided, about {} in all at most",
            plan.first_rounds(),
            time(budget)
        ),
    };
    writeln!(out, "sampling   {sampling}; {sample}")?;
    writeln!(out, "writes     {}", written(plan))?;
    writeln!(out, "takes      about {}\n", duration(estimate::duration_ns(plan)))?;
    for cell in &plan.cells {
        writeln!(out, "{:9}  {}", cell.role.name(), Untrusted(describe(cell)))?;
    }
    Ok(())
}

/// Bytes written in the whole run, because flash wears.
fn written(plan: &Plan) -> String {
    let dataset = plan.all_dataset_bytes();
    match plan.largest_written() {
        None if plan.blocks > 1 => format!("{} in {} datasets, one at a time", bytes(dataset), plan.blocks),
        None => bytes(dataset),
        Some(largest) => format!(
            "{} in {} samples{}, at most {} at a time, each file removed after its sample{}",
            bytes(plan.written_bytes()),
            u64::from(plan.first_rounds()) * plan.writing_cells().count() as u64,
            if plan.budget.is_some() { ", and more in later rounds" } else { "" },
            bytes(largest),
            if dataset.0 > 0 { format!("; {} to be read", bytes(dataset)) } else { String::new() }
        ),
    }
}

fn describe(cell: &Cell) -> String {
    format!("{} {}", cell.method, label(&cell.conditions))
}
