//! The documents: links between them, and the length of their lines.

use std::path::PathBuf;

use crate::support::documents::{documents, repository};

/// README, everything below docs, and the documents of other folders.
fn all_documents() -> Vec<PathBuf> {
    let others = [
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "bench/README.md",
        "bench/RESULTS.md",
        "packaging/README.md",
        "workers/PROTOCOL.md",
    ];
    documents().into_iter().chain(others.map(|name| repository().join(name))).collect()
}

/// The anchors of a document: its headings in small letters, without punctuation, with hyphens for
/// spaces.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
    let anchor = |heading: &str| -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        heading.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
    };
    headings.map(anchor).collect()
}

/// A link to a file of the repository leads to one, and to a heading of it that is there.
#[test]
fn every_link_of_the_documents_leads_somewhere() {
    for document in all_documents() {
        let text = std::fs::read_to_string(&document).expect("read");
        for (_, link) in text
            .match_indices("](")
            .filter_map(|(at, _)| text[at + 2..].split_once(')').map(|(link, _)| (at, link)))
        {
            if link.starts_with("http") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => document.clone(),
                file => document.parent().expect("a folder").join(file),
            };
            let what = format!("{}: {link} leads nowhere", document.display());
            assert!(target.exists(), "{what}");
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(target).expect("read");
                assert!(anchors(&text).iter().any(|known| known == anchor), "{what}");
            }
        }
    }
}

/// Rows of tables, code and headings stay whole.
#[test]
fn prose_of_the_documents_has_at_most_100_columns() {
    for document in all_documents() {
        let text = std::fs::read_to_string(&document).expect("read");
        let mut is_code = false;
        for (index, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let is_whole = is_code || line.starts_with(['|', '#']) || line.starts_with("    ");
            let is_one_word = !line.trim_end().contains(' ');
            assert!(
                is_whole || is_one_word || line.chars().count() <= 100,
                "{}:{} has more than 100 columns",
                document.display(),
                index + 1
            );
        }
    }
}
