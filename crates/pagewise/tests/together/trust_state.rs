//! The state of runs: kept where nobody else can write or exchange it, written before what it
//! announces, never a lock-out, and honest about what cannot be undone yet.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::needs::has_toolchain;
use crate::support::{
    self, Finished, NOBODY, OWN_FILESYSTEM, PAGEWISE, Place, cheating_worker, expect_refused, in_own_mounts,
    is_root, load, skipped, wait_for,
};
use pagewise_host::Readahead;

const SMALL: [&str; 11] = [
    "run",
    "read",
    "--workload=random-read",
    "--methods=pread",
    "--threads=1",
    "--cache=warm",
    "--rounds=7",
    "--sample=1ms",
    "--no-ceilings",
    "--file-size=4MiB",
    "--out=run.jsonl",
];

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

/// Runs with another state directory than that of the place.
#[track_caller]
fn with_state(place: &Place, state: &Path, words: &[&str]) -> Finished {
    let mut command = place.command(words);
    command.env("PAGEWISE_STATE_DIR", state);
    place.finish(command.spawn().expect("start"))
}

/// Kills a run, whose worker hangs, as soon as it has made its dataset in `directory`; the dataset.
#[track_caller]
fn killed(place: &Place, directory: &Path, prepare: impl FnOnce(&mut Command)) -> PathBuf {
    let worker = cheating_worker("hangs-at-start");
    let directory_word = format!("--dir={}", directory.display());
    let mut command = place.command(&[&SMALL[..], &[&directory_word, "--worker-command", &worker]].concat());
    prepare(&mut command);
    let mut child = command.spawn().expect("start");
    let dataset = wait_for("a whole dataset", || {
        let dataset = support::outsider::dataset(directory)?;
        (place.file("run.jsonl").exists() && fs::metadata(&dataset).ok()?.len() == 4 << 20).then_some(dataset)
    });
    child.kill().expect("kill");
    child.wait().expect("wait");
    place.expect_no_process();
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    assert!(dataset.exists());
    dataset
}

#[test]
fn a_state_directory_that_others_can_write_is_refused() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let state = place.root().join("shared");
    fs::create_dir(&state).expect("directory");
    let victim = place.write("victim", "precious");
    chown(&state, None, Some(NOBODY)).expect("chgrp");
    // What the others put there: a lock or journal that leads to a file of root's, and a journal
    // that leads to a setting.
    for name in ["lock", "journal"] {
        symlink(&victim, state.join(name)).expect("link");
        std::os::unix::fs::lchown(state.join(name), Some(NOBODY), Some(NOBODY)).expect("chown");
    }
    for bits in [0o2775, 0o777, 0o1777] {
        mode(&state, bits);
        for words in [&["clean"][..], &SMALL] {
            expect_refused(&with_state(&place, &state, words), "shared can be written by others");
        }
    }
    // Links that were put there before it was closed.
    mode(&state, 0o700);
    expect_refused(&with_state(&place, &state, &["clean"]), "lock is a link");
    fs::remove_file(state.join("lock")).expect("remove");
    expect_refused(&with_state(&place, &state, &["clean"]), "journal is a link");
    // A second name of a file of root's, and a file of the other's.
    fs::remove_file(state.join("journal")).expect("remove");
    fs::hard_link(&victim, state.join("journal")).expect("link");
    expect_refused(&with_state(&place, &state, &["clean"]), "journal has 2 names");
    fs::remove_file(state.join("journal")).expect("remove");
    fs::write(state.join("journal"), "").expect("write");
    chown(state.join("journal"), Some(NOBODY), None).expect("chown");
    expect_refused(&with_state(&place, &state, &["clean"]), "journal belongs to user 65534, not to user 0");
    // A way to it that another could lead elsewhere.
    fs::remove_file(state.join("journal")).expect("remove");
    let theirs = place.root().join("theirs");
    fs::create_dir(&theirs).expect("directory");
    chown(&theirs, Some(NOBODY), None).expect("chown");
    let below = theirs.join("state");
    expect_refused(&with_state(&place, &below, &SMALL), "theirs belongs to user 65534, not to user 0");
    symlink(place.root(), theirs.join("link")).expect("link");
    assert!(!below.exists());
    assert_eq!(fs::read_to_string(&victim).expect("read"), "precious");
    assert_eq!(place.entries(), ["victim".to_string()].into());
}

#[test]
fn a_state_directory_is_closed_to_others_or_refused() {
    let place = Place::new();
    mode(&place.state(), 0o755);
    place.run(&["clean"]).expect_code(0);
    assert_eq!(fs::metadata(place.state()).expect("stat").mode() & 0o777, 0o700);
    for name in ["lock", "journal"] {
        assert_eq!(fs::metadata(place.state().join(name)).expect("stat").mode() & 0o777, 0o600);
    }
    // One that holds other things keeps its mode.
    mode(&place.path(), 0o755);
    place.write("letters", "");
    expect_refused(&with_state(&place, &place.path(), &["clean"]), "close it with chmod 700");
    assert_eq!(fs::metadata(place.path()).expect("stat").mode() & 0o777, 0o755);
    assert_eq!(place.entries(), ["letters".to_string()].into());
}

/// Root's home is another one, and both it and temporary files are in memory.
const OWN_HOME: &str = "mount -t tmpfs tmpfs /dev/shm && mkdir -m 700 /dev/shm/home && \
    sed 's#^root:\\([^:]*:0:0:[^:]*\\):[^:]*:#root:\\1:/dev/shm/home:#' /etc/passwd > /dev/shm/passwd && \
    mount --bind /dev/shm/passwd /etc/passwd && \
    if cache=$(PATH=$PATH:/usr/local/go/bin go env GOCACHE) && [ -d \"$cache\" ]; then \
        mkdir -p /dev/shm/home/.cache/go-build && mount --bind \"$cache\" /dev/shm/home/.cache/go-build; fi";

/// Whether a host has a journal below `base`.
fn has_journal(base: &Path) -> bool {
    fs::read_dir(base).into_iter().flatten().flatten().any(|host| host.path().join("journal").exists())
}

#[test]
fn as_root_nothing_is_made_in_another_users_home() {
    const TEST: &str = "as_root_nothing_is_made_in_another_users_home";
    if !in_own_mounts(TEST, OWN_HOME) {
        return;
    }
    let place = Place::new();
    let theirs = place.root().join("theirs");
    fs::create_dir(&theirs).expect("directory");
    chown(&theirs, Some(NOBODY), Some(NOBODY)).expect("chown");
    let own = Path::new("/dev/shm/home");
    let run = |words: &[&str]| {
        let mut command = place.command(words);
        let their = |below: &str| theirs.join(below);
        command.env_remove("PAGEWISE_STATE_DIR").env("HOME", &theirs).env("TMPDIR", their("tmp"));
        command.env("XDG_STATE_HOME", their("state")).env_remove("XDG_CACHE_HOME").env_remove("GOCACHE");
        place.finish(command.spawn().expect("start"))
    };
    run(&["clean"]).expect_code(0);
    let finished = run(&SMALL);
    finished.expect_code_for(&load(&place.file("run.jsonl")));
    assert!(has_journal(&own.join(".local/state/pagewise")), "the state is in root's own home");
    for (language, typed) in [("python", "--methods=python/pread"), ("go", "--methods=go/pread")] {
        if !has_toolchain(language) {
            continue;
        }
        fs::remove_file(place.file("run.jsonl")).expect("remove");
        let mut words = SMALL.to_vec();
        words[3] = typed;
        let finished = run(&words);
        assert!(
            finished.stderr.contains("theirs, which is another user's: root's own was used"),
            "{finished:?}"
        );
        let run = load(&place.file("run.jsonl"));
        assert_eq!(run.header.workers[0].unavailable, None, "{typed}");
    }
    let built = fs::read_dir(own.join(".cache/pagewise/workers")).map_or(0, Iterator::count);
    assert!(built > 0, "workers are built in root's own home");
    assert_eq!(fs::read_dir(&theirs).expect("list").count(), 0, "something was made in another user's home");
    // A cache or state of theirs that was there is not used either.
    let mut command = place.command(&SMALL);
    command.env("HOME", &theirs).env("PAGEWISE_STATE_DIR", theirs.join("state"));
    expect_refused(
        &place.finish(command.spawn().expect("start")),
        "theirs belongs to user 65534, not to user 0",
    );
    assert_eq!(fs::read_dir(&theirs).expect("list").count(), 0);
}

#[test]
fn a_journal_that_is_no_text_locks_nobody_out() {
    let place = Place::new();
    let dataset = killed(&place, &place.path(), |_| ());
    let journal = place.state().join("journal");
    let mut bytes = fs::read(&journal).expect("read");
    bytes.splice(0..0, *b"\xff\xfe{\"made\"\n\0\0\0\n");
    fs::write(&journal, bytes).expect("write");
    let cleaned = place.run(&["clean"]).expect_code(0);
    assert!(cleaned.stdout.contains(&format!("removed {}", dataset.display())), "{cleaned:?}");
    assert!(
        cleaned.stdout.contains("2 broken lines of the journal of earlier runs moved to "),
        "{cleaned:?}"
    );
    let aside = fs::read(place.state().join("journal.broken")).expect("read");
    assert_eq!(aside, b"\xff\xfe{\"made\"\n\0\0\0\n");
    assert_eq!(place.run(&["clean"]).expect_code(0).stdout, "Nothing was left to clean.\n");
    let finished = place.run(&SMALL);
    finished.expect_code_for(&load(&place.file("run.jsonl")));
    place.expect_no_trace();
}

/// Has the system call of this number fail with EPERM in a program: a filter as of seccomp(2).
const REFUSING: &str = r"
import ctypes, os, struct, sys
number = int(sys.argv[1])
filters = b''.join(struct.pack('HBBI', *one) for one in [
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)])
memory = ctypes.create_string_buffer(filters)
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filters', ctypes.c_void_p)]
program = Program(4, ctypes.addressof(memory))
libc = ctypes.CDLL(None, use_errno=True)
zero = [ctypes.c_ulong(0)] * 3
if libc.prctl(38, ctypes.c_ulong(1), *zero) or libc.prctl(22, ctypes.c_ulong(2), ctypes.byref(program), *zero):
    print('skipped', os.strerror(ctypes.get_errno()))
    sys.exit(77)
os.execv(sys.argv[2], sys.argv[2:])
";

#[test]
fn a_lock_that_fails_is_no_other_run() {
    let place = Place::new();
    place.run(&["clean"]).expect_code(0);
    let flock = if cfg!(target_arch = "x86_64") { "73" } else { "32" };
    let said = format!(
        "it is unknown whether another run is measuring: flock {}: Operation not permitted (os error 1)",
        place.state().join("lock").display()
    );
    for words in [&["clean"][..], &SMALL] {
        let mut command = Command::new("python3");
        command.args(["-c", REFUSING, flock, PAGEWISE]).args(words);
        place.settle(&mut command);
        let Ok(child) = command.spawn() else { return skipped("python", "there is no python3") };
        let finished = place.finish(child);
        if finished.code() == 77 {
            return skipped("seccomp", &finished.stdout);
        }
        expect_refused(&finished, &said);
    }
    assert!(place.entries().is_empty());
}

/// A filesystem on a loop device, mounted within mounts of one's own.
struct Disk {
    image: PathBuf,
    point: PathBuf,
}

impl Disk {
    fn new(place: &Place) -> Self {
        let disk = Self { image: place.root().join("image"), point: place.root().join("disk") };
        fs::create_dir(&disk.point).expect("directory");
        fs::File::create(&disk.image).and_then(|file| file.set_len(64 << 20)).expect("image");
        run("mkfs.ext4", &["-q", "-F", &disk.image.to_string_lossy()]);
        disk.mount();
        disk
    }

    fn mount(&self) {
        run("mount", &["-o", "loop", &self.image.to_string_lossy(), &self.point.to_string_lossy()]);
    }

    fn unmount(&self) {
        run("umount", &[&self.point.to_string_lossy()]);
    }
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect("start");
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

#[test]
fn what_is_on_an_unmounted_filesystem_is_kept_and_reported() {
    if !in_own_mounts("what_is_on_an_unmounted_filesystem_is_kept_and_reported", OWN_FILESYSTEM) {
        return;
    }
    let place = Place::new();
    let disk = Disk::new(&place);
    let dataset = killed(&place, &disk.point, |_| ());
    disk.unmount();
    let said = format!("1 file on an unmounted filesystem remains: {} (", dataset.display());
    let cleaned = place.run(&["clean"]).expect_code(1);
    assert!(cleaned.stdout.starts_with(&said), "{cleaned:?}");
    let begun = place.run(&SMALL);
    assert!(begun.stderr.contains(&format!("warning: {said}")), "{begun:?}");
    disk.mount();
    assert!(dataset.exists());
    let cleaned = place.run(&["clean"]).expect_code(0);
    assert_eq!(cleaned.stdout, format!("removed {}\n", dataset.display()));
    assert!(!dataset.exists());
    // One that was removed by hand is gone, on whatever device its filesystem is mounted again.
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    let dataset = killed(&place, &disk.point, |_| ());
    fs::remove_file(&dataset).expect("remove");
    disk.unmount();
    disk.mount();
    assert_eq!(place.run(&["clean"]).expect_code(0).stdout, "Nothing was left to clean.\n");
    disk.unmount();
}

#[test]
fn what_is_in_a_directory_that_was_moved_is_kept_until_it_is_back_or_forgotten() {
    let place = Place::new();
    let (data, moved) = (place.file("data"), place.file("moved"));
    fs::create_dir(&data).expect("directory");
    let dataset = killed(&place, &data, |_| ());
    fs::rename(&data, &moved).expect("rename");
    let said = format!("1 file in a directory that was moved or removed remains: {} (", dataset.display());
    let cleaned = place.run(&["clean"]).expect_code(1);
    assert!(cleaned.stdout.starts_with(&said), "{cleaned:?}");
    fs::rename(&moved, &data).expect("rename");
    place.run(&["clean"]).expect_code(0);
    assert!(!dataset.exists());
    let dataset = killed(&place, &data, |_| ());
    fs::remove_dir_all(&data).expect("remove");
    place.run(&["clean"]).expect_code(1);
    let forgotten = place.run(&["clean", "--forget"]).expect_code(0);
    assert_eq!(forgotten.stdout, format!("forgot {}\n", dataset.display()));
    assert_eq!(place.run(&["clean"]).expect_code(0).stdout, "Nothing was left to clean.\n");
}

#[test]
fn the_journal_is_on_the_device_before_what_it_announces() {
    let place = Place::new();
    let trace = place.root().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-e", "trace=openat,write,fsync,fdatasync", "-s", "300", "-o"]).arg(&trace);
    command.arg(PAGEWISE).args(SMALL);
    place.settle(&mut command);
    let Ok(child) = command.spawn() else { return skipped("strace", "there is no strace") };
    let finished = place.finish(child);
    finished.expect_code_for(&load(&place.file("run.jsonl")));
    let trace = fs::read_to_string(&trace).expect("read");
    let lines: Vec<&str> = trace.lines().collect();
    let state = place.state().display().to_string();
    let made = lines.iter().position(|line| line.contains("/.pagewise-") && line.contains("O_CREAT"));
    let made = made.expect("the dataset is made");
    let name =
        lines[made].split("/.pagewise-").nth(1).and_then(|rest| rest.split('"').next()).expect("a name");
    let journal = format!("<{state}/journal>");
    let announced = lines
        .iter()
        .position(|line| line.contains("write(") && line.contains(&journal) && line.contains(name));
    let announced = announced.expect("it is announced");
    let synced = |path: &str| {
        lines.iter().position(|line| line.contains("sync(") && line.contains(path) && line.ends_with("= 0"))
    };
    let directory = synced(&format!("<{state}>")).expect("the directory is synced");
    let after = lines[announced..].iter().position(|line| line.contains("sync(") && line.contains(&journal));
    let synced = announced + after.expect("the journal is synced");
    assert!(
        directory < made && announced < synced && synced < made,
        "{directory} {announced} {synced} {made}"
    );
}

/// A killed run that had set readahead to what `word` says.
#[track_caller]
fn killed_with_readahead(place: &Place, state: &Path, setting: &Path, word: &str, kib: u64) {
    let worker = cheating_worker("hangs-at-start");
    let mut command = place.command(&[&SMALL[..], &[word, "--worker-command", &worker]].concat());
    command.env("PAGEWISE_STATE_DIR", state).process_group(0);
    let mut child = command.spawn().expect("start");
    wait_for("another readahead", || (kib_of(setting) == kib).then_some(()));
    child.kill().expect("kill");
    child.wait().expect("wait");
    wait_for("its workers are gone", || {
        let running = fs::read_dir("/proc").expect("list").flatten().filter(|entry| {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let mark = format!("PAGEWISE_STATE_DIR={}", state.display());
            environment.split(|byte| *byte == 0).any(|line| line == mark.as_bytes())
        });
        (running.count() == 0).then_some(())
    });
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    assert_eq!(kib_of(setting), kib, "the kill left it");
}

fn kib_of(setting: &Path) -> u64 {
    fs::read_to_string(setting).expect("the setting").trim().parse().expect("a number")
}

#[test]
fn readahead_becomes_what_it_was_before_the_first_of_two_killed_runs() {
    const TEST: &str = "readahead_becomes_what_it_was_before_the_first_of_two_killed_runs";
    if !in_own_mounts(TEST, OWN_FILESYSTEM) {
        return;
    }
    let place = Place::new();
    let setting = Readahead::of(&place.path()).expect("a setting").path().to_path_buf();
    fs::write(&setting, "2560").expect("write");
    let states = ["a", "b"].map(|name| place.root().join(name));
    killed_with_readahead(&place, &states[0], &setting, "--readahead=128KiB", 128);
    killed_with_readahead(&place, &states[1], &setting, "--readahead=256KiB", 256);
    for state in &states {
        with_state(&place, state, &["clean"]).expect_code(0);
        assert_eq!(kib_of(&setting), 2560);
    }
    assert!(!Path::new("/run/pagewise").exists(), "nothing is left to be noted down");
    // In the other order, too.
    killed_with_readahead(&place, &states[0], &setting, "--readahead=128KiB", 128);
    killed_with_readahead(&place, &states[1], &setting, "--readahead=256KiB", 256);
    with_state(&place, &states[1], &["clean"]).expect_code(0);
    with_state(&place, &states[0], &["clean"]).expect_code(0);
    assert_eq!(kib_of(&setting), 2560);
    place.expect_no_process();
}

#[test]
fn readahead_of_another_boot_or_of_somebody_else_is_left_alone() {
    const TEST: &str = "readahead_of_another_boot_or_of_somebody_else_is_left_alone";
    if !in_own_mounts(TEST, OWN_FILESYSTEM) {
        return;
    }
    let place = Place::new();
    let setting = Readahead::of(&place.path()).expect("a setting").path().to_path_buf();
    fs::write(&setting, "2560").expect("write");
    killed_with_readahead(&place, &place.state(), &setting, "--readahead=128KiB", 128);
    let notes: Vec<PathBuf> =
        fs::read_dir("/run/pagewise").expect("list").map(|entry| entry.expect("entry").path()).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let note = fs::read_to_string(&notes[0]).expect("read");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("read");
    assert!(note.starts_with(boot.trim()), "{note}");
    fs::write(&notes[0], note.replace(boot.trim(), "0ff0ff0f-0ff0-0ff0-0ff0-0ff0ff0ff0ff")).expect("write");
    place.run(&["clean"]).expect_code(0);
    assert_eq!(kib_of(&setting), 128, "after a boot nothing of ours is in force");
    assert!(!notes[0].exists());
    // A line of a journal leads to no setting, whoever wrote it.
    let line =
        format!("{{\"made\":\"setting\",\"path\":\"{}\",\"before\":0,\"set\":131072}}\n", setting.display());
    fs::write(place.state().join("journal"), line).expect("write");
    place.run(&["clean"]).expect_code(0);
    assert_eq!(kib_of(&setting), 128);
}

#[test]
fn clean_finds_what_was_left_wherever_a_run_could_leave_it() {
    let place = Place::new();
    let state_home = place.root().join("state-home");
    let (home, temporary) = (place.root().join("home"), place.root().join("temporary"));
    for directory in [&state_home, &home, &temporary] {
        fs::create_dir(directory).expect("directory");
    }
    let settle = |command: &mut Command, with_state_home: bool, home: &Path| {
        command.env_remove("PAGEWISE_STATE_DIR").env("HOME", home).env("TMPDIR", &temporary);
        match with_state_home {
            true => command.env("XDG_STATE_HOME", &state_home),
            false => command.env_remove("XDG_STATE_HOME"),
        };
    };
    let mut left = vec![killed(&place, &place.path(), |_| ())];
    for (index, with_state_home) in [true, false].into_iter().enumerate() {
        let directory = place.file(&format!("data-{index}"));
        fs::create_dir(&directory).expect("directory");
        left.push(killed(&place, &directory, |command| settle(command, with_state_home, &home)));
    }
    assert!(has_journal(&home.join(".local/state/pagewise")) && has_journal(&state_home.join("pagewise")));
    // What was no state directory keeps nobody from cleaning.
    let other = temporary.join(format!("pagewise-{}", rustix::process::geteuid().as_raw()));
    fs::create_dir(&other).expect("directory");
    mode(&other, 0o755);
    fs::write(other.join("letters"), "").expect("write");
    let mut command = place.command(&["clean"]);
    settle(&mut command, true, &home);
    command.env("PAGEWISE_STATE_DIR", place.state());
    let cleaned = place.finish(command.spawn().expect("start")).expect_code(0);
    for dataset in &left {
        assert!(cleaned.stdout.contains(&format!("removed {}\n", dataset.display())), "{cleaned:?}");
        assert!(!dataset.exists());
    }
    // Nothing is made where nothing was.
    assert_eq!(fs::read_dir(&temporary).expect("list").count(), 1);
    assert_eq!(fs::read_dir(&other).expect("list").count(), 1);
}

#[test]
fn a_chosen_state_home_is_not_passed_over_silently() {
    let place = Place::new();
    let (chosen, home) = (place.root().join("open"), place.root().join("home"));
    for directory in [&chosen, &home] {
        fs::create_dir(directory).expect("directory");
    }
    mode(&chosen, 0o777);
    let mut command = place.command(&SMALL);
    command.env_remove("PAGEWISE_STATE_DIR").env("HOME", &home).env("XDG_STATE_HOME", &chosen);
    // On a busy machine it may lack samples.
    let run = place.finish(command.spawn().expect("start"));
    let note = format!(
        "note: XDG_STATE_HOME cannot be used ({} can be written by others): the state is in {}",
        chosen.display(),
        home.join(".local/state/pagewise").display()
    );
    assert!(run.stderr.contains(&note), "{run:?}");
    let said = |chosen: &Path| {
        let mut command = place.command(&["clean"]);
        command.env_remove("PAGEWISE_STATE_DIR").env("HOME", &home).env("XDG_STATE_HOME", chosen);
        place.finish(command.spawn().expect("start")).expect_code(0).stderr
    };
    let missing = place.root().join("missing");
    let reasons = [
        (chosen.as_path(), format!("{} can be written by others", chosen.display())),
        (missing.as_path(), format!("access {}: No such file or directory (os error 2)", missing.display())),
        (Path::new("relative"), "'relative' is not an absolute path".to_string()),
    ];
    for (chosen, reason) in reasons {
        let note = format!("note: XDG_STATE_HOME cannot be used ({reason}): what runs left is ");
        assert!(said(chosen).contains(&note), "{}", said(chosen));
    }
    mode(&chosen, 0o755);
    for usable in [chosen.as_path(), Path::new("")] {
        assert_eq!(said(usable), "", "an empty one counts as none");
    }
    let mut command = place.command(&SMALL);
    command.env_remove("PAGEWISE_STATE_DIR").env("HOME", &home).env("XDG_STATE_HOME", "relative");
    let run = place.finish(command.spawn().expect("start"));
    let note = "note: XDG_STATE_HOME cannot be used ('relative' is not an absolute path): the state is in ";
    assert!(run.stderr.contains(note), "{run:?}");
}

/// A home on a network filesystem: each host has its own right to run, and none sweeps what another
/// holds.
#[test]
fn hosts_that_share_a_home_do_not_hinder_each_other() {
    if !support::is_root() {
        return;
    }
    let homes = Place::new();
    let home = homes.root().join("home");
    fs::create_dir(&home).expect("directory");
    let on = |host: &str, place: &Place, words: &[&str]| {
        let mut command = support::on_host(host, words);
        place.settle(&mut command);
        // Root's home is that of its account.
        command.env_remove("PAGEWISE_STATE_DIR").env("XDG_STATE_HOME", &home);
        command.spawn()
    };
    let (first, other, same) = (Place::new(), Place::new(), Place::new());
    let mut words = SMALL.to_vec();
    words.retain(|word| !word.starts_with("--trial-rounds") && !word.starts_with("--rounds"));
    let long = [&words[..], &["--rounds=2000"]].concat();
    let Ok(mut held) = on("node-a", &first, &long) else { return skipped("unshare", "there is no unshare") };
    let has_begun = || match held.try_wait().expect("wait") {
        Some(status) => Some(status.code()),
        None => (support::whole_lines(&first.file("run.jsonl")).len() > 3).then_some(Some(0)),
    };
    if support::wait_for("samples", has_begun) == Some(77) {
        return skipped("uts-namespace", "the name of the host cannot be set");
    }
    let dataset = first.traces();
    assert_eq!(dataset.len(), 1, "{dataset:?}");
    let beside = other.finish(on("node-b", &other, &SMALL).expect("unshare"));
    beside.expect_code_for(&load(&other.file("run.jsonl")));
    other.finish(on("node-b", &other, &["clean"]).expect("unshare")).expect_code(0);
    let refused = same.finish(on("node-a", &same, &SMALL).expect("unshare"));
    support::expect_message(&refused, 4, "another run is measuring");
    assert!(dataset[0].exists(), "it is another host's");
    let hosts: Vec<String> = fs::read_dir(home.join("pagewise"))
        .expect("list")
        .flatten()
        .map(|host| host.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        ["node-a.", "node-b."].iter().all(|name| hosts.iter().any(|host| host.starts_with(name))),
        "{hosts:?}"
    );
    let pid = rustix::process::Pid::from_raw(held.id() as i32).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("kill");
    first.finish(held).expect_code(130);
    let run = load(&first.file("run.jsonl"));
    assert_eq!(run.header.environment.host_name.as_deref(), Some("node-a"));
    assert!(run.header.environment.boot_id.is_some() && run.header.environment.kernel_command_line.is_some());
}
