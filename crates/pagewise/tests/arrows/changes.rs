//! The files that a change touches, as `docs/development.md` states them.

use std::fs;
use std::path::Path;

use crate::imports::modules;
use crate::{files, root};

/// True if `text` has `word` outside of comments.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.match_indices(word).map(move |(at, _)| (line, at)))
        .any(|(line, at)| !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part))
}

/// Folders of all crates, those of extras too.
fn crates() -> impl Iterator<Item = std::path::PathBuf> {
    let parents = ["crates", "extras"].map(|parent| root().join(parent));
    let folders = parents.into_iter().flat_map(|parent| fs::read_dir(parent).expect("a folder").flatten());
    folders.map(|entry| entry.path()).filter(|path| path.join("src").is_dir() && !path.ends_with("fuzz"))
}

/// Number of files with `word`: code without tests, and plans.
fn files_with(word: &str) -> usize {
    let of_crates =
        crates().map(|folder| modules(&folder).values().filter(|text| has_word(text, word)).count());
    let is_plan = |path: &Path| path.parent() == Some(&root().join("questions"));
    let plans = files(".toml").into_iter().filter(|(path, _)| is_plan(path));
    let with_word = plans.filter(|(path, text)| {
        has_word(text, word) || path.file_stem().is_some_and(|name| name.to_string_lossy() == word)
    });
    of_crates.sum::<usize>() + with_word.count()
}

#[test]
fn a_change_touches_as_many_files_as_development_says() {
    let text = fs::read_to_string(root().join("docs/development.md")).expect("a document");
    let (_, table) = text.split_once("| change | example | word | files |").expect("the table of files");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 6, "{rows:?}");
    for row in rows {
        let [change, _, word, stated] = row[..] else { panic!("{row:?}") };
        let found = files_with(word.trim_matches('`'));
        assert_eq!(found.to_string(), stated, "{change}: files with {word}");
    }
}
