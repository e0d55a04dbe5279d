//! The command line as typed. Its meaning is decided elsewhere.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{ArgGroup, Args, Parser, Subcommand};
use clap_complete::Shell;
use pagewise_lab::choices::{AllArguments, LengthArguments};
use pagewise_lab::exit::Exit;
use pagewise_lab::plan::resolve::Variant;
use pagewise_lab::plan::victim::{Exchanged, Victim};
use pagewise_lab::plan::{Axes, ChosenBudget, Layer, Sampling};
use pagewise_model::Workload;
use pagewise_model::date::parse_unix_ns;
use pagewise_model::expectation::Expectation;
use pagewise_model::format::listed;
use pagewise_model::method::options;
use pagewise_model::units::parse_duration_ns;

use crate::extras::{EXTRAS, ExtraCommand, OF_MACHINE, OF_RUNS, OF_WORKERS, TypedOptions, worker_options};
use crate::schemas;

/// Fastest way to read and write files on this machine, measured and verified.
///
/// Without a command, pagewise makes files in the current directory, measures the common methods to
/// read, scan, append to and fill them, prints which to use, and removes the files. That takes
/// about two minutes.
#[derive(Debug, Parser)]
#[command(name = "pagewise", version, max_term_width = 100, args_conflicts_with_subcommands = true, after_help = help())]
pub struct Arguments {
    /// Command to run; without one, the overview
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Choices of the overview.
    #[command(flatten)]
    pub overview: OverviewArguments,
}

/// The words of the command line for the parser. In a command whose door says so, `--` stands for
/// an option, since more options may follow.
pub fn words() -> impl Iterator<Item = OsString> {
    let name = std::env::args_os().nth(1);
    let extra = EXTRAS.iter().find(|extra| name.as_ref().is_some_and(|name| name == extra.name));
    let dashes = extra.and_then(|extra| extra.door.dashes);
    std::env::args_os().map(move |word| match dashes {
        Some(option) if word == "--" => option.into(),
        _ => word,
    })
}

const EXAMPLES: [&str; 2] = [
    "\
Examples:
  pagewise                                   overview of the current directory
  pagewise --dir /data --budget 60s          the same of another directory, in a minute
  pagewise read /data --full                 more methods, and a longer time
  pagewise read index.bin                    your own file, its cache as it is
  pagewise read --methods mmap:random,pread --threads 1,2 --read-size 4k,64k
  pagewise scan app.log --cache warm         the quickest way to go through a file once
  pagewise append --record-size 100B --sync none,every:1MiB
  pagewise fill /data                        a mapped file, prefaulted or not
  pagewise cliff --memory 256MiB --quick     from which size of data on another method is better
  pagewise run plan.toml --dry-run           what a plan would do, write and take
  pagewise report pagewise-*-read.jsonl --json
",
    "  pagewise doctor --dir /data                what can be measured there, and what not and why",
];

/// Examples and the meanings of exit statuses.
fn help() -> String {
    let [before, behind] = EXAMPLES;
    let extras: String = EXTRAS.iter().map(|extra| extra.door.examples).collect();
    format!("{before}{extras}{behind}\n\n{}", Exit::table())
}

/// `pagewise` without a command: four questions.
#[derive(Debug, Args)]
pub struct OverviewArguments {
    /// The length; quick without a choice.
    #[command(flatten)]
    pub length: LengthArguments,
    /// Make the files in this directory [default: the current one; for fill one in memory]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Time of all questions together, as in 60s; or of the samples of each, as a share of what
    /// five rounds of every method take, as in 150%
    #[arg(long, value_name = "TIME")]
    pub budget: Option<ChosenBudget>,
    /// Writes and prints.
    #[command(flatten)]
    pub all: AllArguments,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure.
    #[command(flatten)]
    Measure(Question),
    /// Print the results of run files again
    Report(ReportArguments),
    /// A command of an extra, about runs and programs.
    #[command(flatten)]
    OfRuns(ExtraCommand<OF_RUNS>),
    /// List methods and their options: meaning, system call, kernel, and whether they are available
    /// here
    Methods(MethodsArguments),
    /// List capabilities of this machine, reasons for missing ones, and settings that affect
    /// results
    Doctor(DoctorArguments),
    /// A command of an extra, about this machine and what is on it.
    #[command(flatten)]
    OfMachine(ExtraCommand<OF_MACHINE>),
    /// Remove the remains of killed runs, never those of a live one
    Clean(CleanArguments),
    /// Print the completions of a shell, to be sourced by it
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page of pagewise or of a command, or write all of them
    Man {
        /// The command
        #[arg(value_name = "COMMAND", conflicts_with = "dir")]
        command: Option<String>,
        /// Write the pages of all commands into this directory, for a package
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print the JSON Schema of what --json prints
    Schema {
        /// The command that prints it
        #[arg(value_name = "COMMAND", default_value = "report", value_parser = schemas::names())]
        of: String,
    },
    /// One worker's side of the protocol, over stdin and stdout
    #[command(hide = true)]
    Worker,
    /// Read files into the page cache, within the group that is to be charged for them
    #[command(hide = true)]
    Warm {
        /// The part that is read
        #[command(flatten)]
        fill: pagewise_lab::supervise::warming::CacheFill,
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// The questions, and any plan.
#[derive(Debug, Subcommand)]
pub enum Question {
    /// Measure random and sequential reads of parts of a file
    Read(Box<QuestionArguments>),
    /// Measure one pass over a file, front to back
    Scan(Box<QuestionArguments>),
    /// Measure records appended to a file, as in a log
    Append(Box<QuestionArguments>),
    /// Measure filling a new mapped file, prefaulted or not
    Fill(Box<QuestionArguments>),
    /// Measure blocks of a file overwritten in no order, as by a database
    Update(Box<QuestionArguments>),
    /// Measure data larger than memory: the size from which on another method is better; needs
    /// --memory
    Cliff(Box<QuestionArguments>),
    /// Measure the reads of a search engine on the JVM; needs --memory
    Lucene(Box<QuestionArguments>),
    /// Measure a few reads, the same on each of many machines, in half a minute
    Fleet(Box<QuestionArguments>),
    /// Measure a plan file, or a question by its name
    Run(Box<RunArguments>),
}

/// `pagewise run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// A question (read, scan, append, fill, update, cliff, lucene, fleet; replay with --trace) or
    /// the path of a plan file (PLAN.toml)
    #[arg(value_name = "QUESTION|PLAN.toml")]
    pub what: Option<String>,
    /// Choices.
    #[command(flatten)]
    pub question: QuestionArguments,
}

/// A question at the top level, or the choices of `pagewise run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = run_help())]
pub struct QuestionArguments {
    /// Your own file to read, or the directory to make files in: short for --file and --dir
    #[arg(value_name = "FILE|DIR", conflicts_with = "file")]
    pub path: Option<PathBuf>,

    /// Make the files in this directory [default: the current one; for fill one in memory; beside a
    /// file of your own, for actors, that of the file]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Read your own file instead of a dataset; it is never written. With --trace: once for each
    /// file whose reads are replayed [default: those of --cold or --as-is]
    #[arg(long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Replay the reads of this trace, which pagewise record made
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    pub trace: Option<PathBuf>,
    /// With a file of your own: allow dropping it from the page cache, as cold runs and memory
    /// limits need it. Other programs that read it then wait for the device
    #[arg(long)]
    pub evict: bool,

    /// The length.
    #[command(flatten)]
    pub length: LengthArguments,

    /// Workloads: random-read, sequential-read, scan, append, fill, update,
    /// replay
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub workload: Option<Vec<Workload>>,
    /// Methods and conditions to measure.
    #[command(flatten)]
    pub axes: Axes,
    /// With read, scan or append: the methods, sizes and rates are those of an actor, ranked by
    /// what they leave to this program, which is measured: read:METHOD, scan:METHOD or
    /// append:METHOD, then rate=, size= and file=, as in read:pread,rate=20k,size=4KiB,file=0.75x,
    /// or file=./index.bin for your own, or file=same for that of the actor
    #[arg(long, value_name = "VICTIM", conflicts_with_all = ["beside", "trace", "workload"])]
    pub victim: Option<Victim>,
    /// Drop the whole machine's page cache if the file does not leave it otherwise
    #[arg(long, help_heading = "Host settings")]
    pub drop_caches: bool,

    /// Time of the run, as in 60s: five rounds of every method, then rounds of what is undecided.
    /// Where it is short, samples get shorter and files smaller, and disturbed samples are repeated
    /// only as far as it allows. Or that of the samples alone, as a share of what the five rounds
    /// take, as in 150% [default: 200%, at least 30s]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<ChosenBudget>,
    /// Exactly so many samples of every method instead, at least 7
    #[arg(long, value_name = "COUNT", conflicts_with = "budget")]
    pub rounds: Option<u32>,
    /// Samples of every cell, fewer than a verdict needs: the run has none
    #[arg(long, hide = true, value_name = "COUNT", conflicts_with_all = ["rounds", "budget"])]
    pub trial_rounds: Option<u32>,
    /// A limit that each method is to keep, as in p99<10ms, sync-p99.9<50ms, rate>=20k or
    /// written<=2x; repeat for several. Status 0 if all hold, 1 if one does not, 5 if the run does
    /// not decide it
    #[arg(long, value_name = "LIMIT")]
    pub expect: Vec<Expectation>,
    /// Length of a sample, as in 200ms; a third of it more where operations are timed one by one
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub sample: Option<u64>,
    /// Seed of offsets, order and content [default: random, and recorded]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Leave out the ceilings of device and memory: shorter, but bottlenecks are not named
    #[arg(long)]
    pub no_ceilings: bool,

    /// The run file [default: pagewise-DATE-TIME-HOST-QUESTION.jsonl in the current directory, in
    /// UTC]; - is stdout, and the answer goes to stderr
    #[arg(long, value_name = "RUN")]
    pub out: Option<PathBuf>,
    /// Continue the run of --out.
    #[arg(long, requires = "out", help = resume_help())]
    pub resume: bool,
    /// Prepare everything, then begin the first sample at this time, as in 2026-11-22T11:11:05Z or
    /// in seconds since 1970: hosts begin together. If the preparation takes longer, the run goes
    /// on, and the status is 1
    #[arg(long, value_name = "UTC", value_parser = parse_unix_ns)]
    pub start_at: Option<u64>,
    /// Writes and prints.
    #[command(flatten)]
    pub all: AllArguments,

    /// A program of your own that speaks the worker protocol (workers/PROTOCOL.md), as in
    /// mine='./reader --fast': mine/METHOD is then a method like any other. Repeat for several
    #[arg(long, value_name = "NAME=COMMAND", help_heading = OF_WORKERS)]
    pub worker: Vec<String>,
    /// Options of the workers that extras offer.
    #[command(flatten)]
    pub worker_options: TypedOptions<false>,
    /// Let workers send heartbeats while threads are measured, and show each method's effect on
    /// everything else in the process
    #[arg(long, help_heading = OF_WORKERS)]
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
  pagewise read --quick
  pagewise read /data --cache cold --threads 1,cpus
  pagewise read index.bin --cache warm --read-size 4k --reads-per-op 1
  pagewise read --out big.jsonl --full    then, after a Ctrl-C:
  pagewise run --out big.jsonl --resume";

/// Help for `--resume`.
fn resume_help() -> String {
    let options = worker_options().map(|option| format!("--{}", option.typed()));
    let again: Vec<String> = std::iter::once("--worker".to_string()).chain(options).collect();
    format!(
        "Continue the run of --out after it was stopped or killed; {} must be given again",
        listed(&again)
    )
}

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
#[command(group = ArgGroup::new("form").args(["answer", "json", "rows", "markdown", "csv", "vmstat", "html", "svg"]))]
pub struct ReportArguments {
    /// Run files, directories of them, or patterns in quotes; - is a run on stdin
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Print the answer of all these runs on one screen, as a run does
    #[arg(long)]
    pub answer: bool,
    /// Print the judged JSON
    #[arg(long)]
    pub json: bool,
    /// Print a line of JSON for each cell, with the facts and labels of its run; a file that cannot
    /// be read is named, and the others go on
    #[arg(long)]
    pub rows: bool,
    /// Print a table for each comparison that pastes into a pull request
    #[arg(long)]
    pub markdown: bool,
    /// Print CSV: one row for each cell, or with =samples for each sample
    #[arg(long, value_name = "ROWS", num_args = 0..=1, require_equals = true, default_missing_value = "cells")]
    pub csv: Option<CsvRows>,
    /// Print the activity of the whole machine in each second of one run, as CSV with vmstat's
    /// columns
    #[arg(long)]
    pub vmstat: bool,
    /// Write all of it as a page: one new file that needs no network; - is stdout
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write each plot that has values as a new file QUESTION-PLOT-N.svg into this directory, and
    /// print its name
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Write it into a new file instead, which appears when it is complete; - is stdout
    #[arg(long, value_name = "FILE", conflicts_with_all = ["html", "svg"])]
    pub out: Option<PathBuf>,
    /// Advise a simpler method that is at most this much slower than the leader, with 95 %
    /// certainty
    #[arg(long, value_name = "PERCENT", default_value = "5", conflicts_with_all = ["csv", "vmstat"], value_parser = clap::value_parser!(u8).range(0..=100))]
    pub price_of_simplicity: u8,
}

/// Rows of a CSV.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum CsvRows {
    /// One for each cell.
    Cells,
    /// One for each sample.
    Samples,
}

/// `pagewise methods`.
#[derive(Debug, Args)]
pub struct MethodsArguments {
    /// Only those of a question or workload
    #[arg(value_name = "QUESTION")]
    pub question: Option<String>,
    /// Try them on the filesystem of this directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `pagewise doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Examine the filesystem of this directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Options of the workers that extras offer.
    #[command(flatten)]
    pub worker_options: TypedOptions<true>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
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

impl Question {
    /// Name or plan.
    pub fn what(&self) -> Option<&str> {
        match self {
            Question::Read(_) => Some("read"),
            Question::Scan(_) => Some("scan"),
            Question::Append(_) => Some("append"),
            Question::Fill(_) => Some("fill"),
            Question::Update(_) => Some("update"),
            Question::Cliff(_) => Some("cliff"),
            Question::Lucene(_) => Some("lucene"),
            Question::Fleet(_) => Some("fleet"),
            Question::Run(run) => run.what.as_deref(),
        }
    }

    /// Choices.
    pub fn arguments(&self) -> &QuestionArguments {
        match self {
            Question::Read(arguments)
            | Question::Scan(arguments)
            | Question::Append(arguments)
            | Question::Fill(arguments)
            | Question::Update(arguments)
            | Question::Cliff(arguments)
            | Question::Lucene(arguments)
            | Question::Fleet(arguments) => arguments,
            Question::Run(run) => &run.question,
        }
    }
}

impl QuestionArguments {
    /// The user's own files, if they are named.
    pub fn own_files(&self) -> Vec<PathBuf> {
        let short = self.path.iter().filter(|path| !path.is_dir());
        self.file.iter().chain(short).cloned().collect()
    }

    /// The directory of files to be made, if one is named.
    pub fn directory(&self) -> Option<&Path> {
        self.dir.as_deref().or(self.path.as_deref().filter(|path| path.is_dir()))
    }

    /// The requested variant.
    pub fn variant(&self) -> Variant {
        self.length.variant().unwrap_or(Variant::Standard)
    }

    /// The question about a victim, if one is named, and its choices.
    pub fn exchanged(&self, question: Option<&str>) -> Result<Option<(&'static str, Self)>> {
        let Some(victim) = &self.victim else { return Ok(None) };
        if self.resume {
            bail!("--resume takes every choice from the run file: leave --victim out");
        }
        let question = question.unwrap_or_default();
        let Exchanged { question, workload, axes, own_files } =
            victim.clone().exchanged(question, self.axes.clone(), self.own_files())?;
        // A victim is compared with nothing but itself.
        let of_victim = Self {
            axes,
            workload: Some(vec![workload]),
            victim: None,
            no_ceilings: true,
            file: own_files,
            path: None,
            dir: self.directory().map(Path::to_path_buf),
            ..self.clone()
        };
        Ok(Some((question, of_victim)))
    }

    /// The choices typed, as the topmost layer of the plan.
    pub fn layer(&self) -> Layer {
        Layer {
            workload: self.workload.clone(),
            axes: self.axes.clone(),
            by_workload: Default::default(),
            sampling: Sampling {
                rounds: self.trial_rounds.or(self.rounds),
                is_trial: self.trial_rounds.is_some(),
                budget: self.budget,
                sample_ns: self.sample,
                seed: self.seed,
                ceilings: self.no_ceilings.then_some(false),
                controls: None,
                crossing_percent: None,
            },
            expectations: Some(self.expect.clone()).filter(|all| !all.is_empty()),
        }
    }
}
