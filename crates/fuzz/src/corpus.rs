//! The corpus of initial inputs: small, made by pagewise itself, one folder for each target. Inputs
//! that once failed are stored next to the tests, as a change to one of these.

use std::fs;
use std::path::{Path, PathBuf};

/// Names and contents of the files in one folder of the corpus, in the order of their names.
///
/// # Panics
/// If there is none, or it cannot be read.
pub fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", directory.display());
    let file = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, fs::read(&path).expect("a file of the corpus"))
    };
    paths.into_iter().map(file).collect()
}

/// One of them.
///
/// # Panics
/// If there is none of that name.
pub fn file(folder: &str, name: &str) -> Vec<u8> {
    let found = files(folder).into_iter().find(|(found, _)| found == name);
    found.unwrap_or_else(|| panic!("the corpus has no {folder}/{name}")).1
}
