//! Runs under limits, caps and other settings, and cold starts.

use super::*;
use crate::judge::label::label;
use crate::judge::reasons::{Shortfall, Withheld};
use pagewise_model::{Conditions, Evidence, RateWindow};

/// Change the samples of `run`, by method.
fn change(run: &mut Run, change: impl Fn(&str, u32, &mut Measurement, &mut Evidence)) {
    let methods: Vec<(String, String)> =
        run.header.plan.cells.iter().map(|cell| (cell.id(), cell.method.to_string())).collect();
    for sample in &mut run.samples {
        let method = methods.iter().find(|(id, _)| *id == sample.cell).map(|(_, method)| method.as_str());
        if let Outcome::Taken { measurement, evidence, .. } = &mut sample.outcome {
            change(method.expect("a cell of the plan"), sample.round, measurement, evidence);
        }
    }
}

fn limited(role: Role, method: &str, speed: u64) -> (Cell, u64) {
    (Cell { role, ..honest::limited(method, CacheState::Warm, 128) }, speed)
}

fn above_memory() -> Run {
    run(&[
        limited(Role::Measured, "mmap:random", 10),
        limited(Role::Measured, "pread", 13),
        limited(Role::Control, "pread", 13),
    ])
}

fn cold_starts() -> Run {
    run(&[
        entry(Role::Measured, "mmap", CacheState::ColdStart, 10),
        entry(Role::Measured, "pread", CacheState::ColdStart, 1),
        entry(Role::Control, "pread", CacheState::ColdStart, 1),
        entry(Role::Measured, "pread:direct", CacheState::ColdStart, 20),
    ])
}

#[test]
fn what_a_limit_left_and_caused_stands_in_the_json() {
    let mut run = above_memory();
    change(&mut run, |_, _, _, evidence| {
        evidence.host.tlb_shootdowns = Some(302);
        evidence.host.scanned_directly = Some(77);
        let group = evidence.group.as_mut().expect("a group");
        group.refaults = Some(5000);
        group.kernel_bytes = Some(3 << 20);
    });
    let judged = judge(&run);
    let cell = &judged.cells[0];
    let limit = 128u64 << 20;
    assert_eq!(cell.memory_limit_bytes, Some(Bytes(limit)));
    assert_eq!(cell.data_over_memory, Some(2.0));
    // The charges of the honest group other than page cache are those that the model subtracts.
    let capacity = run.header.plan.cells[0].conditions.cache_capacity().expect("a limit").0;
    assert_eq!(cell.cache_capacity_bytes, Some(capacity));
    assert_eq!(cell.data_over_cache, Some((256u64 << 20) as f64 / capacity as f64));
    let seen = cell.evidence.as_ref().expect("evidence");
    assert_eq!((seen.group_peak_bytes, seen.group_kernel_bytes), (Some(limit), Some(3 << 20)));
    assert_eq!(
        (seen.refaults, seen.scanned_directly, seen.reclaimed_by_kswapd),
        (Some(5000), Some(77), None)
    );
    assert_eq!(seen.tlb_shootdowns_per_second, Some(2000.0));
    assert_eq!(seen.amplification, Some(0.5));
    // 20 MiB in faults of a page, over the operations of both phases.
    let per_op = seen.major_faults_per_op.expect("faults");
    assert!((per_op - 5120.0 / 10_043.5).abs() < 0.001, "{per_op}");
    let json = json(&judged);
    let parameters = &json["cells"][0]["parameters"];
    assert_eq!(
        (parameters["skew"].as_str(), parameters["dependent"].as_bool()),
        (Some("uniform"), Some(false))
    );
    assert!(parameters["device_cap"].is_null() && parameters["cpus"].is_null());
}

#[test]
fn without_a_limit_there_is_no_capacity() {
    let judged = judge(&run(&three(CacheState::Warm)));
    let cell = &judged.cells[0];
    assert_eq!((cell.cache_capacity_bytes, cell.data_over_cache, cell.data_over_memory), (None, None, None));
}

#[test]
fn faults_and_refaults_explain_a_mapping_that_loses() {
    let mut run = above_memory();
    change(&mut run, |_, _, measurement, evidence| {
        evidence.major_faults = Some(4 * (measurement.operations + 40));
        evidence.group.as_mut().expect("a group").refaults = Some(2 * (measurement.operations + 40));
    });
    let notes = notes(&judge(&run), 0);
    assert_eq!(
        notes.as_slice(),
        [
            "mmap:random: 4.00 major faults per operation.",
            "Refaults per operation, because of the memory limit: mmap:random 2.00, pread 2.00."
        ]
    );
}

#[test]
fn no_latency_is_shown_under_a_cap() {
    let capped = |role, method: &str, speed| (Cell { role, ..honest::set(method, CacheState::Cold) }, speed);
    let judged = judge(&run(&[
        capped(Role::Measured, "mmap", 10),
        capped(Role::Measured, "pread", 13),
        capped(Role::Control, "pread", 13),
    ]));
    for cell in &judged.cells {
        assert_eq!(cell.latency_ns, None);
        assert_eq!(cell.latency_reason, Some(Withheld::Capped));
    }
    let json = serde_json::to_value(&judged.cells[0]).expect("json");
    assert_eq!(json["parameters"]["device_cap"]["read_iops"], 2000);
    assert_eq!(json["parameters"]["cpus"], "0-1,3");
    assert_eq!(json["parameters"]["numa"], "other");
    let free = judge(&run(&three(CacheState::Warm)));
    assert!(free.cells[0].latency_ns.is_some() && free.cells[0].latency_reason.is_none());
}

#[test]
fn a_cold_start_is_ranked_by_its_time_to_warm() {
    let mut run = cold_starts();
    // pread is warm after three windows of 20 ms, mmap after five, though its total rate is higher.
    change(&mut run, |method, _, _, evidence| {
        if method == "mmap" {
            evidence.windows.splice(1..1, [evidence.windows[0]; 2]);
        }
    });
    let judged = judge(&run);
    let comparison = &judged.comparisons[0];
    assert_eq!((comparison.verdict, comparison.best.as_deref()), (Verdict::Best, Some("pread")));
    let (mmap, pread, direct) = (&judged.cells[0], &judged.cells[1], &judged.cells[3]);
    assert_eq!(mmap.time_to_warm_ns.map(|time| time.median), Some(100e6));
    assert_eq!(pread.time_to_warm_ns.map(|time| time.median), Some(60e6));
    assert_eq!(pread.bytes_to_warm.map(|read| read.median), Some((20 << 20) as f64));
    let course = pread.cold_start.as_ref().expect("a course");
    assert_eq!((course.len(), course[7].end_ns, course[7].samples), (8, 160_000_000, 8));
    assert_eq!((course[7].ops_per_second, course[7].device_read_bytes), (1200.0, Some(0)));
    assert_eq!((pread.latency_ns.as_ref(), direct.time_to_warm_ns), (None, None));
    let unranked = &comparison.unranked[0];
    assert_eq!(
        (unranked.method.as_str(), &unranked.reason),
        ("pread:direct", &UnrankedReason::BypassesCache)
    );
    assert!(sentence(&judged).contains("it is warm 1.67x"), "{}", sentence(&judged));
}

/// Three methods at a rate; `change` is for samples of `mmap`, by round.
fn at_rate(change: impl Fn(u32, &mut Measurement)) -> Judged {
    let cells =
        ["mmap", "pread", "pread:random"].map(|method| (honest::at_rate(method, CacheState::Warm), 1));
    let mut run = run(&cells);
    for sample in &mut run.samples {
        let Outcome::Taken { measurement, .. } = &mut sample.outcome else { continue };
        **measurement = honest::measurement_of(&cells[0].0);
        match (sample.cell.ends_with("/mmap"), sample.cell.ends_with("/pread")) {
            (true, _) => change(sample.round, measurement),
            (_, true) => measurement.latency_ns[0] = 400_000 + u64::from(sample.round),
            _ => {}
        }
    }
    judge(&run)
}

#[test]
fn methods_at_a_rate_are_ranked_by_their_usual_latency() {
    let judged = at_rate(|_, _| ());
    let comparison = &judged.comparisons[0];
    assert_eq!((comparison.verdict, comparison.best.as_deref()), (Verdict::Best, Some("pread")));
    assert!((comparison.ratios[0].ratio - 2.0).abs() < 0.01, "{:?}", comparison.ratios[0]);
    let mmap = &judged.cells[0];
    assert_eq!((mmap.usual_latency_ns.map(|time| time.median), mmap.rate_missed), (Some(800_000.0), Some(0)));
    assert_eq!(mmap.limit.bound, Some(crate::judge::bound::BoundName::Rate), "it was not asked for more");
    assert_eq!(mmap.reads_per_second.map(|rate| rate.median), Some(16_000.0));
    assert!(comparison.conditions.label.ends_with(" · 16k reads/s due"), "{}", comparison.conditions.label);
}

#[test]
fn a_method_that_cannot_keep_the_rate_is_not_ranked() {
    let half = |measurement: &mut Measurement| {
        (measurement.operations, measurement.thread_operations) = (80, vec![40, 40]);
    };
    let judged = at_rate(|_, measurement| half(measurement));
    let unranked = &judged.comparisons[0].unranked[0];
    assert_eq!(reasons::unranked(&unranked.reason), "cannot keep the rate: it did 8,000 of 16k reads/s");
    let mmap = &judged.cells[0];
    assert_eq!((mmap.usual_latency_ns, mmap.rate_missed), (None, Some(8)));
    assert_ne!(mmap.limit.bound, Some(crate::judge::bound::BoundName::Rate));

    let judged = at_rate(|round, measurement| {
        if round < 2 {
            half(measurement)
        }
    });
    let reason = reasons::unranked(&judged.comparisons[0].unranked[0].reason);
    assert_eq!(reason, "cannot keep the rate: it did 8,000 of 16k reads/s in 2 of 8 samples");
    assert_eq!((judged.cells[0].usual_latency_ns, judged.cells[0].rate_missed), (None, Some(2)));
    assert_eq!(reasons::cell(judged.cells[0].reason.as_ref()), reason);
    let judged = at_rate(|round, measurement| {
        if round < 1 {
            half(measurement)
        }
    });
    assert_eq!(judged.comparisons[0].unranked, [], "a busy machine may keep it from one of eight");

    let judged = at_rate(|_, measurement| {
        (measurement.operations, measurement.due_operations, measurement.cut_short) = (3, 40, true);
    });
    let reason = reasons::unranked(&judged.comparisons[0].unranked[0].reason);
    assert!(reason.starts_with("ended after 3 operations, too few"), "{reason}");
    assert_eq!(judged.cells[0].rate_missed, Some(0));

    let judged = at_rate(|round, measurement| {
        let (operations, cut_short) = if round < 1 { (100, false) } else { (3, true) };
        (measurement.operations, measurement.due_operations, measurement.cut_short) =
            (operations, 400, cut_short);
    });
    let reason = reasons::unranked(&judged.comparisons[0].unranked[0].reason);
    assert!(reason.starts_with("ended after 3 operations, too few"), "one of eight missed it: {reason}");
}

#[test]
fn a_cold_start_that_does_not_become_warm_has_no_time_to_warm() {
    // The cache fills up to the last window.
    let unsteady = |windows: &mut Vec<RateWindow>| {
        for (window, index) in windows.iter_mut().zip(1..) {
            window.device_read_bytes = Some(4 << 20);
            window.resident_bytes = Some(index * (4 << 20));
        }
    };
    let mut never = cold_starts();
    change(&mut never, |method, _, _, evidence| {
        if method == "mmap" {
            unsteady(&mut evidence.windows);
        }
    });
    let judged = judge(&never);
    let unranked = judged.comparisons[0].unranked.iter().find(|unranked| unranked.method == "mmap");
    assert_eq!(unranked.expect("unranked").reason, UnrankedReason::WithoutFigure(Shortfall::NotWarm));
    assert_eq!((judged.cells[0].time_to_warm_ns, judged.cells[0].samples), (None, 8));

    let mut rarely = cold_starts();
    change(&mut rarely, |method, round, _, evidence| {
        if method == "mmap" && round > 2 {
            unsteady(&mut evidence.windows);
        }
    });
    let judged = judge(&rarely);
    let unranked = judged.comparisons[0].unranked.iter().find(|unranked| unranked.method == "mmap");
    let reason = reasons::unranked(&unranked.expect("unranked").reason);
    assert!(reason.ends_with("it did not become warm in 5 more"), "{reason}");
}

#[test]
fn labels_name_every_condition_that_is_not_usual() {
    let with = |change: &dyn Fn(&mut Conditions)| {
        let mut conditions = honest::cell("pread", CacheState::Warm).conditions;
        change(&mut conditions);
        label(&conditions)
    };
    let usual = "random-read · batches of 16 reads of 16 KiB · warm · 2 threads · 256 MiB";
    assert_eq!(with(&|_| {}), usual);
    let all = with(&|conditions| {
        let reads = conditions.work.reads_mut().expect("reads");
        reads.skew = "zipf:0.99".parse().expect("a skew");
        reads.dependent = true;
        conditions.host_settings = honest::set("pread", CacheState::Warm).conditions.host_settings;
        conditions.host_settings.memory_limit_bytes = Some(Bytes::mib(128));
        conditions.host_settings.device_cap = Some("microsd".parse().expect("a cap"));
    });
    let settled = usual.replace("warm", "steady state");
    let limited = honest::limited("pread", CacheState::Warm, 128).conditions;
    let ratio = limited.span_bytes.0 as f64 / limited.cache_capacity().expect("a limit").0 as f64;
    assert_eq!(
        all,
        format!(
            "{settled} · zipf 0.99 · dependent · memory 128 MiB · data {ratio:.2}x the cache · cap microsd · \
             readahead 128 KiB · CPUs 0-1,3 · pages on the other node"
        )
    );
    let tiny = with(&|conditions| conditions.host_settings.memory_limit_bytes = Some(Bytes::mib(1)));
    assert!(tiny.ends_with("memory 1 MiB · no cache left under the limit"), "{tiny}");
    let cold_start = with(&|conditions| conditions.cache = CacheState::ColdStart);
    assert!(cold_start.contains("cold-start, ranked by the time to warm"), "{cold_start}");
}
