//! Conditions that make no sense or cannot be had: a sentence and exit 2, or a cell that is
//! unavailable with its reason. Nothing of them is left: no dataset, no cgroup, no setting.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{
    self, Finished, PAGEWISE, Place, broken, expect_message, expect_refused, is_honest, kinds, load,
    of_method, refuse_all, skipped,
};
use pagewise_host::cgroup::{Control, Group};
use pagewise_host::placement::Topology;
use pagewise_host::{BlockDevice, Readahead};
use pagewise_model::run::Run;
use pagewise_model::{FailureKind, Outcome, Role};

const NOBODY: u32 = 65_534;

/// A run that is quick; what surrounds it, each test says.
const BRIEF: [&str; 9] = [
    "run",
    "read",
    "--workload=random-read",
    "--threads=1",
    "--trial-rounds=2",
    "--sample=1ms",
    "--no-ceilings",
    "--cache=warm",
    "--out=run.jsonl",
];

fn brief<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&BRIEF[..], more].concat()
}

/// Why this machine cannot limit memory or cap the device of the build directory.
fn lacking() -> Option<String> {
    let control = Control::detect();
    let refused = control.memory().err().or(control.device().err()).map(ToString::to_string);
    refused.or_else(|| BlockDevice::behind(Path::new(".")).err().map(|reason| reason.to_string()))
}

/// Runs to the end; nothing is left but the run file.
#[track_caller]
fn run(place: &Place, more: &[&str]) -> (Run, Finished) {
    let finished = place.run(&brief(more));
    (ended(place), finished)
}

#[track_caller]
fn ended(place: &Place) -> Run {
    let run = load(&place.file("run.jsonl"));
    assert!(run.is_complete());
    assert_eq!(place.journal(), Vec::<serde_json::Value>::new(), "the journal still names something");
    place.expect_no_trace();
    run
}

/// The reasons of a method's cells, none of which could be had.
#[track_caller]
fn unavailable(run: &Run, method: &str) -> Vec<String> {
    let reasons = of_method(run, method).into_iter().map(|sample| match &sample.outcome {
        Outcome::Unavailable { reason } => reason.clone(),
        other => panic!("{method} was to be unavailable: {other:?}"),
    });
    let mut reasons: Vec<String> = reasons.collect();
    reasons.sort();
    reasons.dedup();
    assert!(!reasons.is_empty(), "{method} has no sample");
    reasons
}

#[test]
fn a_cap_needs_a_block_device() {
    let shm = Path::new("/dev/shm");
    if BlockDevice::behind(shm).is_ok() || !shm.is_dir() {
        return skipped("tmpfs", "/dev/shm is no tmpfs");
    }
    let place = Place::on(shm);
    refuse_all(
        &place,
        &[(
            "run read --device-cap microsd",
            "the cap microsd needs a block device that can be capped: tmpfs keeps its files in memory",
        )],
    );
    // Where some cells do without, the others are unavailable.
    for (readahead, is_refused) in [("--readahead=128KiB", true), ("--readahead=none,128KiB", false)] {
        let reason = "readahead cannot be set to 128KiB: tmpfs";
        let brief = brief(&["--methods=pread", "--file-size=4MiB", readahead]);
        if is_refused {
            expect_message(&place.run(&brief), 3, &format!("read needs a setting of the kernel: {reason}"));
            assert!(place.entries().is_empty(), "{:?}", place.entries());
        } else {
            place.run(&brief);
            let run = ended(&place);
            let reasons = run.samples.iter().filter_map(|sample| match &sample.outcome {
                Outcome::Unavailable { reason } => Some(reason),
                _ => None,
            });
            assert!(
                reasons.clone().count() == 1 && reasons.clone().all(|message| message.starts_with(reason))
            );
        }
    }
}

#[test]
fn the_least_memory_that_is_said_works() {
    if let Some(reason) = lacking() {
        return skipped("cgroup", &reason);
    }
    let place = Place::new();
    let methods = "--methods=mmap,mmap:random,pread,pread:direct,uring:direct+depth=32";
    let finished = place.run(&brief(&["--memory=1MiB", methods, "--file-size=4MiB"]));
    expect_refused(&finished, "the smallest that works is ");
    let (_, least) = finished.stderr.trim_end().rsplit_once(' ').expect("a sentence");
    let mebibytes: u64 = least.strip_suffix("MiB").and_then(|number| number.parse().ok()).expect("whole MiB");
    let memory = format!("--memory={}MiB", mebibytes - 1);
    expect_refused(&place.run(&brief(&[&memory, methods, "--file-size=4MiB"])), &format!("works is {least}"));
    assert!(place.entries().is_empty());

    // Data that fits beside the worker, and data that does not.
    let memory = format!("--memory={least}");
    let (run, _) = run(&place, &[&memory, methods, "--file-size=16MiB", "--span=1MiB,16MiB"]);
    for sample in &run.samples {
        assert!(matches!(sample.outcome, Outcome::Taken { .. }), "{}: {:?}", sample.cell, sample.outcome);
        assert!(
            !kinds(sample).contains(&FailureKind::SettingMismatch),
            "{}: {:?}",
            sample.cell,
            sample.outcome
        );
    }
}

#[test]
fn a_worker_killed_for_memory_is_a_result_and_the_run_goes_on() {
    if let Some(reason) = lacking() {
        return skipped("cgroup", &reason);
    }
    let place = Place::new();
    // Thirty-two buffers of 1 MiB do not fit where one does.
    let large = ["--memory=16MiB", "--read-size=1MiB", "--reads-per-op=1", "--file-size=4MiB", "--span=1MiB"];
    let (run, finished) = run(&place, &[&large[..], &["--methods=uring:depth=32,pread", "--json"]].concat());
    let finished = finished.expect_code(1);
    for sample in of_method(&run, "uring:depth=32") {
        let (failures, _) = broken(sample);
        assert_eq!(kinds(sample), [FailureKind::KilledForMemory], "{failures:?}");
        assert!(failures[0].detail.contains("does not fit under its limit of 16MiB"), "{failures:?}");
    }
    let pread = of_method(&run, "pread");
    assert!(!pread.is_empty() && pread.iter().all(|sample| is_honest(sample)), "{pread:?}");
    let cells = finished.judged()["cells"].to_string();
    assert!(cells.contains("killed-for-memory"), "{cells}");
}

#[test]
fn a_third_party_worker_that_takes_all_memory_dies_alone() {
    if let Some(reason) = lacking() {
        return skipped("cgroup", &reason);
    }
    let place = Place::new();
    // It keeps what it reads until a line ends, which never does.
    let hog = ["--worker-command", "tail /dev/zero", "--memory=16MiB", "--file-size=4MiB"];
    let (run, finished) = run(&place, &[&hog[..], &["--methods=pread,mmap"]].concat());
    finished.expect_code(1);
    assert_eq!(run.samples.len(), run.header.plan.cells.len(), "each cell was tried once");
    for sample in &run.samples {
        assert_eq!(kinds(sample), [FailureKind::KilledForMemory], "{:?}", sample.outcome);
    }
}

#[test]
fn another_node_is_not_taken_for_this_one() {
    let nodes = Topology::read().expect("the nodes of this machine").nodes;
    if nodes.iter().filter(|node| node.memory_bytes > 0).count() > 1 {
        return skipped("one-node", "this machine has more than one node");
    }
    let place = Place::new();
    let (run, _) = run(&place, &["--methods=pread", "--file-size=4MiB", "--numa=other,same"]);
    let (mut on_other, mut on_same) = (0, 0);
    for cell in &run.header.plan.cells {
        let samples = run.samples.iter().filter(|sample| sample.cell == cell.id());
        for sample in samples {
            if cell.conditions.host_settings.numa == Some(pagewise_model::Numa::Other) {
                let Outcome::Unavailable { reason } = &sample.outcome else { panic!("{:?}", sample.outcome) };
                assert_eq!(reason, "this machine has one NUMA node");
                on_other += 1;
            } else {
                assert!(is_honest(sample), "{:?}", sample.outcome);
                on_same += 1;
            }
        }
    }
    assert!(on_other == 1 && on_same >= 2, "{on_other} {on_same}");
}

/// A cpuset of version 1 that ends with the test.
struct Cpuset(PathBuf);

impl Cpuset {
    /// One that holds the first of two CPUs.
    fn of_first_cpu() -> Result<Self, String> {
        let above = Path::new("/sys/fs/cgroup/cpuset");
        let text = |name: &str| fs::read_to_string(above.join(name)).map_err(|error| error.to_string());
        if !text("cpuset.cpus")?.starts_with("0-") {
            return Err("CPUs 0 and 1 are needed".to_string());
        }
        let set = Self(above.join(format!("bad-conditions-{}", std::process::id())));
        fs::create_dir(&set.0).map_err(|error| error.to_string())?;
        fs::write(set.0.join("cpuset.cpus"), "0").map_err(|error| error.to_string())?;
        fs::write(set.0.join("cpuset.mems"), text("cpuset.mems")?.trim())
            .map_err(|error| error.to_string())?;
        Ok(set)
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_cpu_that_this_process_may_not_use_is_reported() {
    let set = match Cpuset::of_first_cpu() {
        Ok(set) => set,
        Err(reason) => return skipped("cpuset", &reason),
    };
    let place = Place::new();
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]).arg(set.0.join("tasks")).arg(PAGEWISE);
    command.args(brief(&["--methods=pread", "--file-size=4MiB", "--cpus=1", "--cpus=0-1"]));
    place.settle(&mut command);
    place.finish(command.spawn().expect("start")).expect_code(3);
    for reason in unavailable(&ended(&place), "pread") {
        assert!(reason.starts_with("this process may not use all of the CPUs "), "{reason}");
    }
}

#[test]
fn dependent_reads_leave_nothing_to_fetch_ahead() {
    let place = Place::new();
    let methods = "--methods=pread,uring:depth=1,uring:depth=4,mmap:random+prefetch,uring:direct+depth=32";
    let (run, _) = run(&place, &["--dependent", "--file-size=4MiB", methods]);
    for (method, reason) in [
        ("uring:depth=4", "write depth=1"),
        ("uring:direct+depth=32", "write depth=1"),
        ("mmap:random+prefetch", "there is nothing to prefetch before the data show the next offset"),
    ] {
        let reasons = unavailable(&run, method);
        assert!(reasons[0].contains(reason), "{reasons:?}");
    }
    for method in ["pread", "uring:depth=1"] {
        let samples = of_method(&run, method);
        assert!(!samples.is_empty() && samples.iter().all(|sample| is_honest(sample)), "{samples:?}");
    }
}

/// Under a limit and a cap nothing can be had, and beside them all goes on; `reasons` are those of
/// limit and cap.
#[track_caller]
fn expect_no_control(run: &Run, reasons: [&str; 2]) {
    let mut seen = [0; 3];
    for cell in run.header.plan.cells.iter().filter(|cell| cell.role == Role::Measured) {
        let host_settings = &cell.conditions.host_settings;
        let kind = match (host_settings.memory_limit_bytes, host_settings.device_cap) {
            (None, None) => 2,
            (Some(_), _) => 0,
            (None, Some(_)) => 1,
        };
        for sample in run.samples.iter().filter(|sample| sample.cell == cell.id()) {
            seen[kind] += 1;
            match &sample.outcome {
                Outcome::Unavailable { reason } if kind < 2 => {
                    assert!(reason.contains(reasons[kind]), "'{}' is not in: {reason}", reasons[kind]);
                    assert!(!reason.contains('\n') && !reason.ends_with('.'), "{reason}");
                }
                _ => assert!(kind == 2 && is_honest(sample), "{:?}", sample.outcome),
            }
        }
    }
    assert!(seen[0] == 2 && seen[1] == 1 && seen[2] >= 2, "{seen:?}");
}

const LIMIT_AND_CAP: [&str; 5] = [
    "--methods=pread",
    "--file-size=4MiB",
    "--memory=none,64MiB",
    "--device-cap=none",
    "--device-cap=read-iops=100000",
];

#[test]
fn without_the_right_to_limit_cells_are_unavailable() {
    if !rustix::process::geteuid().is_root() {
        return skipped("root", "only root can become another user");
    }
    let place = Place::on(&std::env::temp_dir());
    if BlockDevice::behind(&place.path()).is_err() {
        return skipped("disk", "the temporary directory has no device");
    }
    let Some(mut command) = place.command_as(NOBODY, &brief(&LIMIT_AND_CAP)) else { return };
    command.env_remove("XDG_RUNTIME_DIR");
    place.finish(command.spawn().expect("start"));
    // What may be run instead is sudo, a scope or a delegated group.
    expect_no_control(&ended(&place), ["; run", "; run"]);
    fs::remove_file(place.file("run.jsonl")).expect("remove");

    // What is in force needs no right.
    let in_force = Readahead::of(&place.path()).expect("a setting").read().expect("readahead");
    let other = if in_force == (128 << 10).to_string() { "64KiB" } else { "128KiB" };
    let readahead = ["--methods=pread", "--file-size=4MiB", &format!("--readahead={other}")];
    let mut command = place.command_as(NOBODY, &brief(&readahead)).expect("as above");
    let refused = place.finish(command.spawn().expect("start")).expect_code(3);
    let message = "pagewise: read needs a setting of the kernel: readahead cannot be set: write of /sys/";
    assert!(refused.stderr.starts_with(message), "{refused:?}");
    assert!(refused.stderr.contains("Permission denied"), "{refused:?}");
    assert!(!place.file("run.jsonl").exists(), "nothing is written");
    // A dry run says it in the same words. What some cells do without is no reason to refuse the
    // others.
    let mut command =
        place.command_as(NOBODY, &[&brief(&readahead)[..], &["--dry-run"]].concat()).expect("as above");
    let dry = place.finish(command.spawn().expect("start")).expect_code(3);
    assert_eq!((dry.stdout.as_str(), &dry.stderr), ("", &refused.stderr));
    let some = ["--methods=pread", "--file-size=4MiB", &format!("--readahead=none,{other}"), "--dry-run"];
    let mut command = place.command_as(NOBODY, &brief(&some)).expect("as above");
    place.finish(command.spawn().expect("start")).expect_code(0);
}

/// `doctor` gives that reason for limit and cap.
#[track_caller]
fn expect_doctor_says(place: &Place, reason: &str) {
    let finished = place.run(&["doctor", "--json"]).expect_code(0);
    for name in ["memory limit", "device cap"] {
        let capabilities = finished.judged()["capabilities"].clone();
        let capabilities = capabilities.as_array().expect("a list");
        let found = capabilities.iter().find(|one| one["name"] == name).expect("it is listed");
        assert_eq!(found["state"], "unavailable", "{found}");
        assert!(found["reason"].as_str().is_some_and(|text| text.contains(reason)), "{found}");
    }
}

/// Mounts of cgroup filesystems, by version.
fn cgroup_mounts() -> String {
    fs::read_to_string("/proc/self/mounts").expect("mounts")
}

/// For [`support::in_own_mounts`]: no cgroup can be made, as in a container.
const READ_ONLY_CGROUPS: &str = "grep -E ' cgroup2? ' /proc/self/mounts | \
     while read -r _ point _; do mount -o remount,bind,ro \"$point\" || exit 1; done";

#[test]
fn a_limit_in_place_is_used_where_no_cgroup_can_be_made() {
    const TEST: &str = "a_limit_in_place_is_used_where_no_cgroup_can_be_made";
    const LIMIT: u64 = 128 << 20;
    // The surroundings: a group with a limit, which is left behind read-only mounts.
    let control = Control::detect();
    let around = control.memory().is_ok().then(|| {
        let number = u64::from(std::process::id()) << 32 | LIMIT >> 20;
        Group::create(&control, number, Some(LIMIT), false).expect("a group")
    });
    let joined = around.as_ref().map_or("false".to_string(), |group| {
        format!("echo $$ > {}/cgroup.procs && {READ_ONLY_CGROUPS}", group.paths()[0].display())
    });
    if !support::in_own_mounts(TEST, &joined) {
        if let Some(group) = around {
            group.remove().expect("nothing is left in it");
        }
        return;
    }
    let place = Place::new();
    let of_itself = place.run(&["cliff", "--quick", "--dry-run"]).expect_code(0);
    let note = "note: the memory limit that this process has itself is used: 128MiB (cgroup v";
    assert!(of_itself.stderr.contains(note), "{of_itself:?}");
    for (memory, message) in [
        ("--memory=256MiB", "read needs a smaller memory limit: this process has one of its own, 128MiB ("),
        ("--memory=64MiB", "or use the limit that this process has itself, 128MiB ("),
    ] {
        expect_message(&place.run(&brief(&[memory, "--methods=pread", "--file-size=4MiB"])), 3, message);
    }
    assert!(place.entries().is_empty(), "{:?}", place.entries());
    let (run, _) = run(&place, &["--memory=128MiB", "--methods=mmap:random,pread", "--file-size=4MiB"]);
    for sample in &run.samples {
        // On a busy machine some are broken from outside; never are they unavailable.
        assert!(is_honest(sample), "{:?}", sample.outcome);
        if let Outcome::Taken { evidence, .. } = &sample.outcome {
            assert_eq!(evidence.group.as_ref().and_then(|group| group.limit_bytes), Some(LIMIT));
        }
    }
}

#[test]
fn a_read_only_cgroup_filesystem_is_reported() {
    const TEST: &str = "a_read_only_cgroup_filesystem_is_reported";
    if let Some(reason) = lacking().filter(|_| !cgroup_mounts().contains("cgroup ro,")) {
        return skipped("cgroup", &reason);
    }
    if !support::in_own_mounts(TEST, READ_ONLY_CGROUPS) {
        return;
    }
    let place = Place::new();
    let (run, _) = run(&place, &LIMIT_AND_CAP);
    expect_no_control(&run, ["is mounted read-only", "is mounted read-only"]);
    expect_doctor_says(&place, "is mounted read-only");
}

#[test]
fn a_missing_cgroup_filesystem_is_reported() {
    const TEST: &str = "a_missing_cgroup_filesystem_is_reported";
    if let Some(reason) = lacking().filter(|_| cgroup_mounts().contains(" cgroup")) {
        return skipped("cgroup", &reason);
    }
    let unmount = "umount -R /sys/fs/cgroup && ! grep -qE ' cgroup2? ' /proc/self/mounts";
    if !support::in_own_mounts(TEST, unmount) {
        return;
    }
    let place = Place::new();
    let (run, _) = run(&place, &LIMIT_AND_CAP);
    expect_no_control(&run, ["mounted", "mounted"]);
    expect_doctor_says(&place, "mounted");
}
