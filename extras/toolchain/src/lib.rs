//! An extra: workers in Java, Go and Python, found and built with the user's own toolchains.
//!
//! [`WORKERS`] is the only door.

mod toolchain;

use pagewise_lab::worker_door::WorkerDoor;

use toolchain::Language;

/// The workers `jvm`, `go` and `python`.
pub const WORKERS: WorkerDoor = WorkerDoor {
    names: &[Language::Jvm.name(), Language::Go.name(), Language::Python.name()],
    options: toolchain::OPTIONS,
    ready: toolchain::ready,
    capability: toolchain::capability,
    sweep: toolchain::sweep,
};
