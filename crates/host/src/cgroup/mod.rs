//! Memory limits and device caps by cgroups: v1, v2, or machines that have both.
//!
//! A group is made for one worker, which joins it before exec, and is removed after it. Its paths
//! are known before anything is made ([`Control::group_paths`]), so that they can be written to the
//! journal first; [`sweep`] removes groups left by a dead run.
//!
//! **Swap.** A memory limit means little if anonymous memory escapes into swap. v2:
//! `memory.swap.max` is set to 0. v1: `memory.memsw.limit_in_bytes` is set to the limit and
//! `memory.swappiness` to 0, with which a group under its limit does not swap
//! (Documentation/admin-guide/cgroup-v1/memory.rst, 5.3). If the kernel has no such file, it does
//! not account swap, or has none: nothing is set and nothing is claimed then.
//!
//! **Where.** v1: below the own group of each hierarchy. v2: a group gets a controller only from a
//! parent that has it enabled for its children, and a group with enabled controllers holds no
//! processes (Documentation/admin-guide/cgroup-v2.rst, "no internal processes"). Therefore either
//! an ancestor that this process may write to has them enabled already, or the processes of the own
//! group are moved to a leaf first. That happens when a group is made, not before, and is undone
//! with the last group.
//!
//! **In place.** Where no group can be made, as in most containers, the limit that this process is
//! under itself stands in for one of the same size ([`Control::limit_in_place`]): the worker shares
//! it with the supervisor, and its group is only looked at. Swap is left as it is there.

mod detect;
mod directories;
mod error;
mod group;
mod scope;
mod sweep;
mod v1;
mod v2;

use std::fmt;
use std::path::{Path, PathBuf};

pub use error::GroupError;
pub use group::Group;
pub use scope::{SCOPE_MARKER, Scope};
pub use sweep::{is_gone, sweep};

use pagewise_model::Bytes;
pub use pagewise_model::counters::UNLIMITED;
use pagewise_model::groups::distinct;

/// Versions of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy for each controller.
    V1,
    /// One hierarchy.
    V2,
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Version::V1 => "v1",
            Version::V2 => "v2",
        })
    }
}

/// Purpose of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Memory,
    Device,
}

impl Controller {
    /// Name in the files of this version.
    fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Controller::Memory, _) => "memory",
            (Controller::Device, Version::V1) => "blkio",
            (Controller::Device, Version::V2) => "io",
        }
    }
}

/// A group below which groups with a controller can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentGroup {
    version: Version,
    mount_point: PathBuf,
    parent: PathBuf,
    /// v2: controllers that must be enabled for the children first, by their names in v2, sorted.
    missing: Vec<&'static str>,
}

impl ParentGroup {
    /// Version of the interface.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The group below which groups are made.
    pub fn parent(&self) -> &Path {
        &self.parent
    }
}

/// `cgroup v1 at /sys/fs/cgroup/memory`.
impl fmt::Display for ParentGroup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cgroup {} at {}", self.version, self.mount_point.display())
    }
}

/// Reason that a limit is unavailable: one sentence, with the command to run instead if known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NoControl {
    /// The sentence.
    pub reason: String,
    /// Scope in which the limit is available.
    pub scope: Option<Scope>,
}

/// A memory limit that this process is under already, as in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnLimit {
    /// The limit.
    pub bytes: Bytes,
    /// The group that has it: the own one, or one above it.
    group: PathBuf,
    version: Version,
}

/// `512MiB (cgroup v2 at /sys/fs/cgroup)`.
impl fmt::Display for OwnLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (cgroup {} at {})", self.bytes, self.version, self.group.display())
    }
}

/// The lowest memory limit of a process's groups that can be seen, if it is below the memory of the
/// machine.
pub fn memory_limit_of(process: u32) -> Option<Bytes> {
    detect::memory_limit_of(process)
}

/// Available limits.
#[derive(Clone, Debug)]
pub struct Control {
    memory: Result<ParentGroup, NoControl>,
    device: Result<ParentGroup, NoControl>,
    own_limit: Option<OwnLimit>,
}

impl Control {
    /// Look for usable groups; makes and changes nothing. Apparent support may still be refused on
    /// use: see [`Control::tried`].
    pub fn detect() -> Self {
        detect::detect()
    }

    /// Usable groups, verified: a group with a limit, and one for caps, is made, read back and
    /// removed. The paths of `group_paths(random, true, true)` are made.
    pub fn tried(self, random: u64) -> Self {
        let refused = |error: GroupError| NoControl { reason: error.to_string(), scope: None };
        let memory = self.memory.clone().and_then(|within| {
            Group::create(&self, random, Some(TRIED_BYTES), false)
                .and_then(Group::remove)
                .map(|()| within)
                .map_err(refused)
        });
        let device = self.device.clone().and_then(|within| {
            Group::create(&self, random, None, true).and_then(Group::remove).map(|()| within).map_err(refused)
        });
        Self { memory, device, ..self }
    }

    /// Parent group for memory limits.
    pub fn memory(&self) -> Result<&ParentGroup, &NoControl> {
        self.memory.as_ref()
    }

    /// The memory limit that this process is under, if that is below the machine's memory.
    pub fn own_limit(&self) -> Option<&OwnLimit> {
        self.own_limit.as_ref()
    }

    /// This process's own limit where it stands in for a limit of workers, because none can be set.
    pub fn limit_in_place(&self) -> Option<&OwnLimit> {
        let cannot_be_set = self.memory.as_ref().is_err_and(|refusal| refusal.scope.is_none());
        self.own_limit.as_ref().filter(|_| cannot_be_set)
    }

    /// The limit that those of workers cannot exceed: it is above their groups, or in place of
    /// them.
    pub fn limit_above(&self) -> Option<&OwnLimit> {
        let is_above = |own: &&OwnLimit| match &self.memory {
            Ok(within) => within.parent.starts_with(&own.group),
            Err(refusal) => refusal.scope.is_none(),
        };
        self.own_limit.as_ref().filter(is_above)
    }

    /// Parent group for device caps.
    pub fn device(&self) -> Result<&ParentGroup, &NoControl> {
        self.device.as_ref()
    }

    /// The directories that [`Group::create`] may make for this number, the group's own first.
    pub fn group_paths(&self, random: u64, needs_memory: bool, needs_cap: bool) -> Vec<PathBuf> {
        let parents = self.parents(needs_memory, needs_cap);
        let groups = parents.iter().map(|within| group_path(within, random));
        let leaves = parents
            .iter()
            .filter(|within| !within.missing.is_empty())
            .map(|within| leaf_path(within, random));
        distinct(groups.chain(leaves))
    }

    fn parents(&self, needs_memory: bool, needs_cap: bool) -> Vec<&ParentGroup> {
        let memory = self.memory.as_ref().ok().filter(|_| needs_memory);
        let device = self.device.as_ref().ok().filter(|_| needs_cap);
        memory.into_iter().chain(device).collect()
    }
}

/// The limit of a group that is made only as a test.
pub(crate) const TRIED_BYTES: u64 = 64 << 20;

/// The smallest limit with which a worker runs; its buffers are added.
///
/// Measured (Linux 6.18, x86_64, pages of 4 KiB) with the native worker's whole conversation: 128
/// reads of 16 KiB by mmap, pread and io_uring of depth 32, one and two threads, its program
/// evicted first so that its text is charged to the group. Up to 2 MiB it never finished; from 3 to
/// 5 MiB sometimes; with 6 always, but in seconds, because its own text was reclaimed and read
/// again; from 8 in tenths of a second, as without a limit.
pub const LEAST_MEMORY_BYTES: u64 = 8 << 20;

const GROUP_PREFIX: &str = "pagewise-";
const LEAF_PREFIX: &str = "pagewise-leaf-";

fn group_path(within: &ParentGroup, random: u64) -> PathBuf {
    within.parent.join(format!("{GROUP_PREFIX}{random:016x}"))
}

/// The leaf to which the processes of the own group are moved. Its name lists the controllers
/// enabled for it, because they must be disabled with it, possibly by another process.
fn leaf_path(within: &ParentGroup, random: u64) -> PathBuf {
    within.parent.join(format!("{LEAF_PREFIX}{random:016x}.{}", within.missing.join(".")))
}

/// Purpose of a directory of ours, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ours {
    Group,
    /// With the controllers that were enabled for it.
    Leaf(Vec<String>),
}

impl Ours {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let is_random = |text: &str| {
            text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        match name.strip_prefix(LEAF_PREFIX) {
            Some(rest) => {
                let (random, enabled) = rest.split_once('.')?;
                let enabled: Vec<String> = enabled.split('.').map(str::to_string).collect();
                let known = enabled.iter().all(|name| matches!(name.as_str(), "memory" | "io"));
                (is_random(random) && known).then_some(Ours::Leaf(enabled))
            }
            None => is_random(name.strip_prefix(GROUP_PREFIX)?).then_some(Ours::Group),
        }
    }
}

/// Pass a text to every parser here.
#[cfg(test)]
pub(crate) fn read_anything(text: &str) {
    v1::read_anything(text);
    v2::read_anything(text);
}

#[cfg(test)]
mod tests;
