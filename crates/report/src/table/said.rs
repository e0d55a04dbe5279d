//! Sentences about a comparison.

use pagewise_analysis::judge::Comparison;
use pagewise_analysis::judge::advice::Recommendation;
use pagewise_analysis::judge::verdict::{Place, Verdict};
use pagewise_model::format::{counted, listed, percent_down, times};

use super::columns::against_leader;
use crate::words;

/// Methods of an open verdict that are named; the table has all.
const NAMED: usize = 4;
/// From this factor on, disturbances that outlast rounds are reported.
const LASTING: f64 = 1.2;

/// All that is said of a comparison, one sentence each; the choice is the last.
pub(crate) fn said(comparison: &Comparison, advice: Option<&Recommendation>) -> Vec<String> {
    let advice = advice.map(|advice| words::advice::sentences(advice, comparison));
    let found = cache_as_is(comparison).into_iter().chain([verdict(comparison)]);
    found.chain(advice.into_iter().flatten()).collect()
}

/// The verdict as a sentence.
fn verdict(comparison: &Comparison) -> String {
    let leader = comparison.leader.as_deref().unwrap_or("the leader");
    let staying = || comparison.ratios.iter().filter(|ratio| ratio.place != Place::Behind);
    let mut words: Vec<String> =
        staying().take(NAMED).map(|ratio| format!("{} ({})", ratio.method, against_leader(ratio))).collect();
    let more = staying().count().saturating_sub(NAMED);
    if more > 0 {
        words.push(format!("{more} more"));
    }
    let others = listed(&words);
    let said = match comparison.verdict {
        Verdict::Best => format!("{leader} is best"),
        Verdict::Tie => format!("{} tie, within 2 %", listed(&comparison.staying())),
        Verdict::Close => format!("close: {leader} is ahead, not for certain of {others}"),
        Verdict::Open => match words::advice::ahead_in_few_rounds(comparison) {
            Some(ahead) => format!("open: {ahead}"),
            None => {
                format!("open: {leader} is ahead, not for certain of {others}; these rounds do not decide it")
            }
        },
        Verdict::NotComparable => {
            format!("not comparable, because {}", words::reasons::no_verdict(comparison.reason.as_ref()))
        }
    };
    let inflated = match comparison.inflation > LASTING {
        true => format!(
            " Disturbances outlast rounds in this run: intervals are {} times as long for that.",
            times(comparison.inflation)
        ),
        false => String::new(),
    };
    format!("Verdict: {said}.{inflated}")
}

/// State of the page cache, if the run used it as found.
fn cache_as_is(comparison: &Comparison) -> Option<String> {
    let seen = comparison.as_is.as_ref()?;
    let rounds = format!("{} of {}", seen.rounds_counted, counted(seen.rounds as u64, "round"));
    let [first, low, high] =
        [seen.resident_share_first, seen.resident_share_low, seen.resident_share_high].map(percent_down);
    if !seen.changed() {
        let held = if low == high { low } else { format!("from {low} to {high}") };
        return Some(format!(
            "the page cache held {held} of the span before the samples that count ({rounds})"
        ));
    }
    let change = if seen.resident_share_first < seen.resident_share_low {
        format!("the samples filled the page cache from {first} to {high}")
    } else {
        format!("the page cache shrank from {first} to {low} during the run")
    };
    Some(match comparison.verdict {
        Verdict::NotComparable => change,
        _ => format!(
            "{change}; judged are the {rounds} from then on, when the cache was no longer as the run found it"
        ),
    })
}
