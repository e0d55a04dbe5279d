//! Completion of a run file: datasets, rounds, cells added by a search, end record.

mod deadline;
mod eta;
mod start;
mod write_limit;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pagewise_analysis::judge;
use pagewise_analysis::judge::Comparison;
use pagewise_analysis::judge::verdict::Verdict;
use pagewise_analysis::search::schedule::{Ledger, Step};
use pagewise_analysis::search::{self, Next};
use pagewise_host::steps::{RunStep, reached};
use pagewise_host::{BlockDevice, Dataset, DatasetError, files, memory};
use pagewise_model::format::{bytes, counted, duration};
use pagewise_model::plan::FileIdentity;
use pagewise_model::random::mix;
use pagewise_model::run::{Header, ProgramRun, Record, Run};
use pagewise_model::{Bytes, Cell, Content, Plan, Sample, Source};
use pagewise_protocol::without_adopting;
use pagewise_report::curves_door;

use crate::output::{self, progress::Progress};
use crate::plan::estimate;
use crate::series::HostSeries;
use crate::state::State;
use crate::store::RunFile;
use crate::supervise::conditions::ConditionSetter;
use crate::supervise::files::{FileUse, Input, Inputs};
use crate::supervise::programs::Programs;
use crate::supervise::sample::MachineFacts;
use crate::supervise::sample::{Sampler, Stopped};
use deadline::Deadline;
use eta::{Eta, Leaders, ProgressLine};
use write_limit::WriteLimit;

/// A run file to complete.
pub struct RunSession {
    /// Header, as it was begun.
    pub header: Header,
    /// Destination of records.
    pub store: RunFile,
    /// Samples of the run before it was resumed.
    pub earlier: Vec<Sample>,
    /// Runs of the program before the run was resumed.
    pub program_runs: Vec<ProgramRun>,
    /// Duration of the run before it was resumed.
    pub elapsed_before_ns: u64,
    /// The right to run.
    pub state: State,
    /// A random number from which names are derived.
    pub random: u64,
    /// Number of its question and of all, if several follow each other.
    pub question: Option<(usize, usize)>,
    /// When its sampling begins, in nanoseconds since 1970; `None`: at once.
    pub start_at: Option<u64>,
    /// The program whose trace is replayed, if it may be run in turn with the replay.
    pub program: Option<ProgramInTurn>,
    /// The time at which it ends, with the samples that there are; `None`: when all are taken.
    pub ends_at: Option<Instant>,
}

/// A program that is run again before this round, as when it was recorded.
pub type ProgramInTurn = Rc<dyn Fn(&mut State, u32) -> Result<ProgramRun>>;

/// Runs of a program in turn with its replay; the recording is the first.
const PROGRAM_RUNS: u32 = 3;

/// End of the sampling.
pub enum SamplingEnd {
    /// The plan and its search were completed.
    Completed,
    /// The user stopped it.
    Interrupted,
}

impl RunSession {
    /// Take the missing samples, then undo all changes. Returns the path of the run file, too.
    pub fn complete(
        mut self,
        programs: Programs,
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<(SamplingEnd, PathBuf)> {
        let progress = Progress::on_stderr();
        let (deadline, ends_at) = (Deadline::default(), self.ends_at);
        let outcome = thread::scope(|scope| {
            let (_ends, end) = mpsc::channel();
            if let Some(at) = ends_at {
                let deadline = &deadline;
                scope.spawn(move || deadline.watch(at, &end, stop));
            }
            self.measure(programs, patience, (stop, &deadline), &progress)
        });
        progress.clear();
        let swept = self.state.sweep();
        let path = self.store.path().to_path_buf();
        for left in swept.iter().flat_map(|swept| &swept.left) {
            output::say(format_args!("warning: {left}; try it again with: pagewise clean"));
        }
        outcome.and_then(|ended| swept.map(|_| (ended, path)))
    }

    fn measure(
        &mut self,
        programs: Programs,
        patience: Duration,
        (stop, deadline): (&AtomicBool, &Deadline),
        progress: &Progress,
    ) -> Result<SamplingEnd> {
        let plan = self.header.plan.clone();
        let earlier = std::mem::take(&mut self.earlier);
        let ledger = Ledger::new(&plan, &earlier);
        let write_limit = WriteLimit::of(&plan, &earlier);
        let (taken, spent_ns) = (earlier.len() as u64, earlier.iter().map(|sample| sample.took_ns).sum());
        // What comes next depends on them only if that is not known beforehand.
        let mut run = Run::of(self.header.clone(), if plan.is_fixed() { Vec::new() } else { earlier });
        run.program_runs = std::mem::take(&mut self.program_runs);
        let mut next = search::next(&run, &ledger, curves_door::next);
        let block = if let Next::Take(step) = &next { step.block } else { 0 };
        let Some(inputs) = self.inputs(block, stop, progress)? else {
            return Ok(SamplingEnd::Interrupted);
        };
        let setting = self.setting(&plan, programs, patience)?;
        let start = match self.start_at.map(|asked_unix_ns| start::wait_until(asked_unix_ns, stop)) {
            Some(None) => return Ok(SamplingEnd::Interrupted),
            start => start.flatten(),
        };
        // Times of samples count from here, and a record may take long to be written.
        let started = Instant::now();
        if let Some(start) = start {
            self.store.append(&Record::Began(start))?;
        }
        let series = HostSeries::start(started, self.elapsed_before_ns)?;
        let sampler = Sampler::new(&plan, inputs, setting, stop);
        self.store.append(&Record::Checks(sampler.check_context()))?;
        let mut rounds = Rounds {
            ledger,
            taken,
            spent_ns,
            write_limit,
            ended_by: None,
            run,
            block,
            session: self,
            sampler,
            series,
            started,
            stop,
            deadline,
            progress,
            eta: Eta::default(),
            has_timed_a_round: taken > 0,
            leaders: Leaders::default(),
            repeated: (0, None),
        };
        loop {
            match next {
                Next::Done => break,
                Next::Add(cells) => rounds.add(cells)?,
                Next::Take(step) => {
                    if let SamplingEnd::Interrupted = rounds.take(&step)? {
                        return Ok(SamplingEnd::Interrupted);
                    }
                    if rounds.ended_by.is_some() {
                        break;
                    }
                }
            }
            next = search::next(&rounds.run, &rounds.ledger, curves_door::next);
        }
        if let Some(EndedBy::Time) = rounds.ended_by {
            rounds.say_out_of_time();
        } else if let Some(EndedBy::Written(limit)) = rounds.ended_by {
            progress.clear();
            output::say(format_args!(
                "note: {} stopped before its rounds were complete: its samples wrote {}, and the limit is {}: continue with --max-writes {}",
                rounds.run.header.plan.question,
                bytes(rounds.write_limit.written()),
                bytes(limit),
                doubled(limit)
            ));
        } else if let Some(limit) = rounds.limit_that_ended_it() {
            progress.clear();
            output::say(format_args!(
                "note: {} stopped at the write limit of {}, before all methods were decided: continue with --max-writes {}",
                rounds.run.header.plan.question,
                bytes(limit),
                doubled(limit)
            ));
        }
        let (samples, elapsed_ns) = (rounds.taken, rounds.elapsed_ns());
        rounds.note_seconds()?;
        drop(rounds);
        self.store.append(&Record::End {
            samples,
            elapsed_ns,
            supervisor_peak_bytes: memory::own_peak_bytes(),
        })?;
        reached(RunStep::EndRecorded);
        Ok(SamplingEnd::Completed)
    }

    fn setting(&mut self, plan: &Plan, programs: Programs, patience: Duration) -> Result<MachineFacts> {
        let new_path = match (&plan.source, plan.largest_written()) {
            (Source::Dataset { directory }, Some(_)) => {
                Some(self.state.reserve(Path::new(directory), mix(!self.random))?)
            }
            _ => None,
        };
        let environment = &self.header.environment;
        let path = Path::new(plan.source.path());
        let device = BlockDevice::behind(path).ok();
        Ok(MachineFacts {
            programs,
            patience,
            page_bytes: environment.page_bytes,
            cpus: environment.cpus,
            answer_ns: environment.worker_answer_ns.unwrap_or(0),
            direct_alignment: environment.direct_alignment_bytes.unwrap_or(environment.page_bytes),
            setter: ConditionSetter::new(plan, path, device.clone(), self.random),
            device,
            new_path,
        })
    }

    /// Open the user's file, or make the datasets of a block, and make the files of actors; `None`:
    /// stopped.
    fn inputs(&mut self, block: u32, stop: &AtomicBool, progress: &Progress) -> Result<Option<Inputs>> {
        let plan = &self.header.plan;
        let mut inputs = Inputs::default();
        let datasets = match &plan.source {
            Source::Dataset { .. } => plan.datasets(),
            Source::File { .. } => {
                let input = own_files(&plan.source)?;
                write_back(&input)?;
                inputs.push(FileUse::Measured, input);
                Vec::new()
            }
        };
        let measured = datasets.into_iter().map(|(content, size)| (content, size, FileUse::Measured));
        let of_actors = [FileUse::ReadByActors, FileUse::WrittenByActors].into_iter().flat_map(|of_use| {
            let sizes = plan.actor_files(of_use == FileUse::WrittenByActors);
            sizes.into_iter().map(move |size| (Content::Random, size, of_use))
        });
        for (index, (content, Bytes(file_bytes), of_use)) in measured.chain(of_actors).enumerate() {
            let number = u64::from(block) << 32 | index as u64;
            let directory = plan.source.directory().context("the plan has no directory for its files")?;
            let path = self.state.reserve(Path::new(directory), mix(self.random ^ number))?;
            let what = match of_use {
                FileUse::Measured => "writing the dataset",
                FileUse::ReadByActors | FileUse::WrittenByActors => "writing the file of the actor",
            };
            progress.bytes(what, file_bytes);
            let content_seed = mix(plan.seed ^ number);
            let mut show = |done| progress.bytes_done(done);
            match Dataset::create(&path, file_bytes, content, content_seed, &mut show, stop) {
                Ok(dataset) => {
                    let input = Input::dataset(dataset)?;
                    write_back(&input)?;
                    inputs.push(of_use, input);
                }
                Err(DatasetError::Stopped { .. }) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(inputs))
    }
}

/// Open the user's file, or those of a replay. Their identities in the plan are kept: the first
/// sample detects changes since then.
fn own_files(source: &Source) -> Result<Input> {
    let is_one = source.own_files().count() == 1;
    let open = |(path, identity): (&str, &FileIdentity)| -> Result<(PathBuf, File, FileIdentity)> {
        let (file, found) = files::identify(Path::new(path))?;
        ensure!(is_one || found == *identity, "{path} was replaced or changed since the run was planned");
        Ok((PathBuf::from(path), file, identity.clone()))
    };
    let mut files = source.own_files().map(open);
    let (path, file, identity) = files.next().context("the user's file has no name")??;
    let others = files.collect::<Result<Vec<_>>>()?;
    Ok(Input::of_user(path, file, identity)?.with_others(others)?)
}

/// Write back dirty pages of any process on the filesystem: later they would be written during
/// measurements.
fn write_back(input: &Input) -> Result<()> {
    rustix::fs::syncfs(input.file()).context("dirty pages of the filesystem cannot be written back")
}

/// Reason that a run ends before its samples are complete.
#[derive(Clone, Copy, Debug)]
enum EndedBy {
    /// Another sample would have exceeded these bytes that may be written.
    Written(Bytes),
    /// The end of its time.
    Time,
}

/// Rounds of samples, and their inputs.
struct Rounds<'a> {
    session: &'a mut RunSession,
    sampler: Sampler<'a>,
    series: HostSeries,
    started: Instant,
    stop: &'a AtomicBool,
    deadline: &'a Deadline,
    progress: &'a Progress,
    ledger: Ledger,
    /// The block whose datasets there are.
    block: u32,
    /// Samples of the run so far.
    taken: u64,
    /// Time of the rounds.
    spent_ns: u64,
    write_limit: WriteLimit,
    ended_by: Option<EndedBy>,
    /// The run so far, without its samples if they do not decide what comes next.
    run: Run,
    eta: Eta,
    /// The first round is over, or was taken in another session.
    has_timed_a_round: bool,
    leaders: Leaders,
    /// Samples that were taken again, and the reason of the last.
    repeated: (u64, Option<&'static str>),
}

impl Rounds<'_> {
    fn elapsed_ns(&self) -> u64 {
        self.session.elapsed_before_ns.saturating_add(self.started.elapsed().as_nanos() as u64)
    }

    /// The bytes that may be written, if without them there would be further rounds of something
    /// undecided.
    fn limit_that_ended_it(&self) -> Option<Bytes> {
        let limit = self.run.header.plan.max_written_bytes?;
        let mut unlimited = self.run.clone();
        unlimited.header.plan.max_written_bytes = None;
        let goes_on = matches!(search::next(&unlimited, &self.ledger, curves_door::next), Next::Take(_));
        let undecided =
            |comparison: &Comparison| matches!(comparison.verdict, Verdict::Close | Verdict::Open);
        (goes_on && judge(&self.run).comparisons.iter().any(undecided)).then_some(limit)
    }

    /// Take the samples of a step that are missing.
    fn take(&mut self, step: &Step) -> Result<SamplingEnd> {
        let plan = self.run.header.plan.clone();
        if step.block != self.block {
            self.sampler.set_inputs(Inputs::default());
            let Some(inputs) = self.session.inputs(step.block, self.stop, self.progress)? else {
                return Ok(SamplingEnd::Interrupted);
            };
            self.sampler.set_inputs(inputs);
            self.block = step.block;
        }
        for round in step.rounds.clone() {
            let ended = self.run_program(round)?;
            if self.ended_by.is_some() || matches!(ended, SamplingEnd::Interrupted) {
                return Ok(ended);
            }
            self.eta.left_ns = self.left_ns(&plan);
            let are_over = plan.cells.iter().all(|cell| self.ledger.missing_of(&plan, cell) == 0);
            self.eta.budget_ns = self.run.budget_ns().filter(|_| are_over);
            for (index, round) in step.order(&plan, round) {
                let cell = &plan.cells[index];
                self.show(&plan, cell);
                while let Some(attempt) = self.ledger.next_attempt(cell, round) {
                    self.ended_by = self.write_limit.before(&plan, cell).map(EndedBy::Written);
                    if self.ended_by.is_some() {
                        return Ok(SamplingEnd::Completed);
                    }
                    let (started_ns, began) = (self.elapsed_ns(), Instant::now());
                    let taken = self.sampler.take(cell, round, &mut self.session.state);
                    let Ok(outcome) = taken.map_err(|Stopped| ()) else {
                        return Ok(self.stopped());
                    };
                    if self.stop.load(Ordering::Relaxed) {
                        // The signal may have reached the worker too, as with Ctrl-C.
                        return Ok(self.stopped());
                    }
                    let took_ns = began.elapsed().as_nanos() as u64;
                    self.eta.passed_ns += took_ns;
                    let sample = Sample {
                        attempt,
                        block: step.block,
                        started_ns,
                        took_ns,
                        ..Sample::of(cell, round, outcome)
                    };
                    self.leaders.note(cell, &sample);
                    self.write_limit.note(&plan, cell, &sample);
                    reached(RunStep::SampleTaken);
                    self.note(&plan, sample)?;
                    reached(RunStep::SampleRecorded);
                }
                let estimated_ns = estimate::sample_ns(&plan, cell);
                self.eta.done_ns += estimated_ns;
                self.eta.left_ns = self.eta.left_ns.saturating_sub(estimated_ns);
            }
            if !std::mem::replace(&mut self.has_timed_a_round, true)
                && let Some(overrun) = self.eta.overrun(&plan, self.spent_ns)
            {
                self.progress.clear();
                output::say(overrun);
            }
        }
        Ok(SamplingEnd::Completed)
    }

    /// Run the program whose trace is replayed before the second round, and before the third.
    fn run_program(&mut self, round: u32) -> Result<SamplingEnd> {
        let Some(program) = self.session.program.clone() else { return Ok(SamplingEnd::Completed) };
        let is_known = self.run.program_runs.iter().any(|known| known.round == round);
        if is_known || !(1..PROGRAM_RUNS).contains(&round) {
            return Ok(SamplingEnd::Completed);
        }
        if self.deadline.has_come() {
            return Ok(self.stopped());
        }
        self.progress.clear();
        let program_run = without_adopting(|| program(&mut self.session.state, round))?;
        if self.stop.load(Ordering::Relaxed) && !self.deadline.has_come() {
            return Ok(SamplingEnd::Interrupted);
        }
        self.session.store.append(&Record::Program(program_run))?;
        self.run.program_runs.push(program_run);
        Ok(SamplingEnd::Completed)
    }

    /// The end of the sampling, once it is asked to stop.
    fn stopped(&mut self) -> SamplingEnd {
        if !self.deadline.takes_back(self.stop) {
            return SamplingEnd::Interrupted;
        }
        self.ended_by = Some(EndedBy::Time);
        SamplingEnd::Completed
    }

    fn say_out_of_time(&self) {
        self.progress.clear();
        let plan = &self.run.header.plan;
        let missing: u64 = plan.cells.iter().map(|cell| self.ledger.missing_of(plan, cell)).sum();
        let (repeated, last) = self.repeated;
        let why = last.map_or(String::new(), |reason| {
            let were = if repeated == 1 { "was" } else { "were" };
            format!("; {} {were} taken again, the last one as {reason}", counted(repeated, "sample"))
        });
        output::say(format_args!(
            "note: the time of {} is over after {}: it is judged by the {} that there are, and {} of its first rounds are missing{why}",
            plan.question,
            duration(self.elapsed_ns()),
            counted(self.taken, "sample"),
            counted(missing, "sample")
        ));
    }

    /// Estimated time of what is known to remain: samples of the first rounds, and the search until
    /// it adds cells.
    fn left_ns(&self, plan: &Plan) -> u64 {
        let of_cell =
            |cell| estimate::sample_ns(plan, cell).saturating_mul(self.ledger.missing_of(plan, cell));
        let samples = plan.cells.iter().map(of_cell);
        let has_searched = plan.cells.len() > self.session.header.plan.cells.len();
        let search = if has_searched { 0 } else { estimate::search_ns(plan) };
        samples.fold(search, u64::saturating_add)
    }

    /// Show what is measured and what is left.
    fn show(&self, plan: &Plan, cell: &Cell) {
        let status = ProgressLine {
            question: self.session.question,
            name: &plan.question,
            cell: &format!("{} {} ({})", cell.conditions.workload(), cell.method, cell.conditions.cache),
            spent_ns: self.spent_ns,
            left_ns: self.eta.left_ns(plan, self.spent_ns),
            at_most: plan.budget.is_some(),
            leader: self.leaders.of(cell),
            repeated: self.repeated,
        };
        self.progress.samples(status.percent(), &status.text());
    }

    fn note(&mut self, plan: &Plan, sample: Sample) -> Result<()> {
        if self.ledger.note(plan, &sample) {
            let reason = sample.failures().first().map(|failure| failure.kind.name());
            self.repeated = (self.repeated.0 + 1, reason);
        }
        self.taken += 1;
        self.spent_ns = self.spent_ns.saturating_add(sample.took_ns);
        if !self.run.header.plan.is_fixed() {
            self.run.samples.push(sample.clone());
        }
        self.session.store.append(&Record::Sample(Box::new(sample)))?;
        self.note_seconds()
    }

    fn note_seconds(&mut self) -> Result<()> {
        let seconds = self.series.take();
        if seconds.is_empty() {
            return Ok(());
        }
        self.session.store.append(&Record::Seconds { seconds })
    }

    /// Add cells to the plan.
    fn add(&mut self, cells: Vec<Cell>) -> Result<()> {
        self.session.store.append(&Record::Extended { cells: cells.clone() })?;
        self.run.header.plan.cells.extend(cells);
        Ok(())
    }
}

/// The limit that is proposed after this one.
fn doubled(limit: Bytes) -> Bytes {
    Bytes(limit.0.saturating_mul(2))
}

#[cfg(test)]
mod tests;
