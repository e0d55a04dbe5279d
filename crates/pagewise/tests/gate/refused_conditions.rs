//! Conditions that make no sense: one sentence, exit code 2, and nothing is created.

use crate::support::{Place, refuse_all};

#[test]
fn words_that_make_no_sense() {
    let cap = "write read-iops=2000, read-bandwidth=50MiB/s, both with a comma, or one of microsd";
    let times = "write a number from 0.001 to 1000 before the x, as in 1.5x";
    let skew = "write uniform, or zipf: with a number from 0.001 to 10, as in zipf:0.99";
    let cpus = "write numbers and ranges, as in 0-3,8";
    let numa = "write same, other or the number of a node";
    refuse_all(
        &Place::new(),
        &[
            ("run read --memory 256", "invalid size '256': write a unit, as in 4KiB"),
            ("run read --memory much", "invalid size 'much': write a number with a unit"),
            ("run read --memory 1x", "invalid size '1x': write a number with a unit"),
            ("run read --memory ''", "--memory"),
            ("run read --memory 64MiB --span 0x", times),
            ("run read --memory 64MiB --span=-1x", times),
            ("run read --memory 64MiB --span 1e99x", times),
            ("run read --memory 64MiB --span nanx", times),
            ("run read --memory 64MiB --span infx", times),
            ("run read --memory 64MiB --span x", times),
            ("run read --memory 64MiB --file-size 0x", times),
            ("run read --device-cap fast", cap),
            ("run read --device-cap read-iops", cap),
            ("run read --device-cap write-iops=3", cap),
            ("run read --device-cap read-iops=2000,read-iops=3", cap),
            (
                "run read --device-cap read-iops=0",
                "invalid read-iops '0': write a whole number of at least 1",
            ),
            (
                "run read --device-cap read-iops=-1",
                "invalid read-iops '-1': write a whole number of at least 1",
            ),
            (
                "run read --device-cap read-bandwidth=0B",
                "invalid read-bandwidth '0B': write bytes per second",
            ),
            (
                "run read --device-cap read-bandwidth=50",
                "invalid read-bandwidth '50': write bytes per second",
            ),
            (
                "run read --device-cap read-bandwidth=50MiB",
                "invalid read-bandwidth '50MiB': write bytes per second",
            ),
            ("run read --readahead fast", "invalid size 'fast': write a number with a unit"),
            ("run read --readahead 128", "invalid size '128': write a unit"),
            ("run read --cpus 3-1", cpus),
            ("run read --cpus all", cpus),
            ("run read --cpus=-1", cpus),
            ("run read --cpus 0,,1", cpus),
            ("run read --cpus ''", cpus),
            ("run read --cpus 0-99999999999", cpus),
            ("run read --numa far", numa),
            ("run read --numa=-1", numa),
            ("run read --skew zipf", skew),
            ("run read --skew zipf:0", skew),
            ("run read --skew zipf:-1", skew),
            ("run read --skew zipf:nan", skew),
            ("run read --skew zipf:99", skew),
            ("run read --skew flat", skew),
            (
                "run read --cache cold-star",
                "unknown cache state 'cold-star': write one of cold, warm, warm-small, as-is, read-once, recorded, cold-start",
            ),
            ("run read --dependent=no", "--dependent"),
            ("run read --drop-caches=1", "--drop-caches"),
            ("run read --resume --out none --memory 64MiB", "--resume takes every choice from none"),
        ],
    );
}

#[test]
fn conditions_that_are_impossible() {
    let place = Place::new();
    place.write("data", vec![1; 256 << 10]);
    refuse_all(
        &place,
        &[
            (
                "run read --span 2x",
                "a size in multiples of the cache needs a memory limit: write --memory 256MiB",
            ),
            ("run read --file-size 2x", "needs a memory limit: write --memory 256MiB, or the size in bytes"),
            ("run read --memory none --span 2x", "needs a memory limit: write --memory 256MiB"),
            ("run read --memory 64MiB,none --span 2x", "needs a memory limit: write --memory 256MiB"),
            ("run read --memory 1MiB", "is too small for a worker here: the smallest that works is"),
            ("run read --memory 0B", "is too small for a worker here: the smallest that works is"),
            ("run read --memory 64TiB", "a memory limit of 64TiB is above this machine's memory of"),
            (
                "run read --cache as-is --memory 64MiB",
                "existing page cache is not charged to the worker: with a memory limit use",
            ),
            (
                "run read --file data --memory 64MiB",
                "evicts your file from the page cache, now and between samples, and other programs that read the file slow down then: allow it with: pagewise run read",
            ),
            ("run read --file data --memory 64MiB --cache warm", "allow it with: pagewise run read"),
            ("run read --file data --cache cold-start", "allow it with: pagewise run read"),
            ("run read --cache cold --skew zipf:0.99", "zipf:0.99 repeats reads, a cold sample has none"),
            (
                "run read --dependent",
                "sequential reads do not depend on each other: use --workload random-read",
            ),
            (
                "run read --dependent --workload sequential-read",
                "sequential reads do not depend on each other",
            ),
            ("run read --cpus 999", "CPU 999 is not online here: write CPUs of "),
            ("run read --cpus 0,999", "CPU 999 is not online here: write CPUs of "),
            ("run read --numa 9999", "NUMA node 9999 has no memory here: there"),
            ("run read --numa same --cache cold", "so all of them must be in memory: use --cache warm"),
            ("run read --readahead 1000B", "a readahead of 1000B is not a whole number of pages of"),
            ("run read --readahead 99TiB", "a readahead of 99TiB is too large: write at most 1GiB"),
            ("run cliff", "needs a memory limit: write --memory 256MiB"),
        ],
    );
}

#[test]
fn plans_with_conditions_that_make_no_sense() {
    let place = Place::new();
    let table = [
        ("memory = 3", "in 'memory': invalid size '3': write a unit, as in 4KiB"),
        ("memory = true", "in 'memory': invalid size 'true': write a number with a unit"),
        ("memory = []", "'memory' is an empty list: there would be nothing to measure"),
        ("memory = \"0.5x\"", "in 'memory': invalid size '0.5x': write a number with a unit"),
        ("memory = \"1MiB\"", "a memory limit of 1MiB is too small for a worker here"),
        ("span = \"0x\"", "in 'span': invalid multiple of the cache '0x'"),
        ("span = 2", "in 'span': invalid size '2': write a unit"),
        ("device_cap = \"fast\"", "in 'device_cap': invalid device cap 'fast'"),
        ("device_cap = 2000", "in 'device_cap': invalid device cap '2000'"),
        ("readahead = 128", "in 'readahead': invalid size '128': write a unit"),
        ("cpus = \"3-1\"", "in 'cpus': invalid list of CPUs '3-1'"),
        ("cpus = 999", "CPU 999 is not online here"),
        ("numa = \"far\"", "in 'numa': invalid NUMA placement 'far'"),
        ("numa = 9999", "NUMA node 9999 has no memory here"),
        ("skew = 0.99", "in 'skew': invalid value 0.99: write a text in quotes"),
        ("skew = \"zipf\"", "in 'skew': invalid skew 'zipf'"),
        (
            "dependent = \"yes\"",
            "in 'dependent': invalid value 'yes': provided string was not `true` or `false`",
        ),
        ("crossing_percent = 5", "a crossing of methods as data outgrow the cache needs a memory limit"),
        ("crossing_percent = 0\nmemory = \"64MiB\"", "crossing_percent = 0: write 1 to 100"),
        ("memry = \"64MiB\"", "unknown key 'memry': the nearest known one is 'memory'"),
        ("device-cap = \"emmc\"", "unknown key 'device-cap': the nearest known one is 'device_cap'"),
        ("read_ahead = \"4KiB\"", "unknown key 'read_ahead': the nearest known one is 'readahead'"),
        ("cpu = 1", "unknown key 'cpu': the nearest known one is 'cpus'"),
        ("nuna = 1", "unknown key 'nuna': the nearest known one is 'numa'"),
        ("skeww = \"uniform\"", "unknown key 'skeww': the nearest known one is 'skew'"),
        (
            "[random-read]\ndependant = true",
            "in [random-read]: unknown key 'dependant': the nearest known one is 'dependent'",
        ),
    ];
    for (text, sentence) in table {
        place.write("plan.toml", format!("workload = \"random-read\"\n{text}\n"));
        refuse_all(&place, &[("run plan.toml", sentence)]);
    }
}
