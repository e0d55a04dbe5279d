//! Sentences of the advice.

use pagewise_analysis::judge::advice::stall::{FEWEST_BEATS, FEWEST_IDLE_BEATS, LEAST_NS, TIMES_IDLE};
use pagewise_analysis::judge::advice::{
    Buffers, FilesByBuffer, FillFigures, HeldUp, Insight, Lack, Note, Recommendation, StreamGain,
};
use pagewise_analysis::judge::bound::{Bound, BoundName, Certainty};
use pagewise_analysis::judge::label::{shared, texts};
use pagewise_analysis::judge::verdict::{FEWEST_ROUNDS, Place, Verdict};
use pagewise_analysis::judge::{ComparedConditions, Comparison, FigureKind, RatioToLeader, Stall};
use pagewise_model::format::{
    bytes, capitalized, counted, factor, listed, percent, percent_up, time, times, times_interval,
};
use pagewise_model::{Bytes, CacheState, Consume};

use super::{limit, reasons};

/// All of an advice, one sentence each: explanations of the result, effects of methods on
/// everything else in their process, and the choice.
pub fn sentences(advice: &Recommendation, comparison: &Comparison) -> Vec<String> {
    let mut sentences = notes(advice, comparison);
    sentences.extend(advice.stalls.iter().map(held_up));
    sentences.push(sentence(advice, comparison));
    sentences
}

/// Explanations of the result, one sentence each; the insight is the first.
pub fn notes(advice: &Recommendation, comparison: &Comparison) -> Vec<String> {
    let first = advice.insight.iter().map(|found| format!("{}.", insight(found)));
    first.chain(advice.notes.iter().map(|one| note(one, comparison))).collect()
}

fn note(note: &Note, comparison: &Comparison) -> String {
    match note {
        Note::Amplified(method, read) => {
            format!("{method}: {} B read from the device per requested byte.", times(*read))
        }
        Note::MajorFaults(method, per_op) => {
            format!("{method}: {} major faults per operation.", times(*per_op))
        }
        Note::MinorFaults(method, per_op) => format!(
            "{method}: {} page faults per operation, none of which needed the device.",
            times(*per_op)
        ),
        Note::Refaults(methods) => {
            format!("Refaults per operation, because of the memory limit: {}.", by_method(methods, times))
        }
        Note::NotDurable { call, in_memory: true } => {
            format!("{call} is not durable here: the file is stored in memory.")
        }
        Note::NotDurable { call, in_memory: false } => {
            format!("{call} is not durable: neither metadata nor the cache of the device are flushed.")
        }
        Note::StillDirty { methods, of_bytes, every } => {
            let dirty = || methods.iter().map(|(_, dirty)| *dirty);
            let (least, most) = (bytes(dirty().min().unwrap_or(0)), bytes(dirty().max().unwrap_or(0)));
            let dirty = if least == most { most } else { format!("From {least} to {most}") };
            let methods = match every {
                true => "every method".to_string(),
                false => listed(&each(methods, |(method, _)| method.clone())),
            };
            format!(
                "{dirty} of {} are still dirty at the end with {methods}: they have not reached the device.",
                bytes(*of_bytes)
            )
        }
        Note::Stalls(methods) => format!("Stalls over 1 ms: {}.", each(methods, stalled).join("; ")),
        Note::WrittenAgain(methods) => {
            let written = by_method(methods, |ratio| format!("{} B", times(ratio)));
            format!("Written to the device by any process, per byte that reached the file: {written}.")
        }
        Note::NoBuffer => {
            format!("No buffer is advised, because {}.", silence(comparison).unwrap_or_default())
        }
        Note::NoBufferOf(base, missing) => {
            format!("{base}: no buffer is advised, because {}.", listed(&each(missing, lack)))
        }
        Note::Buffers(found) => buffers(found),
        Note::BufferByFileSize(record, bases) => {
            let words = each(bases, |(base, files)| format!("of {base} is {}", by_file_size(files)));
            format!("For records of {} the smallest good buffer {}.", bytes(*record), words.join("; that "))
        }
        Note::UnknownGain(why) => format!("The possible gain of a method is unknown, because {}.", lack(why)),
        Note::Shares(methods) => {
            format!("Of the most that this device delivered: {}.", by_method(methods, percent))
        }
        Note::Limits(limits) => {
            let mut words = each(limits, |(name, methods)| (limit::subject(*name), listed(methods)));
            words.sort_by_key(|(subject, _)| *subject);
            let words = each(&words, |(subject, methods)| format!("{subject} limits {methods}"));
            format!("{}.", capitalized(&words.join("; ")))
        }
        Note::Consuming { consume, method, full_ns, touched_ns, costs } => {
            let consuming = match consume {
                Consume::Touch => "Touching pages",
                Consume::Sum => "Summing the bytes",
                Consume::Lines => "Counting lines",
            };
            let cost = match costs {
                true => time(full_ns - touched_ns),
                false => "no distinguishable time".to_string(),
            };
            let (full, touched) = (time(*full_ns), time(*touched_ns));
            format!("{consuming} costs {method} {cost}: {full}, and {touched} where pages are only touched.")
        }
        Note::UnknownPrefault(why) => format!("The gain from prefaulting is unknown, because {}.", lack(why)),
        Note::Unhidden { pretouch, prefaulted, plain } => {
            let tail = pretouch.p999_ns.zip(plain.p999_ns).map_or_else(String::new, |(own, plains)| {
                let (own, plains) = (time(own), time(plains));
                format!(", and p99.9 of a block {own} where {} has {plains}", plain.method)
            });
            format!(
                "{} does not hide the page faults: its fill takes {}, where {} takes {}{tail}.",
                pretouch.method,
                time(pretouch.fill_ns),
                prefaulted.method,
                time(prefaulted.fill_ns)
            )
        }
        Note::Blocks(methods) => {
            let words = each(methods, |(method, p999_ns, longest_ns)| {
                format!("{method} {} and {}", time(*p999_ns), time(*longest_ns))
            });
            format!("Page faults in a block's time, p99.9 and longest: {}.", words.join(", "))
        }
    }
}

/// The meaning of a result beyond the choice, without a full stop.
pub fn insight(found: &Insight) -> String {
    match found {
        Insight::Stream { method, share, gain } => {
            let others = match gain {
                StreamGain::Known(leader, ratio) => {
                    let [ratio, low, high] = [ratio.median, ratio.low, ratio.high].map(times);
                    format!("{leader} gains {ratio}x [{low}, {high}]")
                }
                StreamGain::AtMost(leader, bound) => {
                    format!("it is {} than {leader}, these rounds do not decide it", slower(*bound))
                }
                StreamGain::FewRounds(leader) => format!("too few rounds compare it with {leader}"),
                StreamGain::Nothing(false) => "no method here is faster".to_string(),
                StreamGain::Nothing(true) => {
                    let [most, low, high] =
                        [share.median, share.high, share.low].map(|part| times(1.0 / part));
                    format!(
                        "no method here is faster, though another had {most}x [{low}, {high}] as much of it"
                    )
                }
            };
            let (share, ends) = (percent(share.median), interval(share.low, share.high));
            format!(
                "{method} runs at {share} {ends} of the most that this device delivered in this run; {others}"
            )
        }
        Insight::Prefault { plain, prefaulted, faster, in_total, steady } => {
            let (method, other) = (&prefaulted.method, &plain.method);
            let (own, others) = (time(prefaulted.fill_ns), time(plain.fill_ns));
            let fill = match faster {
                Some(faster) => {
                    format!("{method} makes the fill {}x faster{}", times(*faster), moved(prefaulted, plain))
                }
                None => format!(
                    "{method} does not make the fill faster than {other} distinguishably in these rounds \
                     ({own} and {others})"
                ),
            };
            let total = match in_total {
                Some(gain) if *gain > 1.0 => format!("in total it gains {}x", times(*gain)),
                Some(gain) => format!("in total it costs {}x", times(1.0 / gain)),
                None => format!("in total the two are not distinguishable{}", totals(prefaulted, plain)),
            };
            let steady = steady.as_ref().and_then(|steady| hidden(steady, prefaulted, plain));
            [fill, total].into_iter().chain(steady).collect::<Vec<_>>().join("; ")
        }
    }
}

fn moved(prefaulted: &FillFigures, plain: &FillFigures) -> String {
    match (prefaulted.setup_ns, plain.setup_ns) {
        (Some(own), Some(plain)) if own > plain => format!(" by moving {} into set-up", time(own - plain)),
        _ => String::new(),
    }
}

fn totals(one: &FillFigures, other: &FillFigures) -> String {
    match (one.total_ns, other.total_ns) {
        (Some(one), Some(other)) => format!(" ({} and {})", time(one), time(other)),
        _ => String::new(),
    }
}

fn hidden(steady: &FillFigures, prefaulted: &FillFigures, plain: &FillFigures) -> Option<String> {
    Some(format!(
        "for a steady writer, {} hides it: p99.9 of a block {} instead of {}, with {} of set-up instead of {}",
        steady.method,
        time(steady.p999_ns?),
        time(plain.p999_ns?),
        time(steady.setup_ns?),
        time(prefaulted.setup_ns?)
    ))
}

fn each<T, W>(all: &[T], words: impl Fn(&T) -> W) -> Vec<W> {
    all.iter().map(words).collect()
}

/// `mmap 1.50 B, pread 2.00 B`.
fn by_method(methods: &[(String, f64)], text: impl Fn(f64) -> String) -> String {
    each(methods, |(method, figure)| format!("{method} {}", text(*figure))).join(", ")
}

fn stalled((method, count, longest_ns): &(String, u64, u64)) -> String {
    // The count is a median over samples.
    let often = if *count > 0 { format!("{count} a sample") } else { "in some samples".to_string() };
    format!("{method} {often}, the longest {}", time(*longest_ns))
}

fn lack(lack: &Lack) -> String {
    match lack {
        Lack::NotRanked(method, reason) => format!("{method} is not ranked: {}", reasons::unranked(reason)),
        Lack::NoFigures(method, reason) => format!("{method} is not ranked: {}", reasons::of_cell(reason)),
        Lack::FewRounds(method, rounds) => {
            let rounds = counted(*rounds as u64, "valid round");
            format!("{method} has {rounds}, and {FEWEST_ROUNDS} are needed")
        }
        Lack::NoShare(method) => format!("the share of this device that {method} reaches was not measured"),
        Lack::NoStream => "no plain stream (read:buffer=SIZE) is among the methods".to_string(),
        Lack::NoPlainMapping => "plain mmap is not among the methods".to_string(),
        Lack::NoPrefault => "no method that prefaults is ranked".to_string(),
    }
}

/// The good buffers of methods that differ only in that.
pub fn buffers(found: &Buffers) -> String {
    let (smallest, largest) = (found.smallest_bytes, found.largest_bytes);
    let best = format!("the best ({} a record)", time(found.best_ns_per_op));
    let within = format!("{} than {best}", slower(found.bound));
    let unclear_below = found.unclear_bytes.iter().any(|unclear| *unclear < smallest);
    let known = if unclear_below { "buffer known to be good" } else { "good buffer" };
    let lead = match (smallest.0, smallest == largest) {
        (_, true) if !found.unclear_bytes.is_empty() => {
            format!("{} is ahead ({} a record)", buffer(smallest), time(found.best_ns_per_op))
        }
        (0, true) => format!("no buffer is {best}"),
        (0, false) => {
            format!("no buffer is needed: without one and up to {} all are {within}", bytes(largest))
        }
        (_, true) => format!("a buffer of {} is {best}", bytes(smallest)),
        (_, false) => format!(
            "the smallest {known} is {}: from it to {} all are {within}",
            bytes(smallest),
            bytes(largest)
        ),
    };
    let mut behind =
        each(&found.costs, |(bytes, ratio)| format!("{} costs {}x", buffer(*bytes), times(*ratio)));
    behind.extend(found.unclear_bytes.iter().zip(&found.unclear_bounds).map(|(bytes, bound)| match bound {
        Some(bound) => format!("{} is {}", buffer(*bytes), slower(*bound)),
        None => format!("{} has too few rounds", buffer(*bytes)),
    }));
    let mut parts = vec![lead];
    parts.extend((!behind.is_empty()).then(|| behind.join(", ")));
    parts.extend(found.missing.iter().map(lack));
    format!("{} (by the records alone, without set-up): {}.", found.base, parts.join("; "))
}

/// A buffer as a phrase.
fn buffer(size: Bytes) -> String {
    if size.0 == 0 { "no buffer".to_string() } else { bytes(size) }
}

/// `4 KiB at 10 MiB and 100 MiB, 16 KiB at 1 GiB`.
fn by_file_size(files: &FilesByBuffer) -> String {
    let file = |(file, doubt): &(Bytes, bool)| {
        format!("{}{}", bytes(*file), if *doubt { " (a smaller one is unclear)" } else { "" })
    };
    let at = |(smallest, files): (&Bytes, &Vec<(Bytes, bool)>)| {
        format!("{} at {}", buffer(*smallest), listed(&each(files, file)))
    };
    files.iter().map(at).collect::<Vec<_>>().join(", ")
}

/// The choice as a sentence.
pub fn sentence(advice: &Recommendation, comparison: &Comparison) -> String {
    let subject = subject(&comparison.conditions);
    let (Some(method), Some(leader)) = (advice.recommended.as_deref(), comparison.leader.as_deref()) else {
        return format!("{subject}: no advice, because {}.", silence(comparison).unwrap_or_default());
    };
    let limit = advice.limit.as_ref().and_then(limited_by).unwrap_or_default();
    let why = match comparison.bound(method) {
        Some(bound) if method != leader => format!(": simpler than {leader}, and {}", slower(bound)),
        _ if comparison.verdict == Verdict::Best => format!("; {}", lead(comparison)),
        _ => String::new(),
    };
    format!("{subject}: choose {method}{limit}{why}{}.", simpler(advice, comparison))
}

/// The methods that are simpler than the chosen one and not behind the leader, with what they may
/// cost.
fn simpler(advice: &Recommendation, comparison: &Comparison) -> String {
    let ratio_of = |other: &String| comparison.ratios.iter().find(|ratio| ratio.method == *other);
    let words = each(&advice.simpler, |other| match (comparison.bound(other), ratio_of(other)) {
        // The table has its interval, whose upper end is more certain than the bound.
        (Some(_), Some(RatioToLeader { place: Place::Open, low: Some(low), high: Some(high), .. })) => {
            let (low, high) = times_interval(*low, *high);
            format!("{other} (open: {low}x to {high}x)")
        }
        (Some(bound), _) => format!("{other} ({})", slower(bound)),
        (None, _) => format!("{other} (too few rounds)"),
    });
    match words.as_slice() {
        [] => String::new(),
        [one] => format!("; simpler and not shown to be behind is {one}"),
        several => format!("; simpler and not shown to be behind are {}", listed(several)),
    }
}

fn subject(conditions: &ComparedConditions) -> String {
    format!(
        "{}, {}",
        conditions.conditions.workload().facts().noun,
        conditions.label.split_once(" · ").map_or("", |(_, rest)| rest).replace(" · ", ", ")
    )
}

fn lead(comparison: &Comparison) -> String {
    let is = match comparison.conditions.conditions.cache {
        CacheState::ColdStart => "it is warm",
        _ if FigureKind::of(&comparison.conditions.conditions) == FigureKind::TimeInTotal => "in total it is",
        _ => "it is",
    };
    if let Some((method, ratio)) = comparison.closest_unranked() {
        return format!(
            "{is} about {}x as fast as {method}, which has too few rounds to be ranked",
            times(ratio)
        );
    }
    let Some(next) = comparison.ratios.iter().find(|ratio| ratio.place == Place::Behind) else {
        return "it is alone".to_string();
    };
    format!("{is} {} as fast as {}, the next best", distance(next), next.method)
}

/// `1.25x [1.18, 1.51]`, or `4.79x in 3 rounds`.
pub fn distance(ratio: &RatioToLeader) -> String {
    match ratio.is_gap() {
        true => format!("{}x in {} rounds", times(ratio.ratio), ratio.rounds),
        false => factor(ratio.ratio, ratio.low.zip(ratio.high)),
    }
}

fn limited_by(limit: &Bound) -> Option<String> {
    let Bound { of_ceiling_low: Some(low), of_ceiling_high: Some(high), .. } = limit else { return None };
    if limit.bound == Some(BoundName::Unknown) {
        return None;
    }
    let text = limit::text(limit)?;
    let interval = interval(*low, *high);
    Some(match limit.bound_certainty? {
        Certainty::Named if limit.is_at_ceiling() => format!(" (limited by {text})"),
        Certainty::Named => format!(" (limited by {text} {interval})"),
        Certainty::About => format!(" ({text} {interval})"),
        Certainty::Between => format!(" ({text})"),
    })
}

/// Reason that nothing is advised; `None` if something is.
pub fn silence(comparison: &Comparison) -> Option<String> {
    match comparison.verdict {
        Verdict::NotComparable => Some(reasons::no_verdict(comparison.reason.as_ref())),
        _ => ahead_in_few_rounds(comparison),
    }
}

/// A clause about a method that was ahead of the leader in too few rounds to be ranked; `None` if
/// none was.
pub fn ahead_in_few_rounds(comparison: &Comparison) -> Option<String> {
    let (ahead, leader) = (comparison.ahead_of_leader()?, comparison.leader.as_deref()?);
    let rounds = counted(ahead.rounds as u64, "round");
    Some(format!("{} was ahead of {leader} in {rounds}, too few to rank it", ahead.method))
}

/// An effect of methods on everything else in their process.
pub fn held_up(effect: &HeldUp) -> String {
    let beyond = || format!("by more than {TIMES_IDLE} times the idle worker's p99 and {}", time(LEAST_NS));
    match effect {
        HeldUp::By(method, stalls) => format!("{method} holds up {}.", listed(&each(stalls, held))),
        HeldUp::ByNone(methods, true) => format!(
            "No method holds up anything else in its process {}: 99 of 100 heartbeats are late by at most {}.",
            beyond(),
            time(methods.iter().map(|(_, p99_ns)| *p99_ns).max().unwrap_or(0))
        ),
        HeldUp::ByNone(methods, false) => {
            let methods = each(methods, |(method, p99_ns)| format!("{method} (p99 {})", time(*p99_ns)));
            format!("Heartbeats next to {} are not late {}.", listed(&methods), beyond())
        }
        HeldUp::Unknown(methods) => format!(
            "Stalls by {} are not reported: fewer than {FEWEST_BEATS} heartbeats, or {FEWEST_IDLE_BEATS} of the idle worker.",
            listed(methods)
        ),
    }
}

fn held(stall: &Stall) -> String {
    let (what, waits) = match stall.kind.as_str() {
        "thread" => ("other threads", ""),
        "virtual-thread" => ("virtual threads", ""),
        "safepoint" => ("safepoints", ", for which every thread of the process waits"),
        "goroutine" => ("other goroutines", ""),
        other => (&*format!("its heartbeat '{other}'"), ""),
    };
    let idle = stall.idle.map_or_else(String::new, |idle| format!("; idle worker {}", time(idle.p99_ns)));
    let (longest, p99) = (time(stall.busy.max_ns), time(stall.busy.p99_ns));
    format!("{what} for up to {longest} (p99 {p99}{idle}){waits}")
}

/// The situation of each recommendation: the work, and the conditions in which it differs from
/// others of that work.
pub fn situations<'a>(advice: impl Iterator<Item = &'a Recommendation> + Clone) -> Vec<String> {
    let workload = |advice: &Recommendation| advice.conditions.conditions.workload();
    let situation = |one: &Recommendation| {
        let alike = advice.clone().filter(|other| workload(other) == workload(one));
        let shared = shared(alike.map(|other| &other.conditions.conditions));
        let own = texts(&one.conditions.conditions, &[]).into_iter().filter(|part| !shared.contains(part));
        std::iter::once(workload(one).facts().title.to_string()).chain(own).collect::<Vec<_>>().join(", ")
    };
    advice.clone().map(situation).collect()
}

/// `at most 9 % slower`, or `up to 3.3x slower`.
fn slower(bound: f64) -> String {
    match bound {
        bound if bound < 1.0 => format!("at most {} slower", percent_up(bound)),
        bound => format!("up to {}x slower", times(1.0 + bound)),
    }
}

/// The interval of a share in percent: `[95, 99]`.
fn interval(low: f64, high: f64) -> String {
    format!("[{:.0}, {:.0}]", low * 100.0, high * 100.0)
}
