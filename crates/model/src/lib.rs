//! The words of pagewise as types: units, access methods, conditions, cells, plans, samples, runs.
//!
//! Nothing here reads a file, a clock or the machine. All other crates use these types: the same
//! values are parsed from the user's text, sent to a worker and stored in a run file.

pub mod access_map;
mod actor;
mod actor_cell;
mod actor_evidence;
pub mod cell;
mod check_context;
pub mod checksum;
pub mod content;
pub mod counters;
pub mod date;
mod ensure;
pub mod environment;
pub mod expectation;
mod failure;
pub mod format;
pub mod groups;
pub mod host_settings;
pub mod inspection;
pub mod limits;
pub mod method;
pub mod misspelt;
pub mod pieces;
pub mod plan;
pub mod planned_table;
pub mod random;
pub mod rate;
pub mod ring;
pub mod run;
pub mod run_identity;
pub mod sample;
pub mod shell_words;
mod sync;
pub mod trace;
pub mod units;
pub mod untrusted;
pub mod watched;
mod words;
pub mod work;
pub mod workers;

pub use actor::{Actor, ActorFile, ActorOrder, SAME_FILE};
pub use actor_evidence::{ActorEvidence, ActorWindow, ActorWrites};
pub use cell::{CacheState, Cell, Conditions, Descriptor, Role};
pub use check_context::{Beating, CheckContext};
pub use checksum::Consume;
pub use content::Content;
pub use counters::{GroupCounters, HostCounters, HostSecond, ProcessCounters, RateWindow, ThreadCounters};
pub use environment::Environment;
pub use failure::{Failure, FailureKind};
pub use host_settings::{
    CpuList, DeviceCap, HostSettings, KernelSettings, Numa, SettingsInForce, Skew, Switch,
};
pub use method::{Access, Alignment, LineRule, Method, MethodOption, Worker};
pub use plan::{Plan, Source};
pub use rate::{RateSchedule, ScheduledRate};
pub use ring::RecordRing;
pub use sample::{Evidence, Outcome, Sample};
pub use sync::{FOLIO_BYTES, Sync, SyncCall};
pub use units::Bytes;
pub use untrusted::Untrusted;
pub use work::{Append, Fill, Offer, Reads, Replay, Scan, Work, Workload, WorkloadKind, Writes};
pub use workers::{Delays, Heartbeat, WorkerChoices, WorkerFound, WorkerWarmup};
