//! `pagewise compare`: run files judged again and compared. A pure function of the files, like
//! `report`.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pagewise_lab::answer::PAGE;
use pagewise_lab::exit::Exit;
use pagewise_lab::format_door::{self, FormatDoor};
use pagewise_lab::output;
use pagewise_lab::store;
use pagewise_model::run::Run;
use pagewise_model::run_identity::RunIdentity;
use pagewise_report::json;

use crate::arguments::CompareArguments;
use crate::document as text;
use crate::judgement::missing::missing;
use crate::judgement::{Difference, Digest, ExpectedValues, Gated, MissingRun, Split, Timeline, Together};

/// Most bytes that are read of a file of values.
const MAX_VALUES_BYTES: u64 = 16 << 20;

/// The file of a page, and its format.
type Page<'a> = (&'a Path, &'static FormatDoor);

/// `pagewise compare`.
pub fn compare(arguments: &CompareArguments) -> Result<Exit> {
    if arguments.together {
        return together(arguments);
    }
    let page: Option<Page<'_>> = match arguments.html.as_deref() {
        Some(path) => Some((path, format_door::needed(PAGE, "--html")?)),
        None => None,
    };
    if let Some(fact) = &arguments.by {
        let expected = arguments.all_of.as_deref().map(expected_values).transpose()?;
        let (runs, left_out) = digests_that_can(&arguments.base)?;
        let mut by = Split::by(fact, &runs).map_err(|sentence| anyhow!(sentence))?;
        if let Some(expected) = expected {
            by.missing = missing(&by.fact, &expected, &runs);
            let files = left_out.iter().cloned();
            by.missing.extend(files.map(|reason| MissingRun { value: None, file: None, reason }));
        }
        split(&by, arguments, page)?;
        let is_whole = left_out.is_empty() && by.missing.is_empty();
        return Ok(if is_whole { Exit::Answered } else { Exit::FellShort });
    }
    ensure!(arguments.all_of.is_none(), "--all-of is about the values of a fact: name one with --by");
    let base = digests(&arguments.base)?;
    if arguments.new.is_empty() {
        bail!(
            "there is nothing to compare with: name the runs after the change behind --, or a fact with --by"
        );
    }
    let new = digests(&arguments.new)?;
    let difference = Difference::of(&base, &new, arguments.relative_to.as_deref());
    let gated = difference.and_then(|difference| Gated::of(difference, &arguments.fail_on));
    let gated = gated.map_err(|sentence| anyhow!(sentence))?;
    let document = || text::document(&gated);
    match (page, arguments) {
        (Some((path, door)), _) => {
            let document = document();
            output::document(path, |out| (door.document)(out, "pagewise: runs compared", &document))?;
            // What a gate found decides the status, so it is printed too.
            if !gated.gates.is_empty() {
                let lines = document.conclusion().lines(output::width());
                match path == Path::new(output::STANDARD_STREAM) {
                    true => output::stderr().lines(&lines, false)?,
                    false => output::lines(&lines)?,
                }
            }
        }
        (_, CompareArguments { json: true, .. }) => json::write_one(&mut output::stdout(), &gated)?,
        (_, CompareArguments { markdown: true, .. }) => document().markdown(&mut output::stdout())?,
        _ => output::lines(&document().lines(output::width()))?,
    }
    Ok(if gated.failed() { Exit::FellShort } else { Exit::Answered })
}

/// Machines at the same time. A run that cannot be read ends it: without it a sum would be too low.
fn together(arguments: &CompareArguments) -> Result<Exit> {
    let runs = each(&store::run_files(&arguments.base)?, Timeline::of);
    let together = Together::of(runs.into_iter().collect::<Result<_>>()?);
    let together = together.map_err(|sentence| anyhow!(sentence))?;
    match arguments {
        CompareArguments { json: true, .. } => json::write_one(&mut output::stdout(), &together)?,
        CompareArguments { markdown: true, .. } => {
            text::together_document(&together).markdown(&mut output::stdout())?
        }
        _ => output::lines(&text::together_document(&together).lines(output::width()))?,
    }
    Ok(Exit::Answered)
}

fn split(split: &Split, arguments: &CompareArguments, page: Option<Page<'_>>) -> Result<()> {
    match (page, arguments) {
        (Some((path, door)), _) => {
            let (title, document) = (text::split_title(split), text::split_page(split));
            output::document(path, |out| (door.document)(out, &title, &document))?;
        }
        (_, CompareArguments { json: true, .. }) => json::write_one(&mut output::stdout(), split)?,
        (_, CompareArguments { markdown: true, .. }) => {
            text::split_document(split).markdown(&mut output::stdout())?
        }
        _ => output::lines(&text::split_document(split).lines(output::width()))?,
    }
    Ok(())
}

/// Values that must have a run: their number, or a file with one on each line.
fn expected_values(text: &Path) -> Result<ExpectedValues> {
    if let Some(number) = text.to_str().and_then(|text| text.parse().ok()) {
        ensure!(number > 0, "--all-of 0 expects nothing: write the number of values, or a file of them");
        return Ok(ExpectedValues::Number(number));
    }
    let shown = text.display();
    let cannot = || format!("the file {shown} of --all-of cannot be read");
    ensure!(text.metadata().with_context(cannot)?.is_file(), "{}: it is not a regular file", cannot());
    let mut lines = String::new();
    File::open(text)
        .and_then(|file| file.take(MAX_VALUES_BYTES).read_to_string(&mut lines))
        .with_context(cannot)?;
    let values: Vec<String> =
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_string).collect();
    ensure!(!values.is_empty(), "the file {shown} of --all-of names nothing: write a value on each line");
    Ok(ExpectedValues::Named(values))
}

/// The runs that can be read, and a sentence about each of the others, which is said: one of a
/// thousand must not hide what the rest say.
fn digests_that_can(named: &[PathBuf]) -> Result<(Vec<Digest>, Vec<String>)> {
    let (mut digests, mut left_out) = (Vec::new(), Vec::new());
    let found = each(&store::run_files(named)?, Digest::of);
    // Of copies the one that has most stays, whatever their names.
    let mut most: HashMap<RunIdentity, (bool, usize, usize, String)> = HashMap::new();
    for (index, digest) in found.iter().enumerate() {
        let Ok(digest) = digest else { continue };
        let one = (digest.is_complete, digest.samples, index, digest.name.clone());
        let kept = most.entry(digest.identity.clone()).or_insert_with(|| one.clone());
        if (one.0, one.1) > (kept.0, kept.1) {
            *kept = one;
        }
    }
    for (index, found) in found.into_iter().enumerate() {
        let found = found.and_then(|digest| match &most[&digest.identity] {
            (.., of_run, name) if *of_run != index => {
                Err(anyhow!("{} is the same run as {name}", digest.name))
            }
            _ => Ok(digest),
        });
        match found {
            Ok(digest) => digests.push(digest),
            Err(error) => {
                output::say(format_args!("left out: {error:#}"));
                left_out.push(format!("{error:#}"));
            }
        }
    }
    ensure!(!digests.is_empty(), "none of the runs can be read");
    Ok((digests, left_out))
}

/// Threads that read runs: each holds one.
const THREADS: usize = 4;

/// The runs of a side. Their samples are not kept.
fn digests(named: &[PathBuf]) -> Result<Vec<Digest>> {
    each(&store::run_files(named)?, Digest::of).into_iter().collect()
}

/// A value of each file or its error, in order.
fn each<T: Send>(paths: &[PathBuf], of: impl Fn(String, &Run) -> T + Sync) -> Vec<Result<T>> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut mine = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(index) else { return mine };
            mine.push((index, store::load(path).map(|run| of(path.display().to_string(), &run))));
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS);
    let mut each: Vec<(usize, Result<T>)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("judging a run does not panic")).collect()
    });
    each.sort_by_key(|(index, _)| *index);
    each.into_iter().map(|(_, found)| found).collect()
}
