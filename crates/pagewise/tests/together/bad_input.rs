//! Wrong use is told in one sentence, with exit code 2, and nothing is created.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{
    self, PAGEWISE, Place, cheating_worker, expect_refused, expect_told, load, refuse_all, wait_for,
};
use pagewise_model::run::{Header, Record};
use rustix::process::{Pid, Signal};

/// A run that would be quick if it were not refused.
const SMALL: [&str; 9] = [
    "run",
    "read",
    "--workload=random-read",
    "--methods=pread",
    "--threads=1",
    "--rounds=7",
    "--sample=1ms",
    "--latency=1ms",
    "--file-size=4MiB",
];

/// A place with what the tables below name.
fn furnished() -> Place {
    let place = Place::new();
    place.write("data", vec![1; 256 << 10]);
    place.write("empty", []);
    fs::create_dir(place.file("directory")).expect("directory");
    std::os::unix::fs::symlink("/nowhere", place.file("dangling")).expect("link");
    let modes = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, place.file("pipe"), rustix::fs::FileType::Fifo, modes, 0)
        .expect("pipe");
    place
}

#[test]
fn words_that_make_no_sense() {
    refuse_all(
        &furnished(),
        &[
            (
                "run read --methods mnap",
                "unknown method 'mnap': the methods are mmap, pread, read, pwrite, write, uring",
            ),
            ("run read --methods ''", "missing method: write one of mmap, pread, read, pwrite, write, uring"),
            ("run read --methods mmap:fast", "unknown option 'fast' of 'mmap': it takes random, sequential"),
            ("run read --methods mmap:direct", "unknown option 'direct' of 'mmap'"),
            ("run read --methods pread:direct+random", "conflicting options 'direct' and 'random'"),
            ("run read --methods mmap:random+random", "repeated option 'random'"),
            ("run read --methods uring:depth=0", "invalid option 'depth=0': expected depth=1 to depth=1024"),
            ("run read --methods mine/mmap", "name the command of your own with --worker mine=COMMAND"),
            ("run read --methods Mine/mmap", "invalid worker name"),
            ("run read --methods jvm/sendfile", "unknown method 'sendfile': the methods of jvm are mmap"),
            (
                "run read --methods jvm/filechannel",
                "write jvm/filechannel:direct-buffer or jvm/filechannel:heap-buffer",
            ),
            (
                "run append --methods python/pread",
                "'python/pread' is not a method for append, which writes: its methods are mmap, pwrite, write, buffered-writer",
            ),
            ("run read --worker mine=./x", "the plan has no method of the worker mine"),
            ("run read --worker mine", "invalid worker 'mine': write --worker name=COMMAND"),
            ("run read --worker mine= --methods mine/get", "the worker mine has no command"),
            (
                "run read --worker go=./x --methods go/mmap",
                "the worker name 'go' is one of pagewise's: choose another",
            ),
            (
                "run read --worker mine=./x --worker mine=./y --methods mine/get",
                "--worker mine is given twice",
            ),
            ("run read --jdk /jdk --methods pread", "a JDK and its arguments are for the jvm worker"),
            ("run read --jvm-args -Xmx1g", "a JDK and its arguments are for the jvm worker"),
            ("run lucene", "a size in multiples of the cache needs a memory limit"),
            ("run append --cache read-once", "read-once"),
            ("run read --file-size 64", "invalid size '64': write a unit, as in 4KiB"),
            ("run read --file-size 4KB", "ambiguous size '4KB': write 4KiB or 4000B"),
            ("run read --file-size=-4KiB", "invalid size '-4KiB': write a number with a unit"),
            ("run read --file-size 99999999999TiB", "no file can be that large"),
            ("run read --read-size 4096", "invalid size '4096': write a unit"),
            (
                "run read --span 1x",
                "a size in multiples of the cache needs a memory limit: write --memory 256MiB",
            ),
            ("run read --align 1", "invalid size '1': write a unit"),
            ("run read --threads many", "invalid number of threads 'many': write a whole number or 'cpus'"),
            ("run read --threads=-1", "invalid number of threads '-1'"),
            ("run read --threads 4294967296", "invalid number of threads '4294967296'"),
            (
                "run read --workload walk",
                "unknown workload 'walk': write one of random-read, sequential-read",
            ),
            ("run read --cache hot", "unknown cache state 'hot': write one of cold, warm, as-is"),
            ("run read --consume all", "unknown consumption 'all': write one of touch, sum"),
            ("run read --descriptor none", "unknown descriptor 'none': write one of shared, per-thread"),
            ("run read --sample 5", "invalid time '5': write a unit, as in 5ms or 5s"),
            ("run read --seed x", "--seed"),
            ("run read --metods mmap", "'--methods'"),
            ("run read --quick --full", "cannot be used with"),
            ("run read --dir . --file data", "cannot be used with"),
            ("run read --evict", "--file"),
            ("read --evict", "--evict is for a file of your own: name one, as in --file index.bin"),
            ("read data --dir .", "cannot be used with"),
            ("read none", "none does not exist"),
            ("append data", "append writes, and your own file is only read: name a directory"),
            ("read --time 60s --budget 60s", "cannot be used with"),
            (
                "read --time 1ms",
                "does not pay for the 5 rounds that every method of read needs: write --time",
            ),
            ("--time 1s", "does not pay for 4 questions: write --time"),
            ("--dir none", "the directory none does not exist"),
            ("data", "write a question before it, as in pagewise read data or pagewise scan data"),
            ("directory", "write pagewise --dir directory for the overview"),
            ("run read --resume", "--out"),
            (
                "run",
                "missing question: write one of read, scan, append, fill, cliff, lucene, replay or the path of a plan file",
            ),
            (
                "run write",
                "'write' is neither a question (read, scan, append, fill, cliff, lucene, replay) nor a file",
            ),
            ("measure", "measure"),
            ("report", "RUN"),
        ],
    );
}

#[test]
fn choices_that_are_impossible() {
    refuse_all(
        &furnished(),
        &[
            ("run read --threads 0", "0 threads read nothing: write 1 or more"),
            ("run read --threads 2000", "2000 threads: write at most 1024"),
            ("run read --file-size 0B", "a file of 0B holds nothing to read"),
            ("run read --file-size 4MiB --span 0B", "a span of 0B holds nothing to read"),
            ("run read --read-size 0B", "a read of 0B reads nothing"),
            ("run read --align 0B", "an alignment of 0B: write 1B"),
            ("run read --reads-per-op 0", "0 reads in an operation"),
            ("run read --file-size 4MiB --read-size 8MiB", "a read of 8MiB is larger than the span of 4MiB"),
            ("run read --file-size 4MiB --span 8MiB", "the span of 8MiB is larger than the file of 4MiB"),
            (
                "run read --workload sequential-read --cache warm --file-size 4MiB --read-size 1MiB",
                "an operation of 16 contiguous reads of 1MiB is larger than the span of 4MiB",
            ),
            (
                "run read --cache cold --file-size 1MiB --threads 64",
                "a cold sample may bring in a quarter of the span of 1MiB",
            ),
            ("run read --rounds 3", "3 rounds: write 7 to"),
            ("run read --sample 1us", "the length of a sample is out of range: write 1ms to 3600s"),
            (
                "run read --file data --cache cold --reads-per-op 1",
                "a cold run, or one that begins with reading the file once, starts from an empty page cache, so your file must leave the page cache",
            ),
            ("run read --file data --file-size 1MiB", "your own file has its size: leave the file size out"),
            ("run read --file data --read-size 1MiB", "a read of 1MiB is larger than the span of 256KiB"),
        ],
    );
}

#[test]
fn files_and_directories_that_cannot_be_measured() {
    refuse_all(
        &furnished(),
        &[
            ("run read --file none", "none does not exist"),
            ("run read --file data/below", "does not exist"),
            ("run read --file dangling", "dangling is a link to /nowhere, which does not exist"),
            ("run read --file empty", "empty is empty: there is nothing to read"),
            ("run read --file directory", "directory is a directory: pagewise reads regular files"),
            ("run read --file pipe", "pipe is a pipe: pagewise reads regular files"),
            ("run read --file /dev/zero", "/dev/zero is a character device: pagewise reads regular files"),
            ("run read --file /proc/self/status", "is generated by the kernel (proc)"),
            (
                "run read --file /sys/kernel/mm/transparent_hugepage/enabled",
                "is generated by the kernel (sysfs)",
            ),
            ("run read --dir none", "the directory none does not exist"),
            ("run read --dir data", "data is not a directory"),
            ("run read --dir /proc", "/proc is generated by the kernel (proc): files cannot be made there"),
            ("doctor --dir none", "the directory none does not exist"),
        ],
    );
}

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
fn plans_that_cannot_be_read() {
    let place = furnished();
    place.write("typo.toml", "treads = 2\n");
    place.write("typo-quick.toml", "[quick]\nround = 7\n");
    place.write("typo-workload.toml", "[random-read]\nmethod = \"mmap\"\n");
    place.write("empty-list.toml", "threads = []\n");
    place.write("empty-workload.toml", "workload = []\n");
    let numbers: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
    let numbers = numbers.join(", ");
    place.write("absurd.toml", format!("threads = [{numbers}]\nreads_per_op = [{numbers}]\n"));
    let many = vec!["1"; 4000].join(", ");
    place.write("repeated.toml", format!("threads = [{many}]\nrounds = 1\n"));
    place.write("broken.toml", "threads = 1\nread_size = \n");
    place.write("unit.toml", "read_size = 4096\n");
    place.write("kind.toml", "methods = 3\n");
    place.write("rounds.toml", "rounds = [7, 9]\n");
    place.write("binary.toml", [0x7f, b'E', b'L', b'F', 0xff, 0, 0xfe]);
    place.write("zeros.toml", vec![0; 4096]);
    place.write("huge.toml", vec![b'#'; (1 << 20) + 1]);
    refuse_all(
        &place,
        &[
            (
                "run typo.toml",
                "the plan file typo.toml: unknown key 'treads': the nearest known one is 'threads'",
            ),
            ("run typo-quick.toml", "in [quick]: unknown key 'round': the nearest known one is 'rounds'"),
            (
                "run typo-workload.toml",
                "in [random-read]: unknown key 'method': the nearest known one is 'methods'",
            ),
            ("run empty-list.toml", "'threads' is an empty list: there would be nothing to measure"),
            ("run empty-workload.toml", "'workload' is an empty list"),
            ("run absurd.toml", "the matrix has 50000 cells: a run has at most 5000"),
            ("run repeated.toml", "1 rounds: write 7 to"),
            ("run broken.toml", "the plan file broken.toml: line 2: "),
            ("run unit.toml", "in 'read_size': invalid size '4096': write a unit"),
            ("run kind.toml", "in 'methods': unknown method '3'"),
            ("run rounds.toml", "'rounds' is not an axis: write one value"),
            ("run binary.toml", "binary.toml is not a plan file: it is not text"),
            ("run zeros.toml", "the plan file zeros.toml: line 1: "),
            ("run huge.toml", "huge.toml is not a plan file: it has 1048577 bytes"),
            ("run directory", "directory is not a plan file: it is not a regular file"),
            ("run pipe", "pipe is not a plan file: it is not a regular file"),
            (
                "run none.toml",
                "'none.toml' is neither a question (read, scan, append, fill, cliff, lucene, replay) nor a file",
            ),
        ],
    );
}

#[test]
fn results_are_never_written_over_something() {
    let place = furnished();
    let before = place.entries();
    for (out, sentence) in [
        ("data", "data exists: continue it with --resume or name another --out"),
        ("dangling", "dangling exists"),
        ("directory", "directory exists"),
        ("none/run.jsonl", "the run file none/run.jsonl cannot be made: No such file"),
    ] {
        let finished = place.run(&[&SMALL[..], &["--out", out]].concat());
        expect_refused(&finished, sentence);
        assert_eq!(place.entries(), before);
    }
    assert!(fs::read(place.file("data")).expect("read") == vec![1; 256 << 10]);
}

#[test]
fn too_little_disk_is_refused_before_the_first_byte() {
    let place = Place::new();
    let finished = place.run(&["run", "read", "--file-size", "900TiB"]);
    expect_refused(&finished, "a dataset of 900TiB does not fit");
    assert!(finished.stderr.contains("are free"), "{finished:?}");
    assert!(place.entries().is_empty());

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
    expect_refused(&finished, "a dataset of 12MiB does not fit");
    assert!(finished.stderr.contains("24MiB are free, of which 16MiB are reserved"), "{finished:?}");
}

#[test]
fn a_second_run_is_refused_and_told_of_the_first() {
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
    expect_told(&finished, 4, &format!("another run is measuring (pid {}, begun in ", first.id()));
    assert!(finished.stderr.contains(&*place.path().to_string_lossy()), "{finished:?}");
    assert!(second.entries().is_empty());
    assert_eq!(place.entries(), before, "the live run keeps its dataset");
    let pid = Pid::from_raw(first.id() as i32).expect("a process id");
    rustix::process::kill_process(pid, Signal::TERM).expect("kill");
    place.finish(first).expect_code(130);
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
            ("report directory", "directory is not a run file: it is not a regular file"),
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
            ("report schema.jsonl", "line 1: the file has schema 99: this pagewise reads schemas 1 to 2"),
            ("report run.jsonl garbage.jsonl", "garbage.jsonl, line 6"),
            ("report run.jsonl --json --csv", "cannot be used with"),
            ("report run.jsonl --csv --out run.jsonl", "run.jsonl exists: name another file"),
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
