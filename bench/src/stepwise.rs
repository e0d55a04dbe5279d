//! One run of pagewise that is taken apart: a sample, then something else, then the next sample.
//!
//! A run is interrupted (SIGINT) as soon as its file has one more valid sample, and resumed for the
//! next one, both of which users do. Each of its samples has a worker, a group and a warm-up of its
//! own, so nothing but time lies between them. A sample takes what it takes in any run; waiting for
//! whole runs between runs of fio would take ten times as long, in which a shared device changes.

use std::fs::File;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pagewise_analysis::proof::measured::ops_per_second;
use pagewise_model::run::Run;
use pagewise_model::{Evidence, sample::Measurement};
use rustix::process::{Pid, Signal, kill_process};

use crate::dataset::Dataset;
use crate::pagewise::{Pagewise, Request};

/// How often the length of the run file is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// A run that takes so long for a valid sample will not have one.
const PATIENCE: Duration = Duration::from_secs(120);
/// An interrupted run removes its group and its file.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// What one look at a method came to, be it by pagewise or by fio.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Reads per second.
    pub rate: f64,
    /// Bytes that storage read, over the bytes asked for.
    pub amplification: Option<f64>,
    /// Page cache in the group.
    pub file_bytes: Option<u64>,
}

/// A run of one method under one set of conditions. Its repetition as a control counts like the
/// method itself.
pub struct Stepwise<'a> {
    pagewise: &'a Pagewise<'a>,
    dataset: &'a Dataset,
    request: Request,
    /// Valid samples that have been handed out or passed over.
    seen: usize,
    /// Samples that failed a check and were taken again.
    pub invalid: usize,
}

impl<'a> Stepwise<'a> {
    /// A run that has not begun.
    pub fn new(pagewise: &'a Pagewise<'a>, dataset: &'a Dataset, request: Request) -> Self {
        Self { pagewise, dataset, request, seen: 0, invalid: 0 }
    }

    /// The next valid sample.
    pub fn observe(&mut self) -> Result<Observation> {
        let run_file = self.pagewise.run_file();
        let mut command = match run_file.exists() {
            true => self.pagewise.resume_command(),
            false => self.pagewise.run_command(self.dataset, &self.request),
        };
        // A file, since nobody reads a pipe meanwhile.
        let said = self.pagewise.scratch().path("stderr");
        command.stderr(Stdio::from(File::create(&said)?));
        let child = command.spawn().context("pagewise does not start")?;
        let mut going = Going { pagewise: self.pagewise, child };
        self.pagewise.scratch().run_begins(going.child.id(), self.pagewise.executable());
        let begun = Instant::now();
        let mut length = 0;
        while going.is_alive() {
            std::thread::sleep(LOOK);
            let now = std::fs::metadata(&run_file).map_or(0, |metadata| metadata.len());
            if now != length {
                length = now;
                if self.load().is_ok_and(|run| valid(&run).count() > self.seen) {
                    break;
                }
            }
            if begun.elapsed() > PATIENCE {
                break;
            }
        }
        going.end()?;
        let run = self.load().with_context(|| {
            format!("pagewise run: {}", std::fs::read_to_string(&said).unwrap_or_default().trim())
        })?;
        let found = valid(&run).nth(self.seen).map(|(measurement, evidence)| Observation {
            rate: ops_per_second(measurement) * f64::from(self.request.reads_per_op),
            amplification: evidence
                .device_read_bytes
                .map(|read| read as f64 / evidence.requested_bytes.max(1) as f64),
            file_bytes: evidence.group.as_ref().and_then(|group| group.file_bytes),
        });
        self.seen = valid(&run).count();
        self.invalid = run.samples.len() - self.seen;
        match found {
            Some(observation) => Ok(observation),
            None => bail!(
                "no valid sample within {} s: {}",
                begun.elapsed().as_secs(),
                why(&run).unwrap_or_else(|| std::fs::read_to_string(&said).unwrap_or_default())
            ),
        }
    }

    fn load(&self) -> Result<Run> {
        Ok(Run::parse(&std::fs::read(self.pagewise.run_file())?)?)
    }
}

impl Drop for Stepwise<'_> {
    fn drop(&mut self) {
        // The next run begins with none.
        let _ = std::fs::remove_file(self.pagewise.run_file());
    }
}

fn valid(run: &Run) -> impl Iterator<Item = (&Measurement, &Evidence)> {
    run.samples.iter().filter_map(|sample| sample.valid())
}

/// What the last sample failed of.
fn why(run: &Run) -> Option<String> {
    let last = run.samples.last()?;
    match &last.outcome {
        pagewise_model::Outcome::Unavailable { reason } => Some(reason.clone()),
        _ => last.failures().first().map(|failure| failure.detail.clone()),
    }
}

/// A part of the run that is going on; also on an error it is not left behind.
struct Going<'a> {
    pagewise: &'a Pagewise<'a>,
    child: Child,
}

impl Going<'_> {
    /// Does not wait for it, so its id stays its own.
    fn is_alive(&self) -> bool {
        std::fs::read_link(format!("/proc/{}/exe", self.child.id())).is_ok()
    }

    /// Interrupts it and waits until it has cleaned up.
    fn end(&mut self) -> Result<()> {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
            && self.is_alive()
        {
            // One that has ended meanwhile is what is wanted.
            let _ = kill_process(pid, Signal::INT);
        }
        let deadline = Instant::now() + ENDS_WITHIN;
        while self.is_alive() {
            if Instant::now() > deadline {
                bail!("pagewise does not end {} s after it was interrupted", ENDS_WITHIN.as_secs());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.pagewise.scratch().run_ends();
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Going<'_> {
    fn drop(&mut self) {
        if self.end().is_err() {
            // Its group, if it has one, is swept with its state.
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.pagewise.scratch().run_ends();
            let _ = self.pagewise.command().arg("clean").stdout(Stdio::null()).status();
        }
    }
}
