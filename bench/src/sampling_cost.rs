//! `sampling-cost`: what reading all counters ten times a second takes of a core.
//!
//! Processes that read counters alternate with one that sleeps; each says how much CPU time it took, kernel included,
//! from CLOCK_PROCESS_CPUTIME_ID. What the kernel does to write its texts is within.

use std::io::Write;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use pagewise_analysis::statistics::{median, median_interval};
use pagewise_host::{HostReader, process};
use pagewise_model::random::Random;
use pagewise_model::units::parse_duration_ns;
use pagewise_sys::child::die_with_parent;
use rustix::time::{ClockId, clock_gettime};

/// The share of one core that ten readings a second may take, in per cent.
const AT_MOST: f64 = 1.0;
const PER_SECOND: u32 = 10;

/// What reading all counters ten times a second takes of a core.
#[derive(clap::Args)]
pub struct Options {
    /// Rounds; in each everything is done once, in random order.
    #[arg(long, default_value_t = 11)]
    rounds: u32,
    /// Length of one stretch.
    #[arg(long, default_value = "2s", value_parser = parse_duration_ns)]
    stretch: u64,
    /// Threads of the process that is looked at.
    #[arg(long, default_value_t = 4)]
    threads: u32,
    /// Seed of the order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What a process does while its CPU time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Doing {
    /// Sleeps.
    Nothing,
    /// Wakes as often, and reads nothing.
    Waking,
    /// Reads the host's counters.
    Host,
    /// Reads those of a process and its threads.
    Process,
    /// Reads both.
    Both,
}

/// What is compared with the first; the second is the control.
const STRETCHES: [(&str, Doing); 6] = [
    ("nothing", Doing::Nothing),
    ("nothing (control)", Doing::Nothing),
    ("waking ten times a second", Doing::Waking),
    ("host", Doing::Host),
    ("process and its threads", Doing::Process),
    ("both", Doing::Both),
];

/// Measures and prints.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let mut shares = vec![Vec::new(); STRETCHES.len()];
    let mut random = Random::new(options.seed);
    for _ in 0..options.rounds.max(1) {
        let mut order: Vec<usize> = (0..STRETCHES.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            shares[index].push(share_of_a_core(STRETCHES[index].1, options)?);
        }
    }
    writeln!(
        out,
        "{} rounds of {} s, a process of {} threads; per cent of one core over doing nothing in the same round\n\n\
         | {PER_SECOND} times a second | of one core, % | CPU time of one, us |\n|---|---|---|",
        shares[0].len(),
        options.stretch as f64 / 1e9,
        options.threads
    )?;
    for (index, (name, _)) in STRETCHES.iter().enumerate().skip(1) {
        let over: Vec<f64> = shares[index].iter().zip(&shares[0]).map(|(share, idle)| share - idle).collect();
        let middle = median(&over).context("a round")?;
        let interval = match median_interval(&over, 0.95) {
            Some(interval) => format!("[{:.4}, {:.4}]", interval.low, interval.high),
            None => "[too few]".to_string(),
        };
        let one_us = middle / 100.0 * 1e6 / f64::from(PER_SECOND);
        writeln!(out, "| {name} | {middle:.4} {interval} | {one_us:.0} |")?;
    }
    writeln!(
        out,
        "\nnothing itself: {:.4} %; bar: both under {AT_MOST} %",
        median(&shares[0]).context("a round")?
    )?;
    Ok(())
}

/// Of a process of its own, in per cent.
fn share_of_a_core(doing: Doing, options: &Options) -> Result<f64> {
    let doing = clap::ValueEnum::to_possible_value(&doing).context("every value is possible")?;
    let output = die_with_parent(&mut Command::new(std::env::current_exe()?))
        .args(["sampling-stretch", doing.get_name()])
        .args(["--stretch", &format!("{}ns", options.stretch)])
        .args(["--threads", &options.threads.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let share = text.trim().parse();
    share.map_err(|_| anyhow::anyhow!("a stretch failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// One stretch, in a process of its own.
#[derive(clap::Args)]
pub struct StretchOptions {
    doing: Doing,
    #[arg(long, value_parser = parse_duration_ns)]
    stretch: u64,
    #[arg(long)]
    threads: u32,
}

/// Prints the per cent of one core that it took.
pub fn stretch(options: &StretchOptions, out: &mut impl Write) -> Result<()> {
    // Threads that wait for this process to end, as those of a worker do between samples.
    let waiting: Vec<mpsc::Sender<()>> = (1..options.threads).map(|_| waiting_thread()).collect();
    let mut reader = HostReader::new();
    let pid = std::process::id();
    let mut read = |doing| {
        if matches!(doing, Doing::Host | Doing::Both) {
            std::hint::black_box(reader.read());
        }
        if matches!(doing, Doing::Process | Doing::Both) {
            std::hint::black_box(process::totals_with_threads(pid));
        }
    };
    // Buffers grow in the first reading.
    read(options.doing);
    let length = Duration::from_nanos(options.stretch);
    let (started, cpu_before_ns) = (Instant::now(), cpu_ns());
    if options.doing == Doing::Nothing {
        std::thread::sleep(length);
    } else {
        for index in 1.. {
            let due = Duration::from_secs(1) * index / PER_SECOND;
            if due > length {
                break;
            }
            std::thread::sleep(due.saturating_sub(started.elapsed()));
            read(options.doing);
        }
    }
    let used_ns = cpu_ns() - cpu_before_ns;
    writeln!(out, "{}", used_ns as f64 * 100.0 / started.elapsed().as_nanos() as f64)?;
    drop(waiting);
    Ok(())
}

fn waiting_thread() -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || receiver.recv());
    sender
}

fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
