//! Judged runs as Markdown that pastes into a pull request: the conclusion of each comparison above
//! its table.

use std::fmt::Display;
use std::io::{self, Write};

use pagewise_model::Untrusted;

use crate::document::{Block, Document};
use crate::judged_run::JudgedRun;
use crate::table;
use crate::text_table::TextTable;

/// Write the comparisons of all runs.
pub fn write(out: &mut dyn Write, runs: &[JudgedRun<'_>]) -> io::Result<()> {
    for (index, run) in runs.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let head = vec![Block::heading(2, &run.judged.run.question)];
        let mut body = vec![Block::Part(table::document(run))];
        // A pull request has no other format beside it.
        if run.curves().is_some() {
            body.extend(table::comparisons(run.judged));
        }
        Document { head, body, ..Document::default() }.markdown(out)?;
    }
    Ok(())
}

pub(crate) fn write_table(out: &mut dyn Write, table: &TextTable) -> io::Result<()> {
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    writeln!(out, "{}", row(table.headings().map(text).collect()))?;
    writeln!(out, "|{}", " --- |".repeat(table.columns.len()))?;
    table.rows.iter().try_for_each(|cells| writeln!(out, "{}", row(cells.iter().map(text).collect())))
}

/// Text that Markdown and HTML show as it is, on one line.
pub(crate) fn text(value: impl Display) -> String {
    let mut shown = String::new();
    for letter in Untrusted(value).to_string().chars() {
        match letter {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '#' | '~' | '$' | '@' => shown.extend(['\\', letter]),
            letter => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup() {
        assert_eq!(
            text("mmap:random+prefetch 12.3k [12.1k, 12.6k]"),
            "mmap:random+prefetch 12.3k \\[12.1k, 12.6k\\]"
        );
        assert_eq!(text("a|b`c`\n| <b> &amp; **x**"), r"a\|b\`c\`\\u{a}\| &lt;b&gt; &amp;amp; \*\*x\*\*");
        assert_eq!(text("\u{1b}[31m"), r"\\u{1b}\[31m");
    }
}
