//! A plot as plain data: what it asks, its axes, its marks, and the same as a table.

use pagewise_model::format;

use crate::text_table::TextTable;

/// A plot that answers one question.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Kind of the plot, in names of files: `ratios`.
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
    /// Values of the plot.
    pub series: Vec<Series>,
    /// Marked ranges of the horizontal axis.
    pub bands: Vec<Band>,
    /// The same values as text; plots that follow each other may have one.
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
    /// Heading of the axis.
    pub label: String,
    /// Scale of the axis.
    pub scale: Scale,
    /// The kind of its values.
    pub quantity: AxisQuantity,
}

/// A kind of values of an axis.
#[derive(Clone, Copy, Debug)]
pub struct AxisQuantity {
    /// Text of a value.
    pub text: fn(f64) -> String,
    /// The distance of ticks.
    pub steps: TickSteps,
}

/// Distances of ticks whose labels are short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickSteps {
    /// 1, 2 and 5 of each decade.
    Decimal,
    /// The same, of whole numbers.
    Whole,
    /// Powers of two.
    Binary,
}

impl AxisQuantity {
    /// Nanoseconds.
    pub const TIME: Self = Self { text: format::time, steps: TickSteps::Decimal };
    /// Bytes.
    pub const BYTES: Self = Self { text: format::bytes, steps: TickSteps::Binary };
    /// A number of things.
    pub const COUNT: Self = Self { text: |value| format!("{value:.0}"), steps: TickSteps::Whole };
    /// Things in a second.
    pub const RATE: Self = Self { text: format::rate, steps: TickSteps::Decimal };
    /// A number without a unit.
    pub const PLAIN: Self = Self { text: format::plain, steps: TickSteps::Decimal };
    /// A multiple that was chosen.
    pub const MULTIPLE: Self = Self { text: format::multiple, steps: TickSteps::Decimal };
    /// A ratio that was measured.
    pub const RATIO: Self =
        Self { text: |value| format!("{}x", format::times(value)), steps: TickSteps::Decimal };
    /// A share of 1.
    pub const SHARE: Self = Self { text: format::percent, steps: TickSteps::Decimal };
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
    /// Name of the series.
    pub name: String,
    /// Marks of the series, in the order in which they are joined.
    pub marks: Vec<Mark>,
    /// Number of its colour, where a name has the same one in every plot; otherwise its index among
    /// the series.
    pub colour: Option<usize>,
}

/// One value.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// Lower end of its interval: on the horizontal axis if the vertical one has categories, else
    /// on the vertical one.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Text of the value.
    pub text: MarkText,
    /// True for a sample that is invalid; the text has the reason.
    pub invalid: bool,
}

/// Text of a value.
#[derive(Clone, Debug)]
pub enum MarkText {
    /// A text of its own.
    Own(String),
    /// That of a row and a column of the plot's table: name of the row, heading, cell.
    Cell(usize, usize),
    /// The same of one part of the cell: these have a comma and a space between them.
    Part(usize, usize, usize),
}

impl Default for MarkText {
    fn default() -> Self {
        Self::Own(String::new())
    }
}

/// Between the parts of a cell.
pub const PARTS: &str = ", ";

/// A range of the horizontal axis.
#[derive(Clone, Debug)]
pub struct Band {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Meaning of the range.
    pub label: String,
}

impl Plot {
    /// The text of one of its marks.
    pub fn text(&self, mark: &Mark) -> String {
        match &mark.text {
            MarkText::Own(text) => text.clone(),
            MarkText::Cell(row, column) => {
                let (cells, heading) = (&self.table.rows[*row], &self.table.columns[*column].heading);
                format!("{}, {heading}: {}", cells[0], cells[*column])
            }
            MarkText::Part(row, column, part) => {
                let (cells, heading) = (&self.table.rows[*row], &self.table.columns[*column].heading);
                let part = cells[*column].text.split(PARTS).nth(*part).unwrap_or_default();
                format!("{}, {heading} {part}", cells[0])
            }
        }
    }
}

impl Axis {
    /// An axis of numbers.
    pub fn of(label: impl Into<String>, scale: Scale, quantity: AxisQuantity) -> Self {
        Self { label: label.into(), scale, quantity }
    }

    /// An axis of names.
    pub fn names(label: &str, names: Vec<String>) -> Self {
        Self::of(label, Scale::Categories(names), AxisQuantity::COUNT)
    }
}

impl Series {
    /// The marks of a series by its name, which is added if it is new.
    pub fn named<'a>(all: &'a mut Vec<Series>, name: &str) -> &'a mut Vec<Mark> {
        let index = all.iter().position(|series| series.name == name).unwrap_or_else(|| {
            all.push(Series { name: name.to_string(), ..Series::default() });
            all.len() - 1
        });
        &mut all[index].marks
    }
}
