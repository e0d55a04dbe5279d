//! The environment of a run: machine, kernel, filesystem, device.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;
use crate::untrusted::shell_word;

/// The machine, kernel, filesystem and device of a run. `None`: unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Environment {
    /// `uname -n`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// /proc/sys/kernel/random/boot_id, which changes with each start of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// /proc/cmdline: mitigations, isolated CPUs and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_command_line: Option<String>,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -m`.
    pub architecture: String,
    /// CPU model name.
    pub cpu_model: Option<String>,
    /// /sys/devices/system/cpu/vulnerabilities: name and state of each that affects this CPU.
    /// Mitigations change what a system call costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_vulnerabilities: Option<String>,
    /// Variables that reach a worker and change how it loads, allocates or schedules:
    /// `GOMAXPROCS=1; MALLOC_ARENA_MAX=1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<String>,
    /// CPUs that this process may use.
    pub cpus: u32,
    /// Size of a page.
    pub page_bytes: u64,
    /// Memory of the machine.
    pub memory_bytes: Option<Bytes>,
    /// The memory limit that pagewise itself was under, as in a container or a job; `None` without
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<Bytes>,
    /// The container that pagewise itself was in, by its engine; `none` on the machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The wall clock: `synchronised` if a program kept it in step with a reference, or `not
    /// synchronised`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// The most that the wall clock was off when the run began, by the kernel's estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_ns: Option<u64>,
    /// Memory available when the run began.
    pub memory_available_bytes: Option<Bytes>,
    /// The last-level CPU cache.
    pub last_level_cache_bytes: Option<Bytes>,
    /// NUMA nodes with memory.
    pub numa_nodes: Option<u32>,
    /// Hypervisor, from the CPU flags or DMI.
    pub hypervisor: Option<String>,
    /// /sys/kernel/mm/transparent_hugepage/enabled.
    pub transparent_hugepage: Option<String>,
    /// /sys/kernel/mm/lru_gen/enabled.
    pub mglru: Option<String>,
    /// vm.swappiness.
    pub swappiness: Option<u32>,
    /// Frequency governor of CPU 0.
    pub governor: Option<String>,
    /// Filesystem type.
    pub filesystem: String,
    /// Mount options.
    pub mount_options: Option<String>,
    /// Device number of the file's filesystem, `major:minor`.
    pub device_number: String,
    /// Block device of the filesystem, if found.
    pub device: Option<String>,
    /// Model.
    pub device_model: Option<String>,
    /// True if it reports that it rotates.
    pub device_rotational: Option<bool>,
    /// I/O scheduler.
    pub device_scheduler: Option<String>,
    /// Readahead in force for the filesystem.
    pub readahead_bytes: Option<Bytes>,
    /// Alignment that O_DIRECT requires of offsets and memory.
    pub direct_alignment_bytes: Option<u64>,
    /// The most bytes that a write with RWF_ATOMIC puts on the device whole or not at all; 0: none
    /// can. `None`: the kernel does not report it.
    #[serde(default)]
    pub atomic_write_bytes: Option<u64>,
    /// Time that a worker takes on this machine between `go` and its answer, outside the phases it
    /// measures.
    #[serde(default)]
    pub worker_answer_ns: Option<u64>,
    /// Control of the memory limit: the cgroup version and path, or the reason it is unavailable.
    #[serde(default)]
    pub memory_control: Option<String>,
    /// Control of the device cap, or the reason it is unavailable.
    #[serde(default)]
    pub device_control: Option<String>,
    /// Version of pagewise.
    pub pagewise_version: String,
    /// When the run began, seconds since 1970.
    pub started_unix_s: u64,
    /// Peculiarities of the environment that affect results, one sentence each.
    pub warnings: Vec<String>,
}

impl Environment {
    /// Readahead of most machines, in sectors.
    const USUAL_READAHEAD_SECTORS: u32 = 256;
    /// Readahead of most machines, in bytes.
    pub const USUAL_READAHEAD: Bytes = Bytes(512 * Self::USUAL_READAHEAD_SECTORS as u64);

    /// The command that sets the usual readahead; `None` without a device.
    pub fn usual_readahead_command(&self) -> Option<String> {
        let device = shell_word(&format!("/dev/{}", self.device.as_deref()?));
        Some(format!("blockdev --setra {} {device}", Self::USUAL_READAHEAD_SECTORS))
    }

    /// Reason that a run begun in `self` may not be continued in `now`; `None` if it may.
    pub fn difference(&self, now: &Environment) -> Option<String> {
        let pairs = [
            ("kernel", &self.kernel, &now.kernel),
            ("architecture", &self.architecture, &now.architecture),
            ("filesystem", &self.filesystem, &now.filesystem),
            ("device number", &self.device_number, &now.device_number),
            ("pagewise version", &self.pagewise_version, &now.pagewise_version),
        ];
        for (what, then, now) in pairs {
            if then != now {
                return Some(format!("the run was begun with {what} {then}: here it is {now}"));
            }
        }
        let optional = [("CPU", &self.cpu_model, &now.cpu_model), ("device", &self.device, &now.device)];
        for (what, then, now) in optional {
            if then != now {
                let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_string());
                return Some(format!(
                    "the run was begun with {what} {}: here it is {}",
                    text(then),
                    text(now)
                ));
            }
        }
        if self.cpus != now.cpus {
            return Some(format!("the run was begun with {} CPUs: here there are {}", self.cpus, now.cpus));
        }
        let readahead = |environment: &Environment| match environment.readahead_bytes {
            Some(bytes) => bytes.to_string(),
            None => "unknown".to_string(),
        };
        if self.readahead_bytes != now.readahead_bytes {
            return Some(format!(
                "the run was begun with readahead {}: here it is {}",
                readahead(self),
                readahead(now)
            ));
        }
        None
    }
}
