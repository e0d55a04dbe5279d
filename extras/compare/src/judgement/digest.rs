//! A run reduced to what a comparison with other runs needs: figures and advice by conditions,
//! crossings, facts.

use std::collections::{BTreeSet, HashMap};

use pagewise_analysis::facts::{self, Facts};
use pagewise_analysis::judge::label::{label, of_any_machine};
use pagewise_analysis::judge::verdict::Place;
use pagewise_analysis::judge::{
    CellJudgement, Comparison, FigureKind, Judged, MedianInterval, Status, judge_with_figures,
};
use pagewise_analysis::statistics::ByRound;
use pagewise_model::Conditions;
use pagewise_model::format::listed;
use pagewise_model::run::Run;
use pagewise_model::run_identity::RunIdentity;
use pagewise_report::curves_door::{self, SearchedCrossings};
use pagewise_report::words::reasons;

/// A run without its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    /// File, as it was named.
    pub name: String,
    /// The identity of the run, whatever the file is called.
    pub identity: RunIdentity,
    /// True if the run was completed.
    pub is_complete: bool,
    /// Samples that it has.
    pub samples: usize,
    /// Facts that results depend on.
    pub facts: Facts,
    /// Every set of conditions under which methods are compared.
    pub situations: Vec<SituationDigest>,
    /// Crossings of each group of a search; empty for other questions.
    pub searches: Vec<SearchedCrossings>,
    /// Reasons for doubt, such as samples that are missing.
    pub doubts: Vec<String>,
}

/// Methods under one set of conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct SituationDigest {
    /// The conditions that make it the same situation in another run.
    pub conditions: Conditions,
    /// Label of the conditions.
    pub label: String,
    /// Threads of this run, whose number is not in the conditions where it is that of the CPUs.
    pub threads: u32,
    /// The kind of figure that methods are ranked by.
    pub kind: FigureKind,
    /// Every method with its figure, or the reason that it has none.
    pub methods: Vec<(String, Result<RunFigure, String>)>,
    /// The recommended method.
    pub recommended: Option<String>,
    /// The methods that are behind for certain.
    pub behind: Vec<String>,
}

/// The figure of a method in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFigure {
    /// As it is shown.
    pub shown: MedianInterval,
    /// The quantity by which it is ranked, by round; more is better.
    pub by_round: ByRound,
}

impl Digest {
    /// Name and identity.
    pub(super) fn named(&self) -> (&str, RunIdentity) {
        (&self.name, self.identity.clone())
    }

    /// True if a method has a figure.
    pub fn has_figure(&self) -> bool {
        self.situations.iter().flat_map(|situation| &situation.methods).any(|(_, figure)| figure.is_ok())
    }

    /// Of a run, judged with today's checks.
    pub fn of(name: String, run: &Run) -> Self {
        let (judged, mut by_round) = judge_with_figures(run);
        let judged = &judged;
        let situations = judged.comparisons.iter().zip(&judged.advice);
        let curves = curves_door::answer(run, judged);
        Self {
            identity: RunIdentity::of(run),
            is_complete: judged.run.complete,
            samples: run.samples.len(),
            facts: facts::of(judged),
            situations: situations
                .map(|(comparison, advice)| {
                    situation(judged, comparison, advice.recommended.clone(), &mut by_round)
                })
                .collect(),
            searches: curves.map(|curves| curves.searches()).unwrap_or_default(),
            doubts: doubt(&name, judged).into_iter().collect(),
            name,
        }
    }
}

impl SituationDigest {
    /// The label with the numbers of threads of these runs, where they are those of the CPUs:
    /// `… · a thread per CPU · … (2 and 8 threads)`.
    pub(super) fn label_in<'a>(&self, label: &str, runs: impl Iterator<Item = &'a Self>) -> String {
        if !self.conditions.thread_per_cpu {
            return label.to_string();
        }
        let numbers: BTreeSet<u32> = runs.map(|run| run.threads).collect();
        let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
        let plural = if numbers == ["1"] { "" } else { "s" };
        format!("{label} ({} thread{plural})", listed(&numbers))
    }
}

/// The conditions that make it the same situation in another run.
pub(super) fn conditions_of_any_run(measured: &Conditions) -> Conditions {
    let mut conditions = of_any_machine(measured);
    // An estimate for the largest of the workers that take part: with another method the work is
    // the same.
    conditions.host_settings.worker_bytes = None;
    conditions
}

fn situation(
    judged: &Judged,
    comparison: &Comparison,
    recommended: Option<String>,
    by_round: &mut HashMap<String, ByRound>,
) -> SituationDigest {
    let measured = &comparison.conditions.conditions;
    let label = label(&of_any_machine(measured));
    let conditions = conditions_of_any_run(measured);
    let kind = FigureKind::of(&conditions);
    let cells = judged.cells.iter().filter(|cell| comparison.cells.contains(&cell.id));
    let mut figure = |cell: &CellJudgement| {
        let shown = cell.figure(kind).filter(|shown| cell.status == Status::Ok && shown.median > 0.0);
        let unknown = || format!("{} without a figure", cell.status.name());
        let missing = || cell.reason.as_ref().map_or_else(unknown, reasons::of_cell);
        let shown = shown.ok_or_else(missing)?;
        Ok(RunFigure { shown, by_round: by_round.remove(&cell.id).unwrap_or_default() })
    };
    let behind = comparison.ratios.iter().filter(|ratio| ratio.place == Place::Behind);
    SituationDigest {
        conditions,
        label,
        threads: measured.threads,
        kind,
        methods: cells.map(|cell| (cell.method.clone(), figure(cell))).collect(),
        recommended,
        behind: behind.map(|ratio| ratio.method.clone()).collect(),
    }
}

fn doubt(name: &str, judged: &Judged) -> Option<String> {
    let validity = &judged.validity;
    match judged.run.complete {
        false => Some(format!("{name} is not complete: {} samples", judged.run.samples_tried)),
        true if validity.share.is_some_and(|share| share < 0.9) => {
            Some(format!("{name}: {} of {} samples are valid", validity.valid, validity.samples))
        }
        true => None,
    }
}
