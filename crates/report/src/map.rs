//! A map as data: which method to use where. A page draws it.

/// A row for each machine or run, and a column for each situation.
#[derive(Clone, Debug)]
pub struct MethodMap {
    /// Meaning of a row.
    pub of: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Conditions of each column.
    pub labels: Vec<String>,
    /// By column, then by row: the method by which it is coloured, and its text.
    pub columns: Vec<Vec<Option<(String, String)>>>,
}
