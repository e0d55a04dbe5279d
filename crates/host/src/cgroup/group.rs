//! The cgroup of one worker: creation, limits, counters, reclaim and removal.

use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagewise_model::{DeviceCap, GroupCounters};

use super::directories::{self, remove_directory};
use super::error::GroupError;
use super::{Control, LEAST_MEMORY_BYTES, NoControl, OwnLimit, ParentGroup, Version, group_path, v1, v2};
use crate::kernel_files::CallError;
use crate::steps::{RunStep, reached};

/// Time that a group may take to become removable after its last process died.
const REMOVABLE_WITHIN: Duration = Duration::from_secs(5);

/// One directory of a group, with its purpose.
#[derive(Debug)]
struct GroupDirectory {
    within: ParentGroup,
    path: PathBuf,
    memory: bool,
    device: bool,
}

/// A group made by this process. Dropping it removes it if nothing runs in it.
#[derive(Debug)]
pub struct Group {
    parts: Vec<GroupDirectory>,
    /// The limit that stands in for that of a group: only looked at.
    in_place: Option<OwnLimit>,
    /// Processes that were killed for it before.
    killed_before: u64,
}

impl Group {
    /// Make a group, limited to `memory_limit` bytes if given, in which devices can be capped if
    /// `needs_cap`.
    ///
    /// `random` names it; the paths are those of [`Control::group_paths`]. On an error nothing is
    /// left.
    pub fn create(
        control: &Control,
        random: u64,
        memory_limit: Option<u64>,
        needs_cap: bool,
    ) -> Result<Self, GroupError> {
        if let Some(limit_bytes) = memory_limit.filter(|bytes| *bytes < LEAST_MEMORY_BYTES) {
            return Err(GroupError::TooLittle { limit_bytes, least_bytes: LEAST_MEMORY_BYTES });
        }
        let in_place = control.limit_in_place().filter(|own| memory_limit == Some(own.bytes.0)).cloned();
        let memory_limit = memory_limit.filter(|_| in_place.is_none());
        let memory = memory_limit.map(|_| control.memory.clone()).transpose()?;
        let device = needs_cap.then(|| control.device.clone()).transpose()?;
        let mut group = Self { parts: Vec::new(), in_place, killed_before: 0 };
        group.killed_before = group.counters(None).memory_kills.unwrap_or(0);
        for (within, is_memory) in
            memory.map(|within| (within, true)).into_iter().chain(device.map(|within| (within, false)))
        {
            let path = group_path(&within, random);
            // v2, or two controllers of v1 that are mounted together.
            if let Some(part) = group.parts.iter_mut().find(|part| part.path == path) {
                part.device = true;
                continue;
            }
            if within.version == Version::V2 {
                v2::enable(&within, random)?;
            }
            if let Err(error) = fs::create_dir(&path) {
                // The leaf, if one was made for it.
                let _ = directories::leave_leaves(&within.parent);
                return Err(CallError::at("mkdir", &path)(error).into());
            }
            group.parts.push(GroupDirectory { within, path, memory: is_memory, device: !is_memory });
            reached(RunStep::GroupBegun);
        }
        if let (Some(limit_bytes), Some(part)) = (memory_limit, group.memory()) {
            match part.within.version {
                Version::V1 => v1::set_memory_limit(&part.path, limit_bytes)?,
                Version::V2 => v2::set_memory_limit(&part.path, limit_bytes, &part.within.mount_point)?,
            }
        }
        reached(RunStep::GroupMade);
        Ok(group)
    }

    /// The directories.
    pub fn paths(&self) -> Vec<&Path> {
        self.parts.iter().map(|part| part.path.as_path()).collect()
    }

    /// The `cgroup.procs` files, for a child to join by writing `0` ([`pagewise_sys::Spawn`]).
    pub fn entry(&self) -> Result<Vec<OwnedFd>, GroupError> {
        let open = |part: &GroupDirectory| {
            let path = part.path.join("cgroup.procs");
            let opened = OpenOptions::new().write(true).open(&path).map_err(CallError::at("open", path))?;
            Ok(OwnedFd::from(opened))
        };
        self.parts.iter().map(open).collect()
    }

    /// Cap the rate at which the device with this number ([`crate::BlockDevice::number`]) delivers
    /// to the group, and read it back.
    pub fn set_device_cap(&self, device: (u32, u32), cap: &DeviceCap) -> Result<(), GroupError> {
        self.cap(device, Some(cap))
    }

    /// Remove the cap.
    pub fn clear_device_cap(&self, device: (u32, u32)) -> Result<(), GroupError> {
        self.cap(device, None)
    }

    fn cap(&self, device: (u32, u32), cap: Option<&DeviceCap>) -> Result<(), GroupError> {
        let Some(part) = self.parts.iter().find(|part| part.device) else {
            let reason = "the group was made without caps".to_string();
            return Err(NoControl { reason, scope: None }.into());
        };
        let wanted = cap.copied().unwrap_or(DeviceCap { read_iops: None, read_bytes_per_second: None });
        match part.within.version {
            Version::V1 => v1::set_cap(&part.path, device, &wanted),
            Version::V2 => v2::set_cap(&part.path, device, &wanted),
        }
    }

    /// Return the kernel's counters of the group; including those of the device with this number,
    /// if given.
    pub fn counters(&self, device: Option<(u32, u32)>) -> GroupCounters {
        let parts = self.parts.iter().map(|part| part.within.version);
        let Some(version) = self.in_place.iter().map(|own| own.version).chain(parts).next() else {
            return GroupCounters::default();
        };
        let mut counters = GroupCounters { version: version.to_string(), ..GroupCounters::default() };
        for part in &self.parts {
            match part.within.version {
                Version::V1 => {
                    if part.memory {
                        v1::read_memory(&part.path, &mut counters);
                    }
                    if let Some(device) = device.filter(|_| part.device) {
                        v1::read_device(&part.path, device, &mut counters);
                    }
                }
                // The other controller may be enabled as well, for any reason: its counters are
                // used then.
                Version::V2 => {
                    v2::read_memory(&part.path, &mut counters);
                    if let Some(device) = device {
                        v2::read_device(&part.path, device, &mut counters);
                    }
                }
            }
        }
        match &self.in_place {
            Some(OwnLimit { group, version: Version::V1, .. }) => v1::read_memory(group, &mut counters),
            Some(OwnLimit { group, version: Version::V2, .. }) => v2::read_memory(group, &mut counters),
            None => {}
        }
        counters.memory_kills = counters.memory_kills.map(|kills| kills.saturating_sub(self.killed_before));
        counters
    }

    /// Make the kernel reclaim the memory charged to it: page cache, including that of mapped
    /// files. Return the remaining bytes; `None` if the group has no memory limit.
    pub fn empty(&self) -> Result<Option<u64>, GroupError> {
        self.memory().map(|part| empty(part.within.version, &part.path)).transpose().map(Option::flatten)
    }

    /// The processes in it.
    pub fn processes(&self) -> Result<Vec<u32>, GroupError> {
        let mut all = Vec::new();
        for part in &self.parts {
            all.extend(directories::processes(&part.path)?);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// Kill its processes.
    pub fn kill(&self) -> Result<(), GroupError> {
        self.parts.iter().try_for_each(|part| directories::kill(&part.path))
    }

    /// Empty and remove it. Processes are not killed: any that stay in it are an error after a
    /// while.
    pub fn remove(mut self) -> Result<(), GroupError> {
        // Cache that stays charged would be charged to the parent.
        self.empty()?;
        self.remove_within(REMOVABLE_WITHIN)
    }

    fn remove_within(&mut self, patience: Duration) -> Result<(), GroupError> {
        let deadline = Instant::now() + patience;
        while let Some(part) = self.parts.last() {
            remove_directory(&part.path, deadline)?;
            let within = self.parts.pop().expect("seen above").within;
            if within.version == Version::V2 {
                directories::leave_leaves(&within.parent)?;
            }
        }
        Ok(())
    }

    fn memory(&self) -> Option<&GroupDirectory> {
        self.parts.iter().find(|part| part.memory)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The error cannot be reported from here; the journal still has the paths.
        let _ = self.remove_within(Duration::ZERO);
    }
}

/// Empty the group of this directory.
pub(super) fn empty(version: Version, path: &Path) -> Result<Option<u64>, GroupError> {
    match version {
        Version::V1 => v1::empty(path),
        Version::V2 => v2::empty(path),
    }
}
