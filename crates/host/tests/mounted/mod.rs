//! Filesystems that are mounted for a test. Needs the right to mount.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mount that ends with the test.
pub struct Mounted(pub PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(&self.0).status();
        if !std::thread::panicking() {
            assert!(status.is_ok_and(|status| status.success()), "{} is still mounted", self.0.display());
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
