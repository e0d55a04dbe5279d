//! `scan`: lines of a cached file, against a bare C program, `wc -l` and ripgrep; the device,
//! against sysbench.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};
use pagewise_analysis::statistics::median;
use pagewise_model::random::Random;
use pagewise_model::{Bytes, Content};
use pagewise_protocol::Job;

use super::peers::{Counter, Sysbench, nothing_ns};
use super::{Sample, Shown, Spent, alternate, bare, reaches, speed, worker};
use crate::dataset::{Dataset, Scratch};
use crate::options::Pairs;
use crate::pagewise::{Pagewise, Place};

/// The median ratio to the bare program and to `wc -l` must reach this.
const BAR: f64 = 0.97;
/// Sizes of sysbench's blocks and of pagewise's buffer.
const DEVICE_BLOCKS: [Bytes; 2] = [Bytes::kib(64), Bytes::mib(1)];

/// Lines of a cached file counted, against a bare C program, `wc -l`, ripgrep and sysbench.
#[derive(clap::Args)]
#[command(mut_arg("dir", |arg| arg.help("Folder for the file, which is to lie on a device")))]
#[command(mut_arg("file_size", |arg| arg.default_value("1GiB")))]
#[command(mut_arg("pairs", |arg| arg.help("Pairs of the cached file")))]
pub struct Options {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    pairs: Pairs,
    /// Pairs of the device; 0: it is left alone.
    #[arg(long, default_value_t = 21)]
    device_pairs: usize,
}

/// Measures and prints.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    cached(options, &scratch, &pagewise, out)?;
    if options.device_pairs > 0 {
        device(options, &scratch, &pagewise, out)?;
    }
    Ok(())
}

fn job(method: &str, consume: &str, file: &Dataset) -> Job {
    let path = file.path.display().to_string();
    Job { consume: consume.to_string(), ..worker::job(method, "scan", &path, file.file_bytes) }
}

/// The sides of a pair, all on the same file.
struct Scans {
    pagewise: Vec<Spent>,
    bare: Vec<Spent>,
    control: Vec<Spent>,
    /// Whole processes.
    counters: [Vec<f64>; 2],
    /// A process that does nothing.
    nothing: f64,
}

fn cached(options: &Options, scratch: &Scratch, pagewise: &Pagewise<'_>, out: &mut impl Write) -> Result<()> {
    let file = Dataset::create_with(scratch, options.pairs.file_size, Content::Text)?;
    end_last_line(&file)?;
    file.require_cached()?;
    let scans = measure(options, pagewise, &file)?;
    std::fs::remove_file(&file.path)?;
    let lines = scans.bare.first().map_or(0, |spent| spent.count);
    writeln!(
        out,
        "{} pairs, {} of text in the page cache, {lines} lines; a process that does nothing takes {:.2} ms\n",
        options.pairs.pairs,
        options.pairs.file_size,
        scans.nothing / 1e6
    )?;
    scans.print(options.pairs.file_size, out)
}

/// ripgrep counts a last line without an end too, and the others do not.
fn end_last_line(file: &Dataset) -> Result<()> {
    let data = File::options().write(true).open(&file.path)?;
    data.write_all_at(b"\n", file.file_bytes - 1)?;
    Ok(data.sync_all()?)
}

fn measure(options: &Options, pagewise: &Pagewise<'_>, file: &Dataset) -> Result<Scans> {
    let path = file.path.display().to_string();
    let job = job("mmap:in-place", "lines", file);
    let lines = worker::sample(pagewise, &job, 1)?.count;
    let words = ["scan", path.as_str()];
    let there = [Counter::Wc, Counter::Ripgrep].map(|counter| counter.is_there().then_some(counter));
    let whole = |counter: Option<Counter>| process(counter, &file.path, lines);
    let sides: [Sample<'_, Spent>; 6] = [
        Box::new(|| worker::sample(pagewise, &job, 1)),
        Box::new(|| bare::sample(&words, lines)),
        Box::new(|| bare::sample(&words, lines)),
        Box::new(|| whole(there[0])),
        Box::new(|| whole(there[1])),
        Box::new(|| Ok(Spent { measured_ns: nothing_ns()? as u64, ..Spent::default() })),
    ];
    let mut random = Random::for_purpose(options.pairs.seed, "order");
    let [pagewise, bare, control, wc, ripgrep, nothing] = alternate(options.pairs.pairs, &mut random, sides)?;
    file.require_cached()?;
    let times = |spent: &[Spent]| spent.iter().map(Spent::measured).collect::<Vec<f64>>();
    let nothing = median(&times(&nothing)).context("a sample")?;
    let counter = |index: usize, spent: &[Spent]| match there[index] {
        // Its start and end are not counted on our side either.
        Some(_) => times(spent).iter().map(|ns| ns - nothing).collect(),
        None => Vec::new(),
    };
    let counters = [counter(0, &wc), counter(1, &ripgrep)];
    Ok(Scans { pagewise, bare, control, counters, nothing })
}

fn process(counter: Option<Counter>, file: &Path, lines: u64) -> Result<Spent> {
    let Some(counter) = counter else { return Ok(Spent::default()) };
    Ok(Spent { measured_ns: counter.count_ns(file, lines)? as u64, count: lines, ..Spent::default() })
}

impl Scans {
    fn print(&self, size: Bytes, out: &mut impl Write) -> Result<()> {
        let measured = |spent: &[Spent]| spent.iter().map(Spent::measured).collect::<Vec<f64>>();
        let total = |spent: &[Spent]| spent.iter().map(Spent::total).collect::<Vec<f64>>();
        let rate = |times: &[f64]| median(times).map_or(f64::NAN, |ns| size.0 as f64 / ns);
        writeln!(
            out,
            "{:34} {:>12} {:>12} {:>24}",
            "compared with", "its GB/s", "ours, GB/s", "pagewise / it"
        )?;
        let mut line = |name: &str, ours: &[f64], theirs: &[f64], bar: f64| -> Result<()> {
            let ratio = speed(ours, theirs);
            let (_, mark) = reaches(ratio, bar);
            let (its, our) = (rate(theirs), rate(ours));
            Ok(writeln!(out, "{name:34} {its:>12.2} {our:>12.2} {:>24}{mark}", Shown(ratio))?)
        };
        let (ours, whole) = (measured(&self.pagewise), total(&self.pagewise));
        let bare = measured(&self.bare);
        line("bare C, measured region", &ours, &bare, BAR)?;
        line("bare C again (control)", &measured(&self.control), &bare, 0.0)?;
        line("bare C, with set-up and tear-down", &whole, &total(&self.bare), BAR)?;
        for (counter, times) in [Counter::Wc, Counter::Ripgrep].into_iter().zip(&self.counters) {
            let name = format!("{}, whole process", counter.name());
            match times.is_empty() {
                true => writeln!(out, "{name:34} is not installed")?,
                false => {
                    let ratio = speed(&whole, times);
                    let (_, mark) = reaches(ratio, BAR);
                    let (its, our) = (rate(times), rate(&whole));
                    writeln!(out, "{name:34} {its:>12.2} {our:>12.2} {:>24}{mark}", Shown(ratio))?;
                }
            }
        }
        Ok(out.flush()?)
    }
}

/// The whole of sysbench's file through O_DIRECT, in blocks of the same size.
fn device(options: &Options, scratch: &Scratch, pagewise: &Pagewise<'_>, out: &mut impl Write) -> Result<()> {
    let sysbench = match Sysbench::prepare(scratch, options.pairs.file_size) {
        Ok(sysbench) => sysbench,
        Err(reason) => return Ok(writeln!(out, "\nsysbench is not compared: {reason:#}")?),
    };
    writeln!(
        out,
        "\n{:34} {:>12} {:>24} {:>24}",
        "device, one thread", "sysbench", "pagewise / sysbench", "sysbench (control)"
    )?;
    let file = sysbench.dataset();
    let mut random = Random::for_purpose(options.pairs.seed, "device");
    for block in DEVICE_BLOCKS {
        let job = job(&format!("read:direct+buffer={block}"), "touch", &file);
        let sides: [Sample<'_, f64>; 3] = [
            Box::new(|| Ok(worker::sample(pagewise, &job, 1)?.measured())),
            Box::new(|| sysbench.read_ns(block)),
            Box::new(|| sysbench.read_ns(block)),
        ];
        let [ours, theirs, again] = alternate(options.device_pairs, &mut random, sides)?;
        let rate = median(&theirs).map_or(f64::NAN, |ns| file.file_bytes as f64 / ns);
        let (ratio, control) = (Shown(speed(&ours, &theirs)), Shown(speed(&again, &theirs)));
        writeln!(out, "{:34} {rate:>7.2} GB/s {ratio:>24} {control:>24}", job.method)?;
        out.flush()?;
    }
    Ok(())
}
