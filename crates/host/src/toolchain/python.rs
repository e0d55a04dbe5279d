//! Python, and the worker's scripts in a folder of the cache.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::child::{self, Said};
use super::store::WorkerStore;
use super::variables::{ToolchainVariables, is_program, numbers};
use super::{Built, Found, Language, SourceFile, ToolchainError};

const MIN_VERSION: [u64; 2] = [3, 8];
const WANTED: &str = "Python 3.8 or newer";
const SCRIPT: &str = "worker.py";
/// Unbuffered, so that the last output is not lost; no files are written next to the script. Not isolated (`-I`): numpy
/// may be in the user's own folder.
const ARGUMENTS: [&str; 2] = ["-u", "-B"];

/// Prints its properties, on lines that can be distinguished from the output of the user's start-up files. Python 2 can
/// run it too, so that it is reported as too old. Modules of the current folder must not be imported.
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

pub(super) fn find(toolchain_variables: &ToolchainVariables) -> Result<Found, ToolchainError> {
    let mut passed = Vec::new();
    let mut seen = BTreeSet::new();
    for name in ["python3", "python"] {
        let programs = toolchain_variables.on_path(name);
        if programs.is_empty() {
            passed.push(format!("{name} is not on PATH"));
        }
        // Not by the file behind a link: a virtual environment is identified by the path by which it is started.
        for program in programs.into_iter().filter(|program| seen.insert(program.clone())) {
            match check(toolchain_variables, &program) {
                Ok(found) => return Ok(found),
                Err(why) => passed.push(why),
            }
        }
    }
    Err(ToolchainError(format!("no {WANTED} was found: {}", passed.join("; "))))
}

/// Check a Python; the error is its fault.
fn check(toolchain_variables: &ToolchainVariables, program: &Path) -> Result<Found, String> {
    let shown = program.display();
    let mut command = toolchain_variables.command(program);
    command.args(ARGUMENTS).arg("-c").arg(QUESTION);
    let said = child::run(&mut command, toolchain_variables.answer_within, &AtomicBool::new(false));
    let said = said.and_then(Said::well).map_err(|why| format!("{shown}: {why}"))?;
    let answer = |key: &str| {
        let line = said.stdout.lines().find_map(|line| line.strip_prefix("pagewise ")?.strip_prefix(key));
        line.map(str::trim).filter(|value| !value.is_empty())
    };
    let release = answer("version").ok_or_else(|| format!("{shown} names no version"))?.to_string();
    if numbers(&release).as_slice() < MIN_VERSION.as_slice() {
        return Err(format!("{release} at {shown} is too old"));
    }
    // The program on PATH may be a script of a version manager that depends on the current folder.
    let own = answer("program").map(PathBuf::from).filter(|own| is_program(own));
    let program = own.unwrap_or_else(|| program.to_path_buf());
    let version = format!("{release}, {}", answer("numpy").unwrap_or("without numpy"));
    Ok(Found {
        language: Language::Python,
        home: program.clone(),
        program,
        version,
        release,
        notes: Vec::new(),
    })
}

pub(super) fn build(
    store: &WorkerStore,
    found: &Found,
    sources: &[SourceFile],
    stop: &AtomicBool,
) -> Result<Built, ToolchainError> {
    let folder = store.worker(Language::Python, super::folder(store, found, sources), stop, |workshop| {
        workshop.write_all(&workshop.product(), sources).map(drop)
    })?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let start = |folder: &Path| {
        let script = text(&folder.join(SCRIPT));
        [&[text(&found.program)], &ARGUMENTS.map(str::to_string)[..], &[script]].concat()
    };
    Ok(Built::of(found, folder, &["PYTHONINSPECT"], start))
}
