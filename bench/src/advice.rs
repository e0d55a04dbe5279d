//! `advice`: whether what a quick run advises holds on a fresh seed and a fresh file.
//!
//! One quick run advises; another one, with a seed and a dataset of its own, says how far the advised method is
//! behind the best there, by the paired ratios of that second run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use pagewise_analysis::{Judged, judge};
use pagewise_model::run::Run;

use crate::dataset::Scratch;
use crate::pagewise::{Executable, Pagewise};

/// How far behind the best an advised method may be.
const AT_MOST: f64 = 1.05;

/// Whether what a quick run advises holds on a fresh seed and a fresh file.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    executable: Executable,
    /// Folder for the datasets; removed afterwards.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Runs that advise; each is followed by one that tells.
    #[arg(long, default_value_t = 2)]
    pairs: usize,
}

/// Measures and prints a line for each advice.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let scratch = Scratch::new(&options.dir)?;
    let pagewise = options.executable.find(&scratch)?;
    let (mut held, mut given) = (0, 0);
    for pair in 0..options.pairs {
        let advising = quick_run(&pagewise, &scratch, &format!("advising-{pair}.jsonl"))?;
        let telling = quick_run(&pagewise, &scratch, &format!("telling-{pair}.jsonl"))?;
        for (advice, fresh) in advising.advice.iter().zip(&telling.comparisons) {
            let Some(method) = &advice.recommended else {
                writeln!(out, "no advice: {}", advice.sentence)?;
                continue;
            };
            // Whatever leads in the second run leads by its paired ratios; the leader itself is at 1.
            let behind =
                fresh.ratios.iter().find(|ratio| ratio.method == *method).map_or(1.0, |ratio| ratio.ratio);
            given += 1;
            held += usize::from(behind <= AT_MOST);
            let mark = if behind <= AT_MOST { "" } else { "  behind" };
            let best = fresh.leader.as_deref().unwrap_or("none");
            writeln!(out, "{}: {method}; best there: {best}, {behind:.3}x{mark}", advice.conditions.label)?;
        }
        out.flush()?;
    }
    writeln!(out, "\nwithin {:.0} % of the best: {held} of {given}", (AT_MOST - 1.0) * 100.0)?;
    Ok(())
}

fn quick_run(pagewise: &Pagewise<'_>, scratch: &Scratch, name: &str) -> Result<Judged> {
    let path = scratch.path(name);
    let mut command = pagewise.command();
    command.args(["run", "read", "--quick", "--json", "--dir"]).arg(scratch.path("")).arg("--out").arg(&path);
    let status = command.stdout(Stdio::null()).status().context("pagewise does not start")?;
    ensure!(matches!(status.code(), Some(0 | 1)), "pagewise run: {status}");
    load(&path)
}

fn load(path: &Path) -> Result<Judged> {
    let text = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(judge(&Run::parse(&text)?))
}
