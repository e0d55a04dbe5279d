//! A document as lines for a terminal: headings at the left, all else two columns further right.

use pagewise_model::Untrusted;

use super::{Block, Document, emphasis};
use crate::line::{Line, Span};
use crate::paragraph::{NARROWEST, WIDEST, wrapped};
use crate::text_table::{TextCell, TextTable};

/// Indentation below a heading.
const INDENT: &str = "  ";
/// Indentation of the rest of a last cell that is longer than its line.
const OF_REST: &str = "      ";
/// Least width of the names of facts, so that several blocks of them are aligned.
const NAME: usize = 10;
/// Columns between those of a table.
const GAP: usize = 2;

impl Document {
    /// Its lines, of at most `width` columns.
    pub fn lines(&self, width: usize) -> Vec<Line> {
        let mut screen = Screen { lines: Vec::new(), width: width.clamp(NARROWEST, WIDEST), indent: "" };
        self.head.iter().chain(&self.body).for_each(|block| screen.add(block));
        if let (false, Some(first)) = (screen.lines.is_empty(), self.conclusion.first()) {
            screen.indent = "";
            if !matches!(first, Block::Heading(..)) {
                screen.lines.push(Line::new());
            }
        }
        self.conclusion.iter().for_each(|block| screen.add(block));
        screen.lines
    }
}

/// Lines so far.
struct Screen {
    lines: Vec<Line>,
    width: usize,
    /// Indentation of what comes next.
    indent: &'static str,
}

impl Screen {
    fn add(&mut self, block: &Block) {
        match block {
            Block::Heading(_, line) => {
                if !self.lines.is_empty() {
                    self.lines.push(Line::new());
                }
                self.indent = "";
                self.text(line);
                self.indent = INDENT;
            }
            Block::Paragraph(line) => self.text(line),
            Block::Warning(text) => self.text(&Line::plain(format!("! {text}"))),
            Block::List(items) => items.iter().for_each(|item| self.wrapped(INDENT, item, Span::plain)),
            Block::Facts(facts) => self.facts(facts),
            Block::Table(table, _) => self.table(table),
            Block::Plots(_) => {}
        }
    }

    /// A line whose parts keep their emphasis if it fits; otherwise it has one of them.
    fn text(&mut self, line: &Line) {
        let len = Untrusted(line.text()).to_string().chars().count();
        if self.indent.len() + len <= self.width {
            let indent = std::iter::once(Span::plain(self.indent)).filter(|span| !span.text.is_empty());
            self.lines.push(Line(indent.chain(line.0.clone()).collect()));
            return;
        }
        let emphasis = emphasis(line);
        self.wrapped(self.indent, &line.text(), |text| Span { text, emphasis });
    }

    fn wrapped(&mut self, indent: &str, text: &str, span: impl Fn(String) -> Span) {
        let lines = wrapped(indent, text, self.width);
        self.lines.extend(lines.into_iter().map(|text| Line(vec![span(text)])));
    }

    fn facts(&mut self, facts: &[(String, Vec<String>)]) {
        let names = facts.iter().map(|(name, _)| name.chars().count());
        let widest = names.max().filter(|widest| *widest > NAME).map_or(NAME + 1, |widest| widest + GAP);
        let indent = " ".repeat(INDENT.len() + widest);
        for (name, texts) in facts {
            let lines: Vec<String> =
                texts.iter().flat_map(|text| wrapped(&indent, text, self.width)).collect();
            let first = lines.first().map_or("", |line| line.trim_start());
            self.lines.push(Line::plain(format!("{INDENT}{name:widest$}{first}")));
            self.lines.extend(lines.iter().skip(1).map(|line| Line::plain(line.clone())));
        }
    }

    /// Numbers are at the right of their columns. A last cell that is longer than its line goes on
    /// below.
    fn table(&mut self, table: &TextTable) {
        let shown = |text: &str| Untrusted(text).to_string();
        let columns = table.headings.len();
        let letters = |text: &str| shown(text).chars().count();
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = table.rows.iter().map(|row| letters(&row[column].text));
                cells.chain([letters(&table.headings[column])]).max().unwrap_or(0)
            })
            .collect();
        let is_number: Vec<bool> =
            (0..columns).map(|column| table.rows.iter().any(|row| row[column].value.is_some())).collect();
        let padded = |column: usize, text: &str| {
            let (text, width) = (shown(text), widths[column]);
            match (is_number[column], column + 1 == columns) {
                (true, _) => format!("{text:>width$}"),
                (false, true) => text,
                (false, false) => format!("{text:width$}"),
            }
        };
        let before = |texts: &[&str]| -> String {
            let cells =
                texts.iter().enumerate().map(|(column, text)| padded(column, text) + &" ".repeat(GAP));
            INDENT.to_string() + &cells.collect::<String>()
        };
        let Some((last_heading, headings)) = table.headings.split_last() else { return };
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        self.lines.push(Line::weak(before(&headings) + &padded(columns - 1, last_heading)));
        for row in &table.rows {
            let Some((last, cells)) = row.split_last() else { continue };
            let texts: Vec<&str> = cells.iter().map(|cell| cell.text.as_str()).collect();
            let before = before(&texts);
            self.row(before, last, &padded(columns - 1, &last.text));
        }
    }

    fn row(&mut self, before: String, last: &TextCell, padded: &str) {
        let span = |text: String| Span { text, emphasis: last.emphasis };
        let room = self.width.saturating_sub(before.chars().count());
        if padded.chars().count() <= room {
            self.lines.push(Line(vec![Span::plain(before), span(padded.to_string())]));
            return;
        }
        // Its first words stand in the row.
        let broken = wrapped("", &last.text, room);
        let Some((first, rest)) = broken.split_first() else { return };
        self.lines.push(Line(vec![Span::plain(before), span(first.clone())]));
        let rest: Vec<&str> = rest.iter().map(|line| line.trim_start()).collect();
        self.wrapped(OF_REST, &rest.join(" "), span);
    }
}
