//! A microbenchmark as a user of Google Benchmark writes it (`benchmark.cpp`), compiled when it is
//! asked for: the bench itself does without the library.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use pagewise_sys::child::die_with_parent;

use super::ring::{Before, RingCell, RingFile};
use crate::dataset::Scratch;

const SOURCE: &str = include_str!("benchmark.cpp");

/// The compiled program.
pub struct GoogleBenchmark {
    program: PathBuf,
}

impl GoogleBenchmark {
    /// Compiles it; fails where the compiler or the library is missing (Debian: g++,
    /// libbenchmark-dev).
    pub fn compile(scratch: &Scratch) -> Result<Self> {
        let (source, program) = (scratch.path("benchmark.cpp"), scratch.path("benchmark"));
        std::fs::write(&source, SOURCE)?;
        let output = die_with_parent(&mut Command::new("g++"))
            .args(["-O2", "-o"])
            .args([&program, &source])
            .args(["-lbenchmark", "-lpthread"])
            .output()
            .context("g++ does not start")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "g++: {}", complaint.lines().last().unwrap_or("it failed"));
        Ok(Self { program })
    }

    /// What it says a fill took, the mean of its three iterations.
    pub fn fill_ns(&self, cell: &RingCell, file: &RingFile) -> Result<f64> {
        file.prepare()?;
        let output = die_with_parent(&mut Command::new(&self.program))
            .args([file.path(), file.source_path()])
            .arg(if cell.before == Before::New { "new" } else { "written" })
            .arg("--benchmark_format=json")
            .stderr(Stdio::null())
            .output()
            .context("the benchmark does not start")?;
        ensure!(output.status.success(), "the benchmark: {}", output.status);
        let said: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        said["benchmarks"][0]["real_time"].as_f64().context("the benchmark says no time")
    }
}
