//! Elements of a page. Every text passes [`escaped`] here.

use std::fmt::{Display, Write as _};

use crate::markup::escaped;
use crate::svg::COLOURS;
use pagewise_report::line::{Emphasis, Line};
use pagewise_report::text_table::TextTable;
use pagewise_report::words;

/// Columns of numbers that have a class of their own, by which they are aligned: the last is for
/// all from there on.
const NUMBER_CLASSES: usize = 12;

/// Rows of a column of numbers in ascending order: the script of tables has no other way to know
/// it. Nothing stands for the order in which all rows are already.
fn sorting(order: &[usize], rows: usize) -> String {
    let digits = row_number(rows.saturating_sub(1), 0).len();
    let order: String = match order.is_sorted() && order.len() == rows {
        true => String::new(),
        false => order.iter().map(|row| row_number(*row, digits)).collect(),
    };
    format!(" data-order=\"{order}\"")
}

/// A number of this many digits or more, each one of 36.
fn row_number(mut row: usize, digits: usize) -> String {
    let mut text = String::new();
    while row > 0 || text.len() < digits.max(1) {
        text.extend(char::from_digit((row % 36) as u32, 36));
        row /= 36;
    }
    text.chars().rev().collect()
}

/// A cell of a map.
#[derive(Default)]
pub(super) struct MapCell {
    /// Number of its colour.
    pub(super) colour: Option<usize>,
    pub(super) text: String,
}

/// Something that a page shows.
pub(super) trait OnPage {
    /// Add it to a page; its plots may take about `room` bytes.
    fn add_to(&self, page: &mut Html, room: usize);
}

/// The body of a page as it grows.
#[derive(Default)]
pub(crate) struct Html(String);

impl Html {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Markup that is already escaped.
    pub(super) fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
        self.0.push('\n');
    }

    /// Begin an element, with attributes that are already escaped.
    pub(super) fn open(&mut self, tag: &str) {
        let _ = writeln!(self.0, "<{tag}>");
    }

    pub(super) fn close(&mut self, name: &str) {
        let _ = writeln!(self.0, "</{name}>");
    }

    fn element(&mut self, name: &str, text: impl Display) {
        let _ = writeln!(self.0, "<{name}>{}</{name}>", escaped(text));
    }

    pub(crate) fn heading(&mut self, level: u8, text: impl Display) {
        self.element(&format!("h{level}"), text);
    }

    pub(crate) fn paragraph(&mut self, text: impl Display) {
        self.element("p", text);
    }

    /// A line about the items that the page has no room for.
    pub(super) fn left_out(&mut self, count: usize, what: &str) {
        self.paragraph(words::left_out(count, what));
    }

    /// A text that is copied.
    pub(super) fn command(&mut self, text: impl Display) {
        self.element("pre", text);
    }

    /// A list; nothing if it is empty.
    pub(crate) fn list(&mut self, items: &[String]) {
        if !items.is_empty() {
            self.open("ul");
            items.iter().for_each(|item| self.element("li", item));
            self.close("ul");
        }
    }

    /// Terms, each with its descriptions.
    pub(crate) fn terms<D: Display>(
        &mut self,
        terms: impl IntoIterator<Item = (impl Display, impl IntoIterator<Item = D>)>,
    ) {
        self.open("dl");
        for (term, descriptions) in terms {
            self.element("dt", term);
            descriptions.into_iter().for_each(|description| self.element("dd", description));
        }
        self.close("dl");
    }

    /// A part that is closed at first.
    pub(super) fn details(&mut self, summary: &str, content: impl FnOnce(&mut Self)) {
        self.open("details");
        self.element("summary", summary);
        content(self);
        self.close("details");
    }

    /// Names with the classes of their colours.
    pub(super) fn legend<'a>(&mut self, keys: impl Iterator<Item = (String, &'a str)>) {
        let keys: Vec<String> =
            keys.map(|(class, name)| format!("<i class=\"{class}\">{}</i>", escaped(name))).collect();
        self.raw(&format!("<p class=\"legend plot\">{}</p>", keys.join(" ")));
    }

    /// A table that scrolls within the page if it is wide.
    pub(crate) fn table(&mut self, table: &TextTable, label: &str) {
        self.named_table(table, &format!("aria-label=\"{}\"", escaped(label)));
    }

    /// The same, with the attribute that names it. Cells, rows and the head end where the next one
    /// begins, as HTML has it: tables are most of a page.
    pub(super) fn named_table(&mut self, table: &TextTable, name: &str) {
        let columns = table.columns.len();
        let orders: Vec<Option<Vec<usize>>> = (0..columns).map(|column| table.ascending(column)).collect();
        let numbers = (0..columns).filter(|column| orders[*column].is_some());
        let mut classes: Vec<String> =
            numbers.map(|column| format!("n{}", (column + 1).min(NUMBER_CLASSES))).collect();
        classes.dedup();
        let class =
            if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
        let _ = write!(
            self.0,
            "<div class=\"scroll\" role=\"group\" tabindex=\"0\" {name}><table{class}><thead><tr>"
        );
        for (heading, order) in table.headings().zip(orders) {
            let order = order.map_or_else(String::new, |order| sorting(&order, table.rows.len()));
            let _ = write!(self.0, "<th{order}>{}", escaped(heading));
        }
        self.0.push_str("<tbody>");
        for row in &table.rows {
            let cells: String = row.iter().map(|cell| format!("<td>{}", escaped(cell))).collect();
            let _ = write!(self.0, "<tr>{cells}");
        }
        self.0.push_str("</table></div>\n");
    }

    /// A table whose cells have colours, and whose rows have names.
    pub(super) fn map(&mut self, headings: &[String], rows: &[(String, Vec<MapCell>)], label: &str) {
        let _ = writeln!(
            self.0,
            "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{}\"><table class=\"map plot\"><thead><tr>",
            escaped(label)
        );
        for heading in headings {
            let _ = write!(self.0, "<th scope=\"col\">{}</th>", escaped(heading));
        }
        self.0.push_str("</tr></thead><tbody>\n");
        for (name, cells) in rows {
            let _ = write!(self.0, "<tr><th scope=\"row\">{}</th>", escaped(name));
            for MapCell { colour, text } in cells {
                let class =
                    colour.map_or_else(String::new, |colour| format!(" class=\"c{}\"", colour % COLOURS));
                let _ = write!(self.0, "<td{class}>{}</td>", escaped(text));
            }
            self.0.push_str("</tr>\n");
        }
        self.0.push_str("</tbody></table></div>\n");
    }

    /// A sentence about a reason to doubt.
    pub(crate) fn warning(&mut self, text: impl Display) {
        let _ = writeln!(self.0, "<p><strong class=\"bad\">!</strong> {}</p>", escaped(text));
    }

    /// A paragraph whose parts have emphasis.
    pub(crate) fn line(&mut self, line: &Line) {
        self.0.push_str("<p>");
        for span in &line.0 {
            let (start, end) = match span.emphasis {
                Emphasis::Plain => ("", ""),
                Emphasis::Strong => ("<strong>", "</strong>"),
                Emphasis::Bad => ("<strong class=\"bad\">", "</strong>"),
                Emphasis::Weak => ("<span class=\"weak\">", "</span>"),
            };
            let _ = write!(self.0, "{start}{}{end}", escaped(&span.text));
        }
        self.0.push_str("</p>\n");
    }
}
