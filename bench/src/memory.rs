//! `memory`: what pagewise itself takes: memory of supervisor and workers, time to start.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pagewise_analysis::judge::collected::collect;
use pagewise_analysis::statistics::median;
use pagewise_model::{Access, Bytes, CacheState, Cell, HostSettings, MethodOption, Workload};
use pagewise_sys::child::die_with_parent;

use crate::dataset::{Dataset, Scratch};
use crate::pagewise::{Pagewise, Place, Request, end};

const SUPERVISOR_AT_MOST: Bytes = Bytes::mib(32);
const WORKER_AT_MOST: Bytes = Bytes::mib(16);
const START_AT_MOST_MS: f64 = 10.0;
/// VmHWM only grows, so the last look before the end misses what came in this time at most.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What pagewise itself takes: memory of supervisor and workers, time to start.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    place: Place,
    /// Size of the file.
    #[arg(long, default_value = "256MiB")]
    file_size: Bytes,
    /// How often `pagewise --help` is started.
    #[arg(long, default_value_t = 50)]
    starts: usize,
}

/// Measures and prints.
pub fn run(options: &Options, out: &mut impl Write) -> Result<()> {
    let scratch = Scratch::new(&options.place.dir)?;
    let pagewise = options.place.find(&scratch)?;
    let dataset = Dataset::create(&scratch, options.file_size)?;
    dataset.require_cached()?;
    memory(&pagewise, &dataset, out)?;
    start(options, &pagewise, out)
}

fn memory(pagewise: &Pagewise<'_>, dataset: &Dataset, out: &mut impl Write) -> Result<()> {
    let request = Request {
        methods: "mmap,mmap:random+prefetch,pread,pread:direct,uring:depth=32,uring:direct+depth=32".into(),
        workload: Workload::RandomRead,
        threads: "1,2".into(),
        read_bytes: Bytes::kib(16),
        align: None,
        reads_per_op: 16,
        cache: CacheState::Warm,
        descriptor: "shared".into(),
        rounds: 7,
        sample_ns: 20_000_000,
        seed: 1,
        host_settings: HostSettings::default(),
        jdk: None,
    };
    let mut child = pagewise.run_command(dataset, &request).spawn().context("pagewise does not start")?;
    let peak = watch(&mut child);
    if peak.is_err() {
        end(&mut child);
    }
    let peak = peak?;
    let mut stderr = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_string(&mut stderr)?;
    }
    let said = supervisor_peak(&std::fs::read_to_string(pagewise.run_file()).unwrap_or_default());
    let run = pagewise.take_run(&stderr)?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    writeln!(
        out,
        "supervisor, peak resident: {:.1} MiB seen, {} MiB in its run file; at most {SUPERVISOR_AT_MOST}",
        mib(peak),
        said.map_or("unknown".to_string(), |bytes| format!("{:.1}", mib(bytes))),
    )?;
    writeln!(out, "\nworker, peak resident over buffers and mapping; at most {WORKER_AT_MOST}")?;
    for samples in collect(&run) {
        let own = own_bytes(samples.cell);
        let extra = samples.valid().filter_map(|(_, evidence)| evidence.worker_peak_bytes);
        let role = samples.cell.role;
        let (method, threads) = (&samples.cell.method, samples.cell.conditions.threads);
        match extra.max() {
            Some(peak) => writeln!(
                out,
                "  {role:9} {method:28} {threads}t {:>8.1} MiB, of them over its own {:>6.1} MiB",
                mib(peak),
                mib(peak) - mib(own)
            )?,
            None => writeln!(out, "  {role:9} {method:28} {threads}t no valid sample")?,
        }
    }
    Ok(())
}

/// The highest VmHWM seen until the child ends.
fn watch(child: &mut Child) -> Result<u64> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Some(seen) = std::fs::read_to_string(&status).ok().and_then(|text| high_water_bytes(&text)) {
            peak = peak.max(seen);
        }
        if let Some(ended) = child.try_wait()? {
            ensure!(matches!(ended.code(), Some(0 | 1)), "pagewise run: {ended}");
            ensure!(peak > 0, "pagewise ended before it was seen");
            return Ok(peak);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn high_water_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// What the supervisor wrote of itself into the last record.
fn supervisor_peak(run_file: &str) -> Option<u64> {
    let last: serde_json::Value = serde_json::from_str(run_file.lines().last()?).ok()?;
    last["record"]["supervisor_peak_bytes"].as_u64()
}

/// Buffers of all threads, and what is mapped and touched.
fn own_bytes(cell: &Cell) -> u64 {
    let conditions = &cell.conditions;
    let in_flight = match cell.method.access() {
        Access::Uring => u64::from(cell.method.depth()),
        _ => 1,
    };
    let buffers = u64::from(conditions.threads) * in_flight * conditions.work.parameters().buffer_bytes();
    let mapped = match cell.method.access() {
        Access::Mmap | Access::Anonymous => conditions.span_bytes.0,
        _ => 0,
    };
    if cell.method.has(MethodOption::InPlace) { mapped } else { buffers + mapped }
}

/// `pagewise --help` from start to end, beside a program that does nothing.
fn start(options: &Options, pagewise: &Pagewise<'_>, out: &mut impl Write) -> Result<()> {
    let mut help_ms = Vec::new();
    let mut nothing_ms = Vec::new();
    for _ in 0..options.starts.max(1) {
        let mut help = pagewise.command();
        help.arg("--help");
        help_ms.push(timed_ms(&mut help)?);
        nothing_ms.push(timed_ms(die_with_parent(&mut Command::new("/bin/true")))?);
    }
    let (help, nothing) = (median(&help_ms).context("started")?, median(&nothing_ms).context("started")?);
    writeln!(
        out,
        "\npagewise --help: {help:.2} ms, median of {}; /bin/true (control): {nothing:.2} ms; at most \
         {START_AT_MOST_MS} ms",
        help_ms.len()
    )?;
    Ok(())
}

fn timed_ms(command: &mut Command) -> Result<f64> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let status = command.status()?;
    let took = started.elapsed();
    ensure!(status.success(), "{command:?}: {status}");
    Ok(took.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read_in_bytes() {
        assert_eq!(high_water_bytes("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"), Some(2 << 20));
        assert_eq!(high_water_bytes("Name:\tx\n"), None);
    }

    #[test]
    fn the_supervisor_s_word_is_in_the_last_record() {
        let text = "{\"check\":\"x\",\"record\":{\"kind\":\"end\",\"supervisor_peak_bytes\":7}}\n";
        assert_eq!(supervisor_peak(text), Some(7));
        assert_eq!(supervisor_peak(""), None);
    }
}
