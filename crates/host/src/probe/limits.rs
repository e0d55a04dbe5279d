//! Probes of limits and settings: memory, devices, readahead, placement, dropping the page cache of
//! the machine.

use std::fs;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

use pagewise_model::{DeviceCap, Numa};
use rustix::fs::{Access, AtFlags, MemfdFlags};

use super::{Capability, FILE_BYTES};
use crate::cgroup::{self, Control, Group, ParentGroup};
use crate::device::BlockDevice;
use crate::placement;
use crate::settings::{self, HostSetting, SettingFile};

/// The number of a group made by a probe: these upper 16 bits, a count, and the process id in the
/// lower 32.
const PROBE_NUMBER: u64 = 0xd0c7 << 48;
/// No device delivers this many reads, so the cap has no effect.
const PROBE_READ_IOPS: u64 = 1_000_000_000;

/// A group with a memory limit, read back and removed.
pub fn probe_memory_limit() -> Capability {
    Capability::tried("memory limit", memory_limit(own_number()))
}

fn memory_limit(number: u64) -> Result<String, String> {
    let control = Control::detect();
    let in_place = || control.limit_in_place().map_or_else(String::new, |own| format!("; in place is {own}"));
    let within = control.memory().map_err(|reason| format!("{reason}{}", in_place()))?;
    sweep_dead_probes(within);
    // Creating it reads the limit back.
    let tried = Group::create(&control, number, Some(cgroup::TRIED_BYTES), false).and_then(Group::remove);
    tried.map(|()| where_below(within)).map_err(|error| error.to_string())
}

/// A group with a cap on the device behind the directory, read back and removed.
pub fn probe_device_cap(directory: &Path) -> Capability {
    Capability::tried("device cap", device_cap(directory, own_number()))
}

fn device_cap(directory: &Path, number: u64) -> Result<String, String> {
    let device = BlockDevice::behind(directory).map_err(|reason| reason.to_string())?;
    let control = Control::detect();
    let within = control.device().map_err(|reason| reason.to_string())?;
    sweep_dead_probes(within);
    let cap = DeviceCap { read_iops: Some(PROBE_READ_IOPS), read_bytes_per_second: None };
    let tried = Group::create(&control, number, None, true).and_then(|group| {
        group.set_device_cap(device.number(), &cap)?;
        group.clear_device_cap(device.number())?;
        group.remove()
    });
    let detail = |()| format!("{}, {}", where_below(within), device.name);
    tried.map(detail).map_err(|error| error.to_string())
}

fn where_below(within: &ParentGroup) -> String {
    format!("cgroup {}, groups below {}", within.version(), within.parent().display())
}

fn own_number() -> u64 {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    PROBE_NUMBER | u64::from(count) << 32 | u64::from(std::process::id())
}

/// A probe has no journal; a killed one leaves a group whose name contains the process id.
fn sweep_dead_probes(within: &ParentGroup) {
    for entry in fs::read_dir(within.parent()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix("pagewise-"))
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        if let Some(number) = number.filter(|number| number >> 48 == PROBE_NUMBER >> 48) {
            let process = number & u64::from(u32::MAX);
            if !Path::new(&format!("/proc/{process}")).exists() {
                // A group that cannot be removed shows when the probe makes its own.
                let _ = cgroup::sweep(&entry.path());
            }
        }
    }
}

/// The settings for the directory, each written with its current value.
pub fn probe_settings(directory: &Path) -> Vec<Capability> {
    let probe = |(setting, file): (&'static dyn HostSetting, Result<SettingFile, String>)| {
        let set = |file: SettingFile| {
            let value = file.read().map_err(|error| error.to_string())?;
            file.set(&value).map_err(|error| error.to_string())?;
            Ok(file.path().display().to_string())
        };
        Capability::tried(setting.title(), file.and_then(set))
    };
    settings::for_path(directory).map(probe).collect()
}

/// Memory placed on another NUMA node, and found there.
pub fn probe_numa() -> Capability {
    Capability::tried("NUMA placement", try_numa())
}

fn try_numa() -> Result<String, String> {
    let plan = placement::resolve(Numa::Other, None)?;
    let memory = rustix::fs::memfd_create("pagewise-probe", MemfdFlags::CLOEXEC)
        .map_err(|errno| format!("memfd_create: {errno}"))?;
    let mut file = File::from(memory);
    file.write_all(&[1; FILE_BYTES]).map_err(|error| format!("write: {error}"))?;
    let len = FILE_BYTES as u64;
    placement::place_pages(&file, len, plan.page_node).map_err(|error| format!("mbind: {error}"))?;
    let share = placement::pages_on_node(&file, len, plan.page_node)
        .map_err(|error| format!("move_pages: {error}"))?;
    if share.looked_at == 0 || share.on_node < share.looked_at {
        return Err(format!("{} of {} pages are on the requested node", share.on_node, share.looked_at));
    }
    placement::describe()
}

/// Permission to drop the page cache of the machine. Not tried: it slows down the whole machine.
pub fn probe_drop_caches() -> Capability {
    let name = "dropping all caches";
    let path = "/proc/sys/vm/drop_caches";
    match rustix::fs::accessat(rustix::fs::CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => Capability::available(name, "only on request"),
        Err(errno) => Capability::unavailable(name, format!("{path}: {errno}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_was_killed_is_swept_by_the_next() {
        let control = Control::detect();
        let Ok(within) = control.memory() else {
            println!("skipped: cgroup: {}", control.memory().expect_err("seen above"));
            return;
        };
        // A process id that Linux never assigns.
        let dead = PROBE_NUMBER | 0xffff_fff0;
        let paths = control.group_paths(dead, true, false);
        std::mem::forget(Group::create(&control, dead, Some(64 << 20), false).expect("group"));
        assert!(paths[0].exists());
        sweep_dead_probes(within);
        assert!(paths.iter().all(|path| !path.exists()), "{paths:?}");
    }

    #[test]
    fn probes_of_limits_leave_nothing() {
        let before = settings::Readahead::of(Path::new(".")).ok().and_then(|readahead| readahead.read().ok());
        let number = own_number();
        let limit = Capability::tried("memory limit", memory_limit(number));
        let cap = Capability::tried("device cap", device_cap(Path::new("."), number));
        let others = [limit, cap, probe_numa(), probe_drop_caches()];
        for capability in probe_settings(Path::new(".")).into_iter().chain(others) {
            println!("{capability}");
            assert!(capability.reason() != Some(""), "{capability:?}");
        }
        assert!(Control::detect().group_paths(number, true, true).iter().all(|path| !path.exists()));
        let after = settings::Readahead::of(Path::new(".")).ok().and_then(|readahead| readahead.read().ok());
        assert_eq!(before, after);
        let none = probe_device_cap(Path::new("/proc"));
        assert_eq!(none.reason(), Some("proc is generated by the kernel"));
    }
}
