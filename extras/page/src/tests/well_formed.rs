//! Elements of a document that is markup, and that it is well-formed.

/// Elements without an end in HTML.
const VOID: [&str; 4] = ["meta", "br", "hr", "input"];

/// The names of all elements of a document, in order; panics if it is not well-formed.
#[track_caller]
pub fn elements(text: &str) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    let mut rest = text.strip_prefix("<!doctype html>").unwrap_or(text);
    while let Some(start) = rest.find('<') {
        expect_text(&rest[..start]);
        rest = &rest[start + 1..];
        // No attribute holds a '>': it is escaped.
        let end = rest.find('>').expect("a tag ends");
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            end_by_itself(
                &mut open,
                if name == "table" { &["td", "th", "tr", "thead", "tbody"] } else { &[] },
            );
            assert_eq!(open.pop(), Some(name), "the end of another element");
            continue;
        }
        let name = tag.trim_end_matches('/').split_whitespace().next().expect("a name");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()), "<{tag}>");
        assert!(tag.matches('"').count().is_multiple_of(2) && !tag.contains('<'), "<{tag}>");
        expect_text(tag);
        found.push(name.to_string());
        let ended: &[&str] = match name {
            "td" | "th" => &["td", "th"],
            "tr" => &["td", "th", "tr"],
            "tbody" => &["td", "th", "tr", "thead"],
            _ => &[],
        };
        end_by_itself(&mut open, ended);
        if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
        if name == "style" || name == "script" {
            let end = rest.find(&format!("</{name}>")).expect("an end");
            // In a script a '<' compares; these would begin or end another state of the parser.
            let wrong = if tag == "script" { &["<script", "</script", "<!--"][..] } else { &["<"] };
            assert!(!wrong.iter().any(|wrong| rest[..end].contains(wrong)), "{name} holds a tag");
            rest = &rest[end..];
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    expect_text(rest);
    found
}

/// Parts of a table need no end of their own before the next one or the end of the table.
fn end_by_itself(open: &mut Vec<&str>, parts: &[&str]) {
    for part in parts {
        open.pop_if(|name| name == part);
    }
}

/// Every ampersand begins an entity, and nothing is unprintable.
#[track_caller]
fn expect_text(text: &str) {
    for (at, _) in text.match_indices('&') {
        let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(entities.iter().any(|entity| text[at..].starts_with(entity)), "{text}");
    }
    assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
}

#[test]
fn what_is_not_well_formed_is_found() {
    assert_eq!(elements("<a><b x=\"1\"/>&lt;</a>"), ["a", "b"]);
    let table = ["table", "thead", "tr", "th", "tbody", "tr", "td", "b", "td", "tr", "td"];
    assert_eq!(elements("<table><thead><tr><th>x<tbody><tr><td><b>y</b><td><tr><td></table>"), table);
    for wrong in [
        "<a><b></a></b>",
        "<a>",
        "<table><tr><td><b></table>",
        "a & b",
        "<a x=\"></a>",
        "<a\u{1b}></a>",
        "<a></b>",
    ] {
        assert!(std::panic::catch_unwind(|| elements(wrong)).is_err(), "{wrong}");
    }
}
