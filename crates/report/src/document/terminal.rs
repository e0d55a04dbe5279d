//! A document as lines for a terminal: headings at the left, all else two columns further right.

use pagewise_model::Untrusted;
use pagewise_model::format::MISSING;

use super::{Block, Document, emphasis};
use crate::bar;
use crate::line::{Line, Span};
use crate::paragraph::{NARROWEST, WIDEST, shortened, wrapped};
use crate::text_table::{TextCell, TextColumn, TextTable};

/// Indentation below a heading.
const INDENT: &str = "  ";
/// Indentation of the rest of a last cell that is longer than its line.
const OF_REST: &str = "      ";
/// Least width of the names of facts, so that several blocks of them are aligned.
const NAME: usize = 10;
/// Space between the columns of a table.
const GAP: &str = "  ";
/// Least width of a last column whose texts go on below.
const LEAST_WORDS: usize = 20;
/// Bars where there is little room, and where there is much.
const SHORTEST_BAR: usize = 4;
const LONGEST_BAR: usize = 16;

impl Document {
    /// Lines of the document, of at most `width` columns.
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
            Block::Plots(_) | Block::Map(_) => {}
            Block::Lines(lines) => self.lines.extend(lines.iter().cloned()),
            Block::Part(part) => {
                part.head.iter().chain(&part.body).chain(&part.conclusion).for_each(|block| self.add(block));
            }
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
        let widest =
            names.max().filter(|widest| *widest > NAME).map_or(NAME + 1, |widest| widest + GAP.len());
        let indent = " ".repeat(INDENT.len() + widest);
        for (name, texts) in facts {
            let lines: Vec<String> =
                texts.iter().flat_map(|text| wrapped(&indent, text, self.width)).collect();
            let first = lines.first().map_or("", |line| line.trim_start());
            self.lines.push(Line::plain(format!("{INDENT}{name:widest$}{first}")));
            self.lines.extend(lines.iter().skip(1).map(|line| Line::plain(line.clone())));
        }
    }

    /// Numbers are at the right of their columns. A table that is too wide leaves out what it can
    /// spare; then a last cell that is longer than its line goes on below, if it has words, and
    /// otherwise the table goes on below.
    fn table(&mut self, whole: &TextTable) {
        let room = self.width - INDENT.len();
        let all = Grid::of(whole);
        let kept = all.fitting(whole, room);
        let (table, grid) = (whole.only(&kept), all.only(&kept));
        let Some((last, others)) = grid.0.split_last() else { return };
        let wraps = !last.is_number && Grid(others.to_vec()).before_next() + LEAST_WORDS <= room;
        if others.is_empty() || grid.width() <= room || wraps {
            self.rows(&table, &grid.with_bars_in(room));
        } else {
            self.parts(&table, &grid, room);
        }
        self.left_out(whole, &kept);
    }

    /// The columns of a table that is too wide, in several tables that begin with its first one.
    fn parts(&mut self, table: &TextTable, grid: &Grid, room: usize) {
        let mut rest = 1..grid.0.len();
        while let Some(first) = rest.next() {
            let mut columns = vec![0, first];
            while rest.start < rest.end
                && grid.only(&columns).before_next() + grid.0[rest.start].width <= room
            {
                columns.extend(rest.next());
            }
            let (mut part, mut narrow) = (table.only(&columns), grid.only(&columns));
            // A long name leaves room for one column at least.
            let others = narrow.width() - narrow.0[0].width;
            let most = narrow.0[0].width.min(room.saturating_sub(others).max(GAP.len()));
            narrow.0[0].width = most;
            for row in &mut part.rows {
                row[0].text = shortened(&row[0].text, most);
            }
            part.columns[0].heading = shortened(&part.columns[0].heading, most);
            self.rows(&part, &narrow);
        }
    }

    fn rows(&mut self, table: &TextTable, grid: &Grid) {
        let Some((last, others)) = table.columns.split_last() else { return };
        let headings = others.iter().enumerate();
        let headings = headings.map(|(column, of)| grid.text(column, &of.heading, None) + GAP);
        let last_heading = grid.text(others.len(), &last.heading, None);
        self.lines.push(Line::weak(format!("{INDENT}{}{last_heading}", headings.collect::<String>())));
        for row in &table.rows {
            let Some((last, others)) = row.split_last() else { continue };
            let mut before = Line::plain(INDENT.to_string());
            for (column, cell) in others.iter().enumerate() {
                let text = grid.text(column, &cell.text, cell.bar) + GAP;
                before.push(Span { text, emphasis: cell.emphasis });
            }
            self.row(before, last, grid.text(others.len(), &last.text, last.bar));
        }
    }

    /// The texts of columns that are kept below, and the names of the others.
    fn left_out(&mut self, whole: &TextTable, kept: &[usize]) {
        let mut names = Vec::new();
        for (index, column) in whole.columns.iter().enumerate().filter(|(index, _)| !kept.contains(index)) {
            if !column.is_kept_below {
                names.push(column.heading.as_str());
                continue;
            }
            let known = whole.rows.iter().filter(|row| row[index].text != MISSING);
            let texts: Vec<String> =
                known.map(|row| format!("{} {}", row[0].text, row[index].text)).collect();
            if !texts.is_empty() {
                let text = format!("{}: {}", column.heading, texts.join("; "));
                self.wrapped(INDENT, &text, Span::plain);
            }
        }
        if !names.is_empty() {
            let names = names.join(", ");
            let text =
                format!("columns that do not fit: {names} (a wider terminal shows them, --json has all)");
            self.wrapped(INDENT, &text, Span::plain);
        }
    }

    fn row(&mut self, mut line: Line, last: &TextCell, padded: String) {
        let span = |text: String| Span { text, emphasis: last.emphasis };
        let before: usize = line.0.iter().map(|span| span.text.chars().count()).sum();
        let room = self.width.saturating_sub(before);
        if padded.chars().count() <= room {
            line.push(span(padded));
            self.lines.push(line);
            return;
        }
        // Its first words stand in the row.
        let broken = wrapped("", &last.text, room);
        let Some((first, rest)) = broken.split_first() else { return };
        line.push(span(first.clone()));
        self.lines.push(line);
        let rest: Vec<&str> = rest.iter().map(|line| line.trim_start()).collect();
        self.wrapped(OF_REST, &rest.join(" "), span);
    }
}

/// A column of a table on the screen.
#[derive(Clone, Copy)]
struct GridColumn {
    width: usize,
    /// True if the column has numbers.
    is_number: bool,
    /// The part of its width that bars have, with the space before them; 0: it has none.
    bar: usize,
}

/// The columns of a table on the screen.
struct Grid(Vec<GridColumn>);

impl Grid {
    fn of(table: &TextTable) -> Self {
        let letters = |text: &str| Untrusted(text).to_string().chars().count();
        let column = |(index, column): (usize, &TextColumn)| {
            let cells = table.rows.iter().map(|row| &row[index]);
            let widest = cells.clone().map(|cell| letters(&cell.text)).max().unwrap_or(0);
            let bar = if cells.clone().any(|cell| cell.bar.is_some()) { 1 + SHORTEST_BAR } else { 0 };
            GridColumn {
                width: (widest + bar).max(letters(&column.heading)),
                is_number: cells.clone().any(|cell| cell.value.is_some()),
                bar,
            }
        };
        Self(table.columns.iter().enumerate().map(column).collect())
    }

    /// These columns.
    fn only(&self, columns: &[usize]) -> Self {
        Self(columns.iter().map(|column| self.0[*column]).collect())
    }

    /// The columns that fit into `room`: those that cannot be spared, then others, the most
    /// important first.
    fn fitting(&self, table: &TextTable, room: usize) -> Vec<usize> {
        let spare = |column: &usize| table.columns[*column].spare;
        let (mut kept, mut others): (Vec<usize>, Vec<usize>) =
            (0..self.0.len()).partition(|column| spare(column) == 0);
        others.sort_by_key(spare);
        for column in others {
            if self.only(&kept).before_next() + self.0[column].width <= room {
                kept.push(column);
            }
        }
        kept.sort_unstable();
        kept
    }

    /// Width of a line.
    fn width(&self) -> usize {
        self.before_next().saturating_sub(GAP.len())
    }

    /// Width of a line with the gap before a further column.
    fn before_next(&self) -> usize {
        self.0.iter().map(|column| column.width + GAP.len()).sum()
    }

    /// The same columns with bars as long as the rest of `room` allows.
    fn with_bars_in(&self, room: usize) -> Self {
        let bars = self.0.iter().filter(|column| column.bar > 0).count().max(1);
        let more = (room.saturating_sub(self.width()) / bars).min(LONGEST_BAR - SHORTEST_BAR);
        let longer = |column: &GridColumn| match column.bar {
            0 => *column,
            bar => GridColumn { width: column.width + more, bar: bar + more, ..*column },
        };
        Self(self.0.iter().map(longer).collect())
    }

    /// A text as wide as its column, with its bar behind it; a last column of words is not filled.
    fn text(&self, column: usize, text: &str, bar: Option<f64>) -> String {
        let text = Untrusted(text).to_string();
        let is_last = column + 1 == self.0.len();
        let GridColumn { width, is_number, bar: of_bar } = self.0[column];
        let of_text = width - of_bar;
        match bar.filter(|_| of_bar > 0) {
            Some(share) => format!("{text:>of_text$} {}", bar::horizontal(share, of_bar - 1)),
            None if of_bar > 0 => format!("{:width$}", format!("{text:>of_text$}")),
            None if is_number => format!("{text:>width$}"),
            None if is_last => text,
            None => format!("{text:width$}"),
        }
    }
}
