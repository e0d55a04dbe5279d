//! Run files: append-only lines, one record each, written as a run goes.
//!
//! A line is `{"check":"…","record":{…}}`. The check is FNV-1a over the exact text of the record,
//! so a digit that changed on disk is detected and not reported as a result. A killed run leaves a
//! last line without a newline: it is dropped, and the run can be resumed. Any other fault is an
//! error with its line number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::cell::Cell;
use crate::check_context::CheckContext;
use crate::counters::HostSecond;
use crate::environment::Environment;
use crate::plan::Plan;
use crate::sample::Sample;
use crate::workers::WorkerFound;

/// Version of run files.
pub const SCHEMA_VERSION: u32 = 1;

/// One line of a run file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    /// The first line.
    Header(Box<Header>),
    /// The context of the checks for the samples after it; one for each process that takes samples.
    Checks(CheckContext),
    /// A sample, written as soon as it is taken.
    Sample(Box<Sample>),
    /// The host, about once a second.
    Seconds {
        /// In chronological order.
        seconds: Vec<HostSecond>,
    },
    /// Cells that a search added; rounds of them follow.
    Extended {
        /// In the order of the plan.
        cells: Vec<Cell>,
    },
    /// The program whose trace is replayed, run again between rounds.
    Program(ProgramRun),
    /// Sampling began here, at a time that was asked for.
    Began(RunStart),
    /// The run was continued here.
    Resumed {
        /// Seconds since 1970.
        unix_s: u64,
    },
    /// The last line of a complete run.
    End {
        /// Samples in the file.
        samples: u64,
        /// Duration of the run, without interruptions.
        elapsed_ns: u64,
        /// Peak resident memory of the supervisor.
        supervisor_peak_bytes: Option<u64>,
    },
}

/// A run of the program whose trace is replayed, between rounds of the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRun {
    /// The round that followed.
    pub round: u32,
    /// Duration.
    pub wall_ns: u64,
    /// Duration of the shortest of other runs, which nobody watched; `None`: there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwatched_ns: Option<u64>,
    /// Bytes that came from the device for its reads of the file, counted as in the recording;
    /// `None`: not seen.
    pub device_bytes: Option<u64>,
}

/// Start of the sampling at a time that was asked for, by the wall clock of the machine. Times of
/// samples count from it. Nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunStart {
    /// When it was to begin.
    pub asked_unix_ns: u64,
    /// When everything was prepared, its dataset too.
    pub prepared_unix_ns: u64,
    /// When it began.
    pub began_unix_ns: u64,
    /// True if a program kept the clock in step with a reference; `None`: unknown.
    pub is_synchronised: Option<bool>,
    /// The most that the clock was off, by the kernel's estimate.
    pub clock_error_ns: Option<u64>,
}

impl RunStart {
    /// Time by which its preparation took too long; 0 if it was in time.
    pub fn late_ns(&self) -> u64 {
        self.prepared_unix_ns.saturating_sub(self.asked_unix_ns)
    }
}

/// Facts known before the first sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// The plan.
    pub plan: Plan,
    /// The environment.
    pub environment: Environment,
    /// Workers other than pagewise itself that the plan needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerFound>,
    /// A command that replaced pagewise's own worker, for tests. Results of such a run are marked
    /// wherever they are shown.
    pub worker_command: Option<String>,
    /// The words of the command line that began it; empty in files of an older pagewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub typed: Vec<String>,
    /// Labels that its user gave it, and the job of a scheduler that it is a part of.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl Header {
    /// The header of a run of `plan` in an unknown environment, with pagewise's own worker.
    pub fn of(plan: Plan) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            plan,
            environment: Environment::default(),
            workers: Vec::new(),
            worker_command: None,
            typed: Vec::new(),
            labels: BTreeMap::new(),
        }
    }
}

/// A whole run file.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// First line.
    pub header: Header,
    /// Contexts of the checks, each with the number of samples before it; empty for a file of an
    /// older pagewise.
    pub checks: Vec<(usize, CheckContext)>,
    /// Samples in chronological order.
    pub samples: Vec<Sample>,
    /// The host, about once a second.
    pub seconds: Vec<HostSecond>,
    /// Runs of the program whose trace is replayed.
    pub program_runs: Vec<ProgramRun>,
    /// Start of its last session, if a time was asked for.
    pub start: Option<RunStart>,
    /// Duration, if it was completed.
    pub elapsed_ns: Option<u64>,
    /// Length of the intact part; what follows is a torn line.
    pub intact_bytes: u64,
    /// Number of resumptions.
    pub resumptions: u32,
}

/// Reason that a run file cannot be read, with the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The file is empty.
    #[error("line 1: the file is empty: it has no header")]
    Empty,
    /// The first line is not a header.
    #[error("line 1: not a header of a pagewise run: {0}")]
    NoHeader(String),
    /// The file was written by another version.
    #[error("line 1: the file has schema {found}: this pagewise reads schema {SCHEMA_VERSION}")]
    Schema {
        /// The version in the file.
        found: u64,
    },
    /// A line cannot be parsed.
    #[error("line {line}: not a record of a run: {reason}")]
    Malformed {
        /// From 1.
        line: usize,
        /// The parser's message.
        reason: String,
    },
    /// A line can be parsed but differs from what was written.
    #[error("line {line}: the record does not match its check: the file was changed after it was written")]
    Check {
        /// From 1.
        line: usize,
    },
    /// A number is outside the limits of a run.
    #[error("line {line}: {reason}")]
    Beyond {
        /// From 1.
        line: usize,
        /// The field and its limit.
        reason: String,
    },
    /// A record is out of order.
    #[error("line {line}: {reason}")]
    Misplaced {
        /// From 1.
        line: usize,
        /// The reason.
        reason: String,
    },
}

/// Start of the JSON of a sample's record.
const SAMPLE: &str = r#"{"kind":"sample","#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunLine<'a> {
    check: String,
    #[serde(borrow)]
    record: &'a RawValue,
}

/// FNV-1a, 64 bits, as 16 digits: detects accidents, not intent.
pub fn check_of(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The line of a record whose JSON is `record`, with its check and its newline.
pub fn line_of(record: &str) -> String {
    format!("{{\"check\":\"{}\",\"record\":{record}}}\n", check_of(record))
}

impl Record {
    /// The line, with its newline.
    pub fn to_line(&self) -> String {
        line_of(&serde_json::to_string(self).expect("records have string keys only"))
    }

    fn from_line(text: &str, line: usize) -> Result<Self, RunError> {
        let malformed = |error: serde_json::Error| RunError::Malformed { line, reason: error.to_string() };
        let parsed: RunLine<'_> = serde_json::from_str(text).map_err(malformed)?;
        if check_of(parsed.record.get()) != parsed.check {
            return Err(RunError::Check { line });
        }
        if line == 1 {
            let found = schema_of(parsed.record.get());
            if let Some(found) = found.filter(|found| *found != u64::from(SCHEMA_VERSION)) {
                return Err(RunError::Schema { found });
            }
        }
        let record = parsed.record.get();
        if record.starts_with(SAMPLE) {
            // In one pass, where a tagged enum takes two; nearly every line is one of these.
            return serde_json::from_str(record).map(Record::Sample).map_err(malformed);
        }
        serde_json::from_str(record).map_err(malformed)
    }
}

/// Threads that parse a large file, since parsing takes most of the time of a report.
const THREADS: usize = 4;
/// Fewer lines do not pay for another thread.
const LINES_PER_THREAD: usize = 500;

/// Parse some lines; the first of them has the number `first`.
fn records(lines: &[&[u8]], first: usize) -> Vec<Result<Record, RunError>> {
    let read = |(number, line): (usize, &&[u8])| {
        let text = std::str::from_utf8(line)
            .map_err(|error| RunError::Malformed { line: number, reason: error.to_string() })?;
        Record::from_line(text, number)
    };
    std::thread::scope(|scope| {
        let parts = lines.chunks(LINES_PER_THREAD).enumerate();
        let threads: Vec<_> = parts
            .map(|(part, lines)| {
                let numbered = (first + part * LINES_PER_THREAD..).zip(lines);
                scope.spawn(move || numbered.map(read).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("reading a line does not panic")).collect()
    })
}

fn schema_of(record: &str) -> Option<u64> {
    serde_json::from_str::<serde_json::Value>(record).ok()?.get("schema")?.as_u64()
}

impl Run {
    /// A run that has taken `samples` and was not completed.
    pub fn of(header: Header, samples: Vec<Sample>) -> Self {
        Self {
            header,
            checks: Vec::new(),
            samples,
            seconds: Vec::new(),
            program_runs: Vec::new(),
            start: None,
            elapsed_ns: None,
            intact_bytes: 0,
            resumptions: 0,
        }
    }

    /// Time that all of its samples may take, from what those of the first rounds took; `None` for
    /// a fixed number of rounds.
    pub fn budget_ns(&self) -> Option<u64> {
        let Plan { budget, .. } = self.header.plan;
        let first = self.samples.iter().filter(|sample| sample.round < self.header.plan.first_rounds());
        let first_ns = first.map(|sample| sample.took_ns).fold(0, u64::saturating_add);
        budget.map(|budget| budget.ns(first_ns))
    }

    /// Parse the text of a run file.
    pub fn parse(text: &[u8]) -> Result<Self, RunError> {
        let intact = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if text.is_empty() {
            return Err(RunError::Empty);
        }
        if intact == 0 {
            return Err(RunError::NoHeader("its only line is torn".to_string()));
        }
        let lines: Vec<&[u8]> = text[..intact - 1].split(|byte| *byte == b'\n').collect();
        let mut run: Option<Run> = None;
        // One block of lines at a time, so that the cost of a faulty line is bounded and the first
        // one is reported.
        for (index, chunk) in lines.chunks(THREADS * LINES_PER_THREAD).enumerate() {
            let first = index * THREADS * LINES_PER_THREAD + 1;
            for (number, record) in (first..).zip(records(chunk, first)) {
                let record = match record {
                    Err(RunError::Malformed { line: 1, reason }) => return Err(RunError::NoHeader(reason)),
                    other => other?,
                };
                match &mut run {
                    None => run = Some(Self::begin(record, intact as u64)?),
                    Some(run) => run.add(record, number)?,
                }
            }
        }
        run.ok_or(RunError::Empty)
    }

    fn begin(record: Record, intact_bytes: u64) -> Result<Self, RunError> {
        match record {
            Record::Header(header) => {
                header.plan.check_limits().map_err(|reason| RunError::Beyond { line: 1, reason })?;
                Ok(Run { intact_bytes, ..Run::of(*header, Vec::new()) })
            }
            _ => Err(RunError::NoHeader("the file begins with another record".to_string())),
        }
    }

    fn add(&mut self, record: Record, line: usize) -> Result<(), RunError> {
        let misplaced = |reason: &str| RunError::Misplaced { line, reason: reason.to_string() };
        let beyond = |reason| RunError::Beyond { line, reason };
        if self.elapsed_ns.is_some() {
            return Err(misplaced("a record after the end of the run"));
        }
        match record {
            Record::Header(_) => return Err(misplaced("a second header")),
            Record::Sample(sample) => {
                self.header.plan.check_sample(&sample).map_err(beyond)?;
                self.samples.push(*sample);
            }
            Record::Checks(context) => {
                context.check_limits().map_err(beyond)?;
                self.checks.push((self.samples.len(), context));
            }
            Record::Seconds { seconds } => self.seconds.extend(seconds),
            Record::Extended { cells } => {
                cells.iter().try_for_each(|cell| cell.conditions.check_limits()).map_err(beyond)?;
                self.header.plan.cells.extend(cells);
            }
            Record::Program(run) => self.program_runs.push(run),
            Record::Began(start) => self.start = Some(start),
            Record::Resumed { .. } => self.resumptions += 1,
            Record::End { samples, elapsed_ns, .. } => {
                let held = self.samples.len() as u64;
                if samples != held {
                    let what = if held < samples { "lines are missing" } else { "lines were added" };
                    return Err(misplaced(&format!(
                        "the run ended with {samples} samples, the file holds {held}: {what}"
                    )));
                }
                self.elapsed_ns = Some(elapsed_ns);
            }
        }
        Ok(())
    }

    /// Context of the checks for the sample at `index`; `None` if the file does not hold it.
    pub fn check_context(&self, index: usize) -> Option<&CheckContext> {
        self.checks.iter().rev().find(|(first, _)| *first <= index).map(|(_, context)| context)
    }

    /// True if the run was completed.
    pub fn is_complete(&self) -> bool {
        self.elapsed_ns.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Outcome;

    fn header() -> Record {
        Record::Header(Box::new(Header::of(Plan { sample_ns: 1, retakes: 0, ..Plan::of(Vec::new()) })))
    }

    fn sample(round: u32) -> Record {
        Record::Sample(Box::new(Sample {
            cell: "cell".into(),
            round,
            attempt: 0,
            block: 0,
            started_ns: 0,
            took_ns: 0,
            outcome: Outcome::Unavailable { reason: "none here".into() },
        }))
    }

    fn end(samples: u64) -> Record {
        Record::End { samples, elapsed_ns: 9, supervisor_peak_bytes: None }
    }

    fn text(records: &[Record]) -> String {
        records.iter().map(Record::to_line).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let program = ProgramRun { round: 1, wall_ns: 2, unwatched_ns: Some(1), device_bytes: Some(3) };
        let start = RunStart {
            asked_unix_ns: 5,
            prepared_unix_ns: 7,
            began_unix_ns: 8,
            is_synchronised: Some(true),
            clock_error_ns: None,
        };
        let text = text(&[
            header(),
            sample(0),
            Record::Resumed { unix_s: 3 },
            Record::Program(program),
            Record::Began(start),
            sample(1),
            end(2),
        ]);
        let run = Run::parse(text.as_bytes()).expect("intact");
        assert_eq!(run.program_runs, [program]);
        assert_eq!((run.start, start.late_ns()), (Some(start), 2));
        assert_eq!((run.samples.len(), run.elapsed_ns, run.resumptions), (2, Some(9), 1));
        assert_eq!(run.intact_bytes, text.len() as u64);
    }

    fn context() -> CheckContext {
        CheckContext {
            page_bytes: 4096,
            cpus: 2,
            answer_ns: 1,
            forgives_answers: true,
            sparse_or_compressed_bytes: false,
            memory_backed: false,
            writes_through: true,
            readahead_bytes: None,
            beating: None,
        }
    }

    #[test]
    fn samples_have_the_checks_of_the_process_that_took_them() {
        let context = context();
        let again = CheckContext { sparse_or_compressed_bytes: true, ..context };
        let records = [
            header(),
            sample(0),
            Record::Checks(context),
            sample(1),
            Record::Resumed { unix_s: 3 },
            Record::Checks(again),
            sample(2),
        ];
        let run = Run::parse(text(&records).as_bytes()).expect("intact");
        assert_eq!(
            [0, 1, 2].map(|index| run.check_context(index).copied()),
            [None, Some(context), Some(again)]
        );
        let pages = text(&[header(), Record::Checks(CheckContext { page_bytes: 0, ..context })]);
        let refused = Run::parse(pages.as_bytes()).expect_err("no page").to_string();
        assert_eq!(refused, "line 2: pages of 0 bytes: no machine has them");
    }

    #[test]
    fn a_torn_last_line_is_dropped_wherever_it_was_cut() {
        let whole = text(&[header(), sample(0)]);
        let torn = sample(1).to_line();
        for cut in 1..torn.len() {
            let text = format!("{whole}{}", &torn[..cut]);
            let run = Run::parse(text.as_bytes()).expect("torn");
            assert_eq!((run.samples.len(), run.intact_bytes), (1, whole.len() as u64));
        }
    }

    #[test]
    fn a_changed_digit_is_noticed() {
        let text = text(&[header(), sample(3), sample(4)]).replace("\"round\":3", "\"round\":5");
        assert_eq!(Run::parse(text.as_bytes()), Err(RunError::Check { line: 2 }));
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        let line = |records: &[Record]| {
            Run::parse(text(records).as_bytes()).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(Run::parse(b"").map(|_| ()), Err(RunError::Empty));
        assert!(
            Run::parse(b"hello\n").expect_err("no header").to_string().starts_with("line 1: not a header")
        );
        assert!(line(&[sample(0)]).expect_err("no header").starts_with("line 1"));
        assert!(line(&[header(), header()]).expect_err("two headers").starts_with("line 2: a second header"));
        assert!(line(&[header(), end(1)]).expect_err("lines missing").contains("lines are missing"));
        let added = line(&[header(), sample(0), sample(0), end(1)]).expect_err("lines added");
        assert!(added.ends_with("the file holds 2: lines were added"), "{added}");
        assert!(line(&[header(), end(0), sample(0)]).expect_err("behind the end").starts_with("line 3"));
        let garbage = format!("{}garbage\n{}", header().to_line(), sample(0).to_line());
        assert!(
            Run::parse(garbage.as_bytes())
                .expect_err("garbage")
                .to_string()
                .starts_with("line 2: not a record")
        );
        let mut not_text = header().to_line().into_bytes();
        not_text.extend([0xff, 0xfe, b'\n']);
        assert!(Run::parse(&not_text).expect_err("no text").to_string().starts_with("line 2"));
    }

    #[test]
    fn numbers_that_no_run_has_are_refused() {
        let refused =
            |records: &[Record]| Run::parse(text(records).as_bytes()).expect_err("beyond").to_string();
        let planned = |change: &dyn Fn(&mut Plan)| {
            let Record::Header(mut header) = header() else { unreachable!() };
            change(&mut header.plan);
            Record::Header(header)
        };
        let rounds = refused(&[planned(&|plan| plan.rounds = u32::MAX)]);
        assert_eq!(rounds, "line 1: 4294967295 rounds: a run has at most 10000");
        assert!(refused(&[planned(&|plan| plan.retakes = u32::MAX)]).contains("repetitions of a sample"));
        assert!(refused(&[planned(&|plan| plan.sample_ns = u64::MAX)]).contains("samples of"));
        let round = refused(&[header(), sample(6), sample(7)]);
        assert_eq!(round, "line 3: a sample of round 7: the plan has 7 rounds, counted from 0");
        let Record::Sample(mut again) = sample(0) else { unreachable!() };
        again.attempt = u32::MAX;
        assert!(refused(&[header(), Record::Sample(again)]).starts_with("line 2: attempt 4294967295"));
    }

    #[test]
    fn another_schema_is_named() {
        let record = r#"{"kind":"header","schema":7,"something":"new"}"#;
        let text = format!("{{\"check\":\"{}\",\"record\":{record}}}\n", check_of(record));
        assert_eq!(Run::parse(text.as_bytes()), Err(RunError::Schema { found: 7 }));
    }
}
