//! The answer of runs that were just measured, and its page beside them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use pagewise_analysis::judge::Status;
use pagewise_analysis::judge::expectations::Fulfilment;
use pagewise_analysis::{Judged, judge};
use pagewise_model::run::Run;
use pagewise_model::{Role, Untrusted};
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::{json, screen, table};

use crate::choices::PrintArguments;
use crate::exit::Exit;
use crate::format_door::{self, FormatDoor};
use crate::{output, store};

/// The format of the page beside a run.
pub const PAGE: &str = "html";

/// The option of no page.
const NO_PAGE: &str = "--no-html";

/// Print the answer of runs that were just measured: on one screen, below all tables if they are
/// asked for, or as JSON. The page is written beside them.
pub fn answer(paths: &[PathBuf], arguments: PrintArguments) -> Result<Exit> {
    let runs = paths.iter().map(|path| store::load(path)).collect::<Result<Vec<Run>>>()?;
    let judged: Vec<Judged> = runs.iter().map(judge).collect();
    let names: Vec<String> = paths.iter().map(|path| store::name_of(path).display().to_string()).collect();
    let named: Vec<JudgedRun<'_>> = (runs.iter().zip(&judged).zip(&names))
        .map(|((run, judged), path)| JudgedRun::of(path, run, judged))
        .collect();
    let mut out = output::stdout();
    if arguments.json {
        json::write(&mut out, &named)?;
        return Ok(ending(&judged));
    }
    if arguments.verbose {
        for run in &named {
            print(run, &mut out, true)?;
            writeln!(out)?;
        }
    }
    print_answer(&named, &mut out, true)?;
    // A run that was begun without a page has none when it is resumed.
    let begun_without = runs.iter().any(|run| run.header.typed.iter().any(|word| word == NO_PAGE));
    let without = arguments.no_html || begun_without;
    if !without && !paths.iter().any(|path| store::went_to_stdout(path)) {
        match format_door::of(PAGE).map(|door| write_page(door, paths, &named, &judged)) {
            Some(Ok(page)) => writeln!(out, "The same as a page: {}", Untrusted(page.display()))?,
            // The run is complete and shown; its page can be written at any time.
            Some(Err(error)) => output::say(format_args!("warning: there is no page: {error:#}")),
            None => writeln!(out, "There is no page: this build of pagewise is without the format {PAGE}")?,
        }
    }
    Ok(ending(&judged))
}

/// Write the page of runs beside them. One of the same runs is replaced, any other file is not.
fn write_page(
    door: &FormatDoor,
    paths: &[PathBuf],
    runs: &[JudgedRun<'_>],
    judged: &[Judged],
) -> Result<PathBuf> {
    let page = page_of(paths);
    let mark = (door.mark)(judged);
    let is_ours = |text: &[u8]| String::from_utf8_lossy(text).contains(&mark);
    output::file_again(&page, is_ours, |out| (door.runs)(out, runs))?;
    Ok(page)
}

/// `NAME.html` beside `NAME.jsonl`; beside several, what their names begin with.
fn page_of(paths: &[PathBuf]) -> PathBuf {
    let first = &paths[0];
    let name =
        |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut shared = name(first);
    for other in paths[1..].iter().map(|path| name(path)) {
        let same = shared.chars().zip(other.chars()).take_while(|(one, other)| one == other);
        shared = same.map(|(letter, _)| letter).collect::<String>().trim_end_matches('-').to_string();
    }
    match paths {
        [only] => only.with_extension(PAGE),
        _ => first.with_file_name(format!("{shared}.{PAGE}")),
    }
}

/// Print the answer of runs on one screen.
pub fn print_answer(
    runs: &[JudgedRun<'_>],
    out: &mut output::TextOutput<'_>,
    is_stdout: bool,
) -> io::Result<()> {
    let is_coloured = is_stdout && output::is_coloured();
    out.lines(&screen::lines(runs, output::width()), is_coloured)
}

/// Print all tables of a run, and the path of its file.
pub fn print(run: &JudgedRun<'_>, out: &mut output::TextOutput<'_>, is_stdout: bool) -> io::Result<()> {
    let is_coloured = is_stdout && output::is_coloured();
    out.lines(&table::document(run).lines(output::width()), is_coloured)?;
    writeln!(out, "\nRun file: {}", Untrusted(run.path))
}

/// Status of a run that was just measured. Ceilings answer no question.
fn ending(judged: &[Judged]) -> Exit {
    fn measured(judged: &Judged) -> impl Iterator<Item = Status> {
        judged.cells.iter().filter(|cell| cell.role == Role::Measured).map(|cell| cell.status)
    }
    let is_unproven = |judged: &Judged| judged.self_replay.as_ref().is_some_and(|replay| !replay.stands);
    let is_short = |judged: &Judged| {
        is_unproven(judged)
            || judged.fell_short()
            || judged.lacks_rival()
            || judged.run.start.is_some_and(|start| start.late_ns() > 0)
            || !measured(judged).any(|status| status == Status::Ok)
    };
    if judged.iter().flat_map(measured).all(|status| status == Status::Unavailable) {
        return Exit::NotMeasurable;
    }
    if judged.iter().any(is_short) {
        return Exit::FellShort;
    }
    let expected = judged.iter().flat_map(|judged| &judged.cells).flat_map(|cell| &cell.expected);
    match expected.map(|expected| expected.verdict).min() {
        Some(Fulfilment::DoesNotHold) => Exit::FellShort,
        Some(Fulfilment::Open) => Exit::Open,
        Some(Fulfilment::Holds) | None => Exit::Answered,
    }
}
