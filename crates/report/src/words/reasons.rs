//! Reasons as clauses: that a cell is not ranked, that it has no figures, that there is no verdict,
//! that a figure is withheld.

use pagewise_analysis::judge::reasons::{
    CellReason, MainFailure, NoVerdict, RefusedAttempts, Shortfall, Unanswerable, Unpaired, UnrankedReason,
    Withheld,
};
use pagewise_analysis::judge::verdict::FEWEST_ROUNDS;
use pagewise_model::format::{rate, time};

const NAME_A_STATE: &str = "use --cache warm or --cache cold";

/// The reason that a cell has no figures, or fewer samples.
pub fn cell(reason: Option<&CellReason>) -> String {
    reason.map_or_else(|| "no reason is recorded".to_string(), of_cell)
}

/// The same, of a reason that is known.
pub fn of_cell(reason: &CellReason) -> String {
    match reason {
        CellReason::Unavailable(reason) => reason.clone(),
        CellReason::NotSampled => "the run has not come to it yet".to_string(),
        CellReason::NoValidSample => "no sample is valid".to_string(),
        CellReason::Lacking { shortfall, failure, refused } => {
            let parts = [
                shortfall.as_ref().map(fell_short),
                failure.as_ref().map(failed),
                refused.as_ref().map(refused_attempts),
            ];
            parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
    }
}

/// `short-read: 4,000 B; the end of its stderr: '…'`.
pub(crate) fn failed(failure: &MainFailure) -> String {
    let stderr = failure.stderr_tail.as_deref().map(on_one_line);
    let stderr = stderr.map_or_else(String::new, |tail| format!("; the end of its stderr: '{tail}'"));
    format!("{}: {}{stderr}", failure.kind.name(), failure.detail)
}

fn refused_attempts(refused: &RefusedAttempts) -> String {
    let RefusedAttempts { count, invalid, attempts, reason } = refused;
    match invalid {
        0 => format!("unavailable in {count} of {attempts} attempts: {reason}"),
        // Beside a share that is invalid, a second share would be of another whole.
        _ => format!("unavailable in {count} more: {reason}"),
    }
}

/// Predicate about valid samples without a figure.
fn fell_short(shortfall: &Shortfall) -> String {
    match shortfall {
        Shortfall::RateMissed { done_per_second, asked, missed, valid } => {
            let some = match missed == valid {
                true => String::new(),
                false => format!(" in {missed} of {valid} samples"),
            };
            format!("cannot keep the rate: it did {} of {asked}{some}", rate(*done_per_second))
        }
        Shortfall::CutShort { operations } => format!(
            "ended after {operations:.0} operations, too few to say that it keeps the rate: a cold sample brings in a quarter of the file at most"
        ),
        Shortfall::NotCovered { operations, of, is_ring, measured_ns } => {
            // Rounded down: an incomplete share is never shown as 100 %.
            let percent = (100.0 * operations / of).floor();
            let what = if *is_ring { "ring" } else { "file" };
            format!("covered {percent:.0} % of its {what} in {}", time(*measured_ns))
        }
        Shortfall::NotWarm => "did not become warm".to_string(),
    }
}

/// The reason that a method is shown but not ranked.
pub fn unranked(reason: &UnrankedReason) -> String {
    let fixed = match reason {
        UnrankedReason::Unavailable(reason) => return format!("unavailable: {reason}"),
        UnrankedReason::WithoutFigure(Shortfall::NotWarm) => {
            "it did not become warm, so it has no time to warm"
        }
        UnrankedReason::WithoutFigure(shortfall) => return fell_short(shortfall),
        UnrankedReason::Unpaired { rounds, besides } => {
            let besides = besides.as_ref().map_or_else(String::new, |(shortfall, samples)| {
                format!("; it {} in {samples} more", fell_short(shortfall))
            });
            return format!("{}{besides}", unpaired(*rounds));
        }
        UnrankedReason::TouchedInPlace => "touching one word of a mapped page is not reading it",
        UnrankedReason::Independent => {
            "a bound: it has several reads in flight, as if none depended on what the one before it read"
        }
        UnrankedReason::ReadInSetUp => "set-up brought the whole span in: its cost is in set-up",
        UnrankedReason::BypassesCache => "it bypasses the page cache, so nothing becomes warm",
        UnrankedReason::NoValidSample => "no sample of it is valid",
    };
    fixed.to_string()
}

fn unpaired(rounds: Unpaired) -> String {
    let valid = match rounds {
        Unpaired::WithoutLeader => return "no round has both it and the leader".to_string(),
        Unpaired::Few { valid: 0, returned: 1.. } => "only return rounds have a valid sample".to_string(),
        Unpaired::Few { valid, returned } => {
            let have = if valid == 1 { "round has" } else { "rounds have" };
            let besides =
                if returned > 0 { format!(" ({returned} more in return rounds)") } else { String::new() };
            format!("{valid} {have} a valid sample{besides}")
        }
    };
    format!("{valid}, and a verdict needs {FEWEST_ROUNDS}")
}

/// The reason that a comparison has no verdict.
pub fn no_verdict(reason: Option<&NoVerdict>) -> String {
    reason.map_or_else(|| "the data do not support a verdict".to_string(), of_no_verdict)
}

/// The same, of a reason that is known.
pub fn of_no_verdict(reason: &NoVerdict) -> String {
    match reason {
        NoVerdict::NoMethod => "no method was measured".to_string(),
        NoVerdict::OneMethod => "there is only one method".to_string(),
        NoVerdict::OneHasRounds => {
            format!("only one method has the {FEWEST_ROUNDS} valid rounds that a verdict needs")
        }
        NoVerdict::NoneHasRounds => {
            format!("no method has the {FEWEST_ROUNDS} valid rounds that a verdict needs")
        }
        NoVerdict::NoCommonRound => "no round has valid samples of two methods".to_string(),
        NoVerdict::OneRanked(method) => format!("only {method} could be ranked"),
        NoVerdict::NoneKeepsRate => "no method keeps the rate".to_string(),
        NoVerdict::CacheChanged { low, high, alike, rounds } => format!(
            "the page cache held from {:.0} % to {:.0} % of the span before samples, and was the same in {alike} of {rounds} rounds only; \
             {NAME_A_STATE}",
            100.0 * low,
            100.0 * high
        ),
        NoVerdict::CacheUnknown => {
            format!("what the page cache held before each sample is unknown; {NAME_A_STATE}")
        }
    }
}

/// The reason that latencies are withheld.
pub fn no_latency(reason: Withheld) -> &'static str {
    match reason {
        Withheld::Capped => "a cap limits the rate but does not slow individual requests",
        Withheld::KeepsGaps => "an operation of this replay is all of its reads with the gaps between them",
        Withheld::ColdStart => "a cold start is reported as rates over time",
    }
}

/// The reason that stalls are withheld.
pub fn no_stall(reason: Withheld) -> &'static str {
    match reason {
        Withheld::Capped => {
            "a cap limits the rate but does not slow individual requests, so its stalls are not those of a slow device"
        }
        Withheld::KeepsGaps => {
            "most heartbeats of a replay with gaps may be in these, where the method does nothing"
        }
        Withheld::ColdStart => "a cold start is reported as rates over time",
    }
}

/// The reason that samples under some conditions say nothing of an expectation.
pub fn unanswerable(reason: Unanswerable) -> &'static str {
    match reason {
        Unanswerable::Latency(reason) => no_latency(reason),
        Unanswerable::RateIsSet => {
            "no more is asked for than --rate says, and a method that cannot keep that is named: write a limit of latencies"
        }
        Unanswerable::NothingWritten => "nothing is written",
        Unanswerable::ActorWrites => {
            "the device writes for the actor too, and its bytes are not those of the worker"
        }
        Unanswerable::NoSync => {
            "no sync is in the measured region: write --sync every:SIZE, or commit for append and update"
        }
    }
}

/// Length of the output that is shown: the beginning and the end of a stack trace are the most
/// informative.
const SHOWN_CHARS: usize = 240;

/// Join lines into one, with the middle left out if they are long.
fn on_one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" | ");
    let chars: Vec<char> = line.chars().collect();
    if chars.len() <= SHOWN_CHARS {
        return line;
    }
    let part = |range: &[char]| range.iter().collect::<String>();
    let half = SHOWN_CHARS / 2;
    format!("{} … {}", part(&chars[..half]), part(&chars[chars.len() - half..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::FailureKind;

    fn rate_missed(missed: usize) -> Shortfall {
        let asked = "16k reads/s".to_string();
        Shortfall::RateMissed { done_per_second: 8000.0, asked, missed, valid: 8 }
    }

    #[test]
    fn a_cell_without_figures_names_all_that_it_lacks() {
        let failure = |stderr_tail: Option<&str>| MainFailure {
            kind: FailureKind::WrongBytes,
            detail: "1 of 64 differ".into(),
            stderr_tail: stderr_tail.map(String::from),
        };
        let refused =
            |invalid| RefusedAttempts { count: 1, invalid, attempts: 8, reason: "no huge page".into() };
        let lacking = |shortfall, failure, refused| CellReason::Lacking { shortfall, failure, refused };
        let said = [
            (CellReason::Unavailable("io_uring_setup: EPERM".into()), "io_uring_setup: EPERM"),
            (CellReason::NotSampled, "the run has not come to it yet"),
            (CellReason::NoValidSample, "no sample is valid"),
            (lacking(None, Some(failure(None)), None), "wrong-bytes: 1 of 64 differ"),
            (lacking(None, None, Some(refused(0))), "unavailable in 1 of 8 attempts: no huge page"),
            (
                lacking(Some(rate_missed(8)), Some(failure(Some("one\n two"))), Some(refused(2))),
                "cannot keep the rate: it did 8,000 of 16k reads/s; wrong-bytes: 1 of 64 differ; \
                 the end of its stderr: 'one | two'; unavailable in 1 more: no huge page",
            ),
        ];
        said.iter().for_each(|(reason, text)| assert_eq!(cell(Some(reason)), *text));
        assert_eq!(cell(None), "no reason is recorded");
    }

    #[test]
    fn a_method_that_is_not_ranked_says_what_is_missing() {
        let cut = Shortfall::CutShort { operations: 3.0 };
        let part = Shortfall::NotCovered { operations: 999.9, of: 1000.0, is_ring: false, measured_ns: 6e10 };
        let few = |valid, returned| UnrankedReason::Unpaired {
            rounds: Unpaired::Few { valid, returned },
            besides: None,
        };
        let said = [
            (UnrankedReason::Unavailable("no JDK".into()), "unavailable: no JDK"),
            (UnrankedReason::TouchedInPlace, "touching one word of a mapped page is not reading it"),
            (
                UnrankedReason::Independent,
                "a bound: it has several reads in flight, as if none depended on what the one before it read",
            ),
            (UnrankedReason::ReadInSetUp, "set-up brought the whole span in: its cost is in set-up"),
            (UnrankedReason::BypassesCache, "it bypasses the page cache, so nothing becomes warm"),
            (UnrankedReason::NoValidSample, "no sample of it is valid"),
            (
                UnrankedReason::WithoutFigure(Shortfall::NotWarm),
                "it did not become warm, so it has no time to warm",
            ),
            (
                UnrankedReason::WithoutFigure(rate_missed(2)),
                "cannot keep the rate: it did 8,000 of 16k reads/s in 2 of 8 samples",
            ),
            (
                UnrankedReason::WithoutFigure(cut),
                "ended after 3 operations, too few to say that it keeps the rate: a cold sample brings in a quarter of the file at most",
            ),
            (UnrankedReason::WithoutFigure(part), "covered 99 % of its file in 60 s"),
            (few(1, 0), "1 round has a valid sample, and a verdict needs 5"),
            (few(2, 3), "2 rounds have a valid sample (3 more in return rounds), and a verdict needs 5"),
            (few(0, 3), "only return rounds have a valid sample, and a verdict needs 5"),
            (
                UnrankedReason::Unpaired {
                    rounds: Unpaired::WithoutLeader,
                    besides: Some((Shortfall::NotWarm, 5)),
                },
                "no round has both it and the leader; it did not become warm in 5 more",
            ),
        ];
        said.iter().for_each(|(reason, text)| assert_eq!(unranked(reason), *text));
    }

    #[test]
    fn a_comparison_without_a_verdict_says_what_it_lacks() {
        let said = [
            (NoVerdict::NoMethod, "no method was measured"),
            (NoVerdict::OneMethod, "there is only one method"),
            (NoVerdict::OneHasRounds, "only one method has the 5 valid rounds that a verdict needs"),
            (NoVerdict::NoneHasRounds, "no method has the 5 valid rounds that a verdict needs"),
            (NoVerdict::NoCommonRound, "no round has valid samples of two methods"),
            (NoVerdict::OneRanked("pread".into()), "only pread could be ranked"),
            (NoVerdict::NoneKeepsRate, "no method keeps the rate"),
            (
                NoVerdict::CacheChanged { low: 0.25, high: 1.0, alike: 3, rounds: 8 },
                "the page cache held from 25 % to 100 % of the span before samples, and was the same in 3 of 8 rounds only; \
                 use --cache warm or --cache cold",
            ),
            (
                NoVerdict::CacheUnknown,
                "what the page cache held before each sample is unknown; use --cache warm or --cache cold",
            ),
        ];
        said.iter().for_each(|(reason, text)| assert_eq!(no_verdict(Some(reason)), *text));
        assert_eq!(no_verdict(None), "the data do not support a verdict");
    }

    #[test]
    fn a_stack_trace_is_one_line() {
        assert_eq!(
            on_one_line("Exception: no room\n\tat Reader.main\n\n"),
            "Exception: no room | at Reader.main"
        );
        let long = format!("panic: all is lost\n{}exit status 2", "goroutine of no interest\n".repeat(100));
        let shown = on_one_line(&long);
        assert!(shown.starts_with("panic: all is lost | ") && shown.ends_with(" | exit status 2"), "{shown}");
        assert_eq!(shown.chars().count(), SHOWN_CHARS + 3);
    }
}
