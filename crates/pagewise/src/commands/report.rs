//! `pagewise report`: run files judged again and printed. A pure function of the files: no clock,
//! no machine.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use pagewise_analysis::{Judged, judge_at};
use pagewise_lab::answer::{PAGE, print, print_answer};
use pagewise_lab::exit::Exit;
use pagewise_lab::format_door::{self, FormatDoor};
use pagewise_lab::output::{self, STANDARD_STREAM};
use pagewise_lab::store;
use pagewise_model::Untrusted;
use pagewise_model::format::counted;
use pagewise_model::run::Run;
use pagewise_model::run_identity::{RunIdentity, refuse_twice};
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::vmstat::VmstatRow;
use pagewise_report::{csv, json, markdown, vmstat};

use crate::arguments::{CsvRows, ReportArguments};

/// `pagewise report`.
pub fn report(arguments: &ReportArguments) -> Result<Exit> {
    let out = arguments.out.as_deref();
    let page = arguments.html.as_ref().map(|path| (path, "--html"));
    let plots = arguments.svg.as_ref().map(|path| (path, "--svg"));
    let drawn = page.or(plots).map(|(_, option)| format_door::needed(PAGE, option)).transpose()?;
    if arguments.vmstat {
        let rows = seconds(&arguments.runs)?;
        return put(out, |out| vmstat::write(out, &rows));
    }
    let files = store::run_files(&arguments.runs)?;
    let price = f64::from(arguments.price_of_simplicity) / 100.0;
    if arguments.rows {
        return rows(&files, out, price);
    }
    let paths: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let has_stdin = files.iter().any(|path| path == Path::new(STANDARD_STREAM));
    if files.len() > 1 && !has_stdin && (arguments.json || matches!(arguments.csv, Some(CsvRows::Cells))) {
        return one_by_one(&files, &paths, arguments, price);
    }
    let runs = files.iter().map(|path| store::load(path)).collect::<Result<Vec<Run>>>()?;
    distinct(&paths, &runs)?;
    if let Some(CsvRows::Samples) = arguments.csv {
        return put(out, |out| csv::samples::write(out, &runs));
    }
    let judged: Vec<Judged> = runs.iter().map(|run| judge_at(run, price)).collect();
    let both = runs.iter().zip(&judged).zip(&paths);
    let documented: Vec<JudgedRun<'_>> =
        both.map(|((run, judged), path)| JudgedRun::of(path, run, judged)).collect();
    match (drawn, &arguments.svg) {
        (Some(door), Some(directory)) => return write_plots(door, directory, &documented),
        (Some(door), None) => return put(arguments.html.as_deref(), |out| (door.runs)(out, &documented)),
        (None, _) => {}
    }
    put(out, |out| match arguments {
        ReportArguments { csv: Some(_), .. } => csv::cells::write(out, &documented),
        ReportArguments { json: true, .. } => json::write(out, &documented),
        ReportArguments { markdown: true, .. } => markdown::write(out, &documented),
        ReportArguments { answer: true, .. } => print_answer(&documented, out, arguments.out.is_none()),
        _ => documented.iter().try_for_each(|run| print(run, out, arguments.out.is_none())),
    })
}

/// Refuse a run that is there twice.
fn distinct(paths: &[String], runs: &[Run]) -> Result<()> {
    let named = paths.iter().zip(runs).map(|(path, run)| (path.as_str(), RunIdentity::of(run)));
    refuse_twice(named).map_err(|sentence| anyhow!(sentence))
}

/// Several runs as one JSON or CSV, of which one at a time is in memory.
fn one_by_one(files: &[PathBuf], paths: &[String], arguments: &ReportArguments, price: f64) -> Result<Exit> {
    let headers = files.iter().map(|path| store::load_header(path)).collect::<Result<Vec<Run>>>()?;
    distinct(paths, &headers)?;
    let mut failed = None;
    let mut load = |path: &PathBuf| {
        store::load(path).map_err(|error| {
            failed = Some(error);
            io::Error::from(io::ErrorKind::InvalidData)
        })
    };
    let written = put(arguments.out.as_deref(), |out| match arguments.json {
        true => {
            let judged = |run: Run| {
                let judged = judge_at(&run, price);
                (run, judged)
            };
            json::write_several(out, files.iter().map(|path| load(path).map(judged)))
        }
        false => {
            let mut rows = csv::cells::CellRows::begin(out)?;
            for (file, path) in files.iter().zip(paths) {
                let run = load(file)?;
                rows.add(&JudgedRun::of(path, &run, &judge_at(&run, price)))?;
            }
            rows.end()
        }
    });
    match failed {
        Some(error) => Err(error),
        None => written,
    }
}

/// Rows of cells. A run that cannot be read, or is there twice, is named, and the others go on.
fn rows(files: &[PathBuf], out: Option<&Path>, price: f64) -> Result<Exit> {
    let (mut known, mut missing) = (HashMap::new(), 0);
    let written = put(out, |out| {
        for file in files {
            let path = file.display().to_string();
            let run =
                store::load(file).and_then(|run| match known.insert(RunIdentity::of(&run), path.clone()) {
                    Some(first) => Err(anyhow!("{path} is the same run as {first}")),
                    None => Ok(run),
                });
            match run {
                Ok(run) => {
                    if !run.is_complete() {
                        output::say(format_args!("warning: {path} is not complete"));
                    }
                    let judged = judge_at(&run, price);
                    pagewise_report::rows::write(out, &JudgedRun::of(&path, &run, &judged))?;
                }
                Err(error) => {
                    missing += 1;
                    output::say(format_args!("left out: {error:#}"));
                }
            }
        }
        // A file of no rows does not appear.
        if missing < files.len() { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    });
    ensure!(missing < files.len(), "none of the runs can be read");
    if missing > 0 {
        let of = counted(files.len() as u64, "run file");
        output::say(format_args!("{missing} of {of} left out"));
    }
    written.map(|answered| if missing > 0 { Exit::FellShort } else { answered })
}

/// Write each plot as a file, and print their names. Nothing is written if one of them exists.
fn write_plots(door: &FormatDoor, directory: &Path, runs: &[JudgedRun<'_>]) -> Result<Exit> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for drawn in (door.plots)(runs) {
        let name = format!("{}-{}", file_name(&drawn.question), drawn.plot.id);
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        files.push((directory.join(format!("{name}-{count}.svg")), drawn.svg));
    }
    if files.is_empty() {
        bail!("there is nothing to plot: no cell has a valid sample");
    }
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        bail!("{} exists: name another directory", path.display());
    }
    let is_new = !directory.exists();
    std::fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))?;
    let mut out = output::stdout();
    for (path, text) in &files {
        if let Err(error) = output::file(path, |out| out.write_all(text.as_bytes())) {
            if is_new {
                // One that has plots stays.
                let _ = std::fs::remove_dir(directory);
            }
            return Err(error);
        }
        writeln!(out, "{}", Untrusted(path.display()))?;
    }
    Ok(Exit::Answered)
}

/// The name of a question as a part of a file's name.
fn file_name(question: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    question.chars().take(60).map(plain).collect()
}

/// Write a document into the file that was named; to stdout without one, and for `-`.
fn put(
    path: Option<&Path>,
    write: impl FnOnce(&mut output::TextOutput<'_>) -> io::Result<()>,
) -> Result<Exit> {
    output::document(path.unwrap_or(Path::new(STANDARD_STREAM)), write)?;
    Ok(Exit::Answered)
}

/// Rows of `--vmstat`: the times of two runs are unrelated, so it takes one.
fn seconds(paths: &[PathBuf]) -> Result<Vec<VmstatRow>> {
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
    Ok(rows)
}
