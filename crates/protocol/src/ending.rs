//! The end of a worker that should have gone on.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use pagewise_model::{Failure, FailureKind};
use rustix::process::Signal;

/// Signals that have a name in sentences.
const NAMED: [(Signal, &str); 7] = [
    (Signal::BUS, "SIGBUS"),
    (Signal::KILL, "SIGKILL"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::ABORT, "SIGABRT"),
    (Signal::TERM, "SIGTERM"),
    (Signal::INT, "SIGINT"),
    (Signal::HUP, "SIGHUP"),
];

/// The kind of an end. These signals come from outside: no fault of the worker raises them.
pub(crate) fn kind_of(status: ExitStatus) -> FailureKind {
    match status.signal().and_then(Signal::from_named_raw) {
        Some(Signal::KILL | Signal::TERM | Signal::INT | Signal::HUP) => FailureKind::KilledFromOutside,
        _ => FailureKind::WorkerDied,
    }
}

/// A verb phrase for the end of a process.
pub(crate) fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) if code > 0 => format!("ended with status {code}"),
        (_, Some(signal)) => {
            let named = NAMED.iter().find(|(named, _)| named.as_raw() == signal).map(|(_, name)| *name);
            format!("was killed by {}", named.map_or(format!("signal {signal}"), str::to_string))
        }
        _ => "ended".to_string(),
    }
}

/// True if a SIGBUS ended the worker.
pub fn died_of_sigbus(failure: &Failure) -> bool {
    failure.kind == FailureKind::WorkerDied && failure.detail.contains("SIGBUS")
}
