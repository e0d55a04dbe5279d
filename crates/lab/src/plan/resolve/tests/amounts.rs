//! The time, the rounds and the length of samples.

use super::*;
use crate::plan::estimate;

#[test]
fn a_budget_pays_at_least_for_the_first_rounds() {
    let of = |budget_ns| {
        let budget = Some(ChosenBudget::Time(budget_ns));
        question(Variant::Quick, Sampling { budget, ..Sampling::default() })
    };
    let refused = |budget_ns| of(budget_ns).expect_err("refused").to_string();
    assert!(refused(0).contains(", and the budget is 0 ns: write --budget "), "{}", refused(0));
    assert!(refused(u64::MAX).contains("is too long: write at most"));
    let text = refused(1_000_000_000);
    assert!(text.starts_with("5 rounds of each method of read need about "), "{text}");
    assert!(text.contains(", and the budget is 1 s: write --budget "), "{text}");
    let timed = of(90_000_000_000).expect("enough");
    let beside_ns = estimate::beside_samples_ns(&timed);
    assert!(beside_ns > 0, "a dataset is made");
    assert_eq!(timed.budget, Some(Budget::of(90_000_000_000 - beside_ns)));
    let usual = quick_plan();
    let of_first = |first_ns| usual.budget.map(|budget| budget.ns(first_ns));
    assert_eq!((of_first(0), of_first(100_000_000_000)), (Some(30_000_000_000), Some(200_000_000_000)));
    assert_eq!(usual.rounds, 56);
    let share = Sampling { budget: Some(ChosenBudget::OfFirstRounds(130)), ..Sampling::default() };
    let share = question(Variant::Full, share).expect("plan").budget.expect("a budget");
    assert_eq!((share.ns(0), share.ns(100_000_000_000)), (30_000_000_000, 130_000_000_000));
    let full = question(Variant::Full, Sampling::default()).expect("plan");
    assert_eq!((full.rounds, full.blocks, usual.blocks), (224, 3, 1));
    assert_eq!(full.all_dataset_bytes().0, 3 * full.dataset_bytes().0);
}

#[test]
fn rounds_and_a_budget_exclude_each_other() {
    assert_eq!(
        refused("rounds = 9\nbudget = \"60s\""),
        "'rounds' and 'budget' exclude each other: write one of them"
    );
    // The choice closer to the user counts.
    let fixed = question(Variant::Quick, Sampling { rounds: Some(9), ..Sampling::default() }).expect("plan");
    assert_eq!((fixed.rounds, fixed.budget), (9, None));
    let text = "rounds = 9\n[quick]\nbudget = \"60s\"";
    let environment = environment();
    let plan = text::parse("test", text).expect("plan");
    let of = |variant| {
        resolve(&plan, variant, &Layer::default(), dataset(), &machine(&environment)).expect("plan").budget
    };
    let quick = of(Variant::Quick).expect("a budget");
    assert_eq!((of(Variant::Standard), quick.first_rounds_percent), (None, 0));
}

#[test]
fn what_stands_beside_a_time_or_above_it_is_not_shortened() {
    let text = "file_size = \"1GiB\"\nsample = \"1s\"\nmethods = [\"mmap\", \"pread\"]";
    let timed = format!("budget = \"30s\"\n{text}");
    let of = |text: &str, budget: Option<&str>| {
        let environment = environment();
        let budget = budget.map(|text| text.parse().expect("a budget"));
        let chosen = Layer { sampling: Sampling { budget, ..Sampling::default() }, ..Layer::default() };
        let plan = text::parse("test", text).expect("plan");
        resolve(&plan, Variant::Standard, &chosen, dataset(), &machine(&environment))
    };
    let whole = of(&timed, None).expect_err("too short").to_string();
    assert!(whole.contains(", and the budget is 30 s: "), "{whole}");
    let shorter = of(text, Some("30s")).expect("shorter samples");
    assert!(shorter.sample_ns < 1_000_000_000 && shorter.cells[0].conditions.file_bytes < Bytes::mib(1024));
    of(&timed, Some("30s")).expect("the typed time is above the samples of the plan");
}

#[test]
fn samples_in_memory_are_shorter_unless_a_length_is_chosen() {
    let of = |sampling| {
        let plan = question(Variant::Quick, sampling).expect("plan");
        let mut lengths: Vec<u64> =
            plan.cells.iter().map(|cell| plan.sample_ns_of(cell) / 1_000_000).collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    };
    assert_eq!(of(Sampling::default()), [40, 80]);
    assert_eq!(of(Sampling { sample_ns: Some(30_000_000), ..Sampling::default() }), [30]);
}
