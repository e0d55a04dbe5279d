//! An extra: judged runs and answers as one HTML page, and their plots as SVG.
//!
//! [`PAGE`] is the only door.

mod markup;
mod page;
mod plots;
mod svg;
#[cfg(test)]
mod tests;

use pagewise_lab::format_door::FormatDoor;

/// A page in a file, which `--html` asks for.
pub const PAGE: FormatDoor = FormatDoor {
    name: "html",
    runs: page::write,
    document: page::write_document,
    mark: |judged| page::mark(judged),
    plots: plots::drawn,
};
