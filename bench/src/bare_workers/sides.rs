//! A worker and a bare program, kept open and asked for slices of work.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use pagewise_lab::worker_door::ReadyWorker;
use pagewise_model::Worker;
use pagewise_model::ring::SOURCE_PERIOD;
use pagewise_protocol::{Go, Job, PROTOCOL_VERSION, Reply, Request};
use pagewise_sys::child::die_with_parent;

use super::{Contest, Work, WorkFiles};
use crate::dataset::Scratch;
use crate::once::ring::RingFile;
use crate::once::worker::{job, next, say};
use crate::operations::{AddUp, Operations, READ_BYTES, READS_PER_OP};

/// A bound that no pass over a ring reaches.
const UNBOUNDED_NS: u64 = 60_000_000_000;

/// How both sides are started.
pub struct Programs {
    worker: ReadyWorker,
    /// The bare program with its first arguments.
    bare: Vec<PathBuf>,
}

impl Programs {
    /// Compiles the bare program into `scratch`, where its language needs it. The JVM gets the
    /// flags of the worker.
    pub fn build(worker: &Worker, ready: ReadyWorker, scratch: &Scratch) -> Result<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("bare");
        let bare = match worker {
            Worker::Jvm => {
                let classes = scratch.path("classes");
                let mut javac = Command::new(ready.toolchain.with_file_name("javac"));
                compile(javac.arg("-d").arg(&classes).arg(sources.join("java/Bare.java")))?;
                let command = ready.program.command().into_iter();
                let flags = command.take_while(|flag| flag != "-cp");
                let mut command: Vec<PathBuf> = flags.map(PathBuf::from).collect();
                command.extend(["-cp".into(), classes, "Bare".into()]);
                command
            }
            Worker::Go => {
                let program = std::path::absolute(scratch.path("bare"))?;
                let mut go = Command::new(&ready.toolchain);
                compile(go.args(["build", "-o"]).arg(&program).arg(".").current_dir(sources.join("go")))?;
                vec![program]
            }
            Worker::Python => vec![ready.toolchain.clone(), sources.join("python/bare.py")],
            other => bail!("{other} has no bare loop"),
        };
        Ok(Self { worker: ready, bare })
    }

    fn start(&self, program: &Path, arguments: impl IntoIterator<Item = String>) -> Result<Child> {
        let mut command = Command::new(program);
        die_with_parent(&mut command);
        for name in self.worker.program.unset {
            command.env_remove(name);
        }
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().with_context(|| format!("{} does not start", program.display()))
    }
}

fn compile(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("{program} does not start"))?;
    ensure!(status.success(), "{program}: {status}");
    Ok(())
}

/// What one slice came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// Operations, or records.
    pub operations: u64,
    /// By the clock of the side itself.
    pub elapsed_ns: u64,
}

impl Slice {
    /// Per second.
    pub fn rate(self) -> f64 {
        self.operations as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// A process that does slices; it ends with its stdin.
struct Process {
    child: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl Process {
    fn new(mut child: Child) -> Result<Self> {
        let requests = child.stdin.take();
        let replies = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Self { child, requests, replies })
    }

    fn say(&mut self, request: &Request) -> Result<()> {
        say(self.requests.as_mut().context("its stdin is open")?, request)
    }

    fn next(&mut self) -> Result<Reply> {
        next(&mut self.replies)
    }

    /// A line for a line, as the bare programs talk: nanoseconds and the checksum.
    fn ask(&mut self, count: u64) -> Result<(u64, u64)> {
        let requests = self.requests.as_mut().context("its stdin is open")?;
        writeln!(requests, "{count}").context("the bare program does not listen")?;
        let mut line = String::new();
        ensure!(self.replies.read_line(&mut line)? > 0, "the bare program ended early");
        let (elapsed_ns, checksum) =
            line.trim().split_once(' ').with_context(|| format!("no answer: {line}"))?;
        Ok((elapsed_ns.parse()?, checksum.parse()?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.requests.take());
        // What it still works on is of no use any more. It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One side of a pair.
pub struct Side<'a> {
    process: Process,
    files: &'a WorkFiles<'a>,
    /// Of the worker.
    job: Option<Job>,
    /// Operations done so far.
    done: u64,
    /// Operations that the bare program does next in a nanosecond, as far as is known.
    pace: Option<f64>,
}

impl<'a> Side<'a> {
    /// pagewise's worker. A job of reads stays open; records are a job each time.
    pub fn worker(programs: &Programs, contest: &Contest, files: &'a WorkFiles<'a>) -> Result<Self> {
        let command = programs.worker.program.command();
        let process = Process::new(programs.start(Path::new(&command[0]), command[1..].iter().cloned())?)?;
        let job = match files {
            WorkFiles::Reads { dataset, table } => Job {
                table_path: text(&table.path)?,
                table_reads: table.len() * u64::from(READS_PER_OP),
                read_bytes: READ_BYTES.0,
                reads_per_op: READS_PER_OP,
                consume: "touch".into(),
                warm_page_tables: 1,
                ..job(contest.method, "random-read", &text(&dataset.path)?, dataset.file_bytes)
            },
            WorkFiles::Append(file) => file.job(contest.method),
        };
        let mut side = Self { process, files, job: Some(job), done: 0, pace: None };
        let Reply::Hello(hello) = side.process.next()? else { bail!("the worker did not greet") };
        ensure!(hello.protocol == PROTOCOL_VERSION, "the worker speaks version {}", hello.protocol);
        if matches!(files, WorkFiles::Reads { .. }) {
            side.open()?;
        }
        Ok(side)
    }

    /// The bare program.
    pub fn bare(programs: &Programs, contest: &Contest, files: &'a WorkFiles<'a>) -> Result<Self> {
        let (program, first) = programs.bare.split_first().context("a command")?;
        let mut arguments: Vec<String> = first.iter().map(|word| text(word)).collect::<Result<_>>()?;
        match (files, contest.work) {
            (WorkFiles::Reads { dataset, table }, _) => {
                arguments.extend([contest.method.to_string(), text(&dataset.path)?, text(&table.path)?]);
            }
            (WorkFiles::Append(file), Work::Append { record_bytes, buffer_bytes }) => {
                arguments.extend(["append".into(), text(file.path())?, text(file.source_path())?]);
                arguments
                    .extend([record_bytes, SOURCE_PERIOD, buffer_bytes].map(|number| number.to_string()));
                arguments.push(contest.method.to_string());
            }
            (WorkFiles::Append(_), Work::Reads) => bail!("records are no reads"),
        }
        let process = Process::new(programs.start(program, arguments)?)?;
        Ok(Self { process, files, job: None, done: 0, pace: None })
    }

    /// About `slice_ns` of reads, or all records of a ring. What was read is compared with what the
    /// file holds.
    pub fn slice(&mut self, slice_ns: u64) -> Result<Slice> {
        let files = self.files;
        match files {
            WorkFiles::Reads { table, .. } => {
                let (slice, checksum) = match self.job {
                    Some(_) => self.go(slice_ns)?,
                    None => self.bare_reads(slice_ns)?,
                };
                self.verify(table, slice.operations, checksum)?;
                Ok(slice)
            }
            WorkFiles::Append(file) => self.records(file),
        }
    }

    fn open(&mut self) -> Result<()> {
        let job = self.job.clone().context("a worker has a job")?;
        self.process.say(&Request::Open(Box::new(job)))?;
        let Reply::Opened { .. } = self.process.next()? else { bail!("the worker did not open") };
        let Reply::Ready { .. } = self.process.next()? else { bail!("the worker did not get ready") };
        Ok(())
    }

    fn go(&mut self, sample_ns: u64) -> Result<(Slice, u64)> {
        self.process.say(&Request::Go(Go { first_operation: self.done, sample_ns, ..Go::default() }))?;
        let Reply::Sample(sample) = self.process.next()? else { bail!("the worker took no sample") };
        let slice = Slice { operations: sample.operations, elapsed_ns: sample.elapsed_ns };
        Ok((slice, u64::from_str_radix(&sample.checksum, 16)?))
    }

    fn bare_reads(&mut self, slice_ns: u64) -> Result<(Slice, u64)> {
        let operations = self.pace.map_or(1.0, |pace| pace * slice_ns as f64).max(1.0) as u64;
        let (elapsed_ns, checksum) = self.process.ask(operations)?;
        self.pace = Some(operations as f64 / elapsed_ns.max(1) as f64);
        Ok((Slice { operations, elapsed_ns }, checksum))
    }

    fn verify(&mut self, table: &Operations, operations: u64, checksum: u64) -> Result<()> {
        let add_up = if self.job.is_some() { AddUp::Weighted } else { AddUp::Alike };
        let expected = table.checksum(add_up, self.done, operations);
        ensure!(checksum == expected, "operations {} on consumed other bytes than the file's", self.done);
        self.done += operations;
        Ok(())
    }

    fn records(&mut self, file: &RingFile) -> Result<Slice> {
        let records = file.records();
        if self.job.is_none() {
            let (elapsed_ns, _) = self.process.ask(records)?;
            return Ok(Slice { operations: records, elapsed_ns });
        }
        self.open()?;
        let (slice, _) = self.go(UNBOUNDED_NS)?;
        ensure!(slice.operations == records, "the worker wrote {} of {records} records", slice.operations);
        self.process.say(&Request::Close)?;
        let Reply::Closed { .. } = self.process.next()? else { bail!("the worker did not close") };
        Ok(slice)
    }
}

fn text(path: &Path) -> Result<String> {
    Ok(path.to_str().with_context(|| format!("{} is no text", path.display()))?.to_string())
}
