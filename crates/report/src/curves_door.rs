//! The door of an extra that answers a run as a whole, where its plan asks for more than
//! comparisons: crossings of methods as the data grow, and tables of methods.

use std::sync::OnceLock;

use pagewise_analysis::Judged;
use pagewise_model::Cell;
use pagewise_model::run::Run;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::document::Block;
use crate::plot::Plot;
use crate::text_table::TextTable;

/// An extra that answers runs as a whole.
pub struct CurvesDoor {
    /// The answer to a run; `None` if its plan asks for none.
    pub answer: fn(&Run, &Judged) -> Option<Box<dyn CurvesAnswer>>,
    /// The cells to add to a run whose cells have been sampled; none if nothing is left to find
    /// out.
    pub next: fn(&Run) -> Vec<Cell>,
    /// The parts of the judged JSON that it makes.
    pub keys: &'static [CurvesKey],
}

/// A part of the judged JSON.
pub struct CurvesKey {
    /// Key of the part, which is `null` in runs whose plan does not ask for it.
    pub name: &'static str,
    /// Description of the part.
    pub help: &'static str,
    /// Schema of the part.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The answer to a run as a whole.
pub trait CurvesAnswer {
    /// True if choices for single comparisons say nothing beside it.
    fn is_alone(&self) -> bool;
    /// Conclusions, as sentences.
    fn conclusions(&self) -> Vec<String>;
    /// All of it, in place of the tables of comparisons of the judged run.
    fn blocks(&self, judged: &Judged) -> Vec<Block>;
    /// The part that is shown on a screen; `None` if there is nothing to show.
    fn on_screen(&self) -> Option<CurvesOnScreen>;
    /// Plots.
    fn plots(&self) -> Vec<Plot>;
    /// The parts of the judged JSON, by their keys.
    fn json(&self) -> Vec<(&'static str, Box<dyn erased_serde::Serialize + '_>)>;
    /// The crossings that were searched for, by their conditions.
    fn searches(&self) -> Vec<SearchedCrossings>;
}

/// The answer to a run on a screen.
pub struct CurvesOnScreen {
    /// Conclusions, the most important one first.
    pub sentences: Vec<String>,
    /// A table below the first of them, with its label.
    pub table: Option<(String, TextTable)>,
}

/// A search for crossings under one set of conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchedCrossings {
    /// The conditions, by which it is found in a run of another machine.
    pub label: String,
    /// The crossings that it found.
    pub crossings: Vec<FoundCrossing>,
}

/// A change of the order of two methods as the data grow.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundCrossing {
    /// The faster one at lower ratios of data to page cache.
    pub before: String,
    /// The faster one at higher ratios.
    pub after: String,
    /// The ratio at which the order changes.
    pub ratio: f64,
}

static OFFERED: OnceLock<&[CurvesDoor]> = OnceLock::new();

/// Let this process answer runs through these doors. The first call counts.
pub fn offer(doors: &'static [CurvesDoor]) {
    OFFERED.get_or_init(|| doors);
}

fn doors() -> &'static [CurvesDoor] {
    OFFERED.get().copied().unwrap_or_default()
}

/// True if this process has such an answer.
pub fn is_offered() -> bool {
    !doors().is_empty()
}

/// The answer to a run as a whole; `None` if its plan asks for none.
pub fn answer(run: &Run, judged: &Judged) -> Option<Box<dyn CurvesAnswer>> {
    doors().iter().find_map(|door| (door.answer)(run, judged))
}

/// The cells to add to a run whose cells have been sampled.
pub fn next(run: &Run) -> Vec<Cell> {
    doors().iter().flat_map(|door| (door.next)(run)).collect()
}

/// The answer to a run as parts of the judged JSON.
pub(crate) struct CurvesJson<'a>(pub(crate) Option<&'a dyn CurvesAnswer>);

impl Serialize for CurvesJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.0.iter().flat_map(|answer| answer.json()).collect::<Vec<_>>();
        let mut map = serializer.serialize_map(None)?;
        for key in doors().iter().flat_map(|door| door.keys) {
            let part = parts.iter().find(|(name, _)| *name == key.name).map(|(_, part)| part);
            map.serialize_entry(key.name, &part)?;
        }
        map.end()
    }
}

impl JsonSchema for CurvesJson<'_> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Curves".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = schemars::json_schema!({ "type": "object", "properties": {}, "required": [] });
        for key in doors().iter().flat_map(|door| door.keys) {
            let mut part = (key.schema)(generator);
            part.insert("description".into(), key.help.into());
            if let Some(properties) = schema.get_mut("properties").and_then(|found| found.as_object_mut()) {
                properties.insert(key.name.into(), part.into());
            }
            if let Some(required) = schema.get_mut("required").and_then(|found| found.as_array_mut()) {
                required.push(key.name.into());
            }
        }
        schema
    }
}
