//! The command line as typed. Its meaning is decided elsewhere.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};
use clap_complete::Shell;
use pagewise_model::Workload;
use pagewise_model::method::options;
use pagewise_model::units::parse_duration_ns;

use crate::commands::conformance::ConformanceArguments;
use crate::plan::{Axes, Layer, Sampling};

/// Fastest way to read and write files on this machine, measured and verified.
///
/// Without a command, pagewise makes files in the current directory, measures the common methods to read, scan, append
/// to and fill them, prints which to use, and removes the files. That takes about two minutes.
#[derive(Debug, Parser)]
#[command(name = "pagewise", version, max_term_width = 100, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Arguments {
    /// Command to run; without one, the overview
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Print the judged JSON instead of the table
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pagewise                                       overview of the current directory
  pagewise run read --dir /data --full           the same in /data, with more methods and rounds
  pagewise run read --file index.bin             your own file, its cache as it is
  pagewise run read --methods mmap:random,pread --threads 1,2 --read-size 4KiB,64KiB
  pagewise run scan --file app.log --cache warm  the quickest way to go through a file once
  pagewise run append --record-size 100B --sync none,every:1MiB
  pagewise run fill --dir /data                  a mapped file, prefaulted or not
  pagewise run cliff --memory 256MiB --quick     from which size of data on another method is better
  pagewise run plan.toml --dry-run               what a plan would do, write and take
  pagewise report pagewise-read-001.jsonl --json
  pagewise doctor --dir /data                    what can be measured there, and what not and why";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure: a question (read, scan, append, fill, cliff, lucene) or a plan file
    Run(Box<RunArguments>),
    /// Print the results of run files again
    Report(ReportArguments),
    /// List capabilities of this machine, reasons for missing ones, and settings that affect results
    Doctor(DoctorArguments),
    /// Check a worker of your own, step by step, and explain its faults
    Conformance(ConformanceArguments),
    /// Remove the remains of killed runs, never those of a live one
    Clean(CleanArguments),
    /// Print the completions of a shell, to be sourced by it
    Completions {
        /// The shell
        shell: Shell,
    },
    /// One worker's side of the protocol, over stdin and stdout
    #[command(hide = true)]
    Worker,
    /// Read the beginning of a file, within the group that is to be charged for it
    #[command(hide = true)]
    Warm {
        /// The file
        file: PathBuf,
        /// Number of bytes
        bytes: u64,
    },
}

/// `pagewise run`.
#[derive(Debug, Args)]
#[command(after_help = run_help(), group = ArgGroup::new("variant").args(["quick", "full", "published"]))]
pub struct RunArguments {
    /// A question (read, scan, append, fill, cliff, lucene) or the path of a plan file (PLAN.toml)
    #[arg(value_name = "QUESTION|PLAN.toml")]
    pub what: Option<String>,

    /// Make the files in this directory [default: the current one; for fill one in memory]
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    pub dir: Option<PathBuf>,
    /// Read your own file instead of a dataset; it is never written
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// With --file and a cold run: allow dropping your file from the page cache
    #[arg(long, requires = "file")]
    pub evict: bool,

    /// Measure the most informative methods in few rounds
    #[arg(long)]
    pub quick: bool,
    /// Measure more methods, with a budget five times as long, which distinguishes smaller differences
    #[arg(long)]
    pub full: bool,

    /// Measure the matrix of the published study (scan, append, fill)
    #[arg(long)]
    pub published: bool,

    /// Workloads: random-read, sequential-read, scan, append, fill
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub workload: Option<Vec<Workload>>,
    /// Methods and conditions to measure.
    #[command(flatten)]
    pub axes: Axes,
    /// Drop the whole machine's page cache if the file does not leave it otherwise
    #[arg(long, help_heading = "Host settings")]
    pub drop_caches: bool,

    /// Time for all samples, as in 90s: five rounds of every method, then rounds of what is undecided [default: 1.6 times
    /// what the five rounds take, at least 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub budget: Option<u64>,
    /// Exactly so many samples of every method instead, at least 7
    #[arg(long, value_name = "COUNT", conflicts_with = "budget")]
    pub rounds: Option<u32>,
    /// Samples of every cell, fewer than a verdict needs: the run has none
    #[arg(long, hide = true, value_name = "COUNT", conflicts_with_all = ["rounds", "budget"])]
    pub trial_rounds: Option<u32>,
    /// Length of a sample, as in 200ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub sample: Option<u64>,
    /// Length of the phase in which operations are timed one by one
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub latency: Option<u64>,
    /// Seed of offsets, order and content [default: random, and recorded]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Leave out the ceilings of device and memory: shorter, but bottlenecks are not named
    #[arg(long)]
    pub no_ceilings: bool,

    /// The run file [default: pagewise-QUESTION-NNN.jsonl in the current directory]
    #[arg(long, value_name = "RUN")]
    pub out: Option<PathBuf>,
    /// Continue the run of --out after it was stopped or killed; --worker, --jdk and --jvm-args must be given again
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Print the resolved plan, the bytes it will write and the time it will take; measure nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the judged JSON instead of the table
    #[arg(long, conflicts_with = "dry_run")]
    pub json: bool,

    /// A program of your own that speaks the worker protocol (workers/PROTOCOL.md), as in mine='./reader --fast':
    /// mine/METHOD is then a method like any other. Repeat for several
    #[arg(long, value_name = "NAME=COMMAND", help_heading = "Workers in other languages")]
    pub worker: Vec<String>,
    /// The JDK of the jvm worker, 22 or newer [default: JAVA_HOME, java on PATH, the usual folders]
    #[arg(long, value_name = "DIR", help_heading = "Workers in other languages")]
    pub jdk: Option<PathBuf>,
    /// Arguments of the JVM instead of pagewise's own, as in '-Xms1g -Xmx1g -XX:+UseZGC'
    #[arg(
        long,
        value_name = "ARGS",
        allow_hyphen_values = true,
        help_heading = "Workers in other languages"
    )]
    pub jvm_args: Option<String>,
    /// Let workers send heartbeats while threads are measured, and show each method's effect on everything else in the
    /// process
    #[arg(long, help_heading = "Workers in other languages")]
    pub stall: bool,

    /// Another program instead of pagewise's own worker; results are marked
    #[arg(long, hide = true, value_name = "COMMAND")]
    pub worker_command: Option<String>,
    /// Seconds that a worker may take for an answer beyond the requested work
    #[arg(long, hide = true, value_name = "SECONDS", default_value_t = 30)]
    pub patience: u64,
}

const RUN_HELP: &str = "
Any list is an axis: every combination is a cell, and methods are compared under equal conditions.
Sizes need a unit: B, KiB, MiB, GiB, TiB; k, m, g, t are short for the binary ones.

Examples:
  pagewise run read --quick
  pagewise run read --dir /data --cache cold --threads 1,cpus
  pagewise run read --file index.bin --cache warm --read-size 4KiB --reads-per-op 1
  pagewise run read --out big.jsonl --full    then, after a Ctrl-C:
  pagewise run --out big.jsonl --resume";

/// Help for the registered options, and examples.
fn run_help() -> String {
    let lines =
        options::usage_lines().into_iter().map(|(access, options)| format!("  {access:6} {options}\n"));
    format!(
        "Native methods, each with the options that it takes in some workload:\n{}{RUN_HELP}",
        lines.collect::<String>()
    )
}

/// `pagewise report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Run files
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Print the judged JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print one row per sample; with =FILE, into a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub csv: Option<PathBuf>,
    /// Print the activity of the whole machine in each second of one run, as CSV with vmstat's columns
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub vmstat: bool,
    /// Advise a simpler method that is at most this much slower than the leader, with 95 % certainty
    #[arg(long, value_name = "PERCENT", default_value = "5", conflicts_with_all = ["csv", "vmstat"], value_parser = clap::value_parser!(u8).range(0..=100))]
    pub price_of_simplicity: u8,
}

/// `pagewise doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Examine the filesystem of this directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Examine only this JDK
    #[arg(long, value_name = "DIR")]
    pub jdk: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `pagewise clean`.
#[derive(Debug, Args)]
pub struct CleanArguments {
    /// Forget files that are permanently out of reach, as on a disk that is gone for good
    #[arg(long)]
    pub forget: bool,
}

impl RunArguments {
    /// The choices typed, as the topmost layer of the plan.
    pub fn layer(&self) -> Layer {
        Layer {
            workload: self.workload.clone(),
            axes: self.axes.clone(),
            by_workload: Default::default(),
            sampling: Sampling {
                rounds: self.trial_rounds.or(self.rounds),
                is_trial: self.trial_rounds.is_some(),
                budget_ns: self.budget,
                sample_ns: self.sample,
                memory_sample_ns: None,
                latency_ns: self.latency,
                seed: self.seed,
                ceilings: self.no_ceilings.then_some(false),
                crossing_percent: None,
            },
        }
    }
}
