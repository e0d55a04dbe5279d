//! Runs as CSV (RFC 4180): a row for each cell, or for each sample.
//!
//! Units are part of the columns' names; an empty field is an unknown number. Text is on one line,
//! with unprintable characters as `\u{..}`, and after an apostrophe if a spreadsheet would take it
//! for a formula.

pub mod cells;
mod flat;
pub mod samples;

use std::io::Write;

use flat::CsvField;
use pagewise_model::Untrusted;

/// A column and its meaning.
pub type Described = (&'static str, &'static str);

/// Rows below each other, with as many fields each.
fn rows<W: Write>(out: W) -> csv::Writer<W> {
    csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out)
}

/// Write a row.
fn write_row(
    rows: &mut csv::Writer<impl Write>,
    fields: impl IntoIterator<Item = CsvField>,
) -> csv::Result<()> {
    fields.into_iter().try_for_each(|field| rows.write_field(inert(field)))?;
    rows.write_record(None::<&str>)
}

/// Characters at the start of a field that make a spreadsheet take it for a formula, in all widths.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// A field that a spreadsheet only shows: on one line, and with an apostrophe before a formula. A
/// number is not a formula, even below 0.
fn inert(field: CsvField) -> CsvField {
    if is_plain(&field) {
        return field;
    }
    let field = Untrusted(field).to_string();
    if field.starts_with(FORMULA) && !is_number(&field) { format!("'{field}") } else { field }
}

/// True if a field needs no change, like most.
fn is_plain(field: &str) -> bool {
    field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'z'))
}

fn is_number(field: &str) -> bool {
    field.bytes().all(|byte| byte.is_ascii_digit() || b"-.e".contains(&byte)) && field.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut written = rows(Vec::new());
        write_row(&mut written, ["plain text", "a,b", "say \"no\"", ""].map(String::from)).expect("a row");
        let written = String::from_utf8(written.into_inner().expect("memory")).expect("text");
        assert_eq!(written, "plain text,\"a,b\",\"say \"\"no\"\"\",\r\n");
    }

    #[test]
    fn a_field_is_no_formula_and_no_line_break() {
        let inert = |text: &str| super::inert(text.into());
        assert_eq!(
            ["7", "-7", "-1.5", "-2e-9", "1e300", ""].map(inert),
            ["7", "-7", "-1.5", "-2e-9", "1e300", ""]
        );
        assert_eq!(inert("=HYPERLINK(\"http://x\")"), "'=HYPERLINK(\"http://x\")");
        for text in ["=1", "+1", "-1+2", "@SUM(A1)", "-", "--1", "-e", "-inf", "－1", "＝1"] {
            assert_eq!(inert(text), format!("'{text}"));
        }
        assert_eq!(["\t=1", "\r=1", "a\n=1"].map(inert), [r"\u{9}=1", r"\u{d}=1", r"a\u{a}=1"]);
        assert_eq!(inert("mmap:random+prefetch"), "mmap:random+prefetch");
        assert_eq!(inert("a=1"), "a=1");
    }
}
