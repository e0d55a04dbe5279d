//! Columns with names and units, and the text of a table fitted to a width.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use pagewise_analysis::judge::{CellJudgement, Comparison};
use pagewise_model::Untrusted;

use super::standing::Standings;
use pagewise_model::format::MISSING;

/// A comparison with its cells in the order of the table.
pub(super) struct ComparisonView<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// Positions of its cells.
    pub standings: Standings<'a>,
    /// Its measured cells.
    pub cells: Vec<&'a CellJudgement>,
}

/// A column of a comparison's table.
pub(super) struct Column {
    /// Its heading, with the unit if its numbers have none.
    pub name: &'static str,
    /// Order in which it is left out if the table is too wide, the highest first; 0: never.
    spare: u32,
    words: bool,
    stands: fn(&ComparisonView<'_>) -> bool,
    text: fn(&ComparisonView<'_>, &CellJudgement) -> String,
}

impl Column {
    /// Numbers, aligned right.
    pub const fn numbers(
        name: &'static str,
        spare: u32,
        text: fn(&ComparisonView<'_>, &CellJudgement) -> String,
    ) -> Self {
        Self { name, spare, words: false, stands: |_| true, text }
    }

    /// Words, aligned left, and numbers with an interval, which are read like words.
    pub const fn words(
        name: &'static str,
        spare: u32,
        text: fn(&ComparisonView<'_>, &CellJudgement) -> String,
    ) -> Self {
        Self { name, spare, words: true, stands: |_| true, text }
    }

    /// The same, for comparisons for which `stands` is true.
    pub const fn only(self, stands: fn(&ComparisonView<'_>) -> bool) -> Self {
        Self { stands, ..self }
    }
}

/// The columns that fit into `width`, and the names of those that do not.
pub(super) fn fitting(
    view: &ComparisonView<'_>,
    columns: &'static [Column],
    width: usize,
) -> (Vec<&'static Column>, Vec<&'static str>) {
    let mut columns: Vec<&Column> = columns.iter().filter(|column| (column.stands)(view)).collect();
    let mut left_out = Vec::new();
    let widest = |columns: &[&Column]| {
        table(view, columns).lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0)
    };
    while widest(&columns) > width {
        let Some(spare) = columns.iter().filter(|column| column.spare > 0).max_by_key(|column| column.spare)
        else {
            break;
        };
        left_out.push(spare.name);
        let name = spare.name;
        columns.retain(|column| column.name != name);
    }
    (columns, left_out)
}

/// Format the cells in these columns.
pub(super) fn table(view: &ComparisonView<'_>, columns: &[&Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let rows: Vec<Vec<String>> = view
        .cells
        .iter()
        .map(|cell| columns.iter().map(|column| (column.text)(view, cell)).collect())
        .collect();
    drawn(&names, &rows, |index| columns[index].words)
}

/// Format rows below their headings; columns are aligned right unless `is_left`.
pub(super) fn drawn(names: &[&str], rows: &[Vec<String>], is_left: impl Fn(usize) -> bool) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(names.iter().map(Untrusted));
    for row in rows {
        table.add_row(row.iter().map(Untrusted));
    }
    for index in 0..names.len() {
        if let Some(column) = table.column_mut(index)
            && !is_left(index)
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

/// The text of a value, or the mark of an unknown one.
pub(super) fn or_missing<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| MISSING.to_string(), text)
}
