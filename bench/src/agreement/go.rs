//! `go test -bench`: `bench/go`, compiled once; each fork is a run of the test program.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use pagewise_host::toolchain::Language;

use super::{Contest, Harness, Inputs, Tools, folder, said};

const METHODS: [(&str, &str); 2] = [("go/mmap", "Mmap"), ("go/pread", "Pread")];

/// The test program.
pub struct GoTest<'a> {
    inputs: Inputs<'a>,
    tools: Tools,
    program: PathBuf,
}

impl<'a> GoTest<'a> {
    /// Compiles it.
    pub fn new(inputs: Inputs<'a>) -> Result<Self> {
        let tools = Tools::of(Language::Go, None)?;
        let program = std::path::absolute(inputs.scratch.path("reading.test"))?;
        let mut go = Command::new(&tools.found.program);
        go.args(["test", "-c", "-o"]).arg(&program).arg(".").current_dir(folder("go"));
        said(go).context("the benchmark is not built")?;
        Ok(Self { inputs, tools, program })
    }
}

impl Harness for GoTest<'_> {
    fn name(&self) -> String {
        format!("go test -bench, Go {}", self.tools.found.version)
    }

    fn contests(&self) -> Vec<Contest> {
        Contest::all(&METHODS, &[1, 2])
    }

    fn rate(&self, contest: &Contest) -> Result<f64> {
        let together = if contest.threads > 1 { "Together" } else { "" };
        let mut command = Command::new(&self.program);
        command.arg(format!("-test.bench=^Benchmark{}{together}$", contest.benchmark));
        command.args([
            "-test.run=^$",
            if self.inputs.quick { "-test.benchtime=100ms" } else { "-test.benchtime=1s" },
        ]);
        if contest.threads > 1 {
            // RunParallel has as many goroutines as GOMAXPROCS.
            command.arg(format!("-test.cpu={}", contest.threads));
        }
        command.arg("-file").arg(&self.inputs.dataset.path).arg("-table").arg(&self.inputs.table.path);
        let told = said(command)?;
        Ok(1e9 / nanoseconds(&told).with_context(|| format!("no result: {told}"))?)
    }
}

/// `BenchmarkMmap-2   25114   47812 ns/op`
fn nanoseconds(told: &str) -> Option<f64> {
    let line = told.lines().find(|line| line.ends_with("ns/op"))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read() {
        let told = "goos: linux\nBenchmarkMmap-2   \t   25114\t     47812 ns/op\nPASS\n";
        assert_eq!(nanoseconds(told), Some(47812.0));
        assert_eq!(nanoseconds("PASS\n"), None);
    }
}
