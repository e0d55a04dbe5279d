//! The door of an extra that shows answers in another format than those of the core, which are
//! text, Markdown, JSON and CSV.

use std::io::{self, Write};
use std::sync::OnceLock;

use anyhow::{Result, anyhow};
use pagewise_analysis::Judged;
use pagewise_report::document::Document;
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::plot::Plot;

/// A format of answers.
pub struct FormatDoor {
    /// The option that asks for it, and the ending of its files.
    pub name: &'static str,
    /// Write all of these runs.
    pub runs: fn(&mut dyn Write, &[JudgedRun<'_>]) -> io::Result<()>,
    /// Write an answer below a title.
    pub document: fn(&mut dyn Write, &str, &Document) -> io::Result<()>,
    /// The text by which a file of it says which runs it is of.
    pub mark: fn(&[Judged]) -> String,
    /// Every plot of these runs, as a file of its own.
    pub plots: fn(&[JudgedRun<'_>]) -> Vec<DrawnPlot>,
}

/// A plot of a run.
pub struct DrawnPlot {
    /// The question of the run.
    pub question: String,
    /// The plot as data.
    pub plot: Plot,
    /// The text of its file.
    pub svg: String,
}

static OFFERED: OnceLock<&[FormatDoor]> = OnceLock::new();

/// Let this process have the formats behind these doors. The first call counts.
pub fn offer(doors: &'static [FormatDoor]) {
    OFFERED.get_or_init(|| doors);
}

/// The format of this name, or a sentence that refuses the option that needs it.
pub fn needed(name: &str, option: &str) -> Result<&'static FormatDoor> {
    let without = || anyhow!("this build of pagewise is without the format {name}: leave out {option}");
    of(name).ok_or_else(without)
}

/// The format of this name, if this process has it.
pub fn of(name: &str) -> Option<&'static FormatDoor> {
    OFFERED.get().copied().unwrap_or_default().iter().find(|door| door.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_refused_where_its_format_is_missing() {
        let refused = needed("html", "--svg").err().expect("no door is offered in these tests").to_string();
        assert_eq!(refused, "this build of pagewise is without the format html: leave out --svg");
    }
}
