//! The answer to a run: its cliff, its tables, or both.

use pagewise_analysis::Judged;
use pagewise_model::run::Run;
use pagewise_report::curves_door::{CurvesAnswer, CurvesOnScreen, FoundCrossing, SearchedCrossings};
use pagewise_report::document::Block;
use pagewise_report::plot::Plot;

use crate::cliff::{self, Cliff};
use crate::json::{CliffJson, TablesJson};
use crate::tables::{self, Tables};

/// The crossings and the tables of a run.
struct CurvesOfRun {
    cliff: Option<Cliff>,
    tables: Option<Tables>,
}

/// The answer to a run; `None` if its plan has neither a search nor a table.
pub fn of(run: &Run, judged: &Judged) -> Option<Box<dyn CurvesAnswer>> {
    let plan = &run.header.plan;
    let cliff = plan.search.is_some().then(|| cliff::crossings(run));
    let tables = plan.table.as_ref().map(|planned| tables::of(run, planned, judged));
    let is_asked = cliff.is_some() || tables.is_some();
    is_asked.then(|| Box::new(CurvesOfRun { cliff, tables }) as Box<dyn CurvesAnswer>)
}

impl CurvesAnswer for CurvesOfRun {
    fn is_alone(&self) -> bool {
        self.cliff.is_some()
    }

    fn conclusions(&self) -> Vec<String> {
        let groups = self.cliff.iter().flat_map(|cliff| &cliff.groups);
        let of_tables = self.tables.iter().flat_map(tables::words::sentences);
        groups.flat_map(cliff::words::printed).chain(of_tables).collect()
    }

    fn blocks(&self, judged: &Judged) -> Vec<Block> {
        match (&self.cliff, &self.tables) {
            (Some(cliff), _) => cliff::blocks::blocks(cliff),
            (None, Some(tables)) => tables::blocks::blocks(judged, tables),
            (None, None) => Vec::new(),
        }
    }

    fn on_screen(&self) -> Option<CurvesOnScreen> {
        let Some(cliff) = &self.cliff else {
            let sentences = self.tables.as_ref().map(tables::words::sentences)?;
            return Some(CurvesOnScreen { sentences, table: None });
        };
        let group = cliff.groups.first()?;
        let table = Some((group.label.clone(), cliff::blocks::answer(group)));
        Some(CurvesOnScreen { sentences: cliff::words::printed(group), table })
    }

    fn plots(&self) -> Vec<Plot> {
        let of_cliff = self.cliff.iter().flat_map(cliff::plots::plots);
        of_cliff.chain(self.tables.iter().flat_map(tables::plots::plots)).collect()
    }

    fn json(&self) -> Vec<(&'static str, Box<dyn erased_serde::Serialize + '_>)> {
        let cliff = self.cliff.iter().map(|cliff| ("cliff", Box::new(CliffJson::of(cliff)) as Box<_>));
        let tables = self.tables.iter().map(|tables| ("tables", Box::new(TablesJson::of(tables)) as Box<_>));
        cliff.chain(tables).collect()
    }

    fn searches(&self) -> Vec<SearchedCrossings> {
        let groups = self.cliff.iter().flat_map(|cliff| &cliff.groups);
        let crossings = |group: &cliff::CurveGroup| {
            let found = group.crossings.iter().map(|crossing| FoundCrossing {
                before: crossing.before.clone(),
                after: crossing.after.clone(),
                ratio: crossing.ratio.unwrap_or_else(|| (crossing.low * crossing.high).sqrt()),
            });
            found.collect()
        };
        groups
            .map(|group| SearchedCrossings {
                label: group.compared_label.clone(),
                crossings: crossings(group),
            })
            .collect()
    }
}
