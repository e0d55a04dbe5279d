//! Rules between the crates and in every source file.

mod changes;
mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use imports::{arrows, circles, code, modules};

/// Which crate may see which (normal dependencies; tests may see more).
const ARROWS: &[(&str, &[&str])] = &[
    ("pagewise", &["lab", "report", "analysis", "host", "engine", "model"]),
    ("lab", &["report", "analysis", "host", "engine", "protocol", "model", "sys"]),
    ("report", &["analysis", "model"]),
    ("analysis", &["protocol", "model"]),
    ("engine", &["protocol", "sys", "model"]),
    ("host", &["sys", "model"]),
    ("protocol", &["model"]),
    ("fuzz", &["model"]),
    ("model", &[]),
    ("sys", &[]),
];

/// Which crates of the core an extra may see. It sees no other extra.
const EXTRAS: &[(&str, &[&str])] = &[
    ("claims", &["lab", "report", "analysis", "host", "model"]),
    ("compare", &["lab", "report", "analysis", "model"]),
    ("conformance", &["lab", "report", "analysis", "host", "protocol", "model"]),
    ("curves", &["report", "analysis", "model"]),
    ("page", &["lab", "report", "analysis", "model"]),
    ("toolchain", &["lab", "host", "protocol", "model", "sys"]),
    ("watch", &["lab", "report", "analysis", "host", "model", "sys"]),
];

/// The only file of the core that names extras.
const TABLE: &str = "crates/pagewise/src/extras.rs";

/// What an extra is for, the names of its rooms, and each of its doors are seen at a glance.
const ENTRY_LINES: usize = 20;
const DOOR_LINES: usize = 10;

/// Rooms of the crate `analysis`, by the first name of a path in it: which may see which.
const ROOMS: &[(&str, &[&str])] = &[
    ("lib", &["proof", "judge", "search", "facts", "inspect"]),
    ("facts", &["judge"]),
    ("search", &["judge", "statistics"]),
    ("judge", &["proof", "statistics"]),
    ("proof", &["statistics"]),
    ("inspect", &[]),
    ("statistics", &[]),
];

/// Crates in which a file with a folder of parts may not use them where they use it: types stand
/// below, and what assembles them on top. In the others that is the one circle that is allowed.
const STRICT: [&str; 2] = ["analysis", "report"];

/// Longer files have two subjects.
const MAX_LINES: usize = 600;

/// Longer lines of a comment are not read.
const COMMENT_COLUMNS: usize = 100;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = ["util", "utils", "common", "helper", "helpers", "manager", "misc", "stuff"];

/// First words of doc comments that are clauses.
const CLAUSES: [&str; 5] = ["What", "Whether", "Why", "How", "Where"];

/// First words of doc comments that leave open of whom they are.
const PRONOUNS: [&str; 5] = ["It", "Its", "They", "Their", "Those"];

/// Marks of unfinished work. Written in pieces, so that this file does not hold them.
const UNFINISHED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("dbg", "!("),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Files of the repository with this ending, and their text.
fn files(ending: &str) -> BTreeMap<PathBuf, String> {
    fn collect(directory: &Path, ending: &str, found: &mut BTreeMap<PathBuf, String>) {
        for entry in fs::read_dir(directory).expect("list").flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || name == "target" {
                continue;
            }
            let kind = entry.file_type().expect("type");
            if kind.is_dir() {
                collect(&path, ending, found);
            } else if kind.is_file() && name.ends_with(ending) {
                // What is no text has neither code nor comments.
                match fs::read_to_string(&path) {
                    Ok(text) => drop(found.insert(path, text)),
                    Err(error) if error.kind() == ErrorKind::InvalidData && ending.is_empty() => {}
                    Err(error) => panic!("{}: {error}", path.display()),
                }
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(&root(), ending, &mut found);
    assert!(!found.is_empty());
    found
}

/// The folder of each crate, with the crates that it may see.
fn arrows_by_folder() -> impl Iterator<Item = (PathBuf, &'static str, &'static [&'static str])> {
    let of = |parent: &'static str| {
        move |(name, seen): &(&'static str, &'static [&'static str])| {
            (root().join(parent).join(name), *name, *seen)
        }
    };
    ARROWS.iter().map(of("crates")).chain(EXTRAS.iter().map(of("extras")))
}

fn manifest(folder: &Path) -> toml::Table {
    let text = fs::read_to_string(folder.join("Cargo.toml")).expect("manifest");
    text.parse().expect("toml")
}

#[test]
fn crates_see_only_what_the_design_says() {
    for (parent, known) in [("crates", ARROWS), ("extras", EXTRAS)] {
        let crates: BTreeSet<String> = fs::read_dir(root().join(parent))
            .expect("list")
            .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        let known: BTreeSet<String> = known.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(crates, known, "a crate without arrows");
    }
    for (folder, name, allowed) in arrows_by_folder() {
        let manifest = manifest(&folder);
        let seen = |section: &str| -> BTreeSet<String> {
            let table = manifest.get(section).and_then(toml::Value::as_table);
            let names = table.into_iter().flat_map(toml::Table::keys);
            names.filter_map(|name| name.strip_prefix("pagewise-")).map(str::to_string).collect()
        };
        for section in ["dependencies", "build-dependencies"] {
            for other in seen(section) {
                let is_extra = name == "pagewise" && EXTRAS.iter().any(|(extra, _)| *extra == other);
                assert!(allowed.contains(&&*other) || is_extra, "{name} must not depend on {other}");
            }
        }
        assert!(manifest.get("target").is_none(), "{name}: arrows hold for all targets alike");
    }
}

#[test]
fn the_core_can_do_without_each_extra() {
    let manifest = manifest(&root().join("crates/pagewise"));
    let features = manifest["features"].as_table().expect("features");
    let by_default: Vec<&str> =
        features["default"].as_array().expect("a list").iter().filter_map(toml::Value::as_str).collect();
    assert_eq!(by_default, EXTRAS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (name, _) in EXTRAS {
        let package = format!("pagewise-{name}");
        let optional = manifest["dependencies"][&package].get("optional").and_then(toml::Value::as_bool);
        assert_eq!(optional, Some(true), "{package} can be left out");
        let wanted = toml::Value::from(vec![format!("dep:{package}")]);
        assert_eq!(features.get(*name), Some(&wanted), "the feature {name}");
    }
    let table = root().join(TABLE);
    let core = files(".rs").into_iter().filter(|(path, _)| path.starts_with(root().join("crates")));
    for (path, text) in core.filter(|(path, _)| is_source(path) && *path != table) {
        assert!(!text.contains("cfg(feature"), "{} knows a feature", path.display());
        for (name, _) in EXTRAS {
            assert!(!text.contains(&format!("pagewise_{name}")), "{} sees {name}", path.display());
        }
    }
}

#[test]
fn an_extra_has_doors_only() {
    for (name, _) in EXTRAS {
        let path = root().join("extras").join(name).join("src/lib.rs");
        let text = fs::read_to_string(&path).expect("lib.rs");
        let public: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("pub ")).collect();
        let kinds = [": Door = ", ": WorkerDoor = ", ": FormatDoor = ", ": CurvesDoor = "];
        let is_door =
            |line: &&str| line.starts_with("pub const ") && kinds.iter().any(|kind| line.contains(kind));
        assert!(!public.is_empty() && public.iter().all(is_door), "{name}: {public:?}");
        let most = ENTRY_LINES + DOOR_LINES * public.len();
        assert!(text.lines().count() <= most, "{name} has more than {most} lines before its rooms");
    }
}

#[test]
fn the_words_know_no_machine() {
    // model, analysis and report are pure: no file, no clock, no process. So are messages and
    // claims, of which the analysis sees no more than the claims: the protocol has a room for
    // processes too.
    let machine = ["std::fs", "std::process", "std::net", "std::env", "std::time", "rustix"];
    let pure = [
        "crates/model/src",
        "crates/analysis/src",
        "crates/report/src",
        "crates/protocol/src/messages.rs",
        "crates/protocol/src/claims.rs",
        "extras/claims/src/document.rs",
        "extras/claims/src/judgement",
        "extras/compare/src/document.rs",
        "extras/compare/src/document",
        "extras/compare/src/judgement",
        "extras/page/src/page",
        "extras/page/src/page.rs",
        "extras/page/src/plots",
        "extras/page/src/plots.rs",
        "extras/page/src/svg",
        "extras/page/src/svg.rs",
        "extras/watch/src/observed",
        "extras/watch/src/recording.rs",
        "extras/watch/src/trace_text.rs",
    ];
    for (path, text) in files(".rs") {
        let is_pure = pure.iter().any(|place| path.starts_with(root().join(place)));
        for word in machine.iter().filter(|_| is_pure) {
            assert!(!text.contains(word), "{} uses {word}", path.display());
        }
        for (at, word) in text.match_indices("pagewise_protocol::").filter(|_| is_pure) {
            assert!(text[at + word.len()..].starts_with("claims"), "{} sees conversations", path.display());
        }
    }
}

#[test]
fn unsafe_code_is_in_sys_only() {
    let allowed = [root().join("crates/sys"), root().join("bench")];
    for (path, text) in files(".rs") {
        if allowed.iter().any(|directory| path.starts_with(directory)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let found = [concat!("un", "safe {"), concat!("un", "safe fn"), concat!("un", "safe impl")]
                .iter()
                .any(|block| code.contains(block));
            assert!(!found, "{}:{}: {line}", path.display(), index + 1);
            assert!(
                !code.contains(concat!("allow(un", "safe_code)")),
                "{}:{}: {line}",
                path.display(),
                index + 1
            );
        }
    }
}

#[test]
fn unsafe_code_is_denied_elsewhere() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("manifest");
    assert!(manifest.contains("unsafe_code = \"deny\""), "the workspace denies unsafe code");
    for (folder, name, _) in arrows_by_folder() {
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("manifest");
        assert!(
            text.contains("[lints]\nworkspace = true") || name == "sys",
            "{name} takes the workspace's lints"
        );
    }
}

#[test]
fn every_unsafe_block_says_why_it_holds() {
    for (path, text) in files(".rs") {
        if !path.starts_with(root().join("crates/sys/src")) {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if !code.contains(concat!("un", "safe {")) && !code.contains(concat!("un", "safe impl")) {
                continue;
            }
            let above = &lines[index.saturating_sub(6)..index];
            assert!(
                above.iter().any(|line| line.trim_start().starts_with("// SAFETY:")),
                "{}:{}: no SAFETY line above {line}",
                path.display(),
                index + 1
            );
        }
    }
}

#[test]
fn a_file_has_one_subject_and_a_name_that_says_it() {
    for (path, text) in [".rs", ".java", ".go"].map(files).into_iter().flatten() {
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines, more than {MAX_LINES}", path.display());
    }
    for (path, text) in files(".rs") {
        let within = path.strip_prefix(root()).expect("within the repository");
        for part in within.iter() {
            let part = part.to_string_lossy();
            let name = part.split('.').next().unwrap_or_default();
            assert!(!EMPTY_NAMES.contains(&name), "{}: '{name}' says nothing", within.display());
        }
        assert!(text.starts_with("//!"), "{} does not say what it is for", within.display());
    }
}

/// True if a file belongs to a crate, and not to its tests.
fn is_source(path: &Path) -> bool {
    let within = ["crates", "extras"].map(|parent| path.strip_prefix(root().join(parent)));
    within.into_iter().flatten().any(|within| {
        let parts: Vec<_> = within.iter().map(|part| part.to_string_lossy()).collect();
        parts.get(1).is_some_and(|part| part == "src")
            && !parts.iter().any(|part| part == "tests" || part == "tests.rs")
    })
}

/// First words of the paragraphs of doc comments that are among these, each with its line.
fn doc_comments_beginning_with<'a>(text: &'a str, words: &[&str]) -> Vec<(usize, &'a str)> {
    let mut before = "";
    let mut found = Vec::new();
    for (index, line) in text.lines().map(str::trim_start).enumerate() {
        let is_begun = ["///", "//!"].iter().any(|mark| before.starts_with(mark) && before != *mark);
        let comment = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        let first = comment.filter(|_| !is_begun).and_then(|comment| comment.split([' ', '.', ',']).next());
        if first.is_some_and(|first| words.contains(&first)) {
            found.push((index + 1, line));
        }
        before = line;
    }
    found
}

#[test]
fn doc_comments_are_noun_phrases_or_imperatives() {
    for (path, text) in files(".rs") {
        let clauses: &[&str] = if is_source(&path) { &CLAUSES } else { &[] };
        let words = [clauses, &PRONOUNS].concat();
        let found = doc_comments_beginning_with(&text, &words);
        assert_eq!(found, Vec::new(), "{}: a clause, or a pronoun without its noun", path.display());
    }
    // The rule finds what it is for, and where it stands.
    let text = "/// A file.\n/// Its name follows.\n///\n/// Their sizes.\nlet a;\n    /// It.\nlet b;\n//! Whether so\n";
    let found: Vec<usize> = doc_comments_beginning_with(text, &["Its", "Their", "It", "Whether"])
        .iter()
        .map(|(line, _)| *line)
        .collect();
    assert_eq!(found, [4, 6, 8]);
}

/// Marks of a string of several lines in Python.
const QUOTES: &str = "\"\"\"";

/// Comments of a file by its language, each with the number of its line: whole lines, and what
/// documents a thing of Python.
fn comments<'a>(path: &Path, text: &'a str) -> Vec<(usize, &'a str)> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let marks: &[&str] = match ending {
        "rs" | "js" | "go" => &["//"],
        "java" | "c" | "h" => &["//", "/*", "*"],
        "py" | "sh" => &["#"],
        "" if text.starts_with("#!") => &["#"],
        _ => &[],
    };
    let has_docs = ending == "py" || text.lines().next().is_some_and(|line| line.contains("python"));
    // The string of several lines that a line is in: true if it documents a thing.
    let mut string: Option<bool> = None;
    let is_comment = |(_, line): &(usize, &str)| {
        let line = line.trim_start();
        let begins = line.starts_with(QUOTES);
        let is_doc = string.unwrap_or(begins);
        if line.matches(QUOTES).count() % 2 == 1 {
            string = if string.is_some() { None } else { Some(begins) };
        }
        let is_marked = string.is_none() && marks.iter().any(|mark| line.starts_with(mark));
        is_marked || (has_docs && is_doc)
    };
    text.lines().enumerate().map(|(index, line)| (index + 1, line)).filter(is_comment).collect()
}

#[test]
fn comments_are_narrow() {
    let (mut found, mut languages) = (Vec::new(), BTreeSet::new());
    for (path, text) in files("") {
        for (number, line) in comments(&path, &text) {
            languages.insert(path.extension().map(|ending| ending.to_os_string()));
            let comment = line.trim_start().trim_start_matches(['/', '!', '#', '*']).trim_start();
            // Code, rows of tables and drawings stay whole.
            let is_whole = comment.starts_with(['`', '|']) || comment.contains('─');
            if !is_whole && line.chars().count() > COMMENT_COLUMNS {
                found.push(format!("{}:{number}: {comment}", path.display()));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new(), "more than {COMMENT_COLUMNS} columns");
    for ending in ["rs", "java", "go", "c", "js", "py", "sh"] {
        assert!(languages.contains(&Some(ending.into())), "no comment of a file .{ending}");
    }
    let text =
        "A = \"\"\"\n# no\n\"\"\"\ndef f():\n    \"\"\"One.\n    Two.\"\"\"\n    a = 1  # no\n    # Yes.\n";
    let lines: Vec<usize> = comments(Path::new("a.py"), text).iter().map(|(number, _)| *number).collect();
    assert_eq!(lines, [5, 6, 8]);
}

#[test]
fn a_public_type_has_a_name_of_its_own() {
    let mut homes: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (path, text) in files(".rs").into_iter().filter(|(path, _)| is_source(path)) {
        for line in text.lines() {
            let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
            let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else { continue };
            let name = rest.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
            if let Some(other) = homes.insert(name.to_string(), path.clone()) {
                panic!("{name} is public in {} and in {}", other.display(), path.display());
            }
        }
    }
    assert!(homes.len() > 100, "types are found");
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut found = BTreeSet::new();
    for (folder, name, _) in arrows_by_folder() {
        let modules = modules(&folder);
        for circle in circles(&arrows(&modules, STRICT.contains(&name))) {
            found.insert(circle.iter().map(|module| format!("{name}::{module}")).collect::<Vec<_>>());
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn rooms_of_the_analysis_see_only_what_stands_below() {
    let modules = modules(&root().join("crates/analysis"));
    let room = |module: &str| module.split("::").next().unwrap_or_default().to_string();
    let known: BTreeSet<String> = ROOMS.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(
        modules.keys().map(|module| room(module)).collect::<BTreeSet<_>>(),
        known,
        "a room without arrows"
    );
    for (module, others) in arrows(&modules, true) {
        let (_, allowed) = ROOMS.iter().find(|(name, _)| *name == room(module)).expect("a known room");
        for other in others.iter().map(|other| room(other)).filter(|other| *other != room(module)) {
            assert!(allowed.contains(&&*other), "{module} must not see {other}");
        }
    }
}

#[test]
fn one_room_prints() {
    // Anywhere else a broken pipe would be a panic, and an escape sequence in a name would reach
    // the terminal.
    let room = root().join("crates/lab/src/output");
    let ways = [
        concat!("print", "ln!("),
        concat!("print", "!("),
        concat!("io::std", "out("),
        concat!("io::std", "err("),
        concat!("use std::io::{std", "out"),
        concat!("ProgressDraw", "Target"),
    ];
    let mut rooms = 0;
    for (path, text) in files(".rs") {
        // What is in the crate of fuzzers is run as tests.
        let is_fuzz = path.starts_with(root().join("crates/fuzz"));
        let found = ways.iter().find(|way| code(&text).contains(*way));
        match path.starts_with(&room) {
            true => rooms += usize::from(found.is_some()),
            false if is_source(&path) && !is_fuzz => {
                assert_eq!(found, None, "{} prints by itself", path.display())
            }
            false => {}
        }
    }
    assert_eq!(rooms, 2, "the room prints documents and lines, and a line of progress");
}

#[test]
fn nothing_is_left_unfinished() {
    for ending in [".rs", ".toml", ".md"] {
        for (path, text) in files(ending) {
            for word in UNFINISHED {
                assert!(!text.contains(word), "{} holds '{word}'", path.display());
            }
        }
    }
}
