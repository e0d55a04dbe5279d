//! Known answers under a device cap: what the device delivers is fixed by the cap, not by the
//! machine.
//!
//! Others on the machine can only take from a capped rate, and let a pause end late: a run goes on
//! until the medians of its samples meet what is known, and fails if those that nobody held up do
//! not. Files are as large as the rates ask for: a cold sample under a cap may read an eighth of
//! one, and stops short of that.

use std::ops::RangeInclusive;

use crate::support::until::{Taken, can_cap_device, expect_honest, judged_cell, my_turn, stop_when, valid};
use crate::support::{Place, kinds};
use pagewise_model::run::Run;
use pagewise_model::sample::Measurement;
use pagewise_model::{Bytes, Cell, DeviceCap, Evidence, FailureKind, Outcome, Role, Sample};
use serde_json::Value;

const READ_BYTES: u64 = 16 << 10;
/// The cap's rate is met within this share.
const CLOSE: f64 = 0.02;
/// Samples of each cell that is looked at, at least; each holds a thousand reads and more.
const SAMPLES: usize = 1;
const CEILING: &str = "uring:direct+depth=32";

/// Where a figure must lie, and the one that it is.
struct Figure {
    name: String,
    wanted: RangeInclusive<f64>,
    found: f64,
}

impl Figure {
    /// A rate that the cap fixes.
    fn rate(name: &str, wanted: f64, found: f64) -> Self {
        Self { name: name.to_string(), wanted: wanted * (1.0 - CLOSE)..=wanted * (1.0 + CLOSE), found }
    }

    /// The median of a judged cell.
    fn median(cell: &Value, key: &str, wanted: f64) -> Self {
        let found = cell[key]["median"].as_f64().unwrap_or_else(|| panic!("{key}: {cell}"));
        Self::rate(&format!("{key} of the {} {}", cell["role"], cell["method"]), wanted, found)
    }
}

/// Whether others used the device beside a sample, or every CPU, without which a pause ends late
/// and the next one early.
fn was_held_up(sample: &Sample, cpus: u32) -> bool {
    let Outcome::Taken { measurement, evidence, .. } = &sample.outcome else { return true };
    let most_ns = measurement.measured_ns as f64 * CLOSE / 2.0;
    kinds(sample).contains(&FailureKind::Contaminated)
        || evidence.run_queue_ns.is_none_or(|waited_ns| waited_ns as f64 > most_ns)
        || evidence.host.running.is_none_or(|running| running > u64::from(cpus.max(2) - 1))
}

/// Measures until each figure is met; `look` says them once there is `enough` to be looked at.
/// Where somebody held up every sample of a cell, nothing is known but what the checks of a sample
/// say of its cap.
#[track_caller]
fn meet(more: &[&str], enough: impl Fn(&Run) -> bool, look: impl Fn(&Taken) -> Vec<Figure>) {
    let figures = |run: &Run| {
        let taken = Taken::of(run);
        if enough(&taken.run) { look(&taken) } else { Vec::new() }
    };
    let is_met = |figures: &[Figure]| {
        !figures.is_empty() && figures.iter().all(|figure| figure.wanted.contains(&figure.found))
    };
    let undisturbed = |run: &Run| {
        let mut run = run.clone();
        let cpus = run.header.environment.cpus;
        run.samples.retain(|sample| !was_held_up(sample, cpus));
        figures(&run)
    };
    let is_hopeless =
        |run: &Run| run.samples.len() >= 3 * run.header.plan.cells.len() && undisturbed(run).is_empty();
    let run = stop_when(&Place::new(), more, |run| is_met(&figures(&run)) || is_hopeless(&run));
    expect_honest(&run);
    let found = figures(&run);
    for Figure { name, wanted, found } in &found {
        println!("{name}: {found:.2}, known to lie within {wanted:.2?}");
    }
    println!("{} samples were taken", run.samples.len());
    if !is_met(&found) {
        assert!(undisturbed(&run).is_empty(), "samples that nobody held up do not meet what is known");
    }
}

/// The cell of this role, method and size of reads.
fn is(role: Role, method: &str, read_bytes: u64) -> impl Fn(&Cell) -> bool {
    move |cell| {
        cell.role == role
            && cell.method.to_string() == method
            && cell.conditions.reads().is_some_and(|reads| reads.read_bytes.0 == read_bytes)
    }
}

/// Each sample was taken under this cap, as read back from its group, and lasted long enough for
/// it.
#[track_caller]
fn expect_capped(run: &Run, cap: &str) {
    let cap: DeviceCap = cap.parse().expect("a cap");
    for sample in &run.samples {
        let Outcome::Taken { measurement, evidence, .. } = &sample.outcome else { continue };
        let group = evidence.group.as_ref().expect("a group");
        assert!(["v1", "v2"].contains(&group.version.as_str()), "{group:?}");
        let uncapped = Some(pagewise_host::cgroup::UNLIMITED);
        assert_eq!(group.cap_read_iops, cap.read_iops.or(uncapped));
        let bytes = cap.read_bytes_per_second.map(|Bytes(bytes)| bytes);
        assert_eq!(group.cap_read_bytes_per_second, bytes.or(uncapped));
        assert!(measurement.measured_ns >= 1_000_000_000, "{}: {measurement:?}", sample.cell);
        assert_eq!((measurement.latency_phase_ns, evidence.windows.len()), (0, 0));
    }
}

/// The share that a cell has of the ceiling that bounds it: 0.97 or more of `bound`, and where both
/// are within 2 % of the cap, hardly more than all.
fn share(cell: &Value, bound: &str) -> Figure {
    let found = cell["of_ceiling"].as_f64().filter(|_| cell["bound"] == bound).unwrap_or(0.0);
    Figure { name: format!("share of {bound} of {}", cell["method"]), wanted: 0.97..=1.04, found }
}

/// The median over samples of what `count` counts, per second.
fn median_rate(
    run: &Run,
    pick: impl Fn(&Cell) -> bool,
    count: impl Fn(&Measurement, &Evidence) -> u64,
) -> f64 {
    let rates = valid(run, pick)
        .into_iter()
        .map(|(measurement, seen)| count(measurement, seen) as f64 * 1e9 / measurement.measured_ns as f64);
    pagewise_analysis::statistics::median(&rates.collect::<Vec<_>>()).expect("a sample")
}

#[test]
fn a_cap_of_reads_is_what_the_device_does() {
    const CAP: &str = "read-iops=2000";
    let _turn = my_turn();
    if !can_cap_device() {
        return;
    }
    let common = ["--device-cap=read-iops=2000", "--cache=cold", "--reads-per-op=1"];
    let (ceiling, direct) =
        (is(Role::Ceiling, CEILING, READ_BYTES), is(Role::Measured, "pread:direct", READ_BYTES));
    let enough = |run: &Run| valid(run, &ceiling).len() >= SAMPLES && valid(run, &direct).len() >= SAMPLES;
    meet(&[&common[..], &["--methods=pread:direct", "--file-size=448MiB"]].concat(), enough, |taken| {
        expect_capped(&taken.run, CAP);
        let of_ceiling = judged_cell(&taken.judged, "ceiling", CEILING, READ_BYTES);
        let of_direct = judged_cell(&taken.judged, "measured", "pread:direct", READ_BYTES);
        assert!(of_direct["latency_ns"].is_null(), "latencies mean nothing under a cap: {of_direct}");
        vec![
            Figure::median(of_ceiling, "reads_per_second", 2000.0),
            Figure::median(of_direct, "reads_per_second", 2000.0),
            share(of_direct, "device-iops"),
        ]
    });

    // Four pages a read, each of which is a read of the device.
    let random = |cell: &Cell| cell.method.to_string() == "mmap:random";
    let faults = [&common[..], &["--methods=mmap:random", "--file-size=128MiB", "--no-ceilings"]].concat();
    meet(
        &faults,
        |run: &Run| valid(run, random).len() >= SAMPLES,
        |taken| {
            expect_capped(&taken.run, CAP);
            for (measurement, evidence) in valid(&taken.run, random) {
                assert_eq!(evidence.major_faults, Some(4 * measurement.operations));
            }
            let found = median_rate(&taken.run, random, |measurement, _| measurement.operations);
            vec![Figure::rate("operations per second of mmap:random", 500.0, found)]
        },
    );
}

#[test]
fn a_cap_of_bytes_is_what_the_device_does() {
    const CAP: &str = "read-bandwidth=50MiB/s";
    const CAP_BYTES: f64 = 50.0 * 1048576.0;
    let _turn = my_turn();
    if !can_cap_device() {
        return;
    }
    let large = is(Role::Ceiling, "uring:direct+depth=8", 1 << 20);
    let small = is(Role::Ceiling, CEILING, READ_BYTES);
    let methods = ["pread:direct", "mmap"];
    let enough = |run: &Run| {
        let of_methods = |method| valid(run, is(Role::Measured, method, READ_BYTES)).len();
        let of_ceilings = [valid(run, &large).len(), valid(run, &small).len()];
        of_ceilings.into_iter().chain(methods.map(of_methods)).all(|samples| samples >= SAMPLES)
    };
    // Readahead that a cap of 5 MiB in 100 ms holds many times, and that leaves a cold file cold.
    let more = [
        "--device-cap=read-bandwidth=50MiB/s",
        "--cache=cold",
        "--file-size=640MiB",
        "--reads-per-op=1",
        "--readahead=128KiB",
        "--methods=pread:direct,mmap",
    ];
    meet(&more, enough, |taken| {
        expect_capped(&taken.run, CAP);
        let ceiling = judged_cell(&taken.judged, "ceiling", CEILING, READ_BYTES);
        let direct = judged_cell(&taken.judged, "measured", "pread:direct", READ_BYTES);
        let mapped = judged_cell(&taken.judged, "measured", "mmap", READ_BYTES);
        // What a mapping without advice asks for is an eighth of what it reads, and the cap counts
        // what it reads.
        let mapped_bytes = median_rate(&taken.run, is(Role::Measured, "mmap", READ_BYTES), |_, seen| {
            seen.device_read_bytes.expect("device bytes")
        });
        assert!(mapped["bytes_per_second"]["median"].as_f64().expect("a rate") < CAP_BYTES / 4.0, "{mapped}");
        vec![
            Figure::median(ceiling, "bytes_per_second", CAP_BYTES),
            Figure::median(direct, "bytes_per_second", CAP_BYTES),
            share(direct, "device-bandwidth"),
            Figure::rate("device bytes per second of mmap", CAP_BYTES, mapped_bytes),
            share(mapped, "device-bandwidth"),
        ]
    });
}
