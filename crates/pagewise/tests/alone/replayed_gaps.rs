//! Replays that keep the gaps between the reads of their program, and those that have to leave them
//! out.

use pagewise_host::steps::RunStep;
use pagewise_model::FailureKind::NotInForce;
use pagewise_model::trace::{NoGaps, Trace, WindowTally};
use pagewise_model::{Outcome, Sample, Work};
use rustix::process::Signal;

use crate::replay::{FILE_BYTES, data, in_order, replay, store, trace_of};
use crate::support::paused::PausedRun;
use crate::support::until::my_turn;
use crate::support::{
    self, Place, cheating_replay_worker, expect_undisturbed, kinds, load, of_methods, was_disturbed,
};

const US: u64 = 1000;
const MS: u64 = 1000 * US;
/// Gaps of [`with_gaps`].
const GAPS: u64 = 83;

/// The whole file once, in reads of 100 us with so much between them.
fn with_gaps(path: &str, gap_ns: u64) -> Trace {
    let mut accesses = in_order();
    for (access, number) in accesses.iter_mut().zip(0..) {
        access.time_ns = number * (100 * US + gap_ns);
        access.took_ns = Some(100 * US);
    }
    assert_eq!(accesses.len() as u64, GAPS + 1);
    trace_of(path, accesses, FILE_BYTES)
}

/// The text, wherever its lines end.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The gaps that the work of a sample's cell keeps.
fn kept(run: &pagewise_model::run::Run, sample: &Sample) -> Option<u64> {
    let cell = run.header.plan.cells.iter().find(|cell| cell.id() == sample.cell).expect("its cell");
    let Work::Replay(replay) = cell.conditions.work else { panic!("{cell:?}") };
    replay.gaps_ns
}

#[test]
fn gaps_are_kept_or_left_out_and_no_part_of_the_total() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    store(&with_gaps(&data(&place), 500 * US), &place.file("t.trace"));
    let both = "--as-fast-as-possible=false,true";
    let finished = place.run(&replay(&["--rounds=7", "--methods=pread,uring:depth=4", both]));
    assert!(!finished.stderr.contains("without the program's gaps"), "{}", finished.stderr);
    let run = load(&place.file("run.jsonl"));
    expect_undisturbed(&run);
    let gaps_ns = GAPS * 500 * US;
    for sample in of_methods(&run) {
        let Outcome::Taken { measurement, evidence, .. } = &sample.outcome else { panic!("{sample:?}") };
        let kept = kept(&run, sample);
        assert!([None, Some(gaps_ns)].contains(&kept), "{kept:?}");
        let least_ns = kept.unwrap_or(0);
        assert_eq!(measurement.gaps_ns, least_ns);
        assert!(measurement.gap_wait_ns >= least_ns && measurement.measured_ns >= measurement.gap_wait_ns);
        assert!(evidence.wall_ns >= least_ns);
        assert_eq!(measurement.stalls, 0, "a gap is none");
    }
    let judged = finished.judged();
    for cell in judged["cells"].as_array().expect("cells") {
        let keeps = cell["parameters"]["gaps_ns"] == gaps_ns;
        assert!(keeps || cell["parameters"]["gaps_ns"] == 0, "{cell}");
        assert_eq!(cell["gap_wait_ns"].is_u64(), keeps, "{cell}");
        for withheld in [&cell["evidence"]["cpu_share"], &cell["latency_ns"], &cell["bound"]] {
            assert!(!keeps || withheld.is_null(), "{withheld} of {cell}");
        }
    }
    let comparisons = judged["comparisons"].as_array().expect("comparisons");
    let labels: Vec<&str> =
        comparisons.iter().filter_map(|one| one["conditions"]["label"].as_str()).collect();
    let has = |text: &str| labels.iter().filter(|label| label.contains(text)).count();
    assert_eq!(has("in their order, with the program's gaps between them (41.5 ms in all)"), 1, "{labels:?}");
    assert_eq!(has("in their order, as fast as possible"), 1, "{labels:?}");
    place.expect_no_trace();
}

#[test]
fn gaps_that_cannot_be_kept_are_left_out_with_their_reason() {
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let dry = |trace: &Trace, more: &[&'static str]| {
        store(trace, &place.file("t.trace"));
        let usual = ["run", "replay", "--trace=t.trace", "--evict", "--dry-run"];
        place.run(&[&usual, more].concat()).expect_code(0)
    };
    let known = with_gaps(&path, MS);
    let changed = |change: &dyn Fn(&mut Trace)| {
        let mut trace = known.clone();
        change(&mut trace);
        trace
    };
    let note = "note: the replay is as fast as possible, without the program's gaps between its reads: ";
    let long = |gap_ns: u64| changed(&|trace| trace.accesses.last_mut().expect("a read").time_ns += gap_ns);
    for (trace, more, reason) in [
        (changed(&|trace| trace.accesses[7].took_ns = None), &[][..], NoGaps::Unseen.to_string()),
        (
            changed(&|trace| trace.trailer.windows = Some(WindowTally::default())),
            &[],
            NoGaps::Windows.to_string(),
        ),
        (long(2000 * MS), &[], "they are 2.08 s in all".to_string()),
        (
            long(1_000_000_000 * 1000 * MS),
            &[],
            "in all, which each method would wait in each round".to_string(),
        ),
        (
            changed(&|trace| {
                trace.trailer.threads.push(trace.trailer.threads[0].clone());
                trace.accesses.iter_mut().step_by(2).for_each(|access| access.thread = 1);
            }),
            &[],
            "2 threads replay the reads, each in its own order".to_string(),
        ),
        (
            known.clone(),
            &["--methods=pread,mine/pread", "--worker=mine=true"],
            "of the workers only pagewise's own one keeps them".to_string(),
        ),
    ] {
        let finished = dry(&trace, more);
        let said = finished.stderr.lines().find(|line| line.contains(note)).unwrap_or_default();
        assert!(said.contains(&reason), "'{reason}' is not in: {}", finished.stderr);
        assert!(unwrapped(&finished.stdout).contains("as fast as possible"), "{}", finished.stdout);
        let asked = dry(&trace, &[more, &["--as-fast-as-possible"]].concat());
        assert!(!asked.stderr.contains(note), "{}", asked.stderr);
    }
    let finished = dry(&known, &[]);
    assert!(!finished.stderr.contains(note), "{}", finished.stderr);
    assert!(
        unwrapped(&finished.stdout).contains("with the program's gaps between them (83 ms in all)"),
        "{}",
        finished.stdout
    );
    // Long ones are kept if they are asked for.
    let keep = &["--as-fast-as-possible=false"];
    let kept = unwrapped(&dry(&long(2000 * MS), keep).stdout);
    assert!(kept.contains("with the program's gaps between them (2.08 s in all)"), "{kept}");
    assert!(dry(&long(60_000 * MS), keep).stderr.contains(note), "a minute is the most");
    // A duration that reaches over the following reads leaves the gaps behind them.
    let over = changed(&|trace| trace.accesses[0].took_ns = Some(10 * MS));
    let some = unwrapped(&dry(&over, &[]).stdout);
    assert!(some.contains("with the program's gaps between them (7"), "some are left: {some}");
    place.write(
        "fast.toml",
        b"workload = 'replay'\nmethods = ['pread']\nas_fast_as_possible = [true, false]\n",
    );
    let words = ["run", "fast.toml", "--trace=t.trace", "--evict", "--dry-run"];
    store(&known, &place.file("t.trace"));
    let finished = place.run(&words).expect_code(0);
    let printed = unwrapped(&finished.stdout);
    let has = |text: &str| printed.contains(text);
    assert!(has("with the program's gaps between them") && has("as fast as possible"), "{}", finished.stdout);
    support::expect_refused(
        &place.run(&["read", "--as-fast-as-possible", "--dry-run"]),
        "'as_fast_as_possible' is for replay",
    );
    place.expect_no_trace();
}

/// A gap is no reason to wait for a worker that is to end.
#[test]
fn a_run_that_is_stopped_in_a_gap_ends() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    let mut trace = with_gaps(&data(&place), 0);
    trace.accesses.iter_mut().skip(1).for_each(|access| access.time_ns += 1900 * MS);
    store(&trace, &place.file("t.trace"));
    let run = PausedRun::start(&place, &replay(&["--rounds=7", "--methods=pread"]), RunStep::GoSent);
    run.expect_at_step(1);
    run.go_on_with(Signal::INT, false);
    let finished = run.finish().expect_code(130);
    assert!(finished.stderr.contains("stopped; the samples so far are in run.jsonl"), "{finished:?}");
    assert_eq!(load(&place.file("run.jsonl")).samples, []);
    place.expect_no_process();
}

/// A worker that knows nothing of gaps does not wait for them.
#[test]
fn a_worker_that_leaves_the_gaps_out_is_noticed() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    store(&with_gaps(&data(&place), 10 * MS), &place.file("t.trace"));
    let worker = cheating_replay_worker("honest");
    let samples = |more: &[&'static str]| -> Vec<Sample> {
        let usual = ["--trial-rounds=3", "--methods=pread", "--worker-command", &worker];
        let words: Vec<&str> = usual.into_iter().chain(more.iter().copied()).collect();
        place.run(&replay(&words));
        let samples = of_methods(&load(&place.file("run.jsonl"))).into_iter().cloned().collect();
        std::fs::remove_file(place.file("run.jsonl")).expect("remove");
        samples
    };
    let without = samples(&[]);
    assert!(!without.is_empty());
    for sample in &without {
        assert!(kinds(sample).contains(&NotInForce), "{:?}", sample.failures());
    }
    let fast = samples(&["--as-fast-as-possible"]);
    assert!(fast.iter().all(|sample| sample.valid().is_some() || was_disturbed(sample)), "{fast:?}");
}
