//! The files of a crate, and which of them import which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::files;

/// The code of a file, without its tests.
pub fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// The files of a crate without its tests, by their module path: `judge::cell` is
/// src/judge/cell.rs, `lib` src/lib.rs.
pub fn modules(folder: &Path) -> BTreeMap<String, String> {
    let source = folder.join("src");
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
pub fn arrows(modules: &BTreeMap<String, String>, strict: bool) -> BTreeMap<&str, BTreeSet<&str>> {
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
pub fn circles(arrows: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Vec<String>> {
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
