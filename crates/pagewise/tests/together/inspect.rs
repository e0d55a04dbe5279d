//! `pagewise inspect` of programs whose accesses are known.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{self, PAGEWISE, Place, expect_refused, is_root, sees_calls, wait_for};

/// 128 pages of each of two files would do; this is what `known_accesses` says of itself.
const TOUCHED_PAGES: u64 = 256;

pub fn known_accesses() -> String {
    let directory = std::path::Path::new(PAGEWISE).parent().expect("a directory");
    directory.join("examples/known_accesses").display().to_string()
}

pub fn data(place: &Place) -> String {
    let bytes: Vec<u8> = (0..32u32 << 20).map(|index| (index >> 12) as u8).collect();
    place.write_synced("known.bin", bytes)
}

/// Inspect the known program as root; `None` where not all of it can be seen.
fn inspected_as_root(more: &[&str]) -> Option<(Place, Value, Value)> {
    if !is_root() || !sees_calls() {
        return None;
    }
    let place = Place::on(&std::env::temp_dir());
    let (program, path) = (known_accesses(), data(&place));
    let words = [&["inspect", "--json", "--out=seen.json", "--", &program, &path], more].concat();
    let (file, seen) = inspected(&place, place.command(&words));
    Some((place, file, seen))
}

/// Run a command that inspects the known program; what was seen of its file, and all of it.
fn inspected(place: &Place, mut command: Command) -> (Value, Value) {
    let finished = place.finish(command.spawn().expect("start")).expect_code(7);
    let text = fs::read_to_string(place.file("seen.json")).unwrap_or_else(|_| panic!("{finished:?}"));
    let seen: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&seen["complete"], &seen["lost_records"]), (&Value::Bool(true), &0.into()), "{seen}");
    (of_file(&seen), seen)
}

fn of_file(seen: &Value) -> Value {
    let is_ours = |file: &&Value| file["path"].as_str().is_some_and(|path| path.ends_with("known.bin"));
    seen["files"].as_array().expect("files").iter().find(is_ours).cloned().unwrap_or_else(|| panic!("{seen}"))
}

fn missing(seen: &Value, kind: &str) -> Option<String> {
    let missing = seen["missing"].as_array().expect("an array");
    let missing = missing.iter().find(|missing| missing["kind"] == kind)?;
    Some(missing["reason"].as_str().expect("a reason").to_string())
}

#[test]
fn a_known_program_is_given_back() {
    let Some((place, file, seen)) = inspected_as_root(&[]) else { return };
    let reads = &file["reads"];
    assert_eq!((&reads["count"], &reads["failed"]), (&400.into(), &0.into()), "{file}");
    assert_eq!(reads["bytes"], 300 * 4096 + 100 * 8192);
    assert_eq!(reads["sizes"], serde_json::json!([[4096, 300], [8192, 100]]));
    // The first read of each descriptor has none before it.
    assert_eq!((&reads["located"], &reads["in_order"]), (&398.into(), &99.into()));
    assert_eq!(reads["threads"], 2);
    let mapping = &file["mapping"];
    assert_eq!(mapping["faulted_pages"], TOUCHED_PAGES, "{mapping}");
    let faults = |kind: &str| mapping[kind].as_u64().expect("faults");
    assert_eq!(faults("major_faults") + faults("minor_faults"), TOUCHED_PAGES);
    assert_eq!((&mapping["threads"], &file["file_bytes"]), (&1.into(), &(32 << 20).into()));
    let threads = seen["threads"].as_array().expect("threads");
    assert_eq!((threads.len(), &seen["processes"]), (2, &1.into()), "{seen}");
    assert!(
        threads.iter().all(|thread| thread["name"].as_str().is_some_and(|name| name.starts_with("known")))
    );
    assert_eq!(seen["subject"]["ended"], "it ended with status 7");
    let unseen = seen["missing"].as_array().expect("an array").iter();
    // Before Linux 6.11 nobody reports these.
    let unseen: Vec<&Value> = unseen.filter(|missing| missing["kind"] != "mapped-around").collect();
    assert!(unseen.is_empty(), "root sees everything: {unseen:?}");
    // What came in is at least what was asked for, if the file was cold.
    if let Some(brought) = file["brought_in"].as_object() {
        let bytes = |name: &str| brought[name].as_u64().expect("bytes");
        assert_eq!(bytes("bytes"), bytes("by_calls_bytes") + bytes("by_faults_bytes"));
        assert_eq!(
            bytes("by_faults_bytes"),
            faults("major_faults") * 4096,
            "MADV_RANDOM reads nothing around"
        );
    }
    for tally in seen["events"].as_array().expect("tallies") {
        assert_eq!(tally["counted"], tally["recorded"], "{tally}");
    }
    place.expect_no_process();
}

#[test]
fn a_write_of_a_part_of_a_page_reads_the_page_and_that_is_reported() {
    if !is_root() || !sees_calls() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let file = fs::File::open(&path).expect("open");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("fadvise");
    // On a descriptor that is there from the beginning: one that dd(1) opens itself is closed
    // before it can be looked at.
    let dd = ["dd", "if=/dev/zero", "bs=100", "count=1", "seek=5", "conv=notrunc", "status=none"];
    let mut command = place.command(&[&["inspect", "--json", "--out=seen.json", "--"], &dd[..]].concat());
    let written = fs::OpenOptions::new().write(true).open(&path).expect("open");
    place.finish(command.stdout(written).spawn().expect("start")).expect_code(0);
    let text = fs::read_to_string(place.file("seen.json")).expect("it is there");
    let writes = &of_file(&serde_json::from_str(&text).expect("JSON"))["writes"];
    assert_eq!((&writes["count"], &writes["bytes"]), (&1.into(), &100.into()), "{writes}");
    assert!(writes["in_calls_ns"].as_u64() >= writes["waits"]["total_ns"].as_u64(), "{writes}");
    // A filesystem in memory has no device, and that of btrfs is not known.
    if let Some(read) = writes["device_read_bytes"].as_u64() {
        // Of one block, which is a page or smaller.
        assert!((1..=rustix::param::page_size() as u64).contains(&read), "{writes}");
    }
    place.expect_no_process();
}

/// A program of 32 bits for Linux on x86, which reads 16 bytes of its stdin.
fn narrow_program() -> Vec<u8> {
    const LOADED_AT: u32 = 0x0804_8000;
    let code = [
        &[0xb8, 3, 0, 0, 0, 0x31, 0xdb, 0xb9][..],
        &LOADED_AT.to_le_bytes(),
        &[0xba, 16, 0, 0, 0, 0xcd, 0x80, 0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80],
    ]
    .concat();
    let (header, segment) = (52u32, 32u32);
    let size = header + segment + code.len() as u32;
    let mut program = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
    for word in [1, LOADED_AT + header + segment, header, 0, 0] {
        program.extend(word.to_le_bytes());
    }
    for half in [header as u16, segment as u16, 1, 0, 0, 0] {
        program.extend(half.to_le_bytes());
    }
    for word in [1, 0, LOADED_AT, LOADED_AT, size, size, 7, 4096] {
        program.extend(word.to_le_bytes());
    }
    [program, code].concat()
}

#[test]
fn calls_of_a_program_of_32_bits_are_said_to_be_unseen() {
    use std::os::unix::fs::PermissionsExt;
    if !sees_calls() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let program = place.write("narrow", narrow_program());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("chmod");
    let program = program.to_str().expect("a path");
    let mut command = place.command(&["inspect", "--json", "--out=seen.json", "--", program]);
    let finished = place.finish(command.stdin(fs::File::open(&path).expect("open")).spawn().expect("start"));
    if finished.status.code() == Some(126) {
        return support::skipped("narrow-programs", &finished.stderr);
    }
    let text = fs::read_to_string(place.file("seen.json")).unwrap_or_else(|_| panic!("{finished:?}"));
    let seen: Value = serde_json::from_str(&text).expect("JSON");
    if let Some(reason) = missing(&seen, "calls").filter(|reason| !reason.contains("32 bits")) {
        return println!("calls are not seen: {reason}");
    }
    assert!(missing(&seen, "calls").is_some(), "{seen}");
    assert_eq!((&seen["unknown"], &seen["complete"]), (&Value::Null, &Value::Bool(true)), "{seen}");
}

/// The kernel counts a fault as minor if the page is there, also while it is still being read.
#[test]
fn a_thread_that_waits_for_a_page_which_another_one_reads_waits_for_the_file() {
    let Some((place, file, seen)) = inspected_as_root(&["shared"]) else { return };
    let mapping = &file["mapping"];
    let count = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("a count: {file}"));
    assert_eq!(mapping["faulted_pages"], TOUCHED_PAGES, "{mapping}");
    // Only pages in memory would not be waited for: a filesystem in memory has no other.
    let major = count(&mapping["major_faults"]);
    if major > 0 {
        let waited = count(&mapping["waits"]["count"]);
        assert!(waited > major, "none waited for another's page: {mapping}");
        assert_eq!(file["prefaults"]["count"], 1, "{file}");
        assert!(count(&file["prefaults"]["total_ns"]) > 0, "{file}");
    }
    assert_eq!(missing(&seen, "minor-fault-waits"), None);
    place.expect_no_process();
}

#[test]
fn without_root_faults_are_seen_and_what_is_not_has_its_reason() {
    if !is_root() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let words = ["inspect", "--json", "--out=seen.json", "--", &known_accesses(), &path];
    let Some(command) = place.command_as(65_534, &words) else { return };
    let (file, seen) = inspected(&place, command);
    assert_eq!(file["mapping"]["faulted_pages"], TOUCHED_PAGES, "{file}");
    for kind in ["page-cache", "minor-fault-waits"] {
        assert!(missing(&seen, kind).is_some_and(|reason| !reason.is_empty()), "{kind}: {seen}");
    }
    let text = place.command_as(65_534, &["inspect", "--", &known_accesses(), &path]).expect("as above");
    let shown = place.finish({ text }.spawn().expect("start")).expect_code(7).stderr;
    match missing(&seen, "calls") {
        Some(reason) => {
            assert!(reason.contains("trac"), "{reason}");
            assert_eq!((&file["reads"], &seen["ring_requests"]), (&Value::Null, &Value::Null));
            assert!(shown.contains("Not seen: calls that read and write: "), "{shown}");
            assert!(shown.contains("blocked, reason not seen") && !shown.contains("elsewhere"), "{shown}");
            // It sleeps for most of its time.
            let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                shown.contains(
                    "Whether threads waited in reads, writes, syncs and minor page faults is unknown"
                ),
                "{shown}"
            );
            assert!(!shown.contains("No thread waited"), "{shown}");
        }
        None => assert_eq!(file["reads"]["count"], 400, "{file}"),
    }
}

/// The kernel takes the events of an unprivileged user away where a program gains privileges.
#[test]
fn a_program_that_gains_privileges_is_reported_as_unseen() {
    if !is_root() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let Some(program) = ["/usr/bin/su", "/bin/su", "/usr/bin/passwd"].into_iter().find(|path| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o4000 != 0)
    }) else {
        return support::skipped("setuid-program", "there is no setuid program");
    };
    let words = ["inspect", "--json", "--out=seen.json", "--", program, "--help"];
    let Some(mut command) = place.command_as(65_534, &words) else { return };
    let finished = place.finish(command.spawn().expect("start"));
    let text = fs::read_to_string(place.file("seen.json")).unwrap_or_else(|_| panic!("{finished:?}"));
    let seen: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(seen["cut_processes"], 1, "{seen}");
    let mut command = place.command_as(65_534, &["inspect", "--", program, "--help"]).expect("as above");
    let shown = place.finish(command.spawn().expect("start")).stderr;
    assert!(shown.contains("Not watched: 1 process, from the execution of a program"), "{shown}");
    assert!(!shown.contains("No thread waited"), "{shown}");
}

#[test]
fn a_process_that_runs_is_inspected_and_goes_on() {
    if !is_root() || !sees_calls() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let mut program =
        Command::new(known_accesses()).args([&path, "again"]).stdin(Stdio::piped()).spawn().expect("start");
    let number = program.id().to_string();
    // A busy machine needs longer for one round of the program.
    let mut seconds = 0.5;
    let seen = loop {
        let words = ["inspect", &number, &format!("--seconds={seconds}"), "--json"];
        let finished = place.run(&words).expect_code(0);
        assert!(program.try_wait().expect("status").is_none(), "it was ended");
        let seen: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        assert_eq!(seen["complete"], true, "{seen}");
        let unknown = seen["unknown"]["calls"].as_u64().expect("calls are seen");
        // A file that was only mapped meanwhile has no reads.
        if of_file(&seen)["reads"]["count"].as_u64().unwrap_or(0) + unknown >= 400 {
            break seen;
        }
        seconds *= 2.0;
        assert!(seconds < 100.0, "{seen}");
    };
    let file = of_file(&seen);
    let of = |size: u64| {
        let sizes = file["reads"]["sizes"].as_array().expect("sizes");
        sizes.iter().find(|one| one[0] == size).and_then(|one| one[1].as_u64()).unwrap_or(0)
    };
    // Three blocks of 4 KiB to one of 8 KiB, but for the round that it was in, and for descriptors
    // that were closed before the look at them was over.
    let (small, large, unknown) =
        (of(4096), of(8192), seen["unknown"]["calls"].as_u64().expect("calls are seen"));
    assert!(small.abs_diff(3 * large) <= 300 + 3 * unknown, "{small}, {large}, {unknown}");
    assert!(seen["subject"]["command"].as_str().is_some_and(|name| name.starts_with("known")), "{seen}");
    let threads = fs::read_dir(format!("/proc/{number}/task")).expect("tasks");
    let thread = threads.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let thread = thread.into_iter().find(|thread| *thread != number).expect("the one that waits for stdin");
    let message = format!("{thread} is a thread of process {number}: inspect {number}");
    expect_refused(&place.run(&["inspect", &thread]), &message);
    drop(program.stdin.take());
    program.wait().expect("its end");
}

#[test]
fn the_status_is_that_of_the_command() {
    let place = Place::new();
    let script = place.write("text", "no program");
    for (words, code) in [
        (vec!["true"], 0),
        (vec!["sh", "-c", "exit 42"], 42),
        (vec!["sh", "-c", "kill -9 $$"], 137),
        (vec!["no-such-command-anywhere"], 127),
        (vec![script.to_str().expect("a path")], 126),
    ] {
        let words = [&["inspect", "--"], &words[..]].concat();
        let finished = place.run(&words).expect_code(code);
        assert_eq!(finished.stdout, "", "stdout is the command's");
        let message = ["no-such-command-anywhere: there is no such command", "cannot be executed"];
        assert_eq!(
            code > 125 && code < 128,
            message.iter().any(|message| finished.stderr.contains(message)),
            "{finished:?}"
        );
    }
    let finished = place.run(&["inspect", "--", "sh", "-c", "echo own; echo err >&2"]).expect_code(0);
    assert_eq!(finished.stdout, "own\n");
    assert!(finished.stderr.starts_with("err\n"), "{finished:?}");
    place.expect_no_process();
}

#[test]
fn every_request_to_end_reaches_the_command() {
    let place = Place::new();
    // No shell: dash(1) loses a signal that comes while it starts a program.
    let script = "import signal,sys,time
got = []
for name in ('INT', 'TERM', 'HUP'):
    signal.signal(getattr(signal, 'SIG' + name), lambda *_, name=name: got.append(name))
print('ready', flush=True)
while len(got) < 3:
    time.sleep(0.02)
print(*sorted(got))
sys.exit(7)";
    // What is ignored here, as below nohup(1), would be ignored there.
    let mut command = Command::new("env");
    command.args([
        "--default-signal=INT,TERM,HUP",
        PAGEWISE,
        "inspect",
        "--no-calls",
        "--",
        "python3",
        "-c",
        script,
    ]);
    place.settle(&mut command);
    // In the foreground of a terminal an interrupt would be taken for the terminal's.
    let child = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().expect("start");
    let printed = || fs::read_to_string(place.root().join("stdout")).unwrap_or_default();
    wait_for("the command is ready", || printed().contains("ready").then_some(()));
    let pid = Pid::from_raw(child.id() as i32).expect("a process id");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        kill_process(pid, signal).expect("kill");
    }
    place.finish(child).expect_code(7);
    assert_eq!(printed(), "ready\nHUP INT TERM\n");
}

#[test]
fn what_cannot_be_inspected_is_refused_with_its_reason() {
    let place = Place::new();
    let out = place.write("there.json", "mine");
    for (words, sentence) in [
        (vec!["inspect"], "there is nothing to inspect: name a process, or a command behind --"),
        (vec!["inspect", "1", "--", "true"], "a process and a command cannot both be inspected"),
        (vec!["inspect", "4194304"], "there is no process 4194304"),
        (vec!["inspect", "0"], "there is no process 0"),
        (vec!["inspect", "2"], "process 2 is a thread of the kernel"),
        (vec!["inspect", "all"], "invalid"),
        (vec!["inspect", "--seconds=0", "1"], "write a number of seconds, from 0.1 to 86400"),
        (vec!["inspect", "--seconds=NaN", "1"], "write a number of seconds, from 0.1 to 86400"),
        (
            vec!["inspect", "--out=there.json", "--", "touch", "executed"],
            "there.json exists: name another file",
        ),
    ] {
        if sentence.contains("of the kernel") && fs::metadata("/proc/2").is_err() {
            continue;
        }
        expect_refused(&place.run(&words), sentence);
    }
    assert!(!place.file("executed").exists(), "the command was executed before its output was looked at");
    assert_eq!(fs::read_to_string(out).expect("read"), "mine");
    if rustix::process::geteuid().is_root() {
        let Some(mut command) = place.command_as(65_534, &["inspect", "1"]) else { return };
        let finished = place.finish(command.spawn().expect("start"));
        expect_refused(&finished, "process 1 belongs to user 0: only root may inspect it");
    }
}
