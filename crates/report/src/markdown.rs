//! Judged runs as Markdown that pastes into a pull request: the conclusion of each comparison above
//! its table.

use std::fmt::Display;
use std::io::{self, Write};

use pagewise_analysis::Judged;
use pagewise_model::Untrusted;
use pagewise_model::format::percent_down;

use crate::comparison;
use crate::document::Document;
use crate::judged_run::JudgedRun;
use crate::text_table::TextTable;
use crate::words;

/// Write the comparisons of all runs.
pub fn write(out: &mut dyn Write, runs: &[JudgedRun<'_>]) -> io::Result<()> {
    for (index, run) in runs.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_run(out, run)?;
    }
    Ok(())
}

fn write_run(out: &mut dyn Write, run: &JudgedRun<'_>) -> io::Result<()> {
    let judged = run.judged;
    writeln!(out, "### {}\n\n{}", text(&judged.run.question), text(described(judged)))?;
    let sentences = run.conclusions();
    let warnings = words::warnings::all(judged);
    if !warnings.is_empty() || !sentences.is_empty() {
        writeln!(out)?;
    }
    for warning in warnings {
        writeln!(out, "- **Warning:** {}", text(warning))?;
    }
    for sentence in sentences {
        writeln!(out, "- {}", text(sentence))?;
    }
    let by_id = judged.by_id();
    for (index, compared) in judged.comparisons.iter().enumerate() {
        writeln!(out)?;
        let body = comparison::blocks(&by_id, compared, judged.advice.get(index), 3);
        Document { body, ..Document::default() }.markdown(out)?;
    }
    Ok(())
}

/// Version, machine, storage and validity in a line.
fn described(judged: &Judged) -> String {
    let environment = &judged.environment;
    let mut parts = vec![format!("pagewise {}", environment.pagewise_version)];
    parts.extend(environment.host_name.clone());
    parts.push(format!("Linux {}", environment.kernel));
    parts.extend(environment.cpu_model.clone());
    parts.push(environment.filesystem.clone());
    parts.extend(environment.device_model.clone().or(environment.device.clone()));
    let validity = &judged.validity;
    parts.push(match validity.share {
        Some(share) => {
            format!("{} of {} samples valid ({})", validity.valid, validity.samples, percent_down(share))
        }
        None => "no sample was taken".to_string(),
    });
    parts.join(" · ")
}

pub(crate) fn write_table(out: &mut dyn Write, table: &TextTable) -> io::Result<()> {
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    writeln!(out, "{}", row(table.headings.iter().map(text).collect()))?;
    writeln!(out, "|{}", " --- |".repeat(table.headings.len()))?;
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
