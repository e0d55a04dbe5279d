//! Verdicts on rates without noise, with one disturbed round, with lost rounds.

use super::*;

fn judge(methods: &[&Vec<Option<f64>>]) -> Judgement {
    let rates: Vec<Rates> = methods.iter().map(|method| Rates::of_each(method)).collect();
    super::judge(&rates.iter().collect::<Vec<_>>())
}

fn rates(values: &[f64]) -> Vec<Option<f64>> {
    values.iter().copied().map(Some).collect()
}

const STEADY: [f64; 7] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8];

fn scaled(factor: f64) -> Vec<Option<f64>> {
    STEADY
        .iter()
        .enumerate()
        .map(|(round, rate)| Some(rate * factor * (1.0 + round as f64 * 1e-4 * factor)))
        .collect()
}

#[test]
fn a_method_that_beats_all_others_is_best() {
    let judgement = judge(&[&scaled(1.0), &scaled(1.5), &scaled(0.7)]);
    assert_eq!((judgement.verdict, judgement.leader), (Verdict::Best, Some(1)));
    assert_eq!((judgement.ratios[0].other, judgement.ratios[0].place), (0, Place::Behind));
    assert!((judgement.ratios[0].ratio - 1.5).abs() < 1e-3);
    let interval = judgement.ratios[0].interval.expect("seven rounds");
    assert!(interval.low > 1.0 && interval.coverage == 0.98, "{interval:?}");
    assert_eq!(judgement.staying(), [1]);
}

#[test]
fn nothing_below_two_percent_is_claimed_however_sure() {
    let judgement = judge(&[&scaled(1.0), &scaled(1.015)]);
    assert_eq!((judgement.verdict, judgement.staying()), (Verdict::Tie, vec![1, 0]));
    let ratio = &judgement.ratios[0];
    assert!(ratio.place == Place::Tie && ratio.bound.is_some_and(|bound| (0.014..0.02).contains(&bound)));
}

#[test]
fn what_is_not_behind_has_a_bound_and_a_place_by_it() {
    let loud = |by: f64| {
        let rates = scaled(1.0).into_iter().enumerate();
        rates.map(|(round, rate)| Some(rate? * if round % 2 == 0 { 1.0 - by } else { 1.0 + by })).collect()
    };
    let close = judge(&[&scaled(1.0), &loud(0.03)]);
    assert_eq!((close.verdict, close.ratios[0].place), (Verdict::Close, Place::Close), "{close:?}");
    let open = judge(&[&scaled(1.0), &loud(0.3)]);
    assert_eq!((open.verdict, open.ratios[0].place), (Verdict::Open, Place::Open), "{open:?}");
    for judgement in [close, open] {
        let ratio = &judgement.ratios[0];
        let interval = ratio.interval.expect("seven rounds");
        assert!(
            interval.low < 1.0 && ratio.bound.is_some_and(|bound| bound < interval.high - 1.0),
            "{ratio:?}"
        );
    }
}

#[test]
fn one_disturbed_round_of_nine_does_not_silence_the_others() {
    let nine = |factor: f64| -> Vec<Option<f64>> {
        (0..9).map(|round| Some(factor * (100.0 + f64::from(round % 4)))).collect()
    };
    let mut disturbed = nine(1.5);
    disturbed[3] = Some(50.0);
    let judgement = judge(&[&nine(1.0), &disturbed]);
    assert_eq!((judgement.verdict, judgement.leader), (Verdict::Best, Some(1)), "{judgement:?}");
}

#[test]
fn those_far_behind_do_not_stay() {
    let judgement = judge(&[&scaled(1.0), &scaled(1.01), &scaled(0.5)]);
    assert_eq!((judgement.verdict, judgement.staying()), (Verdict::Tie, vec![1, 0]));
    assert_eq!(judgement.ratios[1].place, Place::Behind);
}

#[test]
fn a_method_with_too_few_rounds_does_not_spoil_the_others() {
    let mut gaps = scaled(0.6);
    gaps[1..4].fill(None);
    let judgement = judge(&[&scaled(1.0), &scaled(1.5), &gaps]);
    assert_eq!((judgement.verdict, judgement.leader), (Verdict::Best, Some(1)));
    assert_eq!(judgement.unranked, [(2, Unpaired::Few { valid: 4, returned: 0 })]);
}

#[test]
fn a_rival_that_lost_its_samples_leaves_no_best() {
    let mut gaps = scaled(1.6);
    gaps[1..4].fill(None);
    let judgement = judge(&[&scaled(1.0), &scaled(1.5), &gaps]);
    assert_eq!((judgement.verdict, judgement.staying()), (Verdict::Open, vec![1, 2]));
    assert!(judgement.unranked.is_empty());
}

#[test]
fn one_round_shows_no_small_difference() {
    // Rounds of a third method, and what it is beside the best of the others.
    let beside = |rounds: &[(usize, f64)]| {
        let mut third = vec![None; 7];
        rounds.iter().for_each(|(round, rate)| third[*round] = Some(*rate));
        let mut first = scaled(1.5);
        first[0] = None;
        judge(&[&first, &scaled(1.0), &third]).verdict
    };
    assert_eq!(beside(&[(1, 140.0)]), Verdict::Open);
    assert_eq!(beside(&[(1, 140.0), (2, 140.0)]), Verdict::Open);
    assert_eq!(beside(&[(1, 140.0), (2, 140.0), (3, 140.0)]), Verdict::Best);
    assert_eq!(beside(&[(1, 40.0)]), Verdict::Best, "a gap");
    assert_eq!(beside(&[(0, 40.0)]), Verdict::Open, "no round has both it and the leader");
}

#[test]
fn a_sample_of_a_return_round_is_shown_as_one() {
    let steady = |returned: &[(u32, f64)]| Candidate {
        rates: Rates::of_each(&scaled(1.0)),
        tried: u32::MAX,
        returned: returned.iter().copied().collect(),
    };
    let late = Candidate { rates: Rates::default(), ..steady(&[(56, 100.0)]) };
    let slow = Candidate { rates: Rates::of_each(&scaled(0.5)), ..steady(&[]) };
    let candidates = [steady(&[]), slow, late];
    let status = elimination::statuses(&[candidates.to_vec()], &InterimAnalyses::once(), true).remove(0);
    let judgement = judge_status(&candidates, &status);
    assert_eq!(judgement.verdict, Verdict::Open);
    assert_eq!(judgement.unranked, [(2, Unpaired::Few { valid: 0, returned: 1 })]);
}

#[test]
fn a_gap_in_each_of_three_rounds_is_behind() {
    let slow = [Some(2.0), None, Some(1.0), None, None, Some(1.5), None];
    let judgement = judge(&[&slow.to_vec(), &scaled(1.0), &scaled(1.5)]);
    assert_eq!((judgement.verdict, judgement.leader), (Verdict::Best, Some(2)));
    let behind = judgement.ratios.last().expect("two others");
    assert_eq!((behind.other, behind.place, behind.rounds, behind.bound), (0, Place::Behind, 3, None));
    let interval = behind.interval.expect("the range of the rounds");
    assert!(behind.ratio > 90.0 && interval.low < 76.0 && interval.high > 148.0, "{behind:?}");
    assert_eq!(interval.coverage, 0.75);
    assert!(judgement.unranked.is_empty());
    // Nobody has five rounds.
    let fast = [Some(90.0), None, Some(100.0), None, Some(90.0), Some(95.0), None];
    let judgement = judge(&[&slow.to_vec(), &fast.to_vec()]);
    assert_eq!((judgement.verdict, judgement.leader), (Verdict::Best, Some(1)));
    assert!(judgement.unranked.is_empty());
}

#[test]
fn fewer_rounds_or_a_smaller_ratio_make_no_gap() {
    let of = |rounds: usize, rate: f64| judge(&[&rates(&STEADY[..rounds]), &rates(&vec![rate; rounds])]);
    assert_eq!(of(3, 30.0).verdict, Verdict::Best);
    for (rounds, rate) in [(2, 1.0), (4, 34.0), (3, 100.0)] {
        assert_eq!(of(rounds, rate).verdict, Verdict::NotComparable, "{rounds} rounds of {rate}");
    }
    // A third method, which is close, leaves no best.
    let (three, close) = (rates(&STEADY[..3]), rates(&[80.0; 3]));
    assert_eq!(judge(&[&three, &rates(&[1.0; 3]), &close]).verdict, Verdict::NotComparable);
}

#[test]
fn one_method_or_none_cannot_be_compared() {
    assert_eq!(judge(&[]).reason, Some(NoVerdict::NoMethod));
    assert_eq!(judge(&[&scaled(1.0)]).reason, Some(NoVerdict::OneMethod));
    let short = rates(&STEADY[..4]);
    let judgement = judge(&[&short, &short]);
    assert_eq!(judgement.verdict, Verdict::NotComparable);
    assert_eq!(judgement.unranked.len(), 2);
}

#[test]
fn too_few_common_rounds_decide_nothing() {
    let left: Vec<_> = (0..14).map(|round| (round < 7).then_some(100.0)).collect();
    let right: Vec<_> = (0..14).map(|round| (round >= 7).then_some(10.0)).collect();
    let judgement = judge(&[&left, &right]);
    assert_eq!((judgement.verdict, judgement.ratios.len()), (Verdict::NotComparable, 0));
    assert_eq!(judgement.reason, Some(NoVerdict::NoCommonRound));
    // A third method that shares rounds with the first one only does not make it the best of three.
    let third: Vec<_> = (0..14).map(|round| (round < 7).then_some(10.0)).collect();
    let judgement = judge(&[&left, &right, &third]);
    assert_eq!((judgement.verdict, judgement.leader), (Verdict::Open, Some(0)), "{judgement:?}");
    assert_eq!(judgement.unranked, [(1, Unpaired::WithoutLeader)]);
}

#[test]
fn invalid_samples_in_slow_rounds_make_no_leader() {
    // Rounds 0 to 9 are slow for all; the second method is missing from them and has the better
    // median.
    let first: Vec<_> = (0..20).map(|round| Some(if round < 10 { 50.0 } else { 103.0 })).collect();
    let second: Vec<_> = (0..20).map(|round| (round >= 10).then_some(100.0)).collect();
    assert_eq!(judge(&[&first, &second]).leader, Some(0));
}

#[test]
fn drift_is_how_far_a_method_is_from_itself() {
    let drift =
        |control: &[Option<f64>]| super::drift(&Rates::of_each(&scaled(1.0)), &Rates::of_each(control));
    assert!(drift(&scaled(1.0)).expect("seven rounds") < 1e-3);
    let away = drift(&scaled(0.8)).expect("seven rounds");
    assert!((away - 0.25).abs() < 1e-2, "{away}");
    assert_eq!(drift(&rates(&STEADY[..2])), None);
}

#[test]
fn a_method_that_leads_is_not_behind_a_rival_by_their_ratio() {
    // Slower in most rounds by a little, faster in the others by a lot.
    let plain: Vec<_> = (0..9).map(|_| Some(100.0)).collect();
    let wild: Vec<_> = (0..9).map(|round| Some(if round % 2 == 0 { 99.0 } else { 150.0 })).collect();
    let judgement = judge(&[&plain, &wild]);
    assert_eq!(judgement.leader, Some(1), "{judgement:?}");
    assert!(judgement.ratios[0].ratio > 1.0);
}
