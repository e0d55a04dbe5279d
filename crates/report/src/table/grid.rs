//! Columns of the table of a comparison, with the texts of its cells.

use pagewise_analysis::judge::{CellJudgement, Comparison, MedianInterval};

use super::positions::Positions;
use crate::text_table::{TextCell, TextColumn, TextTable};

/// A comparison with its cells in the order of the table.
pub(crate) struct ComparisonView<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// Positions of its cells.
    pub positions: Positions<'a>,
    /// Measured cells of the comparison.
    pub cells: Vec<&'a CellJudgement>,
}

/// A column of a comparison's table.
pub(super) struct Column {
    /// Heading of the column, with the unit if its numbers have none.
    name: &'static str,
    /// Order in which it is left out where there is little room, the highest first; 0: never.
    spare: u32,
    is_kept_below: bool,
    stands: fn(&ComparisonView<'_>) -> bool,
    cell: fn(&ComparisonView<'_>, &CellJudgement) -> TextCell,
}

impl Column {
    /// A column that all comparisons of the workload have.
    pub const fn of(
        name: &'static str,
        spare: u32,
        cell: fn(&ComparisonView<'_>, &CellJudgement) -> TextCell,
    ) -> Self {
        Self { name, spare, is_kept_below: false, stands: |_| true, cell }
    }

    /// The same, for comparisons for which `stands` is true.
    pub const fn only(self, stands: fn(&ComparisonView<'_>) -> bool) -> Self {
        Self { stands, ..self }
    }

    /// The same; where it is left out, its texts stand below the table.
    pub const fn kept_below(self) -> Self {
        Self { is_kept_below: true, ..self }
    }
}

/// The table of a comparison.
pub(super) fn table<'a>(view: &ComparisonView<'_>, columns: impl Iterator<Item = &'a Column>) -> TextTable {
    let columns: Vec<&Column> = columns.filter(|column| (column.stands)(view)).collect();
    let heading = |column: &&Column| TextColumn {
        heading: column.name.to_string(),
        spare: column.spare,
        is_kept_below: column.is_kept_below,
    };
    let row = |cell: &&CellJudgement| columns.iter().map(|column| (column.cell)(view, cell)).collect();
    TextTable { columns: columns.iter().map(heading).collect(), rows: view.cells.iter().map(row).collect() }
}

/// The median of a figure, or the mark of an unknown one.
pub(super) fn median(value: Option<MedianInterval>, text: impl Fn(f64) -> String) -> TextCell {
    TextCell::number(value.map(|value| value.median), text)
}
