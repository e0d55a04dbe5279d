//! Advice of scans.

use super::*;
use pagewise_model::{CacheState, Consume, Work};

const STREAM: &str = "read:buffer=64KiB";
const RING: &str = "uring:direct+depth=8+buffer=256KiB";

fn scan(method: &str, cache: CacheState, total_ms: u64) -> Timed {
    timed(honest::scan(method, cache), MS, (total_ms - 1) * MS)
}

/// A cold run in which the stream reaches a share of the device.
fn reaching(share: f64, ring_ms: u64) -> JudgedRun {
    let cold = CacheState::Cold;
    let run =
        judged(vec![scan(STREAM, cold, 100), scan("mmap:in-place", cold, 120), scan(RING, cold, ring_ms)]);
    changed(run, |cell| {
        cell.of_device_bandwidth = match cell.method.as_str() {
            STREAM => Some(share),
            RING => Some(0.99),
            _ => None,
        };
    })
}

#[test]
fn a_stream_at_97_percent_leaves_nothing_to_gain() {
    let judged = reaching(0.97, 99);
    let insight = "read:buffer=64KiB already runs at 97 % of this device: no method can gain more than 3 %";
    let advice = &judged.advice[0];
    assert_eq!(advice.insight.as_deref(), Some(insight));
    assert_eq!(advice.notes[0], format!("{insight}."));
    noted(
        advice,
        "Of what this device can do: uring:direct+depth=8+buffer=256KiB 99 %, read:buffer=64KiB 97 %.",
    );
    assert_eq!(
        headline(&judged),
        [
            "A cold scan: choose read:buffer=64KiB (uring:direct+depth=8+buffer=256KiB is not shown to be behind).",
            "read:buffer=64KiB already runs at 97 % of this device: no method can gain more than 3 %."
        ]
    );
}

#[test]
fn a_method_that_gains_refutes_a_ceiling() {
    let insight = "read:buffer=64KiB runs at 99 % of the ceiling that was measured of this device, and \
                   uring:direct+depth=8+buffer=256KiB still gains 1.25x";
    assert_eq!(reaching(0.99, 80).advice[0].insight.as_deref(), Some(insight));
}

#[test]
fn a_stream_at_58_percent_leaves_much() {
    let judged = reaching(0.58, 60);
    assert_eq!(
        judged.advice[0].insight.as_deref(),
        Some(
            "read:buffer=64KiB runs at 58 % of this device: mapping or deeper readahead can gain up to 1.72x; \
             uring:direct+depth=8+buffer=256KiB gains 1.67x"
        )
    );
    assert!(
        judged.advice[0].sentence.contains(
            "choose uring:direct+depth=8+buffer=256KiB; in total it is 1.67x [1.67, 1.67] as fast as \
             read:buffer=64KiB, the next best"
        ),
        "{}",
        judged.advice[0].sentence
    );
    let none = reaching(0.58, 101);
    let insight = none.advice[0].insight.as_deref().expect("an insight");
    assert!(insight.ends_with("up to 1.72x; none of the methods here does"), "{insight}");
}

#[test]
fn the_edges_of_the_insight() {
    let insight = |share| reaching(share, 200).advice[0].insight.clone();
    let has = |share, words: &str| {
        let found = insight(share).expect("an insight");
        assert!(found.contains(words), "{found}");
    };
    has(0.95, "no method can gain more than 5 %");
    has(0.94, "can gain up to 1.06x");
    has(0.999, "already runs at the ceiling of this device: no method can gain");
    has(1.2, "already runs at the ceiling of this device: no method can gain");
}

/// A cold run in which `method` went beyond the ceiling, so that no method has a share of it.
fn beyond(method: &str) -> JudgedRun {
    changed(reaching(0.9, 200), |cell| {
        cell.of_device_bandwidth = None;
        cell.beyond_device_ceiling = (cell.method == method).then_some(1.3);
    })
}

#[test]
fn a_ceiling_that_was_outrun_is_told_and_no_share_of_it() {
    let run = beyond(STREAM);
    assert_eq!(run.advice[0].insight, None);
    assert!(!run.advice[0].notes.iter().any(|note| note.starts_with("Of what this device can do")));
    noted(
        &run.advice[0],
        "The possible gain of a method is unknown, because read:buffer=64KiB is 1.30x as fast as the ceiling of this \
         device that was measured.",
    );
    noted(
        &beyond("mmap:in-place").advice[0],
        "The possible gain of a method is unknown, because mmap:in-place is 1.30x as fast as the ceiling of this \
         device that was measured.",
    );
}

#[test]
fn without_a_ceiling_or_a_stream_or_quiet_nothing_is_known_to_be_gained() {
    let cold = CacheState::Cold;
    let why = |run: &Judged| {
        assert_eq!(run.advice[0].insight, None);
        run.advice[0].notes[0].clone()
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
    let short = changed(short, |cell| cell.of_device_bandwidth = Some(0.6));
    assert!(why(&short).ends_with("because read:buffer=64KiB has 3 valid rounds, and 5 are needed."));
}

#[test]
fn the_usual_buffer_stands_for_streams_else_the_fastest() {
    let cold = CacheState::Cold;
    let insight = |methods: &[(&str, u64)]| {
        let run = judged(methods.iter().map(|(method, ms)| scan(method, cold, *ms)).collect());
        changed(run, |cell| cell.of_device_bandwidth = Some(0.97)).advice[0]
            .insight
            .clone()
            .expect("an insight")
    };
    assert!(insight(&[("read:buffer=1MiB", 90), (STREAM, 100)]).starts_with("read:buffer=64KiB"));
    assert!(insight(&[("read:buffer=4KiB", 110), ("read:buffer=1MiB", 90)]).starts_with("read:buffer=1MiB"));
}

#[test]
fn counting_is_told_from_touching() {
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
        (run.advice[0].notes.clone(), run.advice[1].notes.clone())
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
fn a_warm_scan_tells_what_limits_it() {
    let warm = CacheState::Warm;
    let run = judged(vec![scan(STREAM, warm, 50), scan("mmap:in-place", warm, 40)]);
    let run = changed(run, |cell| {
        cell.bound = Some(if cell.method == STREAM { BoundName::MemoryCopy } else { BoundName::Cpu });
    });
    assert_eq!(run.advice[0].insight, None);
    noted(&run.advice[0], "The CPU limits mmap:in-place; copying from memory limits read:buffer=64KiB.");
}
