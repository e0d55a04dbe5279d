//! Plans with a rate.

use super::*;

#[test]
fn a_rate_is_an_axis_of_reads_and_of_committed_records() {
    let rates = |text: &str| {
        let plan = resolve_text(text, dataset()).expect(text);
        let rates = plan.cells.iter().filter(|cell| cell.role == Role::Measured);
        rates.map(|cell| cell.conditions.rate.map_or(0, |rate| rate.per_second())).collect::<Vec<_>>()
    };
    let reads = "reads_per_op = 1\nmethods = [\"pread\"]\nfile_size = \"64MiB\"\nrate = [\"2k\", \"none\"]";
    assert_eq!(rates(&format!("workload = \"random-read\"\n{reads}")), [2000, 0]);
    assert_eq!(rates(&format!("workload = [\"random-read\", \"scan\"]\n{reads}")), [2000, 0, 0]);
    let append = "workload = \"append\"\nmethods = [\"pwrite\"]\nrate = \"1k\"\nsync = ";
    assert_eq!(rates(&format!("{append}\"commit\"")), [1000]);
    for (text, reason) in [
        (
            format!("{append}\"end\""),
            "a rate of 1k/s is for records that are committed: write --sync commit too",
        ),
        (
            "workload = \"scan\"\nrate = \"100\"".to_string(),
            "'rate' is for random-read, sequential-read, append",
        ),
        ("cache = \"cold-start\"\nrate = \"10k\"".to_string(), "a cold start is ranked by the time until"),
        ("device_cap = \"emmc\"\nrate = \"10k\"".to_string(), "a rate is judged by latencies"),
        ("rate = \"0\"".to_string(), "invalid rate '0': write how many per second"),
        (
            "rate = \"1\"".to_string(),
            "at 1/s a thread has 1 operation due in a sample of 10 s: write --sample 160000ms or more",
        ),
    ] {
        let error = format!("{:#}", resolve_text(&text, dataset()).expect_err(&text));
        assert!(error.contains(reason), "{text}: {error}");
    }
    // Ceilings are as fast as they get.
    let plan = resolve_text(&format!("workload = \"random-read\"\n{reads}\ncache = \"cold\""), dataset());
    let ceilings = plan.expect("a plan").cells.into_iter().filter(|cell| cell.role == Role::Ceiling);
    assert_eq!(ceilings.filter(|cell| cell.conditions.rate.is_some()).count(), 0);
}

#[test]
fn a_sample_is_as_long_as_a_hundred_operations_take() {
    let of = |text: &str| {
        let text = format!("workload = \"random-read\"\nreads_per_op = 1\nfile_size = \"64MiB\"\n{text}");
        resolve_text(&text, dataset()).expect("a plan").sample_ns
    };
    let usual = of("");
    assert_eq!(of("rate = [\"none\", \"50k\"]"), usual);
    assert_eq!(of("rate = [\"10k\", \"50\"]"), 2_000_000_000);
    assert_eq!(of("rate = \"50\"\nthreads = 4"), 2_000_000_000, "threads take turns");
    assert_eq!(of("rate = \"1\""), 10_000_000_000);
}

#[test]
fn a_depth_has_no_use_for_single_reads_at_a_rate() {
    let text = |reads: u32| format!("workload = \"random-read\"\nreads_per_op = {reads}\nrate = \"10k\"");
    let rings = |reads| {
        let plan = resolve_text(&text(reads), dataset()).expect("a plan");
        plan.cells.iter().filter(|cell| cell.role == Role::Measured && cell.method.depth() > 1).count()
    };
    assert_eq!((rings(1), rings(16)), (0, 1), "nobody named it");
}
