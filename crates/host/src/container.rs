//! The container that this process is in, as far as it shows.

use std::path::Path;

use crate::kernel_files;

/// Namespaces of the machine itself, by the numbers that the kernel gives them at boot
/// (include/linux/proc_ns.h).
const OF_MACHINE: [(&str, &str); 4] = [
    ("cgroup", "cgroup:[4026531835]"),
    ("ipc", "ipc:[4026531839]"),
    ("pid", "pid:[4026531836]"),
    ("uts", "uts:[4026531838]"),
];

/// Parts of the path of a group that an engine makes, with its name.
const GROUPS: [(&str, &str); 4] =
    [("kubepods", "kubernetes"), ("libpod", "podman"), ("docker", "docker"), ("lxc", "lxc")];

/// `kubernetes`, `podman`, `docker`, `lxc`, or `none` if the process is in the namespaces of the
/// machine; `None`: unknown.
pub(crate) fn container() -> Option<&'static str> {
    let namespace = |name: &str| std::fs::read_link(format!("/proc/self/ns/{name}"));
    let is_own =
        |(name, of_machine): &(&str, &str)| namespace(name).is_ok_and(|own| own == Path::new(of_machine));
    let marks = [
        (std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(), "kubernetes"),
        (Path::new("/run/.containerenv").exists(), "podman"),
        (Path::new("/.dockerenv").exists(), "docker"),
    ];
    let groups = kernel_files::text("/proc/self/cgroup").unwrap_or_default();
    known(&groups, OF_MACHINE.iter().all(is_own), &marks)
}

/// A file or a variable may be left over where nothing isolates the process; its groups are not.
fn known(groups: &str, is_on_machine: bool, marks: &[(bool, &'static str)]) -> Option<&'static str> {
    let mark = marks.iter().find(|(is_there, _)| *is_there).map(|(_, name)| *name);
    let group = GROUPS.iter().find(|(part, _)| groups.contains(part)).map(|(_, name)| *name);
    match is_on_machine {
        true => group.or(Some("none")),
        false => mark.or(group),
    }
}

#[cfg(test)]
mod tests {
    use super::known;

    #[test]
    fn a_container_is_known_by_its_group_or_its_mark() {
        let docker = [(false, "kubernetes"), (true, "docker")];
        assert_eq!(known("0::/\n", true, &docker), Some("none"), "a machine made from an image");
        assert_eq!(known("0::/\n", false, &docker), Some("docker"));
        assert_eq!(known("0::/\n", false, &[]), None, "a namespace alone is no container");
        assert_eq!(
            known("4:memory:/docker/5a1f\n", true, &[]),
            Some("docker"),
            "with the machine's namespaces"
        );
        assert_eq!(
            known("0::/kubepods.slice/kubepods-besteffort.slice/cri\n", false, &[]),
            Some("kubernetes")
        );
    }
}
