//! Texts as they were when they were last looked at.

use std::path::PathBuf;

/// The text is that of a file beside this one. `PAGEWISE_BLESS` writes it anew.
pub fn assert_golden(name: &str, found: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("PAGEWISE_BLESS").is_some() {
        std::fs::write(&path, found).expect("golden file is writable");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "{name} differs; PAGEWISE_BLESS=1 writes it anew. Found:\n{found}");
}
