//! Advice of scans.

use super::*;
use crate::judge::bound::{BoundName, Certainty};
use pagewise_model::{CacheState, Consume, Work};

const STREAM: &str = "read:buffer=64KiB";
const RING: &str = "uring:direct+depth=8+buffer=256KiB";

fn scan(method: &str, cache: CacheState, total_ms: u64) -> Timed {
    timed(honest::scan(method, cache), MS, (total_ms - 1) * MS)
}

/// Set the share of the device that a cell reached, known to 2 %.
fn reach(cell: &mut CellJudgement, share: Option<f64>) {
    cell.of_device_bandwidth = share;
    cell.of_device_bandwidth_low = share.map(|share| share - 0.02);
    cell.of_device_bandwidth_high = share.map(|share| (share + 0.02).min(1.0));
}

/// A cold run in which the stream reaches a share of the device.
fn reaching(share: f64, ring_ms: u64) -> JudgedRun {
    let cold = CacheState::Cold;
    let run =
        judged(vec![scan(STREAM, cold, 100), scan("mmap:in-place", cold, 120), scan(RING, cold, ring_ms)]);
    changed(run, |cell| {
        let share = match cell.method.as_str() {
            STREAM => Some(share),
            RING => Some(0.99),
            _ => None,
        };
        reach(cell, share);
    })
}

#[test]
fn a_stream_that_leads_at_97_percent_leaves_nothing_to_say() {
    let judged = reaching(0.97, 101);
    let insight = "read:buffer=64KiB runs at 97 % [95, 99] of the most that this device delivered in this run; no \
                   method here is faster";
    assert_eq!(super::insight(&judged).as_deref(), Some(insight));
    assert_eq!(notes(&judged, 0)[0], format!("{insight}."));
    noted(
        &judged,
        "Of the most that this device delivered: uring:direct+depth=8+buffer=256KiB 99 %, read:buffer=64KiB 97 %.",
    );
}

#[test]
fn a_gain_is_that_of_the_leader_whatever_the_share() {
    // A stream at the ceiling beside a method 1.22x as fast.
    let judged = reaching(0.99, 82);
    assert_eq!(
        insight(&judged).as_deref(),
        Some(
            "read:buffer=64KiB runs at 99 % [97, 100] of the most that this device delivered in this run; \
             uring:direct+depth=8+buffer=256KiB gains 1.22x [1.22, 1.22]"
        )
    );
    let text = [&[sentence(&judged)][..], &notes(&judged, 0)].concat().join(" ");
    assert!(!text.contains("no method"), "{text}");
}

#[test]
fn a_stream_at_58_percent_leaves_much() {
    let judged = reaching(0.58, 60);
    let insight = insight(&judged).expect("an insight");
    assert!(insight.ends_with("uring:direct+depth=8+buffer=256KiB gains 1.67x [1.67, 1.67]"), "{insight}");
    assert!(
        sentence(&judged).contains(
            "choose uring:direct+depth=8+buffer=256KiB; in total it is 1.67x [1.66, 1.67] as fast as \
             read:buffer=64KiB, the next best"
        ),
        "{}",
        sentence(&judged)
    );
    let none = reaching(0.58, 101);
    let insight = super::insight(&none).expect("an insight");
    assert!(
        insight.ends_with("no method here is faster, though another had 1.72x [1.67, 1.79] as much of it"),
        "{insight}"
    );
}

#[test]
fn a_gain_that_is_not_shown_is_bounded() {
    let insight = insight(&reaching(0.9, 99)).expect("an insight");
    assert!(
        insight.contains("it is at most ")
            && insight
                .ends_with(" slower than uring:direct+depth=8+buffer=256KiB, these rounds do not decide it"),
        "{insight}"
    );
}

#[test]
fn without_a_ceiling_or_a_stream_or_quiet_nothing_is_known_to_be_gained() {
    let cold = CacheState::Cold;
    let why = |run: &Judged| {
        assert_eq!(run.advice[0].insight, None);
        notes(run, 0).remove(0)
    };
    let bare = judged(vec![scan(STREAM, cold, 100), scan("mmap:in-place", cold, 120)]);
    assert_eq!(
        why(&bare),
        "The possible gain of a method is unknown, because the share of this device that read:buffer=64KiB reaches \
         was not measured."
    );
    let streamless = judged(vec![scan("pread:sequential", cold, 100), scan("mmap:in-place", cold, 120)]);
    assert!(why(&streamless).contains("because no plain stream (read:buffer=SIZE) is among the methods."));
    let invalid = judged(vec![
        scan("mmap:in-place", cold, 120),
        scan("pread:sequential", cold, 120),
        scan(STREAM, cold, 100).invalid(),
    ]);
    assert_eq!(
        why(&invalid),
        "The possible gain of a method is unknown, because read:buffer=64KiB is not ranked: no sample of it is valid."
    );
    let short = judged_in(3, vec![scan(STREAM, cold, 100), scan("mmap:in-place", cold, 110)]);
    let short = changed(short, |cell| reach(cell, Some(0.6)));
    assert!(why(&short).ends_with("because read:buffer=64KiB has 3 valid rounds, and 5 are needed."));
}

#[test]
fn the_usual_buffer_stands_for_streams_else_the_fastest() {
    let cold = CacheState::Cold;
    let insight = |methods: &[(&str, u64)]| {
        let run = judged(methods.iter().map(|(method, ms)| scan(method, cold, *ms)).collect());
        super::insight(&changed(run, |cell| reach(cell, Some(0.97)))).expect("an insight")
    };
    assert!(insight(&[("read:buffer=1MiB", 90), (STREAM, 100)]).starts_with("read:buffer=64KiB"));
    assert!(insight(&[("read:buffer=4KiB", 110), ("read:buffer=1MiB", 90)]).starts_with("read:buffer=1MiB"));
}

#[test]
fn counting_is_distinguished_from_touching() {
    let touching = |method: &str, ms: u64| {
        let mut timed = scan(method, CacheState::Warm, ms);
        match &mut timed.cell.conditions.work {
            Work::Scan(scan) => scan.consume = Consume::Touch,
            _ => unreachable!("it is a scan"),
        }
        timed
    };
    let with = |touched_ms| {
        let warm = CacheState::Warm;
        let lines = [scan(STREAM, warm, 50), scan("mmap:in-place", warm, 40)];
        let touched = [touching(STREAM, touched_ms), touching("mmap:in-place", touched_ms)];
        let run = judged(lines.into_iter().chain(touched).collect());
        (notes(&run, 0), notes(&run, 1))
    };
    let (lines, touched) = with(30);
    let costs =
        "Counting lines costs mmap:in-place 10 ms: 40.1 ms, and 30.1 ms where pages are only touched."
            .to_string();
    assert!(lines.contains(&costs), "{lines:?}");
    assert!(!touched.iter().any(|note| note.contains("costs")));
    let (lines, _) = with(40);
    assert!(
        lines.iter().any(|note| note.contains("costs mmap:in-place no distinguishable time: 40.1 ms")),
        "{lines:?}"
    );
}

#[test]
fn a_warm_scan_says_what_limits_it() {
    let warm = CacheState::Warm;
    let run = judged(vec![scan(STREAM, warm, 50), scan("mmap:in-place", warm, 40)]);
    let run = changed(run, |cell| {
        cell.limit.bound = Some(if cell.method == STREAM { BoundName::MemoryCopy } else { BoundName::Cpu });
        cell.limit.bound_certainty = Some(Certainty::Named);
    });
    assert_eq!(run.advice[0].insight, None);
    noted(&run, "Copying from memory limits read:buffer=64KiB; the CPU limits mmap:in-place.");
}
