//! Sentences about what was expected of a method.

use pagewise_analysis::judge::CellJudgement;
use pagewise_analysis::judge::expectations::{Fulfilment, JudgedExpectation};
use pagewise_model::Workload;
use pagewise_model::expectation::{Expectation, Quantile};
use pagewise_model::format::{counted, grouped, plain, rate, time};
use pagewise_model::limits::MAX_ROUNDS;

/// `pwrite: p99<10ms holds: 12 of 12,034 records took 10 ms or longer, 0.1 % [0.02 %, 0.4 %], …`.
pub(crate) fn sentence(cell: &CellJudgement, expected: &JudgedExpectation) -> String {
    let verdict = match expected.verdict {
        Fulfilment::Holds => "holds",
        Fulfilment::DoesNotHold => "does not hold",
        Fulfilment::Open => "is open",
    };
    let found = match &expected.expectation {
        Expectation::Operations(quantile) => {
            of_quantile(&format!("{}s", operation(cell)), quantile, expected)
        }
        Expectation::Syncs(quantile) => of_quantile("syncs", quantile, expected),
        Expectation::Rate(_) => {
            let single = matches!(cell.workload, Workload::RandomRead | Workload::SequentialRead);
            let unit = if single { cell.workload.facts().access } else { operation(cell) };
            of_figure(expected, &format!("{unit}s/s"), rate)
        }
        Expectation::Written(_) => of_figure(expected, "bytes written by the device for each byte", plain),
    };
    let is_open = expected.verdict == Fulfilment::Open;
    let missing = match expected.samples_to_decide {
        _ if is_open && expected.samples < expected.samples_needed => format!(
            "; it needs {} ({}) and has {}",
            counted(u64::from(expected.samples_needed), "sample"),
            if expected.samples_needed <= MAX_ROUNDS { "--rounds" } else { "more than a run can have" },
            grouped(u64::from(expected.samples))
        ),
        Some(samples) => format!(
            "; {} like these would decide (--rounds {samples})",
            counted(u64::from(samples), "sample")
        ),
        None => String::new(),
    };
    let found = match expected.rate_missed {
        0 => found,
        missed => format!(
            "it did not keep the rate in {missed} of {}; of those that were due {found}",
            counted(u64::from(expected.samples), "sample")
        ),
    };
    let found = if expected.samples == 0 { "nothing is known".to_string() } else { found };
    let rejected = match expected.rejected {
        0 => String::new(),
        1 => "; 1 sample failed a check, and what it shows is not in it".to_string(),
        count => {
            format!("; {} samples failed a check, and what they show is not in it", grouped(u64::from(count)))
        }
    };
    format!("{}: {} {verdict}: {found}{missing}{rejected}", cell.method, expected.expectation)
}

fn operation(cell: &CellJudgement) -> &'static str {
    let has_reads =
        cell.workload.is_reading() || cell.parameters.reads_per_update.is_some_and(|reads| reads > 0);
    if has_reads { "operation" } else { cell.workload.facts().access }
}

fn of_quantile(unit: &str, quantile: &Quantile, expected: &JudgedExpectation) -> String {
    let percent = |share: f64| {
        let text = plain(share * 100.0);
        let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{short} %")
    };
    match (expected.found, expected.low, expected.high) {
        (Some(found), Some(low), Some(high)) => format!(
            "{} of {} {unit} took {} or longer, {} [{}, {}], and {} may",
            grouped(expected.beyond),
            grouped(expected.operations),
            time(quantile.limit_ns),
            percent(found),
            percent(low),
            percent(high),
            percent(quantile.allowed())
        ),
        _ => format!("no {unit} were timed one by one"),
    }
}

fn of_figure(expected: &JudgedExpectation, unit: &str, form: impl Fn(f64) -> String) -> String {
    match (expected.found, expected.low, expected.high) {
        (Some(found), Some(low), Some(high)) => {
            format!("{} [{}, {}] {unit}", form(found), form(low), form(high))
        }
        (Some(found), ..) => format!("{} {unit}", form(found)),
        _ => format!("{unit} are unknown"),
    }
}
