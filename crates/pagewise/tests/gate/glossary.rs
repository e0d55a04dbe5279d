//! The glossary: each of its words is defined once and used elsewhere.

use std::collections::HashSet;

use crate::support::documents::{documents, repository};

#[test]
fn every_word_of_the_glossary_is_defined_once_and_used() {
    let path = repository().join("docs/glossary.md");
    let glossary = std::fs::read_to_string(&path).expect("read");
    // The words stand bold in the first column.
    let words: Vec<&str> = glossary
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .flat_map(|column| column.split("**").skip(1).step_by(2))
        .collect();
    assert!(words.len() >= 30, "{words:?}");
    let others = documents().into_iter().filter(|document| *document != path);
    let others: Vec<String> =
        others.map(|document| std::fs::read_to_string(document).expect("read").to_lowercase()).collect();
    let mut defined = HashSet::new();
    for word in words {
        assert!(defined.insert(word), "{word} is defined twice");
        assert!(others.iter().any(|text| text.contains(word)), "{word} is used nowhere");
    }
}
