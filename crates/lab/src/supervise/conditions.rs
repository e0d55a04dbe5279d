//! Host settings of a sample: each is applied here, read back here, and undone when its guard is
//! dropped. A change that outlives the process is recorded first, in the journal or in the record
//! of settings.
//!
//! | setting | set | read back | undone |
//! | --- | --- | --- | --- |
//! | of the kernel ([`KernelSetter`]) | before a sample, if it is another than the last one's | in each sample | after the run, or by the next start |
//! | memory limit | with the group of the worker | by the counters of the group | with the group, after the sample |
//! | device cap | in that group, once the cache is warm | likewise | likewise |
//! | CPUs | before the worker's first instruction | by its status | the worker ends |
//! | node of the pages | before the worker | page by page | the next state of the cache |
//!
//! A setting of the kernel has a record of its original value. Groups, processes and page caches
//! need none: their settings end with them.

use std::path::Path;
use std::process::Command;

use pagewise_host::BlockDevice;
use pagewise_host::cgroup::{Control, Group, GroupError};
use pagewise_host::placement::{self, PlacementPlan};
use pagewise_host::steps::{RunStep, reached};
use pagewise_model::random::Random;
use pagewise_model::sample::Placement;
use pagewise_model::{Failure, FailureKind, GroupCounters, HostSettings, Plan};
use pagewise_sys::{CpuMask, Spawn};

use super::files::{Input, NoState};
use super::kernel_settings::KernelSetter;
use crate::state::State;

/// Applies the host settings of the samples of a run.
pub struct ConditionSetter {
    control: Control,
    settings: KernelSetter,
    device: Option<BlockDevice>,
    names: Random,
    /// Environment variable that marks the processes of the run, once one has started.
    mark: Option<(&'static str, String)>,
}

/// Host settings of one sample; dropping it undoes them.
pub struct ConditionGuard {
    /// The worker's group.
    group: Option<Group>,
    /// Nodes of worker and pages.
    placement: Option<PlacementPlan>,
    host_settings: HostSettings,
    device: Option<(u32, u32)>,
    cpus: Option<CpuMask>,
    mark: Option<(&'static str, String)>,
}

/// The host settings of a sample, and how they are set.
#[derive(Clone, Copy)]
pub struct InForce<'a> {
    /// The settings of the sample.
    pub guard: &'a ConditionGuard,
    /// The setter of the run.
    pub setter: &'a ConditionSetter,
    /// True if the device is capped only once the cache is warm.
    pub warmed_first: bool,
}

impl InForce<'_> {
    /// Cap the device as the cell requests.
    pub fn cap_device(&self) -> Result<(), NoState> {
        self.setter.cap_device(self.guard)
    }
}

pub(super) fn setting_mismatch(detail: String) -> NoState {
    NoState::Failed(Failure { kind: FailureKind::SettingMismatch, detail })
}

impl ConditionSetter {
    /// Settings for the samples of `plan` on the file at `path`.
    pub fn new(plan: &Plan, path: &Path, device: Option<BlockDevice>, random: u64) -> Self {
        Self {
            control: Control::detect(),
            settings: KernelSetter::new(path, plan),
            device,
            names: Random::for_purpose(random, "names of groups"),
            mark: None,
        }
    }

    /// Apply the settings of one sample, except for the device cap
    /// ([`ConditionSetter::cap_device`]).
    pub fn apply(
        &mut self,
        host_settings: &HostSettings,
        journal: &mut State,
    ) -> Result<ConditionGuard, NoState> {
        let device = self.device.as_ref().map(BlockDevice::number);
        if self.mark.is_none() {
            let mark = journal.announce_processes(self.names.next_u64());
            self.mark = Some(mark.map_err(|error| setting_mismatch(format!("{error:#}")))?);
        }
        let mut guard = ConditionGuard {
            host_settings: host_settings.clone(),
            device,
            group: None,
            placement: None,
            cpus: None,
            mark: self.mark.clone(),
        };
        if let Some(numa) = host_settings.numa {
            let plan = placement::resolve(numa, host_settings.cpus.as_ref())
                .map_err(|reason| NoState::Unavailable(reason.to_string()))?;
            guard.cpus = Some(CpuMask::new(plan.worker_cpus.numbers()));
            guard.placement = Some(plan);
        } else if let Some(cpus) = &host_settings.cpus {
            placement::check_cpus(cpus).map_err(NoState::Unavailable)?;
            guard.cpus = Some(CpuMask::new(cpus.numbers()));
        }
        self.settings.set(host_settings)?;
        if host_settings.needs_group() {
            guard.group = Some(self.make_group(host_settings, journal)?);
        }
        Ok(guard)
    }

    fn make_group(&mut self, host_settings: &HostSettings, journal: &mut State) -> Result<Group, NoState> {
        let limit = host_settings.memory_limit_bytes.map(|limit| limit.0);
        let capped = host_settings.device_cap.is_some();
        let name = self.names.next_u64();
        let unavailable = |error: GroupError| NoState::Unavailable(error.to_string());
        let paths = self.control.group_paths(name, limit.is_some(), capped);
        journal.announce_groups(&paths).map_err(|error| setting_mismatch(format!("{error:#}")))?;
        Group::create(&self.control, name, limit, capped).map_err(unavailable)
    }

    /// Settings of the kernel.
    pub fn settings(&self) -> &KernelSetter {
        &self.settings
    }

    /// Cap the device as the cell requests.
    pub fn cap_device(&self, guard: &ConditionGuard) -> Result<(), NoState> {
        let (Some(cap), Some(group)) = (&guard.host_settings.device_cap, &guard.group) else { return Ok(()) };
        let Some(device) = &self.device else {
            return Err(NoState::Unavailable(format!(
                "the cap {cap} needs a block device, and none was found"
            )));
        };
        group
            .set_device_cap(device.number(), cap)
            .map_err(|error| NoState::Unavailable(format!("the device cannot be capped: {error}")))?;
        reached(RunStep::DeviceCapped);
        Ok(())
    }
}

impl ConditionGuard {
    /// Prepare `command` to start in the group and on the CPUs.
    pub fn prepare<'a>(&self, command: &'a mut Command) -> std::io::Result<&'a mut Command> {
        let join = match &self.group {
            Some(group) => group.entry().map_err(std::io::Error::other)?,
            None => Vec::new(),
        };
        command.envs(self.mark.clone());
        Ok(Spawn { die_with_parent: true, join, cpus: self.cpus.clone(), open_files: None }.apply(command))
    }

    /// Move the pages of the span to the requested node.
    pub fn place_pages(&self, input: &Input, span_bytes: u64) -> Result<(), NoState> {
        let Some(plan) = &self.placement else { return Ok(()) };
        if input.is_several() {
            return Err(NoState::Unavailable(
                "pages of several files are not put on a node: replay the reads of one with --file"
                    .to_string(),
            ));
        }
        if input.new_file().is_some() && input.in_memory().is_none() {
            return Err(NoState::Unavailable(
                "where the pages of a new file come to lie can be said on a tmpfs only; use --dir /dev/shm"
                    .to_string(),
            ));
        }
        placement::place_pages(input.file(), span_bytes, plan.page_node).map_err(|error| {
            NoState::Unavailable(format!("pages cannot be put on node {}: {error}", plan.page_node))
        })
    }

    /// Actual nodes of pages and worker.
    pub fn placed(&self, input: &Input, span_bytes: u64) -> Option<Placement> {
        let plan = self.placement.as_ref()?;
        let seen = placement::pages_on_node(input.file(), span_bytes, plan.page_node).ok();
        Some(Placement {
            worker_node: plan.worker_node,
            page_node: plan.page_node,
            pages: seen.map_or(0, |share| share.looked_at),
            pages_on_node: seen.map_or(0, |share| share.on_node),
        })
    }

    /// Counters of the group.
    pub fn counters(&self) -> Option<GroupCounters> {
        self.group.as_ref().map(|group| group.counters(self.device))
    }

    /// The reason that the worker was killed, if it was for the memory limit.
    pub fn killed_for_memory(&self) -> Option<String> {
        let limit = self.host_settings.memory_limit_bytes?;
        let kills = self.counters()?.memory_kills?;
        (kills > 0).then(|| {
            format!(
                "killed for memory: what cannot be dropped (its own memory, locked pages, files in memory) does not fit under \
                 its limit of {limit}"
            )
        })
    }
}

impl Drop for ConditionGuard {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            // The worker has ended, but its processes would keep the group. The journal lists what
            // remains, for the sweep at the end of the run.
            let _ = group.kill();
            let _ = group.remove();
        }
    }
}
