//! For each check a worker that cheats just it is called invalid, and an honest run is not.
//!
//! Each cheat is tried once here. What it leaves where other methods and conditions are asked for
//! is recorded (`crates/analysis/recorded`), and the unit tests of the checks hold it.
//!
//! Runs are taken one at a time, so that the tests do not disturb each other; what other processes
//! of the machine do to a sample ([`support::FROM_OUTSIDE`]) is left out of the comparison, but for
//! the check under test.

use crate::support::until::my_turn;
use crate::support::{
    self, FROM_OUTSIDE, Place, cheating_worker, is_honest, kinds, load, of_methods, was_disturbed,
};
use pagewise_analysis::proof::measured::region_ns;
use pagewise_model::FailureKind::{
    self, ColdOverrun, Contaminated, Disturbed, FalseTime, Implausible, InconsistentCounts,
    MethodContradicted, MissingReads, NotCold, NotDirect, NotInForce, NotWarm, WrongBytes, WrongChecksum,
};
use pagewise_model::Outcome;
use pagewise_model::run::Run;

/// What is asked of the worker.
#[derive(Clone, Copy)]
struct Asked {
    method: &'static str,
    cache: &'static str,
    file_size: &'static str,
    more: &'static [&'static str],
}

const WARM_PREAD: Asked = Asked { method: "pread", cache: "warm", file_size: "4MiB", more: &[] };
const WARM_MMAP: Asked = Asked { method: "mmap", ..WARM_PREAD };
const COLD_PREAD: Asked = Asked { cache: "cold", file_size: "16MiB", ..WARM_PREAD };
const COLD_MMAP: Asked = Asked { method: "mmap", ..COLD_PREAD };
const DIRECT: Asked = Asked { method: "pread:direct", ..WARM_PREAD };
const ADVISED: Asked = Asked { method: "mmap:random", ..WARM_PREAD };
const POPULATED: Asked = Asked { method: "mmap:populate", ..WARM_PREAD };

/// Bytes of an operation of a run of one question.
fn sample_bytes(run: &Run) -> u64 {
    run.header.plan.cells[0].conditions.op_bytes()
}

/// Rates are of all time that passed, but for an honest answer: no part of it is a latency phase.
fn expect_all_time(run: &Run) {
    let answer_ns = run.header.environment.worker_answer_ns.expect("an answer time");
    for sample in &run.samples {
        let Outcome::Taken { measurement, evidence, .. } = &sample.outcome else { continue };
        let claimed_ns = region_ns(measurement).saturating_add(answer_ns);
        assert!(claimed_ns >= evidence.wall_ns, "{measurement:?} of {} ns", evidence.wall_ns);
        let is_apart = measurement.latency_phase_apart || measurement.latency_phase_ns == 0;
        assert!(is_apart || kinds(sample).contains(&InconsistentCounts), "{measurement:?}");
    }
}

impl Asked {
    /// A run with the worker `kind`.
    fn run(&self, kind: &str) -> Run {
        let _turn = my_turn();
        let place = Place::new();
        let worker = cheating_worker(kind);
        let mut arguments = vec![
            "run",
            "read",
            "--workload=random-read",
            "--trial-rounds=2",
            "--threads=1",
            "--seed=7",
            "--sample=5ms",
            "--json",
            "--out=run.jsonl",
        ];
        arguments.extend(["--methods", self.method, "--cache", self.cache, "--file-size", self.file_size]);
        arguments.extend(["--worker-command", &worker]);
        // A later word replaces an earlier one of the same name.
        for choice in self.more {
            let name = choice.split_once('=').map_or(*choice, |(name, _)| name);
            arguments.retain(|earlier| !earlier.starts_with(&format!("{name}=")));
            arguments.push(choice);
        }
        // Only a run of as many rounds as a verdict needs could rank what fails its checks.
        if arguments.iter().any(|argument| argument.starts_with("--rounds=")) {
            arguments.retain(|argument| !argument.starts_with("--trial-rounds="));
        }
        let finished = place.run(&arguments);
        let run = load(&place.file("run.jsonl"));
        let finished = finished.expect_code_for(&run);
        assert!(run.is_complete());
        assert_eq!(run.header.worker_command, Some(worker), "the run does not say whose samples these are");
        expect_all_time(&run);
        place.expect_no_trace();
        self.expect_judged(kind, &finished.judged(), finished.code());
        run
    }

    /// What fails its checks is not ranked, and the exit code says so.
    fn expect_judged(&self, kind: &str, judged: &serde_json::Value, code: i32) {
        let cells = judged["cells"].as_array().expect("cells");
        let measured: Vec<_> = cells.iter().filter(|cell| cell["role"] == "measured").collect();
        assert!(!measured.is_empty());
        for cell in measured.iter().filter(|cell| cell["status"] != "ok") {
            assert_eq!(code, 1, "{kind}: {cell}");
            assert!(cell["reason"].is_string(), "{kind}: {cell}");
        }
        for comparison in judged["comparisons"].as_array().expect("comparisons") {
            if measured.iter().all(|cell| cell["status"] != "ok") {
                assert!(comparison["best"].is_null(), "{kind}: {comparison}");
            }
        }
    }

    /// The honest mode of the same worker is not flagged.
    #[track_caller]
    fn honest(&self) -> &Self {
        for _ in 0..3 {
            let run = self.run("honest");
            let samples = of_methods(&run);
            for sample in &samples {
                assert!(is_honest(sample), "{} {}: {:?}", self.method, self.cache, sample.outcome);
            }
            if samples.iter().any(|sample| sample.valid().is_some()) {
                break;
            }
            // Somebody who uses the device all the time leaves no sample valid, and that shows.
            let undisturbed: Vec<_> = samples.iter().filter(|sample| !was_disturbed(sample)).collect();
            assert!(undisturbed.is_empty(), "{} {}: {undisturbed:?}", self.method, self.cache);
        }
        self
    }

    /// Every sample of the worker that cheats as `kind` says fails `expected` and nothing else.
    /// What its counters then show depends on what the cache happened to hold, so that they may
    /// contradict the method besides; and what is not done at all may be implausibly fast. A time
    /// that others of this machine may have taken says nothing of the worker: such samples are
    /// invalid too, and there are others.
    #[track_caller]
    fn caught(&self, kind: &str, expected: &[FailureKind]) -> &Self {
        const RUNS: usize = 5;
        if !(0..RUNS).any(|_| self.catches(kind, expected)) {
            support::inconclusive(&format!(
                "{kind} as {} {}: every sample was disturbed",
                self.method, self.cache
            ));
        }
        self
    }

    /// Whether a run has a sample that shows the cheat; no sample shows anything else.
    #[track_caller]
    fn catches(&self, kind: &str, expected: &[FailureKind]) -> bool {
        let run = self.run(kind);
        let samples = of_methods(&run);
        assert!(!samples.is_empty());
        let mut catches = false;
        for sample in samples {
            assert!(matches!(sample.outcome, Outcome::Taken { .. }), "{kind}: {:?}", sample.outcome);
            let mut found = kinds(sample);
            if expected.contains(&FalseTime) && found.contains(&Disturbed) && !found.contains(&FalseTime) {
                continue;
            }
            // What others moved on the device, or took of the CPUs, may hide the cheat.
            if was_disturbed(sample) && !expected.iter().all(|kind| found.contains(kind)) {
                continue;
            }
            // A cold sample of one operation may bring in whatever that brings in: a device that
            // others keep busy leaves no more.
            let is_single =
                matches!(&sample.outcome, Outcome::Taken { measurement, .. } if measurement.operations == 1);
            if is_single && expected == [ColdOverrun] && found == [MethodContradicted] {
                continue;
            }
            catches = true;
            let besides = |kind: &FailureKind| {
                FROM_OUTSIDE.contains(kind) || matches!(kind, MethodContradicted | Implausible)
            };
            found.retain(|kind| expected.contains(kind) || !besides(kind));
            found.sort_unstable();
            found.dedup();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(found, expected, "{kind} as {} {}: {:?}", self.method, self.cache, sample.failures());
        }
        catches
    }
}

#[test]
fn an_honest_worker_is_believed_with_two_threads_and_every_byte() {
    Asked { more: &["--threads=2", "--consume=sum", "--align=4KiB"], ..WARM_PREAD }.honest();
    Asked { more: &["--threads=2", "--align=1B", "--descriptor=per-thread"], ..WARM_MMAP }.honest();
}

#[test]
fn reads_that_are_not_made_are_noticed() {
    WARM_PREAD.honest().caught("reads-nothing", &[WrongChecksum, MissingReads]);
    WARM_MMAP.honest().caught("skips-operations", &[WrongChecksum]);
}

#[test]
fn a_right_checksum_without_reads_is_noticed() {
    COLD_PREAD.caught("computes-checksum", &[MissingReads, NotCold]);
}

#[test]
fn other_reads_than_asked_for_are_noticed() {
    WARM_MMAP.caught("wrong-offset", &[WrongChecksum]);
    WARM_PREAD.caught("reads-half", &[WrongChecksum, MissingReads]);
    WARM_MMAP.caught("checksum-no-number", &[WrongChecksum]);
}

#[test]
fn a_table_read_before_go_is_of_no_use() {
    WARM_PREAD.caught("reads-table-early", &[WrongChecksum]);
}

#[test]
fn a_read_counts_by_its_place_in_the_table() {
    Asked { more: &["--threads=2"], ..WARM_PREAD }.caught("counts-alike", &[WrongChecksum]);
}

/// Calls that read one place again and again cost half of honest ones. What they do not bring comes
/// from memory.
#[test]
fn one_place_read_again_and_again_is_noticed() {
    let large = Asked { file_size: "32MiB", ..WARM_PREAD };
    large.honest().caught("reads-one-place", &[MethodContradicted]);
    Asked { more: &["--consume=sum"], ..large }.caught("reads-one-place", &[MethodContradicted]);
}

#[test]
fn bytes_from_a_copy_made_before_go_are_noticed() {
    // Its copy also left the file in the page cache.
    COLD_PREAD.caught("copies-first", &[NotCold]);
    for cache in ["cold", "warm"] {
        let direct = Asked { cache, file_size: "32MiB", more: &["--read-size=4KiB"], ..DIRECT };
        let run = direct.honest().run("copies-first-direct");
        for sample in of_methods(&run) {
            let found = kinds(sample);
            let mut expected = vec![MethodContradicted];
            expected.extend((cache == "cold").then_some(NotCold));
            // Requests of others hide those that are missing.
            expected.extend((!found.contains(&Contaminated)).then_some(NotDirect));
            assert!(expected.iter().all(|kind| found.contains(kind)), "{cache}: {:?}", sample.outcome);
        }
    }
}

#[test]
fn a_rate_beyond_memory_is_implausible() {
    // Reads so large that the loop around them does not count. A sample in which the machine had no
    // time for the worker may be slow all the same, and is then no implausible one.
    let more = &["--read-size=4MiB", "--align=4MiB", "--reads-per-op=4", "--sample=300ms"];
    let large = Asked { file_size: "16MiB", more, ..WARM_MMAP };
    let run = large.honest().run("remembers-sums");
    let found = of_methods(&run).iter().filter(|sample| kinds(sample).contains(&Implausible)).count();
    assert!(found > 0, "none of {} samples is implausible", of_methods(&run).len());
}

#[test]
fn reads_made_twice_are_noticed() {
    WARM_PREAD.caught("reads-twice", &[MethodContradicted]);
}

#[test]
fn reads_asked_for_ahead_are_noticed() {
    let more = &["--sample=100ms"];
    let random = Asked { method: "pread:random", file_size: "64MiB", more, ..COLD_PREAD };
    let run = random.honest().run("asks-ahead");
    for sample in of_methods(&run) {
        // Where others use the device too, nobody can say whose reads they are.
        let found = kinds(sample);
        assert!(found.contains(&MethodContradicted) || found.contains(&Contaminated), "{:?}", sample.outcome);
    }
}

#[test]
fn latencies_that_are_all_alike_are_noticed() {
    // A copy of 512 KiB takes longer than the shortest latency that is looked at, whatever the
    // memory.
    let longer = Asked { more: &["--sample=200ms", "--read-size=512KiB", "--reads-per-op=1"], ..WARM_PREAD };
    let run = longer.run("latencies-alike");
    let caught = of_methods(&run).iter().filter(|sample| kinds(sample).contains(&InconsistentCounts)).count();
    // A sample in which the machine had no time for the worker may have too few to decide.
    assert!(caught > 0, "none of {} samples is caught", of_methods(&run).len());
}

#[test]
fn dependent_reads_that_do_not_wait_for_the_data_are_noticed() {
    const DEPENDENT: &[&str] = &["--dependent"];
    Asked { more: DEPENDENT, ..WARM_PREAD }.honest().caught("ignores-data", &[WrongChecksum]);
}

#[test]
fn bytes_that_differ_are_noticed() {
    WARM_MMAP.caught("differs-at-verify", &[WrongBytes]);
    WARM_PREAD.caught("skips-verify", &[WrongBytes]);
}

#[test]
fn a_cold_file_that_is_warm_is_noticed() {
    COLD_MMAP.honest().caught("warms-first", &[NotCold]);
}

#[test]
fn a_warm_file_that_is_cold_is_noticed() {
    WARM_PREAD.caught("evicts-first", &[NotWarm]);
}

#[test]
fn a_cold_sample_that_fills_the_cache_is_noticed() {
    // The whole is more than budget, readahead in flight and the last of a few operations explain
    // together.
    let larger = Asked { file_size: "128MiB", ..COLD_PREAD };
    larger.caught("fills-cache", &[ColdOverrun]);
}

#[test]
fn a_cold_sample_that_goes_beyond_its_table_is_noticed() {
    // Unaligned reads leave room between blocks: only the table shows that one was read twice.
    let unaligned = Asked { more: &["--align=1B"], ..COLD_PREAD };
    unaligned.honest();
    let run = unaligned.run("beyond-table");
    for sample in of_methods(&run) {
        assert!(kinds(sample).contains(&InconsistentCounts), "{:?}", sample.failures());
    }
}

#[test]
fn a_file_that_a_forked_process_brings_in_is_not_called_cold() {
    let run = COLD_PREAD.run("keeps-mapped");
    for sample in of_methods(&run) {
        assert!(kinds(sample).contains(&NotCold), "{:?}", sample.outcome);
    }
}

#[test]
fn direct_reads_that_are_none_are_noticed() {
    DIRECT.honest().caught("not-direct", &[NotDirect]);
    DIRECT.caught("direct-in-name", &[NotDirect]);
}

#[test]
fn advice_that_was_not_given_is_noticed() {
    ADVISED.honest().caught("no-advice", &[NotInForce]);
}

#[test]
fn a_mapping_that_was_not_populated_is_noticed() {
    POPULATED.honest().caught("maps-anew", &[NotInForce]);
}

/// Within what clocks may differ by, and in a latency phase that nobody asked for there.
#[test]
fn time_that_is_hidden_or_moved_counts_in_the_rate() {
    for kind in ["half-the-time", "shifts-time"] {
        let run = Asked { more: &["--sample=10ms"], ..WARM_MMAP }.run(kind);
        for (measurement, _) in of_methods(&run).iter().filter_map(|sample| sample.valid()) {
            assert!(measurement.unaccounted_in_region_ns > 1_000_000, "{kind}: {measurement:?}");
        }
    }
}

#[test]
fn latencies_of_somebody_elses_worker_are_asked_for_apart() {
    let _turn = my_turn();
    let place = Place::new();
    let worker = format!("mine={} worker", support::PAGEWISE);
    let words = "run read --workload=random-read --trial-rounds=2 --threads=1 --sample=5ms --cache=warm \
                 --file-size=4MiB --methods=mine/mmap,mmap --json --out=run.jsonl --worker";
    place.run(&words.split_whitespace().chain([&*worker]).collect::<Vec<_>>());
    let run = load(&place.file("run.jsonl"));
    for sample in of_methods(&run) {
        assert!(is_honest(sample), "{:?}", sample.outcome);
        let Some((measurement, evidence)) = sample.valid() else { continue };
        assert!(measurement.latency_phase_apart, "{measurement:?}");
        assert_eq!(measurement.latency_counts.iter().sum::<u64>(), measurement.latency_phase_operations);
        assert!(measurement.latency_phase_operations > 0, "{measurement:?}");
        assert_eq!(evidence.requested_bytes, measurement.operations * sample_bytes(&run), "{measurement:?}");
    }
    place.expect_no_trace();
}

#[test]
fn false_times_are_noticed() {
    // Long enough that half of it is not lost in the supervisor's own slack.
    let longer = Asked { more: &["--sample=200ms"], ..WARM_MMAP };
    longer.honest().caught("half-the-time", &[FalseTime]);
    longer.caught("spins-and-halves", &[FalseTime]);
    Asked { more: &["--rounds=7"], ..WARM_PREAD }.caught("too-much-time", &[FalseTime]);
    WARM_MMAP.caught("latencies-too-long", &[FalseTime]);
}

#[test]
fn more_threads_than_asked_for_are_noticed() {
    let run = WARM_MMAP.run("extra-threads");
    let mut caught = 0;
    for sample in of_methods(&run) {
        match &sample.outcome {
            Outcome::Taken { .. } => {
                assert_eq!(kinds(sample).first(), Some(&FalseTime), "{:?}", sample.failures());
                caught += 1;
            }
            // More than one CPU is needed for this cheat, and a busy machine may not give it.
            other => assert!(format!("{other:?}").contains("gives no more than one CPU"), "{other:?}"),
        }
    }
    if caught == 0 {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        match cpus {
            1 => support::skipped("two-cpus", "the machine has one CPU"),
            _ => support::inconclusive("the machine gave one CPU only"),
        }
    }
}

#[test]
fn counts_that_contradict_each_other_are_noticed() {
    WARM_MMAP.caught("miscounts", &[InconsistentCounts]);
    WARM_MMAP.caught("miscounts-bytes", &[InconsistentCounts]);
    WARM_MMAP.caught("miscounts-latencies", &[InconsistentCounts]);
    let run = WARM_MMAP.run("too-many-threads");
    for sample in of_methods(&run) {
        assert!(kinds(sample).contains(&InconsistentCounts), "{:?}", sample.failures());
    }
}

#[test]
fn the_largest_numbers_are_refused_without_a_panic() {
    let run = WARM_MMAP.run("huge-counts");
    for sample in of_methods(&run) {
        let found = kinds(sample);
        for kind in [FalseTime, InconsistentCounts] {
            assert!(found.contains(&kind), "{:?}", sample.failures());
        }
    }
}
