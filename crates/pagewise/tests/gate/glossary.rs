//! The glossary: each of its words is defined once and used elsewhere, and words that were replaced
//! stay away.

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

/// Words that were replaced, each with the words that say what was meant. None may come back: in
/// code, comments, messages, documents, or keys of JSON and CSV.
const REPLACED: &[(&str, &str)] = &[
    ("told", "reported, known, named, shown, distinguished"),
    ("tell", "report, say, decide, distinguish"),
    ("tells", "reports, says, decides, distinguishes"),
    ("telling", "reporting, deciding"),
    ("pivot", "table"),
    ("pivots", "tables"),
    ("witness", "evidence"),
    ("witnesses", "evidence"),
    ("witnessed", "observed"),
    ("entrant", "candidate"),
    ("entrants", "candidates"),
    ("crew", "threads"),
    ("outlook", "ETA"),
    ("luck", "chance"),
    ("crowded", "contended"),
    ("happening", "event"),
    ("happenings", "events"),
    ("stretch", "interval, range, inflation"),
    ("stretches", "intervals, ranges"),
    ("sight", "observation"),
    ("sights", "observations"),
    ("laps", "passes"),
    ("foreign", "stray, of another program"),
    ("race", "elimination"),
    ("races", "eliminations"),
];

/// Names of others in which a replaced word stands.
const OF_OTHERS: &[(&str, &str)] = &[
    ("foreign", "java.lang.foreign"),
    ("foreign", "foreign function"),
    ("foreign", "foreign-function"),
    ("foreign", "foreign call"),
    // A type of rustix.
    ("foreign", "ForeignRawFd"),
    // A counter of NUMA in /proc/vmstat.
    ("foreign", "numa_foreign"),
];

/// The file that holds the list.
const THIS: &str = "tests/gate/glossary.rs";

/// Words of a line, in small letters: `told_apart`, `toldApart` and `TOLD` have `told`.
fn words_of(line: &str) -> HashSet<String> {
    let mut words = HashSet::new();
    for part in line.split(|character: char| !character.is_ascii_alphabetic()) {
        let mut begin = 0;
        for (at, pair) in part.as_bytes().windows(2).enumerate() {
            if pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase() {
                words.insert(part[begin..=at].to_lowercase());
                begin = at + 1;
            }
        }
        words.insert(part[begin..].to_lowercase());
    }
    words
}

#[test]
fn words_that_were_replaced_stay_away() {
    let kinds = ["rs", "md", "toml", "java", "go", "py", "c", "h", "json", "jsonl", "csv", "txt"];
    let mut found = Vec::new();
    let mut files = 0;
    let mut paths = vec![repository()];
    while let Some(path) = paths.pop() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path != repository() && (name.starts_with('.') || name == "target") || path.ends_with(THIS) {
            continue;
        }
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("list");
            paths.extend(entries.map(|entry| entry.expect("entry").path()));
            continue;
        }
        let is_read = path.extension().is_some_and(|kind| kinds.iter().any(|known| kind == *known));
        let Some(text) = is_read.then(|| std::fs::read_to_string(&path).ok()).flatten() else { continue };
        files += 1;
        let small = text.to_ascii_lowercase();
        if !REPLACED.iter().any(|(word, _)| small.contains(word)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let words = words_of(line);
            for (word, instead) in REPLACED.iter().filter(|(word, _)| words.contains(*word)) {
                let of_others = OF_OTHERS.iter().filter(|(of, _)| of == word);
                let mut rest = line.to_string();
                of_others.for_each(|(_, name)| rest = rest.replace(name, ""));
                if words_of(&rest).contains(*word) {
                    found.push(format!("{}:{}: '{word}': say {instead}", path.display(), index + 1));
                }
            }
        }
    }
    assert!(files > 500, "{files} files");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn words_of_names_are_found() {
    for line in ["it is told.", "told_apart", "isTold", "TOLD_BYTES", "\"told\":1", "Told"] {
        assert!(words_of(line).contains("told"), "{line}");
    }
    assert!(!words_of("untold").contains("told"));
}
