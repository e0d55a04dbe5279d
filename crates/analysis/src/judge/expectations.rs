//! Expectations: a method keeps one, does not keep it, or the run does not show it.
//!
//! Of a quantile, the share of operations beyond the limit is compared with the share that may be
//! beyond it. A sample in which no operation is beyond is no proof for operations as rare as one in
//! ten thousand, so a quantile needs a number of samples that grows with it.

use pagewise_model::expectation::{Expectation, Quantile};
use pagewise_model::limits::MAX_ROUNDS;
use pagewise_model::sample::Measurement;
use pagewise_model::{Actor, Conditions, Outcome, Role, Sample, Sync};
use serde::Serialize;

use super::collected::CellSamples;
use super::figure::MedianInterval;
use super::reasons::{Unanswerable, Withheld};
use crate::proof::measured::{ops_per_second, written_per_byte};
use crate::statistics::share::{self, Part};
use crate::statistics::total;

/// Fewest samples of any expectation.
const SAMPLES: u32 = 12;
/// The share beyond p99: rarer operations need more samples.
const OF_P99: f64 = 0.01;

/// The verdict on an expectation; the first of several decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fulfilment {
    /// The expectation is not met.
    DoesNotHold,
    /// The samples do not decide it.
    Open,
    /// The expectation is met.
    Holds,
}

impl Fulfilment {
    /// Name of the verdict in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Fulfilment::DoesNotHold => "does-not-hold",
            Fulfilment::Open => "open",
            Fulfilment::Holds => "holds",
        }
    }
}

/// An expectation of a cell, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct JudgedExpectation {
    /// The expectation.
    pub expectation: Expectation,
    /// The verdict on it.
    pub verdict: Fulfilment,
    /// Samples that count.
    pub samples: u32,
    /// Samples that it needs: of a quantile at least as many as show it with none beyond, if each
    /// has as many operations as these.
    pub samples_needed: u32,
    /// Of one that is open for all that: the number of samples that would decide it if further ones
    /// were like these; `None` if that is more than a run can have, or not known.
    pub samples_to_decide: Option<u32>,
    /// Samples that were taken and failed a check, as where other programs used the device: what
    /// they show is not judged.
    pub rejected: u32,
    /// Samples that did not keep the rate at which operations were due.
    pub rate_missed: u32,
    /// Operations or syncs of all samples; 0 of a rate or of written bytes.
    pub operations: u64,
    /// Operations beyond the limit.
    pub beyond: u64,
    /// The share of operations beyond the limit, the median rate, or the device's bytes for each
    /// byte; `None` if nothing was found.
    pub found: Option<f64>,
    /// Lower end of the interval of what was found.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// Samples that a plan with this expectation needs of each method, if they have many operations.
pub fn samples_needed(expectation: &Expectation) -> u32 {
    let rarer = match expectation {
        Expectation::Operations(quantile) | Expectation::Syncs(quantile) => OF_P99 / quantile.allowed(),
        Expectation::Rate(_) | Expectation::Written(_) => 1.0,
    };
    (f64::from(SAMPLES) * rarer.max(1.0)).round() as u32
}

/// Syncs of a sample under these conditions, and the samples that an expectation of syncs needs for
/// so few of them, if that is known before and no amount of the usual ones does.
pub fn more_samples(expectation: &Expectation, conditions: &Conditions) -> Option<(u64, u32)> {
    let Expectation::Syncs(quantile) = expectation else { return None };
    let Sync::Every(interval) = conditions.writes()?.sync_of_records() else { return None };
    let syncs = conditions.bytes_of(conditions.fixed_operations()?) / interval.0.max(1);
    let fewest = share::fewest_samples(syncs as f64, quantile.allowed());
    (fewest > samples_needed(expectation)).then_some((syncs, fewest))
}

/// Reason that samples under these conditions say nothing of an expectation; `None` if they do.
pub fn unanswerable(expectation: &Expectation, conditions: &Conditions) -> Option<Unanswerable> {
    match expectation {
        Expectation::Operations(_) => Withheld::of(conditions).map(Unanswerable::Latency),
        Expectation::Rate(_) => conditions.rate.map(|_| Unanswerable::RateIsSet),
        Expectation::Syncs(_) | Expectation::Written(_) if conditions.writes().is_none() => {
            Some(Unanswerable::NothingWritten)
        }
        Expectation::Written(_) if conditions.beside.as_ref().is_some_and(Actor::is_writing) => {
            Some(Unanswerable::ActorWrites)
        }
        // What is not synced in the region is written later.
        Expectation::Syncs(_) | Expectation::Written(_) => {
            (!conditions.measures_syncs()).then_some(Unanswerable::NoSync)
        }
    }
}

/// All expectations of a measured cell. One that cannot be had is open: nothing is known of it.
pub(crate) fn judge_all(expectations: &[Expectation], samples: &CellSamples<'_>) -> Vec<JudgedExpectation> {
    if samples.cell.role != Role::Measured {
        return Vec::new();
    }
    expectations.iter().map(|expectation| judge(*expectation, samples)).collect()
}

fn judge(expectation: Expectation, samples: &CellSamples<'_>) -> JudgedExpectation {
    let conditions = &samples.cell.conditions;
    let nothing = JudgedExpectation {
        expectation,
        verdict: Fulfilment::Open,
        samples: 0,
        samples_needed: samples_needed(&expectation),
        samples_to_decide: None,
        rejected: samples.attempts.iter().filter(|attempt| is_rejected(attempt)).count() as u32,
        rate_missed: 0,
        operations: 0,
        beyond: 0,
        found: None,
        low: None,
        high: None,
    };
    if unanswerable(&expectation, conditions).is_some() {
        return nothing;
    }
    let measurements = samples.valid().map(|(measurement, _)| measurement);
    match expectation {
        Expectation::Operations(quantile) => {
            let part = |one: &Measurement| part(&one.latency_ns, &one.latency_counts, quantile);
            of_rate(of_quantile(nothing, quantile, measurements.map(part)), samples)
        }
        Expectation::Syncs(quantile) => {
            let part = |one: &Measurement| part(&one.sync_duration_ns, &one.sync_duration_counts, quantile);
            of_quantile(nothing, quantile, measurements.map(part))
        }
        Expectation::Rate(rate) => {
            let each = f64::from(conditions.reads_per_op());
            let rates: Vec<f64> = measurements.map(|one| ops_per_second(one) * each).collect();
            of_median(nothing, &rates, |found| found >= rate as f64)
        }
        Expectation::Written(hundredths) => {
            let factors = samples.known(|_, evidence| written_per_byte(evidence));
            of_median(nothing, &factors, |found| found * 100.0 <= hundredths as f64)
        }
    }
}

/// True if a sample was taken or begun, and is not valid: of a method that cannot be had there is
/// none.
fn is_rejected(attempt: &Sample) -> bool {
    attempt.valid().is_none() && !matches!(attempt.outcome, Outcome::Unavailable { .. })
}

/// The operations of a histogram that may have taken as long as the limit: a bucket is known by its
/// upper end.
fn part(upper_ns: &[u64], counts: &[u64], quantile: Quantile) -> Part {
    let beyond = upper_ns.iter().zip(counts).filter(|(upper_ns, _)| **upper_ns >= quantile.limit_ns);
    Part { beyond: total(beyond.map(|(_, count)| count)), of: total(counts) }
}

fn of_quantile(
    nothing: JudgedExpectation,
    quantile: Quantile,
    parts: impl Iterator<Item = Part>,
) -> JudgedExpectation {
    let parts: Vec<Part> = parts.filter(|part| part.of > 0).collect();
    let Some((low, high)) = share::interval(&parts) else { return nothing };
    let beyond = total(parts.iter().map(|part| &part.beyond));
    let operations = total(parts.iter().map(|part| &part.of));
    let (allowed, samples) = (quantile.allowed(), parts.len() as u32);
    let fewest = share::fewest_samples(operations as f64 / f64::from(samples), allowed);
    let samples_needed = nothing.samples_needed.max(fewest);
    let verdict = match samples {
        SAMPLES.. if low > allowed => Fulfilment::DoesNotHold,
        _ if samples >= nothing.samples_needed && high <= allowed => Fulfilment::Holds,
        _ => Fulfilment::Open,
    };
    let is_open = verdict == Fulfilment::Open && samples >= samples_needed;
    let to_decide = if is_open { share::samples_to_decide(&parts, allowed, MAX_ROUNDS) } else { None };
    JudgedExpectation {
        verdict,
        samples,
        samples_needed,
        samples_to_decide: to_decide,
        operations,
        beyond,
        found: Some(beyond as f64 / operations as f64),
        low: Some(low),
        high: Some(high),
        ..nothing
    }
}

/// Behind a rate that is not kept operations wait longer and longer, whatever a short sample shows.
fn of_rate(judged: JudgedExpectation, samples: &CellSamples<'_>) -> JudgedExpectation {
    let rate_missed = samples.rate_missed() as u32;
    let verdict = match rate_missed {
        0 => judged.verdict,
        _ if samples.misses_rate() && judged.samples >= SAMPLES => Fulfilment::DoesNotHold,
        _ => judged.verdict.min(Fulfilment::Open),
    };
    // More samples would not make it keep the rate.
    let samples_to_decide = judged.samples_to_decide.filter(|_| rate_missed == 0);
    JudgedExpectation { rate_missed, verdict, samples_to_decide, ..judged }
}

fn of_median(
    nothing: JudgedExpectation,
    figures: &[f64],
    is_kept: impl Fn(f64) -> bool,
) -> JudgedExpectation {
    let Some(MedianInterval { median, low, high }) = MedianInterval::of(figures) else { return nothing };
    let samples = figures.len() as u32;
    let ends = low.zip(high).filter(|_| samples >= nothing.samples_needed);
    let verdict = match ends.map(|(low, high)| (is_kept(low), is_kept(high))) {
        Some((true, true)) => Fulfilment::Holds,
        Some((false, false)) => Fulfilment::DoesNotHold,
        _ => Fulfilment::Open,
    };
    JudgedExpectation { verdict, samples, found: Some(median), low, high, ..nothing }
}

#[cfg(test)]
mod tests {
    use pagewise_model::work::Update;
    use pagewise_model::{Append, Bytes, Cell, Conditions, Evidence, Work};

    use super::*;
    use crate::judge::collected;

    fn cell() -> Cell {
        let append = Append { record_bytes: Bytes(200), passes: 1, sync: Sync::Commit, sync_call: None };
        let conditions = Conditions::of(Work::Append(append), Bytes::mib(1));
        Cell { role: Role::Measured, method: "pwrite".parse().expect("a method"), conditions }
    }

    /// Samples of 1,000 records in 100 ms, of which some take 20 ms, and all are synced.
    fn judged(expectation: &str, samples: usize, slow: u64) -> JudgedExpectation {
        judged_of(&cell(), expectation, samples, slow)
    }

    fn sample(cell: &Cell, round: u32, slow: u64) -> Sample {
        let (ns, counts) = (vec![100_000, 20_000_000], vec![1000 - slow, slow]);
        let measurement = Measurement {
            operations: 1000,
            measured_ns: 100_000_000,
            latency_ns: ns.clone(),
            latency_counts: counts.clone(),
            sync_duration_ns: ns,
            sync_duration_counts: counts,
            ..Measurement::default()
        };
        let evidence = Box::new(Evidence {
            requested_bytes: 200_000,
            device_written_bytes: Some(300_000 + u64::from(round)),
            ..Evidence::default()
        });
        let measurement = Box::new(measurement);
        Sample::of(cell, round, Outcome::Taken { measurement, evidence, failures: Vec::new() })
    }

    fn judged_of(cell: &Cell, expectation: &str, samples: usize, slow: u64) -> JudgedExpectation {
        let samples: Vec<Sample> = (0..samples as u32).map(|round| sample(cell, round, slow)).collect();
        let all = judge_all(
            &[expectation.parse().expect("an expectation")],
            &collected::of_samples(cell, &samples),
        );
        all.into_iter().next().expect("it was measured")
    }

    #[test]
    fn a_quantile_holds_is_broken_or_is_open() {
        use Fulfilment::{DoesNotHold, Holds, Open};
        for figure in ["p99<10ms", "sync-p99<10ms"] {
            let verdict = |samples, slow| judged(figure, samples, slow).verdict;
            assert_eq!([verdict(12, 0), verdict(12, 1), verdict(12, 60)], [Holds, Holds, DoesNotHold]);
            assert_eq!([verdict(12, 8), verdict(12, 12)], [Open, Open], "{figure}: near the limit");
            assert_eq!([verdict(11, 0), verdict(11, 60)], [Open, Open], "{figure}: too few samples");
        }
        let to_decide = |slow| judged("p99<10ms", 12, slow).samples_to_decide;
        assert_eq!([to_decide(1), to_decide(60), to_decide(10)], [None; 3], "decided, or at the limit");
        assert!(to_decide(8).is_some_and(|samples| (13..1000).contains(&samples)), "{:?}", to_decide(8));
        let found = judged("p99<10ms", 12, 1);
        assert_eq!(
            (found.beyond, found.operations, found.samples, found.samples_needed),
            (12, 12_000, 12, 12)
        );
        assert_eq!(judged("p99<20ms", 12, 60).beyond, 720, "as long as the limit is too long");
        assert_eq!(judged("p99<21ms", 12, 60).beyond, 0);
    }

    #[test]
    fn a_rate_that_is_not_kept_keeps_no_limit() {
        let mut at_rate = cell();
        at_rate.conditions.rate = Some("10k".parse().expect("a rate"));
        // The samples of `judged` did 1,000 operations, of which so many were due.
        let verdict = |due: u64| {
            let mut samples: Vec<Sample> = (0..12).map(|round| sample(&at_rate, round, 0)).collect();
            for sample in &mut samples {
                let Outcome::Taken { measurement, .. } = &mut sample.outcome else { continue };
                measurement.due_operations = due;
            }
            let samples = collected::of_samples(&at_rate, &samples);
            judge("p90<1s".parse().expect("an expectation"), &samples)
        };
        let behind = verdict(1050);
        assert_eq!([verdict(1000).verdict, behind.verdict], [Fulfilment::Holds, Fulfilment::DoesNotHold]);
        assert_eq!((behind.rate_missed, behind.beyond), (12, 0), "what was found is not invented");
        let of_rate = unanswerable(&Expectation::Rate(1), &at_rate.conditions);
        assert_eq!(of_rate, Some(Unanswerable::RateIsSet));
    }

    #[test]
    fn rare_operations_need_more_samples() {
        let verdict = |samples| judged("p99.9<10ms", samples, 0).verdict;
        assert_eq!([verdict(119), verdict(120)], [Fulfilment::Open, Fulfilment::Holds]);
        assert_eq!(judged("p99.9<10ms", 12, 60).verdict, Fulfilment::DoesNotHold);
        let needed = |text: &str| samples_needed(&text.parse().expect(text));
        assert_eq!(
            ["p50<1s", "p99<1s", "p99.9<1s", "p99.99<1s", "rate>=1"].map(needed),
            [12, 12, 120, 1200, 12]
        );
    }

    #[test]
    fn few_operations_need_more_samples() {
        let work = |updates| Update {
            block_bytes: Bytes::kib(4),
            updates,
            reads_per_update: 0,
            sync: Sync::Every(Bytes::kib(256)),
            sync_call: None,
        };
        let more = |text: &str, updates| {
            let conditions = Conditions::of(Work::Update(work(updates)), Bytes::mib(32));
            more_samples(&text.parse().expect(text), &conditions)
        };
        assert_eq!(more("sync-p99<10ms", 256), Some((4, 98)));
        assert_eq!([more("sync-p99<10ms", 8192), more("p99<10ms", 256)], [None, None]);
        assert_eq!(more_samples(&"sync-p99<1s".parse().expect("one"), &cell().conditions), None);
        // The same of what was found.
        let cell = cell();
        let few = |round| {
            let mut sample = sample(&cell, round, 0);
            let Outcome::Taken { measurement, .. } = &mut sample.outcome else { panic!("it was taken") };
            measurement.sync_duration_counts = vec![4, 0];
            sample
        };
        let of = |samples: u32| {
            let samples: Vec<Sample> = (0..samples).map(few).collect();
            let samples = collected::of_samples(&cell, &samples);
            let judged = judge("sync-p99<10ms".parse().expect("an expectation"), &samples);
            (judged.verdict, judged.samples_needed)
        };
        assert_eq!([of(12), of(97)], [(Fulfilment::Open, 98); 2]);
        assert_eq!(of(98), (Fulfilment::Holds, 98));
    }

    #[test]
    fn rates_and_written_bytes_are_compared_with_their_intervals() {
        use Fulfilment::{DoesNotHold, Holds, Open};
        let verdict = |text: &str, samples| judged(text, samples, 0).verdict;
        assert_eq!([verdict("rate>=10k", 12), verdict("rate>=10001", 12)], [Holds, DoesNotHold]);
        assert_eq!([verdict("written<=1.51x", 12), verdict("written<=1.49x", 12)], [Holds, DoesNotHold]);
        assert_eq!([verdict("rate>=1", 11), verdict("written<=9x", 5)], [Open, Open]);
        let mut unsynced = cell();
        unsynced.conditions.work = unsynced.conditions.work.without_sync();
        let later = judged_of(&unsynced, "written<=9x", 12, 0);
        assert_eq!((later.verdict, later.found), (Open, None), "the rest is written later");
    }

    #[test]
    fn nothing_is_known_of_a_method_that_cannot_be_had() {
        let cell = cell();
        let none = Sample::of(&cell, 0, Outcome::Unavailable { reason: "none".into() });
        let expectations = ["p99<1s".parse().expect("an expectation")];
        let judged = judge_all(&expectations, &collected::of_samples(&cell, &[none]));
        assert_eq!((judged[0].verdict, judged[0].samples, judged[0].found), (Fulfilment::Open, 0, None));
        assert_eq!(judged[0].rejected, 0, "there was none that could fail a check");
    }
}
