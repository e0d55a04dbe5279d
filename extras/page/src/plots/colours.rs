//! The colour of each method: one in all plots and maps of a page.

use std::collections::{BTreeSet, HashMap, HashSet};

use pagewise_analysis::judge::label::{LabelPart, label_without};

use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::Plot;

/// Numbers of the colours of methods.
#[derive(Debug, Default)]
pub struct Colours(HashMap<String, usize>);

impl Colours {
    /// The methods of all runs of a page, one after the other: each has the first colour that no
    /// method beside which it is shown has.
    pub fn of(runs: &[JudgedRun<'_>]) -> Self {
        let beside: Vec<Vec<&str>> = runs.iter().flat_map(shown_together).collect();
        let mut colours: HashMap<String, usize> = HashMap::new();
        for method in beside.iter().flatten().copied() {
            if colours.contains_key(method) {
                continue;
            }
            let others = beside.iter().filter(|together| together.contains(&method)).flatten();
            let taken: HashSet<usize> = others.filter_map(|other| colours.get(*other).copied()).collect();
            let free = (0..).find(|colour| !taken.contains(colour)).unwrap_or_default();
            colours.insert(method.to_string(), free);
        }
        Self(colours)
    }

    /// The colour of a method; `None` for any other name.
    pub fn get(&self, method: &str) -> Option<usize> {
        self.0.get(method).copied()
    }

    /// Give each method of a plot its colour.
    pub(super) fn paint(&self, plot: &mut Plot) {
        for series in plot.series.iter_mut().filter(|series| series.colour.is_none()) {
            series.colour = self.get(&series.name);
        }
    }
}

/// Methods that stand in one plot: those of a search or a table of methods are all in one, and
/// situations that differ only in their threads share one.
fn shown_together<'a>(run: &JudgedRun<'a>) -> Vec<Vec<&'a str>> {
    let judged = run.judged;
    let by_id = judged.by_id();
    if run.curves().is_some() {
        let methods: BTreeSet<&str> = judged.cells.iter().map(|cell| cell.method.as_str()).collect();
        return vec![methods.into_iter().collect()];
    }
    let of =
        |cells: &'a [String]| cells.iter().filter_map(|id| Some(by_id.get(id.as_str())?.method.as_str()));
    let mut together: Vec<(String, Vec<&str>)> = Vec::new();
    for comparison in &judged.comparisons {
        let label = label_without(&comparison.conditions.conditions, &[LabelPart::Threads]);
        match together.iter_mut().find(|(known, _)| *known == label) {
            Some((_, methods)) => methods.extend(of(&comparison.cells)),
            None => together.push((label, of(&comparison.cells).collect())),
        }
    }
    together.into_iter().map(|(_, methods)| methods).collect()
}
