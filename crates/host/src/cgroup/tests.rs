//! Groups that are really made, if permitted, and the names of those that may be swept.

use std::fs::{self, File};
use std::io::Read;
use std::process::{Child, Command, Stdio};

use pagewise_model::{Bytes, DeviceCap};
use pagewise_sys::Spawn;

use super::detect::Survey;
use super::*;
use crate::BlockDevice;
use crate::kernel_files::CallError;
use crate::mounts::Mount;

/// A number that no other test and no run uses.
fn random() -> u64 {
    let mut bytes = [0; 8];
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes)).expect("random bytes");
    u64::from_le_bytes(bytes)
}

/// The available limits, or a message that a test is skipped.
fn with_memory(name: &str) -> Option<Control> {
    let control = Control::detect();
    match control.memory() {
        Ok(_) => Some(control),
        Err(reason) => {
            println!("skipped: cgroup: {name}: {reason}");
            None
        }
    }
}

/// A child that does `script` in the group.
fn spawn(group: &Group, script: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let join = group.entry().expect("entry");
    Spawn { die_with_parent: true, join, ..Spawn::default() }.apply(&mut command).spawn().expect("start")
}

/// Removes the groups that a failing test leaves, with the processes in them. Made before the
/// group, and so dropped after it.
struct Cleared(Vec<PathBuf>);

impl Drop for Cleared {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = sweep(path);
        }
    }
}

/// A group, and its guard.
fn group(control: &Control, limit_bytes: u64) -> (Cleared, Group) {
    let random = random();
    let cleared = Cleared(control.group_paths(random, true, false));
    (cleared, Group::create(control, random, Some(limit_bytes), false).expect("group"))
}

fn gone(paths: &[PathBuf]) -> bool {
    paths.iter().all(|path| !path.exists())
}

#[test]
fn a_child_is_in_its_group_before_it_runs() {
    let Some(control) = with_memory("cgroup-memory") else { return };
    let needs_cap = control.device().is_ok();
    let random = random();
    let paths = control.group_paths(random, true, needs_cap);
    let _cleared = Cleared(paths.clone());
    let limit_bytes = 16 << 20;
    let group = Group::create(&control, random, Some(limit_bytes), needs_cap).expect("group");
    assert!(group.paths().iter().all(|path| paths.iter().any(|named| named == path)), "{paths:?}");
    // The name of the group is in every line of /proc/self/cgroup for one of its parts.
    let output = spawn(&group, "cat /proc/self/cgroup").wait_with_output().expect("end");
    let text = String::from_utf8(output.stdout).expect("text");
    let name = format!("pagewise-{random:016x}");
    assert_eq!(text.matches(&name).count(), group.paths().len(), "{text}");

    // More cache than the limit.
    let directory = tempfile::tempdir_in(".").expect("directory");
    let script = format!("head -c 25165824 /dev/zero > {}", directory.path().join("data").display());
    assert!(spawn(&group, &script).wait().expect("end").success());
    let counters = group.counters(None);
    assert_eq!(counters.limit_bytes, Some(limit_bytes));
    assert!(counters.peak_bytes.is_none_or(|peak| peak > 0 && peak <= limit_bytes), "{counters:?}");
    assert!(counters.usage_bytes.is_some_and(|bytes| bytes <= limit_bytes), "{counters:?}");
    assert!(counters.file_bytes.is_some() && counters.anonymous_bytes.is_some(), "{counters:?}");
    assert!(counters.refaults.is_some() && counters.memory_kills == Some(0), "{counters:?}");
    println!("{counters:?}");
    assert_eq!(group.processes().expect("processes"), Vec::<u32>::new());
    group.remove().expect("remove");
    assert!(gone(&paths), "{paths:?}");
}

#[test]
fn cache_is_charged_to_the_group_and_taken_back() {
    let Some(control) = with_memory("cgroup-memory") else { return };
    let (_cleared, group) = group(&control, 64 << 20);
    let directory = tempfile::tempdir_in(".").expect("directory");
    let path = directory.path().join("data");
    let script = format!("head -c 8388608 /dev/zero > {0}; sync; cat {0} > /dev/null", path.display());
    assert!(spawn(&group, &script).wait().expect("end").success());
    let counters = group.counters(None);
    assert!(counters.file_bytes.is_some_and(|bytes| bytes >= 8 << 20), "{counters:?}");
    File::open(&path).and_then(|file| file.sync_all()).expect("sync");
    let left = group.empty().expect("empty");
    let counters = group.counters(None);
    assert!(counters.file_bytes.is_some_and(|bytes| bytes < 1 << 20), "{left:?} {counters:?}");
    group.remove().expect("remove");
}

#[test]
fn a_limit_that_leaves_no_way_kills_and_counts() {
    let Some(control) = with_memory("cgroup-memory") else { return };
    let (_cleared, group) = group(&control, LEAST_MEMORY_BYTES);
    // The shell keeps the bytes that it reads, and has no swap to use.
    let status = spawn(&group, "x=$(head -c 60000000 /dev/zero | tr '\\0' x); echo $x").wait().expect("end");
    let kills = group.counters(None).memory_kills;
    // Linux 4.13.
    assert!(kills.is_none_or(|kills| kills > 0), "{kills:?} {status:?}");
    group.remove().expect("remove");
}

#[test]
fn a_limit_that_cannot_hold_is_refused() {
    let Some(control) = with_memory("cgroup-memory") else { return };
    let refused = |control: &Control, limit| Group::create(control, random(), Some(limit), false).map(drop);
    let error = refused(&control, LEAST_MEMORY_BYTES - 1).expect_err("too little");
    assert!(matches!(error, GroupError::TooLittle { least_bytes: LEAST_MEMORY_BYTES, .. }), "{error}");
    // A group below one with less.
    let outer_random = random();
    let outer = Group::create(&control, outer_random, Some(16 << 20), false).expect("group");
    let place = control.memory().expect("seen above");
    let inner = ParentGroup { parent: outer.paths()[0].to_path_buf(), missing: Vec::new(), ..place.clone() };
    if place.version() == Version::V2 {
        let control = outer.paths()[0].join("cgroup.subtree_control");
        fs::write(control, "+memory").expect("enable");
    }
    let below = Control { memory: Ok(inner), ..control.clone() };
    let error = refused(&below, 32 << 20).expect_err("above");
    assert!(matches!(error, GroupError::LowerAbove { above_bytes: 0x100_0000, .. }), "{error}");
    refused(&below, 8 << 20).expect("it fits");
    outer.remove().expect("nothing is left in it");
}

#[test]
fn a_cap_is_set_read_back_and_lifted() {
    let control = Control::detect();
    if let Err(reason) = control.device() {
        println!("skipped: cgroup: {reason}");
        return;
    }
    let device = match BlockDevice::behind(Path::new(".")) {
        Ok(device) => device.number(),
        Err(reason) => {
            println!("skipped: cgroup: {reason}");
            return;
        }
    };
    let random = random();
    let group = Group::create(&control, random, None, true).expect("group");
    let caps = |group: &Group| {
        let counters = group.counters(Some(device));
        assert!(
            counters.device_read_bytes.is_some() && counters.device_read_requests.is_some(),
            "{counters:?}"
        );
        (counters.cap_read_iops, counters.cap_read_bytes_per_second)
    };
    assert_eq!(caps(&group), (Some(UNLIMITED), Some(UNLIMITED)));
    let cap =
        |read_iops, bytes: Option<u64>| DeviceCap { read_iops, read_bytes_per_second: bytes.map(Bytes) };
    group.set_device_cap(device, &cap(Some(2000), Some(50 << 20))).expect("both");
    assert_eq!(caps(&group), (Some(2000), Some(50 << 20)));
    // A cap that was not requested is removed.
    group.set_device_cap(device, &cap(None, Some(22_858_957))).expect("bandwidth");
    assert_eq!(caps(&group), (Some(UNLIMITED), Some(22_858_957)));
    group.clear_device_cap(device).expect("none");
    assert_eq!(caps(&group), (Some(UNLIMITED), Some(UNLIMITED)));
    let error = group.set_device_cap((4095, 7), &cap(Some(1), None)).expect_err("no such device");
    assert!(matches!(error, GroupError::Call(CallError { call: "write", .. })), "{error}");
    let paths = control.group_paths(random, false, true);
    group.remove().expect("remove");
    assert!(gone(&paths));
    if control.memory().is_ok() {
        let group = Group::create(&control, self::random(), Some(16 << 20), false).expect("group");
        if group.paths().len() == 1 && control.memory().is_ok_and(|place| place.version() == Version::V1) {
            assert!(matches!(
                group.set_device_cap(device, &cap(Some(1), None)),
                Err(GroupError::NoControl(_))
            ));
        }
        group.remove().expect("remove");
    }
}

#[test]
fn what_a_killed_run_left_is_swept() {
    let Some(control) = with_memory("cgroup-memory") else { return };
    let needs_cap = control.device().is_ok();
    let random = random();
    let paths = control.group_paths(random, true, needs_cap);
    let _cleared = Cleared(paths.clone());
    let group = Group::create(&control, random, Some(32 << 20), needs_cap).expect("group");
    let mut children = [spawn(&group, "sleep 1000 & sleep 1000; true"), spawn(&group, "sleep 1000")];
    // As after kill -9: it is not removed.
    std::mem::forget(group);
    let swept: Vec<bool> = paths.iter().map(|path| sweep(path).expect("sweep")).collect();
    assert!(swept[0] && gone(&paths), "{swept:?}");
    for child in &mut children {
        assert!(!child.wait().expect("end").success(), "it was not killed");
    }
    // Again: nothing is left to do.
    assert!(paths.iter().all(|path| !sweep(path).expect("sweep")));
}

#[test]
fn a_group_in_use_is_not_removed_unless_it_is_asked_for() {
    let Some(control) = with_memory("cgroup-memory") else { return };
    let (_cleared, used) = group(&control, 32 << 20);
    let path = used.paths()[0].to_path_buf();
    let mut child = spawn(&used, "exec sleep 1000");
    assert_eq!(used.processes().expect("processes"), vec![child.id()]);
    drop(used);
    assert!(path.exists(), "a living child lost its group");
    assert!(sweep(&path).expect("sweep"));
    assert!(!child.wait().expect("end").success());
    let (_cleared, killed) = group(&control, 32 << 20);
    let mut child = spawn(&killed, "exec sleep 1000");
    killed.kill().expect("kill");
    assert!(!child.wait().expect("end").success());
    killed.remove().expect("remove");
}

#[test]
fn nothing_else_is_swept() {
    let directory = tempfile::tempdir().expect("directory");
    let ours = directory.path().join("pagewise-0123456789abcdef");
    fs::create_dir(&ours).expect("directory");
    // The right name on a filesystem other than cgroup.
    assert!(sweep(&ours).is_err() && ours.exists());
    let link = directory.path().join("pagewise-0123456789abcde0");
    std::os::unix::fs::symlink("/sys/fs/cgroup", &link).expect("link");
    assert!(sweep(&link).is_err());
    for name in ["pagewise-", "pagewise-0123456789ABCDEF", "pagewise-0123456789abcdef0", "memory", "", "/"] {
        assert!(sweep(&Path::new("/sys/fs/cgroup").join(name)).is_err(), "{name:?}");
    }
    for name in ["pagewise-leaf-0123456789abcdef", "pagewise-leaf-0123456789abcdef.cpu", "pagewise-leaf-0.io"]
    {
        assert_eq!(Ours::of(Path::new(name)), None, "{name}");
    }
    let enabled = vec!["io".to_string(), "memory".to_string()];
    assert_eq!(Ours::of(Path::new("/x/pagewise-leaf-0123456789abcdef.io.memory")), Some(Ours::Leaf(enabled)));
    assert!(!sweep(Path::new("/sys/fs/cgroup/pagewise-0123456789abcdef")).expect("gone"));
}

#[test]
fn what_was_detected_can_be_done() {
    let random = random();
    let control = Control::detect();
    let paths = control.group_paths(random, true, true);
    let tried = control.clone().tried(random);
    println!("memory: {:?}, device: {:?}", tried.memory(), tried.device());
    assert_eq!(control.memory().is_ok(), tried.memory().is_ok());
    assert_eq!(control.device().is_ok(), tried.device().is_ok());
    assert!(gone(&paths));
}

/// The own group must be cleared of its processes first, as after `systemd-run --scope` or in a
/// container.
#[test]
fn processes_move_to_a_leaf_and_back() {
    let Some(control) = with_memory("cgroup-v2") else { return };
    let place = control.memory().expect("seen above").clone();
    if place.version() == Version::V1 || control.device().is_err() {
        println!("skipped: cgroup-v2: memory and devices are not both in cgroup v2 here");
        return;
    }
    let number = random();
    let _cleared = Cleared(control.group_paths(number, true, true));
    let outer = Group::create(&control, number, Some(64 << 20), true).expect("group");
    let own = outer.paths()[0].to_path_buf();
    let mut child = spawn(&outer, "exec sleep 1000");
    let procs = || fs::read_to_string(own.join("cgroup.procs")).expect("read").trim().to_string();
    let pid = child.id().to_string();
    assert_eq!(procs(), pid);
    // As seen by a process in this group that has it mounted.
    let inside =
        Survey { mounts: vec![mount(&own, "cgroup2", "rw")], own: "0::/\n", scope: None, is_scoped: false }
            .control();
    assert_eq!(inside.memory().expect("memory").missing, ["io", "memory"]);
    let (first, second) = (random(), random());
    let paths = inside.group_paths(first, true, true);
    assert_eq!(paths.len(), 2, "{paths:?}");
    let group = Group::create(&inside, first, Some(16 << 20), true).expect("group");
    assert_eq!(procs(), "");
    assert_eq!(fs::read_to_string(paths[1].join("cgroup.procs")).expect("read").trim(), pid);
    assert_eq!(group.counters(None).limit_bytes, Some(16 << 20));
    assert!(spawn(&group, "true").wait().expect("end").success());
    // A second one needs no leaf, and the first one's stays for it.
    let other = Group::create(&inside, second, Some(16 << 20), true).expect("group");
    group.remove().expect("remove");
    assert!(paths[1].exists() && !paths[0].exists());
    other.remove().expect("remove");
    assert!(!paths[1].exists());
    assert_eq!(procs(), pid);
    assert_eq!(fs::read_to_string(own.join("cgroup.subtree_control")).expect("read").trim(), "");

    // The same after kill -9, in the order of the journal and in the other.
    for reversed in [false, true] {
        let number = random();
        let mut paths = inside.group_paths(number, true, true);
        std::mem::forget(Group::create(&inside, number, Some(16 << 20), true).expect("group"));
        assert_eq!(procs(), "");
        if reversed {
            paths.reverse();
        }
        for path in &paths {
            sweep(path).expect("sweep");
        }
        assert!(gone(&paths), "{paths:?}");
        assert_eq!(procs(), pid);
    }
    outer.kill().expect("kill");
    child.wait().expect("end");
    outer.remove().expect("remove");
}

fn mount(at: &Path, filesystem: &str, options: &str) -> Mount {
    Mount {
        number: (0, 30),
        root: "/".into(),
        mount_point: at.to_path_buf(),
        filesystem: filesystem.to_string(),
        source: "cgroup".to_string(),
        options: options.to_string(),
    }
}

/// A directory that looks like groups of cgroup v2: path, controllers, enabled for children,
/// processes.
fn fake_v2(groups: &[(&str, &str, &str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("directory");
    for (path, controllers, enabled, processes) in groups {
        let group = root.path().join(path);
        fs::create_dir_all(&group).expect("directory");
        for (name, text) in [
            ("cgroup.controllers", controllers),
            ("cgroup.subtree_control", enabled),
            ("cgroup.procs", processes),
        ] {
            fs::write(group.join(name), text).expect("write");
        }
        if !path.is_empty() {
            fs::write(group.join("cgroup.type"), "domain\n").expect("write");
        }
    }
    root
}

const ALL: &str = "cpuset cpu io memory pids\n";

#[test]
fn an_ancestor_that_shares_is_taken_before_processes_are_moved() {
    let root = fake_v2(&[
        ("", ALL, ALL, "1\n"),
        ("user", ALL, "memory io\n", ""),
        ("user/session", "memory io\n", "", "7\n"),
    ]);
    let survey = |own, is_scoped| {
        Survey { mounts: vec![mount(root.path(), "cgroup2", "rw")], own, scope: None, is_scoped }.control()
    };
    let control = survey("0::/user/session\n", false);
    let place = control.memory().expect("memory");
    assert_eq!((place.parent(), place.missing.len()), (root.path().join("user").as_path(), 0));
    assert_eq!(control.device().expect("device"), place);
    assert_eq!(place.to_string(), format!("cgroup v2 at {}", root.path().display()));
    // A group that was made for this process is cleared instead: its siblings may belong to others.
    let control = survey("0::/user/session\n", true);
    let place = control.memory().expect("memory");
    assert_eq!(place.parent(), root.path().join("user/session"));
    assert_eq!(place.missing, ["io", "memory"]);
    let paths = control.group_paths(0xabc, true, true);
    assert_eq!(
        paths,
        ["pagewise-0000000000000abc", "pagewise-leaf-0000000000000abc.io.memory"]
            .map(|name| place.parent().join(name))
    );
}

#[test]
fn a_controller_that_is_not_delegated_is_named() {
    let root = fake_v2(&[
        ("", ALL, "memory\n", "1\n"),
        ("user", "memory\n", "memory\n", ""),
        ("user/app", "memory\n", "", "7\n"),
    ]);
    // The root itself is out of reach: it is not seen.
    let mut seen = mount(&root.path().join("user"), "cgroup2", "rw");
    seen.root = "/user".into();
    let survey = |mount: Mount| {
        Survey { mounts: vec![mount], own: "0::/user/app\n", scope: None, is_scoped: false }.control()
    };
    let control = survey(seen.clone());
    assert_eq!(control.memory().expect("memory").parent(), root.path().join("user"));
    let reason = control.device().expect_err("undelegated").to_string();
    assert_eq!(reason, "the kernel offers no io controller in cgroup v2");
    seen.options = "ro,nosuid".into();
    let reason = survey(seen).memory().expect_err("read-only").to_string();
    let at = root.path().join("user");
    assert!(reason.starts_with(&format!("{} is mounted read-only; run pagewise", at.display())), "{reason}");
    fs::write(at.join("cgroup.controllers"), "memory io\n").expect("write");
    let control = survey(mount(root.path(), "cgroup2", "rw"));
    // The group of the root may enable it, if it is ours to write.
    assert!(control.memory().is_ok());
}

#[test]
fn what_belongs_to_systemd_is_had_in_a_scope() {
    let root = fake_v2(&[
        ("", ALL, ALL, "1\n"),
        ("user.slice", ALL, ALL, ""),
        ("user.slice/a.scope", ALL, "", "7\n"),
    ]);
    let survey = |scope, is_scoped| {
        let mounts = vec![mount(root.path(), "cgroup2", "rw")];
        Survey { mounts, own: "0::/user.slice/a.scope\n", scope, is_scoped }.control()
    };
    let control = survey(Some(Scope::fake(true)), false);
    for found in [control.memory(), control.device()] {
        let no = found.expect_err("systemd's");
        assert!(no.reason.ends_with("run: systemd-run --user --scope -p Delegate=yes pagewise …"), "{no}");
        assert_eq!(no.scope, Some(Scope::fake(true)));
    }
    assert_eq!(
        survey(None, true).memory().expect("in the scope").parent(),
        root.path().join("user.slice/a.scope")
    );
    // A user's manager that was not given the controller cannot pass it on.
    let user = rustix::process::getuid().as_raw();
    let manager = root.path().join(format!("user.slice/user-{user}.slice/user@{user}.service"));
    fs::create_dir_all(&manager).expect("directory");
    fs::write(manager.join("cgroup.controllers"), "cpu memory pids\n").expect("write");
    let control = survey(Some(Scope::fake(true)), false);
    assert!(control.memory().expect_err("systemd's").scope.is_some());
    let no = control.device().expect_err("not delegated");
    assert_eq!((no.reason.contains("sudo"), no.scope.is_some()), (true, false), "{no}");
    assert!(survey(Some(Scope::fake(false)), false).device().expect_err("systemd's").scope.is_some());
}

#[test]
fn a_machine_may_have_both_versions() {
    let v1 = tempfile::tempdir().expect("directory");
    fs::create_dir_all(v1.path().join("own")).expect("directory");
    let v2 = fake_v2(&[("", "io hugetlb\n", "io\n", "1\n")]);
    let mounts = || vec![mount(v1.path(), "cgroup", "rw,memory"), mount(v2.path(), "cgroup2", "rw")];
    let survey = |mounts, own| Survey { mounts, own, scope: None, is_scoped: false }.control();
    let control = survey(mounts(), "9:name=systemd:/\n4:memory:/own\n0::/\n");
    let memory = control.memory().expect("memory");
    assert_eq!((memory.version(), memory.parent()), (Version::V1, v1.path().join("own").as_path()));
    let device = control.device().expect("device");
    assert_eq!((device.version(), device.parent()), (Version::V2, v2.path()));
    assert_eq!(control.group_paths(1, true, true).len(), 2);
    assert_eq!(control.group_paths(1, false, true), [v2.path().join("pagewise-0000000000000001")]);

    // In a container, the own group is seen as a root.
    let mut bind = mounts();
    bind[0].root = "/docker/x".into();
    let control = survey(bind.clone(), "4:memory:/docker/x/own\n0::/\n");
    assert_eq!(control.memory().expect("memory").parent(), v1.path().join("own"));
    let reason = survey(bind, "4:memory:/elsewhere\n0::/\n").memory().expect_err("hidden").to_string();
    assert!(reason.contains("/elsewhere is outside"), "{reason}");

    let reason = survey(vec![], "4:memory:/own\n0::/\n").memory().expect_err("unmounted").to_string();
    assert_eq!(reason, "the memory hierarchy of cgroup v1 is not mounted");
    let reason = survey(vec![], "0::/\n").memory().expect_err("none").to_string();
    assert!(reason.starts_with("no cgroup filesystem is mounted"), "{reason}");
    let mut read_only = mounts();
    read_only[0].options = "ro,memory".into();
    let reason = survey(read_only, "4:memory:/own\n0::/\n").memory().expect_err("ro").to_string();
    assert!(reason.contains("mounted read-only"), "{reason}");
    let reason = survey(mounts(), "0::/\n").memory().expect_err("disabled").to_string();
    assert!(
        reason.contains("no memory controller in cgroup v2") && reason.contains("cgroup_enable"),
        "{reason}"
    );
}

#[test]
fn an_error_is_one_sentence() {
    let error = GroupError::InUse { path: "/sys/fs/cgroup/x".into(), processes: vec![7] };
    assert_eq!(error.to_string(), "/sys/fs/cgroup/x is still in use by [7]");
    let error = GroupError::TooLittle { limit_bytes: 1 << 20, least_bytes: LEAST_MEMORY_BYTES };
    assert_eq!(error.to_string(), "a worker needs at least 8MiB of memory: the limit is 1MiB");
}

#[test]
fn a_limit_in_place_stands_in_for_that_of_a_group_where_none_can_be_made() {
    const LIMIT: u64 = 256 << 20;
    let v2 = fake_v2(&[("", ALL, "memory\n", ""), ("app", ALL, "", "7\n"), ("app/part", ALL, "", "")]);
    let v1 = tempfile::tempdir().expect("directory");
    fs::create_dir_all(v1.path().join("app/part")).expect("directory");
    for (file, text) in [
        (v2.path().join("app/memory.max"), format!("{LIMIT}\n")),
        (v2.path().join("app/part/memory.max"), "max\n".to_string()),
        (v2.path().join("app/memory.stat"), "file 4096\nanon 8192\n".to_string()),
        (v1.path().join("memory.limit_in_bytes"), "9223372036854771712\n".to_string()),
        (v1.path().join("app/memory.limit_in_bytes"), format!("{LIMIT}\n")),
        (v1.path().join("app/part/memory.limit_in_bytes"), format!("{LIMIT}\n")),
        (v2.path().join("app/memory.events"), "oom_kill 3\n".to_string()),
        (v1.path().join("app/part/memory.oom_control"), "oom_kill 3\n".to_string()),
        (v1.path().join("app/part/memory.stat"), "total_cache 4096\ntotal_rss 8192\n".to_string()),
    ] {
        fs::write(file, text).expect("write");
    }
    for (root, filesystem, ro, rw, own, at) in [
        (v2.path(), "cgroup2", "ro", "rw", "0::/app/part\n", "v2 at {}/app)"),
        (v1.path(), "cgroup", "ro,memory", "rw,memory", "4:memory:/app/part\n", "v1 at {}/app/part)"),
    ] {
        let control = |options: &str| {
            let mounts = vec![mount(root, filesystem, options)];
            let survey = Survey { mounts, own, scope: None, is_scoped: false };
            assert_eq!(survey.own_limit(LIMIT), None, "it is no limit on a machine with no more memory");
            Control { own_limit: survey.own_limit(LIMIT + 1), ..survey.control() }
        };
        let control = (control(ro), control(rw));
        let own = control.0.limit_in_place().expect("in place");
        let text = format!("256MiB (cgroup {}", at.replace("{}", &root.display().to_string()));
        assert_eq!((own.bytes.0, own.to_string()), (LIMIT, text));
        // Where groups can be made, they are.
        assert!(control.1.memory().is_ok() && control.1.own_limit().is_some());
        assert_eq!(control.1.limit_in_place(), None);
        for control in [&control.0, &control.1] {
            assert_eq!(control.limit_above(), control.own_limit(), "groups are made below it");
        }
        let beside = ParentGroup { parent: root.to_path_buf(), ..control.1.memory().expect("seen").clone() };
        assert_eq!(Control { memory: Ok(beside), ..control.1.clone() }.limit_above(), None);
        let refused =
            Group::create(&control.0, 1, Some(LIMIT / 2), false).map(drop).expect_err("another limit");
        assert!(matches!(refused, GroupError::NoControl(_)), "{refused}");

        assert_eq!(control.0.group_paths(1, true, false), Vec::<PathBuf>::new());
        let before: Vec<PathBuf> = files_below(root);
        let group = Group::create(&control.0, 1, Some(LIMIT), false).expect("in place");
        assert!(group.paths().is_empty() && group.entry().expect("entry").is_empty());
        let counters = group.counters(None);
        assert_eq!((counters.limit_bytes, counters.file_bytes), (Some(LIMIT), Some(4096)), "{counters:?}");
        assert_eq!(counters.memory_kills, Some(0), "those of before are not the worker's");
        assert_eq!(group.processes().expect("processes"), Vec::<u32>::new(), "none is ours to kill");
        group.kill().expect("kill");
        group.remove().expect("remove");
        assert_eq!(files_below(root), before);
    }
}

fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(root).expect("list") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            all.extend(files_below(&path));
        }
        all.push(path);
    }
    all.sort();
    all
}
