//! Rates of the bare loop by itself, each from a fresh opening: what `pagewise run` is compared
//! with.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Barrier;

use anyhow::{Context, Result, ensure};
use pagewise_analysis::statistics::median;
use pagewise_engine::clock::now_ns;
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{Access, Bytes, Workload};
use pagewise_sys::child::die_with_parent;

use crate::bare::Bare;
use crate::cell::Cell;
use crate::dataset::Dataset;
use crate::offsets::Table;
use crate::slices::draw_tables;

/// The bare loops of mmap and pread under equal conditions.
pub struct BareRates<'a> {
    dataset: &'a Dataset,
    methods: Vec<MethodLoop>,
}

struct MethodLoop {
    cell: Cell,
    tables: Vec<Table>,
    reads: usize,
}

/// Reads per second of both methods.
#[derive(Clone, Copy, Debug)]
pub struct BothRates {
    /// Of mmap.
    pub mmap: f64,
    /// Of pread.
    pub pread: f64,
}

impl BothRates {
    /// Of one of them.
    pub fn of(&self, access: Access) -> f64 {
        if access == Access::Mmap { self.mmap } else { self.pread }
    }

    /// Between two: what drifts evenly from one to the other cancels.
    pub fn between(before: Self, after: Self) -> Self {
        let mean = |left: f64, right: f64| (left * right).sqrt();
        Self { mmap: mean(before.mmap, after.mmap), pread: mean(before.pread, after.pread) }
    }
}

impl<'a> BareRates<'a> {
    /// Draws offsets, and finds how many reads take about `slice_ns`.
    pub fn new(dataset: &'a Dataset, cell: Cell, slice_ns: u64, seed: u64) -> Result<Self> {
        let mut methods = Vec::new();
        for access in [Access::Mmap, Access::Pread] {
            let cell = cell.with_access(access);
            let tables = draw_tables(dataset, &cell, seed);
            let most = tables[0].offsets().reads().len();
            let mut method = MethodLoop { cell, tables, reads: 1024.min(most) };
            for _ in 0..4 {
                let rate = method.rate(dataset)?;
                let wanted = rate / f64::from(cell.threads) * slice_ns as f64 / 1e9;
                method.reads = (wanted as usize).clamp(1, most);
            }
            methods.push(method);
        }
        let mut rates = Self { dataset, methods };
        rates.touch_as(seed);
        Ok(rates)
    }

    /// Consume the word of each page that a run with this seed consumes.
    pub fn touch_as(&mut self, seed: u64) {
        self.methods.iter_mut().flat_map(|method| &mut method.tables).for_each(|table| table.touch_as(seed));
    }

    /// Medians of `slices` slices of each method, the methods in turn.
    pub fn medians(&self, slices: u32) -> Result<BothRates> {
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..slices.max(1) {
            for (method, rates) in self.methods.iter().zip(&mut rates) {
                rates.push(method.rate(self.dataset)?);
            }
        }
        let [mmap, pread] = rates.map(|rates| median(&rates));
        Ok(BothRates { mmap: mmap.context("a rate")?, pread: pread.context("a rate")? })
    }
}

impl MethodLoop {
    /// Opens, fills page tables, and reads once with all threads.
    fn rate(&self, dataset: &Dataset) -> Result<f64> {
        let mut loops = Bare::open(&dataset.path, &self.cell)?;
        let barrier = Barrier::new(loops.len());
        let parts: Vec<Result<(u64, u64)>> = std::thread::scope(|scope| {
            let threads: Vec<_> = loops
                .iter_mut()
                .zip(&self.tables)
                .map(|(bare, table)| scope.spawn(|| part(bare, table, self.reads, &barrier)))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a loop does not panic")).collect()
        });
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        let started = parts.iter().map(|(started, _)| *started).min().unwrap_or(0);
        let ended = parts.iter().map(|(_, ended)| *ended).max().unwrap_or(0);
        ensure!(ended > started, "the clock stood still");
        let reads = (self.reads * parts.len()) as f64;
        Ok(reads * 1e9 / (ended - started) as f64)
    }
}

fn part(bare: &mut Bare, table: &Table, reads: usize, barrier: &Barrier) -> Result<(u64, u64)> {
    let offsets = table.offsets().part(0, reads);
    barrier.wait();
    let started_ns = now_ns();
    let checksum = bare.read(offsets);
    let ended_ns = now_ns();
    std::hint::black_box(checksum.context("the bare loop failed")?);
    Ok((started_ns, ended_ns))
}

/// The bare loops in a process of their own: the control of `end-to-end`.
#[derive(clap::Args)]
pub struct Options {
    #[arg(long)]
    file: PathBuf,
    #[arg(long)]
    workload: Workload,
    #[arg(long)]
    read_size: Bytes,
    #[arg(long)]
    threads: u32,
    #[arg(long, value_parser = parse_duration_ns)]
    slice: u64,
    #[arg(long)]
    slices: u32,
    #[arg(long)]
    seed: u64,
}

/// Prints the rates of mmap and pread on one line.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let file_bytes = std::fs::metadata(&options.file)?.len();
    let dataset = Dataset { path: options.file.clone(), file_bytes };
    let cell = Cell {
        access: Access::Mmap,
        workload: options.workload,
        read_bytes: options.read_size,
        threads: options.threads,
    };
    let rates = BareRates::new(&dataset, cell, options.slice, options.seed)?.medians(options.slices)?;
    writeln!(out, "{} {}", rates.mmap, rates.pread)?;
    Ok(())
}

/// [`run`] in a process of its own.
pub fn in_own_process(
    dataset: &Dataset,
    cell: Cell,
    slice_ns: u64,
    slices: u32,
    seed: u64,
) -> Result<BothRates> {
    let output = die_with_parent(&mut Command::new(std::env::current_exe()?))
        .arg("bare-loop")
        .arg("--file")
        .arg(&dataset.path)
        .args(["--workload", cell.workload.name()])
        .args(["--read-size", &cell.read_bytes.to_string()])
        .args(["--threads", &cell.threads.to_string()])
        .args(["--slice", &format!("{slice_ns}ns")])
        .args(["--slices", &slices.to_string()])
        .args(["--seed", &seed.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rates: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [mmap, pread] = rates[..] else {
        anyhow::bail!("the bare loop failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    };
    Ok(BothRates { mmap, pread })
}
