//! Words, choices, plans and files that make no sense: one sentence, exit code 2, and nothing is
//! created.

use std::fs;

use crate::support::furnished::furnished;
use crate::support::words::SMALL;
use crate::support::{expect_refused, refuse_all};

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
            ("inspect -- ''", "the name of the command is empty: write one behind --"),
            ("record -- '' word", "the name of the command is empty: write one behind --"),
            ("advise -- ''", "the name of the command is empty: write one behind --"),
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
            ("run lucene", "lucene needs a memory limit: write --memory 256MiB"),
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
            ("run read --cache hot", "unknown cache state 'hot': write one of cold, warm, warm-small, as-is"),
            ("run read --consume all", "unknown consumption 'all': write one of touch, sum"),
            ("run read --descriptor none", "unknown descriptor 'none': write one of shared, per-thread"),
            ("run read --sample 5", "invalid time '5': write a unit, as in 5ms or 5s"),
            ("run read --seed x", "--seed"),
            ("run read --metods mmap", "'--methods'"),
            ("run read --quick --full", "cannot be used with"),
            ("run read --dir . --file data", "only read, and no other is made: leave --dir out"),
            ("run read --evict", "--file"),
            ("read --evict", "--evict is for a file of your own: name one, as in --file index.bin"),
            ("read data --dir .", "only read, and no other is made: leave --dir out"),
            ("read none", "none does not exist"),
            ("append data", "append writes, and your own file is only read: name a directory"),
            ("read --rounds 9 --budget 60s", "cannot be used with"),
            ("read --time 60s", "unexpected argument '--time' found: did you mean '--budget'?"),
            ("read --budget 1ms", "s, and the budget is 1 ms: write --budget"),
            ("--budget 1s", "s, and the budget is 1 s: write --budget"),
            // More time would not help.
            ("read --budget 1s --file-size 100000TiB", "does not fit"),
            ("--dir none", "the directory none does not exist"),
            ("data", "write a question before it, as in pagewise read data or pagewise scan data"),
            ("directory", "write pagewise --dir directory for the overview"),
            ("run read --resume", "--out"),
            (
                "run",
                "missing question: write one of read, scan, append, fill, update, cliff, lucene, fleet, replay or the path of a plan file",
            ),
            (
                "run write",
                "'write' is neither a question (read, scan, append, fill, update, cliff, lucene, fleet, replay) nor a file",
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
                "a run that begins with an empty page cache, or with a part of the file in it, evicts your file from the page cache, now and between samples",
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
                "'none.toml' is neither a question (read, scan, append, fill, update, cliff, lucene, fleet, replay) nor a file",
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
