//! `pagewise report`: run files judged again and printed. A pure function of the files: no clock, no machine.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pagewise_analysis::judge::Status;
use pagewise_analysis::judge::advice::headline;
use pagewise_analysis::{Judged, judge, judge_at};
use pagewise_model::run::Run;
use pagewise_model::{Role, Untrusted};
use pagewise_report::paragraph::paragraph;
use pagewise_report::{csv, json, table, vmstat};

use crate::arguments::ReportArguments;
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

/// Print runs that were just measured.
pub fn show(paths: &[PathBuf], json: bool) -> Result<Exit> {
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
pub fn advice(paths: &[PathBuf]) -> Result<Exit> {
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
