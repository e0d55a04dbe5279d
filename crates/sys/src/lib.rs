//! The only unsafe code of pagewise, in thin layers whose types own their resources.
//!
//! Safe functions of rustix are called directly where they are needed; this crate has the rest:
//! mappings, residency, rings, events and threads of other programs, the state of the wall clock
//! and the moment between fork and exec. Every wrapper returns the errno it met; none falls back to
//! another call.

pub mod child;
mod extents;
pub mod mapping;
pub mod perf;
pub mod placement;
mod range_sync;
pub mod residency;
pub mod ring;
pub mod schedule;
#[cfg(target_arch = "x86_64")]
pub mod tracee;
pub mod userfault;
pub mod wall_clock;
pub mod writable;

pub use child::{CpuMask, Held, Released, Spawn};
pub use extents::written_bytes;
pub use mapping::{Advice, AnonymousMemory, FileMapping, SharedMemory};
pub use range_sync::sync_file_range;
pub use residency::{CacheStat, RWF_DONTCACHE, pread_dontcache};
pub use ring::{Completion, Ring, RingError, RingOptions};
pub use schedule::Schedule;
pub use wall_clock::WallClock;
pub use writable::{Advisor, WritableMapping};

/// The number that a call returned; if it is negative, the call failed, and its errno is the error.
fn checked<T: Default + PartialOrd>(returned: T) -> std::io::Result<T> {
    if returned < T::default() { Err(std::io::Error::last_os_error()) } else { Ok(returned) }
}
