//! Filesystems that are mounted for a test. Needs the right to mount.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mount that ends with the test.
pub struct Mounted(pub PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // A process that looks at all filesystems, such as an indexer, may keep it busy for a
        // moment.
        let umount = || Command::new("umount").arg(&self.0).status().is_ok_and(|status| status.success());
        let is_gone = (0..50).any(|_| {
            let done = umount();
            if !done {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            done
        });
        if !std::thread::panicking() {
            assert!(is_gone, "{} is still mounted", self.0.display());
        }
    }
}

/// Does it, or says why not.
pub fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// A path as an argument of a program.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
