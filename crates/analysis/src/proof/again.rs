//! Today's checks, applied to the samples of a run file.
//!
//! The validity of a sample follows from its cell, its measurement, its evidence and the context of
//! the checks, all of which a run file holds. A corrected check therefore applies to old runs too.
//! If the file lacks the context, as files of an older pagewise do, the failures stored in it
//! apply. A sample that broke or was refused has nothing to check.

use std::borrow::Cow;
use std::collections::HashMap;

use pagewise_model::run::Run;
use pagewise_model::{Cell, Failure, Outcome, Sample};

use super::checks::failures;

/// A run with today's checks applied.
#[derive(Clone, Debug)]
pub struct Again<'a> {
    /// The run; borrowed if every check has the same result as before.
    pub run: Cow<'a, Run>,
    /// Completed samples whose failures are those of the pagewise that measured them.
    pub as_measured: usize,
    /// Samples that are valid now and were not.
    pub valid_now: usize,
    /// Samples that are invalid now and were not.
    pub invalid_now: usize,
}

/// Threads that check the samples of a large run.
const THREADS: usize = 4;
/// Fewer do not pay for another thread.
const SAMPLES_PER_THREAD: usize = 500;

/// Apply today's checks to all samples for which the run holds the context.
pub fn again(run: &Run) -> Again<'_> {
    let cells: HashMap<String, &Cell> = run.header.plan.cells.iter().map(|cell| (cell.id(), cell)).collect();
    let mut again = Again { run: Cow::Borrowed(run), as_measured: 0, valid_now: 0, invalid_now: 0 };
    let per_thread = run.samples.len().div_ceil(THREADS).max(SAMPLES_PER_THREAD);
    let parts: Vec<Vec<CheckedSample>> = std::thread::scope(|scope| {
        let check = |(index, sample): (usize, &Sample)| judged(run, &cells, index, sample);
        let threads: Vec<_> = run
            .samples
            .chunks(per_thread)
            .enumerate()
            .map(|(part, samples)| {
                let numbered = (part * per_thread..).zip(samples);
                scope.spawn(move || numbered.map(check).collect())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a check does not panic")).collect()
    });
    for (index, judged) in parts.into_iter().flatten().enumerate() {
        match judged {
            CheckedSample::NotTaken | CheckedSample::Alike => {}
            CheckedSample::AsMeasured => again.as_measured += 1,
            CheckedSample::Otherwise(failures) => again.replace(index, failures),
        }
    }
    again
}

/// Result of today's checks of one sample.
enum CheckedSample {
    /// The sample has no measurement to check.
    NotTaken,
    /// The file lacks the context of the checks.
    AsMeasured,
    /// The same result as when it was measured.
    Alike,
    /// Other failures than those in the file.
    Otherwise(Vec<Failure>),
}

fn judged(run: &Run, cells: &HashMap<String, &Cell>, index: usize, sample: &Sample) -> CheckedSample {
    let Outcome::Taken { measurement, evidence, failures: before } = &sample.outcome else {
        return CheckedSample::NotTaken;
    };
    let (Some(context), Some(cell)) = (run.check_context(index), cells.get(&sample.cell)) else {
        return CheckedSample::AsMeasured;
    };
    let now = failures(cell, measurement, evidence, context);
    if now == *before { CheckedSample::Alike } else { CheckedSample::Otherwise(now) }
}

impl Again<'_> {
    fn replace(&mut self, index: usize, now: Vec<Failure>) {
        let Outcome::Taken { failures, .. } = &mut self.run.to_mut().samples[index].outcome else { return };
        match (failures.is_empty(), now.is_empty()) {
            (false, true) => self.valid_now += 1,
            (true, false) => self.invalid_now += 1,
            _ => {}
        }
        *failures = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::honest;
    use pagewise_model::run::Header;
    use pagewise_model::{CacheState, FailureKind, Plan};

    /// A file with a sample of `pread`, whose evidence has `change`.
    fn run(change: impl Fn(&mut pagewise_model::Evidence), failures: Vec<Failure>) -> Run {
        let cell = honest::cell("pread", CacheState::Warm);
        let (measurement, mut evidence) = (honest::measurement_of(&cell), honest::evidence(&cell));
        change(&mut evidence);
        let outcome =
            Outcome::Taken { measurement: Box::new(measurement), evidence: Box::new(evidence), failures };
        let sample = Sample::of(&cell, 0, outcome);
        let plan = Plan { sample_ns: 1, retakes: 0, ..Plan::of(vec![cell]) };
        Run { checks: vec![(0, honest::CONTEXT)], ..Run::of(Header::of(plan), vec![sample]) }
    }

    fn failure(kind: FailureKind) -> Failure {
        Failure { kind, detail: "as an earlier check said".into() }
    }

    fn kinds(again: &Again<'_>) -> Vec<FailureKind> {
        again.run.samples[0].failures().iter().map(|failure| failure.kind).collect()
    }

    #[test]
    fn a_sample_whose_check_was_mended_is_valid_and_one_that_slipped_through_is_not() {
        let accused = run(|_| {}, vec![failure(FailureKind::NotWarm)]);
        let found = again(&accused);
        assert_eq!((kinds(&found), found.valid_now, found.as_measured), (vec![], 1, 0));
        let slipped = run(|evidence| evidence.checksum += 1, Vec::new());
        let found = again(&slipped);
        assert_eq!((kinds(&found), found.invalid_now), (vec![FailureKind::WrongChecksum], 1));
    }

    #[test]
    fn a_file_without_what_checks_need_keeps_its_failures() {
        let mut older = run(|_| {}, vec![failure(FailureKind::NotWarm)]);
        older.checks.clear();
        let found = again(&older);
        assert_eq!((kinds(&found), found.as_measured), (vec![FailureKind::NotWarm], 1));
        assert!(matches!(found.run, Cow::Borrowed(_)));
    }

    #[test]
    fn what_was_observed_and_what_broke_stays() {
        let changed = vec![failure(FailureKind::FileChanged)];
        let observed = run(|evidence| evidence.observed = changed.clone(), changed.clone());
        let found = again(&observed);
        assert_eq!((kinds(&found), found.valid_now), (vec![FailureKind::FileChanged], 0));
        let mut broken = run(|_| {}, Vec::new());
        broken.samples[0].outcome = Outcome::Broken { failures: changed, stderr_tail: String::new() };
        assert_eq!(kinds(&again(&broken)), [FailureKind::FileChanged]);
    }
}
