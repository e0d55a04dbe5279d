//! timeit: `bench/python/reads.py`, a process for each fork.

use std::process::Command;

use anyhow::{Context, Result};
use pagewise_host::toolchain::Language;

use super::{Contest, Harness, Inputs, Tools, folder, said};

const METHODS: [(&str, &str); 2] = [("python/mmap", "mmap"), ("python/pread", "pread")];
const OF_NUMPY: (&str, &str) = ("python/numpy-memmap", "numpy-memmap");

/// The interpreter that pagewise finds.
pub struct Timeit<'a> {
    inputs: Inputs<'a>,
    tools: Tools,
    has_numpy: bool,
}

impl<'a> Timeit<'a> {
    /// Asks whether numpy is there.
    pub fn new(inputs: Inputs<'a>) -> Result<Self> {
        let tools = Tools::of(Language::Python, None)?;
        let mut python = Command::new(&tools.built.program);
        python.args(["-c", "import importlib.util as u; print(u.find_spec('numpy') is not None)"]);
        let has_numpy = said(python)?.trim() == "True";
        Ok(Self { inputs, tools, has_numpy })
    }
}

impl Harness for Timeit<'_> {
    fn name(&self) -> String {
        format!("timeit, Python {}", self.tools.found.version)
    }

    fn contests(&self) -> Vec<Contest> {
        let of_numpy = self.has_numpy.then_some(OF_NUMPY);
        let methods: Vec<_> = METHODS.into_iter().chain(of_numpy).collect();
        Contest::all(&methods, &[1])
    }

    fn rate(&self, contest: &Contest) -> Result<f64> {
        let mut command = Command::new(&self.tools.built.program);
        command.arg(folder("python").join("reads.py")).arg(contest.benchmark);
        command.arg(&self.inputs.dataset.path).arg(&self.inputs.table.path);
        command.arg(if self.inputs.quick { "0.1" } else { "1" });
        let told = said(command)?;
        told.trim().parse().with_context(|| format!("no rate: {told}"))
    }
}
