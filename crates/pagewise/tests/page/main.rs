//! The page in a real Chromium: what is drawn, said, sorted and filtered, and that nothing is
//! loaded or run beside it.
//!
//! One browser serves all tests, each of which has it for itself. Runs are constructed; no file is
//! measured. The tests need Debian's `chromium` and axe-core from npm, which `./check` installs.

mod accessible;
mod browser;
mod compared;
#[path = "../../../report/tests/constructed/mod.rs"]
mod constructed;
mod drawn;
mod isolated;
mod printed;
mod several;
mod tables;

use std::io;
use std::path::{Path, PathBuf};

use pagewise_analysis::{Judged, judge};
use pagewise_curves::CURVES;
use pagewise_model::run::Run;
use pagewise_page::PAGE;
use pagewise_report::curves_door;
use pagewise_report::judged_run::JudgedRun;

/// A folder of the build, but not on the filesystem that other tests measure, where that is one of
/// its own.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the build directory").join("page").join(name)
}

/// The page of a run as a file of this name.
fn written(name: &str, run: &Run) -> PathBuf {
    curves_door::offer(&[CURVES]);
    let judged: Judged = judge(run);
    file(name, |out| (PAGE.runs)(out, &[JudgedRun::of(&format!("{name}.jsonl"), run, &judged)]))
}

/// A page as a file of this name.
fn file(name: &str, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> PathBuf {
    let mut text = Vec::new();
    write(&mut text).expect("memory");
    let folder = folder("pages");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(format!("{name}.html"));
    std::fs::write(&path, text).expect("write");
    path
}
