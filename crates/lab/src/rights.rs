//! Rights that a plan needs, looked for before anything is written.

use std::fmt::Display;
use std::path::Path;

use anyhow::{Result, anyhow, ensure};
use pagewise_host::cgroup::{Control, NoControl, OwnLimit};
use pagewise_host::settings::SettingGuard;
use pagewise_model::{HostSettings, Plan, Role};
use pagewise_report::curves_door;

use crate::begin::enter_scope;
use crate::descriptors::ensure_descriptors;
use crate::exit::Exit;

/// Refuse a search that would end with its grid.
fn ensure_searchable(plan: &Plan) -> Result<()> {
    ensure!(
        plan.search.is_none() || curves_door::is_offered(),
        "{} looks for crossings, which this build of pagewise cannot: it is without the extra curves",
        plan.question
    );
    Ok(())
}

/// Refuse a plan of which nothing could be measured without a limit, a cap or a setting of the
/// kernel that cannot be set here, or whose search would end with its grid. Cells that need none
/// can do without: then the others are unavailable. A run enters a scope of systemd if only that
/// gives the right; a dry run takes for granted that it could.
pub fn ensure_settable(plan: &Plan, control: &Control, dry_run: bool) -> Result<()> {
    if !dry_run {
        enter_scope(plan, control);
    }
    ensure_descriptors(plan)?;
    ensure_searchable(plan)?;
    let refused = |what: &str, why: &dyn Display| {
        Err(Exit::NotMeasurable.because(anyhow!("{} needs {what}: {why}", plan.question)))
    };
    let measured = || {
        let cells = plan.cells.iter().filter(|cell| cell.role == Role::Measured);
        cells.map(|cell| &cell.conditions.host_settings)
    };
    let above = control
        .limit_above()
        .filter(|own| measured().all(|all| all.memory_limit_bytes.is_some_and(|limit| limit > own.bytes)));
    if let Some(own) = above {
        return refused("a smaller memory limit", &format!("this process has one of its own, {own}"));
    }
    let in_place = control.limit_in_place().map(|own| own.bytes);
    let needs_group =
        |all: &HostSettings| all.memory_limit_bytes.is_some_and(|limit| Some(limit) != in_place);
    let limits = [
        ("a memory limit", control.memory().err(), measured().all(needs_group), control.limit_in_place()),
        ("a device cap", control.device().err(), measured().all(|all| all.device_cap.is_some()), None),
    ];
    for (what, refusal, is_needed, in_place) in limits {
        let refusal = refusal.filter(|refusal| is_needed && !(dry_run && refusal.scope.is_some()));
        if let Some(refusal) = refusal {
            return refused(what, &ways(refusal, in_place));
        }
    }
    let settings = SettingGuard::all(Path::new(plan.source.path()), |_| false);
    let refusal = |all: &HostSettings| {
        let of = |name: &str| settings.iter().find(|setting| setting.name() == name);
        all.kernel.wanted().into_iter().find_map(|(name, wanted)| of(name)?.check(&wanted?).err())
    };
    match measured().map(refusal).collect::<Option<Vec<_>>>().as_deref() {
        Some([why, ..]) => refused("a setting of the kernel", why),
        _ => Ok(()),
    }
}

/// Reason that there is no limit here, and the ways to get one; the one in place, if there is one.
pub fn ways(refusal: &NoControl, in_place: Option<&OwnLimit>) -> String {
    let own = in_place.map_or_else(String::new, |own| {
        format!("; or use the limit that this process has itself, {own}: --memory {}", own.bytes)
    });
    let sudo = if rustix::process::geteuid().is_root() { "" } else { "sudo pagewise …, " };
    format!(
        "{refusal}. One can be set with: {sudo}systemd-run --user --scope -p Delegate=yes pagewise …, a cgroup delegated \
         to this user, or in a container a writable /sys/fs/cgroup{own}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::plan::CliffSearch;

    #[test]
    fn a_search_is_refused_where_nothing_goes_on_with_it() {
        let plan = Plan { question: "cliff".into(), ..Plan::of(Vec::new()) };
        assert!(ensure_searchable(&plan).is_ok());
        let search = Some(CliffSearch { tolerance_thousandths: 50, prefetch_windows: Vec::new() });
        let refused =
            ensure_searchable(&Plan { search, ..plan }).expect_err("no door is offered in these tests");
        assert!(refused.to_string().starts_with("cliff looks for crossings, which this build"), "{refused}");
    }
}
