//! `pagewise compare`: run files judged again and compared. A pure function of the files, like `report`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use pagewise_analysis::compare::{Difference, Digest, Gated, Split};
use pagewise_report::line::Line;
use pagewise_report::{compare as text, json, page};

use crate::arguments::CompareArguments;
use crate::exit::Exit;
use crate::output;
use crate::store;

/// `pagewise compare`.
pub fn compare(arguments: &CompareArguments) -> Result<Exit> {
    let base = digests(&arguments.base)?;
    if let Some(fact) = &arguments.by {
        let by = Split::by(fact, &base).map_err(|sentence| anyhow!(sentence))?;
        return split(&by, arguments);
    }
    if arguments.new.is_empty() {
        bail!(
            "there is nothing to compare with: name the runs after the change behind --, or a fact with --by"
        );
    }
    let new = digests(&arguments.new)?;
    let difference = Difference::of(&base, &new, arguments.relative_to.as_deref());
    let gated = difference.and_then(|difference| Gated::of(difference, &arguments.fail_on));
    let gated = gated.map_err(|sentence| anyhow!(sentence))?;
    match arguments {
        CompareArguments { json: true, .. } => json::write_one(&mut output::stdout(), &gated)?,
        CompareArguments { markdown: true, .. } => text::markdown(&mut output::stdout(), &gated)?,
        CompareArguments { html: Some(path), .. } => {
            output::file(path, |out| page::write_difference(out, &gated))?
        }
        _ => print(&text::lines(&gated, output::width()))?,
    }
    Ok(if gated.failed() { Exit::FellShort } else { Exit::Answered })
}

fn split(split: &Split, arguments: &CompareArguments) -> Result<Exit> {
    match arguments {
        CompareArguments { json: true, .. } => json::write_one(&mut output::stdout(), split)?,
        CompareArguments { html: Some(path), .. } => output::file(path, |out| page::write_split(out, split))?,
        _ => print(&text::split_lines(split, output::width()))?,
    }
    Ok(Exit::Answered)
}

fn print(lines: &[Line]) -> std::io::Result<()> {
    let (mut out, is_coloured) = (output::stdout(), output::is_coloured());
    lines.iter().try_for_each(|line| out.line(line, is_coloured))
}

/// The runs of a side, one at a time: their samples are not kept.
fn digests(named: &[PathBuf]) -> Result<Vec<Digest>> {
    let mut digests = Vec::new();
    for path in named.iter().map(|named| files(named)).collect::<Result<Vec<_>>>()?.concat() {
        digests.push(Digest::of(path.display().to_string(), &store::load(&path)?));
    }
    Ok(digests)
}

/// A run file, those of a directory, or those that a pattern matches.
fn files(named: &Path) -> Result<Vec<PathBuf>> {
    let is_directory = named.is_dir();
    let pattern = match named.to_str() {
        Some(text) if is_directory => format!("{}/*.jsonl", glob::Pattern::escape(text)),
        Some(text) if !named.exists() && text.contains(['*', '?', '[']) => text.to_string(),
        _ => return Ok(vec![named.to_path_buf()]),
    };
    let found = glob::glob(&pattern).with_context(|| format!("invalid pattern '{}'", named.display()))?;
    let found = found
        .collect::<Result<Vec<PathBuf>, _>>()
        .with_context(|| format!("{} cannot be searched", named.display()))?;
    if found.is_empty() {
        let what = if is_directory {
            "the directory has no run files (*.jsonl)"
        } else {
            "no file matches the pattern"
        };
        bail!("{}: {what}", named.display());
    }
    Ok(found)
}
