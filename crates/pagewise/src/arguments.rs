//! What may be typed. What it means is decided elsewhere.

use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand};
use clap_complete::Shell;
use pagewise_model::method::options::{self, MethodOption};
use pagewise_model::method::parse_methods;
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{
    Bytes, CacheState, Consume, CpuList, Descriptor, DeviceCap, Method, Numa, Skew, Sync, Workload,
};

use crate::commands::conformance::ConformanceArguments;
use crate::plan::{Axes, Layer, OrNone, Sampling, Size, Threads};

/// Which way to read and write files on this machine, measured and proven.
///
/// Without a command, pagewise makes files in the current directory, measures the common ways to read, scan, append to
/// and fill them, prints what to choose, and removes them. That takes about two minutes.
#[derive(Debug, Parser)]
#[command(name = "pagewise", version, max_term_width = 100, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Arguments {
    /// What to do; nothing gives the overview
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
    /// List what can be measured here, what not and why, and settings that decide results
    Doctor(DoctorArguments),
    /// Tell what is wrong with a worker of your own, step by step
    Conformance(ConformanceArguments),
    /// Remove what killed runs left behind, never what a live one holds
    Clean(CleanArguments),
    /// Print the completions of a shell, to be sourced by it
    Completions {
        /// The shell
        shell: Shell,
    },
    /// One worker's side of the protocol, over stdin and stdout
    #[command(hide = true)]
    Worker,
    /// Reads the beginning of a file, within the group that is to be charged for it
    #[command(hide = true)]
    Warm {
        /// The file
        file: PathBuf,
        /// How much of it
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

    /// Measure the telling methods in few rounds
    #[arg(long)]
    pub quick: bool,
    /// Measure in 33 rounds, which tell 5 % apart where samples scatter by a few per cent
    #[arg(long)]
    pub full: bool,

    /// Measure the matrix of the published study (scan, append, fill)
    #[arg(long)]
    pub published: bool,

    /// Workloads: random-read, sequential-read, scan, append, fill
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub workload: Option<Vec<Workload>>,
    /// Methods, as in mmap:random+prefetch,pread,uring:direct+depth=32
    #[arg(long, value_name = "LIST", value_parser = MethodList, hide_possible_values = true)]
    pub methods: Option<Methods>,
    /// Threads: numbers, or cpus
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub threads: Option<Vec<Threads>>,
    /// Size of the dataset; with --memory also as a multiple of the cache that fits under it, as in 1.5x
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    pub file_size: Option<Vec<Size>>,
    /// Read only the first part of the file, this large; multiples of the cache as above
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    pub span: Option<Vec<Size>>,
    /// Size of a read
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    pub read_size: Option<Vec<Bytes>>,
    /// Reads in one operation
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub reads_per_op: Option<Vec<u32>>,
    /// Offsets are multiples of this; 1B for unaligned reads
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    pub align: Option<Vec<Bytes>>,
    /// What is done with the bytes: touch one word of each page, sum all, or count lines
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub consume: Option<Vec<Consume>>,
    /// append: size of a record
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    pub record_size: Option<Vec<Bytes>>,
    /// append: how often the ring file is gone round
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub laps: Option<Vec<u32>>,
    /// fill: size of a block
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    pub block_size: Option<Vec<Bytes>>,
    /// append, fill: what was written must be on the device never (none), at the end (end), or every so many bytes
    /// (every:1MiB)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub sync: Option<Vec<Sync>>,
    /// Page cache at the start of a sample: cold, warm, as-is; read-once: what is left after the whole file was read;
    /// cold-start measures how long it takes to warm. A file that is written is new where it is cold, and was written
    /// before where it is warm
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cache: Option<Vec<CacheState>>,
    /// Threads share a descriptor and mapping, or have their own: shared, per-thread
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub descriptor: Option<Vec<Descriptor>>,
    /// How offsets spread: uniform, or zipf with its exponent, as in zipf:0.99
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub skew: Option<Vec<Skew>>,
    /// Each offset within an operation follows from the data of the read before it
    #[arg(long)]
    pub dependent: bool,

    /// Memory that worker and page cache may take together, held by a cgroup; or none
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = "What the machine is set to")]
    pub memory: Option<Vec<OrNone<Bytes>>>,
    /// What the device may deliver, as in read-iops=2000,read-bandwidth=50MiB/s; or microsd, emmc, io2-20k, none.
    /// Given again: an axis
    #[arg(long, value_name = "CAP", help_heading = "What the machine is set to")]
    pub device_cap: Option<Vec<OrNone<DeviceCap>>>,
    /// Readahead of the device, restored afterwards; or none, which leaves it
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = "What the machine is set to")]
    pub readahead: Option<Vec<OrNone<Bytes>>>,
    /// CPUs of the worker, as in 0-3,8. Given again: an axis
    #[arg(long, value_name = "CPUS", help_heading = "What the machine is set to")]
    pub cpus: Option<Vec<OrNone<CpuList>>>,
    /// Where the pages of the file lie, seen from the worker: same, other, or the number of a NUMA node
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "What the machine is set to")]
    pub numa: Option<Vec<OrNone<Numa>>>,
    /// Drop the whole machine's page cache where the file does not leave it otherwise
    #[arg(long, help_heading = "What the machine is set to")]
    pub drop_caches: bool,

    /// Samples of every cell, at least 7
    #[arg(long, value_name = "COUNT")]
    pub rounds: Option<u32>,
    /// Length of a sample, as in 200ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub sample: Option<u64>,
    /// Length of the phase in which operations are timed one by one
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub latency: Option<u64>,
    /// Seed of offsets, order and content [default: drawn, and recorded]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Leave out the ceilings of device and memory: shorter, and nothing says what limited a method
    #[arg(long)]
    pub no_ceilings: bool,

    /// The run file [default: pagewise-QUESTION-NNN.jsonl in the current directory]
    #[arg(long, value_name = "RUN")]
    pub out: Option<PathBuf>,
    /// Continue the run of --out after it was stopped or killed; --worker, --jdk and --jvm-args are typed again
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Print the resolved plan, the bytes it will write and the time it will take; measure nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the judged JSON instead of the table
    #[arg(long, conflicts_with = "dry_run")]
    pub json: bool,

    /// A program of your own that speaks the worker protocol (workers/PROTOCOL.md), as in mine='./reader --fast': then
    /// mine/METHOD is a method like any other. Given again: another one
    #[arg(long, value_name = "NAME=COMMAND", help_heading = "Workers in other languages")]
    pub worker: Vec<String>,
    /// The JDK of the jvm worker, 22 or newer [default: JAVA_HOME, java on PATH, the usual folders]
    #[arg(long, value_name = "DIR", help_heading = "Workers in other languages")]
    pub jdk: Option<PathBuf>,
    /// Arguments of the JVM in place of pagewise's own, as in '-Xms1g -Xmx1g -XX:+UseZGC'
    #[arg(
        long,
        value_name = "ARGS",
        allow_hyphen_values = true,
        help_heading = "Workers in other languages"
    )]
    pub jvm_args: Option<String>,
    /// Have workers beat beside the measured threads, and show what each method does to everything else in the process
    #[arg(long, help_heading = "Workers in other languages")]
    pub stall: bool,

    /// Another program in place of pagewise's own worker; results are marked
    #[arg(long, hide = true, value_name = "COMMAND")]
    pub worker_command: Option<String>,
    /// Seconds that a worker may take for an answer beyond the work asked for
    #[arg(long, hide = true, value_name = "SECONDS", default_value_t = 30)]
    pub patience: u64,
}

const RUN_HELP: &str = "
Any list is an axis: every combination is a cell, and methods are compared under equal conditions.
Sizes need a unit (B, KiB, MiB, GiB).

Examples:
  pagewise run read --quick
  pagewise run read --dir /data --cache cold --threads 1,cpus
  pagewise run read --file index.bin --cache warm --read-size 4KiB --reads-per-op 1
  pagewise run read --out big.jsonl --full    then, after a Ctrl-C:
  pagewise run --out big.jsonl --resume";

/// The registered options, and examples.
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
    /// Print what the whole machine did in each second of one run, as CSV with vmstat's columns
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub vmstat: bool,
}

/// `pagewise doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Look at the filesystem of this directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Look at this JDK and at no other
    #[arg(long, value_name = "DIR")]
    pub jdk: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `pagewise clean`.
#[derive(Debug, Args)]
pub struct CleanArguments {
    /// Forget files that cannot be reached and will not be again, as on a disk that is gone for good
    #[arg(long)]
    pub forget: bool,
}

/// A list of methods, wrapped because clap would take a plain list for repeated values.
#[derive(Clone, Debug)]
pub struct Methods(pub Vec<Method>);

/// Reads such a list; shells complete its first method.
#[derive(Clone)]
struct MethodList;

impl TypedValueParser for MethodList {
    type Value = Methods;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Methods, clap::Error> {
        (|text: &str| parse_methods(text).map(Methods)).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let with_option = |access: &'static str| {
            let is_method = |text: &String| text.parse::<Method>().is_ok();
            MethodOption::TABLE.iter().map(move |entry| format!("{access}:{}", entry.word)).filter(is_method)
        };
        let accesses = options::usage_lines().into_iter().map(|(access, _)| access);
        let all =
            accesses.flat_map(move |access| std::iter::once(access.to_string()).chain(with_option(access)));
        Some(Box::new(all.map(PossibleValue::new)))
    }
}

impl RunArguments {
    /// The choices typed, as the topmost layer of the plan.
    pub fn layer(&self) -> Layer {
        Layer {
            workload: self.workload.clone(),
            axes: Axes {
                methods: self.methods.clone().map(|methods| methods.0),
                threads: self.threads.clone(),
                file_size: self.file_size.clone(),
                span: self.span.clone(),
                read_size: self.read_size.clone(),
                reads_per_op: self.reads_per_op.clone(),
                align: self.align.clone(),
                consume: self.consume.clone(),
                record_size: self.record_size.clone(),
                laps: self.laps.clone(),
                block_size: self.block_size.clone(),
                sync: self.sync.clone(),
                cache: self.cache.clone(),
                descriptor: self.descriptor.clone(),
                skew: self.skew.clone(),
                dependent: self.dependent.then(|| vec![true]),
                memory: self.memory.clone(),
                device_cap: self.device_cap.clone(),
                readahead: self.readahead.clone(),
                cpus: self.cpus.clone(),
                numa: self.numa.clone(),
            },
            by_workload: Default::default(),
            sampling: Sampling {
                rounds: self.rounds,
                sample_ns: self.sample,
                latency_ns: self.latency,
                seed: self.seed,
                ceilings: self.no_ceilings.then_some(false),
                crossing_percent: None,
            },
        }
    }
}
