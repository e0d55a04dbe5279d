//! `limits`: pagewise against fio under the same limit of memory and the same cap of the device, on
//! a file four times the limit.
//!
//! A triple is a sample of pagewise, a run of fio and a second one as the control, in random order,
//! each from an empty cache in a cgroup of its own. Both warm the cache by the reads that are
//! measured, until it has turned over. fio's own memory counts in its group, and is more than a
//! worker's: its limit is raised by what makes the page cache of both equal, found at the start of
//! a cell; the page cache of both groups is printed.

use std::io::Write;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagewise_analysis::statistics::median;
use pagewise_host::cgroup::{Control, Group};
use pagewise_host::{BlockDevice, DeviceCounters, ProcessCounters, process};
use pagewise_model::random::Random;
use pagewise_model::units::parse_duration_ns;
use pagewise_model::{Bytes, CacheState, DeviceCap, HostSettings, Workload};
use pagewise_sys::Spawn;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::dataset::{Dataset, Scratch};
use crate::fio;
use crate::options::Filter;
use crate::pagewise::{Place, Request};
use crate::ratio::Ratio;
use crate::stepwise::{Observation, Stepwise};

const READ_BYTES: Bytes = Bytes::kib(16);
/// The file is as many times the limit.
const FILE_OVER_LIMIT: u64 = 4;
/// fio asks for so many times the limit to warm up. Random reads fill a cache of a quarter of the
/// file with 1.15 times its size (-4 ln 3/4) and turn it over once with another 1.33 times (one of
/// four needs no device).
const WARM_UP_OVER_LIMIT: u64 = 3;
/// A cap is in force this long before reads count, as pagewise has it: a new one lets a double
/// burst through at first.
const LEAD_IN: &str = "650ms";
/// Others may use the device by as much, as in a sample of pagewise.
const OTHERS_SHARE: f64 = 0.10;
const OTHERS_BYTES: u64 = 4 << 20;
/// Ratios that agree.
const AGREE: std::ops::RangeInclusive<f64> = 0.95..=1.05;

/// pagewise against fio under the same limit of memory and cap of the device.
#[derive(clap::Args)]
#[command(mut_arg("dir", |arg| arg.help("Folder for the file; it needs O_DIRECT and a block device")))]
pub struct Options {
    #[command(flatten)]
    place: Place,
    /// Limit of memory; the file is four times as large.
    #[arg(long, default_value = "128MiB")]
    memory: Bytes,
    /// Reads per second of the capped device.
    #[arg(long, default_value_t = 2000)]
    read_iops: u64,
    /// Pairs for each cell.
    #[arg(long, default_value_t = 21)]
    pairs: usize,
    /// Length of a sample of pagewise, and of what fio counts. Under a cap both take 1.05 s at
    /// least.
    #[arg(long, default_value = "300ms", value_parser = parse_duration_ns)]
    sample: u64,
    /// How often a run of fio is taken again because others used the device.
    #[arg(long, default_value_t = 20)]
    retakes: u32,
    /// Seed of the offsets and of the order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    filter: Filter,
}

/// One comparison.
struct Contest {
    method: &'static str,
    memory: Option<Bytes>,
    cap: Option<DeviceCap>,
}

impl Contest {
    fn all(options: &Options) -> Vec<Self> {
        let memory = Some(options.memory);
        let cap = Some(DeviceCap { read_iops: Some(options.read_iops), read_bytes_per_second: None });
        vec![
            Self { method: "pread:random", memory, cap: None },
            Self { method: "pread:direct", memory, cap: None },
            Self { method: "pread:direct", memory: None, cap },
            Self { method: "pread:random", memory, cap },
        ]
    }

    fn is_direct(&self) -> bool {
        self.method.ends_with("direct")
    }

    fn host_settings(&self) -> HostSettings {
        HostSettings { memory_limit_bytes: self.memory, device_cap: self.cap, ..HostSettings::default() }
    }

    fn name(&self) -> String {
        let memory = self.memory.map(|memory| format!(" memory {memory}")).unwrap_or_default();
        let cap = self.cap.map(|cap| format!(" {cap}")).unwrap_or_default();
        format!("{}{memory}{cap}", self.method)
    }
}

/// Measures the cells and prints one line each.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let version = Command::new("fio").arg("--version").output().context("fio is not installed")?;
    let contests = options.filter.select(Contest::all(options), Contest::name)?;
    ensure!(options.pairs > 0, "0 pairs show nothing");
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    let dataset = Dataset::create(&scratch, Bytes(options.memory.0 * FILE_OVER_LIMIT))?;
    let device = BlockDevice::behind(&dataset.path)?;
    let control = Control::detect();
    let random =
        Random::for_purpose(u64::from(std::process::id()), &dataset.path.to_string_lossy()).next_u64();
    scratch.sweep_on_signal(control.group_paths(random, true, true));
    let in_group = |place: Result<&pagewise_host::cgroup::ParentGroup, _>| {
        place.map_or_else(|error: &pagewise_host::NoControl| error.to_string(), ToString::to_string)
    };
    writeln!(
        out,
        "{}, {} pairs, {} file; memory: {}; device {}: {}\n\
         16 KiB random reads at multiples of 16 KiB, one in an operation, 1 thread\n\n\
         | cell | fio, k/s | pagewise / fio | fio / fio (control) | device bytes per byte asked: pagewise, fio \
         | page cache, MiB: pagewise, fio | fio's limit, MiB | taken again: pagewise, fio | |\n\
         |---|---|---|---|---|---|---|---|---|",
        String::from_utf8_lossy(&version.stdout).trim(),
        options.pairs,
        Bytes(dataset.file_bytes),
        in_group(control.memory()),
        device.name,
        in_group(control.device()),
    )?;
    out.flush()?;
    let mut agreeing = 0;
    for contest in &contests {
        let request = Request {
            methods: contest.method.into(),
            workload: Workload::RandomRead,
            threads: "1".into(),
            read_bytes: READ_BYTES,
            align: None,
            reads_per_op: 1,
            cache: CacheState::Warm,
            descriptor: "shared".into(),
            // Each round has two samples, the second by the name of a control.
            rounds: options.pairs as u32 + 7,
            sample_ns: options.sample,
            seed: options.seed,
            host_settings: contest.host_settings(),
            jdk: None,
        };
        let ours = Stepwise::new(&pagewise, &dataset, request);
        let fio = Fio {
            options,
            contest,
            dataset: &dataset,
            device: &device,
            control: &control,
            random,
            retaken: 0,
        };
        agreeing += usize::from(compare(options, ours, fio, out)?);
        out.flush()?;
    }
    writeln!(out, "\nmedian within 5 % of fio's in {agreeing} of {} cells", contests.len())?;
    Ok(())
}

fn compare(
    options: &Options,
    mut pagewise: Stepwise<'_>,
    mut fio: Fio<'_>,
    out: &mut impl Write,
) -> Result<bool> {
    let contest = fio.contest;
    let mut random = Random::for_purpose(options.seed, &contest.name());
    let limit = match contest.memory {
        Some(memory) if !contest.is_direct() => {
            let least = "the group does not say how much page cache it has";
            let ours = pagewise.observe()?.file_bytes.context(least)?;
            let theirs = fio.observe(Some(memory), &mut random)?.file_bytes.context(least)?;
            Some(Bytes(memory.0 + ours.saturating_sub(theirs)))
        }
        limit => limit,
    };
    let (mut ours, mut theirs, mut control) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.pairs {
        let mut order = [0, 1, 2];
        random.shuffle(&mut order);
        for turn in order {
            match turn {
                0 => ours.push(pagewise.observe()?),
                1 => theirs.push(fio.observe(limit, &mut random)?),
                _ => control.push(fio.observe(limit, &mut random)?),
            }
        }
    }
    let rates = |of: &[Observation]| -> Vec<f64> { of.iter().map(|observation| observation.rate).collect() };
    let ratio = Ratio::of(&rates(&ours), &rates(&theirs)).context("no pair")?;
    let by_chance = Ratio::of(&rates(&control), &rates(&theirs)).context("no pair")?;
    let agrees = AGREE.contains(&ratio.median);
    writeln!(
        out,
        "| {} | {:.2} | {ratio} | {by_chance} | {}, {} | {}, {} | {} | {}, {} | {} |",
        contest.name(),
        median(&rates(&theirs)).context("no pair")? / 1e3,
        shown(&ours, |seen| seen.amplification, 3),
        shown(&theirs, |seen| seen.amplification, 3),
        shown(&ours, mebibytes, 1),
        shown(&theirs, mebibytes, 1),
        limit.map_or("–".to_string(), |limit| format!("{:.1}", limit.0 as f64 / f64::from(1 << 20))),
        pagewise.invalid,
        fio.retaken,
        if agrees { "within 5 %" } else { "apart" },
    )?;
    Ok(agrees)
}

fn mebibytes(seen: &Observation) -> Option<f64> {
    Some(seen.file_bytes? as f64 / f64::from(1 << 20))
}

/// A median, where all of them have the figure.
fn shown(of: &[Observation], figure: impl Fn(&Observation) -> Option<f64>, digits: usize) -> String {
    let figures: Option<Vec<f64>> = of.iter().map(figure).collect();
    match figures.as_deref().and_then(median) {
        Some(median) => format!("{median:.digits$}"),
        None => "–".to_string(),
    }
}

/// fio on the reads of a contest, each time in a new group.
struct Fio<'a> {
    options: &'a Options,
    contest: &'a Contest,
    dataset: &'a Dataset,
    device: &'a BlockDevice,
    control: &'a Control,
    /// Names its groups.
    random: u64,
    retaken: u32,
}

impl Fio<'_> {
    /// A run in which nobody else used the device, as pagewise asks of its samples.
    fn observe(&mut self, limit: Option<Bytes>, random: &mut Random) -> Result<Observation> {
        for _ in 0..=self.options.retakes {
            let (observation, own, others) = self.once(limit, random)?;
            if others <= (own as f64 * OTHERS_SHARE) as u64 + OTHERS_BYTES {
                return Ok(observation);
            }
            self.retaken += 1;
        }
        anyhow::bail!("others use the device: {} runs of fio were disturbed", self.retaken)
    }

    /// With the bytes that it read from the device, and those that others moved there.
    fn once(&self, limit: Option<Bytes>, random: &mut Random) -> Result<(Observation, u64, u64)> {
        let contest = self.contest;
        self.dataset.evict()?;
        let limit_bytes = limit.map(|limit| limit.0);
        let group = Group::create(self.control, self.random, limit_bytes, contest.cap.is_some())?;
        if let Some(memory) = contest.memory.filter(|_| !contest.is_direct()) {
            let mut warming = self.command(&group, random)?;
            warming.arg("--invalidate=1").arg(format!("--io_size={}", memory.0 * WARM_UP_OVER_LIMIT));
            self.finish(warming)?;
        }
        // As in pagewise, the cache is warmed without the cap.
        if let Some(cap) = &contest.cap {
            group.set_device_cap(self.device.number(), cap)?;
        }
        let mut measured = self.command(&group, random)?;
        measured.args(["--invalidate=0", "--time_based"]);
        measured.arg(format!("--runtime={}us", self.runtime_ns() / 1000));
        match contest.cap {
            // Few reads, and each is to be timed when it ends: at the end of a pause of the cap.
            Some(_) => measured.arg(format!("--ramp_time={LEAD_IN}")),
            None => measured.arg("--gtod_reduce=1"),
        };
        let before = self.device.counters();
        let (rate, seen) = self.finish(measured)?;
        let after = self.device.counters();
        let moved = before.zip(after).and_then(|(before, after)| DeviceCounters::difference(&before, &after));
        let moved = moved.context("the device has no counters")?;
        let own = seen.device_read_bytes.context("/proc/PID/io does not say what fio read")?;
        let asked = seen.read_call_bytes.context("/proc/PID/io does not say what fio asked for")?;
        let file_bytes = group.counters(None).file_bytes;
        group.remove()?;
        let observation =
            Observation { rate, amplification: Some(own as f64 / asked.max(1) as f64), file_bytes };
        Ok((observation, own, (moved.read_bytes + moved.written_bytes).saturating_sub(own)))
    }

    /// As long as a sample of pagewise: under a cap at least a second, which ends in the middle of
    /// a pause.
    fn runtime_ns(&self) -> u64 {
        const SLICE_NS: u64 = 100_000_000;
        match self.contest.cap {
            Some(_) => self.options.sample.max(10 * SLICE_NS) / SLICE_NS * SLICE_NS + SLICE_NS / 2,
            None => self.options.sample,
        }
    }

    /// What warming and measuring have in common: the reads, in the group.
    fn command(&self, group: &Group, random: &mut Random) -> Result<Command> {
        let mut command = Command::new("fio");
        Spawn { die_with_parent: true, join: group.entry()?, ..Spawn::default() }.apply(&mut command);
        command
            .args(["--name=reads", "--readonly", "--output-format=json", "--thread", "--numjobs=1"])
            .args(["--rw=randread", "--ioengine=psync", "--iodepth=1", "--norandommap"])
            .args(["--random_generator=tausworthe64", "--randrepeat=0", "--fadvise_hint=random"])
            .arg(format!("--randseed={}", random.below(1 << 31)))
            .arg(format!("--bs={}", READ_BYTES.0))
            .arg(format!("--direct={}", u8::from(self.contest.is_direct())))
            .arg(format!("--filename={}", self.dataset.path.display()))
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        Ok(command)
    }

    /// The reads per second of fio, and what /proc says of it when it has ended. Its output fits
    /// into a pipe.
    fn finish(&self, mut command: Command) -> Result<(f64, ProcessCounters)> {
        let child = command.spawn().context("fio does not start")?;
        let id = child.id();
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).context("a process has an id")?;
        // Not taken away yet, so that its counters are still there.
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        let counters = process::totals(id);
        let output = child.wait_with_output()?;
        let rate = fio::rate(&String::from_utf8_lossy(&output.stdout)).with_context(|| {
            format!("fio: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())
        })?;
        Ok((rate, counters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn memory_and_cap_are_contested_alone_and_together() {
        let options = Line::parse_from(["limits"]).options;
        let names: Vec<String> = Contest::all(&options).iter().map(Contest::name).collect();
        let expected = [
            "pread:random memory 128MiB",
            "pread:direct memory 128MiB",
            "pread:direct read-iops=2000",
            "pread:random memory 128MiB read-iops=2000",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_figure_that_one_lacks_is_not_shown() {
        let seen = |file_bytes| Observation { rate: 1.0, amplification: Some(0.75), file_bytes };
        let some = [seen(Some(1 << 20)), seen(Some(3 << 20))];
        assert_eq!(shown(&some, mebibytes, 1), "2.0");
        assert_eq!(shown(&[seen(None), some[0]], mebibytes, 1), "–");
    }
}
