//! Windows on other architectures: there are none, since the calls of a traced program are made by
//! code for x86-64.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use pagewise_model::trace::WindowTally;
use rustix::process::Pid;

use crate::watch::Watch;

/// A program whose touches of mapped files are seen, which cannot be here.
#[derive(Debug)]
pub struct NoWindows(Infallible);

pub use NoWindows as Windows;

/// The reason for which there can be no windows here.
pub fn refusal() -> Option<String> {
    Some("a program can be traced so on x86-64 alone".to_string())
}

impl NoWindows {
    /// Refused.
    pub fn begin(_process: Pid, _most: u64, _watch: &mut Watch) -> Result<Self, String> {
        Err(refusal().unwrap_or_default())
    }

    /// Never called.
    pub fn step(&mut self, _watch: &mut Watch, _timeout: Duration) -> io::Result<Option<i32>> {
        match self.0 {}
    }

    /// Never called.
    pub fn end(&mut self, _watch: &mut Watch) -> io::Result<()> {
        match self.0 {}
    }

    /// Never called.
    pub fn let_go(&mut self) -> io::Result<()> {
        match self.0 {}
    }

    /// Never called.
    pub fn tally(&self) -> WindowTally {
        match self.0 {}
    }
}
