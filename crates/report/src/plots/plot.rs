//! A plot as plain data: what it asks, its axes, its marks, and the same as a table.

use crate::text_table::TextTable;

/// A plot that answers one question.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its kind, in names of files: `ratios`.
    pub id: &'static str,
    /// The question.
    pub heading: &'static str,
    /// Conditions of its values, as a label.
    pub conditions: String,
    /// Form of its marks.
    pub form: Form,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Its values.
    pub series: Vec<Series>,
    /// Marked ranges of the horizontal axis.
    pub bands: Vec<Band>,
    /// The same values as text.
    pub table: TextTable,
}

/// Form of the marks of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A dot for each value.
    Dots,
    /// Dots of a series, joined.
    Lines,
    /// Bars of a category, one after the other: `x` is the length of each.
    Bars,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its quantity.
    pub label: String,
    /// Unit of its values; empty without one.
    pub unit: &'static str,
    /// Its scale.
    pub scale: Scale,
    /// Text of a value.
    pub told: fn(f64) -> String,
}

/// Scale of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0, if no value is below.
    Linear,
    /// Logarithmic; values that are not positive have no place.
    Log,
    /// Names; a value is the index of one.
    Categories(Vec<String>),
}

/// Values with one colour.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its marks, in the order in which they are joined.
    pub marks: Vec<Mark>,
    /// Number of its colour, where a name has the same one in every plot; otherwise its place among the series.
    pub colour: Option<usize>,
}

/// One value.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// Lower end of its interval: on the horizontal axis if the vertical one has categories, else on the vertical one.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Text of the value.
    pub label: String,
    /// The reason, if the sample is invalid.
    pub invalid: Option<String>,
}

/// A range of the horizontal axis.
#[derive(Clone, Debug)]
pub struct Band {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Its meaning.
    pub label: String,
}

impl Axis {
    /// An axis of numbers.
    pub(crate) fn of(
        label: impl Into<String>,
        unit: &'static str,
        scale: Scale,
        told: fn(f64) -> String,
    ) -> Self {
        Self { label: label.into(), unit, scale, told }
    }

    /// An axis of names.
    pub(crate) fn names(label: &str, names: Vec<String>) -> Self {
        Self::of(label, "", Scale::Categories(names), |value| value.to_string())
    }
}

impl Series {
    /// The marks of a series by its name, which is added if it is new.
    pub(crate) fn named<'a>(all: &'a mut Vec<Series>, name: &str) -> &'a mut Vec<Mark> {
        let index = all.iter().position(|series| series.name == name).unwrap_or_else(|| {
            all.push(Series { name: name.to_string(), ..Series::default() });
            all.len() - 1
        });
        &mut all[index].marks
    }
}
