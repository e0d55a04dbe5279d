//! Examination and preparation of the machine: environment, device, page cache, counters, dataset,
//! offsets, files to write.
//!
//! Nothing here measures or judges. Unknown facts are `None` or a reason, never 0; everything works
//! without privileges, with less evidence. Parsers are pure functions of the kernel's texts.

pub mod accounts;
pub mod boot;
mod btrfs;
pub mod cache;
pub mod cgroup;
pub mod clock;
mod container;
pub mod counters;
mod damon;
pub mod dataset;
pub mod device;
pub mod environment;
pub mod file_lock;
pub mod files;
#[cfg(test)]
mod fuzz;
mod kernel_files;
pub mod memory;
pub mod mounted;
pub mod mounts;
pub mod open_files;
mod overlay;
pub mod pace;
pub mod placement;
pub mod probe;
pub mod process;
pub mod reference;
pub mod scratch;
pub mod settings;
mod space;
pub mod steps;
pub mod table;
mod table_memory;
pub mod trusted;
pub mod watch;
#[cfg_attr(not(target_arch = "x86_64"), path = "windows/elsewhere.rs")]
pub mod windows;
pub mod written;

pub use cache::{EvictError, Evicted, Residency, WarmError, WarmedFile};
pub use cgroup::{Control, Group, GroupError, NoControl};
pub use clock::ClockPair;
pub use counters::HostReader;
pub use dataset::{Dataset, DatasetError};
pub use device::{BlockDevice, DeviceCounters};
pub use files::{DirectoryError, FileError, FileKey, FileKeys};
pub use kernel_files::CallError;
pub use pagewise_model::ProcessCounters;
pub use placement::PlacementPlan;
pub use probe::{Availability, Capability};
pub use process::MappingState;
pub use reference::{Reference, ReferenceError, ReferenceSource};
pub use settings::Readahead;
pub use space::Space;
pub use table::{OffsetTable, OperationOrder, Permutation, TableError, touched_word};
pub use table_memory::{PiecesOfGo, TableMemory};
pub use written::{FirstRecords, ReadBack, WrittenFile, missing_records};
