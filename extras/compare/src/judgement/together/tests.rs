//! Made-up runs of machines, in step and not.

use pagewise_model::run::RunStart;
use pagewise_model::run_identity::RunIdentity;
use pagewise_model::{Bytes, Reads, Work};

use super::*;

const MS: u64 = 1_000_000;
/// When runs begin.
const BEGAN: u64 = 1_800_000_000_000 * MS;

fn access(method: &str) -> TimedAccess {
    let conditions = Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(16))), Bytes::mib(64));
    TimedAccess { conditions, method: method.to_string(), is_ceiling: false, attempts: 0 }
}

/// A run of a machine that began so many milliseconds late, and measured these methods for 80 ms
/// each, from these milliseconds on, at 10 bytes per second.
fn run(host: &str, late_ms: u64, samples: &[(&str, u64)]) -> Timeline {
    let mut accesses = vec![access("pread"), access("mmap")];
    let mut spans = Vec::new();
    for (method, from_ms) in samples {
        let index = accesses.iter().position(|access| access.method == *method).expect("a method");
        accesses[index].attempts += 1;
        let from_ns = BEGAN + from_ms * MS;
        spans.push(SampleSpan {
            access: index,
            from_ns,
            until_ns: from_ns + 80 * MS,
            bytes_per_second: Some(10.0),
        });
    }
    Timeline {
        name: format!("{host}.jsonl"),
        identity: RunIdentity {
            started_unix_s: 1,
            host_name: Some(host.to_string()),
            question: "read".to_string(),
            seed: 7,
        },
        is_complete: true,
        boot_id: Some(format!("boot of {host}")),
        plan: Some("1a2b3c4d".to_string()),
        start: Some(RunStart {
            asked_unix_ns: BEGAN,
            prepared_unix_ns: BEGAN - MS,
            began_unix_ns: BEGAN + late_ms * MS,
            is_synchronised: Some(true),
            clock_error_ns: Some(0),
        }),
        clock_was_set: false,
        accesses,
        spans,
    }
}

fn of(runs: impl IntoIterator<Item = Timeline>) -> Together {
    Together::of(runs.into_iter().collect()).expect("machines at one time")
}

#[track_caller]
fn expect_refused(runs: impl IntoIterator<Item = Timeline>, sentence: &str) {
    let refused = Together::of(runs.into_iter().collect()).expect_err("refused");
    assert!(refused.contains(sentence), "{refused}");
}

fn with_start(mut run: Timeline, change: impl Fn(&mut RunStart)) -> Timeline {
    run.start.iter_mut().for_each(change);
    run
}

const IN_STEP: [(&str, u64); 3] = [("pread", 0), ("mmap", 100), ("pread", 200)];

#[test]
fn machines_in_step_have_a_sum() {
    let found = of([run("b", 0, &IN_STEP), run("a", 0, &IN_STEP)]);
    assert_eq!(found.machines.iter().map(|one| one.machine.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((found.from_unix_ns, found.until_unix_ns), (BEGAN, BEGAN + 280 * MS));
    assert!(found.warnings.is_empty() && found.has_one_seed && !found.has_one_clock);
    let [pread, mmap] = &found.situations[0].methods[..] else { panic!("{found:?}") };
    assert_eq!((pread.sum_bytes_per_second, pread.summed_ns), (Some(20.0), 160 * MS));
    assert_eq!((mmap.sum_bytes_per_second, mmap.summed_ns), (Some(20.0), 80 * MS));
    let rate = RateOfMachine { samples: 2, left_out: 0, bytes_per_second: Some(10.0) };
    assert_eq!(pread.machines, [rate; 2]);
    assert_eq!(pread.beside, [MeasuredBeside { method: Some("pread".into()), label: None, share: 1.0 }]);
}

#[test]
fn what_was_measured_at_other_times_is_not_added_up() {
    let other = [("mmap", 0), ("pread", 130), ("pread", 300)];
    let found = of([run("a", 0, &IN_STEP), run("b", 0, &other)]);
    let [pread, mmap] = &found.situations[0].methods[..] else { panic!("{found:?}") };
    // 10 ms of two samples of 80 ms: they were together for too little.
    assert_eq!((pread.sum_bytes_per_second, pread.at_once_ns), (None, 10 * MS));
    assert_eq!((mmap.sum_bytes_per_second, mmap.at_once_ns), (None, 0));
    assert_eq!(
        mmap.beside.iter().map(|one| one.method.as_deref()).collect::<Vec<_>>(),
        [Some("pread"), None]
    );
    assert_eq!(mmap.beside[0].share, (80.0 + 50.0) / 160.0);
    // The last sample of b ended after a did.
    assert_eq!(pread.machines.iter().map(|one| one.left_out).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn only_what_all_share_counts() {
    // a begins last, and b ends first.
    let a = run("a", 150, &[("pread", 150), ("pread", 300), ("mmap", 400)]);
    let b = run("b", 0, &IN_STEP);
    let found = of([a, b]);
    assert_eq!((found.from_unix_ns, found.until_unix_ns), (BEGAN + 150 * MS, BEGAN + 280 * MS));
    assert_eq!(found.began_apart_ns, 150 * MS);
    let counted = |index: usize| {
        let machines = &found.situations[0].methods[index].machines;
        machines.iter().map(|one| (one.samples, one.left_out)).collect::<Vec<_>>()
    };
    assert_eq!(counted(0), [(1, 1), (1, 1)]);
    assert_eq!(counted(1), [(0, 1), (0, 1)]);
    assert_eq!(found.situations[0].methods[1].machines[0].bytes_per_second, None);
}

#[test]
fn the_errors_of_clocks_narrow_what_is_certain() {
    let off = |host, error_ms: u64| {
        with_start(run(host, 0, &IN_STEP), |start| start.clock_error_ns = Some(error_ms * MS))
    };
    let found = of([off("a", 5), off("b", 10)]);
    assert_eq!((found.from_unix_ns, found.until_unix_ns), (BEGAN + 10 * MS, BEGAN + 270 * MS));
    let [pread, mmap] = &found.situations[0].methods[..] else { panic!("{found:?}") };
    assert_eq!((mmap.summed_ns, mmap.at_once_ns), (60 * MS, 80 * MS));
    // Its samples are at the ends of the interval.
    assert_eq!((pread.summed_ns, pread.machines[0].left_out), (0, 2));
    assert_eq!(of([off("a", 5), off("b", 40)]).situations[0].methods[1].summed_ns, 0);
    // One kernel has one clock, whatever it is off.
    let one = |host, error_ms| Timeline { boot_id: Some("one".into()), ..off(host, error_ms) };
    let found = of([one("a", 16_000), one("b", 16_000)]);
    assert!(found.has_one_clock && found.warnings.is_empty());
    assert_eq!(found.situations[0].methods[0].summed_ns, 160 * MS);
}

#[test]
fn doubts_are_named() {
    let unknown = with_start(run("b", 0, &IN_STEP), |start| {
        (start.is_synchronised, start.clock_error_ns) = (Some(false), Some(16_000 * MS));
        start.asked_unix_ns -= 5 * MS;
    });
    let unknown = Timeline { is_complete: false, clock_was_set: true, ..unknown };
    let mut other = run("a", 0, &IN_STEP);
    other.accesses.push(access("uring"));
    let found = of([other, unknown]);
    let as_clocks_say = "; what was at one time is as the clocks say";
    assert_eq!(
        found.warnings,
        [
            format!("clock not known to be in step: b{as_clocks_say}"),
            format!("clock set during the run: b{as_clocks_say}"),
            "began late, since its preparation took too long: b".to_string(),
            "the runs were to begin at different times".to_string(),
            "not complete: b".to_string(),
            "not shown, as not all runs have them under the same conditions: 1 method".to_string(),
        ]
    );
    assert_eq!(found.situations[0].methods[1].summed_ns, 80 * MS, "as the clocks say");
}

#[test]
fn runs_that_were_not_together_are_refused() {
    let a = || run("a", 0, &IN_STEP);
    let b = || run("b", 0, &IN_STEP);
    expect_refused([a()], "--together needs the runs of two machines or more");
    expect_refused([a(), a()], "a.jsonl is named twice");
    let twice = Timeline { name: "again.jsonl".into(), ..run("a", 0, &IN_STEP) };
    let twice = Timeline { identity: RunIdentity { seed: 8, ..twice.identity.clone() }, ..twice };
    expect_refused([a(), twice.clone()], "all runs are of the machine a: name runs of two machines");
    let three = of([a(), b(), twice]);
    assert_eq!(three.machines[0].machine, "a (a.jsonl)");
    expect_refused([a(), Timeline { start: None, ..b() }], "b.jsonl did not begin at a time");
    expect_refused([a(), Timeline { spans: Vec::new(), ..b() }], "b.jsonl has no time of any sample");
    expect_refused([a(), run("b", 0, &[])], "b.jsonl has no samples");
    expect_refused([a(), Timeline { plan: None, ..b() }], "b.jsonl does not name its plan");
    let other = Timeline { plan: Some("ffffffff".into()), ..b() };
    expect_refused([a(), other], "a.jsonl and b.jsonl have different plans, 1a2b3c4d and ffffffff");
    let late = run("b", 1280, &[("pread", 1300)]);
    expect_refused([a(), late], "the runs share no time: that of a ended 1 s before that of b began");
    let mut sizes = b();
    sizes.accesses.iter_mut().for_each(|access| access.conditions.threads = 2);
    expect_refused([a(), sizes], "the runs have no method under the same conditions");
}

#[test]
fn times_that_no_clock_has_are_no_reason_to_fail() {
    let mut hostile = run("b", 0, &IN_STEP);
    hostile.spans[0].until_ns = u64::MAX;
    hostile.spans[1].from_ns = 0;
    let mut all = with_start(run("a", 0, &IN_STEP), |start| start.began_unix_ns = 0);
    all.spans[2].until_ns = u64::MAX;
    all.spans[1].from_ns = 0;
    let hostile = with_start(hostile, |start| {
        (start.began_unix_ns, start.clock_error_ns) = (1, Some(3));
    });
    assert_eq!(of([all, hostile]).situations[0].methods.len(), 2);
}
