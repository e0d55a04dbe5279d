//! An answer as a document, built once: a terminal, Markdown and a page show it. Text from outside
//! is escaped by them alone.

mod markdown;
mod terminal;

use crate::line::{Emphasis, Line, Span};
use crate::map::MethodMap;
use crate::plot::Plot;
use crate::text_table::TextTable;

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The subject: what was compared, watched or measured.
    pub head: Vec<Block>,
    /// The findings in a few lines: above the rest where reading begins at the top, and below it on
    /// a terminal, which ends with them.
    pub conclusion: Vec<Block>,
    /// All of it.
    pub body: Vec<Block>,
}

/// A part of a document.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading of a level; 2 is the highest.
    Heading(u8, Line),
    /// A paragraph.
    Paragraph(Line),
    /// A sentence about a reason to doubt.
    Warning(String),
    /// Sentences of equal rank.
    List(Vec<String>),
    /// Names, each with its lines of text.
    Facts(Vec<(String, Vec<String>)>),
    /// A table, and what it is of.
    Table(TextTable, String),
    /// Drawings, which only a page shows.
    Plots(Vec<Plot>),
    /// Methods by situations, in colours, which only a page shows.
    Map(MethodMap),
    /// Lines that are laid out already, which only a terminal shows.
    Lines(Vec<Line>),
    /// A part with a conclusion of its own.
    Part(Document),
}

impl Document {
    /// The conclusion alone.
    pub fn conclusion(&self) -> Self {
        Self { conclusion: self.conclusion.clone(), ..Self::default() }
    }

    /// All blocks but parts in the order of reading, where a part begins with its conclusion.
    pub fn blocks<'a>(&'a self) -> Vec<&'a Block> {
        let all = self.head.iter().chain(&self.conclusion).chain(&self.body);
        let flat = |block: &'a Block| match block {
            Block::Part(part) => part.blocks(),
            block => vec![block],
        };
        all.flat_map(flat).collect()
    }
}

impl Block {
    /// A heading without a finding in it.
    pub fn heading(level: u8, text: impl Into<String>) -> Self {
        Self::Heading(level, Line(vec![Span::strong(text)]))
    }

    /// A paragraph without emphasis.
    pub fn paragraph(text: impl Into<String>) -> Self {
        Self::Paragraph(Line(vec![Span::plain(text)]))
    }

    /// Names, each with one line of text.
    pub fn facts(facts: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::Facts(facts.into_iter().map(|(name, text)| (name, vec![text])).collect())
    }

    /// A secondary remark.
    pub fn remark(text: impl Into<String>) -> Self {
        Self::Paragraph(Line(vec![Span::weak(text)]))
    }
}

/// The emphasis of a line whose parts are joined: that of its first part with any.
fn emphasis(line: &Line) -> Emphasis {
    let marked = line.0.iter().find(|span| span.emphasis != Emphasis::Plain);
    marked.map_or(Emphasis::Plain, |span| span.emphasis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_table::TextCell;

    /// One document of every kind of block, with text that each back end has to escape.
    fn document() -> Document {
        let row = |method: &str, rate: f64, said: &str, emphasis: Emphasis| {
            vec![method.into(), TextCell::of(format!("{rate}k"), rate), TextCell::from(said).with(emphasis)]
        };
        let long = "not measured, because the file on which it was to be measured is gone now";
        let table = TextTable {
            rows: vec![
                row("mmap", 7.0, "faster", Emphasis::Strong),
                row("pread:direct", 12.5, long, Emphasis::Weak),
            ],
            ..TextTable::of(&["method", "reads/s", "change"])
        };
        let verdict = Line(vec![Span::plain("A1 "), Span::bad("does not hold")]);
        Document {
            head: vec![Block::paragraph("base: <b>\u{1b}"), Block::Warning("two machines".to_string())],
            conclusion: vec![Block::paragraph("1 faster"), Block::List(vec!["a gate".to_string()])],
            body: vec![
                Block::heading(2, "Reads"),
                Block::Table(table, "Reads".to_string()),
                Block::Heading(3, verdict),
                Block::Facts(vec![(
                    "reads".to_string(),
                    vec!["3 calls".to_string(), "of 2 files".to_string()],
                )]),
                Block::remark("of 2"),
                Block::List(Vec::new()),
                Block::Plots(Vec::new()),
                Block::Map(MethodMap {
                    of: "host".to_string(),
                    rows: vec!["<n1>".to_string(), "n2".to_string()],
                    labels: vec!["cold".to_string()],
                    columns: vec![vec![Some(("mmap".to_string(), "mmap & more".to_string())), None]],
                }),
            ],
        }
    }

    #[test]
    fn a_terminal_ends_with_the_conclusion() {
        let lines: Vec<String> = document().lines(80).iter().map(Line::text).collect();
        let expected = "\
base: <b>\u{1b}
! two machines

Reads
  method        reads/s  change
  mmap               7k  faster
  pread:direct    12.5k  not measured, because the file on which it was to be
      measured is gone now

A1 does not hold
  reads      3 calls
             of 2 files
  of 2

1 faster
  a gate";
        assert_eq!(lines.join("\n"), expected);
        assert_eq!(document().lines(80)[5].0[1], Span::strong("faster"));
    }

    #[test]
    fn a_wide_table_of_numbers_goes_on_below() {
        let cell = || TextCell::of("1.00x [0.994, 1.007] not distinguishable", 1.0);
        let table = TextTable {
            rows: vec![vec!["jvm/filechannel:direct-buffer".into(), cell(), cell()]],
            ..TextTable::of(&["method", "4 threads", "16 threads"])
        };
        let body = vec![Block::Table(table, String::new())];
        let lines = Document { body, ..Document::default() }.lines(100);
        let lines: Vec<String> = lines.iter().map(Line::text).collect();
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{lines:#?}");
        assert!(lines[2].starts_with("  method") && lines[2].ends_with("16 threads"), "{lines:#?}");
    }

    #[test]
    fn a_column_is_left_out_only_if_it_does_not_fit() {
        let mut table = TextTable::of(&["method", "wide", "narrow"]);
        table.columns[1].spare = 1;
        table.columns[2].spare = 2;
        table.rows = vec![vec!["mmap".into(), "x".repeat(90).into(), "1".into()]];
        let body = vec![Block::Table(table, String::new())];
        let lines = Document { body, ..Document::default() }.lines(80);
        let lines: Vec<String> = lines.iter().map(Line::text).collect();
        assert_eq!(lines[..2], ["  method  narrow", "  mmap    1"]);
        assert!(lines[2].starts_with("  columns that do not fit: wide (a wider"), "{lines:#?}");
    }

    #[test]
    fn markdown_has_the_conclusion_above() {
        let mut out = Vec::new();
        document().markdown(&mut out).expect("memory");
        let expected = "\
base: &lt;b&gt;\\\\u{1b}

> **Warning:** two machines

1 faster

- a gate

### Reads

| method | reads/s | change |
| --- | --- | --- |
| mmap | 7k | faster |
| pread:direct | 12.5k | not measured, because the file on which it was to be measured is gone now |

#### A1 does not hold

- **reads** 3 calls; of 2 files

of 2
";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
