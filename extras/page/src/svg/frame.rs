//! Positions in a drawing.

use super::scale::Placed;

/// Positions of the parts of a plot.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) x: Placed,
    pub(super) y: Placed,
    /// True in a file of its own.
    pub(super) is_alone: bool,
}

impl Frame {
    /// A position with the digits that it has: a drawing on a page is not made larger.
    pub(super) fn rounded(&self, position: f64) -> f64 {
        let digits = if self.is_alone { 10.0 } else { 1.0 };
        // No position is -0.
        (position * digits).round() / digits + 0.0
    }

    /// The same as text.
    pub(super) fn text(&self, position: f64) -> String {
        self.rounded(position).to_string()
    }
}
