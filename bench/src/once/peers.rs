//! What a user would pick instead, as whole processes: `wc -l`, ripgrep, and sysbench for the
//! device.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use pagewise_model::Bytes;
use pagewise_sys::child::die_with_parent;

use crate::dataset::{Dataset, Scratch};

/// A program that counts the lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// GNU's.
    Wc,
    /// ripgrep.
    Ripgrep,
}

impl Counter {
    /// As typed.
    pub const fn name(self) -> &'static str {
        match self {
            Counter::Wc => "wc -l",
            Counter::Ripgrep => "rg -c ''",
        }
    }

    fn command(self, file: &Path) -> Command {
        let (program, words): (_, &[&str]) = match self {
            Counter::Wc => ("wc", &["-l"]),
            Counter::Ripgrep => ("rg", &["-c", ""]),
        };
        let mut command = Command::new(program);
        die_with_parent(&mut command);
        command.args(words).arg(file).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Whether it is installed.
    pub fn is_there(self) -> bool {
        self.command(Path::new("/dev/null")).stdout(Stdio::null()).status().is_ok()
    }

    /// From its start to its end, in nanoseconds; it must count `lines`.
    pub fn count_ns(self, file: &Path, lines: u64) -> Result<f64> {
        let started = Instant::now();
        let output =
            self.command(file).output().with_context(|| format!("{} does not start", self.name()))?;
        let took = started.elapsed();
        let said = String::from_utf8_lossy(&output.stdout);
        let counted = said.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        ensure!(counted == Some(lines), "{} says {:?} and not {lines}", self.name(), said.trim());
        Ok(took.as_nanos() as f64)
    }
}

/// What a process takes that does nothing, in nanoseconds.
pub fn nothing_ns() -> Result<f64> {
    let started = Instant::now();
    let output = die_with_parent(&mut Command::new("/bin/true")).output()?;
    ensure!(output.status.success(), "/bin/true: {}", output.status);
    Ok(started.elapsed().as_nanos() as f64)
}

/// `sysbench fileio seqrd` with O_DIRECT, on a file of its own.
pub struct Sysbench {
    folder: PathBuf,
    file_bytes: u64,
}

impl Sysbench {
    /// Has it prepare its file and drops that from the page cache.
    pub fn prepare(scratch: &Scratch, size: Bytes) -> Result<Self> {
        let sysbench = Self { folder: scratch.path("sysbench"), file_bytes: size.0 };
        std::fs::create_dir_all(&sysbench.folder)?;
        sysbench.fileio(&[], "prepare")?;
        let data = sysbench.dataset();
        std::fs::File::open(&data.path)?.sync_all()?;
        data.evict()?;
        Ok(sysbench)
    }

    /// File of sysbench.
    pub fn dataset(&self) -> Dataset {
        Dataset { path: self.folder.join("test_file.0"), file_bytes: self.file_bytes }
    }

    /// What it says reading the whole file once took, in nanoseconds.
    pub fn read_ns(&self, block: Bytes) -> Result<f64> {
        let words = [
            "--file-test-mode=seqrd".to_string(),
            "--file-extra-flags=direct".to_string(),
            "--file-fsync-freq=0".to_string(),
            "--file-fsync-end=off".to_string(),
            "--time=0".to_string(),
            format!("--file-block-size={}", block.0),
            format!("--events={}", self.file_bytes / block.0),
        ];
        let said = self.fileio(&words, "run")?;
        let rate = said.lines().find_map(|line| line.trim().strip_prefix("read, MiB/s:"));
        let rate: f64 = rate.context("sysbench says no rate")?.trim().parse()?;
        Ok(self.file_bytes as f64 / f64::from(1 << 20) / rate * 1e9)
    }

    fn fileio(&self, words: &[String], verb: &str) -> Result<String> {
        let output = die_with_parent(&mut Command::new("sysbench"))
            .current_dir(&self.folder)
            .args(["fileio", "--file-num=1", &format!("--file-total-size={}", self.file_bytes)])
            .args(words)
            .arg(verb)
            .output()
            .context("sysbench does not start")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!("sysbench {verb}: {}", said.lines().last().unwrap_or("it failed"));
        }
        Ok(said)
    }
}
