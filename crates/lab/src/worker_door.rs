//! The door of an extra that offers workers in other languages: it finds and builds one when a
//! method needs it. All else knows a worker as a program to start, and by what it declares.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use pagewise_host::Capability;
use pagewise_model::format::listed;
use pagewise_model::method::names;
use pagewise_model::{Worker, WorkerChoices};

use crate::supervise::program::Stated;

/// Workers that an extra offers.
pub struct WorkerDoor {
    /// Names of the workers in methods.
    pub names: &'static [&'static str],
    /// Options that they have.
    pub options: &'static [WorkerOption],
    /// Find a worker by its name, and build it unless it was built before. Ends soon after the flag
    /// is set. The error is the reason that the worker is unavailable.
    pub ready: fn(&str, &WorkerChoices, &AtomicBool) -> Result<ReadyWorker, String>,
    /// The line of a worker in `doctor`. Nothing is built.
    pub capability: fn(&str, &WorkerChoices) -> Capability,
    /// Remove what killed builds have left, and return its paths.
    pub sweep: fn() -> Vec<PathBuf>,
}

/// An option of a worker.
pub struct WorkerOption {
    /// Name in run files; on a command line it has hyphens.
    pub name: &'static str,
    /// Value of the option, for help.
    pub value: &'static str,
    /// True if its value is a path.
    pub is_path: bool,
    /// Effect on a run, for help.
    pub help: &'static str,
    /// Effect on `doctor`, which takes it too; `None` if it does not.
    pub help_of_doctor: Option<&'static str>,
    /// The worker that has it.
    pub worker: &'static str,
    /// All options of this worker in words.
    pub called: &'static str,
}

impl WorkerOption {
    /// Name on a command line, behind its hyphens.
    pub fn typed(&self) -> String {
        self.name.replace('_', "-")
    }
}

/// A worker that can be started.
#[derive(Debug)]
pub struct ReadyWorker {
    /// Program of the worker.
    pub program: Stated,
    /// The program of its toolchain.
    pub toolchain: PathBuf,
    /// Version of its toolchain.
    pub version: String,
    /// Candidates that were skipped when it was looked for, a sentence each.
    pub notes: Vec<String>,
}

static OFFERED: OnceLock<&[WorkerDoor]> = OnceLock::new();

/// Let this process have the workers behind these doors. The first call counts.
pub fn offer(doors: &'static [WorkerDoor]) {
    OFFERED.get_or_init(|| doors);
}

/// The doors that this process has.
pub fn offered() -> &'static [WorkerDoor] {
    OFFERED.get().copied().unwrap_or_default()
}

/// The door of the worker of this name.
pub fn of<'a>(name: &str, doors: &'a [WorkerDoor]) -> Option<&'a WorkerDoor> {
    doors.iter().find(|door| door.names.contains(&name))
}

/// Message about a worker of a plan that is neither behind these doors nor named on the command
/// line.
pub fn unknown(name: &str, doors: &[WorkerDoor]) -> String {
    let brought = names::worker_of(name);
    let meant = brought.map_or(name, Worker::name);
    let elsewhere = Worker::SHIPPED.iter().any(|worker| worker.has_runtime() && worker.name() == meant);
    if elsewhere && of(meant, doors).is_none() {
        return format!("this build of pagewise is without the worker {meant}: leave its methods out");
    }
    if let Some(worker) = brought {
        let instead =
            if worker.has_runtime() { format!("{worker}/METHOD") } else { "METHOD alone".to_string() };
        return format!(
            "no worker is called '{name}': write {instead}; a command of your own is named with --worker {name}=COMMAND"
        );
    }
    let offered = doors.iter().flat_map(|door| door.names).copied();
    let known: Vec<&str> = std::iter::once(Worker::Native.name()).chain(offered).collect();
    let are = if known.len() == 1 { "is" } else { "are" };
    format!(
        "no worker is called '{name}': there {are} {}; name the command of your own with --worker {name}=COMMAND",
        listed(&known)
    )
}
