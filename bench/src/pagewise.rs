//! `pagewise run` as a user calls it, and what its run file says. All flags that the benchmarks use
//! are here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use pagewise_analysis::judge::collected::{CellSamples, collect};
use pagewise_analysis::proof::measured::ops_per_second;
use pagewise_analysis::statistics::median;
use pagewise_model::run::Run;
use pagewise_model::{Bytes, CacheState, HostSettings, Role, Workload};
use pagewise_sys::child::die_with_parent;
use rustix::process::Signal;

use crate::dataset::{Dataset, Scratch};

/// Where the command is, and where its data are made.
#[derive(clap::Args)]
pub struct Place {
    /// The command to measure, built with --release.
    #[arg(long, value_name = "PATH", default_value = "target/release/pagewise")]
    pub pagewise: PathBuf,
    /// Folder for the data; what is made there is removed afterwards.
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
}

/// What a run is asked for.
#[derive(Clone)]
pub struct Request {
    /// As `--methods` takes it.
    pub methods: String,
    /// Order of the reads.
    pub workload: Workload,
    /// Threads that read.
    pub threads: String,
    /// Size of a read.
    pub read_bytes: Bytes,
    /// Offsets are multiples of this; a read's size where it is left out.
    pub align: Option<Bytes>,
    /// Reads in one operation.
    pub reads_per_op: u32,
    /// What the page cache holds.
    pub cache: CacheState,
    /// As `--descriptor` takes it.
    pub descriptor: String,
    /// Samples of every cell.
    pub rounds: u32,
    /// Length of a sample's throughput phase.
    pub sample_ns: u64,
    /// Seed of the offsets.
    pub seed: u64,
    /// Host settings: limit of memory and cap of the device.
    pub host_settings: HostSettings,
    /// The JDK of the JVM's worker, where it is not the one that pagewise finds.
    pub jdk: Option<PathBuf>,
}

/// The command with a state of its own, so that it neither waits for nor sweeps another run's.
pub struct Pagewise<'a> {
    executable: PathBuf,
    scratch: &'a Scratch,
}

impl Place {
    /// The command, if it is there.
    pub fn find<'a>(&self, scratch: &'a Scratch) -> Result<Pagewise<'a>> {
        let executable = self.pagewise.canonicalize().with_context(|| {
            format!("{} is missing: run `cargo build --release` first", self.pagewise.display())
        })?;
        std::fs::create_dir_all(scratch.path("state"))?;
        Ok(Pagewise { executable, scratch })
    }
}

impl Pagewise<'_> {
    /// The command with its environment; it ends with this process.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        die_with_parent(&mut command);
        command.env("PAGEWISE_STATE_DIR", self.scratch.path("state")).stdin(Stdio::null());
        command
    }

    /// `pagewise run` of `request` on `dataset`, to be started.
    pub fn run_command(&self, dataset: &Dataset, request: &Request) -> Command {
        let mut command = self.command();
        command.args(["run", "read", "--json", "--no-ceilings"]);
        command.arg("--file").arg(&dataset.path);
        command.arg("--out").arg(self.run_file());
        let options = [
            ("--methods", request.methods.clone()),
            ("--workload", request.workload.name().to_string()),
            ("--threads", request.threads.clone()),
            ("--read-size", request.read_bytes.to_string()),
            ("--align", request.align.unwrap_or(request.read_bytes).to_string()),
            ("--reads-per-op", request.reads_per_op.to_string()),
            ("--cache", request.cache.name().to_string()),
            ("--descriptor", request.descriptor.clone()),
            ("--rounds", request.rounds.to_string()),
            ("--sample", format!("{}ns", request.sample_ns)),
            ("--seed", request.seed.to_string()),
        ];
        for (option, value) in options {
            command.arg(option).arg(value);
        }
        if let Some(jdk) = &request.jdk {
            command.arg("--jdk").arg(jdk);
        }
        if let Some(limit) = request.host_settings.memory_limit_bytes {
            // Below a limit the file is evicted first, so that its pages are charged to the worker.
            command.args(["--evict", "--memory", &limit.to_string()]);
        }
        if let Some(cap) = request.host_settings.device_cap {
            command.args(["--device-cap", &cap.to_string()]);
        }
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Another part of the run that [`Pagewise::run_command`] began, to be started.
    pub fn resume_command(&self) -> Command {
        let mut command = self.command();
        command.args(["run", "--resume", "--out"]).arg(self.run_file());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// The folder that holds its state.
    pub fn scratch(&self) -> &Scratch {
        self.scratch
    }

    /// The command itself.
    pub fn executable(&self) -> &Path {
        &self.executable
    }

    /// Where [`Pagewise::run_command`] writes.
    pub fn run_file(&self) -> PathBuf {
        self.scratch.path("run.jsonl")
    }

    /// Runs `request` to its end. A run with invalid samples is a result too: exit status 1.
    pub fn run(&self, dataset: &Dataset, request: &Request) -> Result<Run> {
        let child = self.run_command(dataset, request).spawn().context("pagewise does not start")?;
        let output = child.wait_with_output()?;
        ensure!(
            matches!(output.status.code(), Some(0 | 1)),
            "pagewise run: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        self.take_run(&String::from_utf8_lossy(&output.stderr))
    }

    /// Reads the run file and removes it, so that the next run may have its place.
    pub fn take_run(&self, stderr: &str) -> Result<Run> {
        let text = std::fs::read(self.run_file())
            .with_context(|| format!("pagewise left no run file: {}", stderr.trim()))?;
        std::fs::remove_file(self.run_file())?;
        let run = Run::parse(&text)?;
        ensure!(run.is_complete(), "the run did not get to its end: {}", stderr.trim());
        Ok(run)
    }
}

/// The only cell of `run` with this method and role.
pub fn cell_of<'a>(run: &'a Run, method: &str, role: Role) -> Result<CellSamples<'a>> {
    let mut found = collect(run)
        .into_iter()
        .filter(|samples| samples.cell.role == role && samples.cell.method.to_string() == method);
    match (found.next(), found.next()) {
        (Some(cell), None) => Ok(cell),
        (None, _) => bail!("the run has no cell of {method}"),
        (Some(_), Some(_)) => bail!("the run has several cells of {method}"),
    }
}

/// Reads per second of a measured method: the median of its valid samples.
pub fn reads_per_second(run: &Run, method: &str) -> Result<f64> {
    let cell = cell_of(run, method, Role::Measured)?;
    let reads = cell.cell.conditions.reads().context("the run is one of reads")?;
    let reads_per_op = f64::from(reads.reads_per_op);
    let rates = cell.figures(|measurement, _| ops_per_second(measurement) * reads_per_op);
    median(&rates).with_context(|| format!("no valid sample of {method}: {}", why_invalid(&cell)))
}

fn why_invalid(cell: &CellSamples<'_>) -> String {
    if let Some(reason) = cell.unavailable() {
        return reason.to_string();
    }
    let failures = cell.attempts.iter().flat_map(|sample| sample.failures());
    failures.map(|failure| failure.detail.clone()).next().unwrap_or_else(|| "none was taken".to_string())
}

/// Ends a child that is not needed any more.
pub fn end(child: &mut std::process::Child) {
    if let Some(process) = rustix::process::Pid::from_raw(child.id() as i32) {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(process, Signal::TERM);
    }
    let _ = child.wait();
}
