//! Advice of fills.

use super::*;
use crate::judge::verdict::Verdict;
use pagewise_model::CacheState;

fn fill(method: &str, setup_ms: u64, fill_ms: u64) -> Timed {
    timed(honest::fill(method, CacheState::Cold), setup_ms * MS, fill_ms * MS)
}

fn insight(judged: &Judged) -> String {
    super::insight(judged).unwrap_or_else(|| panic!("{:#?}", judged.advice[0]))
}

#[test]
fn populate_gains_in_total() {
    let judged = judged(vec![
        fill("mmap", 1, 540),
        fill("mmap:populate", 291, 200),
        fill("pwrite:buffer=64KiB", 1, 600),
    ]);
    let both =
        "mmap:populate makes the fill 2.70x faster by moving 291 ms into set-up; in total it gains 1.10x";
    assert_eq!(insight(&judged), both);
    assert_eq!(notes(&judged, 0)[0], format!("{both}."));
    assert_eq!(choices(&judged), ["fill: mmap:populate"]);
}

#[test]
fn populate_loses_in_total() {
    let judged = judged(vec![fill("mmap", 1, 499), fill("mmap:populate", 401, 199)]);
    assert_eq!(judged.advice[0].recommended.as_deref(), Some("mmap"));
    assert_eq!(
        insight(&judged),
        "mmap:populate makes the fill 2.51x faster by moving 401 ms into set-up; in total it costs 1.20x"
    );
}

#[test]
fn totals_that_cannot_be_distinguished_are_called_so() {
    let judged = judged(vec![fill("mmap", 1, 500), fill("mmap:populate", 303, 200)]);
    assert_eq!(judged.comparisons[0].verdict, Verdict::Tie);
    assert!(
        insight(&judged).ends_with("; in total the two are not distinguishable (503 ms and 505 ms)")
            || insight(&judged).ends_with("; in total the two are not distinguishable (505 ms and 503 ms)"),
        "{}",
        insight(&judged)
    );
}

#[test]
fn totals_of_two_that_do_not_lead_are_held_against_each_other() {
    let with = |populate_setup| {
        judged(vec![
            fill("mmap", 1, 500),
            fill("mmap:populate", populate_setup, 200),
            fill("pwrite:buffer=64KiB", 1, 99),
        ])
    };
    assert!(insight(&with(100)).ends_with("in total it gains 1.67x"), "{}", insight(&with(100)));
    assert!(insight(&with(802)).ends_with("in total it costs 2.00x"), "{}", insight(&with(802)));
    assert!(
        insight(&with(301)).contains("in total the two are not distinguishable"),
        "{}",
        insight(&with(301))
    );
}

#[test]
fn a_fill_that_is_not_faster_is_not_called_so() {
    let judged = judged(vec![fill("mmap", 1, 200), fill("mmap:touch", 100, 199)]);
    assert!(
        insight(&judged).starts_with(
            "mmap:touch does not make the fill faster than mmap distinguishably in these rounds (200 ms and 201 ms); \
             in total it costs 1.49x"
        ),
        "{}",
        insight(&judged)
    );
}

#[test]
fn of_methods_as_fast_the_simplest_is_spoken_of() {
    let judged = judged(vec![
        fill("mmap", 1, 200),
        fill("mmap:prealloc+populate", 300, 99),
        fill("mmap:populate", 300, 100),
        fill("mmap:touch", 300, 150),
    ]);
    assert!(insight(&judged).starts_with("mmap:populate makes"), "{}", insight(&judged));
}

fn with_pretouch(fill_ms: u64, p999: u64) -> JudgedRun {
    judged(vec![
        fill("mmap", 1, 540).latency(2100, 1_200_000),
        fill("mmap:populate", 311, 200).latency(170, 30_000),
        fill("mmap:pretouch=4MiB", 1, fill_ms).latency(p999, 90_000),
    ])
}

#[test]
fn pretouch_hides_the_faults_of_a_steady_writer() {
    let judged = with_pretouch(210, 180);
    assert_eq!(
        insight(&judged),
        "mmap:populate makes the fill 2.70x faster by moving 311 ms into set-up; in total it gains 1.06x; for a steady \
         writer, mmap:pretouch=4MiB hides it: p99.9 of a block 180 ns instead of 2.1 µs, with 1 ms of set-up \
         instead of 312 ms"
    );
    noted(
        &judged,
        "Page faults in a block's time, p99.9 and longest: mmap 2.1 µs and 1.2 ms, mmap:populate 170 ns and 30 µs, \
         mmap:pretouch=4MiB 180 ns and 90 µs.",
    );
    assert_eq!(choices(&judged), ["fill: mmap:pretouch=4MiB"]);
}

#[test]
fn pretouch_that_hides_nothing_is_called_so() {
    for (fill_ms, p999) in [(300, 180), (210, 2090)] {
        let judged = with_pretouch(fill_ms, p999);
        assert!(!insight(&judged).contains("steady writer"));
        let text = notes(&judged, 0).iter().any(|note| {
            note.starts_with("mmap:pretouch=4MiB does not hide the page faults: its fill takes ")
                && note.contains(", where mmap:populate takes 201 ms, and p99.9 of a block ")
        });
        assert!(text, "{:#?}", notes(&judged, 0));
    }
}

#[test]
fn without_the_plain_mapping_nothing_is_held_against_it() {
    let absent = judged(vec![fill("mmap:touch", 300, 99), fill("mmap:populate", 300, 100)]);
    assert_eq!(absent.advice[0].insight, None);
    noted(&absent, "The gain from prefaulting is unknown, because plain mmap is not among the methods.");
    let invalid = judged(vec![
        fill("mmap:touch", 300, 99),
        fill("mmap:populate", 300, 100),
        fill("mmap", 1, 100).invalid(),
    ]);
    noted(
        &invalid,
        "The gain from prefaulting is unknown, because mmap is not ranked: no sample of it is valid.",
    );
}
