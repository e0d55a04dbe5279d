//! What a test needs and this machine may lack.

use std::sync::atomic::AtomicBool;

use pagewise_lab::worker_door::ReadyWorker;
use pagewise_model::WorkerChoices;
use pagewise_toolchain::WORKERS;

/// Reports what a test needs that is not here; `checks/needs` lists what may be missing.
pub fn skipped(need: &str, detail: &str) {
    println!("skipped: {need}: {}", detail.trim_end().replace('\n', " "));
}

/// True if a worker in another language can be built here; otherwise reports why not.
pub fn has_toolchain(name: &str) -> bool {
    let line = (WORKERS.capability)(name, &WorkerChoices::default());
    line.reason().iter().for_each(|reason| skipped(name, reason));
    line.is_available()
}

/// A worker in another language as pagewise starts it; `None` where it has no toolchain.
#[track_caller]
pub fn ready(name: &str) -> Option<ReadyWorker> {
    let ready = || (WORKERS.ready)(name, &WorkerChoices::default(), &AtomicBool::new(false));
    has_toolchain(name).then(|| ready().unwrap_or_else(|reason| panic!("{reason}")))
}
