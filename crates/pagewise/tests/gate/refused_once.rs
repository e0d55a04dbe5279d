//! Scan, append and fill: what makes no sense is refused in one sentence with exit code 2, and
//! nothing is created.

use crate::support::{Place, refuse_all};

/// A place with what the tables below name.
fn furnished() -> Place {
    let place = Place::new();
    place.write("data", vec![1; 256 << 10]);
    place.write("empty", []);
    place.write("bare.toml", "workload = \"append\"\nfile_size = \"1MiB\"\n");
    place
}

#[test]
fn words_that_make_no_sense() {
    let sync = "one of none, end, every:SIZE";
    let size = "write a number with a unit (B, KiB";
    refuse_all(
        &furnished(),
        &[
            ("run append --record-size 10", "invalid size '10': write a unit, as in 4KiB"),
            ("run append --record-size 10KB", "ambiguous size '10KB': write 10KiB or 10000B"),
            ("run append --record-size=-1B", size),
            ("run append --record-size ''", "--record-size"),
            ("run fill --block-size 128", "invalid size '128': write a unit"),
            ("run fill --block-size 1kB", "ambiguous size '1kB': write 1KiB or 1000B"),
            ("run fill --block-size=-128B", size),
            ("run append --passes many", "--passes"),
            ("run append --passes=-1", "--passes"),
            ("run append --sync always", sync),
            ("run append --sync every", sync),
            ("run append --sync every:4096", "invalid size '4096': write a unit"),
            ("run append --sync every:0B", "invalid sync 'every:0B': write the bytes between two"),
            ("run scan --consume words", "unknown consumption 'words': write one of touch, sum, lines"),
            (
                "run append --methods mmap:buffer=10",
                "invalid option 'buffer=10': invalid size '10': write a unit",
            ),
            (
                "run append --methods mmap:buffer=10KB",
                "invalid option 'buffer=10KB': ambiguous size '10KB': write 10KiB or 10000B",
            ),
            (
                "run append --methods mmap:buffer=-1B",
                "invalid option 'buffer=-1B': invalid size '-1B': write a number with a unit",
            ),
            (
                "run append --methods mmap:buffer=0B",
                "invalid option 'buffer=0B': expected buffer=1B to buffer=1GiB",
            ),
            (
                "run append --methods mmap:buffer=2GiB",
                "invalid option 'buffer=2GiB': expected buffer=1B to buffer=1GiB",
            ),
            ("run append --methods mmap:buffer", "buffer"),
            (
                "run fill --dir . --methods mmap:pretouch=0B",
                "invalid option 'pretouch=0B': expected pretouch=1B to pretouch=1GiB",
            ),
            ("run append --methods mmap:direct", "unknown option 'direct' of 'mmap'"),
            ("run append --full --quick", "'--full' cannot be used with '--quick'"),
            ("run append --resume --out none --full", "--resume takes every choice from none"),
            ("run append --resume --out none --record-size 1KiB", "--resume takes every choice from none"),
            (
                "run write",
                "'write' is neither a question (read, scan, append, fill, update, cliff, lucene, fleet, replay) nor a file",
            ),
        ],
    );
}

#[test]
fn axes_that_the_workload_has_not() {
    refuse_all(
        &furnished(),
        &[
            ("run scan --sync end", "'sync' is for append, fill, update: scan has none"),
            (
                "run read --sync end",
                "'sync' is for append, fill, update: random-read, sequential-read have none",
            ),
            (
                "run read --record-size 1KiB",
                "'record_size' is for append: random-read, sequential-read have none",
            ),
            ("run read --workload random-read --passes 2", "'passes' is for append: random-read has none"),
            (
                "run read --block-size 1KiB",
                "'block_size' is for fill, update: random-read, sequential-read have none",
            ),
            ("run scan --record-size 1KiB", "'record_size' is for append: scan has none"),
            ("run fill --dir . --record-size 1KiB", "'record_size' is for append: fill has none"),
            ("run fill --dir . --passes 2", "'passes' is for append: fill has none"),
            ("run append --block-size 1KiB", "'block_size' is for fill, update: append has none"),
            ("run scan --read-size 4KiB", "'read_size' is for random-read, sequential-read: scan has none"),
            (
                "run append --read-size 4KiB",
                "'read_size' is for random-read, sequential-read: append has none",
            ),
            (
                "run scan --reads-per-op 4",
                "'reads_per_op' is for random-read, sequential-read: scan has none",
            ),
            ("run scan --align 4KiB", "'align' is for random-read, sequential-read: scan has none"),
            ("run scan --skew zipf:0.99", "'skew' is for random-read, sequential-read: scan has none"),
            ("run scan --dependent", "'dependent' is for random-read, sequential-read: scan has none"),
            (
                "run fill --dir . --descriptor shared",
                "'descriptor' is for random-read, sequential-read, replay: fill has none",
            ),
            (
                "run append --consume lines",
                "'consume' is for random-read, sequential-read, scan, replay: append has none",
            ),
            ("run append --span 1MiB", "'span' is for random-read, sequential-read, scan: append has none"),
            (
                "run fill --dir . --span 1MiB",
                "'span' is for random-read, sequential-read, scan: fill has none",
            ),
            // Nobody typed a read size.
            (
                "run append --workload scan",
                "in the plan 'append': 'record_size' is for append: scan has none",
            ),
        ],
    );
}

#[test]
fn choices_that_are_impossible() {
    let new_or_warm = "a file to be written cannot be ";
    refuse_all(
        &furnished(),
        &[
            (
                "run append --file-size 1MiB --record-size 2MiB",
                "a record of 2MiB is larger than the file of 1MiB",
            ),
            (
                "run fill --dir . --file-size 1MiB --block-size 2MiB",
                "a block of 2MiB is larger than the file of 1MiB",
            ),
            (
                "run append --file-size 1MiB --record-size 100B,2MiB",
                "a record of 2MiB is larger than the file of 1MiB",
            ),
            (
                "run append --file-size 128MiB --record-size 65MiB",
                "a record of 65MiB is too large: write at most 64MiB",
            ),
            ("run append --record-size 0B", "a record of 0B writes nothing"),
            ("run fill --dir . --block-size 0B", "a block of 0B writes nothing"),
            ("run append --file-size 0B", "a file of 0B has no space for records"),
            ("run scan --file-size 0B", "a file of 0B holds nothing to read"),
            ("run append --passes 0", "0 passes: write 1 to 1000"),
            ("run append --passes 1001", "1001 passes: write 1 to 1000"),
            ("run scan --threads 2", "scan is done by one thread: 2 threads are not possible"),
            ("run append --threads 2", "append is done by one thread: 2 threads are not possible"),
            ("run fill --dir . --threads 2", "fill is done by one thread: 2 threads are not possible"),
            ("run append --threads 0", "0 threads write nothing: write 1 or more"),
            ("run append --file data", "append writes, and your own file is only read: name a directory"),
            ("run fill --file data", "fill writes, and your own file is only read: name a directory"),
            ("run bare.toml --file data", "append writes, and your own file is only read: name a directory"),
            (
                "run append --device-cap microsd",
                "a device cap limits reads, and append writes: leave the cap out",
            ),
            (
                "run fill --dir . --device-cap microsd",
                "a device cap limits reads, and fill writes: leave the cap out",
            ),
            ("run append --cache as-is", new_or_warm),
            ("run append --cache cold-start", new_or_warm),
            ("run fill --dir . --cache as-is", new_or_warm),
            ("run fill --dir . --cache cold-start", new_or_warm),
            ("run scan --cache cold-start", "a scan reads every page once, so it warms no cache"),
            (
                "run append --memory 64MiB --cache warm --file-size 1MiB",
                "pages written before are not charged to the worker: with a memory limit use --cache cold",
            ),
            (
                "run scan --file data --cache cold",
                "allow it with: pagewise run scan --file data --cache cold --evict",
            ),
            ("run scan --file data --file-size 1MiB", "your own file has its size: leave the file size out"),
            ("run scan --file empty", "empty is empty: there is nothing to read"),
            ("run scan --file data --dir .", "only read, and no other is made: leave --dir out"),
            ("run scan . --dir .", "the directory is named twice"),
            ("run scan --file data --beside read:pread,rate=max --dir absent", "absent does not exist"),
            ("run scan --victim read:pread,file=./absent", "./absent does not exist"),
            (
                "run scan --victim read:pread,file=./data --memory 64MiB",
                "allow it with: pagewise run scan --victim read:pread,file=./data --memory 64MiB --evict",
            ),
            ("run read --consume lines", "lines are counted in scans only: use pagewise scan"),
            ("run append --rounds 3", "3 rounds: write 7 to 10000, since fewer give no 95 % interval"),
        ],
    );
}

#[test]
fn methods_that_cannot_do_the_work() {
    let reading = "which reads: its methods are mmap,";
    let writing = "which writes: its methods are mmap, pwrite, write, uring";
    refuse_all(
        &furnished(),
        &[
            ("run scan --methods pwrite", reading),
            ("run scan --methods write:buffer=4KiB", reading),
            ("run append --methods pread", writing),
            ("run append --methods read:buffer=4KiB", writing),
            ("run fill --dir . --methods pread:direct", writing),
            ("run read --methods read:buffer=64KiB", "is not a method for random-read, which reads"),
            ("run read --methods write", "'write' is not a method for random-read, which reads"),
            (
                "run fill --dir . --methods mmap:in-place",
                "'in-place' in 'mmap:in-place' does not apply to fill: there mmap",
            ),
            ("run append --methods mmap:in-place", "'in-place' in 'mmap:in-place' does not apply to append"),
            ("run append --methods mmap:prefetch", "does not apply to append: there mmap takes"),
            ("run append --methods mmap:populate-read", "does not apply to append: there mmap takes"),
            ("run append --methods uring:fixed+depth=4", "does not apply to append: there uring takes"),
            ("run scan --methods mmap:prealloc", "'prealloc' in 'mmap:prealloc' does not apply to scan"),
            ("run scan --methods mmap:populate-write", "does not apply to scan"),
            ("run scan --methods mmap:prefetch", "does not apply to scan"),
            ("run read --methods mmap:touch", "does not apply to random-read"),
            (
                "run append --methods mmap:buffer=100B --record-size 1KiB",
                "a record of 1KiB does not fit into the buffer of mmap:buffer=100B",
            ),
            // Another method that fits helps this one nothing.
            (
                "run append --methods mmap,mmap:buffer=100B --record-size 1KiB",
                "a record of 1KiB does not fit into the buffer of mmap:buffer=100B",
            ),
            (
                "run fill --dir . --methods pwrite:buffer=100B",
                "a record of 128B does not fit into the buffer of pwrite:buffer=100B",
            ),
            (
                "run append --methods pwrite:direct",
                "pwrite:direct needs a buffer, because O_DIRECT moves whole blocks: write pwrite:direct+buffer=64KiB",
            ),
            ("run append --methods write:direct", "write:direct needs a buffer"),
            ("run append --methods uring:direct+depth=4", "uring:direct+depth=4 needs a buffer"),
            ("run append --methods pwrite:direct+buffer=1000B", "is not a multiple of the"),
            ("run append --methods uring:direct+depth=4+buffer=1000B", "is not a multiple of the"),
            ("run scan --methods read:direct+buffer=1000B", "is not a multiple of the"),
            ("run scan --methods uring:direct+depth=4+buffer=1000B", "is not a multiple of the"),
            (
                "run append --methods mmap:pretouch=1MiB+buffer=4KiB",
                "both a buffer and a thread run ahead of the writer: leave one out",
            ),
        ],
    );
}

#[test]
fn plans_that_make_no_sense() {
    let place = furnished();
    let table = [
        (
            "append",
            "recordsize = \"1KiB\"",
            "unknown key 'recordsize': the nearest known one is 'record_size'",
        ),
        (
            "append",
            "record-size = \"1KiB\"",
            "unknown key 'record-size': the nearest known one is 'record_size'",
        ),
        ("fill", "blocksize = \"1KiB\"", "unknown key 'blocksize': the nearest known one is 'block_size'"),
        ("append", "pass = 2", "unknown key 'pass': the nearest known one is 'passes'"),
        ("append", "synch = \"end\"", "unknown key 'synch': the nearest known one is 'sync'"),
        ("fill", "inmemory = true", "unknown key 'inmemory': the nearest known one is 'in_memory'"),
        ("scan", "limit = 3", "unknown key 'limit': the nearest known one is 'limited'"),
        ("scan", "limited = 3", "'limited' is a table: write [limited] above its keys"),
        (
            "scan",
            "[limited]\nround = 7",
            "in [limited]: unknown key 'round': the nearest known one is 'rounds'",
        ),
        ("append", "record_size = 100", "in 'record_size': invalid size '100': write a unit"),
        (
            "append",
            "record_size = \"10KB\"",
            "in 'record_size': ambiguous size '10KB': write 10KiB or 10000B",
        ),
        ("append", "record_size = []", "'record_size' is an empty list"),
        ("append", "passes = \"two\"", "in 'passes': invalid value 'two'"),
        ("append", "passes = -1", "in 'passes': invalid value '-1'"),
        ("append", "sync = true", "in 'sync': unknown sync 'true'"),
        (
            "append",
            "sync = \"fsync\"",
            "'fsync' is a call: write end, every:SIZE or commit, and the call as --sync-call fsync",
        ),
        ("append", "sync = \"every:0B\"", "in 'sync': invalid sync 'every:0B'"),
        ("fill", "in_memory = \"yes\"", "in 'in_memory': invalid value \"yes\": write true or false"),
        ("scan", "[scan]\nrecord_size = \"1KiB\"", "in [scan]: 'record_size' is for append"),
        ("append", "[append]\nblock_size = \"1KiB\"", "in [append]: 'block_size' is for fill"),
        ("append", "[append]\nrecordsize = \"1KiB\"", "in [append]: unknown key 'recordsize'"),
        ("fill", "[fill]\npasses = 2", "in [fill]: 'passes' is for append"),
        (
            "append",
            "[append]\nread_size = \"4KiB\"",
            "in [append]: 'read_size' is for random-read, sequential-read",
        ),
        (
            "update",
            "block_size = \"1B\"\nfile_size = \"5GiB\"",
            "5368709120 blocks: write a larger block or a smaller file, with at most 4294967295",
        ),
        (
            "update",
            "updates = 16\nsync = \"every:256KiB\"",
            "a sync every 256KiB of 64KiB that are written is one at the end: use --sync end, a shorter interval or more --updates",
        ),
        ("update", "updates = 0", "0 updates write nothing: write 1 or more"),
        ("update", "reads_per_update = 1001", "1001 reads before an update: write at most 1000"),
        (
            "update",
            "updates = 1000000\nreads_per_update = 19\nfile_size = \"8GiB\"",
            "1000000 updates and 19000000 reads: write at most 16777216 together",
        ),
        (
            "update",
            "updates = 1\nreads_per_update = 1\nfile_size = \"12KiB\"\nsync = \"end\"",
            "a file of 12KiB has 3 blocks, too few to read some while others are updated: write a larger --file-size or no --reads-per-update",
        ),
        ("fill", "reads_per_update = 1", "'reads_per_update' is for update: fill has none"),
        ("update", "updates = 17000000", "17000000 updates: write at most 16777216"),
        (
            "update",
            "updates = 1025\nfile_size = \"4MiB\"",
            "1025 updates, and a file of 4MiB has 1,024 blocks, of which none is updated twice: write a larger --file-size or fewer --updates",
        ),
        (
            "update",
            "cache = \"cold-start\"",
            "use --cache cold (not in the page cache), warm or warm-small (in folios of one page)",
        ),
        ("append", "cache = \"warm-small\"", "cannot be warm-small: use --cache cold (new) or --cache warm"),
        (
            "scan",
            "cache = \"warm-small\"",
            "small folios are for files to update, scan reads: use --cache warm",
        ),
        (
            "update",
            "block_size = \"1000B\"\nmethods = \"pwrite:direct\"",
            "a block of 1000B is not a multiple of the",
        ),
        ("update", "methods = \"write\"", "'write' is not a method for update"),
        (
            "append",
            "expect = \"p99>10ms\"",
            "in 'expect': invalid expectation 'p99>10ms': write one as in p99<10ms",
        ),
        ("append", "expect = \"p99<10\"", "in 'expect': invalid time '10': write a unit"),
        ("append", "expect = []", "'expect' is an empty list"),
        ("append", "expect = [\"p99<1s\", \"p99<1000ms\"]", "p99<1s is expected twice: write it once"),
        (
            "append",
            "expect = \"p99<1s\"\nbudget = \"60s\"",
            "--budget ends when the order of methods is decided, which says nothing of p99<1s",
        ),
        ("scan", "expect = \"sync-p99<1s\"", "sync-p99<1s cannot be answered: nothing is written"),
        (
            "append",
            "expect = \"written<=2x\"",
            "written<=2.00x cannot be answered: no sync is in the measured region",
        ),
        (
            "random-read",
            "expect = \"p99<1s\"\ncache = \"cold-start\"",
            "p99<1s cannot be answered: a cold start is reported as rates over time",
        ),
        (
            "append",
            "expect = \"p99.9999<1s\"",
            "p99.9999<1s needs 120000 samples of each method, and a run has at most 10000",
        ),
        ("fill", "updates = 7", "'updates' is for update: fill has none"),
        ("scan", "sync = \"end\"", "in the plan 'plan': 'sync' is for append, fill, update: scan has none"),
        (
            "append",
            "consume = \"lines\"",
            "'consume' is for random-read, sequential-read, scan, replay: append has none",
        ),
    ];
    for (workload, text, sentence) in table {
        place.write("plan.toml", format!("workload = \"{workload}\"\n{text}\n"));
        refuse_all(&place, &[("run plan.toml", sentence)]);
    }
    // A key of a variant counts where the variant is wanted.
    place.write("plan.toml", "workload = \"scan\"\n[quick]\nsync = \"end\"\n");
    refuse_all(&place, &[("run plan.toml --quick", "in the plan 'plan': 'sync' is for append, fill")]);
}
