//! `fio`: pagewise against fio on the same file with the same reads.
//!
//! fio is run as users run it to learn rate and latency, with what else makes it fast: no map of
//! what was read (`norandommap`), no invalidation, no advice, threads instead of processes, and
//! time to fill its page tables before it counts (`ramp_time`). Its reads are not consumed;
//! pagewise's are. Where a clock costs most, for 4 KiB through a mapping, it is also run without
//! clocks and so without latencies (`gtod_reduce`): that bar is 1, since the bare loop itself is
//! less than twice as fast.

use std::io::Write;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagewise_analysis::statistics::median;
use pagewise_model::random::Random;
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{Access, Bytes, CacheState, HostSettings, Workload};
use pagewise_sys::child::die_with_parent;

use crate::cell::Cell;
use crate::dataset::{Dataset, Scratch};
use crate::options::{Filter, Pairs};
use crate::pagewise::{Pagewise, Place, Request, reads_per_second};
use crate::ratio::Ratio;

/// pagewise against fio on the same file with the same reads.
#[derive(clap::Args)]
#[command(mut_arg("dir", |arg| arg.help("Folder for the file; the device cells need O_DIRECT there")))]
#[command(mut_arg("file_size", |arg| arg.help("Size of the file; fio maps at most 1 GiB at once")))]
#[command(mut_arg("pairs", |arg| arg.default_value("21")))]
pub struct Options {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    pairs: Pairs,
    /// Rounds of each run of pagewise.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Length of a sample of pagewise; fio counts for `rounds` times as long.
    #[arg(long, default_value = "100ms", value_parser = parse_duration_ns)]
    sample: u64,
    #[command(flatten)]
    filter: Filter,
}

/// One comparison: a method of pagewise and what fio calls it.
struct Contest {
    name: String,
    method: &'static str,
    workload: Workload,
    read_bytes: Bytes,
    threads: u32,
    reads_per_op: u32,
    engine: &'static str,
    direct: bool,
    depth: u32,
    /// Without clocks, and so without latencies.
    clockless: bool,
    /// The median ratio that pagewise must reach.
    bar: f64,
}

fn contests() -> Vec<Contest> {
    let mut contests: Vec<Contest> = Cell::all().iter().map(cached).collect();
    let costly = Cell::all()
        .into_iter()
        .filter(|cell| cell.access == Access::Mmap && cell.read_bytes == Bytes::kib(4));
    contests.extend(costly.map(|cell| {
        let contest = cached(&cell);
        Contest { name: format!("{}, fio clockless", contest.name), clockless: true, bar: 1.0, ..contest }
    }));
    for (method, engine, depth) in [("pread:direct", "psync", 1), ("uring:direct+depth=32", "io_uring", 32)] {
        contests.push(Contest {
            name: format!("{method} random 16KiB 1t"),
            method,
            workload: Workload::RandomRead,
            read_bytes: Bytes::kib(16),
            threads: 1,
            reads_per_op: 1,
            engine,
            direct: true,
            depth,
            clockless: false,
            bar: 0.97,
        });
    }
    contests
}

fn cached(cell: &Cell) -> Contest {
    let mapped = cell.access == Access::Mmap;
    Contest {
        name: cell.to_string(),
        method: cell.access.name(),
        workload: cell.workload,
        read_bytes: cell.read_bytes,
        threads: cell.threads,
        reads_per_op: cell.reads_per_op(),
        engine: if mapped { "mmap" } else { "psync" },
        direct: false,
        depth: 1,
        clockless: false,
        bar: if mapped && cell.read_bytes == Bytes::kib(4) { 2.0 } else { 1.0 },
    }
}

/// Measures the cells and prints one line each.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let version = Command::new("fio").arg("--version").output().context("fio is not installed")?;
    let contests = options.filter.select(contests(), |contest| contest.name.clone())?;
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    let dataset = Dataset::create(&scratch, options.pairs.file_size)?;
    writeln!(
        out,
        "{}, {} pairs, {} file; rate of the first over the second\n",
        String::from_utf8_lossy(&version.stdout).trim(),
        options.pairs.pairs,
        options.pairs.file_size
    )?;
    writeln!(
        out,
        "{:40} {:>12} {:>24} {:>24} {:>6}",
        "cell", "fio, k/s", "pagewise / fio", "fio / fio (control)", "bar"
    )?;
    let mut reached = 0;
    for contest in &contests {
        reached += usize::from(compare(options, contest, &pagewise, &dataset, out)?);
        out.flush()?;
    }
    writeln!(out, "\nmedian reaches its bar in {reached} of {} cells", contests.len())?;
    Ok(())
}

fn compare(
    options: &Options,
    contest: &Contest,
    pagewise: &Pagewise<'_>,
    dataset: &Dataset,
    out: &mut impl Write,
) -> Result<bool> {
    if contest.direct {
        dataset.evict()?;
    }
    let mut random = Random::for_purpose(options.pairs.seed, "order");
    let (mut ours, mut theirs, mut control) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.pairs.pairs {
        if !contest.direct {
            dataset.require_cached()?;
        }
        let mut order = [0, 1, 2];
        random.shuffle(&mut order);
        for turn in order {
            match turn {
                0 => ours.push(contest.pagewise(options, pagewise, dataset)?),
                1 => theirs.push(contest.fio(options, dataset)?),
                _ => control.push(contest.fio(options, dataset)?),
            }
        }
    }
    let (Some(rate), Some(ratio), Some(control)) =
        (median(&theirs), Ratio::of(&ours, &theirs), Ratio::of(&control, &theirs))
    else {
        return Ok(false);
    };
    let reaches = ratio.median >= contest.bar;
    let mark = if reaches { "" } else { "  below" };
    let (name, bar) = (&contest.name, contest.bar);
    writeln!(out, "{name:40} {:>12.1} {ratio:>24} {control:>24} {bar:>6}{mark}", rate / 1e3)?;
    Ok(reaches)
}

impl Contest {
    fn pagewise(&self, options: &Options, pagewise: &Pagewise<'_>, dataset: &Dataset) -> Result<f64> {
        let request = Request {
            methods: self.method.into(),
            workload: self.workload,
            threads: self.threads.to_string(),
            read_bytes: self.read_bytes,
            align: None,
            reads_per_op: self.reads_per_op,
            cache: if self.direct { CacheState::AsIs } else { CacheState::Warm },
            descriptor: "shared".into(),
            rounds: options.rounds,
            sample_ns: options.sample,
            seed: options.pairs.seed,
            host_settings: HostSettings::default(),
            jdk: None,
        };
        reads_per_second(&pagewise.run(dataset, &request)?, self.method)
    }

    fn fio(&self, options: &Options, dataset: &Dataset) -> Result<f64> {
        let order = if self.workload == Workload::SequentialRead { "read" } else { "randread" };
        let runtime_ms = options.sample * u64::from(options.rounds) / 1_000_000;
        let output = die_with_parent(&mut Command::new("fio"))
            .args(["--name=reads", "--readonly", "--output-format=json", "--group_reporting", "--thread"])
            .args(["--invalidate=0", "--fadvise_hint=0", "--norandommap", "--randrepeat=0"])
            .args(["--time_based", "--ramp_time=300ms"])
            .arg(format!("--gtod_reduce={}", u8::from(self.clockless)))
            .arg(format!("--runtime={}ms", runtime_ms.max(100)))
            .arg(format!("--filename={}", dataset.path.display()))
            .arg(format!("--rw={order}"))
            .arg(format!("--bs={}", self.read_bytes.0))
            .arg(format!("--ioengine={}", self.engine))
            .arg(format!("--iodepth={}", self.depth))
            .arg(format!("--direct={}", u8::from(self.direct)))
            .arg(format!("--numjobs={}", self.threads))
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        rate(&text).with_context(|| format!("fio: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Reads per second of fio's only group. Warnings may stand above the JSON.
pub fn rate(text: &str) -> Result<f64> {
    let start = text.find('{').context("no JSON")?;
    let report: serde_json::Value = serde_json::from_str(&text[start..])?;
    let job = &report["jobs"][0];
    ensure!(job["error"] == 0, "its job failed with error {}", job["error"]);
    let rate = job["read"]["iops"].as_f64().context("no rate")?;
    ensure!(rate > 0.0, "it read nothing");
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cached_cell_and_the_device_is_contested() {
        let contests = contests();
        assert_eq!(contests.len(), 22);
        assert_eq!(contests.iter().filter(|contest| contest.clockless).count(), 4);
        assert_eq!(contests.iter().filter(|contest| contest.bar == 2.0).count(), 4);
        assert_eq!(contests.iter().filter(|contest| contest.direct).count(), 2);
    }

    #[test]
    fn a_rate_is_read_below_warnings_and_an_error_is_none() {
        let text = r#"note: something
            {"jobs": [{"error": 0, "read": {"iops": 1234.5}}]}"#;
        assert_eq!(rate(text).expect("rate"), 1234.5);
        assert!(rate(r#"{"jobs": [{"error": 5, "read": {"iops": 1.0}}]}"#).is_err());
        assert!(rate("fio: not found").is_err());
    }
}
