//! A judged run as text for a terminal.
//!
//! Above the numbers stands what must be known to read them: environment, seed, oddities, how many samples
//! were valid. Below each comparison stands what follows from it. A table never wraps within a row: where
//! it is too wide, columns are left out, the least needed first, and that is said.

mod heading;
mod rows;

use std::io::{self, Write};

use pagewise_analysis::Judged;
use pagewise_analysis::judged::{CellJudgement, Comparison, Status};
use pagewise_analysis::verdict::Verdict;
use pagewise_model::Role;

use crate::numbers::{bytes, counted, percent, rate};

/// The narrowest width that is laid out for; less is treated as this.
pub const NARROWEST: usize = 80;
/// The widest, since longer lines are hard to read.
pub const WIDEST: usize = 200;

/// Writes all of a judged run for a terminal of `width` columns.
pub fn write(out: &mut dyn Write, judged: &Judged, width: usize) -> io::Result<()> {
    let width = width.clamp(NARROWEST, WIDEST);
    heading::write(out, judged, width)?;
    for (index, comparison) in judged.comparisons.iter().enumerate() {
        writeln!(out)?;
        rows::write(out, judged, comparison, width)?;
        paragraph(out, "  ", &verdict(comparison), width)?;
        if let Some(advice) = judged.advice.get(index) {
            for sentence in advice.notes.iter().chain(std::iter::once(&advice.sentence)) {
                paragraph(out, "  ", sentence, width)?;
            }
        }
    }
    write_ceilings(out, judged, width)
}

fn verdict(comparison: &Comparison) -> String {
    let noise = match comparison.noise {
        Some(noise) => format!(" (noise of the run: {})", percent(noise)),
        None => String::new(),
    };
    match comparison.verdict {
        Verdict::Winner => {
            format!("Verdict: {} wins{noise}.", comparison.winner.as_deref().unwrap_or("the leader"))
        }
        Verdict::Tie => format!("Verdict: a tie of {}{noise}.", comparison.tied.join(", ")),
        Verdict::NotComparable => format!(
            "Verdict: not comparable, because {}{noise}.",
            comparison.reason.as_deref().unwrap_or("the data carry none")
        ),
    }
}

fn write_ceilings(out: &mut dyn Write, judged: &Judged, width: usize) -> io::Result<()> {
    let ceilings = &judged.ceilings;
    let missing: Vec<&CellJudgement> =
        judged.cells.iter().filter(|cell| cell.role == Role::Ceiling && cell.status != Status::Ok).collect();
    if ceilings.device.is_empty() && ceilings.copy.is_empty() && missing.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nCeilings, measured in the same run")?;
    for device in &ceilings.device {
        let line = format!(
            "device, {}, {} in flight each, {} a request: {} requests/s, {}/s",
            counted(u64::from(device.threads), "thread"),
            device.depth,
            bytes(device.issued_bytes),
            rate(device.requests_per_second),
            bytes(device.bytes_per_second),
        );
        paragraph(out, "  ", &line, width)?;
    }
    for copy in &ceilings.copy {
        let line = format!(
            "copy from memory, {}, {}, {} a read: {}/s",
            copy.conditions.workload,
            counted(u64::from(copy.threads), "thread"),
            bytes(copy.read_bytes.0 as f64),
            bytes(copy.bytes_per_second),
        );
        paragraph(out, "  ", &line, width)?;
    }
    for cell in missing {
        let line = format!(
            "{}, {}, {} a read: {}, {}",
            cell.method,
            cell.workload,
            bytes(cell.parameters.read_bytes.0 as f64),
            cell.status.name(),
            cell.reason.as_deref().unwrap_or("for an unknown reason"),
        );
        paragraph(out, "  ", &line, width)?;
    }
    Ok(())
}

/// Writes `text` in lines of at most `width` columns; lines after the first are indented further.
fn paragraph(out: &mut dyn Write, indent: &str, text: &str, width: usize) -> io::Result<()> {
    let mut line = indent.to_string();
    let mut empty = true;
    for word in text.split_whitespace() {
        let longer = line.chars().count() + 1 + word.chars().count();
        if !empty && longer > width {
            writeln!(out, "{line}")?;
            line = format!("{indent}  ");
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_keeps_to_its_width() {
        let mut out = Vec::new();
        paragraph(&mut out, "  ", "one two three four five", 12).expect("memory");
        assert_eq!(String::from_utf8(out).expect("text"), "  one two\n    three\n    four\n    five\n");
    }
}
