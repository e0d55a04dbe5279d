//! `agreement`: pagewise's workers against the harness that users of their language measure with: JMH, `go test -bench` and
//! `timeit`. The same operations on the same cached file, each in the harness's own words.
//!
//! A pair is one sample of pagewise, which is a worker of its own, and one fork of the harness, in random order.

mod go;
mod jmh;
mod python;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, ensure};
use pagewise_analysis::statistics::median;
use pagewise_host::toolchain::{self, Built, Choices, Found, Language};
use pagewise_model::random::Random;
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{CacheState, HostSettings, Workload};
use pagewise_sys::child::die_with_parent;

use crate::dataset::{Dataset, Scratch};
use crate::operations::{ALIGN, Operations, READ_BYTES, READS_PER_OP};
use crate::options::{Filter, Pairs};
use crate::pagewise::{Place, Request};
use crate::ratio::Ratio;
use crate::stepwise::Stepwise;

/// Ratios that agree.
const AGREE: std::ops::RangeInclusive<f64> = 0.95..=1.05;
/// Of a sample in quick mode.
const QUICK_NS: u64 = 50_000_000;

/// A harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    /// JMH, for the jvm worker.
    Jmh,
    /// `go test -bench`, for the go worker.
    Go,
    /// timeit, for the python worker.
    Python,
}

/// pagewise's workers against JMH, `go test -bench` and timeit on the same cached file.
#[derive(clap::Args)]
#[command(mut_arg("dir", |arg| arg.help("Folder for the file; O_DIRECT has to work there")))]
#[command(mut_arg("file_size", |arg| arg.default_value("128MiB")))]
#[command(mut_arg("pairs", |arg| arg.default_value("11").help("Pairs for each cell; there is an interval from six on")))]
pub struct Options {
    /// The harness.
    harness: Which,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    pairs: Pairs,
    /// Length of a sample of pagewise.
    #[arg(long, default_value = "300ms", value_parser = parse_duration_ns)]
    sample: u64,
    /// The JDK, 22 or newer; by default the one that pagewise finds.
    #[arg(long)]
    jdk: Option<PathBuf>,
    /// One short pair of each cell: shows that it runs, and no more.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    filter: Filter,
}

/// One comparison.
struct Contest {
    /// As pagewise writes it.
    method: &'static str,
    /// As the harness does.
    benchmark: &'static str,
    threads: u32,
}

impl Contest {
    /// Each of `methods` with each number of threads.
    fn all(methods: &[(&'static str, &'static str)], threads: &[u32]) -> Vec<Self> {
        let each = |&(method, benchmark): &(&'static str, &'static str)| {
            threads.iter().map(move |&threads| Self { method, benchmark, threads })
        };
        methods.iter().flat_map(each).collect()
    }

    fn name(&self) -> String {
        format!("{} {}t", self.method, self.threads)
    }
}

/// A harness that is built and ready.
trait Harness {
    /// What it is, with its version.
    fn name(&self) -> String;

    fn contests(&self) -> Vec<Contest>;

    /// Operations per second of one fork.
    fn rate(&self, contest: &Contest) -> Result<f64>;
}

/// Files that harnesses read, and a folder for theirs.
struct Inputs<'a> {
    scratch: &'a Scratch,
    dataset: &'a Dataset,
    table: &'a Operations,
    quick: bool,
}

/// A toolchain, and pagewise's worker built by it.
struct Tools {
    found: Found,
    built: Built,
}

impl Tools {
    fn of(language: Language, jdk: Option<&Path>) -> Result<Self> {
        let choices = Choices { jdk: jdk.map(Path::to_path_buf), jvm_args: None };
        let found = toolchain::find(language, &choices)?;
        let built = toolchain::build(&found, &choices, &AtomicBool::new(false))?;
        Ok(Self { found, built })
    }
}

/// Measures the cells and prints one line each.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let pairs = if options.quick { 1 } else { options.pairs.pairs };
    ensure!(pairs > 0, "0 pairs tell nothing");
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    let dataset = Dataset::create(&scratch, options.pairs.file_size)?;
    let table = Operations::draw(&scratch, &dataset, options.pairs.seed)?;
    let inputs = Inputs { scratch: &scratch, dataset: &dataset, table: &table, quick: options.quick };
    let harness: Box<dyn Harness + '_> = match options.harness {
        Which::Jmh => Box::new(jmh::Jmh::new(inputs, options.jdk.as_deref())?),
        Which::Go => Box::new(go::GoTest::new(inputs)?),
        Which::Python => Box::new(python::Timeit::new(inputs)?),
    };
    let contests = options.filter.select(harness.contests(), Contest::name)?;
    writeln!(
        out,
        "{}; {pairs} pairs; {READS_PER_OP} random reads of {READ_BYTES} at multiples of {ALIGN} in an operation, {} file \
         in the page cache\n\n\
         | cell | harness, ops/s | pagewise / harness | harness / its next fork (control) | taken again | |\n\
         |---|---|---|---|---|---|",
        harness.name(),
        options.pairs.file_size
    )?;
    out.flush()?;
    let mut random = Random::for_purpose(options.pairs.seed, "order");
    let mut agreeing = 0;
    for contest in &contests {
        let request = request(options, contest);
        let mut ours = Stepwise::new(&pagewise, &dataset, request);
        let (mut pagewise_rates, mut harness_rates) = (Vec::new(), Vec::new());
        for _ in 0..pairs {
            dataset.require_cached()?;
            let first = random.below(2) == 0;
            for ours_now in [first, !first] {
                match ours_now {
                    true => pagewise_rates.push(ours.observe()?.rate / f64::from(READS_PER_OP)),
                    false => harness_rates.push(harness.rate(contest)?),
                }
            }
        }
        agreeing += usize::from(print(contest, &pagewise_rates, &harness_rates, ours.invalid, out)?);
        out.flush()?;
    }
    writeln!(
        out,
        "\nintervals that overlap {} to {}: {agreeing} of {}",
        AGREE.start(),
        AGREE.end(),
        contests.len()
    )?;
    Ok(())
}

fn request(options: &Options, contest: &Contest) -> Request {
    Request {
        methods: contest.method.to_string(),
        workload: Workload::RandomRead,
        threads: contest.threads.to_string(),
        read_bytes: READ_BYTES,
        align: Some(ALIGN),
        reads_per_op: READS_PER_OP,
        cache: CacheState::Warm,
        descriptor: "shared".into(),
        // A run of one method has two samples in a round: its own and the control's.
        rounds: u32::try_from(options.pairs.pairs.div_ceil(2)).unwrap_or(u32::MAX).max(7),
        sample_ns: if options.quick { QUICK_NS } else { options.sample },
        seed: options.pairs.seed,
        host_settings: HostSettings::default(),
        jdk: options.jdk.clone(),
    }
}

/// Whether the interval overlaps with what agrees.
fn print(
    contest: &Contest,
    pagewise: &[f64],
    harness: &[f64],
    invalid: usize,
    out: &mut impl Write,
) -> Result<bool> {
    let mut next = harness.to_vec();
    next.rotate_left(1);
    let (Some(rate), Some(ratio), Some(control)) =
        (median(harness), Ratio::of(pagewise, harness), Ratio::of(harness, &next))
    else {
        return Ok(false);
    };
    let agrees = overlaps(ratio);
    let mark = if agrees { "" } else { "differs" };
    writeln!(out, "| {} | {rate:.0} | {ratio} | {control} | {invalid} | {mark} |", contest.name())?;
    Ok(agrees)
}

/// Without an interval by the median alone.
fn overlaps(ratio: Ratio) -> bool {
    let (low, high) = ratio.interval.unwrap_or((ratio.median, ratio.median));
    low <= *AGREE.end() && high >= *AGREE.start()
}

/// The output of a command that ends well.
fn said(mut command: Command) -> Result<String> {
    die_with_parent(&mut command);
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .with_context(|| format!("{program} does not start"))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{program}: {}\n{stdout}{stderr}", output.status);
    Ok(stdout.into_owned())
}

/// A folder of this project.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_agrees_where_it_overlaps() {
        let with = |low: f64, high: f64| Ratio { median: 2.0, interval: Some((low, high)) };
        assert!(overlaps(with(1.04, 1.2)));
        assert!(overlaps(with(0.9, 0.95)));
        assert!(overlaps(with(0.5, 2.0)));
        assert!(!overlaps(with(1.06, 1.2)));
        assert!(!overlaps(with(0.8, 0.94)));
        assert!(overlaps(Ratio { median: 1.0, interval: None }));
    }

    #[test]
    fn each_method_has_each_number_of_threads() {
        let all = Contest::all(&[("jvm/mmap", "mmap"), ("jvm/pread", "pread")], &[1, 2]);
        let names: Vec<String> = all.iter().map(Contest::name).collect();
        assert_eq!(names, ["jvm/mmap 1t", "jvm/mmap 2t", "jvm/pread 1t", "jvm/pread 2t"]);
    }
}
