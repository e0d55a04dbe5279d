//! Rules between the crates and in every source file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which crate may see which (normal dependencies; tests may see more).
const ARROWS: &[(&str, &[&str])] = &[
    ("pagewise", &["lab", "report", "analysis", "host", "engine", "protocol", "model", "sys"]),
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

/// Rooms of the crate `analysis`, by the first name of a path in it: which may see which.
const ROOMS: &[(&str, &[&str])] = &[
    ("lib", &["proof", "judge", "search", "compare", "reproduce", "inspect", "record"]),
    ("compare", &["judge", "statistics"]),
    ("reproduce", &["judge", "proof", "statistics"]),
    ("search", &["judge", "statistics"]),
    ("judge", &["proof", "statistics"]),
    ("proof", &["statistics"]),
    ("inspect", &[]),
    ("record", &["inspect"]),
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
            if entry.file_type().expect("type").is_dir() {
                collect(&path, ending, found);
            } else if name.ends_with(ending) {
                let text =
                    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                found.insert(path, text);
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(&root(), ending, &mut found);
    assert!(!found.is_empty());
    found
}

#[test]
fn crates_see_only_what_the_design_says() {
    let crates: BTreeSet<String> = fs::read_dir(root().join("crates"))
        .expect("list")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    let known: BTreeSet<String> = ARROWS.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(crates, known, "a crate without arrows");
    for (name, allowed) in ARROWS {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).expect("manifest");
        let manifest: toml::Table = text.parse().expect("toml");
        let seen = |section: &str| -> BTreeSet<String> {
            let table = manifest.get(section).and_then(toml::Value::as_table);
            let names = table.into_iter().flat_map(toml::Table::keys);
            names.filter_map(|name| name.strip_prefix("pagewise-")).map(str::to_string).collect()
        };
        for section in ["dependencies", "build-dependencies"] {
            for other in seen(section) {
                assert!(allowed.contains(&&*other), "{name} must not depend on {other}");
            }
        }
        assert!(manifest.get("target").is_none(), "{name}: arrows hold for all targets alike");
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
    for (name, _) in ARROWS {
        let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect("manifest");
        assert!(
            text.contains("[lints]\nworkspace = true") || *name == "sys",
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
    path.strip_prefix(root().join("crates")).is_ok_and(|within| {
        let parts: Vec<_> = within.iter().map(|part| part.to_string_lossy()).collect();
        parts.get(1).is_some_and(|part| part == "src")
            && !parts.iter().any(|part| part == "tests" || part == "tests.rs")
    })
}

#[test]
fn doc_comments_are_noun_phrases_or_imperatives() {
    for (path, text) in files(".rs").into_iter().filter(|(path, _)| is_source(path)) {
        let mut before = "";
        for (index, line) in text.lines().map(str::trim_start).enumerate() {
            let is_begun = ["///", "//!"].iter().any(|mark| before.starts_with(mark) && before != *mark);
            let comment = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
            let first = comment.filter(|_| !is_begun).and_then(|comment| comment.split(' ').next());
            assert!(
                !first.is_some_and(|first| CLAUSES.contains(&first)),
                "{}:{}: a clause: {line}",
                path.display(),
                index + 1
            );
            before = line;
        }
    }
}

#[test]
fn comments_are_narrow() {
    for (path, text) in files(".rs") {
        for (index, line) in text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let comment = comment.trim_start_matches(['/', '!']).trim_start();
            // Code, rows of tables and drawings stay whole.
            let is_whole = comment.starts_with(['`', '|']) || comment.contains('─');
            assert!(
                is_whole || line.chars().count() <= COMMENT_COLUMNS,
                "{}:{} has more than {COMMENT_COLUMNS} columns: {comment}",
                path.display(),
                index + 1
            );
        }
    }
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

/// The code of a file, without its tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// The files of a crate without its tests, by their module path: `judge::cell` is
/// src/judge/cell.rs, `lib` src/lib.rs.
fn modules(name: &str) -> BTreeMap<String, String> {
    let source = root().join("crates").join(name).join("src");
    let is_test = |path: &Path| path.iter().any(|part| part == "tests" || part == "tests.rs");
    let of_crate = files(".rs").into_iter().filter_map(|(path, text)| {
        let within = path.strip_prefix(&source).ok()?.with_extension("");
        let within = if within.ends_with("mod") { within.parent()?.to_path_buf() } else { within };
        let module = within.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("::");
        (!is_test(&path)).then(|| (module, code(&text).to_string()))
    });
    let all: BTreeMap<String, String> = of_crate.collect();
    // What only tests are built with, and all below it.
    let is_built = |module: &str| {
        let parents = module.match_indices("::").map(|(at, _)| &module[..at]).chain([module]);
        parents.filter_map(|path| path.rsplit_once("::")).all(|(parent, name)| {
            let declared = all
                .get(parent)
                .and_then(|text| text.split(&format!("mod {name};")).next().map(str::to_string));
            declared.is_none_or(|before| {
                !before.trim_end().trim_end_matches("pub(crate)").trim_end().ends_with("#[cfg(test)]")
            })
        })
    };
    let built: BTreeSet<String> = all.keys().filter(|module| is_built(module)).cloned().collect();
    all.into_iter().filter(|(module, _)| built.contains(module)).collect()
}

/// The paths that begin with `crate` or `super` in the code of a module, groups in braces taken
/// apart, as paths from the crate.
fn imports(module: &str, text: &str) -> BTreeSet<String> {
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            // `super::super::x` is taken from its first word.
            let before = code[..at].chars().next_back();
            if before.is_some_and(|character| character.is_alphanumeric() || "_:".contains(character)) {
                continue;
            }
            expand("", &code[at..], &mut found);
        }
    }
    let parent = |path: &str| path.rsplit_once("::").map_or(String::new(), |(parent, _)| parent.to_string());
    let absolute = |path: String| {
        let (mut base, mut rest) = (module.to_string(), path.as_str());
        if let Some(below) = rest.strip_prefix("crate::") {
            return below.to_string();
        }
        while let Some(below) = rest.strip_prefix("super::") {
            (base, rest) = (parent(&base), below);
        }
        if base.is_empty() { rest.to_string() } else { format!("{base}::{rest}") }
    };
    found.into_iter().map(absolute).collect()
}

/// Adds the paths at the beginning of `text`, each behind `before`; what is left of the text.
fn expand<'a>(before: &str, text: &'a str, found: &mut BTreeSet<String>) -> &'a str {
    let end = text.find(|character: char| !(character.is_alphanumeric() || "_:".contains(character)));
    let (word, mut rest) = text.split_at(end.unwrap_or(text.len()));
    let path = format!("{before}{word}");
    if !rest.starts_with('{') || !path.ends_with("::") {
        found.insert(path.trim_end_matches("::self").to_string());
        return rest;
    }
    rest = &rest[1..];
    loop {
        rest = rest.trim_start_matches(|character: char| character.is_whitespace() || character == ',');
        match rest.strip_prefix('}') {
            Some(behind) => return behind,
            None if rest.is_empty() => return rest,
            None => {
                let left = expand(&path, rest, found);
                // `x as y` and the like: on to the next one.
                rest = left.trim_start_matches(|character: char| !",}".contains(character));
            }
        }
    }
}

/// Names that a file passes on from its parts, with where they are, from itself.
fn reexported(text: &str) -> Vec<(String, String)> {
    let mut found = BTreeSet::new();
    for (at, word) in text.match_indices("pub use ") {
        expand("", &text[at + word.len()..], &mut found);
    }
    let own = found.into_iter().filter(|path| !path.starts_with("crate::") && !path.starts_with("super::"));
    own.filter_map(|path| Some((path.rsplit_once("::")?.1.to_string(), path))).collect()
}

/// Which modules of a crate import which, by paths from `crate` or `super`; if `strict` also by the
/// plain names of parts.
fn arrows(modules: &BTreeMap<String, String>, strict: bool) -> BTreeMap<&str, BTreeSet<&str>> {
    let reexports: BTreeMap<(&str, String), String> = modules
        .iter()
        .flat_map(|(module, text)| {
            reexported(text).into_iter().map(move |(name, path)| ((module.as_str(), name), path))
        })
        .collect();
    // The file in which a path ends; a name that a file only passes on belongs to the one that has
    // it.
    let home = |path: &str| {
        let (mut path, mut patience) = (path.to_string(), 8);
        let mut below = String::new();
        loop {
            let module = modules.get_key_value(&path).map(|(module, _)| module.as_str());
            let module = module.or_else(|| {
                path.is_empty().then(|| modules.get_key_value("lib").map(|(lib, _)| lib.as_str()))?
            });
            if let Some(module) = module {
                let passed = reexports.get(&(module, below.clone())).filter(|_| patience > 0);
                let Some(further) = passed else { return Some(module) };
                path = if module == "lib" { further.clone() } else { format!("{module}::{further}") };
                patience -= 1;
            }
            match path.rsplit_once("::") {
                Some((parent, name)) => (below, path) = (name.to_string(), parent.to_string()),
                None if path.is_empty() => return None,
                None => (below, path) = (path, String::new()),
            }
        }
    };
    let of_module = |(module, text): (&'_ String, &String)| -> BTreeSet<&str> {
        let paths = imports(module, text);
        paths.iter().filter_map(|path| home(path)).filter(|other| other != module).collect()
    };
    let declared = |module: &str, text: &str| -> BTreeSet<&str> {
        // A child that is used by its plain name, as `mod child; use child::X;`.
        let prefix = if module == "lib" || module == "main" { String::new() } else { format!("{module}::") };
        let children = modules.keys().filter_map(|other| {
            let name = other.strip_prefix(&prefix)?;
            let uses = [format!("use {name}::"), format!(" {name}::"), format!("({name}::")];
            (!name.contains("::") && uses.iter().any(|word| text.contains(word.as_str())))
                .then_some(other.as_str())
        });
        children.filter(|other| *other != module).collect()
    };
    modules
        .iter()
        .map(|(module, text)| {
            let mut to = of_module((module, text));
            if strict {
                to.extend(declared(module, text));
            }
            (module.as_str(), to)
        })
        .collect()
}

/// Modules that reach each other, of two or more, each in the order of their names.
fn circles(arrows: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Vec<String>> {
    let reach = |from: &str| -> BTreeSet<String> {
        let (mut found, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(module) = left.pop() {
            for other in arrows.get(module).into_iter().flatten() {
                if found.insert(other.to_string()) {
                    left.push(other);
                }
            }
        }
        found
    };
    let reached: BTreeMap<&str, BTreeSet<String>> =
        arrows.keys().map(|module| (*module, reach(module))).collect();
    let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
    for (module, others) in reached.iter().filter(|(module, others)| others.contains(**module)) {
        let back = others.iter().filter(|other| reached[other.as_str()].contains(*module));
        circles.insert(back.cloned().collect());
    }
    circles.into_iter().collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut found = BTreeSet::new();
    for (name, _) in ARROWS {
        let modules = modules(name);
        for circle in circles(&arrows(&modules, STRICT.contains(name))) {
            found.insert(circle.iter().map(|module| format!("{name}::{module}")).collect::<Vec<_>>());
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn rooms_of_the_analysis_see_only_what_stands_below() {
    let modules = modules("analysis");
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
fn imports_are_found_however_they_are_written() {
    let text = "use crate::a::{b::C, d::{self, E}, F as G};\nuse super::h;\n// crate::no\nfn f() { super::super::i::j() }";
    let found: Vec<String> = imports("x::y::z", text).into_iter().collect();
    assert_eq!(
        found,
        ["a::F", "a::b::C", "a::d", "a::d::E", "x::i::j", "x::y::h"].map(String::from).to_vec()
    );
    let modules = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
    };
    let circle = modules(&[
        ("lib", "mod a;"),
        ("a", "use crate::b::B;"),
        ("b", "use crate::c::C;"),
        ("c", "fn f() { crate::a::g() }"),
    ]);
    assert_eq!(circles(&arrows(&circle, false)), [["a", "b", "c"].map(String::from).to_vec()]);
    let parent = modules(&[("a", "mod b;\npub use b::B;"), ("a::b", "use super::A;")]);
    assert_eq!(circles(&arrows(&parent, true)), [["a", "a::b"].map(String::from).to_vec()]);
    let passed_on = modules(&[
        ("lib", "pub use a::A;\npub use b::B;"),
        ("a", "use crate::B;"),
        ("b", "use crate::{A, C};"),
    ]);
    assert_eq!(circles(&arrows(&passed_on, false)), [["a", "b"].map(String::from).to_vec()]);
    let tree = modules(&[("a", "mod b;\npub use b::B;"), ("a::b", "use super::c::C;"), ("a::c", "")]);
    assert!(circles(&arrows(&parent, false)).is_empty() && circles(&arrows(&tree, true)).is_empty());
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
