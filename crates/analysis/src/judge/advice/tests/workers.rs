//! Advice for workers of several languages, and the stalls they cause.

use super::*;
use crate::judge::stall::{Lateness, Stall};
use pagewise_model::CacheState;

fn read(method: &str, cache: CacheState, measured_ms: u64) -> Timed {
    timed(honest::cell(method, cache), MS, measured_ms * MS)
}

#[test]
fn what_is_simple_is_so_in_every_language() {
    let mut methods = [
        "mine/lsm-get",
        "jvm/mmap:random",
        "jvm/pread",
        "python/mmap",
        "jvm/filechannel:direct-buffer",
        "mmap",
        "pread",
    ];
    methods.sort_by_key(|method| effort(method));
    assert_eq!(
        methods,
        [
            "pread",
            "jvm/filechannel:direct-buffer",
            "jvm/pread",
            "mmap",
            "python/mmap",
            "jvm/mmap:random",
            "mine/lsm-get"
        ]
    );
}

#[test]
fn a_method_of_another_language_may_win_and_is_named_in_full() {
    let warm = CacheState::Warm;
    let judged =
        judged(vec![read("pread", warm, 100), read("jvm/mmap", warm, 80), read("mine/get", warm, 120)]);
    assert_eq!(choices(&judged), ["random reads: jvm/mmap"]);
    let sentence = sentence(&judged);
    assert!(
        sentence.contains("choose jvm/mmap (limited by cpu 79 % [79, 79]); it is 1.25x")
            && sentence.contains("as fast as pread"),
        "{sentence}"
    );
    assert!(judged.advice[0].stalls.is_empty());
    let tied = super::judged(vec![read("jvm/pread", warm, 100), read("pread", warm, 100)]);
    assert_eq!(tied.advice[0].recommended.as_deref(), Some("pread"));
}

#[test]
fn nothing_is_said_of_how_an_unknown_way_works() {
    let judged = judged(vec![read("mine/get", CacheState::Cold, 100), read("pread", CacheState::Cold, 80)]);
    let faulting = changed(judged, |cell| {
        let seen = cell.evidence.as_mut().expect("evidence");
        seen.major_faults_per_op = Some(9.0);
    });
    assert!(notes(&faulting, 0).iter().all(|note| !note.contains("fault")), "{:?}", notes(&faulting, 0));
}

fn late(p99_ns: u64, max_ns: u64, beats: u64) -> Lateness {
    Lateness { p50_ns: 60_000, p99_ns, p999_ns: Some(max_ns), max_ns, beats }
}

/// A cell whose beats of a kind are late by this much, at most four times that; idle by 0.2 ms.
fn beating(cell: &mut CellJudgement, kind: &str, p99_ns: u64, beats: u64) {
    let stall = Stall {
        kind: kind.into(),
        idle: Some(late(200_000, 300_000, 1000)),
        busy: late(p99_ns, 4 * p99_ns, beats),
        beats,
    };
    cell.stall.get_or_insert_default().push(stall);
}

fn stalls(cache: CacheState, change: impl Fn(&mut CellJudgement)) -> Vec<String> {
    let judged = judged(vec![read("jvm/mmap", cache, 100), read("jvm/pread", cache, 80)]);
    changed(judged, change).advice[0].stalls.iter().map(words::advice::held_up).collect()
}

#[test]
fn what_a_method_holds_up_is_compared_with_the_idle_worker() {
    let text = stalls(CacheState::Cold, |cell| {
        beating(cell, "thread", 150_000, 900);
        beating(cell, "safepoint", if cell.method == "jvm/mmap" { 3_100_000 } else { 300_000 }, 900);
    });
    assert_eq!(
        text,
        [
            "jvm/mmap holds up safepoints for up to 12.4 ms (p99 3.1 ms; idle worker 200 µs), for which every thread of the \
             process waits.",
            "Heartbeats next to jvm/pread (p99 300 µs) are not late by more than 3 times the idle worker's p99 and 1 ms."
        ]
    );
}

#[test]
fn a_difference_that_is_small_or_no_multiple_is_none() {
    let text = |p99_ns| stalls(CacheState::Cold, move |cell| beating(cell, "goroutine", p99_ns, 900));
    let none = "No method holds up anything else in its process by more than 3 times the idle worker's p99 and 1 ms: 99 of \
                100 heartbeats are late by at most 900 µs.";
    assert_eq!(text(900_000), [none]);
    assert!(text(1_100_000)[0].starts_with("jvm/mmap holds up other goroutines"), "{:?}", text(1_100_000));
    let noisy = stalls(CacheState::Cold, |cell| {
        beating(cell, "thread", 2_000_000, 900);
        cell.stall.as_mut().expect("one")[0].idle = Some(late(900_000, 5_000_000, 900));
    });
    assert!(noisy[0].starts_with("No method"), "{noisy:?}");
}

#[test]
fn few_beats_show_nothing_and_neither_does_data_in_memory() {
    let few = stalls(CacheState::Cold, |cell| beating(cell, "thread", 9_000_000, 200));
    assert_eq!(few.len(), 1);
    assert!(few[0].starts_with("Stalls by jvm/mmap and jvm/pread are not reported"), "{few:?}");
    // If half of the beats are late by that much, there cannot be many.
    let held = |beats| {
        let half_late = move |cell: &mut CellJudgement| {
            beating(cell, "thread", 9_000_000, beats);
            cell.stall.as_mut().expect("one")[0].busy.p50_ns = 7_000_000;
        };
        stalls(CacheState::Cold, half_late)
    };
    assert!(held(30)[0].starts_with("jvm/mmap holds up other threads"), "{:?}", held(30));
    assert!(held(29)[0].contains("are not reported"), "{:?}", held(29));
    let warm = stalls(CacheState::Warm, |cell| beating(cell, "thread", 9_000_000, 900));
    assert!(warm.is_empty(), "{warm:?}");
    assert!(stalls(CacheState::Cold, |_| {}).is_empty());
}
