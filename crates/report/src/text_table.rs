//! A table of text for documents of any width, which keeps the numbers behind its texts.

use std::fmt;

use pagewise_model::format::MISSING;

use crate::line::Emphasis;

/// Headings, and rows of as many cells. Text from outside is not escaped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextTable {
    /// Headings of the columns, with units.
    pub headings: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<TextCell>>,
}

/// A text, and the number that it shows: `27.6 µs` and `1.02 ms` are in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextCell {
    /// The text.
    pub text: String,
    /// The number that the text shows, or whose interval it begins with.
    pub value: Option<f64>,
    /// Its emphasis, on a terminal.
    pub emphasis: Emphasis,
}

impl TextTable {
    /// A table without rows.
    pub(crate) fn of(headings: &[&str]) -> Self {
        Self { headings: headings.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// The rows that have a number in this column, by their numbers; `None` if none has one.
    pub fn ascending(&self, column: usize) -> Option<Vec<usize>> {
        let value = |row: &usize| self.rows[*row][column].value;
        let mut rows: Vec<usize> = (0..self.rows.len()).filter(|row| value(row).is_some()).collect();
        rows.sort_by(|one, other| value(one).unwrap_or(0.0).total_cmp(&value(other).unwrap_or(0.0)));
        (!rows.is_empty()).then_some(rows)
    }
}

impl TextCell {
    /// A text that shows this number.
    pub(crate) fn of(text: impl Into<String>, value: f64) -> Self {
        Self { value: Some(value).filter(|value| value.is_finite()), ..Self::from(text.into()) }
    }

    /// A number as text, or the mark of an unknown one.
    pub(crate) fn number(value: Option<f64>, text: impl Fn(f64) -> String) -> Self {
        value.map_or_else(|| MISSING.into(), |value| Self::of(text(value), value))
    }

    /// The same cell with this emphasis.
    pub(crate) fn with(self, emphasis: Emphasis) -> Self {
        Self { emphasis, ..self }
    }

    /// A count.
    pub(crate) fn count(count: usize) -> Self {
        Self::of(count.to_string(), count as f64)
    }
}

impl From<&str> for TextCell {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

impl From<&String> for TextCell {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<String> for TextCell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl fmt::Display for TextCell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}
