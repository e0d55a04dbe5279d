//! Scripts of the page: those whose hashes its policy has, and no other.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::{constructed, document};

/// The hash of a script as a policy has it.
fn hash(script: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "sha256-".to_string();
    for part in Sha256::digest(script).chunks(3) {
        let byte = |index: usize| u32::from(part.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * index) & 63) as usize];
            text.push(if index > part.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

/// The scripts of a page.
fn scripts(page: &str) -> Vec<&str> {
    page.split("<script>").skip(1).map(|rest| rest.split("</script>").next().expect("an end")).collect()
}

#[test]
fn the_policy_has_the_hash_of_each_script_and_allows_nothing_else() {
    let page = document(&constructed::complete(), crate::page::write);
    let hashes: Vec<String> = scripts(&page).into_iter().map(hash).collect();
    assert_eq!(hashes.len(), 2);
    // What is written passes a writer that shows what is invisible, which would change a script.
    assert!(page.chars().all(|letter| letter == '\n' || pagewise_model::untrusted::is_printed(letter)));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/hashes.txt");
    let lines = format!("{}\n", hashes.join("\n"));
    if std::env::var_os("PAGEWISE_BLESS").is_some() {
        std::fs::write(&path, &lines).expect("write");
        return;
    }
    assert_eq!(std::fs::read_to_string(&path).expect("read"), lines, "PAGEWISE_BLESS=1 writes it anew");
    let (_, policy) = page.split_once("Content-Security-Policy\" content=\"").expect("a policy");
    let policy = policy.split('"').next().expect("an end");
    let quoted = hashes.iter().map(|hash| format!("'{hash}'")).collect::<Vec<_>>().join(" ");
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; script-src {quoted}"
        )
    );
}

#[test]
fn a_page_without_plots_has_no_script_of_plots() {
    let mut run = constructed::complete();
    run.samples.clear();
    run.header.plan.cells.clear();
    assert_eq!(scripts(&document(&run, crate::page::write)).len(), 1);
}
