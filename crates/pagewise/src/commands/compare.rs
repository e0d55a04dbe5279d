//! `pagewise compare`: run files judged again and compared. A pure function of the files, like
//! `report`.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow, bail, ensure};
use pagewise_analysis::compare::{Difference, Digest, Gated, Split};
use pagewise_lab::exit::Exit;
use pagewise_lab::output;
use pagewise_lab::store;
use pagewise_report::{compare as text, json, page};

use crate::arguments::CompareArguments;

/// `pagewise compare`.
pub fn compare(arguments: &CompareArguments) -> Result<Exit> {
    if let Some(fact) = &arguments.by {
        let (runs, missing) = digests_that_can(&arguments.base)?;
        let by = Split::by(fact, &runs).map_err(|sentence| anyhow!(sentence))?;
        split(&by, arguments)?;
        return Ok(if missing > 0 { Exit::FellShort } else { Exit::Answered });
    }
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
    match arguments {
        CompareArguments { json: true, .. } => json::write_one(&mut output::stdout(), &gated)?,
        CompareArguments { markdown: true, .. } => document().markdown(&mut output::stdout())?,
        CompareArguments { html: Some(path), .. } => {
            let document = document();
            output::file(path, |out| page::write_difference(out, &document))?;
            // What a gate found decides the status, so it is printed too.
            if !gated.gates.is_empty() {
                output::lines(&document.conclusion().lines(output::width()))?;
            }
        }
        _ => output::lines(&document().lines(output::width()))?,
    }
    Ok(if gated.failed() { Exit::FellShort } else { Exit::Answered })
}

fn split(split: &Split, arguments: &CompareArguments) -> Result<()> {
    match arguments {
        CompareArguments { json: true, .. } => json::write_one(&mut output::stdout(), split)?,
        CompareArguments { html: Some(path), .. } => output::file(path, |out| page::write_split(out, split))?,
        CompareArguments { markdown: true, .. } => {
            text::split_document(split).markdown(&mut output::stdout())?
        }
        _ => output::lines(&text::split_document(split).lines(output::width()))?,
    }
    Ok(())
}

/// The runs that can be read, and the number of the others, which are named: one of a thousand must
/// not hide what the rest say.
fn digests_that_can(named: &[PathBuf]) -> Result<(Vec<Digest>, usize)> {
    let (mut digests, mut missing) = (Vec::new(), 0);
    for found in each_digest(&store::run_files(named)?) {
        match found {
            Ok(digest) => digests.push(digest),
            Err(error) => {
                missing += 1;
                output::say(format_args!("left out: {error:#}"));
            }
        }
    }
    ensure!(!digests.is_empty(), "none of the runs can be read");
    Ok((digests, missing))
}

/// Threads that read runs: each holds one.
const THREADS: usize = 4;

/// The runs of a side. Their samples are not kept.
fn digests(named: &[PathBuf]) -> Result<Vec<Digest>> {
    each_digest(&store::run_files(named)?).into_iter().collect()
}

/// A digest of each file or its error, in order.
fn each_digest(paths: &[PathBuf]) -> Vec<Result<Digest>> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut mine = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(index) else { return mine };
            let digest = store::load(path).map(|run| Digest::of(path.display().to_string(), &run));
            mine.push((index, digest));
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS);
    let mut digests: Vec<(usize, Result<Digest>)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("judging a run does not panic")).collect()
    });
    digests.sort_by_key(|(index, _)| *index);
    digests.into_iter().map(|(_, digest)| digest).collect()
}
