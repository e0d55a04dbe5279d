//! Validity of one sample.
//!
//! [`failures`] is called while samples are taken, and by [`again`] for those of a run file. The
//! checks by subject: the worker's claims in [`claims`]; the cache and the method's own options in
//! [`conditions`]; the cache as it was recorded in `as_recorded`, and the gaps of the
//! program in `gaps`; the end of a cold sample in
//! [`overrun`]; written files in [`writes`], and their syncs in `syncs`; scans in [`scans`]; limits
//! and settings in [`settings`]; the counters of a method in [`mod@expected`] and [`faults`];
//! allowances for a runtime in [`runtime`]; unexpected mappings in [`mappings`]; activity outside
//! of the clock in [`outside`]; plausibility in [`plausible`]; heartbeats in [`heartbeats`]; waits
//! for a CPU in `cpu_waits`. What a worker's clock leaves out and counts all the same is found in
//! [`unaccounted`]. [`steady`] decides when a cache is as warm as it gets.

mod actors;
mod again;
mod as_recorded;
pub(crate) mod calls;
mod checks;
pub mod claims;
pub mod conditions;
mod copies;
mod cpu_waits;
pub mod expected;
pub mod faults;
mod gaps;
pub mod heartbeats;
mod kinds;
pub mod mappings;
pub mod measured;
pub mod outside;
pub mod overrun;
pub mod plausible;
#[cfg(test)]
mod replays;
pub mod runtime;
pub mod scans;
pub mod settings;
pub mod steady;
mod subject;
mod syncs;
mod threads;
pub mod unaccounted;
pub mod writes;

pub use again::{Again, again};
pub use checks::failures;
#[cfg(test)]
pub(crate) use checks::honest;
pub use conditions::no_effect;
pub use cpu_waits::CPU_OF_OTHERS;
pub use expected::{Expected, Kind, expected};
pub use faults::{WriteFaults, WriteKind, write_faults};
pub use plausible::byte_rate;
