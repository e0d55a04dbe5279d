//! A small filesystem in memory, mounted for a test. Needs the right to mount.
//!
//! Other tests start programs at the same time, and each has copies of all descriptors until it
//! executes: the filesystem may be busy for moments in which nothing here uses it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Such moments are short; this is for a very slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A mount that ends with the test.
pub(super) struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Mount it, or print the reason that the test is skipped.
    pub(super) fn mount(point: &Path, options: &str) -> Option<Self> {
        match run("mount", &["-t", "tmpfs", "-o", options, "tmpfs", text(point)]) {
            Ok(()) => Some(Self(point.to_path_buf())),
            Err(reason) => {
                println!("skipped: mount: {reason}");
                None
            }
        }
    }

    /// Remount it, `ro` or `rw`.
    pub(super) fn remount(&self, way: &str) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(reason) = run("mount", &["-o", &format!("remount,{way}"), text(&self.0)]) {
            assert!(reason.contains("busy") && Instant::now() < deadline, "{reason}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Removed from the tree at once, and released with the last descriptor.
        let unmounted = run("umount", &["--lazy", text(&self.0)]);
        if !std::thread::panicking() {
            unmounted.expect("it is unmounted");
        }
    }
}

/// Run a program; the error is the reason.
fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// A path as an argument of a program.
pub(super) fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
