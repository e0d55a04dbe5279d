//! Words that documents of comparisons share.

use pagewise_model::format::counted;

use crate::judgement::Split;
use crate::judgement::advice::Advised;
use crate::judgement::split::Explanation;

/// `pread (4 of 5 runs), mmap`.
pub(super) fn methods(advised: &[Advised]) -> String {
    let runs: usize = advised.iter().map(|one| one.runs).sum();
    let text = advised.iter().map(|one| {
        let method = one.method.as_deref().unwrap_or("nothing");
        if one.runs == runs { method.to_string() } else { format!("{method} ({} of {runs} runs)", one.runs) }
    });
    text.collect::<Vec<_>>().join(", ")
}

/// Sentences about what has no run that counts.
pub(super) fn missing(split: &Split) -> Vec<String> {
    split.missing.iter().map(ToString::to_string).collect()
}

/// `readahead explains 9 of 10 runs: 128 KiB → mmap; 8 MiB → pread`.
pub(super) fn explained(Explanation { fact, explained, runs, values }: &Explanation) -> String {
    let values: Vec<String> = values.iter().map(|(value, method)| format!("{value} → {method}")).collect();
    format!("{fact} explains {explained} of {}: {}", counted(*runs as u64, "run"), values.join("; "))
}
