//! Two sides and many runs, made up.

use pagewise_analysis::facts::Facts;
use pagewise_analysis::judge::{FigureKind, MedianInterval};
use pagewise_model::random::Random;
use pagewise_model::run_identity::RunIdentity;
use pagewise_model::{Bytes, CacheState, Conditions, Reads, Work};
use pagewise_report::curves_door::{FoundCrossing, SearchedCrossings};

use super::advice::AdviceFinding;
use super::change::{Change, ChangeFinding};
use super::crossing::CrossingFinding;
use super::digest::{RunFigure, SituationDigest};
use super::*;

/// A run of `read` whose methods have these rates.
fn run(name: &str, rates: &[(&str, f64)]) -> Digest {
    let reads = Reads::of(Bytes::kib(16));
    let conditions =
        Conditions { cache: CacheState::Warm, ..Conditions::of(Work::RandomRead(reads), Bytes::gib(1)) };
    // Rounds differ by up to 12 %, all methods of one alike.
    let by_round = |rate: f64| (0..7).map(|round| (round, rate * (1.0 + 0.02 * f64::from(round)))).collect();
    let shown = |rate: f64| MedianInterval { median: rate, low: Some(rate / 1.02), high: Some(rate * 1.03) };
    let figure = |rate: f64| RunFigure { shown: shown(rate), by_round: by_round(rate) };
    let started_unix_s = name.bytes().fold(0, |sum, byte| sum * 256 + u64::from(byte));
    Digest {
        samples: 7,
        name: name.to_string(),
        identity: RunIdentity { started_unix_s, host_name: None, question: "read".to_string(), seed: 1 },
        is_complete: true,
        facts: Facts::from([("kernel".to_string(), "6.12".to_string())]),
        situations: vec![SituationDigest {
            conditions,
            label: "random reads".to_string(),
            threads: 1,
            kind: FigureKind::ReadsPerSecond,
            methods: rates.iter().map(|(method, rate)| (method.to_string(), Ok(figure(*rate)))).collect(),
            recommended: rates.first().map(|(method, _)| method.to_string()),
            behind: rates.iter().skip(1).map(|(method, _)| method.to_string()).collect(),
        }],
        searches: Vec::new(),
        doubts: Vec::new(),
    }
}

/// Runs of a side by the noise of each; names distinguish the sides and take turns.
fn side(name: &str, noises: &[f64], rates: &[(&str, f64)]) -> Vec<Digest> {
    let of = |(index, noise): (usize, &f64)| {
        let rates: Vec<(&str, f64)> = rates.iter().map(|(method, rate)| (*method, rate * noise)).collect();
        run(&format!("{index}{name}"), &rates)
    };
    noises.iter().enumerate().map(of).collect()
}

const STEADY: [f64; 5] = [1.0, 1.004, 0.996, 1.002, 0.998];

fn only_change(difference: &Difference) -> &Change {
    let [situation] = &difference.situations[..] else { panic!("{difference:?}") };
    let [change] = &situation.methods[..] else { panic!("{situation:?}") };
    change
}

#[test]
fn a_build_that_is_slower_is_found_with_its_factor() {
    let (base, new) =
        (side("a", &STEADY, &[("pread", 400e3)]), side("b", &STEADY, &[("pread", 400e3 / 1.1)]));
    let difference = Difference::of(&base, &new, None).expect("comparable");
    let change = only_change(&difference);
    assert_eq!((change.finding, change.base_runs, change.new_runs), (ChangeFinding::Slower, 5, 5));
    let (low, high) = (change.low.expect("five runs"), change.high.expect("five runs"));
    assert!((change.ratio.expect("both") - 1.1).abs() < 1e-9 && low > 1.09 && high < 1.11, "{change:?}");
    let gated = Gated::of(difference, &["slower=5%".parse().expect("a gate")]).expect("five runs");
    assert!(
        gated.failed() && gated.gates[0].failed[0].starts_with("pread (random reads) is 1.10x slower"),
        "{gated:?}"
    );
    let faster = Difference::of(&new, &base, None).expect("comparable");
    assert_eq!(only_change(&faster).finding, ChangeFinding::Faster);
    let gated = Gated::of(faster, &["slower=5%".parse().expect("a gate")]).expect("five runs");
    assert!(!gated.failed() && gated.gates[0].undecided.is_empty());
}

/// A reader divides the columns: of medians the quotient would be another number than the ratio.
#[test]
fn the_ratio_is_that_of_the_figures_beside_it() {
    let (base, new) =
        (side("a", &[1.0, 1.0, 1.3], &[("pread", 400e3)]), side("b", &[0.6, 1.1, 1.1], &[("pread", 380e3)]));
    let difference = Difference::of(&base, &new, None).expect("comparable");
    let change = only_change(&difference);
    let (base, new, ratio) =
        (change.base.expect("base"), change.new.expect("new"), change.ratio.expect("ratio"));
    assert!((base / new - ratio).abs() < 1e-9, "reads/s {base} over {new}, times {ratio}");
    let text: String = crate::document::document(&Gated::of(difference, &[]).expect("no gate"))
        .lines(200)
        .iter()
        .map(|line| line.text() + "\n")
        .collect();
    let sentence = "Figures are geometric means over runs, and the ratio is that of the two.";
    assert!(text.contains(sentence), "{text}");
}

#[test]
fn equal_builds_are_the_same_and_loud_ones_are_open() {
    let of = |noises: &[f64]| {
        let (base, new) = (side("a", noises, &[("pread", 400e3)]), side("b", noises, &[("pread", 400e3)]));
        let difference = Difference::of(&base, &new, None).expect("comparable");
        let gated = Gated::of(difference, &["slower=5%".parse().expect("a gate")]).expect("enough runs");
        (only_change(&gated.difference).finding, gated.failed(), gated.gates[0].undecided.len())
    };
    assert_eq!(of(&STEADY), (ChangeFinding::Same, false, 0));
    assert_eq!(of(&[0.94, 1.0, 1.06, 1.0]), (ChangeFinding::Close, false, 1));
    assert_eq!(of(&[0.7, 1.0, 1.3]), (ChangeFinding::Open, false, 1));
}

#[test]
fn an_interval_that_bounds_nothing_is_not_quoted() {
    let scattered = |name| side(name, &[0.01, 1.0, 100.0], &[("pread", 400e3)]);
    let difference = Difference::of(&scattered("a"), &scattered("b"), None).expect("comparable");
    let change = only_change(&difference);
    assert!(change.high.is_some() && change.bounds().is_none(), "{change:?}");
    let gated = Gated::of(difference, &["slower=5%".parse().expect("a gate")]).expect("three runs");
    let expected = "pread (random reads) scatters too much for a bound, over 3 and 3 runs";
    assert_eq!(gated.gates[0].undecided, [expected]);
}

#[test]
fn one_run_each_has_no_noise_between_runs() {
    let (base, new) = (side("a", &[1.0], &[("pread", 110.0)]), side("b", &[1.0], &[("pread", 100.0)]));
    let difference = Difference::of(&base, &new, None).expect("comparable");
    let change = only_change(&difference);
    assert_eq!(change.finding, ChangeFinding::NoiseUnknown);
    // 110 less 2 % and 100 more 3 %, and the other way round: root of the sum of squares, as
    // logarithms.
    let half = 1.02f64.ln().hypot(1.03f64.ln());
    let ends = [1.1f64.ln() - half, 1.1f64.ln() + half].map(f64::exp);
    assert!(
        (change.low.expect("rounds") - ends[0]).abs() < 1e-9
            && (change.high.expect("rounds") - ends[1]).abs() < 1e-9
    );
    assert!(difference.warnings[0].starts_with("the noise between runs is unknown"));
    let refused = Gated::of(difference.clone(), &["slower=5%".parse().expect("a gate")]);
    assert!(
        refused.expect_err("one run each").starts_with("slower=5% needs three runs or more on each side")
    );
    assert!(Gated::of(difference, &["advice-changed".parse().expect("a gate")]).is_ok());
}

#[test]
fn what_slows_both_cancels_out_relative_to_another_method() {
    let rates = [("pread", 400e3), ("mmap", 900e3)];
    let (base, new) = (side("a", &STEADY, &rates), side("b", &STEADY.map(|noise| noise * 0.7), &rates));
    let difference = Difference::of(&base, &new, Some("mmap")).expect("comparable");
    let change = only_change(&difference);
    assert_eq!((change.method.as_str(), change.finding), ("pread", ChangeFinding::Same));
    let absolute = Difference::of(&base, &new, None).expect("comparable");
    assert!(absolute.situations[0].methods.iter().all(|change| change.finding == ChangeFinding::Slower));
    let refused = Difference::of(&base, &new, Some("uring"));
    assert_eq!(
        refused.expect_err("unknown"),
        "no run has the method 'uring' that others are to be compared with"
    );
}

#[test]
fn a_run_counts_once_whatever_its_file_is_called() {
    let base = side("a", &STEADY, &[("pread", 1.0)]);
    let refused = Difference::of(&base, &base, None);
    assert_eq!(refused.expect_err("twice"), "0a is named twice: name each run once");
    let mut copy = base[1].clone();
    copy.name = "copy".to_string();
    let refused = Difference::of(&base, &[copy], None);
    assert_eq!(refused.expect_err("twice"), "1a and copy are the same run: name each run once");
}

#[test]
fn what_one_side_lacks_is_listed_and_a_figure_that_is_lost_fails() {
    let base = side("a", &STEADY, &[("pread", 1.0), ("mmap", 2.0)]);
    let mut new = side("b", &STEADY, &[("pread", 1.0), ("uring", 3.0)]);
    for run in &mut new {
        run.situations[0].methods[0].1 = Err("invalid: checksum".to_string());
    }
    let difference = Difference::of(&base, &new, None).expect("comparable");
    let change = only_change(&difference);
    assert_eq!(
        (change.finding, change.reason.as_deref()),
        (ChangeFinding::NotMeasured, Some("new: invalid: checksum"))
    );
    let alone: Vec<(bool, Option<&str>)> =
        difference.unmatched.iter().map(|one| (one.is_base, one.method.as_deref())).collect();
    assert_eq!(alone, [(true, Some("mmap")), (false, Some("uring"))]);
    let gated = Gated::of(difference, &["slower=5%".parse().expect("a gate")]).expect("enough runs");
    assert_eq!(
        gated.gates[0].failed,
        ["pread (random reads) has no figure any more: new: invalid: checksum"]
    );
    assert_eq!(gated.gates[0].undecided, ["mmap (random reads) was measured on the first side only"]);
    let mut other = side("b", &STEADY, &[("pread", 1.0)]);
    other.iter_mut().for_each(|run| run.situations[0].conditions.threads = 2);
    let refused = Difference::of(&base, &other, None);
    assert_eq!(
        refused.expect_err("nothing"),
        "the two sides have no conditions in common: nothing can be compared"
    );
}

#[test]
fn a_gate_that_cannot_fail_is_refused() {
    let gate: Gate = "slower=5%".parse().expect("a gate");
    let needs = "slower=5% needs a method with a figure in three runs or more on each side";
    let (base, new) = (side("a", &STEADY, &[("pread", 1.0)]), side("b", &STEADY, &[("pread", 1.0)]));
    let alone = Difference::of(&base, &new, Some("pread")).expect("comparable");
    assert_eq!(Gated::of(alone, &[gate]).expect_err("nothing but the reference"), needs);
    let mut rare = new;
    for run in rare.iter_mut().skip(2) {
        run.situations[0].methods[0].1 = Err("invalid: checksum".to_string());
    }
    let rare = Difference::of(&base, &rare, None).expect("comparable");
    assert_eq!(Gated::of(rare, &[gate]).expect_err("two figures"), needs);
}

#[test]
fn advice_has_changed_if_the_old_one_is_behind_in_most_runs() {
    let base = side("a", &STEADY, &[("mmap", 2.0), ("pread", 1.0)]);
    let turned = side("b", &STEADY, &[("pread", 2.0), ("mmap", 1.0)]);
    let finding = |new: &[Digest]| {
        let difference = Difference::of(&base, new, None).expect("comparable");
        let failed = Gated::of(difference.clone(), &["advice-changed".parse().expect("a gate")])
            .expect("advice")
            .failed();
        (difference.situations[0].advice.finding, failed)
    };
    assert_eq!(finding(&turned), (AdviceFinding::Changed, true));
    assert_eq!(finding(&side("b", &STEADY, &[("mmap", 2.0), ("pread", 1.0)])), (AdviceFinding::Same, false));
    let mut close = turned.clone();
    close.iter_mut().take(3).for_each(|run| run.situations[0].behind.clear());
    assert_eq!(finding(&close), (AdviceFinding::Open, false));
    let mut silent = turned;
    silent.iter_mut().for_each(|run| run.situations[0].recommended = None);
    let difference = Difference::of(&base, &silent, None).expect("comparable");
    assert_eq!(difference.situations[0].advice.finding, AdviceFinding::NoAdvice);
    let refused = Gated::of(difference, &["advice-changed".parse().expect("a gate")]);
    assert_eq!(
        refused.expect_err("no advice"),
        "advice-changed needs runs with advice: these have none in common"
    );
}

#[test]
fn a_crossing_moves_appears_and_goes() {
    let searches = |places: &[Option<f64>], name: &str| -> Vec<Digest> {
        let of = |(index, place): (usize, &Option<f64>)| {
            let mut run = run(&format!("{index}{name}"), &[("mmap", 1.0)]);
            let crossings = place.iter().map(|ratio| crossing(*ratio)).collect();
            run.searches = vec![SearchedCrossings { label: "16 KiB".to_string(), crossings }];
            run
        };
        places.iter().enumerate().map(of).collect()
    };
    let steady = [Some(1.0), Some(1.01), Some(0.99)];
    let finding = |base: &[Option<f64>], new: &[Option<f64>]| {
        let difference = Difference::of(&searches(base, "a"), &searches(new, "b"), None).expect("comparable");
        let [only] = &difference.crossings[..] else { panic!("{difference:?}") };
        only.finding
    };
    assert_eq!(finding(&steady, &steady.map(|place| place.map(|place| place * 1.3))), CrossingFinding::Moved);
    assert_eq!(finding(&steady, &steady), CrossingFinding::NotMoved);
    assert_eq!(finding(&steady, &[None; 3]), CrossingFinding::Gone);
    assert_eq!(finding(&[None; 3], &steady), CrossingFinding::Appeared);
    assert_eq!(finding(&steady, &[Some(2.0), None, None]), CrossingFinding::NoiseUnknown);
    assert_eq!(finding(&steady[..1], &steady[1..2]), CrossingFinding::NoiseUnknown);
}

fn crossing(ratio: f64) -> FoundCrossing {
    FoundCrossing { before: "mmap".to_string(), after: "pread".to_string(), ratio }
}

#[test]
fn facts_that_differ_are_listed_and_one_that_splits_the_runs_explains_them() {
    let mut runs: Vec<Digest> = (0..8)
        .map(|index| {
            let rates = if index % 2 == 0 {
                [("mmap", 2.0), ("pread", 1.0)]
            } else {
                [("pread", 2.0), ("mmap", 1.0)]
            };
            run(&format!("{index}"), &rates)
        })
        .collect();
    for (index, run) in runs.iter_mut().enumerate() {
        let readahead = if index % 2 == 0 { "128 KiB" } else { "8 MiB" };
        run.facts.insert("readahead".to_string(), readahead.to_string());
        run.facts.insert("host-name".to_string(), format!("host{index}"));
    }
    let split = Split::by("kernel", &runs).expect("known");
    let [situation] = &split.situations[..] else { panic!("{split:?}") };
    assert!(!situation.agree && situation.by_value[0].advised.len() == 2);
    let [explanation] = &situation.explained_by[..] else {
        panic!("a host is a run: it explains nothing: {situation:?}")
    };
    assert_eq!((explanation.fact.as_str(), explanation.explained, explanation.runs), ("readahead", 8, 8));
    assert_eq!(explanation.values[0], ("128 KiB".to_string(), "mmap".to_string()));
    assert_eq!(Split::by("host_name", &runs).expect("a fact").values.len(), 8);
    assert!(
        Split::by("kernal", &runs)
            .expect_err("unknown")
            .starts_with("no run has the fact 'kernal': the facts are host-name, kernel")
    );
    let changed = Difference::of(&runs[..1], &runs[1..2], None).expect("comparable").environment;
    assert_eq!(changed[1].fact, "readahead");
    assert_eq!(
        (&changed[1].base[..], &changed[1].new[..]),
        (&["128 KiB".to_string()][..], &["8 MiB".to_string()][..])
    );
}

#[test]
fn each_method_is_compared_with_the_first_value_of_a_fact() {
    let of = |index: usize, kernel: &str, mmap: f64| {
        let uneven = if kernel == "6.12" { index as f64 / 3.0 } else { 1.0 };
        let noise = 1.0 + index as f64 * uneven / 500.0;
        let mut run = run(&format!("{kernel}-{index}"), &[("mmap", mmap * noise), ("pread", 1e6 * noise)]);
        run.facts.insert("kernel".to_string(), kernel.to_string());
        run
    };
    let mut runs: Vec<Digest> = (0..4).map(|index| of(index, "6.1", 2e6)).collect();
    runs.extend((0..4).map(|index| of(index, "6.12", 1e6)));
    let split = Split::by("kernel", &runs).expect("known");
    let situation = &split.situations[0];
    let named: Vec<(&str, &str, usize)> =
        situation.methods.iter().map(|one| (one.method.as_str(), one.value.as_str(), one.runs)).collect();
    let all = [("mmap", "6.1", 4), ("mmap", "6.12", 4), ("pread", "6.1", 4), ("pread", "6.12", 4)];
    assert_eq!(named, all);
    let [base, slower, _, same] = &situation.methods[..] else { panic!("{situation:?}") };
    assert_eq!((base.change.as_ref(), situation.not_compared.as_ref()), (None, None));
    assert!(base.least < base.median && base.median < base.most, "{base:?}");
    let change = slower.change.as_ref().expect("a change");
    assert_eq!((change.finding, change.ratio.map(f64::round)), (ChangeFinding::Slower, Some(2.0)));
    // A reader divides the figures: of medians the quotient would be another number.
    let quotient = base.mean.expect("runs") / slower.mean.expect("runs");
    assert!((change.ratio.expect("both") - quotient).abs() < 1e-9, "{situation:?}");
    let shown: String =
        crate::document::split_document(&split).lines(200).iter().map(|line| line.text() + "\n").collect();
    assert!(shown.contains("Figures are geometric means over runs."), "{shown}");
    assert_eq!(same.change.as_ref().map(|change| change.finding), Some(ChangeFinding::Same));

    // Files of other sizes are not as fast for reasons of their own.
    runs[0].situations[0].conditions.file_bytes = Bytes::mib(1);
    runs[0].situations[0].conditions.span_bytes = Bytes::mib(1);
    let split = Split::by("kernel", &runs).expect("known");
    assert_eq!(split.situations.len(), 1);
    assert!(split.situations[0].methods.is_empty());
    assert_eq!(split.situations[0].not_compared.as_deref(), Some("the files have different sizes"));
    let one = Split::by("kernel", &runs[4..]).expect("known");
    assert_eq!(one.situations[0].not_compared.as_deref(), Some("all runs have the same kernel"));
}

#[test]
fn gates_are_read_or_refused_with_what_would_do() {
    let read = |text: &str| text.parse::<Gate>();
    assert_eq!(read("slower=2.5%"), Ok(Gate::Slower(0.025)));
    assert_eq!(read("slower=2%"), Ok(Gate::Slower(0.02)));
    assert_eq!(read("crossover-moved"), Ok(Gate::CrossoverMoved));
    for (text, phrase) in [
        ("slower=5", "invalid share '5': write a per cent, as in slower=5%"),
        (
            "slower=0%",
            "'slower=0%' would fail on sides that are the same, within 2 %: write slower=2% or more",
        ),
        (
            "slower=1.9%",
            "'slower=1.9%' would fail on sides that are the same, within 2 %: write slower=2% or more",
        ),
        ("slower=-1%", "invalid share '-1%': write a per cent, as in slower=5%"),
        ("slower=NaN%", "invalid share 'NaN%': write a per cent, as in slower=5%"),
        ("slower", "unknown condition 'slower': write slower=5%, advice-changed or crossover-moved"),
        ("", "unknown condition '': write slower=5%, advice-changed or crossover-moved"),
    ] {
        assert_eq!(read(text), Err(phrase.to_string()));
    }
}

/// The gate on made-up noise: equal builds pass, one that is slower by 10 % is caught.
#[test]
fn equal_builds_pass_and_slow_ones_are_caught() {
    let mut random = Random::new(23);
    let methods = ["pread", "mmap", "mmap:random", "uring"];
    // Whole runs differ by 0.5 %, methods within them by 1 %; every tenth run is disturbed.
    let mut noisy = |name: &str, slowed: f64| -> Vec<Digest> {
        let mut normal = |scale: f64| ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0) * scale;
        let of = |index: usize| {
            let of_run = normal(0.005) - if index % 10 == 9 { 0.05 } else { 0.0 };
            let rates = methods.map(|method| {
                let slower = if method == "pread" { slowed } else { 1.0 };
                (method, 1e6 / slower * (of_run + normal(0.01)).exp())
            });
            run(&format!("{index}{name}"), &rates)
        };
        (0..8).map(of).collect()
    };
    let gate: Gate = "slower=5%".parse().expect("a gate");
    let mut failed = |slowed: f64| {
        let (base, new) = (noisy("a", 1.0), noisy("b", slowed));
        Gated::of(Difference::of(&base, &new, None).expect("comparable"), &[gate])
            .expect("eight runs")
            .failed()
    };
    assert_eq!((0..200).filter(|_| failed(1.0)).count(), 0);
    assert!((0..200).filter(|_| failed(1.1)).count() >= 190);
}

#[test]
fn a_run_without_a_valid_sample_does_not_count() {
    let invalid = |name: &str| {
        let mut run = run(name, &[("pread", 400e3), ("mmap", 500e3)]);
        let methods = &mut run.situations[0].methods;
        methods.iter_mut().for_each(|(_, figure)| *figure = Err("no sample is valid".to_string()));
        run
    };
    let missing = |run: Digest| missing::missing("kernel", &ExpectedValues::Number(1), &[run]);
    let named: Vec<String> = missing(invalid("a.jsonl")).iter().map(MissingRun::to_string).collect();
    assert_eq!(named, ["6.12: a.jsonl has no valid sample"]);
    let mut in_part = invalid("b.jsonl");
    in_part.situations[0].methods[1] = run("b", &[("mmap", 500e3)]).situations[0].methods[0].clone();
    assert_eq!(missing(in_part), []);
}
