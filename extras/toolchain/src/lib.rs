//! An extra: workers in Java, Go and Python, found and built with the user's own toolchains.
//!
//! [`WORKERS`] is the only door.

mod toolchain;

use pagewise_lab::worker_door::WorkerDoor;

/// The workers `jvm`, `go` and `python`.
pub const WORKERS: WorkerDoor = WorkerDoor {
    names: toolchain::NAMES,
    options: toolchain::OPTIONS,
    ready: toolchain::ready,
    capability: toolchain::capability,
    sweep: toolchain::sweep,
};
