//! `bare-workers`: each language's worker against the same loop written bare in that language
//! (`bench/bare`), which has no harness but a warm-up and a clock around the loop.
//!
//! A pair opens all three sides anew: the worker, the bare program, and the bare program again as
//! the control. Each is warmed up; then they take slices in turn, in random order. What is compared
//! is the median of a side's slices. The start of processes, and of files and mappings, is outside
//! the clocks.

mod sides;

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Error, Result, ensure};
use pagewise_analysis::statistics::median;
use pagewise_model::random::Random;
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{Bytes, Worker, WorkerChoices};
use pagewise_toolchain::WORKERS;

use crate::dataset::{Dataset, Scratch};
use crate::once::ring::{Before, RingCell, RingFile};
use crate::operations::{Operations, READ_BYTES, READS_PER_OP};
use crate::options::{Filter, Pairs};
use crate::ratio::Ratio;
use sides::{Programs, Side};

/// The median of a cell's ratio must reach this.
const BAR: f64 = 0.97;
/// Slices of each side in a pair.
const SLICES: usize = 7;
/// The ring of records, which is written once in a slice.
const RING: Bytes = Bytes::mib(64);
/// Slices of a warm-up are as long as those that count.
const WARM_UP_NS: u64 = 200_000_000;
/// A JVM compiles as it runs.
const JVM_WARM_UP_NS: u64 = 1_000_000_000;

/// Each language's worker against the same loop written bare in that language.
#[derive(clap::Args)]
#[command(mut_arg("file_size", |arg| arg.default_value("128MiB")))]
#[command(mut_arg("pairs", |arg| arg.default_value("11")))]
pub struct Options {
    /// Folder for the file; removed afterwards. In memory, so that no device has a part in it.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    #[command(flatten)]
    pairs: Pairs,
    /// Length of a slice.
    #[arg(long, default_value = "40ms", value_parser = parse_duration_ns)]
    slice: u64,
    /// The JDK, 22 or newer; by default the one that pagewise finds.
    #[arg(long)]
    jdk: Option<String>,
    /// One pair of each cell: shows that it runs, and no more.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    filter: Filter,
}

/// One comparison.
#[derive(Clone, Debug)]
struct Contest {
    worker: Worker,
    method: &'static str,
    work: Work,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Operations by the table.
    Reads,
    /// Records of this size, collected in a buffer of this size unless it is 0.
    Append { record_bytes: u64, buffer_bytes: u64 },
}

impl Contest {
    fn all() -> Vec<Self> {
        let reads = |worker: Worker, methods: &[&'static str]| {
            let of = |&method: &&'static str| Self { worker: worker.clone(), method, work: Work::Reads };
            methods.iter().map(of).collect::<Vec<_>>()
        };
        let append = |worker, method, record_bytes, buffer_bytes| {
            vec![Self { worker, method, work: Work::Append { record_bytes, buffer_bytes } }]
        };
        let jvm = ["mmap", "pread", "filechannel:direct-buffer", "filechannel:heap-buffer"];
        [
            reads(Worker::Jvm, &jvm),
            reads(Worker::Go, &["mmap", "pread"]),
            reads(Worker::Python, &["mmap", "pread", "readinto"]),
            append(Worker::Jvm, "mmap", 1 << 10, 0),
            append(Worker::Go, "mmap", 1 << 10, 0),
            append(Worker::Go, "mmap:buffer=4KiB", 100, 4 << 10),
            append(Worker::Jvm, "filechannel:direct-buffer", 200, 0),
            append(Worker::Go, "write", 200, 0),
            append(Worker::Python, "write", 200, 0),
        ]
        .concat()
    }

    fn name(&self) -> String {
        let work = match self.work {
            Work::Reads => "random-read".to_string(),
            Work::Append { record_bytes, .. } => format!("append {}", Bytes(record_bytes)),
        };
        format!("{}/{} {work}", self.worker, self.method)
    }

    const fn warm_up_ns(&self) -> u64 {
        match self.worker {
            Worker::Jvm => JVM_WARM_UP_NS,
            _ => WARM_UP_NS,
        }
    }
}

/// Files on which all sides of a comparison work.
enum WorkFiles<'a> {
    Reads { dataset: &'a Dataset, table: &'a Operations },
    Append(Box<RingFile>),
}

/// Measures the cells and prints one line each.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let pairs = if options.quick { 1 } else { options.pairs.pairs };
    ensure!(pairs > 0, "0 pairs show nothing");
    let contests = options.filter.select(Contest::all(), Contest::name)?;
    let scratch = Scratch::new(&options.dir)?;
    let dataset = Dataset::create(&scratch, options.pairs.file_size)?;
    let table = Operations::draw(&scratch, &dataset, options.pairs.seed)?;
    writeln!(
        out,
        "{pairs} pairs of {SLICES} slices of {} ms; {READS_PER_OP} random reads of {READ_BYTES} in an operation, {} file; \
         ring of {RING}\n\n\
         | cell | bare, ops/s | worker / bare | bare / bare (control) | |\n|---|---|---|---|---|",
        options.slice as f64 / 1e6,
        options.pairs.file_size
    )?;
    out.flush()?;
    let mut random = Random::for_purpose(options.pairs.seed, "order");
    let mut programs: Vec<(&Worker, Programs)> = Vec::new();
    let mut reaching = 0;
    for contest in &contests {
        if !programs.iter().any(|(worker, _)| **worker == contest.worker) {
            programs.push((&contest.worker, build(&contest.worker, options, &scratch)?));
        }
        let found = programs.iter().find(|(worker, _)| **worker == contest.worker);
        let (_, programs) = found.context("just built")?;
        let files = match contest.work {
            Work::Reads => WorkFiles::Reads { dataset: &dataset, table: &table },
            Work::Append { record_bytes, buffer_bytes } => {
                WorkFiles::Append(Box::new(RingFile::new(&scratch, ring(record_bytes, buffer_bytes))?))
            }
        };
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..pairs {
            let pair = pair(contest, programs, &files, options.slice, &mut random)
                .with_context(|| contest.name())?;
            rates.iter_mut().zip(pair).for_each(|(rates, rate)| rates.push(rate));
        }
        reaching += usize::from(print(contest, &rates, out)?);
        out.flush()?;
    }
    writeln!(out, "\nmedian ratio of at least {BAR}: {reaching} of {}", contests.len())?;
    Ok(())
}

/// pagewise's worker, and the bare program.
fn build(worker: &Worker, options: &Options, scratch: &Scratch) -> Result<Programs> {
    let jdk = options.jdk.iter().map(|home| ("jdk".to_string(), home.clone()));
    let choices = WorkerChoices { options: jdk.collect(), ..WorkerChoices::default() };
    let ready = (WORKERS.ready)(worker.name(), &choices, &AtomicBool::new(false)).map_err(Error::msg)?;
    Programs::build(worker, ready, scratch)
}

fn ring(record_bytes: u64, buffer_bytes: u64) -> RingCell {
    let before = Before::New;
    RingCell { workload: "append", record_bytes, file_bytes: RING.0, passes: 1, buffer_bytes, before }
}

/// Operations per second of the worker, the bare program and the control.
fn pair(
    contest: &Contest,
    programs: &Programs,
    files: &WorkFiles<'_>,
    slice_ns: u64,
    random: &mut Random,
) -> Result<[f64; 3]> {
    let mut order = [0, 1, 2];
    random.shuffle(&mut order);
    let mut sides: [Option<Side<'_>>; 3] = [None, None, None];
    for side in order {
        let name = ["the worker", "the bare program", "the bare program"][side];
        let mut opened = match side {
            0 => Side::worker(programs, contest, files)?,
            _ => Side::bare(programs, contest, files)?,
        };
        if let WorkFiles::Append(file) = files {
            file.prepare()?;
        }
        warm_up(&mut opened, contest.warm_up_ns(), slice_ns).with_context(|| name)?;
        if let WorkFiles::Append(file) = files {
            file.verify(name)?;
        }
        sides[side] = Some(opened);
    }
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..SLICES {
        random.shuffle(&mut order);
        for side in order {
            let opened = sides[side].as_mut().context("all are open")?;
            rates[side].push(opened.slice(slice_ns)?.rate());
        }
    }
    let medians: Vec<f64> = rates.iter().filter_map(|rates| median(rates)).collect();
    medians.try_into().ok().context("every side has slices")
}

fn warm_up(side: &mut Side<'_>, warm_up_ns: u64, slice_ns: u64) -> Result<()> {
    let mut spent = 0;
    while spent < warm_up_ns {
        spent += side.slice(slice_ns)?.elapsed_ns;
    }
    Ok(())
}

/// Whether the median reaches the bar.
fn print(contest: &Contest, [worker, bare, control]: &[Vec<f64>; 3], out: &mut impl Write) -> Result<bool> {
    let (Some(rate), Some(ratio), Some(control)) =
        (median(bare), Ratio::of(worker, bare), Ratio::of(control, bare))
    else {
        return Ok(false);
    };
    let reaches = ratio.median >= BAR;
    let mark = if reaches { "" } else { "below" };
    writeln!(out, "| {} | {rate:.0} | {ratio} | {control} | {mark} |", contest.name())?;
    Ok(reaches)
}
