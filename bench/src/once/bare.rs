//! The bare C program (`bare.c`), compiled with the bench.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use pagewise_sys::child::die_with_parent;

use super::Spent;

/// Where the build put it.
const PROGRAM: &str = env!("BARE_ONCE");

/// One sample in a fresh process.
pub fn sample<W: AsRef<OsStr>>(words: &[W], count: u64) -> Result<Spent> {
    let output = die_with_parent(&mut Command::new(PROGRAM))
        .args(words)
        .output()
        .with_context(|| format!("{PROGRAM} does not start"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [setup_ns, measured_ns, teardown_ns, counted] = numbers[..] else {
        bail!("the bare program failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    };
    ensure!(counted == count, "the bare program counted {counted} and not {count}");
    Ok(Spent { setup_ns, measured_ns, teardown_ns, count })
}
