//! A document on a page.

use pagewise_report::document::{Block, Document};
use pagewise_report::map::MethodMap;
use pagewise_report::text_table::{TextCell, TextTable};

use crate::page;

#[test]
fn a_page_escapes_what_it_shows() {
    let table = TextTable {
        rows: vec![vec!["pread:direct".into(), TextCell::of("12.5k".to_string(), 12.5)]],
        ..TextTable::of(&["method", "reads/s"])
    };
    let map = MethodMap {
        of: "host".to_string(),
        rows: vec!["<n1>".to_string(), "n2".to_string()],
        labels: vec!["cold".to_string()],
        columns: vec![vec![Some(("mmap".to_string(), "mmap & more".to_string())), None]],
    };
    let body = vec![Block::heading(2, "Reads"), Block::Table(table, "Reads".to_string()), Block::Map(map)];
    let document = Document {
        head: vec![Block::paragraph("base: <b>\u{1b}")],
        conclusion: vec![Block::paragraph("1 faster")],
        body,
    };
    let mut out = Vec::new();
    page::write_document(&mut out, "<runs>", &document).expect("memory");
    let text = String::from_utf8(out).expect("text");
    assert!(text.contains("<h1>&lt;runs&gt;</h1>\n<p>base: &lt;b&gt;\\u{1b}</p>"), "{text}");
    assert!(text.find("1 faster") < text.find("<h2>Reads</h2>"), "{text}");
    assert!(text.contains("<td>12.5k<"), "{text}");
    let first = "<tr><th scope=\"row\">&lt;n1&gt;</th><td class=\"c0\">mmap &amp; more</td></tr>";
    assert!(text.contains(first) && text.contains("n2</th><td></td></tr>"), "{text}");
}
