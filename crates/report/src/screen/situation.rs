//! The comparisons of all runs on a screen, by names that distinguish them.

use pagewise_analysis::Judged;
use pagewise_analysis::judge::Comparison;
use pagewise_analysis::judge::advice::Recommendation;

use crate::judged_run::JudgedRun;
use crate::words::advice::situations;

/// From this many bytes that the device moves for each byte used, that is worth a line.
pub(super) const AMPLIFIED: f64 = 3.0;

/// A comparison with its name.
pub(super) struct Situation<'a> {
    pub(super) name: String,
    pub(super) judged: &'a Judged,
    pub(super) advice: &'a Recommendation,
    pub(super) comparison: &'a Comparison,
    /// True if its run is answered as a whole, beside which a choice says nothing.
    pub(super) is_answered: bool,
}

/// The situations of all runs, in their order.
pub(super) fn all<'a>(runs: &[JudgedRun<'a>]) -> Vec<Situation<'a>> {
    let of_run = |run: &JudgedRun<'a>| {
        let judged = run.judged;
        let is_answered = run.curves().is_some_and(|curves| curves.is_alone());
        let pairs = judged.advice.iter().zip(&judged.comparisons);
        pairs.map(move |(advice, comparison)| Situation {
            name: String::new(),
            judged,
            advice,
            comparison,
            is_answered,
        })
    };
    let found: Vec<Situation<'a>> = runs.iter().flat_map(of_run).collect();
    let names = situations(found.iter().map(|one| one.advice));
    found.into_iter().zip(names).map(|(one, name)| Situation { name, ..one }).collect()
}

impl Situation<'_> {
    /// True if its run asks which actor leaves most to one method: that has no rival.
    pub(super) fn is_of_a_victim(&self) -> bool {
        let judged = self.judged;
        !judged.actors.is_empty() && judged.comparisons.iter().all(|comparison| comparison.cells.len() == 1)
    }
}
