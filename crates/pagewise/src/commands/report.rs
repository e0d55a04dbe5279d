//! `pagewise report`: run files judged again and printed. A pure function of the files: no clock, no machine.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pagewise_analysis::judge::Status;
use pagewise_analysis::{Judged, judge, judge_at};
use pagewise_model::run::Run;
use pagewise_model::{Role, Untrusted};
use pagewise_report::printed::Printed;
use pagewise_report::{csv, json, screen, table, vmstat};

use crate::arguments::{AllArguments, ReportArguments};
use crate::exit::Exit;
use crate::output;
use crate::store;

/// `pagewise report`.
pub fn report(arguments: &ReportArguments) -> Result<Exit> {
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
        None if arguments.answer => print_answer(&judged, &arguments.runs, &mut out)?,
        None => {
            for (judged, path) in judged.iter().zip(&arguments.runs) {
                print(judged, path, &mut out)?;
            }
        }
    }
    Ok(Exit::Answered)
}

/// Write a new file completely.
fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = output::file(path)?;
    write(&mut out)
        .and_then(|()| out.flush())
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// `--vmstat`: the times of two runs are unrelated, so it takes one.
fn print_seconds(paths: &[PathBuf]) -> Result<Exit> {
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
    Ok(Exit::Answered)
}

/// Print the answer of runs that were just measured: on one screen, below all tables if they are asked for, or as JSON.
pub fn answer(paths: &[PathBuf], arguments: AllArguments) -> Result<Exit> {
    let judged = load_all(paths)?;
    let mut out = output::stdout();
    if arguments.json {
        json::write(&mut out, &judged)?;
        return Ok(ending(&judged));
    }
    if arguments.verbose {
        for (judged, path) in judged.iter().zip(paths) {
            print(judged, path, &mut out)?;
            writeln!(out)?;
        }
    }
    print_answer(&judged, paths, &mut out)?;
    Ok(ending(&judged))
}

fn print_answer(judged: &[Judged], paths: &[PathBuf], out: &mut Printed<impl Write>) -> io::Result<()> {
    let runs: Vec<screen::RunWithPath<'_>> =
        judged.iter().zip(paths).map(|(judged, path)| (judged, path.display().to_string())).collect();
    let is_coloured = output::is_coloured();
    screen::lines(&runs, output::width()).iter().try_for_each(|line| out.line(line, is_coloured))
}

fn load_all(paths: &[PathBuf]) -> Result<Vec<Judged>> {
    paths.iter().map(|path| store::load(path).map(|run| judge(&run))).collect()
}

fn print(judged: &Judged, path: &Path, out: &mut impl Write) -> io::Result<()> {
    table::write(out, judged, output::width())?;
    writeln!(out, "\nRun file: {}", Untrusted(path.display()))
}

/// Status of a run that was just measured. Ceilings answer no question.
fn ending(judged: &[Judged]) -> Exit {
    fn measured(judged: &Judged) -> impl Iterator<Item = Status> {
        judged.cells.iter().filter(|cell| cell.role == Role::Measured).map(|cell| cell.status)
    }
    let is_short =
        |judged: &Judged| judged.fell_short() || !measured(judged).any(|status| status == Status::Ok);
    if judged.iter().flat_map(measured).all(|status| status == Status::Unavailable) {
        return Exit::NotMeasurable;
    }
    if judged.iter().any(is_short) { Exit::FellShort } else { Exit::Answered }
}
