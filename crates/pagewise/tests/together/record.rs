//! `pagewise record` of programs whose reads are known.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};

use pagewise_model::trace::{AccessKind, Trace, TraceAccess};

use crate::inspect::{data, known_accesses};
use crate::support::{
    self, Place, expect_message, expect_refused, in_own_mounts, is_root, load_trace, sees_calls,
};

/// The reads of the file that the known program makes: by its first thread, and by its second.
fn expected() -> [Vec<(u64, u64, bool)>; 2] {
    let scattered = (0..300u64).map(|index| (index * 37 % 4096 * 4096, 4096, false)).collect();
    let ordered = (0..100u64).map(|index| (index * 8192, 8192, true)).collect();
    [scattered, ordered]
}

fn expect_given_back(trace: &Trace, path: &str) {
    let is_ours = |file: &&pagewise_model::trace::TraceFile| file.path == path;
    let file = trace.trailer.files.iter().find(is_ours).unwrap_or_else(|| panic!("{:?}", trace.trailer));
    assert_eq!((file.reads, file.read_bytes, file.left_out_bytes), (400, 300 * 4096 + 100 * 8192, 0));
    assert_eq!((file.mapped_faults, file.direct, file.writes), (256, false, 0));
    assert_eq!(file.identity.as_ref().map(|identity| identity.file_bytes.0), Some(32 << 20));
    let number = trace.trailer.files.iter().position(|file| file.path == path).expect("as above") as u32;
    let of_file = || trace.accesses.iter().filter(|access| access.file == number);
    let mut threads: Vec<u32> = of_file().map(|access| access.thread).collect();
    threads.dedup();
    assert_eq!(threads.len(), 2, "the second thread reads when the first has: {threads:?}");
    for (thread, expected) in threads.iter().zip(expected()) {
        let of_thread = of_file().filter(|access| access.thread == *thread);
        let read = |access: &TraceAccess| (access.offset, access.len, access.kind == AccessKind::Read);
        assert_eq!(of_thread.map(read).collect::<Vec<_>>(), expected);
    }
    for thread in &threads {
        let of_thread: Vec<&TraceAccess> = of_file().filter(|access| access.thread == *thread).collect();
        let end =
            |access: &TraceAccess| access.time_ns + access.took_ns.expect("both ends of a call are seen");
        assert!(of_thread.windows(2).all(|pair| end(pair[0]) <= pair[1].time_ns));
    }
    assert_eq!(trace.gaps(number).map(|gaps| gaps.before_reads.len()), Ok(400));
    assert!(trace.accesses.is_sorted_by_key(|access| access.time_ns));
    assert!(trace.trailer.complete, "{:?}", trace.trailer.events);
    assert_eq!(trace.trailer.program.ended, "it ended with status 7");
}

#[test]
fn a_known_program_is_recorded_as_it_is() {
    if !is_root() || !sees_calls() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let cold = format!("--cold={path}");
    let empty = format!("--cold={}", place.write("empty", "").display());
    let words = ["record", &cold, &empty, "-o", "known.trace", "--", &known_accesses(), &path];
    let finished = place.run(&words);
    let finished = finished.expect_code(7);
    assert!(finished.stderr.starts_with("recorded "), "{finished:?}");
    assert!(
        finished.stderr.contains("not in the trace: accesses to its mapping (256 faults)"),
        "{finished:?}"
    );
    let trace = load_trace(&place.file("known.trace"));
    expect_given_back(&trace, &path);
    let file = trace.trailer.files.iter().find(|file| file.path == path).expect("it is there");
    assert_eq!(file.resident_before, Some(0));
    let empty = trace.trailer.files.iter().find(|file| file.path.ends_with("/empty")).expect("it was named");
    assert!(empty.identity.is_some() && empty.resident_before == Some(0), "{empty:?}");
    // The scattered blocks are read without readahead, the ordered ones with it: at least what was
    // asked for.
    let came = file.brought_in_bytes.expect("root sees what comes in");
    assert!(came >= 300 * 4096, "{came}");
    expect_refused(
        &place.run(&["record", "-o", "known.trace", "--", "touch", "executed"]),
        "known.trace exists: name another file",
    );
    assert!(!place.file("executed").exists());
    place.expect_no_trace();
}

/// Requests to read ahead by a descriptor and by a mapping, between two reads; refused ones are
/// none, and other advice is named.
#[test]
fn what_a_program_asks_to_be_read_ahead_is_in_the_trace() {
    if !is_root() || !sees_calls() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let program = format!(
        "import mmap, os; f = os.open('{path}', os.O_RDONLY); m = mmap.mmap(f, 0, prot=mmap.PROT_READ); \
         os.pread(f, 4096, 8192); os.posix_fadvise(f, 1 << 20, 5000, os.POSIX_FADV_WILLNEED); \
         m.madvise(mmap.MADV_WILLNEED, 2 << 20, 5000); os.pread(f, 100, 0); \
         os.posix_fadvise(f, 31 << 20, 0, os.POSIX_FADV_WILLNEED); \
         os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)"
    );
    let cold = format!("--cold={path}");
    let finished = place.run(&["record", &cold, "-o", "t.trace", "--", "python3", "-c", &program]);
    let said = "; 3 requests to read ahead; ";
    assert!(finished.stderr.contains(said), "{finished:?}");
    assert!(finished.stderr.contains("; not in the trace: POSIX_FADV_DONTNEED"), "{finished:?}");
    let trace = load_trace(&place.file("t.trace"));
    let number = trace.trailer.files.iter().position(|file| file.path == path).expect("it is read") as u32;
    let file = &trace.trailer.files[number as usize];
    assert_eq!((file.reads, file.read_ahead), (2, 3));
    let to_end = i64::MAX as u64 - (31 << 20);
    let requests = [(1 << 20, 5000, false), (2 << 20, 8192, true), (31 << 20, to_end, false)];
    let found = trace.read_ahead.iter().filter(|request| request.file == number);
    let found = found.map(|request| {
        assert!(request.took_ns.is_some());
        let mapped = request.kind == AccessKind::ReadAhead { mapped: true };
        (request.offset, request.len, mapped)
    });
    assert_eq!(found.collect::<Vec<_>>(), requests);
    let table = trace.table(number, 1).expect("a table");
    let places: Vec<u64> = table.read_ahead.iter().map(|request| request.before).collect();
    assert_eq!((table.entries.len(), places), (2, vec![1, 1, 2]));
    let replay = ["run", "replay", "--trace=t.trace", "--evict", "--methods=mmap", "--dry-run"];
    let planned = place.run(&replay).expect_code(0);
    // It reads by calls, so methods of calls make the one by the mapping, too.
    for said in ["with the program's 3", "3 times to read a part of a file"] {
        assert!(planned.stderr.contains(said) || planned.stdout.contains(said), "{said}: {planned:?}");
    }
    assert!(
        planned.stderr.contains("not replayed, of what the program asked the kernel: POSIX_FADV_DONTNEED"),
        "{planned:?}"
    );
}

/// Where tracefs lets this user see calls, nothing more is needed.
#[test]
fn without_root_a_program_is_recorded_as_it_is_or_not_started() {
    if !is_root() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    place.give_to(65_534);
    let words = ["record", "-o", "known.trace", "--", &known_accesses(), &path];
    let Some(mut command) = place.command_as(65_534, &words) else { return };
    let finished = place.finish(command.spawn().expect("start"));
    if finished.code() == 7 {
        return expect_given_back(&load_trace(&place.file("known.trace")), &path);
    }
    expect_message(&finished, 3, "calls are not seen, so the command was not started");
    assert!(!place.file("known.trace").exists());
}

#[test]
fn a_full_disk_stops_the_recording_and_not_the_program() {
    const NAME: &str = "a_full_disk_stops_the_recording_and_not_the_program";
    if !is_root() || !sees_calls() {
        return;
    }
    if !in_own_mounts(NAME, "mount -t tmpfs -o size=4k tmpfs /dev/shm") {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let script = format!("for once in 1 2 3; do {} {path}; done; echo done; exit 5", known_accesses());
    let finished = place.run(&["record", "-o", "/dev/shm/t.trace", "--", "sh", "-c", &script]);
    assert_eq!(finished.stdout, "done\n", "{finished:?}");
    let message = "the recording stops, the command goes on: /dev/shm/t.trace cannot be written: less than 5 % of its filesystem";
    assert!(finished.stderr.contains(message), "{finished:?}");
    finished.expect_code(5);
    let script = script.replace("exit 5", "exit 0");
    place.run(&["record", "-o", "/dev/shm/t.trace", "--", "sh", "-c", &script]).expect_code(1);
    assert_eq!(fs::read_dir("/dev/shm").expect("list").count(), 0, "a torn trace is left");
}

#[test]
fn a_limit_holds_for_the_command_and_is_gone_afterwards() {
    if !is_root() || !sees_calls() {
        return;
    }
    if let Some(reason) = support::without_memory_limit() {
        return support::skipped("cgroup", &reason);
    }
    let place = Place::on(&std::env::temp_dir());
    let program = "import sys; x = bytearray(200 << 20); print('kept')";
    let words = ["record", "--memory=64MiB", "-o", "t.trace", "--", "python3", "-c", program];
    let finished = place.run(&words);
    assert_eq!((finished.stdout.as_str(), finished.code()), ("", 137), "{finished:?}");
    assert_eq!(load_trace(&place.file("t.trace")).trailer.program.ended, "signal 9 ended it");
    place.expect_no_trace();
}

#[test]
fn what_cannot_be_recorded_is_refused_before_the_command_is_started() {
    let place = Place::new();
    place.write("there", "data");
    let no_text = OsStr::from_bytes(b"no-\xff-text");
    fs::write(place.path().join(no_text), "data").expect("write");
    let words = ["record", "--cold", "", "--", "touch", "executed"].map(OsStr::new);
    let words = words.map(|word| if word.is_empty() { no_text } else { word });
    expect_refused(&place.run(&words), "is not UTF-8: traces need UTF-8");
    for (words, sentence) in [
        (vec!["record"], "<COMMAND>"),
        (vec!["record", "--cold=gone", "--", "touch", "executed"], "gone does not exist"),
        (vec!["record", "--cold=.", "--", "touch", "executed"], "is a directory"),
        (vec!["record", "--memory=64", "--", "touch", "executed"], "write a unit"),
        (vec!["record", "--memory=1KiB", "--", "touch", "executed"], "the limit is 1KiB"),
        (vec!["record", "-o", "gone/t.trace", "--", "touch", "executed"], "gone/t.trace cannot be written"),
        (vec!["record", "-o", "there", "--", "touch", "executed"], "there exists: name another file"),
    ] {
        expect_refused(&place.run(&words), sentence);
    }
    assert!(!place.file("executed").exists());
    assert_eq!(fs::read(place.file("there")).expect("read"), b"data");
}

/// The kernel takes away the events of a program that runs as another user than the one that
/// executed it.
#[test]
fn a_program_of_another_user_is_reported_as_unseen() {
    if !is_root() || !sees_calls() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let program = place.file("cat");
    fs::copy("/bin/cat", &program).expect("copy");
    chown(&program, Some(65_534), None).expect("chown");
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("chmod");
    let finished = place.run(&["record", "-o", "t.trace", "--", "./cat", &path]);
    assert!(finished.stderr.contains("! not in the trace: reads of 1 process, from the"), "{finished:?}");
    let replayed = place.run(&["run", "replay", "--trace=t.trace", "--evict"]);
    expect_refused(&replayed, "t.trace holds no read: nobody watched 1 process, from the execution");
}

/// What a command leaves where its trace or its inspection was to be, and how it is named.
#[test]
fn what_has_the_name_when_the_command_has_run_costs_neither_its_status_nor_the_result() {
    if !is_root() || !sees_calls() {
        return;
    }
    let place = Place::new();
    let read = |name: &str| fs::read(place.file(name)).expect(name);
    let script = |name: &str| format!("cat /proc/self/status >/dev/null; echo mine > {name}; exit 4");
    let finished =
        place.run(&["record", "-o", "t.trace", "--", "sh", "-c", &script("t.trace")]).expect_code(4);
    let message = "the trace is t.trace.2: t.trace exists: name another file";
    assert!(finished.stderr.contains(message), "{}", finished.stderr);
    assert_eq!(read("t.trace"), b"mine\n");
    load_trace(&place.file("t.trace.2"));
    let inspect = ["inspect", "--json", "--out=seen.json", "--", "sh", "-c", &script("seen.json")];
    let finished = place.run(&inspect).expect_code(4);
    assert!(finished.stderr.contains("it is in seen.json.2: seen.json exists"), "{}", finished.stderr);
    serde_json::from_slice::<serde_json::Value>(&read("seen.json.2")).expect("whole");
    assert_eq!(read("seen.json"), b"mine\n");
    // Its directory is gone, so nothing can have a name there.
    fs::create_dir(place.file("gone")).expect("directory");
    let finished = place.run(&["record", "-o", "gone/t.trace", "--", "sh", "-c", "rmdir gone; exit 4"]);
    assert!(finished.expect_code(4).stderr.contains("the recording is lost: gone/t.trace cannot be written"));
    // Nobody can read the result of inspect.
    let mut command = place.command(&["inspect", "--json", "--", "sh", "-c", "exit 9"]);
    command.stderr(fs::File::options().write(true).open("/dev/full").expect("/dev/full"));
    place.finish(command.spawn().expect("start")).expect_code(9);
}

#[test]
fn a_file_size_limit_ends_the_recording_and_not_the_program() {
    if !is_root() || !sees_calls() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let script = format!("for once in 1 2 3; do {} {path}; done; echo done; exit 5", known_accesses());
    let limited = |words: &[&str]| {
        let mut command = std::process::Command::new("prlimit");
        command.args(["--fsize=1024:", "--", support::PAGEWISE]).args(words);
        // What is printed goes into files too.
        place.settle(&mut command);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        place.finish(command.spawn().expect("prlimit"))
    };
    limited(&["record", "-o", "t.trace", "--", "sh", "-c", &script]).expect_code(5);
    limited(&["inspect", "--json", "--out=seen.json", "--", "sh", "-c", &script]).expect_code(5);
    assert!(
        place.entries().iter().all(|name| !name.contains("trace") && !name.contains("seen")),
        "{:?}",
        place.entries()
    );
}
