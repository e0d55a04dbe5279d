//! The container that this process is in, as far as it shows.

use std::path::Path;

use crate::kernel_files;

/// Namespaces of the machine itself, by the numbers that the kernel gives them at boot
/// (include/linux/proc_ns.h).
const OF_MACHINE: [(&str, &str); 4] = [
    ("cgroup", "cgroup:[4026531835]"),
    ("ipc", "ipc:[4026531839]"),
    ("uts", "uts:[4026531838]"),
    ("pid", "pid:[4026531836]"),
];

/// Parts of the path of a group that an engine makes, with its name.
const GROUPS: [(&str, &str); 4] =
    [("kubepods", "kubernetes"), ("libpod", "podman"), ("/docker", "docker"), ("/lxc", "lxc")];

/// `kubernetes`, `podman`, `docker`, `lxc`, or `none` if the process is in the namespaces of the
/// machine; `None`: unknown.
pub(crate) fn container() -> Option<&'static str> {
    let is_of_machine = |(name, of_machine): (&str, &str)| {
        let own = std::fs::read_link(format!("/proc/self/ns/{name}"));
        own.is_ok_and(|own| own == Path::new(of_machine))
    };
    let marks = [
        (std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(), "kubernetes"),
        (Path::new("/run/.containerenv").exists(), "podman"),
        (Path::new("/.dockerenv").exists(), "docker"),
    ];
    let groups = kernel_files::text("/proc/self/cgroup").unwrap_or_default();
    known(&groups, OF_MACHINE.map(is_of_machine), &marks)
}

/// A file or a variable may be left over on a machine that was made from an image, so it counts
/// where processes are isolated; groups are never left over.
fn known(
    groups: &str,
    [is_of_machine @ .., has_all_processes]: [bool; 4],
    marks: &[(bool, &'static str)],
) -> Option<&'static str> {
    let mark = marks.iter().find(|(is_there, _)| *is_there).map(|(_, name)| *name);
    let group = GROUPS.iter().find(|(part, _)| groups.contains(part)).map(|(_, name)| *name);
    match has_all_processes {
        false => mark.or(group),
        true => group.or(is_of_machine.iter().all(|is_of_machine| *is_of_machine).then_some("none")),
    }
}

#[cfg(test)]
mod tests {
    use super::known;

    #[test]
    fn a_container_is_known_by_its_group_or_its_mark() {
        let docker = [(false, "kubernetes"), (true, "docker")];
        let (machine, host_named, isolated) = ([true; 4], [true, true, false, true], [false; 4]);
        assert_eq!(known("0::/\n", machine, &docker), Some("none"), "a machine made from an image");
        assert_eq!(known("0::/\n", host_named, &docker), None, "a namespace alone is no container");
        assert_eq!(known("0::/\n", isolated, &docker), Some("docker"));
        assert_eq!(known("0::/\n", isolated, &[]), None);
        assert_eq!(known("4:memory:/docker/5a1f\n", machine, &[]), Some("docker"), "with its namespaces");
        let pod = "0::/kubepods.slice/kubepods-besteffort.slice/cri\n";
        assert_eq!(known(pod, isolated, &[]), Some("kubernetes"));
    }
}
