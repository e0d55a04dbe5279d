//! Replays of traces: whether they stand for their programs, and what another method could bring.

use super::one_shot::{Timed, run_of, timed};
use super::*;
use crate::judge::verdict::Place;
use crate::search::schedule::Ledger;
use crate::search::{self, Next};
use pagewise_model::plan::{Budget, PlannedTrace};
use pagewise_model::run::ProgramRun;

use crate::judge::gain::UnknownGain;
use crate::judge::self_replay::{Unproven, foreseen};
use crate::proof::honest::CONTEXT;
use pagewise_model::{Bytes, CacheState, CheckContext};

/// A replay by `pread`, the program's own method, and by `pread:direct`, which takes two thirds of
/// its time. The program read so much from the device.
fn replayed(device_bytes: u64, wall_ns: Option<u64>) -> Judged {
    judge(&replays(device_bytes, wall_ns))
}

/// The run of [`replayed`].
pub(crate) fn replays(device_bytes: u64, wall_ns: Option<u64>) -> Run {
    let replay = |method, ms| -> Timed { timed(Role::Measured, honest::replay(method), [0, ms, 0]) };
    let mut run =
        run_of(&[replay("pread", 900), replay("pread:direct", 600), replay("uring:direct+depth=32", 300)]);
    run.header.plan.trace = replayed_plan(device_bytes, wall_ns);
    run
}

fn replayed_plan(device_bytes: u64, wall_ns: Option<u64>) -> Option<PlannedTrace> {
    Some(PlannedTrace {
        files: Vec::new(),
        path: "/t.trace".into(),
        command: vec!["server".into()],
        method: "pread".parse().expect("a method"),
        memory_limit: None,
        cold: true,
        cached_bytes: None,
        device_bytes: Some(device_bytes),
        windows: false,
        wall_ns,
        gaps_ns: None,
        map: None,
        inspection: None,
    })
}

pub(crate) fn own_bytes() -> u64 {
    honest::evidence(&honest::replay("pread")).device_read_bytes.expect("bytes")
}

#[test]
fn a_trace_stands_for_its_program_if_its_own_method_reads_as_much() {
    let own = own_bytes();
    for (program, stands) in [(own, true), (own * 100 / 96, true), (own * 100 / 94, false), (own * 2, false)]
    {
        let judged = replayed(program, None);
        let proof = judged.self_replay.expect("a proof");
        assert_eq!((proof.stands, proof.replayed_bytes), (stands, Some(own)), "{proof:?}");
        assert_eq!(
            (judged.comparisons.is_empty(), judged.cells.len()),
            (!stands, if stands { 3 } else { 1 })
        );
    }
}

#[test]
fn a_program_is_a_distribution() {
    let own = own_bytes();
    // One recording says nothing of others.
    let proof = replayed(own * 2, None).self_replay.expect("a proof");
    assert_eq!((proof.difference, proof.program_runs_bytes.len()), (Some(-0.5), 1));
    // Where the program's runs are further apart than the bar, they are the bar.
    let with_runs = |runs: [u64; 3]| {
        let mut run = replays(runs[0], Some(1_000_000_000));
        for (round, bytes) in [(1, runs[1]), (2, runs[2])] {
            run.program_runs.push(ProgramRun {
                round,
                wall_ns: 1_000_000_000,
                unwatched_ns: None,
                device_bytes: Some(bytes),
            });
        }
        judge(&run).self_replay.expect("a proof")
    };
    assert!(
        with_runs([own * 8 / 10, own * 12 / 10, own * 13 / 10]).stands,
        "one of them read less, two more"
    );
    assert!(!with_runs([own * 11 / 10, own * 12 / 10, own * 13 / 10]).stands, "each of them read more");
    let proof = replayed(0, None).self_replay.expect("a proof");
    assert!(!proof.stands && proof.unknown.is_none(), "{proof:?}");
}

/// A run with replays from the cache as it was recorded, with `cached` bytes of the file in it, and
/// from an empty one, which read twice as much.
fn from_two_states(cached_bytes: Option<Bytes>, program: u64) -> Run {
    let replay = |method, cache, ms| -> Timed {
        let mut cell = honest::replay(method);
        cell.conditions.cache = cache;
        timed(Role::Measured, cell, [0, ms, 0])
    };
    let (cold, recorded) = (CacheState::Cold, CacheState::Recorded);
    let mut run = run_of(&[
        replay("pread", cold, 900),
        replay("pread:direct", cold, 600),
        replay("pread", recorded, 500),
        replay("pread:direct", recorded, 600),
    ]);
    let from_recorded = run.header.plan.cells[2].id();
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == from_recorded) {
        let Outcome::Taken { evidence, .. } = &mut sample.outcome else { panic!("a sample") };
        evidence.device_read_bytes = Some(own_bytes() / 2);
    }
    let trace = replayed_plan(program, Some(3_600_000_000)).expect("a trace");
    run.header.plan.trace =
        Some(PlannedTrace { cold: cached_bytes == Some(Bytes(0)), cached_bytes, ..trace });
    run
}

#[test]
fn a_trace_is_held_against_the_replay_that_begins_as_its_recording_did() {
    let (half, own) = (Some(Bytes::mib(32)), own_bytes());
    let judged = judge(&from_two_states(half, own / 2));
    let proof = judged.self_replay.expect("a proof");
    assert_eq!((proof.stands, proof.cache, proof.cached_bytes), (true, Some(CacheState::Recorded), half));
    assert_eq!(
        (proof.replayed_bytes, judged.comparisons.len()),
        (Some(own / 2), 2),
        "the other state is shown too"
    );
    assert_eq!(judged.gain.map(|gain| gain.reads_ns / 1_000_000), Some(500), "of the program as it was");
    // It read what a replay from an empty cache reads: it was not that program.
    let judged = judge(&from_two_states(half, own));
    assert!(judged.self_replay.is_some_and(|proof| !proof.stands && proof.unknown.is_none()));
    let shown: Vec<_> = judged.cells.iter().map(|cell| (cell.method.as_str(), cell.cache)).collect();
    assert_eq!(shown, [("pread", CacheState::Recorded)]);
    // Recorded from an empty cache, both states are the same; the first one counts.
    let proof = judge(&from_two_states(Some(Bytes(0)), own)).self_replay.expect("a proof");
    assert_eq!((proof.stands, proof.cache), (true, Some(CacheState::Cold)));
    let proof = judge(&from_two_states(None, own)).self_replay.expect("a proof");
    assert_eq!(proof.unknown, Some(Unproven::InMemory), "nobody looked what was cached");
}

#[test]
fn what_no_replay_can_show_is_known_beforehand() {
    let with = |change: &dyn Fn(&mut PlannedTrace), is_run_again| {
        let mut run = replays(own_bytes(), None);
        run.header.plan.trace.as_mut().into_iter().for_each(change);
        let found = foreseen(&run.header.plan, is_run_again);
        if !is_run_again {
            assert_eq!(judge(&run).self_replay.and_then(|proof| proof.unknown), found, "as the run ends");
        }
        found
    };
    assert_eq!(with(&|_| (), false), None);
    let recorded_bytes = Some(Bytes::mib(64));
    let other_limit = Some(Unproven::OtherLimit { recorded_bytes, replayed_bytes: None });
    assert_eq!(with(&|trace| trace.memory_limit = recorded_bytes, false), other_limit);
    assert_eq!(with(&|trace| trace.cold = false, false), Some(Unproven::InMemory));
    let absent = |trace: &mut PlannedTrace| trace.method = "mmap:sequential".parse().expect("a method");
    assert_eq!(with(&absent, false), Some(Unproven::NotReplayed));
    assert_eq!(with(&|trace| trace.windows = true, false), None, "reads by calls are the same in windows");
    let mut run = run_of(&[timed(Role::Measured, honest::replay("mmap"), [0, 900, 0])]);
    let trace = replayed_plan(own_bytes(), None);
    let mapped = |trace| PlannedTrace { method: "mmap".parse().expect("a method"), windows: true, ..trace };
    run.header.plan.trace = trace.map(mapped);
    let of_windows = |is_run_again| foreseen(&run.header.plan, is_run_again);
    assert_eq!((of_windows(false), of_windows(true)), (Some(Unproven::Windows), None));
}

#[test]
fn a_file_with_holes_proves_nothing() {
    let mut run = replays(own_bytes(), None);
    let context = CheckContext { sparse_or_compressed_bytes: true, ..CONTEXT };
    run.checks = vec![(0, context)];
    let proof = judge(&run).self_replay.expect("a proof");
    assert_eq!((proof.stands, proof.unknown), (false, Some(Unproven::HiddenBytes)));
}

#[test]
fn a_program_that_found_all_in_the_cache_proves_nothing() {
    let mut run = from_two_states(Some(Bytes::mib(64)), 4096);
    let from_recorded = run.header.plan.cells[2].id();
    let with_device_bytes = |run: &mut Run, bytes| {
        for sample in run.samples.iter_mut().filter(|sample| sample.cell == from_recorded) {
            let Outcome::Taken { evidence, .. } = &mut sample.outcome else { panic!("a sample") };
            evidence.device_read_bytes = Some(bytes);
        }
        judge(run).self_replay.expect("a proof")
    };
    let proof = with_device_bytes(&mut run, 0);
    assert_eq!((proof.stands, proof.unknown), (false, Some(Unproven::Cached)));
    let proof = with_device_bytes(&mut run, 9 << 20);
    assert_eq!((proof.stands, proof.unknown), (false, None), "it is another program");
}

#[test]
fn a_gain_is_a_share_of_the_time_of_reads() {
    let gain = replayed(own_bytes(), Some(3_600_000_000)).gain.expect("a gain");
    assert_eq!((gain.quickest.as_str(), gain.program_ns), ("pread:direct", 3_600_000_000));
    // A third of a quarter.
    let at_most = gain.at_most.expect("a share");
    assert!((0.083..0.087).contains(&at_most), "{gain:?}");
    assert_eq!((gain.method.as_str(), gain.reads_ns / 1_000_000, gain.program_runs), ("pread", 900, 0));
    let bound_ms = gain.bound_ns.map(|ns| ns / 1_000_000);
    assert_eq!((gain.bound.as_deref(), bound_ms), (Some("uring:direct+depth=32"), Some(300)));
    assert_eq!(replayed(own_bytes(), None).gain, None);
    assert_eq!(
        replayed(own_bytes() * 2, Some(3_600_000_000)).gain,
        None,
        "it does not stand for the program"
    );
}

#[test]
fn a_program_that_ran_again_counts_with_all_of_its_runs() {
    let own = own_bytes();
    let mut run = replays(own, Some(3_600_000_000));
    for (round, wall_ns, times) in [(1, 1_800_000_000, 2), (2, 1_800_000_000, 1)] {
        run.program_runs.push(ProgramRun {
            round,
            wall_ns,
            unwatched_ns: None,
            device_bytes: Some(own * times),
        });
    }
    let judged = judge(&run);
    let proof = judged.self_replay.expect("a proof");
    assert_eq!((proof.stands, proof.program_bytes), (true, Some(own)), "the median");
    assert_eq!(proof.program_runs_bytes, [own, 2 * own, own]);
    let gain = judged.gain.expect("a gain");
    assert_eq!((gain.program_ns, gain.program_runs, gain.is_unwatched), (1_800_000_000, 2, false));
    // A watch takes time of its own, by which a share of the program's would be too small.
    let mut unwatched = run.clone();
    unwatched.program_runs[0].unwatched_ns = Some(1_200_000_000);
    let gain_unwatched = judge(&unwatched).gain.expect("a gain");
    assert_eq!((gain_unwatched.program_ns, gain_unwatched.is_unwatched), (1_200_000_000, true));
    let times = gain_unwatched.at_most.expect("a share") / gain.at_most.expect("a share");
    assert!((times - 1.5).abs() < 1e-9, "{times}");
    // The machine may be slower while its reads are replayed, which can be all of it.
    unwatched.program_runs[0].unwatched_ns = Some(800_000_000);
    let gain_all = judge(&unwatched).gain.expect("a gain");
    assert_eq!((gain_all.reads_ns, gain_all.program_ns), (800_000_000, 800_000_000));
    assert!(gain_all.at_most > gain_unwatched.at_most, "{gain_all:?}");
    // In windows the kernel maps nothing around a fault, and reads ahead otherwise.
    if let Some(trace) = &mut run.header.plan.trace {
        trace.windows = true;
    }
    assert_eq!(judge(&run).self_replay.map(|proof| proof.program_runs_bytes), Some(vec![2 * own, own]));
    if let Some(trace) = &mut run.header.plan.trace {
        trace.windows = false;
    }
    // Of those runs that were seen.
    run.program_runs[0].device_bytes = None;
    assert_eq!(judge(&run).self_replay.map(|proof| proof.program_runs_bytes), Some(vec![own, own]));
}

#[test]
fn several_reads_in_flight_are_a_bound_and_never_the_best() {
    let judged = replayed(own_bytes(), None);
    let comparison = &judged.comparisons[0];
    assert_eq!(comparison.best.as_deref(), Some("pread:direct"));
    let [bound] = &comparison.unranked[..] else { panic!("{:?}", comparison.unranked) };
    assert_eq!(bound.method, "uring:direct+depth=32");
    assert_eq!(bound.reason, UnrankedReason::Independent);
}

#[test]
fn reads_that_take_longer_than_the_program_show_nothing() {
    let gain = replayed(own_bytes(), Some(500_000_000)).gain.expect("a gain");
    assert_eq!((gain.at_most, gain.unknown), (None, Some(UnknownGain::LongerThanInProgram)));
    // The end of their interval may be beyond all of the program, and no more than that is saved.
    let all = replayed(own_bytes(), Some(901_000_000)).gain.expect("a gain");
    assert!(all.reads_ns <= all.program_ns && all.at_most.is_some_and(|share| share < 0.35), "{all:?}");
}

#[test]
fn a_gain_is_that_of_the_quickest_that_may_be() {
    // The program's own method is ahead, and others may be ahead of it: what is not decided is not
    // called the best.
    let own_leads = |other_ms| {
        let replay = |method, ms| -> Timed { timed(Role::Measured, honest::replay(method), [0, ms, 0]) };
        let mut run = run_of(&[replay("pread", 900), replay("mmap", other_ms)]);
        let scattered = honest::replay("mmap").id();
        for sample in run.samples.iter_mut().filter(|sample| sample.cell == scattered) {
            if let Outcome::Taken { measurement, .. } = &mut sample.outcome {
                let times = 0.8 + 0.06 * f64::from(sample.round);
                measurement.measured_ns = (measurement.measured_ns as f64 * times) as u64;
            }
        }
        run.header.plan.trace = replayed_plan(own_bytes(), Some(3_600_000_000));
        judge(&run).gain.expect("a gain")
    };
    let open = own_leads(920);
    assert!(open.at_most.is_none_or(|share| share > 0.0), "{open:?}");
    let best = own_leads(9_000);
    assert_eq!(best.at_most, Some(0.0), "{best:?}");
}

#[test]
fn a_replay_that_is_far_behind_leaves_after_three_rounds() {
    // In milliseconds: one takes 33 times as long as the fastest, one 8 times.
    let replay = |(method, ms)| timed(Role::Measured, honest::replay(method), [0, ms, 0]);
    let times = [("pread", 900), ("mmap", 20_000), ("mmap:random", 4_800), ("pread:direct", 600)];
    let whole = run_of(&times.map(replay));
    let mut run = Run { samples: Vec::new(), ..whole.clone() };
    run.header.plan.trace = replayed_plan(own_bytes(), None);
    run.header.plan.budget = Some(Budget::of(1));
    run.header.plan.rounds = 56;
    let mut ledger = Ledger::new(&run.header.plan, &[]);
    while let Next::Take(step) = search::next(&run, &ledger, |_| Vec::new()) {
        let plan = run.header.plan.clone();
        let before = run.samples.len();
        for (index, round) in step.rounds.clone().flat_map(|round| step.order(&plan, round)) {
            let cell = &plan.cells[index];
            if ledger.next_attempt(cell, round).is_some() {
                let like = |sample: &&Sample| sample.cell == cell.id() && sample.round == round % 7;
                let sample = whole.samples.iter().find(like).expect("a sample of it");
                let sample = Sample { round, ..sample.clone() };
                ledger.note(&plan, &sample);
                run.samples.push(sample);
            }
        }
        assert!(run.samples.len() > before, "each step brings samples: {step:?}");
    }
    let judged = judge(&run);
    let rounds = times.map(|(method, _)| {
        let cell = judged.cells.iter().find(|cell| cell.method == method).expect("a cell");
        cell.rounds_tried
    });
    assert!(rounds[1] == 3 && rounds[0] >= 5 && rounds[2] >= 5 && rounds[3] >= 5, "{rounds:?}");
    assert_eq!(judged.short_cells().count(), 0, "it has all samples that were asked for");
    let comparison = &judged.comparisons[0];
    let place =
        |method: &str| comparison.ratios.iter().find(|ratio| ratio.method == method).map(|it| it.place);
    assert_eq!((place("mmap"), place("mmap:random")), (Some(Place::Behind), Some(Place::Behind)));
    assert_eq!(comparison.best.as_deref(), Some("pread:direct"));
}

/// 60 ms of gaps are in each region, and in no figure of it.
#[test]
fn gaps_are_no_part_of_what_a_replay_is_ranked_by() {
    let with_gaps = |method, reading_ms: u64| -> Timed {
        timed(Role::Measured, honest::replay_with_gaps(method), [0, reading_ms + 60, 0])
    };
    let mut run = run_of(&[with_gaps("pread", 90), with_gaps("pread:direct", 60)]);
    run.header.plan.trace = replayed_plan(own_bytes(), Some(1_000_000_000));
    let judged = judge(&run);
    let plain = judge(&{
        let replay = |method, ms| -> Timed { timed(Role::Measured, honest::replay(method), [0, ms, 0]) };
        let mut run = run_of(&[replay("pread", 90), replay("pread:direct", 60)]);
        run.header.plan.trace = replayed_plan(own_bytes(), Some(1_000_000_000));
        run
    });
    let ratio = |judged: &Judged| {
        let of_own = |it: &&crate::judge::RatioToLeader| it.method == "pread";
        judged.comparisons[0].ratios.iter().find(of_own).map(|it| (it.ratio, it.place)).expect("a ratio")
    };
    assert_eq!(ratio(&judged), ratio(&plain));
    assert_eq!(judged.gain.as_ref().map(|gain| gain.reads_ns), plain.gain.as_ref().map(|gain| gain.reads_ns));
    for (kept, left_out) in judged.cells.iter().zip(&plain.cells) {
        assert_eq!((kept.total_ns, kept.measured_ns), (left_out.total_ns, left_out.measured_ns));
        assert_eq!(kept.bytes_per_second, left_out.bytes_per_second);
        assert_eq!((kept.gap_wait_ns, left_out.gap_wait_ns), (Some(60_000_000), None));
        assert_eq!((kept.parameters.gaps_ns, left_out.parameters.gaps_ns), (Some(60_000_000), Some(0)));
        let cpu_share = |cell: &CellJudgement| cell.evidence.as_ref().expect("evidence").cpu_share;
        assert!(kept.limit.bound.is_none() && cpu_share(kept).is_none() && kept.latency_ns.is_none());
        assert!(left_out.limit.bound.is_some() && cpu_share(left_out).is_some());
    }
}
