//! Wrong use is refused in one sentence, with exit code 2, and nothing is created.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::furnished::furnished;
use crate::support::words::SMALL;
use crate::support::{
    self, PAGEWISE, Place, advise, cheating_worker, expect_message, expect_refused, load, refuse_all,
    wait_for,
};
use pagewise_model::run::{Header, Record};
use rustix::process::{Pid, Signal};

#[test]
fn block_devices_are_not_read() {
    let device = fs::read_dir("/sys/class/block")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| Path::new("/dev").join(entry.file_name()))
        .find(|path| path.exists());
    let Some(device) = device else {
        return support::skipped("block-device", "this machine shows none");
    };
    let place = Place::new();
    let finished = place.run(&["run".into(), "read".into(), "--file".into(), device]);
    expect_refused(&finished, "is a block device: pagewise reads regular files");
    assert!(place.entries().is_empty());
}

#[test]
fn what_another_user_may_not_touch() {
    if !rustix::process::geteuid().is_root() {
        return support::skipped("root", "only root can become another user");
    }
    let place = Place::on(&std::env::temp_dir());
    let secret = place.root().join("secret");
    fs::write(&secret, "mine").expect("write");
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("permissions");
    let Some(mut command) = place.command_as(65_534, &["run", "read", "--file", "../secret"]) else { return };
    let finished = place.finish(command.spawn().expect("start"));
    expect_refused(&finished, "../secret is not readable by this user");
    let mut command = place.command_as(65_534, &["run", "read", "--dir", ".."]).expect("as above");
    let finished = place.finish(command.spawn().expect("start"));
    expect_refused(&finished, "this user may not make files in ..");
    assert!(place.entries().is_empty());
}

#[test]
fn too_little_disk_is_refused_before_the_first_byte() {
    let place = Place::new();
    let finished = place.run(&["run", "read", "--file-size", "900TiB"]);
    expect_refused(&finished, "a dataset of 900 TiB does not fit");
    assert!(finished.stderr.contains("are free"), "{finished:?}");
    assert!(place.entries().is_empty());
    let planned = place.run(&["run", "read", "--file-size", "900TiB", "--dry-run"]);
    assert_eq!(planned.code(), 0, "{planned:?}");
    let note = "note: a run of this is refused: a dataset of 900 TiB does not fit";
    assert!(planned.stderr.contains(note), "{planned:?}");

    // A filesystem of 24 MiB in a mount namespace of its own; 16 MiB of it stay free.
    let mounted = place.file("small");
    fs::create_dir(&mounted).expect("directory");
    let script =
        "mount -t tmpfs -o size=24m none small || exit 77; shift 0; \"$@\"; code=$?; ls -A small; exit $code";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", PAGEWISE, "run", "read", "--dir", "small"]);
    command.args(["--file-size", "12MiB"]);
    place.settle(&mut command);
    let Ok(child) = command.spawn() else {
        return support::skipped("unshare", "there is no unshare");
    };
    let finished = place.finish(child);
    if finished.code() == 77 || finished.stderr.starts_with("unshare: ") {
        return support::skipped("mount", "tmpfs cannot be mounted");
    }
    // Whatever were left in it would stand on stdout.
    expect_refused(&finished, "a dataset of 12 MiB does not fit");
    assert!(finished.stderr.contains("24 MiB are free, and 16 MiB are to be left free"), "{finished:?}");
}

#[test]
fn a_second_run_is_refused_and_the_first_is_named() {
    let place = Place::new();
    let worker = cheating_worker("hangs-at-start");
    let mut first =
        place.command(&[&SMALL[..], &["--out=first.jsonl", "--worker-command", &worker]].concat());
    let first = first.spawn().expect("start");
    wait_for("the first run measures", || {
        (!place.traces().is_empty() && place.processes().len() > 1).then_some(())
    });
    let before = place.entries();
    // Another place with the same state: what it prints goes elsewhere.
    let second = Place::new();
    let mut command = second.command(&[&SMALL[..], &["--out=second.jsonl"]].concat());
    command.env("PAGEWISE_STATE_DIR", place.state());
    let finished = second.finish(command.spawn().expect("start"));
    expect_message(&finished, 4, &format!("another run is measuring (pid {}, begun in ", first.id()));
    assert!(finished.stderr.contains(&*place.path().to_string_lossy()), "{finished:?}");
    assert!(second.entries().is_empty());
    // It waits as long as it is asked to, until it is stopped, or until the first ends.
    let waiting = |wait: &str| {
        let mut command = second.command(&[&SMALL[..], &["--out=second.jsonl", wait]].concat());
        command.env("PAGEWISE_STATE_DIR", place.state());
        let child = command.spawn().expect("start");
        let said =
            || fs::read_to_string(second.root().join("stderr")).ok().filter(|text| text.contains("waiting"));
        (child, wait_for("it waits", said))
    };
    let (child, said) = waiting("--wait=300ms");
    let named = format!("another run to end (pid {}, begun in ", first.id());
    assert!(said.starts_with(&format!("waiting up to 300 ms for {named}")), "{said}");
    let finished = second.finish(child).expect_code(4);
    assert!(finished.stderr.contains("and still is after 300 ms: wait for it"), "{finished:?}");
    let mut command = second.command(&advise(&["--wait=300ms"], &["cat"]));
    command.env("PAGEWISE_STATE_DIR", place.state());
    let finished = second.finish(command.spawn().expect("start")).expect_code(4);
    assert!(finished.stderr.contains("and still is after 300 ms: wait for it"), "{finished:?}");
    let stop = |id: u32, signal| {
        let pid = Pid::from_raw(id as i32).expect("a process id");
        rustix::process::kill_process(pid, signal).expect("kill");
    };
    let (child, _) = waiting("--wait=10min");
    stop(child.id(), Signal::INT);
    let finished = second.finish(child).expect_code(130);
    assert!(finished.stderr.ends_with("stopped while waiting: nothing was measured\n"), "{finished:?}");
    assert!(second.entries().is_empty());
    assert_eq!(place.entries(), before, "the live run keeps its dataset");
    let (child, _) = waiting("--wait=10min");
    stop(first.id(), Signal::TERM);
    place.finish(first).expect_code(130);
    second.finish(child);
    assert!(load(&second.file("second.jsonl")).is_complete());
    place.expect_no_trace();
}

#[test]
fn a_state_directory_that_cannot_be_used_is_named() {
    let place = Place::new();
    let file = place.root().join("occupied");
    fs::write(&file, "").expect("write");
    let mut command = place.command(&SMALL);
    command.env("PAGEWISE_STATE_DIR", &file);
    let finished = place.finish(command.spawn().expect("start"));
    expect_refused(&finished, "PAGEWISE_STATE_DIR");
    assert!(place.entries().is_empty());
}

/// A place with a complete run of its own dataset, or of `data`.
fn with_run(own_file: bool) -> Place {
    let place = furnished();
    let mut arguments = SMALL.to_vec();
    arguments.push("--out=run.jsonl");
    if own_file {
        arguments.retain(|argument| !argument.starts_with("--file-size"));
        arguments.push("--file=data");
    }
    let finished = place.run(&arguments);
    finished.expect_code_for(&load(&place.file("run.jsonl")));
    assert!(load(&place.file("run.jsonl")).is_complete());
    place
}

/// The lines of the run file of [`with_run`], each with its newline.
fn lines(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.file("run.jsonl")).expect("read");
    text.split_inclusive('\n').map(str::to_string).collect()
}

#[test]
fn run_files_that_are_none() {
    let place = with_run(false);
    let lines = lines(&place);
    assert!(lines.len() > 9);
    let whole = lines.concat();
    let header = load(&place.file("run.jsonl")).header;
    let without = |gone: usize| {
        let kept = lines.iter().enumerate().filter(|(index, _)| *index != gone);
        kept.map(|(_, line)| &**line).collect::<String>()
    };
    place
        .write("cut-inside.jsonl", without(3).replacen(&lines[4], &lines[4][..lines[4].len() / 2], 1) + "\n");
    let sample = lines.iter().position(|line| line.contains("\"kind\":\"sample\"")).expect("a sample");
    place.write("line-missing.jsonl", without(sample));
    place.write("no-header.jsonl", without(0));
    place.write("only-torn.jsonl", &lines[0][..lines[0].len() / 2]);
    place.write("digit.jsonl", whole.replacen("\"round\":0", "\"round\":1", 1));
    place.write("two-headers.jsonl", lines[0].clone() + &whole);
    place.write("garbage.jsonl", lines[..5].concat() + "garbage\n" + &lines[5..].concat());
    place.write("behind-end.jsonl", whole.clone() + &lines[2]);
    place.write(
        "zeros.jsonl",
        lines[..5].concat().into_bytes().into_iter().chain([0; 512]).chain([b'\n']).collect::<Vec<u8>>(),
    );
    let other = Header { schema: 99, ..header };
    place.write("schema.jsonl", Record::Header(Box::new(other)).to_line() + &lines[1..].concat());
    place.write("binary.jsonl", (0..4096u32).map(|word| (word * 37) as u8).collect::<Vec<u8>>());
    fs::remove_dir_all(place.state()).expect("remove");
    fs::create_dir(place.state()).expect("directory");
    refuse_all(
        &place,
        &[
            ("report none.jsonl", "the run file none.jsonl cannot be opened: No such file"),
            ("report empty", "empty, line 1: the file is empty: it has no header"),
            ("report directory", "directory: the directory has no run files (*.jsonl)"),
            ("report /dev/null", "/dev/null is not a run file: it is not a regular file"),
            ("report binary.jsonl", "binary.jsonl, line 1: not a header of a pagewise run"),
            ("report data", "data, line 1: not a header of a pagewise run"),
            ("report only-torn.jsonl", "only-torn.jsonl, line 1: not a header of a pagewise run"),
            ("report no-header.jsonl", "no-header.jsonl, line 1: not a header of a pagewise run"),
            ("report cut-inside.jsonl", "cut-inside.jsonl, line 4: "),
            ("report line-missing.jsonl", ": lines are missing"),
            (
                "report digit.jsonl",
                "the record does not match its check: the file was changed after it was written",
            ),
            ("report two-headers.jsonl", "two-headers.jsonl, line 2: a second header"),
            ("report garbage.jsonl", "garbage.jsonl, line 6: not a record of a run"),
            ("report behind-end.jsonl", "a record after the end of the run"),
            ("report zeros.jsonl", "zeros.jsonl, line 6: not a record of a run"),
            ("report schema.jsonl", "line 1: the file has schema 99: this pagewise reads schema 1"),
            ("report run.jsonl garbage.jsonl", "garbage.jsonl, line 6"),
            ("report run.jsonl --json --csv", "cannot be used with"),
            ("report run.jsonl --csv --out run.jsonl", "run.jsonl exists: name another file"),
            ("report run.jsonl run.jsonl", "run.jsonl is named twice: name each run once"),
            ("report run.jsonl --csv --out none/out.csv", "none/out.csv cannot be written"),
            ("run --resume --out schema.jsonl", "the file has schema 99"),
            ("run --resume --out garbage.jsonl", "garbage.jsonl, line 6"),
            ("run --resume --out empty", "line 1: the file is empty"),
            ("run --resume --out directory", "directory"),
            ("run --resume --out none.jsonl", "the run file none.jsonl cannot be opened"),
        ],
    );
    assert_eq!(fs::read_to_string(place.file("run.jsonl")).expect("read"), whole, "a run file was changed");
}

#[test]
fn a_pipe_as_a_run_file_is_refused_without_waiting() {
    let place = furnished();
    expect_refused(&place.run(&["report", "pipe"]), "pipe is not a run file: it is not a regular file");
}

#[test]
fn a_torn_last_line_is_no_error() {
    let place = with_run(false);
    let lines = lines(&place);
    let torn = lines[..lines.len() - 1].concat();
    place.write("torn.jsonl", &torn[..torn.len() - 20]);
    let finished = place.run(&["report", "torn.jsonl", "--json"]);
    assert_eq!(finished.stderr, "");
    assert!(finished.judged()["cells"].is_array());
}

/// Writes `stopped.jsonl`: the run without its end, its header changed.
fn stopped(place: &Place, change: impl FnOnce(&mut Header)) -> String {
    let lines = lines(place);
    let mut header = load(&place.file("run.jsonl")).header;
    change(&mut header);
    let text = Record::Header(Box::new(header)).to_line() + &lines[1..lines.len() - 4].concat();
    place.write("stopped.jsonl", &text);
    text
}

#[test]
fn a_run_is_not_resumed_elsewhere_or_otherwise() {
    let place = with_run(false);
    type Change = fn(&mut Header);
    let changes: &[(Change, &str)] = &[
        (
            |header| header.environment.kernel = "2.6.32".into(),
            "the run was begun with kernel 2.6.32: here it is",
        ),
        (|header| header.environment.architecture = "vax".into(), "the run was begun with architecture vax"),
        (|header| header.environment.filesystem = "minix".into(), "the run was begun with filesystem minix"),
        (
            |header| header.environment.device_number = "1:99".into(),
            "the run was begun with device number 1:99",
        ),
        (|header| header.environment.device = Some("fd0".into()), "the run was begun with device fd0"),
        (|header| header.environment.cpus = 333, "the run was begun with 333 CPUs"),
        (
            |header| header.environment.pagewise_version = "0.0.0".into(),
            "the run was begun with pagewise version 0.0.0",
        ),
        (|header| header.worker_command = Some("/bin/other".into()), "the worker or the JVM differs"),
    ];
    for (change, sentence) in changes {
        let text = stopped(&place, change);
        let finished = place.run(&["run", "--resume", "--out", "stopped.jsonl"]);
        expect_refused(&finished, &format!("stopped.jsonl cannot be resumed: {sentence}"));
        assert_eq!(fs::read_to_string(place.file("stopped.jsonl")).expect("read"), text, "it was written to");
    }
    for choice in ["--methods=mmap", "--quick", "--rounds=9", "--memory=64MiB", "--seed=1"] {
        let text = stopped(&place, |_| ());
        let finished = place.run(&["run", "--resume", "--out", "stopped.jsonl", choice]);
        expect_refused(&finished, "--resume takes every choice from stopped.jsonl: leave the others out");
        assert_eq!(fs::read_to_string(place.file("stopped.jsonl")).expect("read"), text, "it was written to");
    }
    stopped(&place, |header| header.plan.question = "other".into());
    let finished = place.run(&["run", "read", "--resume", "--out", "stopped.jsonl"]);
    expect_refused(&finished, "stopped.jsonl has the question 'other', not 'read'");
    let gone = |header: &mut Header| {
        header.plan.source = pagewise_model::Source::Dataset { directory: "/nowhere".into() };
    };
    stopped(&place, gone);
    expect_refused(
        &place.run(&["run", "--resume", "--out", "stopped.jsonl"]),
        "the directory /nowhere does not exist",
    );
    // Without a change it goes on.
    stopped(&place, |_| ());
    let finished = place.run(&["run", "--resume", "--out", "stopped.jsonl"]);
    finished.expect_code_for(&load(&place.file("stopped.jsonl")));
    support::expect_whole(&load(&place.file("stopped.jsonl")));
    place.expect_no_trace();
}

#[test]
fn a_run_is_not_resumed_on_another_file() {
    let place = with_run(true);
    let text = stopped(&place, |_| ());
    // The same content, written again.
    place.write("data", vec![1; 256 << 10]);
    let finished = place.run(&["run", "--resume", "--out", "stopped.jsonl"]);
    expect_refused(&finished, "the file differs from the one that the run began with");
    fs::remove_file(place.file("data")).expect("remove");
    let finished = place.run(&["run", "--resume", "--out", "stopped.jsonl"]);
    expect_refused(&finished, "data does not exist");
    assert_eq!(fs::read_to_string(place.file("stopped.jsonl")).expect("read"), text);
}

#[test]
fn a_complete_run_has_nothing_to_resume() {
    let place = with_run(false);
    let before = fs::read(place.file("run.jsonl")).expect("read");
    let finished = place.run(&["run", "--resume", "--out", "run.jsonl"]);
    assert!(finished.stderr.contains("run.jsonl is complete: there is nothing to resume"), "{finished:?}");
    assert!(fs::read(place.file("run.jsonl")).expect("read") == before);
}
