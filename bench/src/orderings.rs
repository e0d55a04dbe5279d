//! `orderings`: what others published of data above memory, and whether it holds on this machine.
//!
//! Two plan files (`plans/`), each one run of pagewise. For every ordering the ratio of two methods in the same
//! rounds with its interval, by the functions that make those of the judged JSON (which has them against the leader only);
//! it holds if the interval lies beyond 2 %. Below stands the evidence that says why.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use pagewise_analysis::judge::collected::{CellSamples, collect};
use pagewise_analysis::judge::{CellJudgement, Comparison, Judged};
use pagewise_analysis::statistics::paired_log_ratios;
use pagewise_model::run::Run;
use pagewise_model::{Bytes, Role};

use crate::dataset::Scratch;
use crate::pagewise::{Pagewise, Place};
use crate::ratio::Ratio;

const ABOVE_MEMORY: &str = include_str!("../plans/above-memory.toml");
const AMPLIFICATION: &str = include_str!("../plans/amplification.toml");

/// Faster, slower: the published order. The second of them is also looked at with a window of prefetch.
const ORDER: [(&str, &str); 3] =
    [("pread", "mmap"), ("mmap:random+prefetch", "pread"), ("mmap:random+prefetch=64", "pread")];
/// What plain mmap reads at least for a byte asked, and mmap:random at most for one that was not there.
const PLAIN_AT_LEAST: f64 = 10.0;
const RANDOM_AT_MOST: f64 = 1.1;
/// Differences below this are not claimed.
const NEAR: f64 = 0.02;

/// Whether published orderings hold here, and why.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    place: Place,
    /// Limit of memory; the data are four times the page cache that it leaves.
    #[arg(long, default_value = "128MiB")]
    memory: Bytes,
    /// Readahead of the device, an axis.
    #[arg(long, default_value = "128KiB,8MiB")]
    readahead: String,
    /// Threads above memory, an axis; the amplification is measured with one.
    #[arg(long, default_value = "1,2")]
    threads: String,
    /// Rounds, at least 7.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Keep the run files in this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Runs the plans and prints what came of them.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    let run = measure(options, &pagewise, "above-memory", ABOVE_MEMORY, &["--threads", &options.threads])?;
    rates(&run, out)?;
    out.flush()?;
    let run = measure(options, &pagewise, "amplification", AMPLIFICATION, &[])?;
    amplification(&run, out)
}

/// One run of a plan; what is wrong with it is said above its results.
fn measure(options: &Options, pagewise: &Pagewise<'_>, name: &str, plan: &str, axes: &[&str]) -> Result<Run> {
    let scratch = pagewise.scratch();
    let (plan_file, run_file) =
        (scratch.path(&format!("{name}.toml")), scratch.path(&format!("{name}.jsonl")));
    fs::write(&plan_file, plan)?;
    let mut command = pagewise.command();
    command.arg("run").arg(&plan_file).arg("--json").args(axes);
    command.args(["--memory", &options.memory.to_string(), "--readahead", &options.readahead]);
    command.args(["--rounds", &options.rounds.to_string()]);
    command.arg("--dir").arg(scratch.path("")).arg("--out").arg(&run_file);
    let said = scratch.path("stderr");
    command.stdout(Stdio::null()).stderr(Stdio::from(fs::File::create(&said)?));
    let mut child = command.spawn().context("pagewise does not start")?;
    scratch.run_begins(child.id(), pagewise.executable());
    // Its id stays its own until it is waited for, so a signal never meets another process.
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    }
    scratch.run_ends();
    let status = child.wait()?;
    let said = || fs::read_to_string(&said).unwrap_or_default();
    ensure!(matches!(status.code(), Some(0 | 1)), "pagewise run: {status}: {}", said().trim());
    let text =
        fs::read(&run_file).with_context(|| format!("pagewise left no run file: {}", said().trim()))?;
    if let Some(keep) = &options.keep {
        fs::create_dir_all(keep)?;
        fs::copy(&run_file, keep.join(format!("{name}.jsonl")))
            .with_context(|| format!("cannot keep the run file in {}", keep.display()))?;
    }
    Ok(Run::parse(&text)?)
}

fn heading(judged: &Judged, out: &mut impl Write) -> Result<()> {
    let (run, validity) = (&judged.run, &judged.validity);
    let took = run.elapsed_ns.unwrap_or(0) as f64 / 1e9;
    writeln!(
        out,
        "\n## {}\n\n{} rounds, {took:.0} s, seed {}; {} of {} samples valid",
        run.question, run.rounds, run.seed, validity.valid, validity.samples
    )?;
    for reason in &validity.reasons {
        writeln!(out, "  {} x {}: {}", reason.count, reason.kind.name(), reason.example)?;
    }
    Ok(())
}

fn rates(run: &Run, out: &mut impl Write) -> Result<()> {
    let (judged, cells) = (pagewise_analysis::judge(run), collect(run));
    heading(&judged, out)?;
    writeln!(out, "\n| conditions | published | here: ratio of rates | |\n|---|---|---|---|")?;
    for comparison in &judged.comparisons {
        for (faster, slower) in ORDER {
            let ratio = paired(comparison, &cells, faster, slower);
            let verdict = ratio.map_or("unknown: too few valid rounds", order);
            writeln!(
                out,
                "| {} | {slower} < {faster} | {} | {verdict} |",
                label(comparison),
                ratio.map_or("–".to_string(), |ratio| ratio.to_string()),
            )?;
        }
    }
    evidence(&judged, out)
}

/// Readahead as well: labels leave out what a reader knows from the table's title.
fn label(comparison: &Comparison) -> String {
    let conditions = &comparison.conditions.conditions;
    let readahead = conditions.host_settings.kernel.readahead_bytes;
    let readahead = readahead.map_or("as found".to_string(), |bytes| bytes.to_string());
    format!("readahead {readahead}, {}, {} thread(s)", conditions.cache, conditions.threads)
}

/// Of rates in the rounds in which both are valid.
fn paired(comparison: &Comparison, cells: &[CellSamples<'_>], over: &str, under: &str) -> Option<Ratio> {
    let rates = |method: &str| {
        let conditions = &comparison.conditions.conditions;
        let mut found = cells.iter().filter(|samples| {
            let cell = samples.cell;
            cell.role == Role::Measured && cell.conditions == *conditions && cell.method.to_string() == method
        });
        found.next().map(CellSamples::rates)
    };
    Ratio::of_logs(&paired_log_ratios(&rates(over)?, &rates(under)?))
}

/// The order that the interval supports.
fn order(ratio: Ratio) -> &'static str {
    let Some((low, high)) = ratio.interval else { return "unknown: too few valid rounds" };
    let least = 1.0 + NEAR;
    if low > least {
        "holds"
    } else if high < 1.0 / least {
        "the other way round"
    } else {
        "not distinguishable"
    }
}

fn amplification(run: &Run, out: &mut impl Write) -> Result<()> {
    let judged = pagewise_analysis::judge(run);
    heading(&judged, out)?;
    writeln!(
        out,
        "\nA byte asked is missing if the page cache does not hold it: all of them cold, in the steady state 1 - page cache / \
         data.\n\n| conditions | method | published | device bytes per byte asked | missing of it | per missing byte | |\n\
         |---|---|---|---|---|---|---|"
    )?;
    let cells = judged.by_id();
    for comparison in &judged.comparisons {
        for (method, published) in [("mmap", ">= 10"), ("mmap:random", "<= 1.1")] {
            let cell = comparison
                .cells
                .iter()
                .filter_map(|id| cells.get(id.as_str()).copied())
                .find(|cell| cell.method == method);
            let missing = cell.and_then(missing_share);
            let asked = cell.and_then(|cell| cell.evidence.as_ref()?.amplification);
            let per_missing = asked.zip(missing).map(|(asked, missing)| asked / missing);
            // Each by the figure that is harder on it.
            let verdict = match (method, asked, per_missing) {
                ("mmap", Some(asked), _) => held(asked >= PLAIN_AT_LEAST),
                ("mmap:random", _, Some(per_missing)) => held(per_missing <= RANDOM_AT_MOST),
                _ => "unknown",
            };
            writeln!(
                out,
                "| {} | {method} | {published} | {} | {} | {} | {verdict} |",
                label(comparison),
                number(asked, 2),
                number(missing, 3),
                number(per_missing, 2)
            )?;
        }
    }
    evidence(&judged, out)
}

fn held(holds: bool) -> &'static str {
    if holds { "holds" } else { "does not hold" }
}

/// The share of the reads that find nothing in the page cache: uniform reads of whole pages find what share of the span
/// is resident, in the middle between before and after.
fn missing_share(cell: &CellJudgement) -> Option<f64> {
    let seen = cell.evidence.as_ref()?;
    let resident = match cell.cache {
        // Blocks are read without replacement, and what was brought in around one may hold another.
        pagewise_model::CacheState::Cold => return Some(1.0),
        _ => (seen.resident_before_bytes? + seen.resident_after_bytes?) / 2,
    };
    let share = 1.0 - resident as f64 / cell.span_bytes.0 as f64;
    (share > 0.0).then_some(share)
}

/// Why: every measured cell.
fn evidence(judged: &Judged, out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "\n| conditions | method | valid | reads/s | device bytes per byte asked | major faults per read | device requests/s | \
         of, KiB | limited by |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    let cells = judged.by_id();
    for comparison in &judged.comparisons {
        for cell in comparison.cells.iter().filter_map(|id| cells.get(id.as_str()).copied()) {
            let seen = cell.evidence.as_ref();
            let reads = cell.parameters.reads_per_op.map_or(1.0, f64::from);
            let requests = seen
                .and_then(|seen| Some(seen.device_read_requests? as f64 * 1e9 / seen.wall_ns.max(1) as f64));
            let share =
                cell.limit.of_ceiling.map_or(String::new(), |share| format!(" ({:.0} %)", share * 100.0));
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                label(comparison),
                cell.method,
                cell.samples,
                number(cell.reads_per_second.map(|rate| rate.median), 0),
                number(seen.and_then(|seen| seen.amplification), 2),
                number(seen.and_then(|seen| seen.major_faults_per_op).map(|faults| faults / reads), 2),
                number(requests, 0),
                number(seen.and_then(|seen| seen.issued_bytes).map(|bytes| bytes / 1024.0), 0),
                match (cell.limit.bound, &cell.reason) {
                    (Some(bound), _) => format!("{}{share}", bound.name()),
                    (None, Some(reason)) => reason.clone(),
                    (None, None) => "–".to_string(),
                },
            )?;
        }
    }
    Ok(())
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_string(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_holds_beyond_two_per_cent_only() {
        let ratio = |low, high| Ratio { median: 1.0, interval: Some((low, high)) };
        assert_eq!(order(ratio(1.03, 1.5)), "holds");
        assert_eq!(order(ratio(1.01, 1.5)), "not distinguishable");
        assert_eq!(order(ratio(0.3, 0.9)), "the other way round");
        assert_eq!(order(Ratio { median: 9.0, interval: None }), "unknown: too few valid rounds");
    }
}
