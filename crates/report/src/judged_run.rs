//! A run with its judgement: the input of the documents that show both.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use pagewise_analysis::Judged;
use pagewise_analysis::judge::{CellJudgement, RatioToLeader};
use pagewise_model::Cell;
use pagewise_model::run::Run;

use crate::curves_door::{self, CurvesAnswer};
use crate::table::positions::Positions;

/// A run file, its samples and its judgement.
#[derive(Clone)]
pub struct JudgedRun<'a> {
    /// The file as it was named.
    pub path: &'a str,
    /// Content.
    pub run: &'a Run,
    /// Judgement.
    pub judged: &'a Judged,
    curves: OnceCell<Option<Rc<dyn CurvesAnswer>>>,
}

/// A cell with everything that is known of it.
pub struct CellView<'a> {
    /// The judgement.
    pub cell: &'a CellJudgement,
    /// The cell of the plan.
    pub planned: &'a Cell,
    /// Place as a word; empty for a ceiling or a control.
    pub place: String,
    /// The leader compared with it; `None` for the leader, and if it is not ranked.
    pub ratio: Option<&'a RatioToLeader>,
}

impl<'a> JudgedRun<'a> {
    /// A run file of this name, with its judgement.
    pub fn of(path: &'a str, run: &'a Run, judged: &'a Judged) -> Self {
        Self { path, run, judged, curves: OnceCell::new() }
    }

    /// The answer to the run as a whole, if its plan asks for one: it is made at the first call.
    pub fn curves(&self) -> Option<&dyn CurvesAnswer> {
        let answer = || curves_door::answer(self.run, self.judged).map(Rc::from);
        self.curves.get_or_init(answer).as_deref()
    }

    /// Conclusions from the run as a whole, as sentences.
    pub fn conclusions(&self) -> Vec<String> {
        self.curves().map(|curves| curves.conclusions()).unwrap_or_default()
    }

    /// Every cell in the order of the plan.
    pub fn cells(&self) -> Vec<CellView<'a>> {
        let mut places: HashMap<&str, (String, Option<&RatioToLeader>)> = HashMap::new();
        let by_id = self.judged.by_id();
        for comparison in &self.judged.comparisons {
            let positions = Positions::of(comparison);
            for id in &comparison.cells {
                if let Some(cell) = by_id.get(id.as_str()) {
                    places.insert(id, (positions.place(cell), positions.ratio(cell)));
                }
            }
        }
        // Judged cells are in the order of the plan, one for each.
        let planned = self.run.header.plan.cells.iter().zip(&self.judged.cells);
        let view = |(planned, cell): (&'a Cell, &'a CellJudgement)| {
            let (place, ratio) = places.remove(cell.id.as_str()).unwrap_or_default();
            CellView { cell, planned, place, ratio }
        };
        planned.map(view).collect()
    }
}
