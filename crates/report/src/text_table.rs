//! A table of text for documents of any width, which keeps the numbers behind its texts.

use std::fmt;

use pagewise_model::format::{MISSING, Number};

use crate::line::Emphasis;

/// Columns that can be spared more are left out of pages and Markdown.
const MOST_SPARE: u32 = 2;

/// Headings, and rows of as many cells. Text from outside is not escaped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextTable {
    /// Columns.
    pub columns: Vec<TextColumn>,
    /// Rows.
    pub rows: Vec<Vec<TextCell>>,
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextColumn {
    /// Heading, with the unit if its texts have none.
    pub heading: String,
    /// Order in which it is left out where there is little room, the highest first; 0: never.
    pub spare: u32,
    /// If it is left out, its texts stand below the table.
    pub is_kept_below: bool,
}

/// A text, and the number that it shows: `27.6 µs` and `1.02 ms` are in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextCell {
    /// The text.
    pub text: String,
    /// The number that the text shows, or whose interval it begins with.
    pub value: Option<f64>,
    /// Length of a bar beside the text on a terminal, as a share of the longest.
    pub bar: Option<f64>,
    /// Emphasis of the text, on a terminal.
    pub emphasis: Emphasis,
}

impl TextTable {
    /// A table without rows.
    pub fn of(headings: &[&str]) -> Self {
        Self { columns: headings.iter().map(|heading| (*heading).into()).collect(), rows: Vec::new() }
    }

    /// Headings of the columns.
    pub fn headings(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.heading.as_str())
    }

    /// Columns that say most, for what is neither narrow nor complete.
    pub fn important(&self) -> Self {
        let says_most = |column: &TextColumn| column.spare <= MOST_SPARE || column.is_kept_below;
        let columns = 0..self.columns.len();
        self.only(&columns.filter(|column| says_most(&self.columns[*column])).collect::<Vec<usize>>())
    }

    /// These columns.
    pub(crate) fn only(&self, columns: &[usize]) -> Self {
        fn those<T: Clone>(all: &[T], columns: &[usize]) -> Vec<T> {
            columns.iter().map(|column| all[*column].clone()).collect()
        }
        Self {
            columns: those(&self.columns, columns),
            rows: self.rows.iter().map(|row| those(row, columns)).collect(),
        }
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
    pub fn of(text: impl Into<String>, value: f64) -> Self {
        Self { value: Some(value).filter(|value| value.is_finite()), ..Self::from(text.into()) }
    }

    /// The mark of an unknown value.
    pub fn missing() -> Self {
        MISSING.into()
    }

    /// A number as text, or the mark of an unknown one.
    pub fn number<T: Number + Copy>(value: Option<T>, text: impl Fn(T) -> String) -> Self {
        value.map_or_else(Self::missing, |value| Self::of(text(value), value.value()))
    }

    /// The same cell with this emphasis.
    pub fn with(self, emphasis: Emphasis) -> Self {
        Self { emphasis, ..self }
    }

    /// A count.
    pub fn count(count: usize) -> Self {
        Self::of(count.to_string(), count as f64)
    }
}

impl<T: Into<String>> From<T> for TextColumn {
    fn from(heading: T) -> Self {
        Self { heading: heading.into(), ..Self::default() }
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
