//! `advice`: whether what a quick run advises holds on a fresh seed and a fresh file.
//!
//! One quick run of a question advises; a full one, with a seed and a file of its own, says how far the advised method
//! is behind the best there, by the paired ratios of that full run: of rates, and of the total of set-up, measured
//! region and tear-down where the work is done once.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use pagewise_analysis::{Judged, judge};
use pagewise_model::run::Run;

use crate::dataset::Scratch;
use crate::pagewise::{Pagewise, Place};

/// What is asked.
const QUESTIONS: [&str; 4] = ["read", "scan", "append", "fill"];
/// The question whose files lie in memory unless a folder is named.
const IN_MEMORY: &str = "fill";
/// How far behind the best an advised method may be.
const AT_MOST: f64 = 1.05;

/// Whether what a quick run advises holds on a fresh seed and a fresh file.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    place: Place,
    /// Runs of each question that advise; each is followed by one that tells.
    #[arg(long, default_value_t = 2)]
    pairs: usize,
    /// The questions, such as `scan append`; all of them if none is named.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(QUESTIONS))]
    questions: Vec<String>,
}

/// Measures and prints a line for each advice.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    let all: Vec<String> = QUESTIONS.map(str::to_string).to_vec();
    let questions = if options.questions.is_empty() { &all } else { &options.questions };
    let (mut held, mut given) = (0, 0);
    for question in questions {
        let full = full(question);
        for pair in 0..options.pairs {
            let advising = measured(
                &pagewise,
                &scratch,
                question,
                &["--quick"],
                &format!("advising-{question}-{pair}.jsonl"),
            )?;
            let telling =
                measured(&pagewise, &scratch, question, &full, &format!("telling-{question}-{pair}.jsonl"))?;
            let (of_pair, holds) = tell(&advising, &telling, out)?;
            given += of_pair;
            held += holds;
            out.flush()?;
        }
    }
    writeln!(out, "\nwithin {:.0} % of the best: {held} of {given}", (AT_MOST - 1.0) * 100.0)?;
    Ok(())
}

/// How many methods were advised, and how many of them are near the best of the other run under the same conditions.
fn tell(advising: &Judged, telling: &Judged, out: &mut impl Write) -> Result<(usize, usize)> {
    let (mut given, mut held) = (0, 0);
    for advice in &advising.advice {
        let label = &advice.conditions.label;
        let Some(method) = &advice.recommended else {
            writeln!(out, "no advice: {}", advice.sentence)?;
            continue;
        };
        let fresh = telling.comparisons.iter().find(|fresh| fresh.conditions.label == *label);
        let fresh = fresh.with_context(|| format!("the second run has no {label}"))?;
        let Some(best) = fresh.leader.as_deref() else {
            writeln!(out, "{label}: {method}; the second run has no best")?;
            continue;
        };
        // The leader itself is at 1.
        let ratio = fresh.ratios.iter().find(|ratio| ratio.method == *method).map(|ratio| ratio.ratio);
        let Some(behind) = ratio.or((best == method).then_some(1.0)) else {
            writeln!(out, "{label}: {method}; not ranked in the second run")?;
            continue;
        };
        given += 1;
        held += usize::from(behind <= AT_MOST);
        let mark = if behind <= AT_MOST { "" } else { "  behind" };
        writeln!(out, "{label}: {method}; best there: {best}, {behind:.3}x{mark}")?;
    }
    Ok((given, held))
}

/// Arguments of a full run that has the conditions of a quick one, on files of its size, and more methods.
fn full(question: &str) -> Vec<&'static str> {
    let conditions: &[&str] = match question {
        "read" => &["--threads=1"],
        "scan" => &["--consume=lines", "--file-size=256MiB"],
        "append" => &["--record-size=100B,1KiB", "--file-size=64MiB"],
        _ => &["--file-size=128MiB"],
    };
    [&["--full"], conditions].concat()
}

fn measured(
    pagewise: &Pagewise<'_>,
    scratch: &Scratch,
    question: &str,
    arguments: &[&str],
    name: &str,
) -> Result<Judged> {
    let path = scratch.path(name);
    let mut command = pagewise.command();
    command.args(["run", question, "--json"]).args(arguments).arg("--out").arg(&path);
    if question != IN_MEMORY {
        command.arg("--dir").arg(scratch.path(""));
    }
    let status = command.stdout(Stdio::null()).status().context("pagewise does not start")?;
    ensure!(matches!(status.code(), Some(0 | 1)), "pagewise run: {status}");
    load(&path)
}

fn load(path: &Path) -> Result<Judged> {
    let text = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(judge(&Run::parse(&text)?))
}
