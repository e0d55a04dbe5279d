//! `pagewise worker`, spoken to as the supervisor does.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail, ensure};
use pagewise_protocol::{Go, Job, PROTOCOL_VERSION, Reply, Request, SampleReply};
use rustix::fs::OFlags;

use super::Spent;
use crate::pagewise::{Pagewise, end};

/// A bound that no sample here reaches.
const SAMPLE_NS: u64 = 60_000_000_000;

/// What the jobs of this bench have in common.
pub fn job(method: &str, workload: &str, path: &str, file_bytes: u64) -> Job {
    Job {
        method: method.to_string(),
        workload: workload.to_string(),
        path: path.to_string(),
        file_bytes,
        span_bytes: file_bytes,
        threads: 1,
        descriptor: "shared".to_string(),
        page_bytes: rustix::param::page_size() as u64,
        direct_flag: OFlags::DIRECT.bits(),
        direct_alignment: 4096,
        gap_seed: 1,
        ..Job::default()
    }
}

/// One sample in a fresh worker: all of the job, from `open` to `closed`.
pub fn sample(pagewise: &Pagewise<'_>, job: &Job, operations: u64) -> Result<Spent> {
    let mut command = pagewise.command();
    let mut child = command
        .arg("worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("pagewise does not start")?;
    let spent = converse(&mut child, job);
    if spent.is_err() {
        end(&mut child);
    }
    let (spent, sample) = spent?;
    ensure!(child.wait()?.success(), "the worker did not end well");
    ensure!(
        sample.operations == operations,
        "the worker did {} of {operations} operations",
        sample.operations
    );
    Ok(spent)
}

fn converse(child: &mut Child, job: &Job) -> Result<(Spent, SampleReply)> {
    let mut requests = child.stdin.take().context("a pipe")?;
    let mut replies = BufReader::new(child.stdout.take().context("a pipe")?);
    let Reply::Hello(hello) = next(&mut replies)? else { bail!("the worker did not greet") };
    ensure!(hello.protocol == PROTOCOL_VERSION, "the worker speaks version {}", hello.protocol);
    say(&mut requests, &Request::Open(Box::new(job.clone())))?;
    let Reply::Opened { setup_ns, .. } = next(&mut replies)? else { bail!("the worker did not open") };
    let Reply::Ready { .. } = next(&mut replies)? else { bail!("the worker did not get ready") };
    say(&mut requests, &Request::Go(Go { sample_ns: SAMPLE_NS, ..Go::default() }))?;
    let Reply::Sample(sample) = next(&mut replies)? else { bail!("the worker took no sample") };
    say(&mut requests, &Request::Close)?;
    let Reply::Closed { teardown_ns, .. } = next(&mut replies)? else { bail!("the worker did not close") };
    let count = match u64::from_str_radix(&sample.checksum, 16)? {
        0 => sample.operations,
        lines => lines,
    };
    Ok((Spent { setup_ns, measured_ns: sample.elapsed_ns, teardown_ns, count }, *sample))
}

/// Sends a request.
pub fn say(requests: &mut impl Write, request: &Request) -> Result<()> {
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    requests.write_all(line.as_bytes()).context("the worker does not listen")?;
    Ok(requests.flush()?)
}

/// The next answer; `failed` is an error.
pub fn next(replies: &mut impl BufRead) -> Result<Reply> {
    let mut line = String::new();
    ensure!(replies.read_line(&mut line)? > 0, "the worker ended early");
    match serde_json::from_str(&line)? {
        Reply::Failed(failure) => bail!("{}: {}", failure.call, failure.detail),
        reply => Ok(reply),
    }
}
