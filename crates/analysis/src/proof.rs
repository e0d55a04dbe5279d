//! Whether one sample can be believed.
//!
//! [`failures`] is asked while samples are taken, and by [`again`] for those of a run file. The checks of what the worker claims stand
//! in [`claims`], those of the cache and the method's own options in [`conditions`], those of files that are written in [`writes`], those of scans
//! in [`scans`], those of limits and settings in [`settings`], what a method's counters must show in [`mod@expected`] and [`faults`], what a runtime may do
//! beside in [`runtime`], those of mappings that a name says nothing of in [`mappings`], of what happens outside of the clock in [`outside`], of what can be at
//! all in [`plausible`], and those of heartbeats in [`heartbeats`]. When a cache is as warm as it gets stands in [`steady`].

mod again;
pub(crate) mod calls;
mod checks;
pub mod claims;
pub mod conditions;
pub mod expected;
pub mod faults;
pub mod heartbeats;
mod kinds;
pub mod mappings;
pub mod measured;
pub mod outside;
pub mod plausible;
pub mod runtime;
pub mod scans;
pub mod settings;
pub mod steady;
mod subject;
pub mod writes;

pub use again::{Again, again};
pub use checks::failures;
#[cfg(test)]
pub(crate) use checks::honest;
pub use conditions::no_effect;
pub use expected::{Expected, Kind, expected};
pub use faults::{WriteFaults, WriteKind, write_faults};
pub use plausible::byte_rate;
