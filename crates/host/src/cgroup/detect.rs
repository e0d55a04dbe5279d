//! Detection of usable cgroups from /proc/self/mountinfo, /proc/self/cgroup and the rights on the
//! groups.

use std::path::{Path, PathBuf};

use pagewise_model::Bytes;
use rustix::fs::Access;
use rustix::io::Errno;

use super::scope::{self, Scope};
use super::{Control, Controller, NoControl, OwnLimit, ParentGroup, Version};
use crate::kernel_files;
use crate::memory::Memory;
use crate::mounts::{self, Mount};

pub(super) fn detect() -> Control {
    let mountinfo = kernel_files::text("/proc/self/mountinfo").unwrap_or_default();
    let own = kernel_files::text("/proc/self/cgroup").unwrap_or_default();
    let survey = Survey {
        mounts: mounts::parse(&mountinfo),
        own: &own,
        scope: Scope::detect(),
        is_scoped: scope::is_marked(),
    };
    let own_limit = survey.own_limit(Memory::read().total_bytes.unwrap_or(u64::MAX));
    Control { own_limit, ..survey.control() }
}

/// The lowest memory limit of a process's groups that can be seen, if it is below the memory of the
/// machine.
pub(super) fn memory_limit_of(process: u32) -> Option<Bytes> {
    let mountinfo = kernel_files::text("/proc/self/mountinfo")?;
    let groups = kernel_files::text(format!("/proc/{process}/cgroup"))?;
    let survey = Survey { mounts: mounts::parse(&mountinfo), own: &groups, scope: None, is_scoped: false };
    survey.own_limit(Memory::read().total_bytes?).map(|limit| limit.bytes)
}

/// Facts that the choice depends on.
pub(super) struct Survey<'a> {
    pub mounts: Vec<Mount>,
    /// /proc/self/cgroup.
    pub own: &'a str,
    pub scope: Option<Scope>,
    /// True if the own group was made for this process.
    pub is_scoped: bool,
}

impl Survey<'_> {
    pub fn control(&self) -> Control {
        let v1 = [Controller::Memory, Controller::Device].map(|controller| self.v1(controller));
        let wanted: Vec<Controller> = [Controller::Memory, Controller::Device]
            .into_iter()
            .zip(&v1)
            .filter_map(|(controller, found)| found.is_none().then_some(controller))
            .collect();
        let mut v2 = self.v2(&wanted);
        let [memory, device] = v1;
        let mut find = |controller, found: Option<Result<ParentGroup, NoControl>>| {
            found.unwrap_or_else(|| {
                let at = wanted.iter().position(|one| *one == controller).expect("wanted what v1 lacks");
                v2[at].take().expect("each is asked for once")
            })
        };
        Control {
            memory: find(Controller::Memory, memory),
            device: find(Controller::Device, device),
            own_limit: None,
        }
    }

    /// The lowest memory limit of the own group and of those above it that can be seen, if it is
    /// below the memory of the machine; that of the nearest of several.
    pub fn own_limit(&self, machine_bytes: u64) -> Option<OwnLimit> {
        let name = Controller::Memory.name(Version::V1);
        let (version, file, mount, own) = match self.v1_own(name) {
            Some(own) => (Version::V1, "memory.limit_in_bytes", self.v1_mount(name)?, own),
            None => (Version::V2, "memory.max", self.v2_mount()?, self.v2_own()?),
        };
        let own = directory(mount, own).ok()?;
        let groups = own.ancestors().take_while(|group| group.starts_with(&mount.mount_point));
        let limits = groups.filter_map(|group| Some((kernel_files::number::<u64>(group.join(file))?, group)));
        let (bytes, group) = limits.min_by_key(|(bytes, _)| *bytes)?;
        let limit = OwnLimit { bytes: Bytes(bytes), group: group.to_path_buf(), version };
        (bytes < machine_bytes).then_some(limit)
    }

    /// The own group in the hierarchy of v1 with this controller: `4:memory:/group`, a line for
    /// each hierarchy, and `0::/group` for v2 (cgroups(7)).
    fn v1_own(&self, name: &str) -> Option<&str> {
        self.own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            fields.next()?.split(',').any(|one| one == name).then(|| fields.next())?
        })
    }

    fn v1_mount(&self, name: &str) -> Option<&Mount> {
        self.mounts.iter().rev().find(|mount| mount.filesystem == "cgroup" && mount.has_option(name))
    }

    fn v2_own(&self) -> Option<&str> {
        self.own.lines().find_map(|line| line.strip_prefix("0::"))
    }

    fn v2_mount(&self) -> Option<&Mount> {
        self.mounts.iter().rev().find(|mount| mount.filesystem == "cgroup2")
    }

    /// `None` if v1 does not have the controller.
    fn v1(&self, controller: Controller) -> Option<Result<ParentGroup, NoControl>> {
        let name = controller.name(Version::V1);
        let own = self.v1_own(name)?;
        let Some(mount) = self.v1_mount(name) else {
            return Some(Err(no(format!("the {name} hierarchy of cgroup v1 is not mounted"))));
        };
        let parent = directory(mount, own).and_then(|parent| {
            writable(&parent, mount, &[])?;
            let mount_point = mount.mount_point.clone();
            Ok(ParentGroup { version: Version::V1, mount_point, parent, missing: Vec::new() })
        });
        // Rights that root lacks are not gained by sudo.
        let hint = if rustix::process::geteuid().is_root() { "" } else { "; run pagewise with sudo" };
        Some(parent.map_err(|reason| no(format!("{reason}{hint}"))))
    }

    /// Return an answer for each of `wanted`. Those that have a parent group have the same one: a
    /// process is in one group of v2.
    fn v2(&self, wanted: &[Controller]) -> Vec<Option<Result<ParentGroup, NoControl>>> {
        let all = |reason: String| wanted.iter().map(|_| Some(Err(no(reason.clone())))).collect();
        let Some(mount) = self.v2_mount() else {
            return all("no cgroup filesystem is mounted that has this controller".to_string());
        };
        let Some(own) = self.v2_own() else {
            return all("/proc/self/cgroup lists no group of cgroup v2".to_string());
        };
        let own = match directory(mount, own) {
            Ok(own) => own,
            Err(reason) => return all(reason),
        };
        let chain: Vec<&Path> =
            own.ancestors().take_while(|group| group.starts_with(&mount.mount_point)).collect();
        let is_delegated = self.is_scoped || is_delegated(&chain);
        let candidates: Vec<Candidate> = if self.scope.is_some() && !is_delegated {
            // Only systemd may write to groups it has not delegated (systemd.io/CGROUP_DELEGATION).
            Vec::new()
        } else {
            let seen =
                chain.iter().filter_map(|group| Candidate::look(group, mount, wanted, is_delegated, &own));
            seen.collect()
        };
        // The first of the best is the nearest.
        let best = candidates
            .iter()
            .rev()
            .max_by_key(|candidate| {
                (candidate.offers.len(), candidate.offers.first() == wanted.first(), candidate.ease)
            })
            .filter(|candidate| !candidate.offers.is_empty());
        let answer = |controller: &Controller| match best {
            Some(best) if best.offers.contains(controller) => Ok(ParentGroup {
                version: Version::V2,
                mount_point: mount.mount_point.clone(),
                parent: best.group.clone(),
                missing: best.missing.clone(),
            }),
            _ => Err(self.why_not_v2(*controller, mount, &own)),
        };
        wanted.iter().map(|controller| Some(answer(controller))).collect()
    }

    fn why_not_v2(&self, controller: Controller, mount: &Mount, own: &Path) -> NoControl {
        let name = controller.name(Version::V2);
        let root = words(&mount.mount_point.join("cgroup.controllers"));
        if !root.iter().any(|word| word == name) {
            let hint = if name == "memory" {
                " (on some boards: cgroup_enable=memory on its command line)"
            } else {
                ""
            };
            return no(format!("the kernel offers no {name} controller in cgroup v2{hint}"));
        }
        let instead = match (&self.scope, rustix::process::geteuid().is_root()) {
            (Some(scope), _) if manager_has(mount, scope, name) => {
                let reason = format!("{} belongs to systemd; run: {}", own.display(), scope.text());
                return NoControl { reason, scope: Some(scope.clone()) };
            }
            (Some(_), _) => {
                return no(format!(
                    "the {name} controller is not delegated to this user's systemd; run pagewise with sudo"
                ));
            }
            (None, true) => "run pagewise in a cgroup that is delegated with it",
            (None, false) => "run pagewise with sudo, or in a cgroup that is delegated to this user with it",
        };
        if !words(&own.join("cgroup.controllers")).iter().any(|word| word == name) {
            return no(format!("the {name} controller is not delegated to {}; {instead}", own.display()));
        }
        match writable(own, mount, &["cgroup.procs", "cgroup.subtree_control"]) {
            Err(reason) => no(format!("{reason}; {instead}")),
            Ok(()) => {
                no(format!("the {name} controller is not available together with the other one; {instead}"))
            }
        }
    }
}

/// A group of v2 below which groups may be made.
struct Candidate {
    group: PathBuf,
    offers: Vec<Controller>,
    missing: Vec<&'static str>,
    /// Rank: the higher, the less must be changed for it.
    ease: u8,
}

impl Candidate {
    fn look(
        group: &Path,
        mount: &Mount,
        wanted: &[Controller],
        is_delegated: bool,
        own: &Path,
    ) -> Option<Self> {
        let available = words(&group.join("cgroup.controllers"));
        let enabled = words(&group.join("cgroup.subtree_control"));
        let has = |words: &[String], controller: &Controller| {
            words.iter().any(|word| word == controller.name(Version::V2))
        };
        // The worker is moved into the group from the own one: that requires the right to write to
        // the processes of their common ancestor, which is `group`.
        writable(group, mount, &["cgroup.procs"]).ok()?;
        let may_enable = writable(group, mount, &["cgroup.subtree_control"]).is_ok();
        // The real root may hold processes and enable controllers; it is the only one without a
        // type.
        let is_root = !group.join("cgroup.type").exists();
        let holds_processes = !words(&group.join("cgroup.procs")).is_empty();
        let can_be_cleared = group == own || is_root || !holds_processes;
        let offers: Vec<Controller> = wanted
            .iter()
            .copied()
            .filter(|controller| {
                has(&enabled, controller) || (may_enable && can_be_cleared && has(&available, controller))
            })
            .collect();
        let mut missing: Vec<&'static str> = offers
            .iter()
            .filter(|controller| !has(&enabled, controller))
            .map(|controller| controller.name(Version::V2))
            .collect();
        missing.sort_unstable();
        let ease = match (missing.is_empty(), group == own) {
            // A delegated group is ours; its siblings may belong to others.
            (_, true) if is_delegated => 3,
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        };
        Some(Self { group: group.to_path_buf(), offers, missing, ease })
    }
}

/// True if systemd has delegated the own group, or one above it in the same unit.
fn is_delegated(chain: &[&Path]) -> bool {
    let is_unit = |group: &Path| {
        let name = group.file_name().unwrap_or_default().to_string_lossy();
        [".scope", ".service", ".slice"].iter().any(|ending| name.ends_with(ending))
    };
    let marked = |group: &Path| {
        ["user.delegate", "trusted.delegate"].iter().any(|name| {
            let mut value = [0u8; 8];
            rustix::fs::getxattr(group, *name, &mut value[..]).is_ok_and(|len| value[..len].starts_with(b"1"))
        })
    };
    let unit = chain.iter().position(|group| is_unit(group)).unwrap_or(0);
    chain[..=unit.min(chain.len() - 1)].iter().any(|group| marked(group))
}

/// True if the manager that would make the scope has the controller to pass on; also if that cannot
/// be determined.
fn manager_has(mount: &Mount, scope: &Scope, name: &str) -> bool {
    let user = rustix::process::getuid().as_raw();
    let manager = format!("user.slice/user-{user}.slice/user@{user}.service/cgroup.controllers");
    let controllers = words(&mount.mount_point.join(manager));
    !scope.of_user() || controllers.is_empty() || controllers.iter().any(|word| word == name)
}

/// The directory of a group, given in the form of /proc/self/cgroup.
fn directory(mount: &Mount, group: &str) -> Result<PathBuf, String> {
    // Through a bind mount, as in containers, only the part below its root is visible.
    let hidden = || {
        format!(
            "the own cgroup {group} is outside of the hierarchy mounted at {}",
            mount.mount_point.display()
        )
    };
    let inside = Path::new(group).strip_prefix(&mount.root).map_err(|_| hidden())?;
    if inside.components().any(|part| part == std::path::Component::ParentDir) {
        return Err(hidden());
    }
    let directory = mount.mount_point.join(inside);
    // `join` with an empty path leaves a slash at the end.
    let directory: PathBuf = directory.components().collect();
    if directory.is_dir() { Ok(directory) } else { Err(hidden()) }
}

/// Check that groups can be made there, and that these files can be written.
fn writable(group: &Path, mount: &Mount, files: &[&str]) -> Result<(), String> {
    let read_only = || format!("{} is mounted read-only", mount.mount_point.display());
    if mount.has_option("ro") {
        return Err(read_only());
    }
    let paths = std::iter::once(group.to_path_buf()).chain(files.iter().map(|file| group.join(file)));
    for path in paths {
        // access(2) checks the real user; the effective one is needed.
        let flags = rustix::fs::AtFlags::EACCESS;
        match rustix::fs::accessat(rustix::fs::CWD, &path, Access::WRITE_OK, flags) {
            Ok(()) => {}
            Err(Errno::ROFS) => return Err(read_only()),
            Err(errno) => return Err(format!("no right to write to {}: {errno}", path.display())),
        }
    }
    Ok(())
}

fn words(path: &Path) -> Vec<String> {
    kernel_files::text(path).unwrap_or_default().split_whitespace().map(str::to_string).collect()
}

fn no(reason: String) -> NoControl {
    NoControl { reason, scope: None }
}
