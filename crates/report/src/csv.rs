//! Runs as CSV (RFC 4180): a row for each cell, or for each sample.
//!
//! Units are part of the columns' names; an empty field is an unknown number. Text is on one line, with unprintable
//! characters as `\u{..}`, and after an apostrophe if a spreadsheet would take it for a formula.

pub mod cells;
mod flat;
pub mod samples;

use flat::CsvField;
use pagewise_model::Untrusted;

/// A column and its meaning.
pub type Described = (&'static str, &'static str);

/// Append fields, each with a comma after it.
fn push_fields(row: &mut String, fields: impl IntoIterator<Item = CsvField>) {
    for field in fields {
        match is_plain(&field) {
            true => row.push_str(&field),
            false => row.push_str(&quoted(inert(field))),
        }
        row.push(',');
    }
}

/// Replace the comma after the last field by the end of the row.
fn end_row(row: &mut String) {
    row.pop();
    row.push_str("\r\n");
}

/// Characters at the start of a field that make a spreadsheet take it for a formula, in all widths.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// A field that a spreadsheet only shows: on one line, and with an apostrophe before a formula. A number is not a
/// formula, even below 0.
fn inert(field: CsvField) -> CsvField {
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

/// Put a field with a comma or a quote in quotes, with its quotes doubled. No field has a line break.
fn quoted(field: CsvField) -> CsvField {
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(quoted("plain text".into()), "plain text");
        assert_eq!(quoted("a,b".into()), "\"a,b\"");
        assert_eq!(quoted("say \"no\"".into()), "\"say \"\"no\"\"\"");
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
