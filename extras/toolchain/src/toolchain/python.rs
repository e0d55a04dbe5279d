//! Python, and the worker's scripts in a folder of the cache.

use std::path::Path;

use super::Found;
use super::child::Said;
use super::recipe::{Flags, Recipe};
use super::sources::PYTHON;
use super::variables::is_program;

pub(super) const RECIPE: Recipe = Recipe {
    name: "python",
    capability: "worker python",
    sources: PYTHON,
    wanted: "Python 3.8 or newer",
    oldest: &[3, 8],
    home: None,
    programs: &["python3", "python"],
    folders: &[],
    remedy: "",
    question: &["-u", "-B", "-c", QUESTION],
    answer,
    set: &[],
    unset: &["PYTHONINSPECT"],
    instead: "",
    compiler: None,
    build_flags: &[],
    compile: |_, _| Ok(()),
    unsuitable: |_| None,
    // Unbuffered, so that the last output is not lost; no files are written next to the script. Not
    // isolated (`-I`): numpy may be in the user's own folder.
    flags: |_| Ok(Flags { words: ["-u", "-B"].map(str::to_string).to_vec(), log: None }),
    start,
};

/// Prints its properties, on lines that can be distinguished from the output of the user's start-up
/// files. Python 2 can run it too, so that it is reported as too old. Modules of the current folder
/// must not be imported.
const QUESTION: &str = r#"
import sys
sys.path[:] = [path for path in sys.path if path]
print("pagewise version %d.%d.%d" % tuple(sys.version_info[:3]))
print("pagewise program %s" % (sys.executable or ""))
try:
    import numpy
    print("pagewise numpy numpy %s" % numpy.__version__)
except ImportError as error:
    missing = getattr(error, "name", None) == "numpy"
    lines = str(error).strip().splitlines() or ["ImportError"]
    print("pagewise numpy " + ("without numpy" if missing else "numpy that cannot be imported: " + lines[0]))
except Exception as error:
    print("pagewise numpy numpy that cannot be imported: %s" % type(error).__name__)
"#;

fn answer(said: &Said, asked: &Path) -> Option<Found> {
    let release = said.value("pagewise version ")?.to_string();
    let version = format!("{release}, {}", said.value("pagewise numpy ").unwrap_or("without numpy"));
    // The program on PATH may be a script of a version manager that depends on the current folder.
    let own = said.value("pagewise program ").map(Path::new).filter(|own| is_program(own)).unwrap_or(asked);
    Some(Found { version, ..Found::new(&RECIPE, own, own.to_path_buf(), release) })
}

fn start(found: &Found, flags: &[String], folder: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let program = text(&found.program);
    [&[program], flags, &[text(&folder.join("worker.py"))]].concat()
}
