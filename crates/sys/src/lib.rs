//! The only unsafe code of pagewise, in thin layers whose types own what they hold.
//!
//! What is safe in rustix is called there directly; here is what is not: mappings, residency, rings and
//! the moment between fork and exec. Every wrapper returns the errno it met; none falls back to
//! another way.

pub mod child;
pub mod mapping;
pub mod placement;
pub mod residency;
pub mod ring;
pub mod writable;

pub use child::{CpuMask, Spawn};
pub use mapping::{Advice, AnonymousMemory, FileMapping, SharedMemory};
pub use residency::CacheStat;
pub use ring::{Completion, Ring, RingError, RingOptions};
pub use writable::{Advisor, WritableMapping};
