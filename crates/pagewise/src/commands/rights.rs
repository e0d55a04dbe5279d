//! Rights that a plan needs, looked for before anything is written.

use anyhow::{Result, anyhow};
use pagewise_host::cgroup::{Control, NoControl};
use pagewise_model::{HostSettings, Plan, Role};

use crate::exit::Exit;

/// Refuse a plan of which nothing could be measured without a limit or a cap that cannot be set here. Cells that need
/// none can do without: then the others are unavailable.
pub(super) fn ensure_settable(plan: &Plan, control: &Control) -> Result<()> {
    let all_need = |needs: fn(&HostSettings) -> bool| {
        let mut measured = plan.cells.iter().filter(|cell| cell.role == Role::Measured);
        measured.all(|cell| needs(&cell.conditions.host_settings))
    };
    let refusals = [
        (
            "a memory limit",
            control.memory().err(),
            all_need(|settings| settings.memory_limit_bytes.is_some()),
        ),
        ("a device cap", control.device().err(), all_need(|settings| settings.device_cap.is_some())),
    ];
    for (what, refusal, is_needed) in refusals {
        if let (Some(refusal), true) = (refusal, is_needed) {
            let reason = anyhow!("{} needs {what}: {}", plan.question, ways(refusal));
            return Err(Exit::NotMeasurable.because(reason));
        }
    }
    Ok(())
}

/// Reason that there is no limit here, and the ways to get one.
pub(super) fn ways(refusal: &NoControl) -> String {
    let sudo = if rustix::process::geteuid().is_root() { "" } else { "sudo pagewise …, " };
    format!(
        "{refusal}. One can be set with: {sudo}systemd-run --user --scope -p Delegate=yes pagewise …, a cgroup delegated \
         to this user, or in a container a writable /sys/fs/cgroup (a limit that the container itself has is not used)"
    )
}
