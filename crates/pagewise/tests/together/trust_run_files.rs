//! A run file is data: nothing in it is executed, what it touches is confirmed where somebody else
//! could have written it, no file that was there is ever written to or removed, and two processes
//! never write one.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use crate::support::{
    self, NOBODY, Place, cheating_worker, expect_message, expect_refused, expect_whole, in_own_mounts,
    is_root, load, misbehaving_worker, wait_for, whole_lines,
};
use pagewise_model::run::{Header, Record};
use pagewise_model::{Bytes, DeviceCap, Method, Role, Source};
use rustix::process::{Pid, Signal};

const SMALL: [&str; 9] = [
    "run",
    "read",
    "--workload=random-read",
    "--methods=pread",
    "--threads=1",
    "--cache=warm",
    "--trial-rounds=4",
    "--sample=1ms",
    "--no-ceilings",
];
const RESUME: [&str; 4] = ["run", "--resume", "--out", "stopped.jsonl"];

/// A place with a run that stopped before its end, `stopped.jsonl`, whose header `change` may alter
/// as anybody can.
fn stopped(change: impl FnOnce(&mut Header)) -> Place {
    let place = Place::new();
    let finished = place.run(&[&SMALL[..], &["--file-size=4MiB", "--out=stopped.jsonl"]].concat());
    finished.expect_code_for(&load(&place.file("stopped.jsonl")));
    alter(&place, change);
    place
}

fn alter(place: &Place, change: impl FnOnce(&mut Header)) {
    let path = place.file("stopped.jsonl");
    let lines = whole_lines(&path);
    let mut header = load(&path).header;
    change(&mut header);
    let text = Record::Header(Box::new(header)).to_line() + &lines[1..lines.len() - 4].concat();
    fs::write(path, text).expect("write");
}

/// Has the first measured cell done by a method of another worker.
fn with_method(header: &mut Header, method: &str) {
    let mut cells = header.plan.cells.iter_mut().filter(|cell| cell.role == Role::Measured);
    cells.next().expect("a cell").method = method.parse::<Method>().expect("a method");
}

/// Refused with both sentences; neither the file nor anything else changes.
#[track_caller]
fn expect_untouched(place: &Place, words: &[&str], sentences: &[&str]) {
    let (before, entries) = (fs::read(place.file("stopped.jsonl")).expect("read"), place.entries());
    let finished = place.run(words);
    sentences.iter().for_each(|sentence| expect_refused(&finished, sentence));
    assert!(fs::read(place.file("stopped.jsonl")).expect("read") == before, "it was written to");
    assert_eq!(place.entries(), entries);
}

fn script(place: &Place, name: &str, text: &str) {
    let path = place.file(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("directory");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("write");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmod");
}

#[test]
fn no_command_of_a_run_file_is_executed() {
    let place = stopped(|header| {
        with_method(header, "x/get");
        header.plan.workers.commands.insert("x".into(), "sh -c 'id > PWNED'".into());
    });
    let line = r"pagewise run --resume --out stopped.jsonl --worker 'x=sh -c '\''id > PWNED'\'''";
    let said =
        "stopped.jsonl cannot be resumed: the worker or the JVM differs from the one that the run began with";
    expect_untouched(&place, &RESUME, &[said, line]);
    for other in
        ["--worker=x=true", "--worker=y=true", "--jdk=.", "--jvm-args=-Xmx1g", "--worker-command=true"]
    {
        expect_untouched(&place, &[&RESUME[..], &[other]].concat(), &[said, line]);
    }
}

#[test]
fn no_jvm_of_a_run_file_is_executed() {
    let place = stopped(|header| {
        with_method(header, "jvm/pread");
        let options = [("jdk", "evil"), ("jvm_args", "-XX:OnError=id")];
        header.plan.workers.options = options.map(|(name, value)| (name.into(), value.into())).into();
    });
    let evil = "id > ../PWNED; id > PWNED";
    script(&place, "evil/bin/java", evil);
    script(&place, "evil/bin/javac", evil);
    let line = "pagewise run --resume --out stopped.jsonl --jdk evil --jvm-args -XX:OnError=id";
    expect_untouched(&place, &RESUME, &[line]);
    expect_untouched(&place, &[&RESUME[..], &["--jdk=evil"]].concat(), &[line]);
    assert!(!place.root().join("PWNED").exists());
}

#[test]
fn what_is_to_be_typed_is_shown_harmless() {
    let place = stopped(|header| {
        with_method(header, "x/get");
        header.plan.workers.commands.insert("x".into(), "a\u{1b}]0;t\u{7}\nb\u{202e}".into());
    });
    let line = r"--worker $'x=a\U0000001b]0;t\U00000007\U0000000ab\U0000202e'";
    expect_untouched(&place, &RESUME, &[line]);
}

#[test]
fn a_run_with_a_worker_is_resumed_with_the_line_that_is_printed() {
    let place = Place::new();
    let worker = format!("--worker=mine={}", misbehaving_worker("honest"));
    let words = [&SMALL[..], &["--file-size=4MiB", "--out=stopped.jsonl", "--rounds=15", "--stall", &worker]];
    let mut words = words.concat();
    words.retain(|word| *word != "--methods=pread" && !word.starts_with("--trial"));
    words.push("--methods=pread,mine/pread");
    let child = place.command(&words).spawn().expect("start");
    let path = place.file("stopped.jsonl");
    wait_for("samples", || (whole_lines(&path).len() > 3).then_some(()));
    let pid = Pid::from_raw(child.id() as i32).expect("a process id");
    rustix::process::kill_process(pid, Signal::INT).expect("kill");
    let finished = place.finish(child).expect_code(130);
    let line = finished.stderr.lines().find_map(|line| line.split_once("Finish the run with: pagewise "));
    let line = line.unwrap_or_else(|| panic!("{finished:?}")).1.to_string();
    assert!(line.contains("--worker 'mine="), "{line}");
    expect_untouched(&place, &RESUME, &[&line]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("exec {} {line}", support::PAGEWISE)]);
    place.settle(&mut shell);
    let finished = place.finish(shell.spawn().expect("start"));
    let run = load(&path);
    finished.expect_code_for(&run);
    expect_whole(&run);
    assert_eq!(run.resumptions, 1);
    place.expect_no_trace();
}

#[test]
fn a_run_file_that_others_can_write_is_confirmed_by_its_user_and_refused_by_root() {
    if !is_root() {
        return;
    }
    let place = stopped(|header| header.plan.drop_caches = true);
    let path = place.file("stopped.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("chmod");
    let refused = "stopped.jsonl cannot be resumed by root: stopped.jsonl can be written by others; copy it";
    expect_untouched(&place, &RESUME, &[refused]);
    chown(&path, Some(NOBODY), Some(NOBODY)).expect("chown");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("chmod");
    let refused =
        "stopped.jsonl cannot be resumed by root: stopped.jsonl belongs to user 65534, not to user 0";
    expect_untouched(&place, &RESUME, &[refused]);

    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("chmod");
    for name in ["lock", "journal"] {
        let _ = fs::remove_file(place.state().join(name));
    }
    let directory = place.path().canonicalize().expect("a path");
    let as_nobody = |more: &[&str]| {
        let mut command = place.command_as(NOBODY, &[&RESUME[..], more].concat())?;
        Some(place.finish(command.spawn().expect("start")))
    };
    let line =
        format!("pagewise run --resume --out stopped.jsonl --dir {} --drop-caches", directory.display());
    let before = fs::read(&path).expect("read");
    for more in [&[][..], &["--dir=."], &["--drop-caches"]] {
        let Some(finished) = as_nobody(more) else { return };
        expect_refused(
            &finished,
            "stopped.jsonl cannot be resumed as it is: stopped.jsonl can be written by others",
        );
        expect_refused(&finished, &line);
    }
    for more in [&["--dir=/"][..], &["--file=stopped.jsonl"], &["--dir=.", "--readahead=128KiB"]] {
        let finished = as_nobody(more).expect("as above");
        expect_refused(
            &finished,
            "the typed directory, file or settings differ from those of the run: pagewise run",
        );
    }
    assert!(fs::read(&path).expect("read") == before, "it was written to");
    let finished = as_nobody(&["--dir=.", "--drop-caches"]).expect("as above");
    let run = load(&path);
    finished.expect_code_for(&run);
    expect_whole(&run);
    place.expect_no_trace();
}

#[test]
fn what_a_run_file_sets_is_shown_and_compared() {
    let place = stopped(|header| {
        for cell in &mut header.plan.cells {
            let host_settings = &mut cell.conditions.host_settings;
            host_settings.device_cap = Some(DeviceCap { read_iops: Some(7), read_bytes_per_second: None });
            host_settings.kernel.readahead_bytes = Some(Bytes(64 << 10));
        }
        let identity =
            pagewise_model::plan::FileIdentity { device: 0, inode: 0, file_bytes: Bytes(1), modified_ns: 0 };
        header.plan.source = Source::File {
            path: "/etc/a b".into(),
            evict: true,
            identity,
            others: Vec::new(),
            directory: None,
        };
    });
    let line = "pagewise run --resume --out stopped.jsonl --file '/etc/a b' --device-cap read-iops=7 --readahead 64KiB --evict";
    for other in
        ["--device-cap=microsd", "--readahead=128KiB", "--drop-caches", "--dir=.", "--file=stopped.jsonl"]
    {
        expect_untouched(&place, &[&RESUME[..], &[other]].concat(), &["differ from those of the run", line]);
    }
}

#[test]
fn root_resumes_nothing_that_another_user_could_put_there() {
    if !is_root() {
        return;
    }
    let place = stopped(|_| ());
    let refuse = |out: &str, sentence: &str| {
        let before = fs::read(place.file("stopped.jsonl")).expect("read");
        let finished = place.run(&["run", "--resume", "--out", out]);
        expect_refused(&finished, sentence);
        assert!(fs::read(place.file("stopped.jsonl")).expect("read") == before, "it was written to");
    };
    symlink("stopped.jsonl", place.file("link.jsonl")).expect("link");
    refuse("link.jsonl", "link.jsonl is a link: name the file itself");
    fs::hard_link(place.file("stopped.jsonl"), place.file("second.jsonl")).expect("link");
    refuse("stopped.jsonl", "stopped.jsonl has 2 names, one of which may be another user's");
    fs::remove_file(place.file("second.jsonl")).expect("remove");
    // A directory in which others may exchange it: by its mode, by its owner, by that of one above
    // it.
    let path = place.path();
    let absolute = format!("{}/stopped.jsonl", path.display());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("chmod");
    refuse("stopped.jsonl", "work can be written by others");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
    chown(&path, Some(NOBODY), None).expect("chown");
    refuse(&absolute, "work belongs to user 65534, not to user 0");
    chown(&path, Some(0), None).expect("chown");
    chown(place.root(), Some(NOBODY), None).expect("chown");
    refuse("stopped.jsonl", "belongs to user 65534, not to user 0");
    chown(place.root(), Some(0), None).expect("chown");
    // Where the sticky bit keeps others from exchanging it, it goes on.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).expect("chmod");
    let finished = place.run(&RESUME);
    finished.expect_code_for(&load(&place.file("stopped.jsonl")));
    expect_whole(&load(&place.file("stopped.jsonl")));
}

#[test]
fn a_file_that_was_there_is_neither_written_nor_removed() {
    let place = Place::new();
    let path = place.write("mine.txt", "");
    let inode = fs::metadata(&path).expect("stat").ino();
    let finished = place.run(&[&SMALL[..], &["--file-size=4MiB", "--out=mine.txt"]].concat());
    expect_refused(&finished, "mine.txt exists: continue it with --resume or name another --out");
    let metadata = fs::metadata(&path).expect("stat");
    assert_eq!((metadata.ino(), metadata.len()), (inode, 0));
    // Another user's, in a directory that all share.
    if is_root() {
        chown(&path, Some(NOBODY), Some(NOBODY)).expect("chown");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).expect("chmod");
        let finished = place.run(&[&SMALL[..], &["--file-size=4MiB", "--out=mine.txt"]].concat());
        expect_refused(&finished, "mine.txt exists");
        assert_eq!(fs::metadata(&path).expect("stat").len(), 0);
    }
}

/// A filesystem of its own at `/dev/shm`, with no room for a header.
const FULL: &str = "mount -t tmpfs -o size=64k tmpfs /dev/shm";

#[test]
fn a_header_that_does_not_fit_removes_nothing_but_itself() {
    if !in_own_mounts("a_header_that_does_not_fit_removes_nothing_but_itself", FULL) {
        return;
    }
    let place = Place::new();
    let full = Path::new("/dev/shm");
    fs::write(full.join("keep.txt"), "").expect("write");
    let _ = fs::write(full.join("filler"), vec![1; 128 << 10]);
    let names = || fs::read_dir(full).expect("list").count();
    assert_eq!(names(), 2);
    let words = |out: &'static str| [&SMALL[..], &["--file-size=4MiB", "--out", out]].concat();
    expect_refused(&place.run(&words("/dev/shm/keep.txt")), "keep.txt exists");
    let finished = place.run(&words("/dev/shm/new.jsonl"));
    assert!(finished.stderr.contains("the run file /dev/shm/new.jsonl cannot be written"), "{finished:?}");
    assert_eq!(names(), 2, "a part of the header stays, or a file that was there is gone");
    place.expect_no_trace();
}

#[test]
fn a_live_run_is_resumed_by_nobody() {
    let place = Place::new();
    let worker = cheating_worker("hangs-at-start");
    let words = ["--file-size=4MiB", "--out=run.jsonl", "--worker-command", &worker];
    let child = place.command(&[&SMALL[..], &words].concat()).spawn().expect("start");
    let path = place.file("run.jsonl");
    wait_for("the run measures", || (!place.traces().is_empty() && path.exists()).then_some(()));
    let before = fs::read(&path).expect("read");
    // With a state directory of its own, as root has beside a user.
    let other = Place::new();
    for more in [&["--worker-command", &*worker][..], &[]] {
        let out = path.display().to_string();
        let finished = other.run(&[&["run", "--resume", "--out", &out][..], more].concat());
        expect_message(&finished, 4, "run.jsonl is being written by another process");
        // The run itself may go on with its file.
        assert!(fs::read(&path).expect("read").starts_with(&before), "what stood in it is changed");
    }
    let pid = Pid::from_raw(child.id() as i32).expect("a process id");
    rustix::process::kill_process(pid, Signal::TERM).expect("kill");
    place.finish(child).expect_code(130);
    load(&path);
    place.expect_no_trace();
}

#[test]
fn of_many_runs_into_one_file_one_begins() {
    let place = Place::new();
    let worker = cheating_worker("hangs-at-start");
    let out = format!("--out={}", place.file("run.jsonl").display());
    let words = [&SMALL[..], &["--file-size=1MiB", &out, "--worker-command", &worker]].concat();
    let others: Vec<Place> = (0..4).map(|_| Place::new()).collect();
    let mut children: Vec<_> =
        others.iter().map(|other| Some(other.command(&words).spawn().expect("start"))).collect();
    let ended = wait_for("all but one are refused", || {
        let ended: Vec<bool> = children
            .iter_mut()
            .map(|child| child.as_mut().expect("not taken").try_wait().expect("wait").is_some())
            .collect();
        (ended.iter().filter(|ended| **ended).count() == 3).then_some(ended)
    });
    for ((other, child), ended) in others.iter().zip(&mut children).zip(ended) {
        let child = child.take().expect("not taken");
        if !ended {
            let pid = Pid::from_raw(child.id() as i32).expect("a process id");
            rustix::process::kill_process(pid, Signal::TERM).expect("kill");
            other.finish(child).expect_code(130);
        } else {
            expect_refused(&other.finish(child), "run.jsonl exists");
        }
        other.expect_no_trace();
    }
    assert_eq!(
        whole_lines(&place.file("run.jsonl")).iter().filter(|line| line.contains("\"header\"")).count(),
        1
    );
}

#[test]
fn a_name_that_is_taken_in_any_way_is_passed_over() {
    let place = Place::new();
    let first = place.run(&[&SMALL[..], &["--file-size=4MiB", "--no-html"]].concat());
    let name = place.entries().pop_first().expect("a run file");
    let run = load(&place.file(&name));
    first.expect_code_for(&run);
    // DATE-TIME-HOST-QUESTION: every second that a run may begin in is taken.
    let host =
        run.header.environment.host_name.expect("a name").split('.').next().expect("a label").to_string();
    let now = run.header.environment.started_unix_s;
    let name_at = |second: u64| format!("pagewise-{}-{host}-read", pagewise_model::date::compact_utc(second));
    assert_eq!(name, format!("{}.jsonl", name_at(now)));
    let owned = is_root();
    for name in (now + 1..now + 300).map(name_at) {
        symlink("nowhere", place.file(&format!("{name}.jsonl"))).expect("link");
        place.write(&format!("{name}-2.jsonl"), "");
        fs::create_dir(place.file(&format!("{name}-3.jsonl"))).expect("directory");
        if owned {
            std::os::unix::fs::lchown(place.file(&format!("{name}.jsonl")), Some(NOBODY), None)
                .expect("chown");
        }
    }
    if owned {
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).expect("chmod");
    }
    let before = place.entries();
    // A clock that was not that of a second ago.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let finished = place.run(&[&SMALL[..], &["--file-size=4MiB", "--no-html"]].concat());
    let made: Vec<String> = place.entries().difference(&before).cloned().collect();
    assert!(made.len() == 1 && made[0].ends_with("-4.jsonl"), "{made:?}");
    let run = load(&place.file(&made[0]));
    finished.expect_code_for(&run);
    assert!(run.is_complete());
    assert!(!place.file("nowhere").exists());
    let mode = fs::metadata(place.file(&made[0])).expect("stat").mode();
    assert_eq!(mode & 0o022, 0, "nobody else writes it");
}
