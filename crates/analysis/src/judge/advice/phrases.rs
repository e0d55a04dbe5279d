//! Lists in sentences, and phrases for the work.

use pagewise_model::Workload;
use pagewise_model::format::{counted, percent_up, times};

use crate::judge::comparison::Comparison;

/// `a, b and c`.
pub fn listed<W: AsRef<str>>(words: &[W]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => only.to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The sentence with a capital letter.
pub fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The work as a noun.
pub(super) fn what(workload: Workload) -> &'static str {
    match workload {
        Workload::RandomRead => "random reads",
        Workload::SequentialRead => "sequential reads",
        Workload::Scan => "a scan",
        Workload::Append => "appending",
        Workload::Fill => "filling a file",
        Workload::Replay => "the reads of the trace",
    }
}

/// `at most 9 % slower`, or `up to 3.3x slower`.
pub fn slower(bound: f64) -> String {
    match bound {
        bound if bound < 1.0 => format!("at most {} slower", percent_up(bound)),
        bound => format!("up to {}x slower", times(1.0 + bound)),
    }
}

/// That a method was ahead of the leader in too few rounds to be ranked; `None` if none was.
pub fn ahead_in_few_rounds(comparison: &Comparison) -> Option<String> {
    let (ahead, leader) = (comparison.ahead_of_leader()?, comparison.leader.as_deref()?);
    let rounds = counted(ahead.rounds as u64, "round");
    Some(format!("{} was ahead of {leader} in {rounds}, too few to rank it", ahead.method))
}

/// The interval of a share in percent: `[95, 99]`.
pub fn interval(low: f64, high: f64) -> String {
    format!("[{:.0}, {:.0}]", low * 100.0, high * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_speech() {
        let words = ["a", "b", "c"].map(String::from);
        assert_eq!(listed(&words), "a, b and c");
        assert_eq!(listed(&words[..1]), "a");
        assert_eq!(capital("append"), "Append");
    }
}
